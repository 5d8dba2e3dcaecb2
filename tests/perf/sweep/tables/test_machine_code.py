"""Machine code: the same bits as numpy, instruction by instruction, and the batches that it evaluates."""

from __future__ import annotations

import numpy as np
import pytest
from engine_samples import ESTIMATORS

from trnspec.errors import UsageError
from trnspec.perf.ops import elementwise, larger, smaller, steps, where
from trnspec.perf.sweep import rows as flat
from trnspec.perf.sweep.batch import SCHEDULES, rows
from trnspec.perf.sweep.estimator_columns import Figures
from trnspec.perf.sweep.expressions import Expression, Recording
from trnspec.perf.sweep.tables import lookup, machine_code
from trnspec.perf.sweep.tables.compiled import Compiled
from trnspec.perf.sweep.tables.machine_code import Library
from trnspec.perf.sweep.tables.program import Buffers, Program, Programs

pytest.importorskip("llvmlite")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-60, 3e-9, 1e70, 1.5, 2.5, -2.5, 3.0, 1 / 3, 2.0**53, 7e22, 1.0 - 2.0**-53]
TABLE = np.random.default_rng(1).normal(size=64)
SMALL = [TABLE[:5], TABLE[:17], np.arange(-3, 13), TABLE[:32] > 0.0, np.arange(200, 233, dtype=np.uint8)]
RECORDS = np.random.default_rng(2).normal(size=(64, 4))


def squared(x, *, out=None):
    """A function of arrays that is no instruction."""
    return np.multiply(x, x, out=out)


def doubled(usual, at, x, *, out=None):
    found = np.where(at, 2.0 * x, usual)
    return found if out is None else np.copyto(out, found)


def formulas(x, y, n, flag):
    """Every instruction, on all types that occur, and functions between them."""
    position = (n & np.int64(63)) | np.int64(1)
    first, second, _, last = position.records(RECORDS)
    later = elementwise(squared, x + y) + elementwise(squared, elementwise(squared, x) - y)
    return [
        x + y, x - y, x * y, x / (y * y + 1.0), -x, larger(x, y), smaller(x, 2.0), np.floor(x), np.ceil(x * 0.7),
        np.sqrt(x * x), where(x > y, x, 3.0), (x >= y) * 1.0, np.logical_and(x < y, flag != 0), np.logical_not(x <= 0.5),
        (x == y) | (x != 1.0), n + 3, n * np.int64(5), (n << np.int64(3)) >> np.int64(1), np.maximum(n, 7), np.minimum(n, 9),
        n.astype(np.float64) * x, n - 1, flag + np.uint8(1), np.negative(flag),
        (n > 4) * np.uint8(3), position.of(TABLE), first + second * last, later - x, later, 2.0, x,
        elementwise(doubled, x, y > 0.5, y), steps(n.astype(np.float64)),
        *(np.minimum(n, len(table) - 1).of(table) for table in SMALL),
    ]  # fmt: skip


def columns(size: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(3)
    x = np.concatenate([SPECIAL, draw.normal(size=size)])[:size]
    return {
        "x": x,
        "y": np.concatenate([SPECIAL[::-1], x[::-1]])[:size],
        "n": draw.integers(0, 1000, size),
        "flag": draw.integers(0, 2, size).astype(np.uint8),
    }


def recorded(given: dict[str, np.ndarray]) -> list:
    recording = Recording()
    return formulas(*(recording.column(name, column.dtype) for name, column in given.items()))


@pytest.mark.parametrize("size", [8, 9, 1000])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(("cached", "permutable"), [(1, 0), (machine_code._CACHED, machine_code._PERMUTABLE)])
def test_the_bits_of_numpy(size, indexed, cached, permutable, monkeypatch) -> None:
    """Also where the elements of tables are fetched before, and where they are read from memory."""
    monkeypatch.setattr(machine_code, "_CACHED", cached)
    monkeypatch.setattr(machine_code, "_PERMUTABLE", permutable)
    given = columns(size)
    results = recorded(given)
    bound = Program.of(results, reuse=False).bound(size, Buffers())
    bound.read(given)
    expected = [np.broadcast_to(one, size) for one in bound.run()]

    library = Library()
    routine = library.routine(results, indexed=indexed)
    library.compile(1)
    fetches = sum(step.text().count("prefetch") for step in routine.steps if not isinstance(step, Expression))
    assert bool(fetches) == (cached == 1)
    found = [np.zeros(size, dtype=one.dtype) for one in expected]
    rows = np.random.default_rng(4).permutation(size) if indexed else None
    routine.run(given, found, rows, size)

    assert [one.tobytes() for one in expected] == [one.tobytes() for one in found]


def test_a_pass_leaves_no_keys_for_others() -> None:
    """Positions that are cut from a column are cut again where another pass needs them; numbers are stored."""
    recording = Recording()
    n, x = recording.column("n", np.int64), recording.column("x")
    position, share = (n & np.int64(63)) >> np.int64(1), x * 0.5
    before = position.of(TABLE) * share
    routine = Library().routine([elementwise(squared, before) + position.of(TABLE[::-1]) * share], indexed=False)

    squares = [step for step in routine.steps if isinstance(step, Expression)]
    assert {id(x) for x in (before, share, *squares)} == set(routine.buffers)


def test_rows_in_the_order_of_their_keys() -> None:
    key = np.random.default_rng(5).integers(0, 5, 1000).astype(np.uint8)
    rows, ends = Library().compile(6).sorted(key)
    assert np.argsort(key, kind="stable").tolist() == rows.tolist()
    assert np.cumsum(np.bincount(key, minlength=6)).tolist() == ends


def test_values_that_are_invalid_or_new(monkeypatch) -> None:
    """Machine code finds them as it reads columns; the batch is then as without."""
    draw = np.random.default_rng(6)
    size = 200
    given = {
        "tp": draw.choice([0, 1, 2, 4], size), "pp": draw.choice([1, 2], size), "dp": draw.choice([1, 2, 8], size),
        "seq": np.where(np.arange(size) < 100, 1024, 2048), "global_batch": draw.choice([16, -3], size, p=[0.9, 0.1]),
        "imbalance": draw.choice([1.0, 1.25], size), "schedule": draw.integers(0, len(SCHEDULES), size).astype(np.uint8),
    }  # fmt: skip
    which = draw.integers(0, len(ESTIMATORS), size)
    monkeypatch.setattr(flat, "_SAMPLE", 1)
    monkeypatch.setattr(lookup, "_COMPILED_ROWS", 0)
    results = []
    for fast in (0, 1 << 60):
        monkeypatch.setattr(lookup, "_FAST_ROWS", fast)
        Figures.of(ESTIMATORS).built.clear()
        found = rows(ESTIMATORS, which, block=100, **given)
        (programs,) = Figures.of(ESTIMATORS).built.values()
        assert isinstance(programs, Programs if fast else Compiled)
        results.append((found.time.tobytes(), found.code.tobytes()))
        for name, value in (("schedule", 99), ("which", len(ESTIMATORS))):
            wrong = {"which": which, **given}
            wrong[name] = np.where(np.arange(size) == 150, value, wrong[name])
            with pytest.raises(UsageError, match=name):
                rows(ESTIMATORS, **wrong, block=100)
    assert results[0] == results[1]
