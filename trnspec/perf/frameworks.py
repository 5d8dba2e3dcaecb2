"""The frameworks that ``--framework`` names, and what each sets in training, in inference and for collectives.

A framework sets inputs that the caller leaves unstated; each is an assumption with an origin.  One that has no part in a
phase is rejected there.  Sources are in docs/explanation/performance/memory.md and serving.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.evaluation.result import RefusalError

Phase = Literal["training", "inference", "collectives"]
"""Parts of a framework."""

RESERVE = "5%"
"""The reserve where neither the caller nor a framework states one: runtime, communication buffers, fragmentation."""


@frozen(kw_only=True)
class TrainingSettings:
    """What a framework sets of training, by the name of the input that each sets.

    Attributes:
        optimizer: The optimizer, with the precision of gradients and states.
        zero: ZeRO stage.
        recompute: Activation recomputation.
        overlap: Whether tensor-parallel collectives overlap with computation.
        flash: Whether attention scores are not stored.
        fused_loss: Whether the loss keeps 4 bytes per logit instead of 14.
        gathered_inputs: Whether inputs gathered over tensor-parallel ranks are stored, instead of gathered again.
        bucket: Buffers of gradients that are being reduced.
        reserve: Memory that the model cannot use.
    """

    optimizer: str
    zero: int = 0
    recompute: str = "none"
    overlap: bool = False
    flash: bool = True
    fused_loss: bool = True
    gathered_inputs: bool = False
    bucket: str = "0 B"
    reserve: str = RESERVE


UNSTATED = TrainingSettings(optimizer="adam")
"""The settings without a framework."""


@frozen
class Setting:
    """What a framework sets an option to.

    Attributes:
        value: The value of the option; of buckets the smallest, which all powers of two follow.
        origin: Where the value is from.
    """

    value: str | int
    origin: str


@frozen
class ServingSettings:
    """What a framework sets of inference.

    Attributes:
        neuron: Whether it runs on Neuron devices, or on GPUs.
        settings: Settings by the name of the option.
        mixed: Whether passes have prompts and decoded tokens, or prefill stops decoding.
    """

    neuron: bool
    settings: Mapping[str, Setting]
    mixed: bool = True


@frozen(kw_only=True)
class Framework:
    """A framework.

    Attributes:
        training: What it sets of training; ``None`` where it does not train.
        serving: What it sets of inference; ``None`` where it does not serve.
        collectives: Whether its collectives, or its own all-reduce kernels, are measured.
    """

    training: TrainingSettings | None = None
    serving: ServingSettings | None = None
    collectives: bool = False

    def has(self, phase: Phase) -> bool:
        """Whether it has a part in a phase."""
        if phase == "collectives":
            return self.collectives
        return (self.training if phase == "training" else self.serving) is not None


_AUTOBUCKETING = "generate_buckets of its autobucketing: powers of two from 128 to the longest context"

FRAMEWORKS: Mapping[str, Framework] = {
    # Gradients are accumulated and reduced in 32 bit, in one buffer of which buckets are views.
    "megatron": Framework(training=TrainingSettings(optimizer="adam-fp32-grads")),
    # FSDP of 32-bit parameters; DTensor stores the gathered inputs of column-parallel matrices.
    "torchtitan": Framework(
        training=TrainingSettings(
            optimizer="adam-fsdp", zero=3, recompute="operators", fused_loss=False, gathered_inputs=True
        )
    ),
    # Compiled: no allocator that fragments; the runtime takes 96 MB per physical core, and rings and scratchpad besides.
    "nxd": Framework(training=TrainingSettings(optimizer="adam-fp32-grads", zero=1, bucket="1024 MB", reserve="1 GiB")),
    # 5e8 elements of 16 bit.
    "deepspeed": Framework(training=TrainingSettings(optimizer="adam-fp32-grads", bucket="1 GB")),
    # FSDP with mixed_precision PURE: gradients are reduced in 16 bit.
    "llm-foundry": Framework(training=TrainingSettings(optimizer="adam", zero=3, recompute="full")),
    "nxd-inference": Framework(
        serving=ServingSettings(
            neuron=True,
            settings={
                "batching": Setting(
                    "continuous", "its vLLM integration, with one prompt per prefill (ctx_batch_size 1)"
                ),
                "prefill_batch": Setting(1, "ctx_batch_size of its vLLM integration"),
                "prefill_attention": Setting("flash", "NKI flash attention kernel of its context encoding"),
                "experts": Setting(
                    "selective-loading", "its expert_mlps: all experts from a threshold of T k / E = 1 on"
                ),
                "context_buckets": Setting(128, _AUTOBUCKETING),
                "batch_buckets": Setting(1, "vllm-neuron compiles one graph per batch bucket; powers of two assumed"),
                "tile": Setting("core", "compiled shards take whole tiles of the tensor engine's array"),
            },
        )
    ),
    "transformers-neuronx": Framework(
        serving=ServingSettings(
            neuron=True,
            settings={
                "batching": Setting("static", "generate() of its sampling API"),
                "prefill_attention": Setting("materialized", "measured first tokens of prompts up to 4,096 tokens"),
                "experts": Setting("all", "its Mixtral multiplies each token by all experts and masks the rest"),
                "context_buckets": Setting(128, "its bucket lists: powers of two from 128 to n_positions"),
                "batch_buckets": Setting(1, "compiled for the given batch sizes; powers of two assumed"),
                "tile": Setting("core", "compiled shards take whole tiles of the tensor engine's array"),
            },
        )
    ),
    "optimum-neuron": Framework(
        serving=ServingSettings(
            neuron=True,
            settings={
                "batching": Setting("continuous", "its server, TGI or vLLM, with one prompt per prefill"),
                "prefill_batch": Setting(1, "its continuous batching: one prompt per prefill"),
                "prefill_attention": Setting("flash", "NKI flash attention kernel of its decoder models"),
                "experts": Setting("all", "static shapes: every expert of the compiled graph"),
                "context_buckets": Setting(4096, "one graph of the exported sequence length; 4,096 assumed"),
                "tile": Setting("core", "compiled shards take whole tiles of the tensor engine's array"),
            },
        )
    ),
    "vllm": Framework(
        collectives=True,
        serving=ServingSettings(
            neuron=False,
            settings={
                "batching": Setting("continuous", "its scheduler"),
                "chunk": Setting(8192, "max_num_batched_tokens of its API server on GPUs of 70 GiB or more"),
                "prefill_attention": Setting("flash", "FlashAttention or FlashInfer backend"),
                "experts": Setting("selected", "fused_moe kernels"),
            },
        ),
    ),
    "trtllm": Framework(
        collectives=True,
        serving=ServingSettings(
            neuron=False,
            settings={
                "batching": Setting("continuous", "in-flight batching"),
                "chunk": Setting(8192, "its default max_num_tokens"),
                "prefill_attention": Setting("flash", "context FMHA kernels"),
                "experts": Setting("selected", "grouped GEMM kernels"),
            },
        ),
    ),
    "sglang": Framework(
        collectives=True,
        serving=ServingSettings(
            neuron=False,
            mixed=False,
            settings={
                "batching": Setting("continuous", "its scheduler"),
                "chunk": Setting(8192, "chunked_prefill_size on GPUs of 80 GB or more"),
                "prefill_attention": Setting("flash", "FlashAttention or FlashInfer backend"),
                "experts": Setting("selected", "fused_moe kernels"),
            },
        ),
    ),
    "nccl": Framework(collectives=True),
    "nccom": Framework(collectives=True),
}
"""The frameworks by name."""


def known(name: str, phase: Phase) -> Framework:
    """A framework that has a part in a phase.

    Args:
        name: Its name.
        phase: The phase.

    Raises:
        UsageError: There is no framework of that name.
        RefusalError: It has no part in the phase.
    """
    if name not in FRAMEWORKS:
        hint = did_you_mean(name, FRAMEWORKS) or f"expected one of {', '.join(FRAMEWORKS)}"
        raise UsageError(f"unknown framework {name!r}; {hint}")
    framework = FRAMEWORKS[name]
    if not framework.has(phase):
        others = [other for other, one in FRAMEWORKS.items() if one.has(phase)]
        # Of one library first.
        others.sort(key=lambda other: not (other.startswith(name) or name.startswith(other)))
        does = " and ".join(p for p in ("training", "inference", "collectives") if framework.has(p))
        raise RefusalError(
            "framework",
            f"{name} is a framework of {does}, and sets nothing of {phase}",
            place="framework",
            hint=f"a framework of {phase}: {', '.join(others)}",
        )
    return framework
