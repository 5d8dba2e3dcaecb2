"""Traces of a training step: its timeline for Perfetto and chrome://tracing, and execution traces by Chakra.

One process per pipeline stage, which is also one rank: all ranks of a stage do the same. Its threads are computation and
exposed communication; its counters are the memory of a rank over time. Times are in us.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.result import Evaluation
from trnspec.evaluators.software import resolve_training
from trnspec.evaluators.training import TrainingQuestion, estimator_of, layout_of, run
from trnspec.output import chakra
from trnspec.output.chakra import TraceNode
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.tasks import Task, Traffic, tasks
from trnspec.perf.training.timeline import BUBBLE, COMMUNICATION, COMPUTE, SLACK, Passes, Timeline, passes_of, timeline
from trnspec.perf.work.layout import ACTIVATION_BYTES, Layout, in_flight, stage_layers
from trnspec.perf.work.memory import training_memory

LABELS = {
    "forward": "forward",
    "backward": "backward",
    "weight gradients": "weight gradients",
    "recompute": "recompute",
    "head": "output matrix and loss",
    "tensor": "tensor-parallel collectives",
    "context": "context-parallel ring",
    "expert": "all-to-all of experts",
    "pipeline": "pipeline send and receive",
    "data": "data-parallel collectives",
    "optimizer": "optimizer",
    "fixed": "fixed time per step",
    "offload": "transfers to and from the host",
    BUBBLE: "pipeline bubble",
    SLACK: SLACK,
}
"""The names of events."""

_THREADS = {COMPUTE: 1, COMMUNICATION: 2}
_US = 1e6


def trace(catalog: Catalog, question: TrainingQuestion) -> dict[str, Any]:
    """The timeline of a training step as plain data, ready for JSON.

    Raises:
        RefusalError: There is no step time, or its schedule has no event schedule.
    """
    evaluation, estimator, layout, passes = step_passes(catalog, question)
    drawn = timeline(passes, evaluation.number("step_time"))
    return {
        "displayTimeUnit": "ms",
        "otherData": {"title": evaluation.title, "step_time_s": drawn.total, "trnspec": evaluation.evaluator},
        "traceEvents": [*_named(layout), *_events(drawn), *_memory(drawn, estimator, layout)],
    }


def step_passes(catalog: Catalog, question: TrainingQuestion) -> tuple[Evaluation, Estimator, Layout, Passes]:
    """The evaluation of a step, its estimator and layout, and the passes that the step consists of."""
    evaluation = run(catalog, question)
    q = resolve_training(question)
    estimator = estimator_of(catalog, q)
    layout = layout_of(q, int(estimator.system.ranks))
    parts = {part.name: part.value for part in evaluation.parts if part.of == "step_time"}
    passes = passes_of(parts, estimator.model, layout, estimator.machine)
    return evaluation, estimator, layout, passes


def _named(layout: Layout) -> Iterator[dict[str, Any]]:
    """The names of processes and threads."""
    for stage in range(layout.pp):
        name = f"stage {stage}" if layout.pp > 1 else "rank"
        yield {"ph": "M", "pid": stage, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": stage, "name": "process_sort_index", "args": {"sort_index": stage}}
        for thread, number in _THREADS.items():
            yield {"ph": "M", "pid": stage, "tid": number, "name": "thread_name", "args": {"name": thread}}


def _events(drawn: Timeline) -> Iterator[dict[str, Any]]:
    for event in drawn.events:
        data: dict[str, Any] = {
            "ph": "X",
            "pid": event.stage,
            "tid": _THREADS[event.thread],
            "name": LABELS.get(event.name, event.name),
            "ts": event.start * _US,
            "dur": event.duration * _US,
        }
        if (one := event.work) is not None:
            data["args"] = {"pass": one.kind, "microbatch": one.microbatch, "chunk": one.chunk}
        yield data


def _memory(drawn: Timeline, estimator: Estimator, layout: Layout) -> Iterator[dict[str, Any]]:
    """The memory of a rank over time: what is held all the time, and the activations of microbatches in flight."""
    for stage in range(layout.pp):
        memory = training_memory(estimator.dims, layout, stage=float(stage), runtime=estimator.runtime)
        flight = float(in_flight(layout, float(stage)))
        each = float(memory.activations) / flight / drawn.chunks
        held = float(memory.total) - float(memory.activations)
        for time, count in [*drawn.in_flight(stage), (drawn.starts[stage] + drawn.total, 0)]:
            args = {"activations": count * each, "weights, gradients, optimizer and buffers": held}
            yield {"ph": "C", "pid": stage, "name": "memory [B]", "ts": time * _US, "args": args}


MOST = 2_000_000
"""The most nodes of all ranks."""
_GIB = 2**30


def execution(catalog: Catalog, question: TrainingQuestion) -> dict[str, bytes]:
    """The files of a trace by what follows the stem of their names: ``0.et`` of rank 0, ``groups.json``, ``network.yml``.

    Raises:
        RefusalError: There is no step time, or its schedule has no order of passes; ``too-many-events``;
            ``unknown-figure``: the rate of a level that ranks communicate over is not published.
    """
    _, estimator, layout, passes = step_passes(catalog, question)
    stages = tasks(passes, _traffic(estimator, layout))
    ranks = layout.tp * layout.cp * layout.dp
    if (count := sum(map(len, stages)) * ranks) > MOST:
        raise RefusalError(
            "too-many-events",
            f"the tasks of {ranks * len(stages):,} ranks are {count:,}, more than {MOST:,}",
            place="global_batch",
            hint="choose fewer microbatches, or fewer ranks",
        )
    numbers: dict[tuple[int, ...], int] = {}
    degrees = _groups(layout)

    def group(name: str, rank: int) -> int:
        """The number of the group of a rank; 0 is that of all in the format."""
        size, stride = degrees[name]
        first = rank - (rank % ranks // stride % size) * stride
        return numbers.setdefault(tuple(first + i * stride for i in range(size)), len(numbers) + 1)

    files = {
        f"{rank}.et": chakra.trace(_nodes(stage, rank, ranks, group))
        for number, stage in enumerate(stages)
        for rank in range(number * ranks, (number + 1) * ranks)
    }
    members = {str(number): list(some) for some, number in numbers.items()}
    dimensions = list(_dimensions(estimator.system))
    files["groups.json"] = json.dumps(members).encode()
    files["network.yml"] = _network(dimensions).encode()
    files["system.json"] = json.dumps(_system(len(dimensions)), indent=2).encode()
    return files


def _groups(layout: Layout) -> dict[str, tuple[int, int]]:
    """Number and distance of the ranks of each group: tensor first, then context, data and pipeline."""
    tp, cp, dp, ep = layout.tp, layout.cp, layout.dp, layout.ep
    split = layout.expert_split
    return {
        "tensor": (tp, 1),
        "context": (cp, tp),
        "experts": (ep, split),
        "replicas": (dp * cp, tp),
        "expert-replicas": (dp * cp * tp // (ep * split), ep * split),
    }


def _traffic(estimator: Estimator, layout: Layout) -> Traffic:
    model = estimator.model
    tokens = layout.microbatch * layout.seq / layout.cp
    layers = tuple(sum(map(float, stage_layers(estimator.dims, layout, float(s)))) for s in range(layout.pp))
    hidden = tokens * float(model.hidden) * ACTIVATION_BYTES
    size, output = float(layout.precision.compute_bytes) / layout.tp, float(model.output) * (1.0 - float(model.tied))
    return Traffic(
        groups=_groups(layout),
        layers=layers,
        hidden=hidden,
        results=float(model.results) + float(model.shared) + float(model.moe),
        keys=tokens
        * ACTIVATION_BYTES
        * (
            float(model.kv_elements - model.local_kv) / min(layout.tp, float(model.kv_heads))
            + float(model.local_kv) / min(layout.tp, float(model.local_kv_heads))
        ),
        copies=float(model.active)
        * float(model.moe)
        * float(model.inner)
        * float(layout.dispatch_ratio)
        * hidden
        / layout.tp,
        weights=(
            (float(model.whole) + float(model.small)) * size,
            float(model.routed) * float(layout.precision.compute_bytes) / (layout.ep * float(layout.expert_split)),
        ),
        ends=(float(model.embedding) * size, (output if layout.pp == 1 else float(model.output)) * size),
        gradient=float(layout.precision.grad_bytes) / float(layout.precision.compute_bytes),
        again=float(layout.recomputation.share),
        sequence=layout.sequence_parallel,
        zero=layout.zero,
    )


def _nodes(stage: Sequence[Task], rank: int, ranks: int, group: Callable[[str, int], int]) -> Iterator[TraceNode]:
    """The nodes of a rank.  Durations are whole us, of which the sum is rounded."""
    seconds, micros = 0.0, 0
    for number, task in enumerate(stage):
        seconds += task.seconds
        duration = round(seconds * 1e6) - micros
        micros += duration
        peer = task.peer * ranks + rank % ranks
        source, target = (peer, rank) if task.operation == "receive" else (rank, peer)
        yield TraceNode(
            id=number,
            name=task.name,
            operation=task.operation,
            micros=duration,
            after=task.after,
            size=round(task.size),
            group=group(task.group, rank) if task.group else 0,
            source=source,
            target=target,
            tag=task.tag,
        )


def _dimensions(system: LoweredSystem) -> Iterator[tuple[str, int, float, float]]:
    """The name of each level, its units within the next, and rate [B/s] and latency [s] of a rank."""
    inside = 1.0
    for level in system.levels:
        # The outermost level has no limit of its own.
        within = min(level.ranks, system.ranks)
        count, inside = round(within / inside), within
        if count == 1:
            continue
        if not level.rate:
            raise RefusalError(
                "unknown-figure", f"the rate of the level {level.name} is not published", place=level.place
            )
        yield level.name, count, level.rate, level.latency


def _network(dimensions: Sequence[tuple[str, int, float, float]]) -> str:
    """The network for astra-sim's analytical backends, whose GB/s are GiB/s."""
    lines = [
        f"# levels: {', '.join(name for name, *_ in dimensions)}; rates in GiB/s per rank and direction, latencies in ns"
    ]
    lines.append(f"topology: [{', '.join('Switch' for _ in dimensions)}]")
    lines.append(f"npus_count: [{', '.join(str(count) for _, count, *_ in dimensions)}]")
    lines.append(f"bandwidth: [{', '.join(f'{rate / _GIB:.6g}' for *_, rate, _ in dimensions)}]")
    lines.append(f"latency: [{', '.join(f'{1e9 * latency:.6g}' for *_, latency in dimensions)}]")
    return "\n".join(lines) + "\n"


def _system(dimensions: int) -> dict[str, object]:
    """A system for astra-sim with ring collectives in every dimension and no delays but those of the network."""
    rings = {f"{name}-implementation": ["ring"] * dimensions
             for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")}  # fmt: skip
    return {"scheduling-policy": "FIFO", "endpoint-delay": 0, "active-chunks-per-dimension": 1,
            "preferred-dataset-splits": 1, **rings, "collective-optimization": "localBWAware",
            "local-mem-bw": 1_000_000, "boost-mode": 0}  # fmt: skip
