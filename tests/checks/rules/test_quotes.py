"""Prices and powers: what their rules find in slips, and in one more document, which may be right.

The documents are rows of ``quotes.yaml``.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.checks.conftest import changed, findings, sampled
from tests.checks.rules.conftest import power_changes, price_changes
from tests.support.engine import everything
from tests.support.rules import KNOWN, put
from trnspec.api import registry
from trnspec.checks.reconcile.quotes import market, powers
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import link, load_document
from trnspec.model.quotes import Power
from trnspec.yaml import read_text

RULES = [r for r in registry().rules if r.code.id.startswith("TRN8")]
SEED = 20261122
EACH = 12
LEAST = 0.9
TABLE = read_text(Path(__file__).with_name("quotes.yaml").read_text("utf-8"), "quotes.yaml").data
PAGE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: page-2026-11, title: A newer page}
spec: {publisher: Amazon Web Services, as_of: 2026-11-01, rank: vendor-api}
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The catalogs that have prices and powers, all of whose documents are checked."""
    return Graph({name: evolve(node, target=True) for name, node in everything().nodes.items()})


@pytest.fixture(scope="module")
def context(graph: Graph) -> Graph:
    """The same as context of documents that are added."""
    return Graph({name: evolve(node, target=False) for name, node in graph.nodes.items()})


def test_no_findings_in_the_shipped_catalogs(graph: Graph) -> None:
    assert [] == findings(graph, RULES)
    assert 80 < len(market(graph).quotes)


@pytest.mark.parametrize("changes", [price_changes, power_changes])
def test_slips_are_found(graph: Graph, changes: Any) -> None:
    """Of every kind, in a sample of all prices or powers; almost always in the document that was changed."""
    sample = sampled(changes(graph), EACH, SEED)
    missed, misplaced = [], []
    for slip in sample:
        reported = [d for d in findings(changed(graph, slip), RULES) if d.code != "TRN807"]
        if not reported:
            missed.append(str(slip))
        elif graph.named(slip.name).document.file not in {d.where.file for d in reported}:
            misplaced.append(str(slip))

    assert len({slip.kind for slip in sample}) > 5
    assert len(missed) <= (1 - LEAST) * len(sample), missed
    assert len(misplaced) <= (1 - LEAST) * (len(sample) - len(missed)), misplaced


def text_of(kind: str, spec: dict[str, Any], source: str) -> str:
    """The text of a document of prices or of power, named after what it is about and its type."""
    name = f"{spec['server' if kind == 'Price' else 'of']}-{spec['type']}-example"
    metadata = {"name": name, "title": "Example", "source": source}
    return json.dumps({"api_version": "trnspec/v1", "kind": kind, "metadata": metadata, "spec": spec})


DEFAULTS = {
    "Price": {"server": "trn1.32xlarge", "type": "on-demand"},
    "Power": {"of": "trn2.48xlarge", "type": "maximum"},
}


@pytest.mark.parametrize(
    ("kind", "row"), [*(("Price", row) for row in TABLE["prices"]), *(("Power", row) for row in TABLE["powers"])]
)
def test_one_more_document(context: Graph, kind: str, row: dict[str, Any]) -> None:
    spec = DEFAULTS[kind] | {key: value for key, value in row.items() if key not in ("finds", "source")}
    text = text_of(kind, spec, row.get("source", "page-2026-11"))
    readings = [load_document(read_text(t, name), KNOWN) for t, name in ((PAGE, "page.yaml"), (text, "example.yaml"))]
    added = link([r for r in readings if r.node is not None])[0]
    found = findings(Graph({**context.nodes, **added.nodes}), RULES)

    assert len(added.nodes) == len(readings)
    assert {d.code for d in found if d.where.file == "example.yaml"} == ({row["finds"]} if "finds" in row else set())


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("trn1n.32xlarge-on-demand", "2.478 USD/h", "factor of 0.1: 24.78 USD/h"),
        ("trn1n.32xlarge-on-demand", "63.296 USD/h", "63.296 USD/h is the on-demand price of p5en.48xlarge"),
        ("trn1n.32xlarge-on-demand", "1.54875 USD/h", "one chip: 16 x 1.54875 = 24.78 USD/h"),
        ("dgx-h100-maximum", "1.02 kW", "factor of 0.1: 10,200 W"),
        ("dgx-b200-maximum", "1.7875 kW", "one chip: 8 x 1,787.5 = 14,300 W"),
    ],
)
def test_likely_cause_is_named(graph: Graph, name: str, text: str, hint: str) -> None:
    """The price of another server, a power of ten, and the price or power of one chip."""
    change = next(c for c in (*price_changes(graph), *power_changes(graph)) if c.name == name)
    one = evolve(change, after=text)
    hints = [d.hint for d in findings(changed(graph, one), RULES) if d.where.path == change.path]

    assert any(hint in h for h in hints), hints


def test_a_wrong_server_is_not_reported_at_its_prices(graph: Graph) -> None:
    """667 chips instead of 16 make every price per chip implausible."""
    node = graph.named("trn2.48xlarge")
    spec = evolve(node.spec, chips=evolve(node.spec.chips, count=667))
    wrong = graph.replace(node.name, spec)

    assert [one for one in market(wrong).conflicts if one.code == "TRN805"]
    assert [] == [d for d in findings(wrong, RULES) if d.code == "TRN805"]


@pytest.mark.parametrize(
    ("type", "power", "code", "why"),
    [("tdp", "500 W", "TRN806", "digits"), ("maximum", "100 W", "TRN804", "type"), ("tdp", "1 kW", None, None)],
)
def test_the_power_of_a_chip_is_a_design_power(graph: Graph, type, power, code, why) -> None:
    """The figure of the chip itself is compared with the documents on it."""
    name = next(n.name for n in graph.of(Power) if n.spec.type == "tdp" and n.spec.of.name == "trainium3")
    plain = graph.replace(name, evolve(graph.named(name).spec, type=type))
    one = put(plain, name, "power", power)
    chip = put(one, "trainium3", "power", "1,000 W")
    conflicts = [(c.code, c.why) for c in powers(chip).conflicts if c.one.subject.name == "trainium3"]

    assert conflicts == ([] if code is None else [(code, why)])
