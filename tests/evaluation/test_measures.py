"""trnspec.evaluation.measures: numbers in units that read well, with the digits that an interval supports."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("answer", "value", "interval"),
    [
        (Answer("t", 22.6, "s", 15.5, 29.8), "23 s", "[16, 30] s"),
        (Answer("t", 3.57, "s", 3.5695, 3.5705), "3.57 s", "[3.5695, 3.5705] s"),
        (Answer("t", 3.57, "s", 3.21), "3.57 s", "at least 3.21 s"),
        (Answer("t", 24.174, "s", 24.174), ">= 24.2 s", ""),
        (Answer("m", 91.294, "%", None, 91.294), "<= 91.3 %", ""),
        (Answer("r", 3570.0, "tokens/s", None, 3980.0), "3.57 k tokens/s", "at most 3.98 k tokens/s"),
        (Answer("t", 0.0, "s", 0.0, 0.0), "0 s", "[0, 0] s"),
        (Answer("c", 0.016087, "USD", 0.016084, 0.016091), "0.016087 USD", "[0.016084, 0.016091] USD"),
        (Answer("c", 0.00143024, "USD", 0.0014302, 0.0014309), "0.0014302 USD", "[0.0014302, 0.0014309] USD"),
        (Answer("c", 1234.0, "USD", 1100.0, 1300.0), "1,234.00 USD", "[1,100.00, 1,300.00] USD"),
        (Answer("t", 3.57, "s"), "3.57 s", ""),
        (Answer("t", True), "yes", ""),
        (Answer("t", 54.02, "s", 28.0, 71.0, kind="transferred"), "~54 s", "[28, 71] s"),
        (Answer("t", 54.021, "s", 53.97, 54.06, kind="estimate"), "~54.0 s", "[54.0, 54.1] s"),
        (Answer("t", 54.021, "s", kind="extrapolated"), "~54.0 s", ""),
        (Answer("t", 24.174, "s", 24.1699, kind="ideal"), ">= 24.1 s", ""),
        (Answer("t", 24.0, "s", 24.000000000000004, kind="ideal"), ">= 24 s", ""),
        (Answer("m", 79.1, "%", None, 79.11, kind="ideal"), "<= 79.2 %", ""),
        (Answer("r", 1.2345e9, "B/s", 1.2e9, 1.3e9, kind="ideal"), "1.23 GB/s", "[1.2, 1.3] GB/s"),
        # Both ends have as many digits, also where one of them needs fewer.
        (Answer("r", 1.2345e9, "B/s", 1.2e9, 1.31e9, kind="estimate"), "~1.23 GB/s", "[1.20, 1.31] GB/s"),
        (Answer("t", 0.1234567, "s", 0.1234, 0.1234568), "123.46 ms", "[123.40, 123.46] ms"),
        (Answer("t", 0.0100004, "s", 0.0100001, kind="ideal"), ">= 10.0 ms", ""),
    ],
)
def test_printed(answer, value, interval) -> None:
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
