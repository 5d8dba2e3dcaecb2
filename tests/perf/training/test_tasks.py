"""The tasks of a step: their order, and the bytes that they exchange."""

import math
from collections import defaultdict

import pytest
from attrs import evolve

from trnspec.perf.training.tasks import Task, Traffic, tasks
from trnspec.perf.training.timeline import COMPUTE, Passes, Work, timeline
from trnspec.perf.work.layout import V_SHAPED

M = 6
LAYERS = 4.0
GROUPS = {"tensor": (4, 1), "context": (1, 4), "experts": (2, 4), "replicas": (2, 4), "expert-replicas": (1, 8)}
TRAFFIC = Traffic(
    groups=GROUPS, layers=(LAYERS, LAYERS), hidden=1000.0, results=2.0, keys=7.0, copies=300.0, weights=(50.0, 80.0),
    ends=(11.0, 13.0), gradient=2.0, again=0.0, sequence=False, zero=0,
)  # fmt: skip
SCHEDULES = [("1f1b", 1), ("interleaved", 2), ("zb1p", 1), ("zb2p", 1), *((name, 2) for name in V_SHAPED)]


def passes(schedule: str = "1f1b", chunks: int = 1) -> Passes:
    whole = schedule in ("1f1b", "interleaved")
    parts: dict[str, list[Work]] = {
        "F": [(COMPUTE, "forward", 1.0)],
        "B": [(COMPUTE, "backward", 2.0 if whole else 1.0)],
        "W": [(COMPUTE, "weight gradients", 0.0 if whole else 1.0)],
    }
    last: dict[str, list[Work]] = {"F": [(COMPUTE, "head", 0.25)], "B": [(COMPUTE, "head", 0.5)]}
    end = [(COMPUTE, "optimizer", 0.125)]
    return Passes(schedule=schedule, stages=2, microbatches=M, chunks=chunks, parts=parts, last=last, end=end)


def replayed(stages: list[list[Task]]) -> list[float]:
    """When each stage ends, where collectives and messages take no time: each task starts when those before it are done.

    A stage computes one task at a time, in their order.
    """
    ends: dict[tuple[int, int], float] = {}
    sent: dict[tuple[int, int, int], float] = {}
    position, free = [0] * len(stages), [0.0] * len(stages)
    while any(p < len(stage) for p, stage in zip(position, stages, strict=True)):
        before = list(position)
        for number, stage in enumerate(stages):
            while position[number] < len(stage):
                task = stage[position[number]]
                start = max((ends[number, i] for i in task.after), default=0.0)
                if task.operation == "receive":
                    if (key := (task.peer, number, task.tag)) not in sent:
                        break
                    start = max(start, sent[key])
                if task.operation == "compute":
                    start = free[number] = max(start, free[number]) + task.seconds
                ends[number, position[number]] = start
                if task.operation == "send":
                    sent[number, task.peer, task.tag] = start
                position[number] += 1
        assert before != position, "a deadlock"
    return [max(ends[number, i] for i in range(len(stage))) for number, stage in enumerate(stages)]


def expected(one: Passes) -> list[float]:
    """When each stage ends its passes and the step, as a timeline has it."""
    drawn = timeline(one, 100.0)
    ends = [max(event.end for event in drawn.of(stage) if event.work is not None) for stage in range(one.stages)]
    return [end + math.fsum(seconds for *_, seconds in one.end) for end in ends]


def sizes(stage: list[Task]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = defaultdict(float)
    for task in stage:
        if task.group:
            found[task.operation, task.group] += task.size
    return dict(found)


@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_computation_takes_as_long_as_the_passes(schedule, chunks) -> None:
    one = passes(schedule, chunks)

    assert expected(one) == pytest.approx(replayed(tasks(one, TRAFFIC)), rel=1e-12)


def test_collectives_of_data_parallelism_only() -> None:
    """Gradients of the last microbatch, all-reduced; experts are on one replica."""
    first, last = (
        sizes(stage)
        for stage in tasks(passes(), evolve(TRAFFIC, groups=GROUPS | {"tensor": (1, 1), "experts": (1, 1)}))
    )

    assert {("all-reduce", "replicas"): 2.0 * (LAYERS * 50.0 + 11.0)} == first
    assert {("all-reduce", "replicas"): 2.0 * (LAYERS * 50.0 + 13.0)} == last


def test_collectives_of_tensor_and_expert_parallelism() -> None:
    """Two all-reduces of the residual stream per layer, and two all-to-alls, forward and backward; messages are gathered."""
    first, _ = tasks(passes(), TRAFFIC)
    found = sizes(first)

    assert 4 * M * LAYERS * 1000.0 == found["all-reduce", "tensor"]
    assert 4 * M * LAYERS * 300.0 == found["all-to-all", "experts"]
    assert M * 1000.0 / 4 == found["all-gather", "tensor"]
    assert [250.0] * M == [task.size for task in first if task.operation == "send"]


def test_sequence_parallelism_and_recompute() -> None:
    first, _ = tasks(passes(), evolve(TRAFFIC, sequence=True, again=1.0))
    found = sizes(first)

    assert 6 * M * LAYERS * 1000.0 == found["reduce-scatter", "tensor"]
    assert 6 * M * LAYERS * 1000.0 / 4 == found["all-gather", "tensor"]


@pytest.mark.parametrize(
    ("zero", "reduced", "gathered"),
    [(1, 1, 1.0), (2, M, 1.0), (3, M, 2.0 * M)],
    ids=["gradients once", "gradients of every microbatch", "weights of every pass"],
)
def test_zero(zero, reduced, gathered) -> None:
    first, _ = tasks(passes(), evolve(TRAFFIC, zero=zero, ends=(0.0, 0.0)))
    found = sizes(first)

    assert 2.0 * LAYERS * 50.0 * reduced == found["reduce-scatter", "replicas"]
    assert gathered * LAYERS * 50.0 / 2 == found["all-gather", "replicas"]


def test_gradients_overlap_with_computation_and_precede_the_optimizer() -> None:
    first, _ = tasks(passes(), TRAFFIC)
    gradients = [i for i, task in enumerate(first) if task.group == "replicas"]
    optimizer = next(task for task in first if task.name == "optimizer")

    assert set(gradients) <= set(optimizer.after)
    assert not {i for task in first if task.name != "optimizer" for i in task.after} & set(gradients)
