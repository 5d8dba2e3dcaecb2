"""Rows of tests/data/facts_2026_11.csv in the catalog; exceptions are listed with their reason."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.checks.printed_facts import sayings
from trnspec.api import graph as load
from trnspec.errors import QuantityError
from trnspec.quantities.quantity import Quantity, parse
from trnspec.yaml import read_text

DATA = Path(__file__).parents[1] / "data"
PLUGINS = Path(__file__).parents[2] / "plugins"

with (DATA / "facts_2026_11.csv").open(newline="", encoding="utf-8") as _table:
    ROWS = dict(enumerate(csv.DictReader(_table), 2))

TABLE = read_text(Path(__file__).with_name("printed_facts_2026_11.yaml").read_text("utf-8"), "facts.yaml").data
SOURCES, DOCUMENTS = TABLE["sources"], TABLE["documents"]
OF_ROW, PRINTED, ELSEWHERE = (
    {int(number): value for number, value in TABLE[key].items()} for key in ("of_row", "printed", "elsewhere")
)


@pytest.fixture(scope="module")
def graph():
    return load([str(f) for f in sorted(PLUGINS.glob("trnspec-*/src/*/catalog")) if "cost" not in str(f)])


def source(row) -> str:
    return next(name for start, name in SOURCES.items() if row["source"].startswith(start))


def printed(number, row) -> tuple[str, ...]:
    return PRINTED.get(number, (f"{row['value']} {row['unit']}",))


def same(text: str, value: object) -> bool:
    """Whether a value of the catalog is the printed one: a figure in any unit, a count, or the words in a sentence."""
    if isinstance(value, int):
        return re.match(r"\d+", text) is not None and int(re.match(r"\d+", text)[0]) == value
    figure = value if isinstance(value, Quantity) else _quantity(str(value))
    expected = _quantity(text)
    if figure is not None and expected is not None:
        return figure.dimension is expected.dimension and figure.interval.overlaps(expected.interval)
    words = re.findall(r"[\w.]+", text.split(" (", maxsplit=1)[0].lower())
    return isinstance(value, str) and set(words) <= set(re.findall(r"[\w.]+", value.lower()))


def _quantity(text: str) -> Quantity | None:
    try:
        return parse(text)
    except QuantityError:
        return None


def missing(number, row, graph) -> list[str]:
    """What the catalog does not have of a row, from the source of the row."""
    names = OF_ROW.get(number) or DOCUMENTS.get(row["subject"], (row["subject"],))
    texts = printed(number, row)
    found = {
        (name, text)
        for name in names
        for each in sayings(graph.named(name))
        for text in texts
        if each.source == source(row) and same(text, each.value)
    }
    if len(texts) > 1:  # a list: each value is in one of the documents
        return [text for text in texts if text not in {t for _, t in found}]
    return [f"{name}: {texts[0]}" for name in names if (name, texts[0]) not in found]


def test_rows_are_read() -> None:
    assert len(ROWS) == 73
    assert {number for number, row in ROWS.items() if not row["value"]} == set()
    assert set(PRINTED) | set(ELSEWHERE) <= set(ROWS)


def test_every_row(graph, tell) -> None:
    lacking = {n: missing(n, row, graph) for n, row in ROWS.items() if n not in ELSEWHERE}
    changes = Counter(row["change"].split()[0] for row in ROWS.values())
    reasons = [f"  row {n}: {ROWS[n]['subject']}: {reason}" for n, reason in ELSEWHERE.items()]
    tell(
        "facts of 2026-11 in the catalog",
        [f"{len(lacking)} of {len(ROWS)} rows, {dict(changes)}; the others are listed:", *reasons],
    )

    assert {n: lack for n, lack in lacking.items() if lack} == {}


@pytest.mark.parametrize(
    "change", [{"value": "5"}, {"subject": "trainium1"}, {"source": "moto 5.2.5"}], ids=["value", "subject", "source"]
)
def test_a_row_that_is_altered_is_missing(graph, change) -> None:
    number, row = next((n, r) for n, r in ROWS.items() if r["subject"] == "trn3e.24xlarge" and r["value"] == "4")

    assert missing(number, row, graph) == []
    assert missing(number, row | change, graph) != []
