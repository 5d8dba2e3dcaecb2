"""trnspec.evaluation.measures: numbers in units that read well, with the digits that an interval supports."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.tables import tables
from trnspec.evaluation.measures import common, measure, printed
from trnspec.evaluation.result import Answer


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (3.5712, "s", "3.57 s"), (0.00357, "s", "3.57 ms"), (3.57e-6, "s", "3.57 us"), (7200, "s", "2 h"),
        (3600.0, "s", "3,600 s"), (4e5, "s", "4.63 d"), (1e-12, "s", "0.001 ns"),
        (512 * 2**30, "B", "512 GiB"), (1023, "B", "1,023 B"), (1.5 * 2**40, "B", "1.5 TiB"),
        (2.9e12, "B/s", "2.9 TB/s"), (1.234e6, "tokens/s", "1.23 M tokens/s"), (41.3, "%", "41.3 %"),
        (6.67e14, "FLOP/s", "667 TFLOP/s"), (192 * 3.6e6, "J", "192 kWh"), (120.0, "J", "120 J"),
        (8000.0, "W", "8 kW"), (1234.5, "USD", "1,234.50 USD"), (21.5, "USD/h", "21.5 USD/h"),
        (64, "", "64"), (1234567, "", "1,234,567"), (0, "s", "0 s"), (-0.5, "s", "-500 ms"), (0.333333, "", "0.333"),
        (23.99, "s", "24.0 s"), (True, "", "yes"), (None, "s", "-"), ("ring", "", "ring"), (1e-9, "", "1e-09"),
        (1e300, "FLOP", "1e+282 EFLOP"),
        (0.0160871, "USD", "0.0161 USD"), (0.005, "USD", "0.005 USD"), (12.0, "USD", "12.00 USD"),
    ],
)  # fmt: skip
def test_measure(value, unit, shown) -> None:
    assert shown == measure(value, unit)


@pytest.mark.parametrize(("arguments", "value", "interval"), tables(__file__)["printed"])
def test_printed(arguments, value, interval) -> None:
    answer = Answer(*arguments)
    assert (value, interval) == (printed(answer).value, printed(answer).interval)


def parsed(text: str) -> float:
    return float(text.replace(",", "").strip(">=< "))


SIZES = st.floats(1e-12, 1e18) | st.floats(-1e6, -1e-6) | st.just(0.0) | st.integers(0, 10**12).map(float)
UNITS = st.sampled_from(["s", "B", "B/s", "FLOP/s", "tokens/s", "USD", "%", "J", ""])


@given(SIZES, st.floats(0, 10), st.floats(0, 10), st.integers(-9, 0), UNITS)
@example(0.016087, 0.4, 0.4, -3, "USD")
@example(0.0014, 0.3, 0.2, -2, "USD")
@example(9.9995e-5, 1.0, 1.0, -4, "")
def test_a_value_lies_in_its_interval(value, below, above, power, unit) -> None:
    """As printed, whatever the interval; the two are in one unit and close to the numbers that they stand for."""
    low, high = value - below * abs(value) * 10.0**power, value + above * abs(value) * 10.0**power
    shown = printed(Answer("x", value, unit, low, high))
    number_, _, symbol = shown.value.partition(" ")
    ends, _, symbol_of_ends = shown.interval.partition("] ") if symbol else shown.interval.partition("]")
    first, second = ends.strip("[]").split(", ")

    assert parsed(first) <= parsed(number_) <= parsed(second)
    assert symbol == symbol_of_ends
    assert math.isclose(parsed(number_), parsed(measure(value, unit).partition(" ")[0]), rel_tol=0.06, abs_tol=0.006)


@given(SIZES, st.floats(0, 10), UNITS, st.booleans())
def test_a_value_lies_on_its_side_of_a_bound(value, distance, unit, is_lower) -> None:
    low = value - distance * abs(value) if is_lower else None
    high = None if is_lower else value + distance * abs(value)
    shown = printed(Answer("x", value, unit, low, high))

    if shown.interval:
        end = parsed(shown.interval.split()[2])
        assert (end <= parsed(shown.value.split()[0])) if is_lower else (parsed(shown.value.split()[0]) <= end)
    else:
        assert shown.value.startswith(">= " if is_lower else "<= ")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.5, 2e-3, None, "no"], (1e-3, "ms")),
        ([2.0, 3e-4], (1.0, "s")),
        ([2.0, 1e-4], (1.0, "s")),
        ([2.0, 1e-3, 1e-3], (1e-3, "ms")),
        ([2.0, 1e-7], None),
        ([0.0, None], (1.0, "s")),
    ],
)
def test_one_unit_for_a_column(values, shown) -> None:
    assert shown == common(values, "s")
