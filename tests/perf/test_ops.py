"""The operations that formulas are written with: a float and the same element of an array give the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.perf import ops

FLOATS = st.floats(-1e15, 1e15, allow_nan=False)
WHOLE = st.integers(0, 2**52).map(float)
PAIRS = st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=40)


def same(expected: list[float], actual: np.ndarray) -> None:
    """Bit for bit; a zero has a sign."""
    assert np.array(expected, float).tobytes() == np.asarray(actual, float).tobytes()


@given(PAIRS)
def test_of_two(pairs):
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    # The sign of a zero among equals may differ; it is nowhere divided by.
    assert [max(x, y) for x, y in pairs] == [ops.larger(x, y) for x, y in pairs] == ops.larger(a, b).tolist()
    assert [min(x, y) for x, y in pairs] == [ops.smaller(x, y) for x, y in pairs] == ops.smaller(a, b).tolist()
    assert [x if x > 1.0 else y for x, y in pairs] == ops.where(a > 1.0, a, b).tolist()


@given(st.lists(FLOATS, min_size=1, max_size=40))
def test_of_one(values):
    a = np.array(values)
    same([ops.ceil(x) + 0.0 for x in values], ops.ceil(a) + 0.0)
    same([ops.floor(x) + 0.0 for x in values], ops.floor(a) + 0.0)


@given(st.lists(WHOLE, min_size=1, max_size=40))
def test_steps(values):
    same([ops.steps(n) for n in values], ops.steps(np.array(values)))
    for n in values:
        assert ops.steps(n) == max(int(n) - 1, 0).bit_length()


@pytest.mark.parametrize(("function", "value"), [(ops.ceil, 1.5), (ops.floor, 1.5), (ops.steps, 5.0)])
def test_a_float_stays_one(function, value):
    """Not a numpy scalar, with which everything after it would be ten times slower."""
    assert type(function(value)) is float


def test_where_on_a_scalar_condition():
    assert "then" == ops.where(True, "then", "otherwise")
    assert "otherwise" == ops.where(False, "then", "otherwise")


def test_one_number_for_all():
    assert ops.collapsed(np.full((2, 3), 4.0)) == 4.0
    assert ops.collapsed(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert ops.collapsed(np.zeros((0, 2))).shape == (0, 2)
