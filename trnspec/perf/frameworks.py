"""The frameworks that ``--framework`` names: what each sets in training, in inference and for collectives, and its memory.

A framework sets inputs that the caller leaves unstated; each is an assumption with an origin.  One that has no part in a
phase is rejected there.  Sources are in docs/explanation/performance/memory.md and serving.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

import attrs
from attrs import frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import QuantityError, RefusalError, UsageError
from trnspec.perf.work.layout import ACTIVATION_BYTES
from trnspec.quantities.quantity import Qualifier, parse
from trnspec.quantities.units import Dimension

Phase = Literal["training", "inference", "collectives"]
"""Parts of a framework."""

RESERVE = "5%"
"""The reserve where neither the caller nor a framework states one: runtime, communication buffers, fragmentation."""


@frozen(kw_only=True)
class TrainingSettings:
    """Settings of training by a framework, by the name of the input that each sets.

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
    """Setting of an option by a framework.

    Attributes:
        value: The value of the option; of buckets the smallest, which all powers of two follow.
        origin: Where the value is from.
    """

    value: str | int
    origin: str


@frozen
class ServingSettings:
    """Settings of inference by a framework.

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


def _on_neuron(**settings: tuple[str | int, str]) -> Framework:
    """A framework of inference on Neuron devices: value and origin of each setting."""
    tile = Setting("core", "compiled shards take whole tiles of the tensor engine's array")
    every = {name: Setting(*setting) for name, setting in settings.items()} | {"tile": tile}
    return Framework(serving=ServingSettings(neuron=True, settings=every))


def _on_gpus(batching: str, chunk: str, attention: str, experts: str, *, mixed: bool = True) -> Framework:
    """A framework of inference on GPUs, whose collectives are measured too: the origin of each setting."""
    settings = {
        "batching": Setting("continuous", batching),
        "chunk": Setting(8192, chunk),
        "prefill_attention": Setting("flash", attention),
        "experts": Setting("selected", experts),
    }
    return Framework(collectives=True, serving=ServingSettings(neuron=False, settings=settings, mixed=mixed))


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
    "nxd-inference": _on_neuron(
        batching=("continuous", "its vLLM integration, with one prompt per prefill (ctx_batch_size 1)"),
        prefill_batch=(1, "ctx_batch_size of its vLLM integration"),
        prefill_attention=("flash", "NKI flash attention kernel of its context encoding"),
        experts=("selective-loading", "its expert_mlps: all experts from a threshold of T k / E = 1 on"),
        context_buckets=(128, "generate_buckets of its autobucketing: powers of two from 128 to the longest context"),
        batch_buckets=(1, "vllm-neuron compiles one graph per batch bucket; powers of two assumed"),
    ),
    "transformers-neuronx": _on_neuron(
        batching=("static", "generate() of its sampling API"),
        prefill_attention=("materialized", "measured first tokens of prompts up to 4,096 tokens"),
        experts=("all", "its Mixtral multiplies each token by all experts and masks the rest"),
        context_buckets=(128, "its bucket lists: powers of two from 128 to n_positions"),
        batch_buckets=(1, "compiled for the given batch sizes; powers of two assumed"),
    ),
    "optimum-neuron": _on_neuron(
        batching=("continuous", "its server, TGI or vLLM, with one prompt per prefill"),
        prefill_batch=(1, "its continuous batching: one prompt per prefill"),
        prefill_attention=("flash", "NKI flash attention kernel of its decoder models"),
        experts=("all", "static shapes: every expert of the compiled graph"),
        context_buckets=(4096, "one graph of the exported sequence length; 4,096 assumed"),
    ),
    "vllm": _on_gpus(
        "its scheduler",
        "max_num_batched_tokens of its API server on GPUs of 70 GiB or more",
        "FlashAttention or FlashInfer backend",
        "fused_moe kernels",
    ),
    "trtllm": _on_gpus(
        "in-flight batching", "its default max_num_tokens", "context FMHA kernels", "grouped GEMM kernels"
    ),
    "sglang": _on_gpus(
        "its scheduler",
        "chunked_prefill_size on GPUs of 80 GB or more",
        "FlashAttention or FlashInfer backend",
        "fused_moe kernels",
        mixed=False,
    ),
    "nccl": Framework(collectives=True),
    "nccom": Framework(collectives=True),
}
"""The frameworks by name."""

TRAINING = {name: one.training for name, one in FRAMEWORKS.items() if one.training is not None}
"""The settings of the frameworks of training, by name."""

SERVING = {name: one.serving for name, one in FRAMEWORKS.items() if one.serving is not None}
"""The settings of the frameworks of inference, by name."""

PHASES: Mapping[Phase, Collection[str]] = {
    "training": TRAINING,
    "inference": SERVING,
    "collectives": [name for name, one in FRAMEWORKS.items() if one.collectives],
}
"""The frameworks that have a part in each phase."""

SETTINGS = tuple(f.name for f in attrs.fields(TrainingSettings))
"""The inputs that a framework of training sets."""


def check_framework(name: str, phase: Phase) -> None:
    """Check that a framework has a part in a phase.

    Raises:
        UsageError: There is no framework of that name.
        RefusalError: It has no part in the phase.
    """
    if name not in FRAMEWORKS:
        hint = did_you_mean(name, FRAMEWORKS) or f"expected one of {', '.join(FRAMEWORKS)}"
        raise UsageError(f"unknown framework {name!r}; {hint}")
    if name not in PHASES[phase]:
        # Of one library first.
        others = sorted(PHASES[phase], key=lambda other: not (other.startswith(name) or name.startswith(other)))
        does = " and ".join(p for p, names in PHASES.items() if name in names)
        raise RefusalError(
            "framework",
            f"{name} is a framework of {does}, and sets nothing of {phase}",
            place="framework",
            hint=f"a framework of {phase}: {', '.join(others)}",
        )


def training_settings(framework: str | None) -> TrainingSettings:
    """The settings of a framework; those without one for ``None`` or an empty name.

    Raises:
        UsageError: Unknown framework.
        RefusalError: It is not a framework of training.
    """
    if not framework:
        return UNSTATED
    check_framework(framework, "training")
    return TRAINING[framework]


@frozen(kw_only=True)
class Runtime:
    """Memory of a rank that software needs besides the layout.

    Attributes:
        framework: Name of the framework; empty if unstated.
        gathered_inputs: 1.0 where inputs gathered over tensor-parallel ranks are stored.
        bucket: Buffers of gradients that are being reduced [B].
        reserve: Memory of a rank that the model cannot use [B].
        dropout: 1.0 where dropout masks are stored, one byte per element.
        activation_bytes: Bytes of an activation.
    """

    framework: str = ""
    gathered_inputs: float = 0.0
    bucket: float = 0.0
    reserve: float = 0.0
    dropout: float = 0.0
    activation_bytes: float = ACTIVATION_BYTES

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings of the framework by input, for layouts; its memory settings are in the other attributes."""
        own = {f.name for f in attrs.fields(Runtime)}
        return {n: v for n, v in attrs.asdict(training_settings(self.framework)).items() if n not in own}


ALLOCATED = Runtime()
"""No reserve and no buckets: what the model and its training step allocate."""


def runtime(
    capacity: float,
    *,
    framework: str | None = None,
    reserve: str | None = None,
    gathered_inputs: bool | None = None,
    bucket: str | None = None,
) -> Runtime:
    """Memory that software needs on a rank with some memory; stated values win over those of the framework.

    Args:
        capacity: Memory of the rank, of which a reserve may be a share [B].
        framework: Name of a framework.
        reserve: A size, or a share such as ``5%``.
        gathered_inputs: Whether inputs gathered over tensor-parallel ranks are stored.
        bucket: A size.

    Raises:
        UsageError: Unknown framework, or a text that is not a size.
    """
    default = training_settings(framework)
    return Runtime(
        framework=framework or "",
        gathered_inputs=float(default.gathered_inputs if gathered_inputs is None else gathered_inputs),
        bucket=size(default.bucket if bucket is None else bucket, "bucket"),
        reserve=size(default.reserve if reserve is None else reserve, "reserve", capacity),
    )


def named_in(text: str) -> str:
    """The framework that a description of software names; empty if none, or if it is a mixture of two."""
    for name, pattern in _NAMED.items():
        if re.search(pattern, text.lower()):
            return name
    return ""


_NAMED = {"": "megatron-deepspeed", **{name: name for name in TRAINING}, "nxd": "neuronx-distributed|nxd"}
"""Words that name a framework, by framework."""


def size(text: str, name: str, whole: float | None = None) -> float:
    """A size in B: a quantity such as ``4 GiB``, ``0``, or, of a whole, a share such as ``5%``.

    Args:
        text: The text.
        name: The input that it is the value of, for messages.
        whole: What a share is of [B]; ``None`` where a share is not accepted.

    Raises:
        UsageError: It is neither, is not exact, or is a share above 100%.
    """
    expected = 'a size such as "4 GiB"' + ("" if whole is None else ', or a share of the memory such as "5%"')
    if text.strip() == "0":
        return 0.0
    share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if share is not None and whole is not None and float(share[1]) <= 100.0:
        return float(share[1]) / 100.0 * whole
    try:
        quantity = parse(text, Dimension.INFORMATION)
    except QuantityError as error:
        raise UsageError(f"{name} is {text!r}; expected {expected} ({error})") from error
    if quantity.qualifier is not Qualifier.EXACT:
        raise UsageError(f"{name} is {text!r}, which is not exact; expected {expected}")
    return float(quantity.value)
