"""trnspec.output.reporters.evaluation: numbers in units that read well."""

from __future__ import annotations

import pytest

from trnspec.evaluation.result import Answer
from trnspec.output.reporters.evaluation import common, interval, measure, number


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
        (23.99, "s", "24.0 s"), (True, "", "yes"), (None, "s", "-"), ("ring", "", "ring"), (1e-9, "", "1.00e-09"),
        (1e300, "FLOP", "1.00e+282 EFLOP"),
    ],
)  # fmt: skip
def test_measure(value, unit, shown) -> None:
    assert shown == measure(value, unit)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (Answer("t", 3.57, "s", 3.21, 3.98), "[3.21, 3.98] s"),
        (Answer("t", 3.57, "s", 3.5695, 3.5705), "[3.5695, 3.5705] s"),
        (Answer("t", 3.57, "s", 3.21), "at least 3.21 s"),
        (Answer("t", 1.6872, "s", 1.6863), "at least 1.6863 s"),
        (Answer("r", 3570.0, "tokens/s", None, 3980.0), "at most 3.98 k tokens/s"),
        (Answer("t", 3.57, "s", 3.57), "at least 3.57 s"),
        (Answer("t", 0.0, "s", 0.0, 0.0), "[0, 0] s"),
        (Answer("t", 3.57, "s"), ""),
        (Answer("t", True), ""),
    ],
)
def test_interval(answer, shown) -> None:
    assert shown == interval(answer)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.5, 2e-3, None, "no"], (1e-3, "ms")),
        ([2.0, 3e-4], (1.0, "s")),
        ([2.0, 1e-4], None),
        ([0.0, None], (1.0, "s")),
    ],
)
def test_one_unit_for_a_column(values, shown) -> None:
    """Up to four powers of ten apart; further apart each has its own."""
    assert shown == common(values, "s")


def test_number_of_any_size() -> None:
    for power in range(-300, 300, 7):
        assert float(number(1.2345 * 10.0**power).replace(",", "")) == pytest.approx(1.2345 * 10.0**power, rel=5e-3)
