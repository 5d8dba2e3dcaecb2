"""trnspec.quantities.display: figures of one row in one unit, with the digits that they have."""

import pytest

from tests.support.tables import tables
from trnspec.quantities.display import Displayed, common_unit, interval_text
from trnspec.quantities.quantity import parse

TABLES = tables(__file__)


@pytest.mark.parametrize(("texts", "unit", "numbers"), TABLES["common_unit"])  # fmt: skip
def test_common_unit(texts, unit, numbers) -> None:
    figures = [Displayed.of(parse(text)) for text in texts]
    found = common_unit(figures)

    assert (unit, numbers) == (found.symbol, [f.text(found) for f in figures])


@pytest.mark.parametrize(
    ("text", "count", "shown"),
    [
        ("667 TFLOPS", 1, "667"),
        ("667 TFLOPS", 2, "1,334"),
        ("2.5 TFLOPS", 3, "7.5"),
        ("1.2 TFLOPS", 9, "10.8"),
        ("1.2 TFLOPS", 10, "12"),
        ("1.23 TFLOPS", 16, "19.68"),
        ("~1.2 TFLOPS", 16, "~19.2"),
        ("up to 1.2 TFLOPS", 16, "up to 19.2"),
        (">= 1.2 TFLOPS", 1, ">=1.2"),
        ("over 1.2 TFLOPS", 1, ">1.2"),
    ],
)
def test_several_of_one(text, count, shown) -> None:
    figure = Displayed.of(parse(text), count)

    assert shown == figure.text(figure.unit)


@pytest.mark.parametrize(("text", "expected"), [("2.9 TB/s", "[2.85, 2.95)"), (">= 2.0 TB/s", "[1.95, ...)")])
def test_intervals(text, expected) -> None:
    quantity = parse(text)

    assert expected == interval_text(quantity.interval, quantity.unit, 3)
