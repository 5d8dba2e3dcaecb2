"""trnspec.quantities.display: figures of one row in one unit, with the digits that they have."""

from __future__ import annotations

import pytest

from trnspec.quantities.display import Displayed, common_unit, interval_text
from trnspec.quantities.quantity import parse


def shown(*texts: str) -> tuple[str, list[str]]:
    figures = [Displayed.of(parse(text)) for text in texts]
    unit = common_unit(figures)
    return unit.symbol, [f.text(unit) for f in figures]


@pytest.mark.parametrize(
    ("texts", "unit", "numbers"),
    [
        # The published unit, with the digits that count.
        (["24 GiB", "96 GiB"], "GiB", ["24", "96"]),
        (["2.90 TB/s"], "TB/s", ["2.9"]),
        (["0.1 TB/s", "9,999 TB/s"], "TB/s", ["0.1", "9,999"]),
        # Another unit shows at least four digits.
        (["81,920 MiB", "96 GiB"], "GiB", ["80", "96"]),
        (["96 GiB", "81,920 MiB"], "GiB", ["96", "80"]),
        (["512 KiB", "3 KiB", "24 MiB"], "KiB", ["512", "3", "24,580"]),
        (["1,234,567 KiB", "2 GiB", "3 GiB"], "GiB", ["1.177375", "2", "3"]),
        # The median determines the unit: the largest that is not above it.
        (["512 KiB", "2 MiB", "24 MiB"], "MiB", ["0.5", "2", "24"]),
        (["900 GB/s", "1 TB/s", "2 TB/s"], "TB/s", ["0.9", "1", "2"]),
        (["1 GB/s", "2 GB/s", "30,000 GB/s"], "GB/s", ["1", "2", "30,000"]),
        # Memory of another vendor in GB, before the others or behind them, changes no figure in GiB.
        (["80 GB", "32 GiB", "96 GiB"], "GiB", ["74.51", "32", "96"]),
        (["32 GiB", "80 GB", "96 GiB"], "GiB", ["32", "74.51", "96"]),
    ],
)
def test_one_unit(texts, unit, numbers) -> None:
    assert (unit, numbers) == shown(*texts)


def test_qualifiers() -> None:
    assert ("GB/s", ["up to 5", "~3"]) == shown("up to 5 GB/s", "~3 GB/s")


def test_several_of_one() -> None:
    """A product shows the digits of the figure and of the count."""
    figure = Displayed.of(parse("667 TFLOPS"), 16)

    assert "10,672" == figure.text(figure.unit)
    assert 16 * 667 * 10**12 == figure.value


@pytest.mark.parametrize(("text", "expected"), [("2.9 TB/s", "[2.85, 2.95)"), (">= 2.0 TB/s", "[1.95, ...)")])
def test_intervals(text, expected) -> None:
    quantity = parse(text)

    assert expected == interval_text(quantity.interval, quantity.unit, 3)
