"""The timeline of a training step in the Chrome trace event format, for Perfetto and chrome://tracing.

One process per pipeline stage, which is also one rank: all ranks of a stage do the same. Its threads are computation and
exposed communication; its counters are the memory of a rank over time. Times are in us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.evaluators.training import TrainingQuestion, prepared, run
from trnspec.perf.training.costs import costs
from trnspec.perf.training.timeline import BUBBLE, COMMUNICATION, COMPUTE, SLACK, Event, passes_of, timeline
from trnspec.perf.work.memory import training_memory
from trnspec.perf.work.stages import in_flight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Evaluation
    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.training.timeline import Passes, Timeline
    from trnspec.perf.work.layout import Layout

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

    Args:
        catalog: The catalog.
        question: The inputs of the evaluator ``training``.

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
    q, estimator = prepared(catalog, question)
    layout = q.layout(int(estimator.system.ranks), calibrated=bool(estimator.calibration.name))
    parts = {part.name: part.value for part in evaluation.parts if part.of == "step_time"}
    of = costs(estimator.model, layout, estimator.machine)
    return evaluation, estimator, layout, passes_of(parts, layout, of)


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
        data = {
            "ph": "X",
            "pid": event.stage,
            "tid": _THREADS[event.thread],
            "name": LABELS.get(event.name, event.name),
            "ts": event.start * _US,
            "dur": event.duration * _US,
        }
        yield {**data, "args": _pass(event)} if event.work is not None else data


def _pass(event: Event) -> dict[str, Any]:
    assert event.work is not None
    return {"pass": event.work.kind, "microbatch": event.work.microbatch, "chunk": event.work.chunk}


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
