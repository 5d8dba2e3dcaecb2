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
    ("text", "shown"),
    [
        ("667 TFLOPS", "667"),
        ("~1.2 TFLOPS", "~1.2"),
        ("up to 1.2 TFLOPS", "up to 1.2"),
        (">= 1.2 TFLOPS", ">=1.2"),
        ("over 1.2 TFLOPS", ">1.2"),
    ],
)
def test_one_figure(text, shown) -> None:
    figure = Displayed.of(parse(text))

    assert shown == figure.text(figure.unit)


@pytest.mark.parametrize(("text", "expected"), [("2.9 TB/s", "[2.85, 2.95)"), (">= 2.0 TB/s", "[1.95, ...)")])
def test_intervals(text, expected) -> None:
    quantity = parse(text)

    assert expected == interval_text(quantity.interval, quantity.unit, 3)
