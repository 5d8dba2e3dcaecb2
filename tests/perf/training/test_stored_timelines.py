"""trnspec.perf.training: complete timelines and tasks of small steps, and times of pipelines with unequal stages.

The expected lines are in ``tests/data/stored_timelines.json``; after a change, ``python tests/perf/training/test_stored_timelines.py``
writes them anew, and the difference is to be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import pytest
from attrs import evolve

# Run as a program, too.
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from tests.perf.oracles.fits import different, number
from tests.support.engine import FITTED, MODELS, SYSTEMS, estimator
from trnspec.errors import RefusalError
from trnspec.perf.training.tasks import Task, Traffic, tasks
from trnspec.perf.training.timeline import COMMUNICATION, COMPUTE, Passes, Work, timeline
from trnspec.perf.training.unequal import approximation, half_moved
from trnspec.perf.work.layout import V_SHAPED, Layout

STORED = Path(__file__).parents[2] / "data" / "stored_timelines.json"
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


def drawn(schedule: str, stages: int, microbatches: int, chunks: int) -> Iterator[str]:
    made = timeline(passes(schedule, stages, microbatches, chunks), 100.0)
    yield f"{made.chunks} {made.total} {' '.join(map(number, made.starts))} {made.is_v_shaped}"
    for event in made.events:
        work = "" if (w := event.work) is None else f"{w.kind}{w.microbatch}.{w.chunk}.{w.stage}"
        yield f"{event.stage} {event.thread} {event.name} {number(event.start)} {number(event.duration)} {work}"
    for stage in range(stages):
        yield " ".join(f"{number(time)}:{held}" for time, held in made.in_flight(stage))


def task(one: Task) -> str:
    return f"{one.name} | {one.operation} {one.group} {number(one.size)} {number(one.seconds)} {one.peer} {one.tag} {one.after}"


def exchanged(which: int) -> Iterator[str]:
    schedules = (("1f1b", 1), ("interleaved", 2), ("zbv", 2)) if not which else (("zb1p", 1),)
    for schedule, chunks in schedules:
        for stage in tasks(passes(schedule, 2, 2, chunks), TRAFFICS[which]):
            yield from (f"{schedule} {task(one)}" for one in stage)


def unequal(models: Sequence[str], sizes: Sequence[tuple[int, int]], dp: int) -> Iterator[str]:
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
                    yield f"{about} {refused.reason}"
                    continue
                near = approximation(layout, MODELS[name].layers, MODELS[name].mtp_layers)
                times = " ".join(number(float(t)) for t in (found.total, found.bubble, found.data, half.total))
                yield f"{about} {times} {near or ''}"


OUTPUTS: dict[str, Callable[[], Iterator[str]]] = {
    **{f"timeline of {one[0]}": partial(drawn, *one) for one in STEPS},
    **{f"tasks {which}": partial(exchanged, which) for which in range(len(TRAFFICS))},
    "unequal stages": partial(
        unequal,
        ("llama-8b", "predicting", "recurrent", "single-operation"),
        ((2, 2), (3, 7), (4, 40), (8, 16), (24, 24)),
        1,
    ),
    "replicas of unequal stages": partial(unequal, ("llama-8b", "predicting"), ((3, 6), (5, 10), (8, 16)), 4),
}


@cache
def expected() -> dict[str, list[str]]:
    return json.loads(STORED.read_text("utf-8"))


@pytest.mark.parametrize("name", OUTPUTS)
def test_as_stored(name) -> None:
    assert different(expected()[name], list(OUTPUTS[name]())) == []
    assert [*OUTPUTS] == [*expected()]


if __name__ == "__main__":
    STORED.write_text(json.dumps({name: list(made()) for name, made in OUTPUTS.items()}, indent=0) + "\n", "utf-8")
