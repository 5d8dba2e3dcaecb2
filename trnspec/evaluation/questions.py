"""The inputs that evaluators share, as attrs classes: each field is defined once, with unit, choices and help text.

An evaluator composes its question of these classes::

    @frozen(kw_only=True, slots=False)
    class TrainingQuestion(TrainingWorkload, CalibratedSystem, TrainingParallelism, TrainingPrecision, StepSchedule):
        must_fit: bool = axis("Reject a layout that does not fit.", group="Output", default=True)


    def run(catalog: Catalog, question: TrainingQuestion) -> Evaluation: ...

The keywords of :func:`trnspec.evaluate`, the options of ``trnspec eval``, their help, and the axes of a sweep follow from
the fields. ``slots=False`` lets a class have several bases.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Literal

import attrs
from attrs import NOTHING, evolve, field, frozen

from trnspec.errors import UsageError
from trnspec.evaluation.inputs import AXIS, Axis, fields_of
from trnspec.model.quotes import PriceType

Attention = Literal["causal", "full"]
ZeroStage = Literal[0, 1, 2, 3]
PipelineSchedule = Literal["1f1b", "interleaved", "gpipe", "zb1p", "zb2p", "zbv", "v-half", "v-min"]
Recompute = Literal["none", "selective", "operators", "full"]
Dispatch = Literal["per-node", "per-copy"]
DispatchDtype = Literal["bf16", "fp8"]
Offload = Literal["none", "optimizer", "activations", "weights"]
OptimizerName = Literal["adam", "adam-fp32-grads", "adam-fp32", "adam-fsdp", "adam-bf16", "adam-8bit", "sgd-momentum"]
FrameworkName = Literal[
    "megatron", "torchtitan", "nxd", "deepspeed", "llm-foundry", "nxd-inference", "transformers-neuronx", "optimum-neuron",
    "vllm", "trtllm", "sglang", "nccl", "nccom",
]  # fmt: skip
"""The frameworks of :mod:`trnspec.perf.frameworks`, which has what each sets in training, in inference and for collectives."""


def axis(help: str, metavar: str = "", *, group: str = "", unset: str = "", default: Any = NOTHING, **more: Any) -> Any:
    """A field of a question; see :class:`trnspec.evaluation.inputs.Axis`.

    Args:
        help: The help text.
        metavar: The unit or kind of the value, in upper case.
        group: The group of options.
        unset: The meaning of ``None``, which then is the default.
        default: The default; without one the input is required.
        more: ``minimum``, ``maximum``, and ``order`` within the group.
    """
    metadata = {AXIS: Axis(help=help, metavar=metavar, group=group, unset=unset, **more)}
    return field(default=None if unset and default is NOTHING else default, metadata=metadata)


def like(question: type[attrs.AttrsInstance], name: str, **changes: Any) -> Any:
    """A field of a shared class.

    Args:
        question: The class that defines the field.
        name: The field.
        changes: What differs: ``default``; ``unset``, the meaning of ``None``, which then is the default.
    """
    shared = attrs.fields_dict(question)[name]
    default = changes.pop("default", None if "unset" in changes else shared.default)
    return field(default=default, metadata={AXIS: evolve(shared.metadata[AXIS], **changes)})


class Question:
    """The base of all questions; :func:`trnspec.evaluation.inputs.bound` checks the values that a caller gives."""

    def values(self) -> dict[str, Any]:
        """The values by name, in the order of the fields; several values of one input as one text."""
        cls: Any = type(self)
        values = {one.name: getattr(self, one.name) for one in fields_of(cls)}
        return {n: ",".join(map(str, v)) if isinstance(v, tuple) else v for n, v in values.items()}

    def given(self, always: tuple[str, ...] = ()) -> dict[str, Any]:
        """The values that differ from their defaults, and some in any case."""
        cls: Any = type(self)
        return {
            one.name: getattr(self, one.name)
            for one in fields_of(cls)
            if one.required or one.name in always or getattr(self, one.name) != one.default
        }

    def common(self, other: type[attrs.AttrsInstance]) -> dict[str, Any]:
        """The values of the fields that another class has too."""
        return {f.name: getattr(self, f.name) for f in attrs.fields(other) if hasattr(self, f.name)}


_workload, _system, _parallelism, _precision, _schedule, _price, _goal, _output = (
    partial(axis, group=group)
    for group in ("Workload", "System", "Parallelism", "Precision", "Schedule", "Price", "Goal", "Output")
)


@frozen(kw_only=True, slots=False)
class Workload(Question):
    """A model and the length of its sequences."""

    model: str = _workload("Model, such as llama-3.1-8b, or a config.json of the Hugging Face Hub.", "MODEL")
    seq: int = _workload("Sequence length.", "TOKENS", minimum=1)


@frozen(kw_only=True, slots=False)
class TrainingWorkload(Workload):
    """A training step: the global batch, and which FLOP count."""

    global_batch: int = _workload(
        "Global batch size: sequences per step, over all data-parallel ranks.", "SEQUENCES", minimum=1
    )
    attention: Attention = _workload(
        "Attention FLOP that count: the causal half of the score matrix, or the full matrix.", default="causal"
    )


@frozen(kw_only=True, slots=False)
class ServingWorkload(Question):
    """Requests of one length, and how many are decoded together."""

    model: str = like(Workload, "model")
    batch: int = _workload("Batch size: sequences decoded together, per replica.", "SEQUENCES", minimum=1, default=1)
    prompt: int = _workload("Prompt length.", "TOKENS", minimum=1, default=1024)
    output: int = _workload("Output length.", "TOKENS", minimum=1, default=1024)


@frozen(kw_only=True, slots=False)
class System(Question):
    """The hardware: a system, how many of it, and what a rank is."""

    on: str = _system(
        "Chip, server or UltraServer, and how many, such as trn1.32xlarge*32 or trn2-ultraserver.", "SYSTEM"
    )
    chips: int | None = _system(
        "Use only this many chips, the same number of each unit.", "CHIPS", unset="all", minimum=1
    )
    lnc: int | None = _system(
        "Physical cores per logical core (LNC). A logical core is one rank.",
        "CORES",
        unset="that of the chip",
        minimum=1,
    )


_COUNTED = re.compile(r"(?P<name>[^*\s]+)\s*(?:\*\s*(?P<count>[1-9]\d{0,8}))?")


def system_and_count(on: str) -> tuple[str, int]:
    """The name of a system and the number of them: those of ``trn2.48xlarge*64``.

    Raises:
        UsageError: The text is not a name and a count.
    """
    match = _COUNTED.fullmatch(on.strip())
    if match is None:
        raise UsageError(f"on: a system and a count are expected, such as trn2.48xlarge*64, not {on!r}")
    return match["name"], int(match["count"] or 1)


@frozen(kw_only=True, slots=False)
class MeasuredEfficiency(Question):
    """The calibration, by name or by the era of its software."""

    calibration: str = _system(
        "Calibration by name; auto: that of the chip, or of the nearest chip of its publisher, "
        "none: ideal rates (no losses).",
        "CALIBRATION",
        default="auto",
    )
    era: str | None = _system(
        "Era of the software's release, such as 2026: a calibration of it is preferred.", "ERA", unset="the newest"
    )


@frozen(kw_only=True, slots=False)
class CalibratedSystem(System, MeasuredEfficiency):
    """A system with measured efficiencies."""


@frozen(kw_only=True, slots=False)
class Degrees(Question):
    """The parallel degrees of training and of serving, without tensor parallelism."""

    pp: int = _parallelism("Pipeline-parallel degree (PP): stages.", "RANKS", minimum=1, default=1)
    dp: int | None = _parallelism(
        "Data-parallel degree (DP): replicas.", "RANKS", unset="ranks over all other degrees", minimum=1
    )
    ep: int = _parallelism(
        "Expert-parallel degree (EP): ranks of different replicas or context-parallel ranks that split the experts.",
        "RANKS",
        minimum=1,
        default=1,
    )


@frozen(kw_only=True, slots=False)
class Parallelism(Degrees):
    """All parallel degrees of training and of serving."""

    tp: int = _parallelism("Tensor-parallel degree (TP).", "RANKS", order=-1, minimum=1, default=1)


@frozen(kw_only=True, slots=False)
class TrainingParallelism(Parallelism):
    """The degrees and kinds of sharding that only training has."""

    cp: int = _parallelism("Context-parallel degree (CP).", "RANKS", minimum=1, default=1)
    expert_tp: int | None = _parallelism(
        "Tensor-parallel degree of one expert (expert TP), a divisor of TP. With 1, experts are whole and EP may use the "
        "ranks of TP too.",
        "RANKS",
        unset="tp",
        minimum=1,
    )
    zero: ZeroStage | None = _parallelism("ZeRO stage; 3 is the sharding of FSDP.", unset="that of framework, else 0")
    sequence_parallel: bool | None = _parallelism(
        "Sequence parallelism: split norms and residuals over the tensor-parallel ranks.",
        unset="on if tp > 1 and tp divides the tokens of a rank",
    )


@frozen(kw_only=True, slots=False)
class Precision(Question):
    """The data type of matrix multiplications."""

    dtype: str = _precision("Compute dtype.", "DTYPE", default="bf16")


@frozen(kw_only=True, slots=False)
class TrainingPrecision(Precision):
    """The optimizer, whose name says the precision of its states."""

    optimizer: OptimizerName | None = _precision(
        "Optimizer, with the precision of weights, gradients and states.", unset="that of framework, else adam"
    )


@frozen(kw_only=True, slots=False)
class ServingPrecision(Precision):
    """Storage dtypes of weights and KV cache."""

    weight_dtype: str | None = _precision("Weight dtype.", "DTYPE", unset="the compute dtype")
    kv_dtype: str | None = _precision("KV-cache dtype.", "DTYPE", unset="the compute dtype")


@frozen(kw_only=True, slots=False)
class ServingSchedule(Question):
    """Computation of prompts and output tokens by a framework."""

    framework: FrameworkName | None = _system(
        "Framework of inference: nxd-inference, transformers-neuronx, optimum-neuron, vllm, trtllm, sglang. Sets "
        "inputs that are not given, and states each as an assumption.",
        "NAME",
        unset="unstated",
    )
    batching: Literal["continuous", "static"] | None = _schedule(
        "Continuous batching (a request replaces one that has finished), or static batches.",
        unset="that of the framework, else continuous",
    )
    chunk: int | None = _schedule(
        "Chunked prefill: prompt tokens per decode step.",
        "TOKENS",
        unset="that of the framework, else whole prompts, apart from decode steps",
        minimum=1,
    )
    prefix_hit: float = _schedule(
        "Prefix caching: share of the prompt tokens whose keys and values are cached.",
        "SHARE",
        minimum=0,
        maximum=1,
        default=0.0,
    )
    prefill_batch: int | None = _schedule(
        "Prompts that a static batch computes in one pass; groups follow each other.",
        "PROMPTS",
        unset="that of the framework, else all",
        minimum=1,
    )
    prefill_attention: Literal["flash", "materialized"] | None = _schedule(
        "Attention of prefill: scores stay on chip (flash), or pass through device memory (materialized).",
        unset="that of the framework, else of the calibration",
    )
    experts: Literal["selected", "selective-loading", "all"] | None = _schedule(
        "Experts that a pass computes and reads: those that its tokens select; all, if together they select as many as "
        "there are, else those of each token (selective-loading); all, but for a single token (all).",
        unset="that of the framework, else selected",
    )
    context_buckets: tuple[int, ...] | None = _schedule(
        "Lengths of compiled graphs: a prompt is padded to the next, and decoding reads the cache up to it.",
        "TOKENS",
        unset="those of the framework: powers of two from 128; else exact",
        minimum=1,
    )
    batch_buckets: tuple[int, ...] | None = _schedule(
        "Batch sizes of compiled decode graphs: a batch runs in the next, padded.",
        "SEQUENCES",
        unset="those of the framework: powers of two; else exact",
        minimum=1,
    )
    tile: int | None = _schedule(
        "Columns of a tile of the tensor engine: narrower shards take the time of whole tiles.",
        "COLUMNS",
        unset="the core's array with a Neuron framework; else not counted",
        minimum=1,
    )


@frozen(kw_only=True, slots=False)
class Kernels(Question):
    """Kernels of attention and loss."""

    flash: bool | None = _schedule(
        "Flash attention: scores are not written to memory, and recomputed in the backward pass. Without it they "
        "are written, read and stored.",
        unset="that of framework, else yes",
    )
    fused_loss: bool | None = _schedule(
        "Fused cross-entropy loss: 4 bytes per logit instead of 14. Changes the memory estimate only.",
        unset="that of framework, else yes",
    )


@frozen(kw_only=True, slots=False)
class Reserve(Question):
    """The memory that the model cannot use."""

    reserve: str | None = _system(
        'Memory of a rank kept for the runtime, communication and fragmentation, such as "4 GiB" or "5%".',
        "SIZE",
        unset="5%",
    )


@frozen(kw_only=True, slots=False)
class SoftwareInputs(Reserve):
    """The training framework, and what it needs of memory besides the layout."""

    framework: FrameworkName | None = _system(
        "Framework of training: megatron, torchtitan, nxd, deepspeed, llm-foundry. Sets optimizer, zero, recompute, overlap, "
        "flash, fused_loss, gathered_inputs, bucket and reserve where they are not given.",
        "NAME",
        unset="unstated",
    )
    reserve: str | None = like(Reserve, "reserve", unset="that of framework, else 5%")
    gathered_inputs: bool | None = _schedule(
        "Store the inputs that sequence parallelism gathers, instead of gathering them again in the backward pass.",
        unset="that of framework, else no",
    )
    bucket: str | None = _schedule(
        'Buffers of gradients that are being reduced, such as "1 GB".', "SIZE", unset="that of framework, else 0 B"
    )


@frozen(kw_only=True, slots=False)
class ExpertLoad(Question):
    """Imbalance of the routing of tokens to experts."""

    imbalance: float = _schedule(
        "Load imbalance of experts: tokens of the busiest rank over the mean. Multiplies expert computation and "
        "all-to-all.",
        "RATIO",
        minimum=1.0,
        default=1.0,
    )
    capacity_factor: float | None = _schedule(
        "Capacity factor of experts: every expert computes this many times the mean, padding included; tokens beyond "
        "are dropped. Replaces the imbalance.",
        "RATIO",
        unset="no limit",
        minimum=1.0,
    )


@frozen(kw_only=True, slots=False)
class TokenDispatch(Question):
    """Dispatch of tokens to experts."""

    dispatch: Dispatch | None = _schedule(
        "All-to-all of tokens: one copy per node, handed on to the ranks inside it (DeepEP, HybridEP), or one per expert.",
        unset="per-node",
    )
    dispatch_dtype: DispatchDtype = _schedule(
        "Dtype of tokens on their way to experts; results return in 16 bit. fp8 has a scale for each 128 elements.",
        default="bf16",
    )
    node_limit: int = _schedule(
        "Group-limited routing: the experts of a token are on at most this many servers or UltraServers (DeepSeek-V3: 4); "
        "0 for no limit.",
        "NODES",
        minimum=0,
        maximum=63,
        default=0,
    )
    expert_overlap: bool | None = _schedule(
        "Overlap the all-to-all of experts with the rest of a layer; in serving that of one half of a batch with the "
        "other half.",
        unset="on; in serving off with a calibration",
    )


@frozen(kw_only=True, slots=False)
class ExpertDispatch(ExpertLoad, TokenDispatch):
    """Dispatch of tokens to experts in training."""


@frozen(kw_only=True, slots=False)
class ScheduleInputs(Kernels):
    """Pipeline schedule of a training step, and the activations it keeps."""

    microbatch: int = _schedule("Microbatch size.", "SEQUENCES", minimum=1, default=1)
    schedule: PipelineSchedule = _schedule("Pipeline schedule.", default="1f1b")
    interleave: int = _schedule(
        "Model chunks per pipeline stage; with more than one, 1f1b is the interleaved schedule.",
        "CHUNKS",
        minimum=1,
        default=1,
    )
    recompute: Recompute | None = _schedule(
        "Activation recomputation in the backward pass: attention scores (selective), all but attention and every "
        "second matrix multiplication (operators, as PyTorch does), or whole layers (full).",
        unset="that of framework, else none",
    )
    uneven: bool = _schedule(
        "Allow stages with different numbers of layers; the longest decides the step time.", default=False
    )
    offload: Offload = _schedule("What is kept in host memory.", default="none")


@frozen(kw_only=True, slots=False)
class TrainingLayout(
    Workload, System, SoftwareInputs, TrainingParallelism, TrainingPrecision, ScheduleInputs, ExpertLoad
):
    """Inputs that the memory of a training step depends on."""


@frozen(kw_only=True, slots=False)
class StepSchedule(ScheduleInputs):
    """Inputs that only the time of a step depends on."""

    overlap: bool | None = _schedule(
        "Overlap tensor-parallel collectives with computation.", unset="that of framework, else no"
    )
    host_link: str | None = _schedule(
        'Rate between a rank and its host per direction, such as "16 GB/s"; required to offload.', "GB/s", default=None
    )


@frozen(kw_only=True, slots=False)
class Prices(Question):
    """The price of a server: that of the catalog for a type and a region, or one that is given."""

    price: str | None = _price('Price of one server, such as "21.50 USD/h".', "USD/h", unset="that of the catalog")
    price_type: PriceType = _price("The way the server is bought: which price of the catalog.", default="on-demand")
    region: str | None = _price(
        "Region or availability zone of the price, such as us-east-2.",
        "REGION",
        unset="us-east-1 if there is a price, else the newest of another region",
    )


@frozen(kw_only=True, slots=False)
class AnyPrices(Question):
    """The price of a server, of whichever type is known."""

    price: str | None = like(Prices, "price")
    price_type: PriceType | None = like(
        Prices, "price_type", unset="the first known of on-demand, capacity-block, spot"
    )
    region: str | None = like(Prices, "region")


@frozen(kw_only=True, slots=False)
class SpeculativeDecoding(Question):
    """Decoding with a draft model."""

    draft: str | None = _schedule("Draft model of speculative decoding.", "MODEL", unset="none")
    acceptance: float = _schedule(
        "Probability that a draft token is accepted.", "SHARE", minimum=0, maximum=1, default=0.7
    )
    speculate: int = _schedule("Draft tokens per decode step.", "TOKENS", minimum=1, default=4)

    def check_draft(self) -> None:
        """Check that inputs of speculative decoding have a draft model.

        Raises:
            UsageError: ``acceptance`` or ``speculate`` is given without one.
        """
        if self.draft is None and (given := {"acceptance", "speculate"} & self.given().keys()):
            raise UsageError(f"{min(given)}: only speculative decoding uses it; give draft, the draft model")


@frozen(kw_only=True, slots=False)
class Confidence(Question):
    """Confidence of a plan."""

    evidence: Literal["estimate", "extrapolated", "transferred"] | None = _goal(
        "The weakest kind of evidence that a plan may have.", unset="any; bounds are ranked last"
    )
    confidence: float = _goal(
        "Least probability of meeting the goals, from the intervals of the times.",
        "SHARE",
        minimum=0.01,
        maximum=0.99,
        default=0.5,
    )


@frozen(kw_only=True, slots=False)
class ListLength(Question):
    """Number of results in a list."""

    top: int = _output("Number of results to list.", "RESULTS", minimum=1, default=10)
