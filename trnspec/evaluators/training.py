"""The time, the memory and the use of a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, UsedFigure
from trnspec.evaluators.memory_demand import Demand
from trnspec.evaluators.training_offload import host_rate, offload_time
from trnspec.model.transformers.counting import active_parameters, parameters
from trnspec.perf.training.estimator import Estimator, prepare
from trnspec.perf.training.step import PARTS
from trnspec.perf.work.activations import RECOMPUTE
from trnspec.perf.work.flops import model_flops_per_token, recomputed_flops_per_token
from trnspec.perf.work.layout import Layout, Recompute, Schedule, check, splits_sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.training.step import Step
    from trnspec.perf.work.memory import Memory

NOTES = {
    "compute": "layers, forward and backward",
    "recompute": "computed again in the backward pass",
    "head": "output matrix and loss, last stage",
    "tensor": "tensor-parallel all-reduces not hidden",
    "context": "keys and values between context-parallel ranks",
    "expert": "tokens to experts and back",
    "pipeline": "messages between stages",
    "bubble": "first and last microbatches wait",
    "data": "gradients and sharded weights, not hidden",
    "optimizer": "update of the weights",
    "fixed": "a fixed time of every step, whatever the model",
    "offload": "to the host and back, not hidden",
}
"""What each part of a step is."""

ADVICE = {
    "compute": "computation: the rate of matrix multiplication and the work of a layer",
    "recompute": "computing activations again, which memory would spare",
    "head": "the output matrix on the last stage",
    "tensor": "tensor-parallel collectives: fewer ranks, or overlap, would shorten them",
    "context": "passing keys and values between context-parallel ranks",
    "expert": "all-to-all of tokens between experts",
    "pipeline": "messages between stages",
    "bubble": "the pipeline's bubble: more microbatches or chunks would shrink it",
    "data": "collectives over gradients and weights",
    "optimizer": "the update of the weights, bound by device memory",
    "fixed": "a fixed time of every step, whatever the model",
    "offload": "the link between a rank and its host",
}
"""What binds a step, by its largest part."""


def run(  # noqa: PLR0913  # each is an axis of the question
    catalog: Catalog,
    *,
    model: str,
    on: str,
    seq: int,
    global_batch: int,
    tp: int = 1,
    pp: int = 1,
    dp: int | None = None,
    cp: int = 1,
    ep: int = 1,
    zero: int = 0,
    microbatch: int = 1,
    schedule: Schedule = "1f1b",
    interleave: int = 1,
    uneven: bool = False,
    recompute: Recompute = "none",
    sequence_parallel: bool | None = None,
    overlap: bool = False,
    flash: bool = True,
    fused_loss: bool = True,
    dtype: str = "bf16",
    optimizer: str = "adam",
    offload: Literal["none", "optimizer", "activations", "weights"] = "none",
    host_link: str | None = None,
    attention: Literal["causal", "full"] = "causal",
    lnc: int | None = None,
    chips: int | None = None,
    calibration: str = "auto",
    must_fit: bool = True,
) -> Evaluation:
    """The time of a training step with its parts, tokens a second, MFU, and the memory of a rank.

    Args:
        catalog: The catalog.
        model: The name of a model, such as llama-3.1-8b.
        on: Servers or UltraServers and how many, such as trn1.32xlarge*32.
        seq: Tokens of a sequence.
        global_batch: Sequences of a step, all replicas together.
        tp: Tensor parallelism: ranks that split each matrix.
        pp: Stages of the pipeline.
        dp: Replicas of the data; all that the other degrees leave when not given.
        cp: Context parallelism: ranks that split each sequence.
        ep: Expert parallelism: ranks, among those of dp and cp, that split the experts.
        zero: Stage of ZeRO, 0 to 3; 3 is also what FSDP does.
        microbatch: Sequences that go through the pipeline together.
        schedule: The pipeline's schedule.
        interleave: Chunks of layers that a stage holds; 1F1B with more than one is the interleaved schedule.
        uneven: Let stages hold different numbers of layers; the times are those of their mean.
        recompute: What is computed again in the backward pass: attention's scores (selective), all but the results of every
            second matrix multiplication and of attention (operators, as PyTorch does), or all of each layer (full).
        sequence_parallel: Split norms and residuals over the tensor-parallel ranks; where there are any and the
            sequence divides when not given.
        overlap: Let tensor-parallel collectives hide behind computation.
        flash: Never write attention's scores to memory; tells memory, the time follows the calibration.
        fused_loss: Keep 4 bytes of each logit for the loss; else the 14 that PyTorch's operators need; tells memory.
        dtype: What matrices are multiplied in.
        optimizer: The optimizer, with the precision of its states.
        offload: What is kept on the host.
        host_link: The rate between a rank and its host in one direction, such as "16 GB/s"; needed to offload, and
            of no use else.
        attention: Which work counts for MFU: the half of attention that causality leaves, or all.
        lnc: Physical cores of a logical core, which is a rank; 2 from Trainium2 on.
        chips: Use only so many of the chips, as many of each unit.
        calibration: The name of a calibration, auto for the chip's own, none for a bound.
        must_fit: Refuse where a rank's memory does not hold it; else the time is told all the same.

    Raises:
        RefusalError: The layout cannot be, a figure is not published, or it does not fit.
    """
    estimator = prepare(catalog.graph, model, on, dtype=dtype, calibration=calibration, lnc=lnc, chips=chips)
    if not 0 <= zero <= 3:
        raise RefusalError("zero", f"ZeRO has the stages 0 to 3, not {zero}", place="zero")
    others = max(1, tp * pp * cp)
    layout = Layout(
        tp=tp, pp=pp, dp=dp if dp is not None else max(1, int(estimator.system.ranks) // others), cp=cp, ep=ep,
        seq=seq, global_batch=global_batch, microbatch=microbatch,
        schedule="interleaved" if interleave > 1 and schedule == "1f1b" else schedule, interleave=interleave, zero=zero,
        recompute=recompute, sequence_parallel=splits_sequence(seq, tp, cp, wanted=sequence_parallel), overlap=overlap, flash=flash,
        fused_loss=fused_loss, optimizer=optimizer,
        offload=offload,
        uneven=uneven,
    )  # fmt: skip
    check(layout, estimator.dims, int(estimator.system.ranks))
    # What is no rate is refused also where it is of no use.
    rate = host_rate(host_link) if offload != "none" or host_link is not None else 0.0
    _, memory, _ = Demand(mode="training", layout=layout, microbatches=layout.microbatches).worst(estimator.dims)
    if must_fit and memory.total > estimator.system.capacity:
        raise _too_large(estimator, memory)
    found = estimator.step(layout)
    moved = offload_time(estimator, layout, estimator.memory(layout), found, rate) if offload != "none" else 0.0
    low, high = (end + moved for end in estimator.interval(layout))
    times = (float(found.total) + moved, low, high)
    return Evaluation(
        evaluator="training",
        title=f"{estimator.name} on {estimator.system.name}: {int(estimator.system.chips):,} chips, "
        f"{int(estimator.system.ranks):,} ranks, {layout.tokens:,} tokens a step",
        inputs={
            **_question(estimator, layout, attention),
            "on": on,
            "lnc": lnc,
            "chips": chips,
            "must_fit": must_fit,
            "host_link": host_link,
        },
        answers=_answers(estimator, layout, times, memory, attention),
        parts=(*_parts(found, moved), *_memory_parts(memory)),
        bottleneck=_binds(found, moved, memory, estimator),
        assumptions=(*_assumptions(estimator, layout, attention), *_taken(estimator, layout, schedule, host_link)),
        figures_used=_basis(estimator),
        edition=catalog.edition or "",
    )


def _too_large(estimator: Estimator, memory: Memory) -> RefusalError:
    import attrs

    parts = {f.name: float(getattr(memory, f.name)) for f in attrs.fields(type(memory))}
    largest = max(parts, key=lambda name: parts[name])
    return RefusalError(
        "does-not-fit",
        f"a rank needs {float(memory.total) / 2**30:,.1f} GiB, most of it for {largest}, "
        f"and has {estimator.system.capacity / 2**30:,.1f} GiB",
        place="memory",
        hint="trnspec eval memory tells what would make it fit; --no-must-fit tells the time all the same",
    )


def _answers(
    estimator: Estimator,
    layout: Layout,
    times: tuple[float, float, float],
    memory: Memory,
    attention: Literal["causal", "full"],
) -> tuple[Answer, ...]:
    total, low, high = times
    covered = estimator.calibration.coverage
    told = f"{covered:.0%} of measurements" if covered else "a bound: nothing is lost"
    system = estimator.system
    tokens = float(layout.tokens)
    d, seq = estimator.dims, float(layout.seq)
    work = model_flops_per_token(d, seq, "megatron" if attention == "causal" else "matmul-full") * tokens
    again = recomputed_flops_per_token(d, seq, RECOMPUTE[layout.recompute], attention) * tokens
    peak = system.ranks * system.published.get(estimator.dtype, system.rates[estimator.dtype])
    whose = "published" if estimator.dtype in system.published else "tensor engine's"
    used = float(memory.total)
    return (
        # Without a calibration nobody knows how much longer it takes.
        Answer("step_time", total, "s", low, high if covered else None, told),
        Answer("throughput", tokens / total, "tokens/s", tokens / high if covered else None, tokens / low, told),
        Answer("throughput_per_chip", tokens / total / system.chips, "tokens/s",
               tokens / high / system.chips if covered else None, tokens / low / system.chips),
        Answer("mfu", 100.0 * work / (total * peak), "%", 100.0 * work / (high * peak) if covered else None,
               100.0 * work / (low * peak),
               f"of the {whose} dense {estimator.dtype} rate, attention {attention}"),
        Answer("hfu", 100.0 * (work + again) / (total * peak), "%",
               100.0 * (work + again) / (high * peak) if covered else None, 100.0 * (work + again) / (low * peak),
               "with what is computed again"),
        Answer("work", work, "FLOP", note="of the model, a step"),
        Answer("memory", used, "B", note="of the rank that needs the most"),
        Answer("capacity", system.capacity, "B", note="of a rank"),
        Answer("fits", used <= system.capacity),
    )  # fmt: skip


def _parts(found: Step, moved: float) -> tuple[Part, ...]:
    each = {**{name: float(getattr(found, name)) for name in PARTS}, "offload": moved}
    return tuple(Part("step_time", name, value, NOTES[name]) for name, value in each.items() if value)


def _memory_parts(memory: Memory) -> tuple[Part, ...]:
    import attrs

    names = [f.name for f in attrs.fields(type(memory))]
    return tuple(Part("memory", name, float(getattr(memory, name))) for name in names if getattr(memory, name))


def _binds(found: Step, moved: float, memory: Memory, estimator: Estimator) -> str:
    each = {**{name: float(getattr(found, name)) for name in PARTS}, "offload": moved}
    largest = max(each, key=lambda name: each[name])
    share = each[largest] / (float(found.total) + moved)
    told = f"{ADVICE[largest]} ({share:.0%} of the step)"
    if memory.total > estimator.system.capacity:
        over = float(memory.total) / estimator.system.capacity
        told = f"it does not fit: a rank needs {over:.2f} times its memory; else {told}"
    return told


def _question(estimator: Estimator, layout: Layout, attention: str) -> dict[str, str | int | bool]:
    import attrs

    told: dict[str, str | int | bool] = {"model": estimator.name, "on": estimator.system.name}
    told |= {f.name: getattr(layout, f.name) for f in attrs.fields(Layout)}
    told |= {"dtype": estimator.dtype, "attention": attention, "calibration": estimator.calibration.name or "none"}
    return told


def _assumptions(estimator: Estimator, layout: Layout, attention: str) -> tuple[Assumption, ...]:
    system, d = estimator.system, estimator.dims
    ranks = f"logical core of {int(system.lnc)} physical cores" if system.lnc else "chip"
    found = [
        Assumption("rank", f"a {ranks}, {int(system.ranks_per_chip)} a chip", "the question, or the chip's default"),
        Assumption("rank_order", "tensor, context, data, pipeline", "neighbours are in the tensor-parallel group"),
        Assumption("calibration", estimator.calibration.name or "none", estimator.calibration.description),
        Assumption("parameters", f"{parameters(d):,.0f}", "counted from the dimensions"),
        Assumption("attention_flops", attention, "the work that MFU counts"),
        Assumption("optimizer", layout.optimizer, layout.bytes.note),
    ]
    if d.experts:
        found.append(Assumption("active_parameters", f"{active_parameters(d):,.0f}", "counted from the dimensions"))
        found.append(Assumption("experts", "loaded evenly", "no token is dropped, no expert waits"))
    parts = layout.pp * layout.interleave
    if int(d.layers) % parts and (int(d.layers) + 2) % parts == 0:
        told = "embedding and output take the place of a layer each"
        found.append(Assumption("stages", told, "layers do not divide"))
    elif int(d.layers) % parts:
        slowest = -(-int(d.layers) // parts) * parts / d.layers - 1.0
        told = f"of the mean number of layers; the fullest has {slowest:.0%} more"
        found.append(Assumption("stages", told, "the question"))
    for level in system.levels:
        rate = f"{level.rate / 1e9:,.4g} GB/s a rank and direction" if level.rate else "not published"
        found.append(Assumption(f"link_{level.name}", rate, f"{level.link}, {level.place}"))
    return tuple(found)


def _taken(estimator: Estimator, layout: Layout, schedule: str, host_link: str | None) -> Iterator[Assumption]:
    """What of the question was taken for something else, is of no use, or goes beyond what a model was made for."""
    context = estimator.dims.context
    if layout.seq > context:
        yield Assumption("context", f"{context:,.0f} tokens", "made for fewer than are asked for")
    if layout.schedule != schedule:
        yield Assumption("schedule", layout.schedule, f"{schedule} with {layout.interleave} chunks of a stage")
    if layout.offload == "optimizer":
        told = "as long as on the device; the rate of the host's memory is not published"
        yield Assumption("update", "on the host", told)
    if host_link is not None and layout.offload == "none":
        yield Assumption("host_link", "not used", "nothing is kept on the host")


def _basis(estimator: Estimator) -> tuple[UsedFigure, ...]:
    """The figures it rests on; of the rates only that of the type."""
    read = estimator.system.figures_used
    return tuple(b for b in read if ".dense." not in b.at or b.at.endswith(f".{estimator.dtype}"))
