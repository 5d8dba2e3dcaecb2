"""Answers of the engine over a grid of inputs, with calibrations that no fit changes.

A line of ``tests/data/answers/engine.txt`` is a case: all answers of the first case of a group, and of another case those that
differ.  After a change of a formula or of a figure, ``python tests/perf/test_stored_answers.py`` writes the file; read the
difference.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

# Run as a program, too.
sys.path.extend(
    str(Path(__file__).parents[2] / folder)
    for folder in (".", "plugins/trnspec-nvidia/src", "plugins/trnspec-inferentia/src")
)

from collections.abc import Iterator

import trnspec
from tests.perf.oracles.fits import fixed
from tests.support.stored import answered, line, read, same, write

STORED = "answers/engine.txt"

TRAINING = {"model": "llama-3.1-8b", "seq": 4096}
OFFLOADED = [{"offload": what, "host_link": "20 GB/s"} for what in ("optimizer", "activations", "weights")]
LAYOUTS = [
    {}, {"interleave": 4, "overlap": True}, {"schedule": "zbv", "uneven": True, "pp": 8, "model": "qwen2.5-7b", "tp": 4, "must_fit": False},
    {"cp": 2, "zero": 1, "recompute": "full", "seq": 16384}, {"gathered_inputs": True, "bucket": "512 MB", "reserve": "2 GiB"},
    {"attention": "full"}, {"tp": 16, "pp": 4}, *OFFLOADED,
]  # fmt: skip
"""Of other layouts tests/perf/oracles computes the times and bytes again."""
EXPERTS = [
    {}, {"ep": 32, "node_limit": 2, "model": "qwen3-30b-a3b"}, {"ep": 16, "zero": 1, "recompute": "full", "model": "gpt-oss-120b"},
    {"dtype": "fp8", "ep": 8},
]  # fmt: skip
MODELS = (
    "gpt-oss-120b", "bert-large", "gpt-18.4b", "deepseek-v3.2", "deepseek-v4-flash", "gemma-4-26b-a4b", "glm-5", "kimi-k2",
    "llama-4-maverick", "mimo-v2-flash", "minimax-m3", "mistral-7b", "mpt-7b", "nemotron-3-nano", "nemotron-h-56b",
    "qwen3.5-27b", "qwen3-30b-a3b", "trinity-mini", "nemotron-3-super",
)  # fmt: skip
SERVING = [
    {}, {"tp": None}, {"chunk": 256}, {"prefix_hit": 0.5}, {"batching": "static", "prefill_batch": 3}, {"tile": 128, "tp": 32},
    {"context_buckets": (2048, 4096, 8192)}, {"batch_buckets": (1, 12, 32)}, {"dtype": "fp8"}, {"reserve": "3 GiB"}, {"lnc": 1},
    {"draft": "llama-3.2-1b", "acceptance": 0.9, "speculate": 6},
]  # fmt: skip
FRAMEWORKS = ("nxd-inference", "transformers-neuronx", "optimum-neuron")
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all", "send")
MACHINES = ("trn1.32xlarge", "trn2.48xlarge*2", "trn2-ultraserver", "trn3-gen2-ultraserver", "p5.48xlarge*2", "inf2.48xlarge", "gb200-nvl72")  # fmt: skip
NEURON_STEP = {**TRAINING, "on": "trn1.32xlarge*8", "global_batch": 128, "tp": 8, "pp": 2}
GPU_STEP = {**TRAINING, "on": "p5.48xlarge*8", "global_batch": 128, "tp": 4, "pp": 2}
IDEAL_STEP = {**NEURON_STEP, "on": "trn2.48xlarge*4", "calibration": "none"}
EXPERT_STEP = {**GPU_STEP, "model": "mixtral-8x7b", "tp": 1, "pp": 2, "must_fit": False}
NEURON_REQUEST = {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "batch": 12, "prompt": 2000, "output": 500, "tp": 8}
GPU_REQUEST = {**NEURON_REQUEST, "model": "qwen3-30b-a3b", "on": "p5.48xlarge", "tp": 4}
MEMORY = {"model": "llama-3.1-70b", "seq": 4096, "on": "trn2.48xlarge*4", "tp": 16, "pp": 4}

GROUPS: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]]]] = {
    "training on Neuron": ("training", NEURON_STEP, [*LAYOUTS, {"chips": 64}, {"framework": "nxd"}]),
    "training on GPUs": ("training", GPU_STEP, [
        {}, *({"framework": f, "must_fit": False} for f in ("megatron", "torchtitan", "deepspeed", "llm-foundry")),
        {"on": "p5.48xlarge"}, {"dtype": "fp8"}, {"seq": 32768, "cp": 4}, {"on": "p6-b200.48xlarge*2"}, {"on": "gb200-nvl72", "tp": 4, "pp": 1, "global_batch": 144},
    ]),
    "training without losses": ("training", IDEAL_STEP, [{}, {"recompute": "full", "sequence_parallel": False}, {"lnc": 1}, *OFFLOADED]),
    "training of experts": ("training", EXPERT_STEP, EXPERTS),
    "training of experts without losses": ("training", EXPERT_STEP | {"calibration": "none", "ep": 8}, [{}, {"model": "deepseek-v3", "ep": 64, "pp": 1}]),
    "training of models": ("training", GPU_STEP | {"tp": 1, "pp": 1, "must_fit": False, "seq": 512}, [{"model": m} for m in MODELS]),
    "inference on Neuron": ("inference", NEURON_REQUEST, [
        *SERVING, *({"framework": f} for f in FRAMEWORKS), *({"framework": f, "model": "mixtral-8x7b", "tp": 32} for f in FRAMEWORKS),
        {"prefill_on": "trn2.3xlarge"}, {"on": "trn1.32xlarge"}, {"on": "trn2-ultraserver", "tp": 16},
    ]),
    "inference on GPUs": ("inference", GPU_REQUEST, [
        *SERVING[:5], {"ep": 4, "tp": 2}, {"ep": 4, "tp": 2, "dispatch": "per-copy", "expert_overlap": True}, {"ep": 2, "node_limit": 1, "dispatch_dtype": "fp8"},
        *({"framework": f} for f in ("vllm", "trtllm", "sglang")), {"experts": "all"}, {"experts": "selective-loading", "batch": 1},
        {"prefill_on": "p5.48xlarge"}, {"batch": 200, "chunk": 512},
    ]),
    "inference without losses": ("inference", GPU_REQUEST | {"calibration": "none"}, [{}, {"batching": "static"}, {"draft": "qwen3-0.6b"}]),
    "inference of models": ("inference", {"on": "p6-b300.48xlarge", "batch": 6, "prompt": 800, "output": 200, "tp": 8, "weight_dtype": "fp8"},
                            [{"model": m} for m in MODELS[::3]]),
    "memory": ("memory", MEMORY, [
        {}, {"microbatches": 3}, {"dropout": True, "flash": False}, {"offload": "optimizer"}, {"offload": "activations"},
        {"model": "deepseek-v3", "ep": 4, "uneven": True}, {"mode": "inference", "batch": 8}, {"framework": "torchtitan"}, {"framework": "nxd"},
    ]),
    "collectives": ("collective", {"kind": "all-reduce", "size": "64 MiB", "on": "trn2.48xlarge"}, [
        {}, *({"kind": k} for k in KINDS[1:]), {"size": "3 kB"}, {"size": "20 GB"}, {"ranks": 8}, {"ranks": 8, "stride": 8}, {"algorithm": "ring"},
        {"algorithm": "RDH"}, {"launch": "eager"}, {"launch": "synchronous"}, {"on": "p5.48xlarge"}, {"on": "p5.48xlarge*2"},
        {"on": "p5.48xlarge", "kind": "all-to-all", "launch": "eager"}, {"on": "trn1.32xlarge"}, {"ranks": 1},
    ]),
    "collectives without losses": ("collective", {"kind": "all-reduce", "size": "64 MiB", "on": "trn1.32xlarge", "calibration": "none"}, [
        {"kind": k, "on": m, "size": s} for m, s in zip(MACHINES, ("64 MiB", "1 MiB", "256 MiB", "64 kB", "64 MiB", "2 MB", "1 GB"), strict=True)
        for k in (KINDS[:5] if m.startswith("trn2") else ("all-reduce", "broadcast", "all-to-all"))
    ] + [{"ranks": r, "stride": d} for r, d in ((4, 8), (16, 2), (2, 16), (1, 1))]),
}  # fmt: skip


def of_group(group: str) -> Iterator[tuple[str, str]]:
    """The answers of the first case of a group, and of the others what differs."""
    evaluator, base, cases = GROUPS[group]
    first: dict[str, str] | None = None
    for change in cases:
        found = answered(lambda: trnspec.evaluate(evaluator, fixed(), **base | change))  # noqa: B023  # called here
        inputs = ", ".join(f"{name} {value}" for name, value in change.items())
        yield f"{group}: {inputs or 'base'}", line(found, first)
        first = first or found


@pytest.mark.parametrize("group", GROUPS)
def test_answers_of_grid(group) -> None:
    expected = {name: text for name, text in read(STORED).items() if name.partition(": ")[0] == group}
    found = dict(of_group(group))

    assert [*found] == [*expected]
    assert [(name, text) for name, text in found.items() if not same(expected[name], text)] == []


if __name__ == "__main__":
    write(STORED, {name: text for group in GROUPS for name, text in of_group(group)})
