"""Reductions: the parts of a sweep, merged in any order and grouping, are the reduction of the whole."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from trnspec.perf.sweep.batch import Best, Block, Everything, Pareto, Top, estimators, sweep

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
