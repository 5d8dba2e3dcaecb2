"""Prices and powers: what their rules find in slips, and in one more document, which may be right.

The documents are rows of ``quotes.yaml``.
"""

import json
import pathlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from attrs import evolve

from tests.checks.conftest import Slip, changed, findings, sampled
from tests.support.engine import everything
from tests.support.rules import KNOWN, put
from tests.support.tables import tables
from trnspec.api import registry
from trnspec.checks.reconcile.quotes import market, powers
from trnspec.graph.graph import Graph
from trnspec.graph.quotes import POWER_TYPES, PRICE_TYPES
from trnspec.loading.pipeline import link, load_document
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.quotes import Power, Price
from trnspec.yaml import Path, read_text

RULES = [r for r in registry().rules if r.code.id.startswith("TRN8")]
SEED = 20261122
EACH = 12
LEAST = 0.9
TABLE = read_text(pathlib.Path(__file__).with_name("quotes.yaml").read_text("utf-8"), "quotes.yaml").data
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


def stated(node: Node[Any]) -> dict[Path, Figure]:
    """The prices of a document, or its power."""
    if isinstance(node.spec, Price):
        return {("spec", "hourly", place): figure for place, figure in node.spec.hourly.items()}
    return {("spec", "power"): node.spec.power} if node.spec.power is not None else {}


def slips(graph: Graph, kind: type[Any]) -> Iterator[Slip]:
    """Wrong factors, and the value, the subject and the type of another document.

    Values of one type are those of another subject only if they clearly differ: list prices of two dates do by 5 %, and
    chips of one generation draw nearly the same.
    """
    nodes = [node for node in graph.of(kind) if stated(node)]
    at, types, near = ("server", PRICE_TYPES, 1.05) if kind is Price else ("of", POWER_TYPES, 1.5)
    for node in nodes:
        subject, alike = getattr(node.spec, at).name, [n for n in nodes if n.spec.type == node.spec.type]
        for path, figure in stated(node).items():
            number, unit = figure.value.text.replace(",", "").split()
            texts = [
                (f"x{factor}", f"{Decimal(number) * Decimal(factor):f} {unit}") for factor in ("10", "0.1", "1000")
            ]
            others = (other for n in alike if getattr(n.spec, at).name != subject for other in stated(n).values())
            ratios = {o.value.text: float(o.value) / float(figure.value) for o in others}
            texts += [("another's value", text) for text, ratio in ratios.items() if not 1 / near < ratio < near]
            yield from (Slip(name, node.name, path, figure.value.text, text) for name, text in texts)
        for other in sorted({getattr(n.spec, at).name for n in nodes} - {subject}):
            yield Slip("another subject", node.name, ("spec", at), subject, other)
        for other in types:
            if other != node.spec.type:
                yield Slip("another type", node.name, ("spec", "type"), node.spec.type, other)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Price, Power])
def test_slips_are_found(graph: Graph, kind: type[Any]) -> None:
    """Of every kind, in a sample of all prices or powers; almost always in the document that was changed."""
    sample = sampled(slips(graph, kind), EACH, SEED)
    missed, misplaced = [], []
    for slip in sample:
        reported = [d for d in findings(changed(graph, slip), RULES) if d.code != "TRN807"]
        if not reported:
            missed.append(str(slip))
        elif graph.named(slip.name).document.file not in {d.where.file for d in reported}:
            misplaced.append(str(slip))

    assert len({slip.kind for slip in sample}) == 6
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


@pytest.mark.parametrize(("name", "text", "hint"), tables(__file__)["likely_cause_is_named"])
def test_likely_cause_is_named(graph: Graph, name: str, text: str, hint: str) -> None:
    """The price of another server, a power of ten, and the price or power of one chip."""
    path = next(iter(stated(graph.named(name))))
    wrong = changed(graph, Slip("", name, path, "", text))
    hints = [d.hint for d in findings(wrong, RULES) if d.where.path == path]

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
