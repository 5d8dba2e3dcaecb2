"""Timelines and tasks of small steps, and times of pipelines with unequal stages.

A line of ``tests/data/answers/timelines.txt`` is a stage, a pipeline with its schedule, or the tasks of a stage.  After a change,
``python tests/perf/training/test_stored_timelines.py`` writes the file; read the difference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from attrs import evolve

# Run as a program, too.
sys.path.extend(map(str, Path(__file__).parents[3].glob("plugins/*/src")))

from tests.support.engine import FITTED, MODELS, SYSTEMS, estimator
from tests.support.stored import number, read, same, write
from trnspec.errors import RefusalError
from trnspec.perf.training.bubble import approximation
from trnspec.perf.training.execution import half_moved
from trnspec.perf.training.tasks import Task, Traffic, tasks
from trnspec.perf.training.timeline import COMMUNICATION, COMPUTE, Passes, Work, timeline
from trnspec.perf.work.layout import V_SHAPED, Layout

STORED = "answers/timelines.txt"
STEPS = [("1f1b", 3, 4, 1), ("gpipe", 2, 3, 1), ("interleaved", 2, 4, 2), ("zb1p", 3, 4, 1), ("zb2p", 2, 4, 1),
         *((name, 2, 4, 2) for name in V_SHAPED)]  # fmt: skip
TRAFFIC = Traffic(
    groups={"tensor": (4, 1), "context": (2, 4), "experts": (2, 4), "replicas": (2, 8), "expert-replicas": (3, 16)},
    layers=(2.0, 1.5), hidden=1000.0, results=2.0, keys=7.0, copies=300.0, weights=(50.0, 80.0), ends=(11.0, 13.0),
    gradient=2.0, again=0.25, sequence=True, zero=3,
)  # fmt: skip
WITHOUT = {"tensor": (2, 1), "context": (1, 2), "experts": (1, 2), "replicas": (2, 2), "expert-replicas": (2, 2)}
TRAFFICS = [TRAFFIC, evolve(TRAFFIC, groups=WITHOUT, zero=1, sequence=False, again=0.0), evolve(TRAFFIC, zero=2), evolve(TRAFFIC, zero=0)]  # fmt: skip
UNEQUAL = [("1f1b", 1), ("gpipe", 1), ("interleaved", 2), ("interleaved", 3), ("zb1p", 1), ("zb2p", 1), *((n, 1) for n in V_SHAPED)]  # fmt: skip


def passes(schedule: str, stages: int, microbatches: int, chunks: int) -> Passes:
    """Passes of which all parts differ, and the chunks too."""
    whole = schedule in ("1f1b", "interleaved", "gpipe")
    parts: dict[str, list[Work]] = {
        "F": [(COMPUTE, "forward", 1.0), (COMMUNICATION, "tensor", 0.375), (COMMUNICATION, "pipeline", 0.0625)],
        "B": [(COMPUTE, "backward", 2.0 if whole else 1.125), (COMMUNICATION, "tensor", 0.5)],
        "W": [] if whole else [(COMPUTE, "weight gradients", 0.875)],
    }
    last: dict[str, list[Work]] = {"F": [(COMPUTE, "head", 0.25)], "B": [(COMPUTE, "head", 0.4375)]}
    end = [(COMMUNICATION, "data", 0.3), (COMPUTE, "optimizer", 0.7), (COMPUTE, "fixed", 0.0)]
    count = stages * chunks
    shares = [(1.0 + (i % 3) / 8.0) / chunks for i in range(count)]
    return Passes(
        schedule=schedule, stages=stages, microbatches=microbatches, chunks=chunks, parts=parts, last=last, end=end,
        shares=shares if schedule != "zb2p" else (),
    )  # fmt: skip


def drawn(schedule: str, stages: int, microbatches: int, chunks: int) -> Iterator[tuple[str, str]]:
    """The total, and of each stage the passes with their starts, the seconds of each part, and the most passes in flight."""
    made = timeline(passes(schedule, stages, microbatches, chunks), 100.0)
    yield (
        "step",
        f"{made.chunks} chunks, {number(made.total)} s, starts {' '.join(map(number, made.starts))}, V {made.is_v_shaped}",
    )
    for stage in range(stages):
        events = [e for e in made.events if e.stage == stage]
        starts: dict[str, float] = {}
        sums: dict[str, float] = {}
        for e in events:
            sums[e.name] = sums.get(e.name, 0.0) + e.duration
            if e.work is not None:
                starts.setdefault(f"{e.work.kind}{e.work.microbatch}.{e.work.chunk}", e.start)
        shown = ", ".join(f"{name} {number(value)}" for name, value in sums.items())
        order = " ".join(f"{name}@{number(start)}" for name, start in starts.items())
        yield f"stage {stage}", f"{order}; {shown}; in flight {max(n for _, n in made.in_flight(stage))}"


def exchanged(which: int) -> Iterator[tuple[str, str]]:
    """The tasks of each stage by operation and group: their bytes, seconds, peers, tags and predecessors."""
    schedules = (("1f1b", 1), ("interleaved", 2), ("zbv", 2)) if not which else (("zb1p", 1),)
    for schedule, chunks in schedules:
        for stage, made in enumerate(tasks(passes(schedule, 2, 2, chunks), TRAFFICS[which])):
            groups: dict[str, list[Task]] = {}
            for one in made:
                groups.setdefault(f"{one.operation} {one.group}".strip(), []).append(one)
            yield f"{schedule} stage {stage}", "; ".join(f"{name} {summed(of)}" for name, of in groups.items())


def summed(of: list[Task]) -> str:
    parts = {
        "B": [one.size for one in of], "s": [one.seconds for one in of], "peers": [one.peer for one in of],
        "tags": [one.tag for one in of], "after": [n for one in of for n in one.after],
    }  # fmt: skip
    return f"{len(of)} x ({', '.join(f'{name} {number(float(sum(values)))}' for name, values in parts.items())})"


def unequal(models: Sequence[str], sizes: Sequence[tuple[int, int]], dp: int) -> Iterator[tuple[str, str]]:
    """The step with its bubble and its exchange of gradients, of stages that differ by a layer."""
    for name in models:
        for pp, microbatches in sizes:
            on = estimator(name, evolve(SYSTEMS[0 if dp > 1 else 4], ranks=float(pp * dp)), FITTED)
            for schedule, chunks in UNEQUAL:
                layout = Layout(
                    pp=pp, dp=dp, seq=2048, global_batch=microbatches * dp, schedule=schedule, interleave=chunks, uneven=True,
                    recompute="full" if pp == 3 else "none",
                )  # fmt: skip
                about = f"{name} {pp} {microbatches} {schedule} {chunks}"
                try:
                    found = on.step(layout)
                    with half_moved():
                        half = on.step(layout)
                except RefusalError as refused:
                    yield about, refused.reason
                    continue
                near = approximation(layout, MODELS[name].layers, MODELS[name].mtp_layers)
                times = " ".join(number(float(t)) for t in (found.total, found.bubble, found.data, half.total))
                yield about, f"{times} {near or ''}".rstrip()


OUTPUTS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
    **{f"timeline of {one[0]}": partial(drawn, *one) for one in STEPS},
    **{f"tasks {which}": partial(exchanged, which) for which in range(len(TRAFFICS))},
    "unequal stages": partial(
        unequal,
        ("llama-8b", "recurrent"),
        ((2, 2), (3, 7), (8, 16)),
        1,
    ),
    "replicas of unequal stages": partial(unequal, ("predicting",), ((3, 6), (8, 16)), 4),
}


def cases(name: str) -> dict[str, str]:
    return {f"{name}: {case}": text for case, text in OUTPUTS[name]()}


@pytest.mark.parametrize("name", OUTPUTS)
def test_timelines_and_tasks(name) -> None:
    expected = {case: text for case, text in read(STORED).items() if case.partition(": ")[0] == name}
    found = cases(name)

    assert [*found] == [*expected]
    assert [(case, text) for case, text in found.items() if not same(expected[case], text)] == []


if __name__ == "__main__":
    write(STORED, {case: text for name in OUTPUTS for case, text in cases(name).items()})
