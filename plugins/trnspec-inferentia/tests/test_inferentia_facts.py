"""Published figures of the facts table in the catalog: adopted, or as a claim with its source."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from inferentia import catalog

from trnspec.errors import QuantityError
from trnspec.model.figure import Figure
from trnspec.model.reflection import leaves, spread
from trnspec.model.sourced import origin_of
from trnspec.quantities.quantity import parse

with (Path(__file__).parent / "data" / "facts.csv").open(encoding="utf-8", newline="") as table:
    ROWS = list(csv.DictReader(table))


def statements(node):
    """Everything a document lets a source say: (path, source) to the texts."""
    found = {}
    for path, _, value in leaves(node.spec):
        if isinstance(value, Figure):
            source = None if value.derived else value.source or node.metadata.source
        else:
            origin = origin_of(value)
            source = (origin and origin.source) or node.metadata.source
        if source is not None:
            found.setdefault((("spec", *path), str(source)), []).append(str(value))
    for claim in node.claims:
        for path in spread(claim.at):
            found.setdefault((path, str(claim.source)), []).append(str(claim.says))
    return found


def said(text):
    """A quantity where it is one, with its qualifier; the text itself otherwise."""
    try:
        quantity = parse(text)
    except QuantityError:
        return text
    return quantity.value, quantity.dimension, quantity.qualifier


def lost(row, node):
    """The paths at which the source of a row does not say what the row says."""
    stated = statements(node)
    return [
        path
        for path in spread(row["at"])
        if said(row["says"]) not in [said(text) for text in stated.get((path, row["source"]), ())]
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['row']}-{row['subject']}-{row['attribute']}")
def test_row_is_in_the_catalog(row):
    for name in row["documents"].split():
        assert [] == lost(row, catalog().named(name)), name


def test_another_value_is_not_found():
    row = next(r for r in ROWS if r["attribute"] == "host_memory" and r["subject"] == "inf1.2xlarge")

    for change in ({"says": "9 GiB"}, {"source": "neuron-inf2-2026-08"}, {"at": "spec.host.vcpus"}):
        changed = row | change

        assert [*spread(changed["at"])] == lost(changed, catalog().named("inf1.2xlarge"))
