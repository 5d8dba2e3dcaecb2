"""The tasks of one training step by pipeline stage: computation, collectives and messages, and what each waits for.

A timeline (:mod:`trnspec.perf.training.timeline`) has the times of collectives that the engine computes. Tasks have their
operations, bytes and groups instead, so that a network simulator computes the times. All ranks of a stage have the same
tasks; their groups and peers follow from the degrees of parallelism.

A layer is two halves of its computation, each followed by its share of the layer's collectives:

- tensor parallelism: an all-reduce of the residual stream, or with sequence parallelism an all-gather before and a
  reduce-scatter after the half (Korthikanti et al. 2022, section 4.2.2);
- context parallelism: an all-gather of keys and values before attention;
- expert parallelism: an all-to-all before and one after the experts, which are the second half;
- ZeRO 3: an all-gather of the layer's weights while the layer before it is computed (Rajbhandari et al. 2020, section 7).

Gradients are all-reduced, or with ZeRO reduce-scattered, layer by layer while earlier layers are computed: after the last
microbatch, with ZeRO 2 and 3 after every microbatch. With ZeRO 1 and 2 an all-gather of the new weights ends the step.
"""

from __future__ import annotations

import math
from typing import Literal

from attrs import field, frozen

from trnspec.perf.training import pass_order
from trnspec.perf.training.pass_order import FUSED
from trnspec.perf.training.timeline import COMPUTE, MicrobatchPass, Passes, orders

Operation = Literal["compute", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send", "receive"]


@frozen(kw_only=True)
class Task:
    """Something that every rank of a stage does.

    Attributes:
        name: What it does, and for which pass: ``forward 3``.
        operation: Computation, a collective, or one side of a message.
        seconds: Duration of computation [s].
        group: The group of a collective, by its position in :attr:`Traffic.groups`.
        size: Bytes: of the whole input of a rank, and of an all-gather likewise, before it is gathered.
        peer: The other stage of a message.
        tag: What distinguishes messages between the same stages.
        after: The tasks of this stage that must be complete, by position.
    """

    name: str
    operation: Operation = "compute"
    seconds: float = 0.0
    group: str = ""
    size: float = 0.0
    peer: int = 0
    tag: int = 0
    after: tuple[int, ...] = ()


@frozen(kw_only=True)
class Traffic:
    """Messages between the ranks of a stage.  Sizes are in B.

    Attributes:
        groups: Number and distance of the ranks of each group: ``tensor``, ``context``, ``experts``, ``replicas`` and
            ``expert-replicas``.
        layers: Layers of each stage.
        hidden: The residual stream of a microbatch on a rank.
        results: How often it is summed per layer, forward.
        keys: Keys and values of a microbatch on a rank, of one layer.
        copies: What a rank sends in one all-to-all, averaged over layers.
        weights: A layer's weights on a rank: those that all replicas hold, and routed experts.
        ends: Weights outside the layers, of the first and of the last stage.
        gradient: Bytes of a gradient over those of a weight.
        again: The share of a layer that is recomputed in the backward pass.
        sequence: Whether there is sequence parallelism.
        zero: The ZeRO stage.
    """

    groups: dict[str, tuple[int, int]]
    layers: tuple[float, ...]
    hidden: float
    results: float
    keys: float
    copies: float
    weights: tuple[float, float]
    ends: tuple[float, float]
    gradient: float
    again: float
    sequence: bool
    zero: int


def tasks(passes: Passes, traffic: Traffic) -> list[list[Task]]:
    """The tasks of each stage; a task follows those in its ``after``.

    Args:
        passes: The passes of the step, of which the durations of computation and the order are used.
        traffic: What the ranks exchange.
    """
    consumers: dict[MicrobatchPass, list[MicrobatchPass]] = {}
    ordered = orders(passes)

    def needed(one: MicrobatchPass) -> MicrobatchPass | None:
        """The pass whose result a pass needs."""
        slot = one.kind, one.chunk, one.microbatch
        found = pass_order.needed(slot, one.stage, passes.stages, passes.chunks, is_v_shaped=passes.is_v_shaped)
        return None if found is None else MicrobatchPass(found[1][0], found[1][2], found[1][1], found[0])

    for one in (one for order in ordered for one in order):
        if (before := needed(one)) is not None and before.stage != one.stage:
            consumers.setdefault(before, []).append(one)
    stages = [_Stage(passes, traffic, stage) for stage in range(passes.stages)]
    for stage, order in zip(stages, ordered, strict=True):
        for one in order:
            stage.add_pass(one, needed(one), consumers.get(one, []))
        stage.end()
    return [stage.tasks for stage in stages]


_LAST = dict.fromkeys(FUSED, "B")
"""The pass that completes the gradients of weights; ``W`` where the backward pass is split."""


@frozen
class _Stage:
    """The tasks of one stage, in the order in which they are added."""

    passes: Passes
    traffic: Traffic
    stage: int
    tasks: list[Task] = field(factory=list)
    _last: list[int] = field(factory=list)
    """The task that the next one waits for; empty at first."""
    _gradients: list[int] = field(factory=list)

    def _add(self, name: str, operation: Operation = "compute", *, blocking: bool = True, **more: object) -> int:
        after = more.pop("after", tuple(self._last))
        self.tasks.append(Task(name=name, operation=operation, after=after, **more))  # type: ignore[arg-type]
        if blocking:
            self._last[:] = [len(self.tasks) - 1]
        return len(self.tasks) - 1

    def _exchange(self, name: str, operation: Operation, group: str, size: float, **more: object) -> int | None:
        ranks, _ = self.traffic.groups[group]
        if ranks == 1 or not size:
            return None
        size = size / ranks if operation == "all-gather" else size
        return self._add(f"{name}: {operation} {group}", operation, group=group, size=size, **more)  # type: ignore[arg-type]

    def add_pass(self, one: MicrobatchPass, before: MicrobatchPass | None, consumers: list[MicrobatchPass]) -> None:
        """Add the tasks of a pass, with the messages that it receives and sends."""
        name = f"{ {'F': 'forward', 'B': 'backward', 'W': 'weight gradients'}[one.kind] } {one.microbatch}"
        message = self.traffic.hidden / self.traffic.groups["tensor"][0]
        if before is not None and before.stage != self.stage:
            self._add(f"{name}: receive", "receive", size=message, peer=before.stage, tag=self._tag(before))
            if not self.traffic.sequence:
                self._exchange(name, "all-gather", "tensor", self.traffic.hidden)
        stages, is_v_shaped = self.passes.stages, self.passes.is_v_shaped
        at = pass_order.part_of(self.stage, one.chunk, stages, is_v_shaped=is_v_shaped)
        works = list(self.passes.work(one.kind, at))
        compute = math.fsum(seconds for thread, part, seconds in works if thread == COMPUTE and part != "head")
        head = math.fsum(seconds for thread, part, seconds in works if thread == COMPUTE and part == "head")
        if head and one.kind == "B":
            self._add(f"{name}: output", seconds=head)
        self._layers(one, name, compute)
        if head and one.kind == "F":
            self._add(f"{name}: output", seconds=head)
        for other in consumers:
            self._add(f"{name}: send", "send", blocking=False, size=message, peer=other.stage, tag=self._tag(one))

    def _tag(self, one: MicrobatchPass) -> int:
        return ("FBW".index(one.kind) * self.passes.microbatches + one.microbatch) * self.passes.chunks + one.chunk

    def _layers(self, one: MicrobatchPass, name: str, compute: float) -> None:
        """The layers of a pass.  A chunk has a whole number of layers, whose sizes sum to those of the stage."""
        t, of = self.traffic, self.traffic.layers[self.stage] / self.passes.chunks
        count = max(1, round(of))
        scale = of / count
        complete = one.kind == _LAST.get(self.passes.schedule, "W")
        reduced = complete and (t.zero > 1 or one.microbatch == self.passes.microbatches - 1)
        # A backward pass recomputes part of a forward pass, with its collectives.
        times = {"F": 1.0, "B": 1.0 + t.again, "W": 0.0}[one.kind]
        # Weights of the next layer are gathered while this one is computed.
        ready = tuple(self._last)
        for _ in range(count):
            waits = before = tuple(self._last)
            if t.zero == _SHARDED and times:
                gathered = [self._exchange(name, "all-gather", group, scale * size, blocking=False, after=ready)
                            for group, size in zip(_REPLICAS, t.weights, strict=True)]  # fmt: skip
                waits = (*before, *(task for task in gathered if task is not None))
            ready = before
            # Backward, keys and values and their gradients are exchanged.
            keys = {"F": 1.0, "B": 2.0 + t.again, "W": 0.0}[one.kind] * scale * t.keys
            exchanged = self._exchange(name, "all-gather", "context", keys * t.groups["context"][0])
            waits = waits if exchanged is None else (exchanged, *waits[1:])
            for half in range(2):
                summed = 0.5 * times * scale * t.results * t.hidden
                if half and times:
                    self._exchange(f"{name}: dispatch", "all-to-all", "experts", times * scale * t.copies)
                if t.sequence and summed:
                    self._exchange(name, "all-gather", "tensor", summed)
                after = tuple(dict.fromkeys((*self._last, *waits))) if not half else tuple(self._last)
                computed = self._add(name, seconds=0.5 * compute / count, after=after)
                if half and times:
                    self._exchange(f"{name}: combine", "all-to-all", "experts", times * scale * t.copies)
                if summed:
                    self._exchange(name, "reduce-scatter" if t.sequence else "all-reduce", "tensor", summed)
            if reduced:
                self._reduce(f"{name}: gradients", [t.gradient * scale * size for size in t.weights], computed)

    def _reduce(self, name: str, sizes: list[float], after: int) -> None:
        operation: Operation = "reduce-scatter" if self.traffic.zero else "all-reduce"
        for group, size in zip(_REPLICAS, sizes, strict=True):
            task = self._exchange(name, operation, group, size, blocking=False, after=(after,))
            if task is not None:
                self._gradients.append(task)

    def end(self) -> None:
        """Add what follows the passes: gradients outside the layers, the optimizer, and its weights."""
        t = self.traffic
        first, last = self.stage == 0, self.stage == self.passes.stages - 1
        outside = first * t.ends[0] + last * t.ends[1]
        self._reduce("gradients outside the layers", [t.gradient * outside, 0.0], self._last[0])
        seconds = math.fsum(seconds for _, name, seconds in self.passes.end if name != "data")
        self._add("optimizer", seconds=seconds, after=tuple(dict.fromkeys((*self._last, *self._gradients))))
        if t.zero in {1, 2}:
            shared, routed = (t.layers[self.stage] * size for size in t.weights)
            for group, size in zip(_REPLICAS, (shared + outside, routed), strict=True):
                self._exchange("weights", "all-gather", group, size)


_REPLICAS = ("replicas", "expert-replicas")
_SHARDED = 3
"""The stage of ZeRO that shards weights."""
