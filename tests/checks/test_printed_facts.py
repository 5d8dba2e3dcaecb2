"""Facts that sources print are in the catalog, from that source, at the place that ``tests/data/facts`` names."""

import csv
import json
import re

import pytest

from tests.checks.printed_facts import missing
from tests.support.programs import DATA
from trnspec.api import graph as load

SOURCES = json.loads((DATA / "facts-sources.json").read_text("utf-8"))
FACTS = [
    row for f in sorted((DATA / "facts").glob("*.csv")) for row in csv.DictReader(f.read_text("utf-8").splitlines())
]


def is_of_five(fact) -> bool:
    """Whether a row is of one of the five documents whose every fact must be in the catalog, with its line."""
    return fact["source"].startswith("sources/00")


FIVE = [f for f in FACTS if is_of_five(f)]


@pytest.fixture(scope="module")
def graph():
    return load()


def lacking(fact, graph) -> list[str]:
    file = max((s for s in SOURCES if fact["source"].startswith(s)), key=len)
    line = re.match(r":(\d+)", fact["source"][len(file) :])
    return missing(fact, SOURCES[file], int(line[1]) if line and is_of_five(fact) else None, graph)


def test_every_fact_is_at_its_place(graph) -> None:
    """All of the five documents; of the others 96 % have a place."""
    placed = [f for f in FACTS if f["place"]]

    assert len({f["source"].partition(":")[0] for f in FIVE}) == 5
    assert (len(FIVE), [f for f in FIVE if not f["place"]]) == (108, [])
    assert len(placed) >= 0.96 * len(FACTS) > 600
    assert [(f["subject"], f["value"], lack) for f in placed if (lack := lacking(f, graph))] == []


@pytest.mark.parametrize(
    "change",
    [
        {"value": "191"},
        {"unit": "GFLOPS"},
        {"source": "sources/000_f8b75e278c39e486.txt:19"},
        {"source": "sources/001_9cab4467e300b1a1.txt:20"},
        {"place": "trainium2: peak.dense.bf16"},
    ],
    ids=str,
)
def test_absent_value_is_not_found(graph, change) -> None:
    """A row that is altered in one column is nowhere, so that no row is found by accident."""
    fact = next(f for f in FIVE if f["value"] == "190" and f["place"].startswith("trainium1: peak.dense.bf16"))

    assert lacking(fact, graph) == []
    assert lacking(fact | change, graph) != []
