"""The time, the memory and the utilization of a training step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
from attrs import evolve, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.amounts import exact
from trnspec.evaluation.inputs import fields_of
from trnspec.evaluation.questions import (
    CalibratedSystem,
    ExpertDispatch,
    StepSchedule,
    TrainingLayout,
    TrainingWorkload,
    axis,
)
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Suggestion, marked
from trnspec.evaluators.collective_model import tensor_all_reduce
from trnspec.evaluators.software import resolve_training, system_assumptions, training_assumptions
from trnspec.model.transformers.counting import active_parameters, parameters
from trnspec.perf.calibration.fit_range import far_inputs, nearest_row, scale_of, training_inputs, with_memory
from trnspec.perf.frameworks import TRAINING, named_in
from trnspec.perf.training.bubble import approximation
from trnspec.perf.training.estimator import Estimator, prepare
from trnspec.perf.training.step import PARTS, Step
from trnspec.perf.work.layout import OPTIMIZERS, Layout
from trnspec.perf.work.memory import RankMemory, device_memory
from trnspec.perf.work.transformer import AttentionConvention, model_flops_per_token, recomputed_flops_per_token
from trnspec.perf.work.validity import check
from trnspec.quantities.units import Dimension

STEP_PARTS = {
    "compute": ("layers, forward and backward", "compute-bound: forward and backward of the layers"),
    "recompute": (
        "activation recomputation in the backward pass",
        "compute-bound: activation recomputation; more memory would save it",
    ),
    "head": ("output matrix and loss, last stage", "compute-bound: output matrix on the last stage"),
    "tensor": (
        "exposed tensor-parallel all-reduces",
        "network-bound: tensor-parallel collectives; fewer ranks or overlap reduce them",
    ),
    "context": (
        "keys and values between context-parallel ranks",
        "network-bound: keys and values between context-parallel ranks",
    ),
    "expert": ("exposed all-to-all of tokens between experts", "network-bound: all-to-all of tokens between experts"),
    "pipeline": ("messages between stages", "network-bound: messages between stages"),
    "bubble": ("pipeline bubble", "pipeline bubble; more microbatches or model chunks reduce it"),
    "data": (
        "exposed collectives over gradients and sharded weights",
        "network-bound: collectives over gradients and weights",
    ),
    "optimizer": ("weight update", "HBM-bound: weight update"),
    "fixed": ("fixed time per step, independent of the model",) * 2,
    "offload": ("exposed transfers to and from the host", "host-link-bound: offloading"),
}
"""The parts of a step: a note, and the bottleneck where the part is the largest."""

EXPERT_INPUTS = ("expert_tp", *(one.name for one in fields_of(ExpertDispatch)))
"""The inputs that only models with experts use."""


@frozen(kw_only=True, slots=False)
class TrainingQuestion(TrainingWorkload, CalibratedSystem, StepSchedule, ExpertDispatch, TrainingLayout):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    must_fit: bool = axis(
        "Reject a layout that does not fit in memory, instead of reporting its step time.", group="Output", default=True
    )


def layout_of(question: Any, ranks: int, **values: Any) -> Layout:
    """The layout of a question on a number of ranks; what is neither given nor follows is that of a layout.

    Args:
        question: The inputs, frameworks resolved, :class:`~trnspec.evaluation.questions.TrainingParallelism` and its
            schedule among them.
        ranks: Ranks of the system.
        values: Fields of the layout that the question has not, or has otherwise.
    """
    q = question
    # Without the input the sequence is split where it is divisible.
    divisible = q.tp > 1 and q.cp > 0 and q.seq % (q.cp * q.tp) == 0
    resolved: dict[str, Any] = {
        **{name: value for name, value in q.common(Layout).items() if value is not None},
        "dp": max(1, ranks // max(1, q.tp * q.pp * q.cp)) if q.dp is None else q.dp,
        "schedule": "interleaved" if q.interleave > 1 and q.schedule == "1f1b" else q.schedule,
        "sequence_parallel": divisible if q.sequence_parallel is None else q.sequence_parallel,
        **values,
    }
    return Layout(**resolved)


def run(catalog: Catalog, question: TrainingQuestion) -> Evaluation:
    """Estimate the time of a training step with its breakdown, tokens per second, MFU, and memory per rank.

    Raises:
        RefusalError: The layout is invalid or does not fit, or a figure is not published.

    Examples:
        Llama 3.1 8B on 32 Trn1 servers, TP 32, ZeRO stage 1:

            trnspec eval training --model llama-3.1-8b --on 'trn1.32xlarge*32' --seq 8192
                --global-batch 1024 --tp 32 --zero 1

        The same for several tensor-parallel degrees, as a table:

            trnspec eval training --model llama-3.1-8b --on 'trn1.32xlarge*32' --seq 8192
                --global-batch 1024 --tp 8,16,32 --zero 1 --no-must-fit

        The ideal time, without losses:

            trnspec eval training --model llama-3.1-8b --on 'trn1.32xlarge*32' --seq 8192
                --global-batch 1024 --tp 32 --zero 1 --calibration none
    """
    q = resolve_training(question)
    estimator = estimator_of(catalog, q)
    ranks = int(estimator.system.ranks)
    layout = layout_of(q, ranks)
    check(layout, estimator.dims, ranks)
    # A text that is not a rate is an error even if the rate is not used.
    rate = host_rate(q.host_link) if q.offload != "none" or q.host_link is not None else 0.0
    memory = device_memory(estimator.dims, layout, estimator.runtime)
    if q.must_fit and memory.total > estimator.system.capacity:
        raise _too_large(question, estimator, memory)
    estimator, step, moved, times, ideal = timed(catalog, q, estimator, layout, rate)
    evidence = estimator.calibration.evidence
    parts = {**{name: float(getattr(step, name)) for name in PARTS}, "offload": moved}
    buffer = layout.microbatch * layout.seq / layout.cp * estimator.dims.hidden * 2.0
    inputs = {
        **q.values(),
        **attrs.asdict(layout),
        "expert_tp": layout.expert_split,
        "model": estimator.name,
        "calibration": estimator.calibration.name or "none",
    }
    if not estimator.dims.experts:
        inputs = {name: value for name, value in inputs.items() if name not in EXPERT_INPUTS}
    return Evaluation(
        evaluator="training",
        title=f"{estimator.name} on {estimator.system.name}: {int(estimator.system.chips):,} chips, "
        f"{ranks:,} ranks, {layout.tokens:,} tokens per step",
        inputs=inputs,
        answers=marked((*_answers(estimator, layout, times, memory, q.attention), *ideal), evidence.kind),
        evidence=evidence,
        parts=(
            *(Part("step_time", name, value, STEP_PARTS[name][0]) for name, value in parts.items() if value),
            *(Part("memory", name, float(value)) for name, value in attrs.asdict(memory).items() if value),
        ),
        bottleneck=_bottleneck(parts, float(step.total) + moved, memory, estimator.system.capacity),
        assumptions=(
            *_assumptions(estimator, layout, question),
            *_resolved(estimator, layout, q),
            *(
                tensor_all_reduce(catalog.graph, estimator.system, estimator.machine, layout.tp, buffer)
                if estimator.calibration.name
                else ()
            ),
        ),
        figures_used=estimator.system.figures_with(estimator.dtype),
    )


def timed(
    catalog: Catalog, question: TrainingQuestion, estimator: Estimator, layout: Layout, rate: float = 0.0
) -> tuple[Estimator, Step, float, tuple[float, float, float], tuple[Answer, ...]]:
    """The time of a step with its interval.

    Args:
        catalog: The catalog.
        question: The inputs.
        estimator: The model on the system.
        layout: The layout.
        rate: The rate of a rank's link to the host, if something is offloaded [B/s].

    Returns:
        The estimator with the calibration at this layout; the step; what offloading adds [s]; the time of the step, and the
        low and high end of its interval [s]; the bound, if the time is not an estimate within the range of a fit.
    """
    graph, d, system, dtype = catalog.graph, estimator.dims, estimator.system, question.dtype
    inputs, experts = training_inputs(d, layout), d.experts > 0
    scale = scale_of(system, layout.ranks)
    known = estimator.calibration.at(inputs, dtype, scale=scale, experts=experts, flash=layout.flash)
    row = nearest_row(graph, known.name, inputs, estimator.name, chip=system.chip, dtype=dtype, experts=experts)
    far = far_inputs(graph, known.name, with_memory(inputs, d, layout), experts=experts)
    known = evolve(known, evidence=evolve(known.evidence, nearest=row).without_row(far))
    estimator = evolve(estimator, calibration=known)
    step = estimator.step(layout)
    offloads = question.offload != "none"
    computation = step.compute + step.recompute
    moved = float(estimator.offload_time(layout, estimator.memory(layout), computation, rate)) if offloads else 0.0
    low, high = (end + moved for end in estimator.interval(layout))
    time = float(step.total) + moved
    bound: tuple[Answer, ...] = ()
    if known.evidence.kind in ("extrapolated", "transferred"):
        # No losses is a bound; the spread of other chips and software may be wider.
        ideal = estimator_of(catalog, question, calibration="none")
        least, note = ideal.interval(layout)[0], "no losses: lower bound on time"
        bound = (Answer("ideal_step_time", float(ideal.step(layout).total), "s", least, note=note, kind="ideal"),)
        low = max(low, least)
    return estimator, step, moved, (time, min(low, time), high), bound


def estimator_of(catalog: Catalog, question: Any, **given: Any) -> Estimator:
    """The estimator of a question.

    Args:
        catalog: The catalog.
        question: The inputs, frameworks resolved.
        given: Arguments of :func:`~trnspec.perf.training.estimator.prepare` that the question has not, or has otherwise.
    """
    return prepare(catalog.graph, **{n: getattr(question, n) for n in _PREPARED if hasattr(question, n)} | given)


_PREPARED = (
    *("model", "on", "dtype", "calibration", "era", "lnc", "chips"),
    *("framework", "reserve", "gathered_inputs", "bucket"),
)
"""The inputs of an estimator."""


def _too_large(question: TrainingQuestion, estimator: Estimator, memory: RankMemory) -> RefusalError:
    largest = max(attrs.asdict(memory).items(), key=lambda part: float(part[1]))[0]
    inputs = {name: value for name, value in question.given().items() if name in attrs.fields_dict(TrainingLayout)}
    return RefusalError(
        "does-not-fit",
        f"a rank needs {float(memory.total) / 2**30:,.1f} GiB, most of it for {largest}, "
        f"and has {estimator.system.capacity / 2**30:,.1f} GiB",
        place="memory",
        hint="the evaluator memory lists changes that fit; must_fit=False reports the step time anyway",
        suggestions=(Suggestion("memory", inputs, "changes that fit"),),
    )


def _answers(
    estimator: Estimator,
    layout: Layout,
    times: tuple[float, float, float],
    memory: RankMemory,
    attention: AttentionConvention,
) -> Iterator[Answer]:
    total, low, high = times
    covered = estimator.calibration.coverage
    of_time, of_rate = (
        f"{covered:.0%} of measurements" if covered else f"ideal (no losses): {bound}"
        for bound in ("lower bound on time", "upper bound on throughput")
    )
    system, tokens = estimator.system, float(layout.tokens)
    d, seq = estimator.dims, float(layout.seq)
    work = model_flops_per_token(d, seq, "megatron" if attention == "causal" else "matmul-full") * tokens
    again = recomputed_flops_per_token(d, seq, layout.recomputation.level, attention) * tokens
    peak = system.peak(estimator.dtype)
    whose = "published" if estimator.dtype in system.published else "tensor engine's"
    of_peak = f"of the {whose} dense {estimator.dtype} rate, {attention} attention"
    rates: tuple[tuple[str, Callable[[float], float], str, str], ...] = (
        ("throughput", lambda time: tokens / time, "tokens/s", of_rate),
        ("throughput_per_chip", lambda time: tokens / time / system.chips, "tokens/s", ""),
        ("mfu", lambda time: 100.0 * work / (time * peak), "%", of_peak),
        ("hfu", lambda time: 100.0 * (work + again) / (time * peak), "%", "including recompute"),
    )
    # Without a calibration the losses, and so the other end of the interval, are unknown.
    yield Answer("step_time", total, "s", low, high if covered else None, of_time)
    for name, of, unit, note in rates:
        yield Answer(name, of(total), unit, of(high) if covered else None, of(low), note)
    yield Answer("work", work, "FLOP", note="model FLOP per step")
    used = float(memory.total)
    yield Answer("memory", used, "B", note="of the rank that needs most, reserve included")
    yield Answer("capacity", system.capacity, "B", note="per rank")
    yield Answer("fits", used <= system.capacity)


def utilization(estimator: Estimator, layout: Layout, seconds: float) -> float:
    """MFU of a step [%], with causal attention."""
    work = model_flops_per_token(estimator.dims, float(layout.seq), "megatron") * float(layout.tokens)
    return float(100.0 * work / (seconds * estimator.system.peak(estimator.dtype)))


def _bottleneck(times: Mapping[str, float], total: float, memory: RankMemory, capacity: float) -> str:
    largest = max(times, key=lambda name: times[name])
    text = f"{STEP_PARTS[largest][1]} ({times[largest] / total:.0%} of step time)"
    if memory.total > capacity:
        text = f"does not fit: a rank needs {float(memory.total) / capacity:.2f} times its memory; otherwise {text}"
    return text


def _assumptions(estimator: Estimator, layout: Layout, question: TrainingQuestion) -> tuple[Assumption, ...]:
    d = estimator.dims
    rank, *links = system_assumptions(estimator.system)
    assumptions = [
        rank,
        Assumption("rank_order", "tensor, context, data, pipeline", "neighbors are in one tensor-parallel group"),
        Assumption("calibration", estimator.calibration.name or "none", estimator.calibration.description),
        Assumption("parameters", f"{parameters(d):,.0f}", "counted from the dimensions"),
        Assumption("attention_flops", question.attention, "counted in MFU"),
        *_software(estimator, layout, question),
        *(overlap_note(estimator, layout) if layout.overlap else ()),
    ]
    assumptions += training_assumptions(
        question, described={"optimizer": (layout.optimizer, OPTIMIZERS[layout.optimizer].note)}
    )
    if d.experts:
        active = f"{active_parameters(d):,.0f}"
        assumptions += [
            Assumption("active_parameters", active, "counted from the dimensions"),
            *expert_assumptions(layout),
            _dispatch(estimator, layout, question),
        ]
    parts = layout.pp * layout.interleave
    if int(d.layers) % parts and (int(d.layers) + 2) % parts == 0:
        assumptions.append(
            Assumption("stages", "embedding and output count as one layer each", "the layers alone do not divide")
        )
    elif int(d.layers) % parts:
        chunk = "chunks" if parts > layout.pp else "stages"
        few = int(d.layers) // parts
        assumptions.append(
            Assumption("stages", f"{chunk} of {few} and {few + 1} layers; the longest decides", "the input uneven")
        )
    return (*assumptions, *links)


def overlap_note(estimator: Estimator, layout: Layout) -> Iterator[Assumption]:
    """Note that the input overlap has no effect: the overlap is a figure of calibrations with such rows."""
    if layout.overlap and layout.tp > 1 and not estimator.machine.achieved.tensor_overlap:
        why = (
            "the calibration has no rows with it"
            if estimator.calibration.name
            else "no calibration states what it hides"
        )
        yield Assumption("overlap", "no effect", f"{why}: tensor-parallel collectives are exposed", first=True)


def _software(estimator: Estimator, layout: Layout, question: TrainingQuestion) -> Iterator[Assumption]:
    """Settings of the software of the calibration, where the question names no framework."""
    software = estimator.calibration.evidence.software
    if question.framework is not None or not software:
        return
    value = f"unstated; calibrated on {software}"
    name = estimator.calibration.framework or named_in(software.replace(" ", "-"))
    if name not in TRAINING:
        yield Assumption("framework", value, "no framework is named")
        return
    default = TRAINING[name]
    gradients = f"{OPTIMIZERS[default.optimizer].grad_bytes * 8:g}-bit gradients"
    attention = "flash attention" if default.flash else "attention scores in memory"
    others = "" if default.flash == layout.flash else "; the step here has the other attention path"
    yield Assumption(
        "framework", f"{value}: {default.optimizer}, {gradients}, {attention}", f"framework {name} sets these{others}"
    )


def expert_assumptions(layout: Layout) -> Iterator[Assumption]:
    """Distribution of tokens over experts."""
    if layout.capacity_factor is not None:
        text = f"capacity factor {layout.capacity_factor:g}"
        yield Assumption("experts", text, "tokens that every expert computes, over the mean, padding included")
        if layout.imbalance != 1.0:
            yield Assumption("imbalance", "not used", "the capacity factor replaces it; tokens beyond are dropped")
    elif layout.imbalance == 1.0:
        yield Assumption("experts", "balanced load", "every rank's experts get the same number of tokens")
    else:
        text = f"busiest rank {layout.imbalance:g} times the mean"
        yield Assumption("experts", text, "the other ranks are as slow; no token is dropped")


def _dispatch(estimator: Estimator, layout: Layout, question: TrainingQuestion) -> Assumption:
    """Dispatch of tokens to experts, and the reason of the assumption."""
    value = f"{layout.dispatch}, {'overlapped' if layout.expert_overlap else 'exposed'}"
    if question.dispatch is not None and question.expert_overlap is not None:
        return Assumption("dispatch", value, "the inputs dispatch and expert_overlap")
    if estimator.calibration.name:
        return Assumption("dispatch", value, "as the rows of the calibration are computed")
    return Assumption("dispatch", value, "the least traffic that software can achieve; no framework is given")


def _resolved(estimator: Estimator, layout: Layout, question: TrainingQuestion) -> Iterator[Assumption]:
    """Inputs that were replaced, that are not used, or that exceed what the model was trained for."""
    context = estimator.dims.context
    if layout.seq > context:
        yield Assumption("context", f"{context:,.0f} tokens", "the model was trained for fewer tokens than seq")
    if layout.schedule != question.schedule:
        chunks = f"{question.schedule} with {layout.interleave} chunks per stage"
        yield Assumption("schedule", layout.schedule, chunks)
    if (stages := approximation(layout, estimator.dims.layers, estimator.dims.mtp_layers)) is not None:
        off = f"an execution takes {stages.low:g} to {stages.high:g} times as long, which the interval includes"
        yield Assumption("unequal_stages", stages.value, off)
    if layout.recompute == "selective" and layout.flash:
        yield Assumption(
            "recompute", "selective saves no memory", "flash attention stores no scores; they are recomputed"
        )
    if layout.offload == "optimizer":
        yield Assumption("update", "on the host", "as fast as on the device; host memory bandwidth is not published")
    given = question.given()
    if not estimator.dims.experts and (unused := [n for n in EXPERT_INPUTS if n in given]):
        yield Assumption("not_used", ", ".join(unused), "the model has no experts")
    if question.host_link is not None and layout.offload == "none":
        yield Assumption("host_link", "not used", "nothing is offloaded")


# Offloading.


def host_rate(text: str | None) -> float:
    """The rate of a rank's link to the host in B/s, per direction.

    Raises:
        RefusalError: ``unknown-figure``: none is given, and the catalog has none; or it is 0, approximate or a bound.
        UsageError: The text is not a rate.
    """
    if text is None:
        raise RefusalError(
            "unknown-figure",
            "the rate between a rank and its host is not published in the catalog",
            place="host_link",
            hint='give host_link, such as "16 GB/s"',
        )
    return exact(text, "host_link", Dimension.BANDWIDTH, "16 GB/s")
