"""The timeline of one training step: which stage computes and communicates when, and what is idle.

Every stage executes its passes in the order of its schedule (:mod:`trnspec.perf.training.execution`). A pass is computation, then the communication that is exposed; communication behind computation is not drawn. What the stages do
together at the end of a step follows. The time that remains of the step is a bubble, so that the events of every stage sum
to the step time.

Orders are those of :mod:`trnspec.perf.training.pass_order`. Stages of zero-bubble and V-shaped schedules begin a step one after
the other, as they ended the step before, since the optimizer does not synchronize them (Qi et al. 2023, section 4); the step of
a stage begins with its first pass. In V-shaped schedules the first stage has the output, in its second chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from trnspec.errors import RefusalError
from trnspec.perf.convex import least
from trnspec.perf.lowering.machine import Machine
from trnspec.perf.training import pass_order
from trnspec.perf.training.bubble import Balance, balance, equal_bubble, pipeline_of, unequal_span
from trnspec.perf.training.execution import KINDS, Pipeline, execution
from trnspec.perf.training.microbatch import Times, microbatch
from trnspec.perf.training.pass_order import FUSED, ORDERED
from trnspec.perf.work.layout import V_SHAPED, Layout, dealt
from trnspec.perf.work.transformer import Transformer

COMPUTE, COMMUNICATION = "compute", "communication"
"""The two threads of a stage."""
BUBBLE = "bubble"
SLACK = "closed form beyond the schedule"
"""Times that the closed form of the step counts in addition to the events of the schedule."""
CLOSE = 1e-9
"""Relative tolerance of the events against the step time."""
MOST = 2_000_000
"""The most events of a timeline."""
_ROUNDING = 1e-13
"""A gap that is shorter, relative to the time at which it is, is rounding and not a bubble."""

Work = tuple[str, str, float]
"""A part of a pass: its thread, its name, and its duration [s]."""


@frozen(order=True)
class MicrobatchPass:
    """One pass of a microbatch through a model chunk of a stage.

    Attributes:
        kind: ``F`` forward, ``B`` backward or gradients of activations only, ``W`` gradients of weights.
        microbatch: From 0.
        chunk: The model chunk of the stage, from 0.
        stage: From 0.
    """

    kind: str
    microbatch: int
    chunk: int
    stage: int


@frozen
class Event:
    """Something that a stage does for some time.

    Attributes:
        stage: The stage.
        thread: :data:`COMPUTE` or :data:`COMMUNICATION`.
        name: What it does: ``forward``, ``tensor``, ``bubble``.
        start: Its start [s].
        duration: Its duration [s].
        work: The pass it is a part of; ``None`` for what belongs to the step.
    """

    stage: int
    thread: str
    name: str
    start: float
    duration: float
    work: MicrobatchPass | None = None

    @property
    def end(self) -> float:
        """Its end [s]."""
        return self.start + self.duration


@frozen
class Timeline:
    """One training step, event by event.

    Attributes:
        events: By stage, then by start; on one thread they do not overlap.
        stages: The number of stages.
        chunks: Model chunks per stage.
        total: The step time [s].
        starts: The start of the step of each stage [s]; later than 0 only where stages are not synchronized.
        is_v_shaped: Whether a stage has a chunk from either end of the model.
    """

    events: tuple[Event, ...] = field(repr=False)
    stages: int
    chunks: int
    total: float
    starts: tuple[float, ...]
    is_v_shaped: bool

    def of(self, stage: int) -> list[Event]:
        """The events of a stage."""
        return [event for event in self.events if event.stage == stage]

    def in_flight(self, stage: int) -> list[tuple[float, int]]:
        """The chunks whose activations a stage stores, from each time on: from its forward to the end of its backward."""
        steps: list[tuple[float, int]] = []
        first: dict[MicrobatchPass, Event] = {}
        last: dict[MicrobatchPass, Event] = {}
        for event in self.of(stage):
            if event.work is not None:
                first.setdefault(event.work, event)
                last[event.work] = event
        steps += [(first[p].start, 1) for p in first if p.kind == "F"]
        # V-shaped schedules count activations until the gradients of the weights are computed.
        steps += [(last[p].end, -1) for p in last if p.kind == ("W" if self.is_v_shaped else "B")]
        held, levels = 0, [(self.starts[stage], 0)]
        for time, change in sorted(steps):
            held += change
            if levels[-1][0] == time:
                levels.pop()
            levels.append((time, held))
        return levels


@frozen(kw_only=True)
class Passes:
    """Parts of the passes of a step; a part is the time of one microbatch on all chunks of a stage.

    Attributes:
        schedule: The schedule.
        stages: Pipeline stages.
        microbatches: Microbatches.
        chunks: Model chunks per stage; V-shaped schedules have two.
        parts: The parts of each kind of pass on the slowest stage.
        last: Further parts on the stage with the output, in its last chunk.
        end: What all stages do at the end of the step.
        shares: For each chunk of the model its layers, relative to those that the parts are of; equal chunks by default.
    """

    schedule: str
    stages: int
    microbatches: int
    chunks: int
    parts: Mapping[str, Sequence[Work]]
    last: Mapping[str, Sequence[Work]]
    end: Sequence[Work]
    shares: Sequence[float] = ()

    @property
    def is_v_shaped(self) -> bool:
        """Whether a stage has a chunk from either end of the model."""
        return self.schedule in V_SHAPED

    def work(self, kind: str, at: int) -> Iterator[Work]:
        """The parts of a pass of some kind through a chunk of the model."""
        share = self.shares[at] if self.shares else 1.0 / self.chunks
        for thread, name, duration in self.parts.get(kind, ()):
            # A message is as long in any chunk.
            yield thread, name, duration * (1.0 / self.chunks if name == "pipeline" else share)
        if at == self.stages * self.chunks - 1:
            yield from self.last.get(kind, ())


def timeline(passes: Passes, total: float) -> Timeline:
    """The events of a step.

    Args:
        passes: The passes.
        total: The step time [s].

    Raises:
        RefusalError: ``no-event-schedule``: the schedule has no published order for these microbatches, or its events take
            longer than the step time; ``too-many-events``.
    """
    kinds = max(1, sum(len(works) for works in passes.parts.values()))
    if passes.microbatches * passes.stages * passes.chunks * (kinds + 2) > MOST:
        raise RefusalError(
            "too-many-events",
            f"{passes.microbatches:,} microbatches on {passes.stages} stages make more than {MOST:,} events",
            place="global_batch",
            hint="a timeline of fewer microbatches looks the same",
        )
    stages = _executed(passes)
    # Stages with whole backward passes begin a step at the same time.
    starts = [0.0 if passes.schedule in FUSED else events[0].start for events in stages]
    tail = math.fsum(duration for _, _, duration in passes.end)
    common = max(events[-1].end - start for events, start in zip(stages, starts, strict=True))
    if common + tail > total * (1.0 + CLOSE):
        raise RefusalError(
            "no-event-schedule",
            f"the events of {passes.schedule} take {common + tail:.6g} s, the closed form of the step time {total:.6g} s",
            place="schedule",
        )
    complete = [
        list(_complete(events, start, common, total, passes)) for events, start in zip(stages, starts, strict=True)
    ]
    events = tuple(chain.from_iterable(complete))
    return Timeline(events, passes.stages, passes.chunks, total, tuple(starts), passes.is_v_shaped)


def _complete(events: Sequence[Event], start: float, common: float, total: float, passes: Passes) -> Iterator[Event]:
    """The events of a stage with bubbles between them, and the end of the step."""
    stage, now = events[0].stage, start
    for event in events:
        if event.start - now > _ROUNDING * total:
            yield Event(stage, COMPUTE, BUBBLE, now, event.start - now)
        yield event
        now = event.end
    if start + common - now > _ROUNDING * total:
        yield Event(stage, COMPUTE, BUBBLE, now, start + common - now)
        now = start + common
    for thread, name, duration in passes.end:
        if duration:
            yield Event(stage, thread, name, now, duration)
            now += duration
    if start + total - now > CLOSE * total:
        yield Event(stage, COMPUTE, SLACK, now, start + total - now)


# The order of the passes.


def orders(passes: Passes) -> list[list[MicrobatchPass]]:
    """The passes of every stage in the order of their execution."""
    p, m, v = passes.stages, passes.microbatches, passes.chunks
    if passes.schedule not in ORDERED:
        raise RefusalError(
            "no-event-schedule",
            f"the passes of {passes.schedule} have no published order",
            place="schedule",
            hint=f"schedules with a timeline: {', '.join(ORDERED)}",
        )
    if passes.schedule in FUSED and v > 1 and m % p:
        raise RefusalError(
            "no-event-schedule",
            f"interleaved stages take {p} microbatches in turn, and {m} are not a multiple of it",
            place="global_batch",
        )
    ordered = pass_order.order(passes.schedule, p, m, v)
    return [[MicrobatchPass(kind, i, chunk, stage) for kind, chunk, i in one] for stage, one in enumerate(ordered)]


def _executed(passes: Passes) -> list[list[Event]]:
    """The events of all passes, each as early as possible."""
    ordered = orders(passes)
    one = execution(passes.schedule, passes.stages, passes.microbatches, passes.chunks)
    parts = passes.stages * passes.chunks
    lasting = np.array([sum(time for *_, time in passes.work(kind, at)) for kind in KINDS for at in range(parts)])
    ends = iter(one.ends(lasting))
    stages: list[list[Event]] = []
    for own in ordered:
        events: list[Event] = []
        now = 0.0
        for work in own:
            at = pass_order.part_of(work.stage, work.chunk, passes.stages, is_v_shaped=passes.is_v_shaped)
            end = next(ends)
            start = end - float(lasting[KINDS.index(work.kind) * parts + at])
            # A pass that does not wait begins with the end of the one before.
            now = start if start - now > _ROUNDING * end else now
            for thread, name, duration in passes.work(work.kind, at):
                if duration:
                    events.append(Event(work.stage, thread, name, now, duration, work))
                    now += duration
        stages.append(events)
    return stages


# The parts of the passes of a step.


def passes_of(parts: Mapping[str, float], model: Transformer, layout: Layout, machine: Machine) -> Passes:
    """The passes of a step.

    Args:
        parts: The parts of the step time [s], of which those are used that do not belong to a microbatch.
        model: The transformer.
        layout: The layout.
        machine: Compute and communication of a rank.
    """
    one, pipeline, fused = microbatch(model, layout, machine), pipeline_of(model, layout), layout.schedule in FUSED
    stages = balance(pipeline)
    layer = one.times(layout, 1.0 + model.mtp)
    # What of an all-to-all does not overlap with the other pass may be in either pass.
    moved = (
        _moved(pipeline, layer, stages)
        if one.movable and layout.pp > 1 and (pipeline.v_shape or stages.unequal)
        else 0.0
    )
    weights = 0.0 if fused else one.weights
    forward: list[Work] = [
        (COMPUTE, "forward", one.forward),
        (COMMUNICATION, "context", one.context_forward),
        (COMMUNICATION, "expert", one.expert_forward - moved),
        (COMMUNICATION, "tensor", one.tensor_forward),
    ]
    backward: list[Work] = [
        (COMPUTE, "recompute", one.recompute),
        (COMPUTE, "backward", one.backward - weights),
        (COMMUNICATION, "context", one.context - one.context_forward),
        (COMMUNICATION, "expert", max(0.0, one.expert - one.expert_forward + moved)),
        (COMMUNICATION, "tensor", max(0.0, one.tensor - one.tensor_forward)),
    ]
    sent: Work = (COMMUNICATION, "pipeline", 0.5 * one.pipeline)
    collective: Work = (COMMUNICATION, "tensor", 0.5 * ((1.0 + model.mtp) * one.embedding_head))
    computed = {"F": forward, "B": backward, "W": [(COMPUTE, "weight gradients", weights)]}
    of_stage = {
        kind: [(thread, name, float(stages.most * time)) for thread, name, time in works]
        for kind, works in computed.items()
    }
    of_stage["F"].append(sent)
    of_stage["B"].append(sent)
    return Passes(
        schedule=layout.schedule,
        stages=layout.pp,
        microbatches=int(layout.microbatches),
        chunks=2 if layout.pipeline.v_shape else layout.interleave,
        parts=of_stage,
        last={
            "F": [(COMPUTE, "head", one.head / 3.0), collective],
            "B": [(COMPUTE, "head", one.head * 2.0 / 3.0), collective],
        },
        end=[(_THREADS.get(n, COMPUTE), n, value) for n, value in parts.items() if n not in _OF_MICROBATCHES and value],
        shares=_shares(pipeline, stages),
    )


_OF_MICROBATCHES = ("compute", "recompute", "tensor", "context", "expert", "pipeline", "bubble", "head")
"""The parts of a step that are those of microbatches, and the bubble between them."""
_THREADS = {"data": COMMUNICATION, "offload": COMMUNICATION}


def _shares(pipeline: Pipeline, stages: Balance) -> list[float]:
    """For each chunk of the model its layers, multi-token prediction included, relative to those of the slowest stage."""
    deal, counted = dealt(
        float(pipeline.layers), float(pipeline.stages), float(pipeline.chunks), pipeline.v_shape, float(pipeline.mtp)
    )
    layers = [deal.short + (1.0 if deal.begin <= chunk < deal.end else 0.0) for chunk in range(int(deal.chunks))]
    layers[-1] += float(pipeline.mtp) - counted
    return [number / float(stages.most) for number in layers]


def _moved(pipeline: Pipeline, layer: Times, stages: Balance) -> float:
    """The part of the movable work of a layer in its backward pass with which the step is the shortest [s]."""

    def span(moved: NDArray[np.float64], _: NDArray[np.intp]) -> NDArray[np.float64]:
        now = evolve(layer, forward=layer.forward - moved, inputs=layer.inputs + moved, movable=0.0)
        if stages.unequal:
            return np.asarray(unequal_span(pipeline, now))
        return np.asarray(equal_bubble(pipeline, now, stages.most))

    place, _ = least(span, np.array([layer.movable]), np.array([0.5 * layer.movable]))
    return float(place[0])
