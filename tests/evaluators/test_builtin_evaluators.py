"""The conformance tests for each built-in evaluator."""

from tests.support.evaluations import BuiltinConformance

LLAMA = {"model": "llama-3.1-8b", "on": "trn1.32xlarge*32", "seq": 8192}


class TestTraining(BuiltinConformance):
    """A step of training."""

    name = "training"
    good = (
        {**LLAMA, "tp": 32, "dp": 32, "zero": 1, "global_batch": 1024},
        {
            "model": "mixtral-8x7b", "on": "trn2-ultraserver", "seq": 4096, "global_batch": 256, "tp": 8, "pp": 4, "ep": 8,
            "interleave": 2, "schedule": "interleaved", "zero": 1, "recompute": "selective", "sequence_parallel": True,
            "calibration": "none", "lnc": 2, "must_fit": False,
        },
        {
            "model": "gpt2-large", "on": "trn1.32xlarge", "chips": 4, "seq": 1024, "global_batch": 64, "overlap": True,
            "flash": False, "fused_loss": False, "recompute": "operators", "attention": "full", "optimizer": "adam-fp32", "dtype": "fp32", "must_fit": True,
        },
    )  # fmt: skip
    bad = (
        ({**LLAMA, "tp": 64, "dp": 16, "global_batch": 1024}, "heads-not-divisible"),
        ({**LLAMA, "model": "llama-3.1-405b", "tp": 32, "global_batch": 1024}, "does-not-fit"),
        ({**LLAMA, "on": "trn3-gen1-server", "tp": 16, "global_batch": 64}, "unknown-figure"),
        ({**LLAMA}, "misuse"),
    )


class TestMemory(BuiltinConformance):
    """The memory of a rank."""

    name = "memory"
    good = (
        {**LLAMA, "tp": 32, "zero": 1},
        {**LLAMA, "tp": 8, "zero": 3, "recompute": "operators", "fused_loss": False},
        {"model": "mixtral-8x7b", "on": "trn2-ultraserver", "seq": 4096, "tp": 8, "pp": 4, "ep": 8, "zero": 1},
        {"model": "llama-3.1-70b", "on": "trn2.48xlarge", "seq": 8192, "mode": "inference", "tp": 16},
    )
    bad = (
        ({**LLAMA, "tp": 64}, "heads-not-divisible"),
        ({**LLAMA, "on": "trn1.32xlarge*"}, "misuse"),
    )


class TestRoofline(BuiltinConformance):
    """What a kernel can reach."""

    name = "roofline"
    good = (
        {"on": "trainium2"},
        {"on": "trainium3", "dtype": "mxfp8", "matmul": "4096x4096x4096"},
        {
            "on": "trn1.32xlarge", "model": "llama-3.1-8b", "seq": 2048, "batch": 4, "phase": "decode",
            "attention": "full",
        },
        {"on": "trainium2", "intensity": 12.5, "sparse": False},
    )  # fmt: skip
    bad = (
        ({"on": "trainium1", "dtype": "mxfp4"}, "unknown-figure"),
        ({"on": "trainium1", "matmul": "4096x4096"}, "misuse"),
    )


class TestCollective(BuiltinConformance):
    """One collective."""

    name = "collective"
    good = (
        {"kind": "all-reduce", "size": "64 MiB", "on": "trn1.32xlarge*4"},
        {"kind": "all-gather", "size": "1 GiB", "on": "trn2-ultraserver", "ranks": 64, "stride": 4},
        {"kind": "send", "size": "1 MB", "on": "trn2.48xlarge", "ranks": 2, "lnc": 1},
    )
    bad = (
        ({"kind": "all-reduce", "size": "64 MiB", "on": "trn1.32xlarge", "ranks": 64}, "rank-count"),
        ({"kind": "all-reduce", "size": "64 MiB", "on": "trn3-gen1-server"}, "unknown-figure"),
        ({"kind": "all-reduce", "size": "64 MiB", "on": "trn1.32xlarg"}, "misuse"),
    )


class TestInference(BuiltinConformance):
    """Serving."""

    name = "inference"
    good = (
        {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "batch": 4},
        {"model": "llama-3.1-70b", "on": "trn2-ultraserver", "tp": 32, "prompt": 4096, "output": 256, "batch": 16,
         "chunk": 512, "calibration": "none"},
        {"model": "mixtral-8x7b", "on": "trn1.32xlarge*2", "tp": 8, "ep": 4, "batching": "static"},
    )  # fmt: skip
    bad = (
        ({"model": "llama-3.1-405b", "on": "trn1.32xlarge"}, "does-not-fit"),
        ({"model": "bert-large", "on": "trn1.32xlarge"}, "not-a-decoder"),
        ({"model": "llama-3.1-8b", "on": "trn2.48xlarge", "kv_dtype": "fp3"}, "unknown-type"),
    )
