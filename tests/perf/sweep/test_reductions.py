"""Reductions: the parts of a sweep, merged in any order and grouping, are the reduction of the whole."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from trnspec.perf.sweep.batch import Best, Block, Everything, Pareto, Top, estimators, sweep
from trnspec.perf.sweep.reductions import Candidates, Configurations, ConfigurationSelection, Goal, front

PREPARED = estimators(trnspec.load().graph, ["llama-3.1-8b"], ["trn1.32xlarge", "trn2.48xlarge"])
AXES = {
    "seq": 4096,
    "global_batch": 64,
    "tp": [1, 2, 4, 8, 16, 32],
    "pp": [1, 2, 4],
    "microbatch": [1, 2, 4],
    "zero": [0, 1, 3],
    "recompute": ["none", "full"],
}
SIZE = sweep(PREPARED[0], **AXES).evaluated
REDUCTIONS = {"top": lambda: Top(7), "best": lambda: Best(3), "pareto": Pareto, "everything": Everything}
WHOLE = {name: sweep(PREPARED, keep=make(), **AXES).result for name, make in REDUCTIONS.items()}


def columns(result) -> list[list]:
    names = ("time", "code", "memory") if isinstance(result, Block) else ("which", "number", "time", "memory")
    return [np.asarray(getattr(result, name)).tolist() for name in names]


@pytest.mark.parametrize("kind", REDUCTIONS)
@settings(max_examples=8)
@given(cuts=st.lists(st.integers(0, SIZE), max_size=4), order=st.randoms(use_true_random=False))
def test_parts_merge_to_the_whole(kind, cuts, order) -> None:
    make = REDUCTIONS[kind]
    ends = [0, *sorted(cuts), SIZE]
    parts = []
    for first, last in itertools.pairwise(ends):
        part = make()
        sweep(PREPARED, keep=part, numbers=(first, last), block=50, **AXES)
        parts.append(part)
    order.shuffle(parts)
    while len(parts) > 1:
        # A random tree of merges.
        other = parts.pop(order.randrange(len(parts)))
        parts[order.randrange(len(parts))].merge(other)

    assert columns(parts[0].result()) == columns(WHOLE[kind])


def test_numbers_outside_are_not_evaluated() -> None:
    result = sweep(PREPARED[1], numbers=(SIZE // 3, SIZE // 2), **AXES)

    assert (result.evaluated, len(result.result.time)) == (SIZE // 2 - SIZE // 3,) * 2


def candidates(start: int, reasons, measures) -> Candidates:
    """Candidates with a reason, empty for a feasible one, and measures, ``None`` for an unknown one."""
    names = ["", *dict.fromkeys(filter(None, reasons))]
    code = np.array([names.index(reason) for reason in reasons], dtype=np.uint8)

    def measure(name: str, places):
        values = [measures[place].get(name) for place in places.tolist()]
        return None if any(value is None for value in values) else np.array(values)

    return Candidates(start, names, code, measure)


MEASURES = st.fixed_dictionaries({
    "bound": st.sampled_from([0.0, 1.0]), "a": st.integers(0, 3).map(float), "b": st.integers(0, 3).map(float),
    "c": st.integers(0, 2).map(float),
})  # fmt: skip
GOALS = (Goal("a"), Goal("b", -1.0), Goal("c"))


def dominates(one: dict, other: dict, goals, first: int, second: int) -> bool:
    """Whether one row is better than another of its kind, or the same and before it."""
    pairs = [(g.sign * one[g.name], g.sign * other[g.name]) for g in goals]
    equal = all(x == y for x, y in pairs)
    return one["bound"] == other["bound"] and all(x <= y for x, y in pairs) and (not equal or first < second)


@pytest.mark.parametrize("count", [2, 3])
@given(rows=st.lists(MEASURES, max_size=12))
def test_front(count, rows) -> None:
    goals = GOALS[:count]
    found = front(
        Configurations.of(range(len(rows)), {n: [r[n] for r in rows] for n in ("bound", "a", "b", "c")}), goals
    )
    expected = [
        i for i, row in enumerate(rows) if not any(dominates(other, row, goals, j, i) for j, other in enumerate(rows))
    ]

    assert expected == sorted(found.index.tolist())


@given(
    rows=st.lists(st.tuples(MEASURES, st.sampled_from(["", "", "does-not-fit", "rank-count"])), max_size=20),
    cut=st.integers(0, 20),
    top=st.integers(1, 4),
    fronted=st.booleans(),
)
def test_kept(rows, cut, top, fronted) -> None:
    selection = ConfigurationSelection(GOALS[1], top, GOALS[:2] if fronted else (), ranged=("c",))
    measures = [{**m, "excess": m["a"] + 1.5} for m, _ in rows]
    parts = [(0, rows[:cut]), (cut, rows[cut:])]
    taken, merged = selection.empty(), selection.empty()
    for start, part in parts:
        if part:
            some = candidates(start, [r for _, r in part], measures[start : start + len(part)])
            taken.take(some)
            alone = selection.empty()
            alone.take(some)
            merged.merge(alone)

    feasible = [(i, m) for i, (m, reason) in enumerate(rows) if not reason]
    best = sorted(feasible, key=lambda one: (one[1]["bound"], -one[1]["b"], one[0]))[:top]
    unfit = [(m["a"] + 1.5, i) for i, (m, reason) in enumerate(rows) if reason == "does-not-fit"]
    for kept in (taken, merged):
        assert [i for i, _ in best] == kept.best.index.tolist()
        assert [i for _, i in sorted(unfit)[:1]] == kept.nearest.index.tolist()
        assert {r: n for r, n in kept.counts.items() if n} == {
            r: n for r in ("", "does-not-fit", "rank-count") if (n := sum(reason == r for _, reason in rows))
        }
        values = [m["c"] for _, m in feasible]
        assert ({"c": (min(values), max(values))} if values else {}) == kept.ranges
        assert (fronted and bool(feasible)) == bool(len(kept.front))


def test_an_unknown_goal_is_a_reason() -> None:
    kept = ConfigurationSelection(Goal("usd"), 3).empty()
    kept.take(candidates(0, ["", "", "rank-count"], [{"bound": 0.0, "usd": None}] * 3))
    kept.take(candidates(3, [""], [{"bound": 0.0, "usd": 1.0}]))

    assert {"": 1, "unknown-usd": 2, "rank-count": 1} == {r: n for r, n in kept.counts.items() if n}
    assert [3] == kept.best.index.tolist()
