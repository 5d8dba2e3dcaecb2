"""The timeline of one training step: which stage computes and communicates when, and what is idle.

Every stage executes its passes in the order of its schedule, each as soon as the stage is free and its inputs exist. A pass
is computation, then the communication that is exposed; communication behind computation is not drawn. What the stages do
together at the end of a step follows. The time that remains of the step is a bubble, so that the events of every stage sum
to the step time.

Orders are those of :mod:`trnspec.perf.training.pass_order`. Stages of zero-bubble and V-shaped schedules begin a step one after
the other, as they ended the step before, since the optimizer does not synchronize them (Qi et al. 2023, section 4); the step of
a stage begins with its first pass. In V-shaped schedules the first stage has the output, in its second chunk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, field, frozen

from trnspec.errors import RefusalError
from trnspec.perf.convex import least
from trnspec.perf.training import pass_order
from trnspec.perf.training.pass_order import FUSED, ORDERED
from trnspec.perf.training.step import passes_of_layer, pipeline_of
from trnspec.perf.training.unequal import Times, unequal_span, v_shaped_bubble
from trnspec.perf.work.layout import V_SHAPED
from trnspec.perf.work.stages import dealt_with_mtp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from trnspec.perf.training.costs import Costs
    from trnspec.perf.work.layout import Layout

COMPUTE, COMMUNICATION = "compute", "communication"
"""The two threads of a stage."""
BUBBLE = "bubble"
SLACK = "closed form beyond the schedule"
"""Times that the closed form of the step counts in addition to the events of the schedule."""
CLOSE = 1e-9
"""Relative tolerance of the events against the step time."""
MOST = 2_000_000
"""The most events of a timeline."""
_ROUNDING = 1e-14
"""A gap that is shorter, relative to the step time, is rounding and not a bubble."""

_TWICE = 2
"""Chunks of a stage in a V-shaped schedule."""

Work = tuple[str, str, float]
"""A part of a pass: its thread, its name, and its duration [s]."""


@frozen(order=True)
class Pass:
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
    work: Pass | None = None

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
    is_v_shaped: bool = False

    def of(self, stage: int) -> list[Event]:
        """The events of a stage."""
        return [event for event in self.events if event.stage == stage]

    def in_flight(self, stage: int) -> list[tuple[float, int]]:
        """The chunks whose activations a stage stores, from each time on: from its forward to the end of its backward."""
        steps: list[tuple[float, int]] = []
        first: dict[Pass, Event] = {}
        last: dict[Pass, Event] = {}
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
    chunks: int = 1
    parts: Mapping[str, Sequence[Work]]
    last: Mapping[str, Sequence[Work]] = field(factory=dict)
    end: Sequence[Work] = ()
    shares: Sequence[float] = ()

    @property
    def is_v_shaped(self) -> bool:
        """Whether a stage has a chunk from either end of the model."""
        return self.schedule in V_SHAPED

    @property
    def synchronized(self) -> bool:
        """Whether all stages begin a step at the same time."""
        return self.schedule in FUSED

    def work(self, one: Pass) -> Iterator[Work]:
        """The parts of a pass."""
        at = pass_order.part_of(one.stage, one.chunk, self.stages, is_v_shaped=self.is_v_shaped)
        share = self.shares[at] if self.shares else 1.0 / self.chunks
        for thread, name, duration in self.parts.get(one.kind, ()):
            # A message is as long in any chunk.
            yield thread, name, duration * (1.0 / self.chunks if name == "pipeline" else share)
        if at == self.stages * self.chunks - 1:
            yield from self.last.get(one.kind, ())


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
    stages = _executed(orders(passes), passes)
    starts = [0.0 if passes.synchronized else events[0].start for events in stages]
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


def orders(passes: Passes) -> list[list[Pass]]:
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
    return [[Pass(kind, i, chunk, stage) for kind, chunk, i in one] for stage, one in enumerate(ordered)]


def needed(one: Pass, passes: Passes) -> Pass | None:
    """The pass whose result a pass needs."""
    slot = one.kind, one.chunk, one.microbatch
    found = pass_order.needed(slot, one.stage, passes.stages, passes.chunks, is_v_shaped=passes.is_v_shaped)
    if found is None:
        return None
    stage, (kind, chunk, i) = found
    return Pass(kind, i, chunk, stage)


def _executed(orders: Sequence[Sequence[Pass]], passes: Passes) -> list[list[Event]]:
    """The events of all passes, each as early as possible."""
    p = passes.stages
    done: dict[Pass, float] = {}
    position, free = [0] * p, [0.0] * p
    events: list[list[Event]] = [[] for _ in range(p)]
    open_ = sum(map(len, orders))
    while open_:
        before = open_
        for stage, own in enumerate(orders):
            while position[stage] < len(own):
                one = own[position[stage]]
                before_it = needed(one, passes)
                if before_it is not None and before_it not in done:
                    break
                now = free[stage] if before_it is None else max(free[stage], done[before_it])
                for thread, name, duration in passes.work(one):
                    if duration:
                        events[stage].append(Event(stage, thread, name, now, duration, one))
                        now += duration
                free[stage] = done[one] = now
                position[stage] += 1
                open_ -= 1
        assert open_ < before, f"the order of {passes.schedule} is a deadlock"
    return events


# The parts of the passes of a step.


def passes_of(parts: Mapping[str, float], layout: Layout, costs: Costs) -> Passes:
    """The passes of a step from the parts of its time.

    Args:
        parts: The parts of the step time [s]; all but the bubble are those of the slowest stage.
        layout: The layout.
        costs: The coefficients that the parts were computed from.
    """
    stages, m, fused = layout.pp, float(layout.microbatches), layout.schedule in FUSED
    each = {name: parts.get(name, 0.0) / m for name in (*_OF_LAYERS, "pipeline", "bubble", "head")}
    layers, tokens = float(costs.stage_layers), float(layout.microbatch * costs.seq_tokens)
    forward, backward, weights, scores = (layers * float(x) for x in passes_of_layer(costs, tokens))
    weights = 0.0 if fused else weights
    # Collectives per layer: two forward and two backward, two more for recompute.
    full, overlap = float(costs.full), float(costs.tensor_overlap)
    tensor = layers * float(costs.tensor.of(tokens))
    redone = full * forward + float(costs.selective) * scores
    on_forward = tensor - min(tensor, overlap * forward)
    on_backward = (1.0 + full) * tensor - min((1.0 + full) * tensor, overlap * (backward + redone - weights))
    each["tensor"] = on_forward + on_backward
    # The output is in the last chunk only, also where that is not on the slowest stage.
    outputs = 1.0 + float(costs.mtp)
    head, embedding_head_comm = tokens * float(costs.head), outputs * float(costs.embedding_head.of(tokens))
    # What of an all-to-all does not overlap with the other pass may be in either pass.
    movable = float(costs.expert_overlap) * each["expert"]
    early = {
        "context": layers * float(costs.context.of(tokens)),
        "expert": movable + (each["expert"] - movable) / (2.0 + full),
        "tensor": on_forward,
    }
    whole = math.fsum(each[name] for name in _OF_LAYERS)
    shares = _shares(layout, costs)
    if movable and stages > 1 and (layout.pipeline.v_shape or costs.unequal):
        first = forward + math.fsum(early.values())
        forward_, inputs_, weights_, movable_ = (x / layers for x in (first, whole - weights - first, weights, movable))
        output = head / 3.0 + 0.5 * embedding_head_comm, head * 2.0 / 3.0 + 0.5 * embedding_head_comm
        times = Times(forward_, inputs_, weights_, movable_, each["pipeline"], *output)
        early["expert"] -= movable * _moved(layout, costs, times)
    sent: Work = (COMMUNICATION, "pipeline", 0.5 * each["pipeline"])
    return Passes(
        schedule=layout.schedule,
        stages=stages,
        microbatches=int(m),
        chunks=_TWICE if layout.pipeline.v_shape else layout.interleave,
        parts={
            "F": [(COMPUTE, "forward", forward), *((COMMUNICATION, n, time) for n, time in early.items()), sent],
            "B": [
                (COMPUTE, "recompute", each["recompute"]),
                (COMPUTE, "backward", each["compute"] - forward - weights),
                *((COMMUNICATION, name, max(0.0, each[name] - time)) for name, time in early.items()),
                sent,
            ],
            "W": [(COMPUTE, "weight gradients", weights)],
        },
        last={
            "F": [(COMPUTE, "head", head / 3.0), (COMMUNICATION, "tensor", 0.5 * embedding_head_comm)],
            "B": [(COMPUTE, "head", head * 2.0 / 3.0), (COMMUNICATION, "tensor", 0.5 * embedding_head_comm)],
        },
        end=[(_THREADS.get(n, COMPUTE), n, value) for n, value in parts.items() if n not in each and value],
        shares=shares,
    )


_OF_LAYERS = ("compute", "recompute", "tensor", "context", "expert")
"""The parts that every stage has, in proportion to its layers."""
_THREADS = {"data": COMMUNICATION, "offload": COMMUNICATION}


def _shares(layout: Layout, costs: Costs) -> list[float]:
    """For each chunk of the model its layers, multi-token prediction included, relative to those of the slowest stage."""
    deal, counted = dealt_with_mtp(
        float(costs.layers), float(layout.pp), float(layout.interleave), layout.pipeline.v_shape, float(costs.mtp)
    )
    layers = [deal.short + (1.0 if deal.begin <= chunk < deal.end else 0.0) for chunk in range(int(deal.chunks))]
    layers[-1] += float(costs.mtp) - counted
    return [number / float(costs.stage_layers) for number in layers]


def _moved(layout: Layout, costs: Costs, times: Times) -> float:
    """The share of what may be in either pass that is in the backward pass: that with the shortest step.

    Args:
        layout: The layout.
        costs: The coefficients.
        times: The times of its passes, with all of that in the forward pass.
    """
    one, movable = pipeline_of(costs, float(layout.microbatches)), float(times.movable)

    def span(moved: NDArray[np.float64], _: NDArray[np.intp]) -> NDArray[np.float64]:
        now = evolve(times, forward=times.forward - moved, inputs=times.inputs + moved, movable=0.0)
        if costs.unequal:
            return np.asarray(unequal_span(one, now))
        layers, sent = 0.5 * float(costs.stage_layers), 0.25 * now.send
        passes = layers * now.forward + sent, layers * now.inputs + sent, layers * now.weights
        outputs = times.output, times.output_inputs
        return np.asarray(v_shaped_bubble(one.v_shape, one.stages, one.microbatches, *passes, 0.0, *outputs))

    place, _ = least(span, np.array([movable]), np.array([0.5 * movable]))
    return float(place[0]) / movable
