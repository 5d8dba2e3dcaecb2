"""trnspec.loading.forms.price_rows: lists of prices as Price documents, and back."""

import re
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

from tests.support.programs import ROOT, written
from tests.support.rules import KNOWN
from trnspec.api import validate
from trnspec.diagnostics import Severity
from trnspec.loading.files import documents_in
from trnspec.loading.forms.price_rows import contents, list_text
from trnspec.loading.pipeline import LoadResult, load_document
from trnspec.loading.structure import plain
from trnspec.model.document_text import document_text, entry_text
from trnspec.yaml import read_file, read_text

LISTS = sorted(f for root in ROOT.glob("**/catalog/prices") for f in documents_in(root) if "/." not in str(f))
HEAD = "api_version: trnspec/v1\nkind: PriceList\nmetadata: {name: trn1.2xlarge-prices, title: Example}\n"


def loaded(text: str) -> LoadResult:
    return load_document(read_text(text, "prices/trn1.2xlarge-prices.yaml"), KNOWN)


def rows(*rows: str) -> str:
    return HEAD + "spec:\n  server: trn1.2xlarge\n  rows:\n" + "".join(f"    - {{{row}}}\n" for row in rows)


@pytest.mark.parametrize("file", LISTS, ids=lambda f: f.stem)
def test_shipped_lists_are_price_documents_and_back(file) -> None:
    """Each document that a list is read as, written alone, is one row or more of the same list."""
    result = load_document(read_file(str(file)), KNOWN)
    nodes = [part.node for part in result.parts]
    alone = []
    for node in nodes:
        data = plain(node)
        for figure in data["spec"].get("hourly", {}).values():
            if "where" not in figure and figure["source"] == data["metadata"].get("source"):
                del figure["source"]  # it is that of the document
        text = document_text("Price", data["metadata"], data["spec"])
        claims = (", ".join(map(str.strip, entry_text(claim, ""))) for claim in data.get("claims", ()))
        text += "claims:\n" * bool(node.claims) + "".join(f"  - {{{claim}}}\n" for claim in claims)
        alone.append(load_document(read_text(text), KNOWN).node)

    again = load_document(read_text(list_text(alone)), KNOWN)

    assert ((), ()) == (result.problems, again.problems)
    assert [contents(node) for node in nodes] == [contents(node) for node in alone]
    assert {n.name: contents(n) for n in nodes} == {p.node.name: contents(p.node) for p in again.parts}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("region: us-east-2, price: 1 USD/h", ("TRN102", 8, "spec.rows.1 has no 'source'")),
        ("region: us-east-2, price: 2 USD/h, source: b, term: 24 GB", ("TRN105", 8, "'24 GB' at spec.rows.1.term is")),
        ("region: us-east-2, price: 2 USD/h, sources: []", ("TRN102", 8, "spec.rows.1.sources has no items")),
        ("region: us-east-2, price: 2 USD/h, sources: [b, b]", ("TRN209", 8, "'b' is listed twice")),
        (
            "region: us-east-2, price: 2 USD/h, status: listed, source: b",
            ("TRN101", 8, "spec.rows.1 has a price and a"),
        ),
        ("region: us-east-1, price: 1 USD/h, source: a", ("TRN209", 8, "spec.rows.1 is the same as spec.rows.0")),
    ],
)
def test_a_wrong_row(wrong: str, expected: tuple[str, int, str]) -> None:
    first = "type: spot, region: us-east-1, price: 1 USD/h, source: a"
    result = loaded(rows(first, f"type: spot, {wrong}"))
    problems = [p for each in (result, *result.parts) for p in each.problems]

    assert expected in {(p.code, p.place.line, p.message[: len(expected[2])]) for p in problems}


def test_rows_of_one_type_are_one_document() -> None:
    """The first row without a verdict is the price, the others are claims; each value has the source of its row."""
    (spot,) = loaded(
        rows(
            "type: spot, region: us-east-1, price: 1 USD/h, sources: [a, b], where: line 1",
            "type: spot, region: us-east-1, price: 2 USD/h, source: c, verdict: rejected, reason: Old.",
            "type: spot, region: us-east-2, price: 3 USD/h, source: b, days: 9, low: 1 USD/h, high: 4 USD/h, term: 1 h",
            "type: spot, note: All zones.",
        )
    ).parts

    figure = {"value": "1 USD/h", "source": "a", "where": "line 1"}
    seen = {
        key: {"value": value, "source": "b"} for key, value in (("days", 9), ("low", "1 USD/h"), ("high", "4 USD/h"))
    }
    data = plain(spot.node)
    assert data["metadata"] == {"name": "trn1.2xlarge-spot", "title": "trn1.2xlarge, spot", "source": "a"}
    assert data["spec"] == {
        "server": "trn1.2xlarge",
        "type": "spot",
        "term": {"value": "1 h", "source": "b"},
        "hourly": {"us-east-1": figure, "us-east-2": {"value": "3 USD/h", "source": "b"}},
        "observed": {"us-east-2": seen},
        "note": "All zones.",
    }
    at = {"at": "spec.hourly.us-east-1"}
    assert data["claims"] == [
        {**at, "says": "1 USD/h", "source": "b", "where": "line 1"},
        {**at, "says": "2 USD/h", "source": "c", "verdict": "rejected", "reason": "Old."},
    ]
    document = spot.node.document
    placed = [path for path in document.places if path[:1] in (("spec",), ("claims",)) and path[-1] != "at"]
    texts = {path: document.text[slice(*document.extent(path)[1:])] for path in placed}
    values = {path: reduce(getitem, path, document.data) for path in placed}
    assert {p: str(v) for p, v in values.items() if isinstance(v, (str, int))}.items() <= texts.items()


GOOD = "type: spot, region: us-east-1, price: 0.22 USD/h, source: skypilot-catalog-00148f2"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (rows("region: us-east-1, price: 1 USD/h"), "TRN102", 7),  # no type
        (rows("type: spot, price: 1 USD/h"), "TRN102", 7),  # no region
        (rows("type: spot, region: us-east-1"), "TRN102", 7),  # no price
        (rows("type: spot, region: us-east-1, price: 1 USD/h, days: 9, low: 1 USD/h"), "TRN102", 7),  # no high
        (rows("type: spot, region: us-east-1, price: 1 USD/h, verdict: rejected"), "TRN102", 7),  # no source
        (rows("type: spott, region: us-east-1, price: 1 USD/h"), "TRN104", 7),
        (rows("type: spot, region: us-east-1, price: 1 USD"), "TRN111", 7),
        (rows("type: spot, region: us-east-1, price: 1"), "TRN110", 7),
        (rows("type: spot, region: us-east-1, prize: 1 USD/h"), "TRN101", 7),
        (rows("type: spot, region: us-esat-1, price: 1 USD/h"), "TRN801", 7),
        (rows("type: spot, region: us-east-1, price: 1 USD/h, source: nowhere"), "TRN201", 7),
        (rows(GOOD, GOOD.replace("0.22", "0.23")), "TRN303", 7),  # a second price without a verdict
        (rows(f"{GOOD}, term: 8 h", GOOD.replace("east-1", "east-2") + ", term: 9 h"), "TRN005", 8),
        (rows(f"{GOOD}, term: 8 h", f"{GOOD}, term: 8 h, verdict: agrees"), "TRN101", 8),  # a claim has no term
        (rows(GOOD) + "claims:\n  - {at: spec.server, says: a, source: b}\n", "TRN101", 8),
        (rows(GOOD).replace("title:", "aliases: [a], title:"), "TRN101", 3),
        (rows(GOOD).replace("name: trn1.2xlarge-prices", "name: another"), "TRN205", 3),
        (rows().replace("rows:", "rows: []"), "TRN102", 6),
    ],
)
def test_rows_that_are_wrong(tmp_path, text, code, line) -> None:
    file = written(tmp_path / "prices" / "trn1.2xlarge-prices.yaml", text)

    assert (code, line) in {(d.code, d.where.place.line) for d in validate([str(file)]).report.diagnostics}


def test_a_finding_is_at_its_row(tmp_path) -> None:
    """A price with a wrong factor is reported at the line of its row, at the price."""
    (original,) = (f for f in LISTS if f.stem == "trn1.32xlarge-prices")
    file = written(
        tmp_path / "prices" / original.name,
        original.read_text().replace("region: us-west-2, price: 21.50", "region: us-west-2, price: 2.150"),
    )
    number, text = next((i, t) for i, t in enumerate(file.read_text().splitlines(), 1) if "2.150 USD/h" in t)

    found = validate([str(file)]).report.diagnostics

    assert {(Path(d.where.file).name, d.where.place.line, d.where.place.column) for d in found} == {
        (original.name, number, re.search(r"2\.150", text).start() + 1)
    }


@pytest.mark.parametrize(
    "wrong", ["region: us-east-1, price: 1 USD/h, source: a", "type: spott, region: us-east-1, source: a", None]
)
def test_a_row_without_a_valid_type_leaves_the_findings_of_others(tmp_path, wrong) -> None:
    """The errors of the row, and what only the rules find in the others."""
    file = tmp_path / "prices" / "trn1.2xlarge-prices.yaml"
    file.parent.mkdir()
    text = rows(wrong or "", "type: spot, region: us-east-1, price: 0.2198 USD/h, source: no-such-source")
    file.write_text(text if wrong else text.replace("- {}", "- 5"))
    found = {(d.code, d.where.place.line) for d in validate([file]).report.diagnostics if d.severity is Severity.ERROR}

    assert ("TRN201", 8) in found
    assert {line for code, line in found if code != "TRN201"} == {7}


def test_a_list_in_a_file_of_another_name() -> None:
    result = load_document(read_text(rows(GOOD), "prices/other.yaml"), KNOWN)
    assert {"TRN205"} == {p.code for p in result.problems}
