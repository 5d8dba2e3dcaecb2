"""Prices: what their rules find in slips and do not find in edits that are right."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from attrs import evolve

from tests.checks.price_changes import KINDS, price_changes
from tests.support.mutations import changed, findings
from tests.support.programs import ROOT
from tests.support.rules import KNOWN, linked
from tests.support.rules import findings as found_by
from trnspec.api import graph as load
from trnspec.api import registry
from trnspec.checks.reconcile.prices import market
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import link, load_document
from trnspec.yaml import read_text

PLUGINS = [
    str(ROOT / "plugins" / f"trnspec-{n}" / "src" / f"trnspec_{n}" / "catalog") for n in ("nvidia", "inferentia")
]
RULES = [r for r in registry().rules if r.code.id.startswith("TRN8")]
SEED = 20261122
EACH = 12
LEAST = 0.9

DOCUMENT = """\
api_version: trnspec/v1
kind: Price
metadata: {{name: {server}-{type}-example, title: Example, source: {source}}}
spec: {{server: {server}, type: {type}, hourly: {{{hourly}}}}}
"""
PAGE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: list-2026-11, title: A newer price list}
spec: {publisher: Amazon Web Services, as_of: 2026-11-01, rank: vendor-api}
"""


@pytest.fixture(scope="module")
def graph():
    """The catalogs that have prices, all of whose documents are checked."""
    whole = load(PLUGINS)
    return Graph({name: evolve(node, target=True) for name, node in whole.nodes.items()})


@pytest.fixture(scope="module")
def context(graph) -> Graph:
    """The same as context of documents that are added."""
    return Graph({name: evolve(node, target=False) for name, node in graph.nodes.items()})


def test_no_findings_in_the_shipped_catalogs(graph) -> None:
    assert [] == [d for d in findings(graph, RULES) if d.code != "TRN304"]
    assert 80 < len(market(graph).offers)


def test_slips_are_found(graph) -> None:
    """Of every kind, in a sample of all prices; almost always in the document that was changed."""
    possible: dict[str, list] = {kind: [] for kind in KINDS}
    for change in price_changes(graph):
        possible[change.kind].append(change)
    chosen = random.Random(SEED)
    found, placed, made = Counter(), Counter(), Counter()
    for kind, changes in possible.items():
        for change in chosen.sample(changes, EACH):
            reported = [d for d in findings(changed(graph, change), RULES) if d.code not in ("TRN304", "TRN807")]
            made[kind] += 1
            found[kind] += bool(reported)
            placed[kind] += graph.named(change.name).document.file in {d.where.file for d in reported}

    assert [] == [kind for kind in KINDS if made[kind] < EACH]
    assert LEAST <= found.total() / made.total(), found
    assert LEAST <= placed.total() / found.total(), placed


def codes(context, hourly, server="trn1.32xlarge", type="on-demand", source="list-2026-11") -> set:
    """The codes found in one more document of prices."""
    text = DOCUMENT.format(server=server, type=type, source=source, hourly=hourly)
    readings = [load_document(read_text(t, name), KNOWN) for t, name in ((PAGE, "page.yaml"), (text, "example.yaml"))]
    added = link([r for r in readings if r.node is not None])[0]
    found = findings(Graph({**context.nodes, **added.nodes}), RULES)
    return {d.code for d in found if d.where.file == "example.yaml"}


@pytest.mark.parametrize(
    ("hourly", "more"),
    [
        ("ap-northeast-1: 26.875 USD/h, eu-north-1: 23.005 USD/h", {}),  # new regions
        ("us-east-1: 15.05 USD/h", {}),  # 30 % less at a new date
        ("us-east-1: 11.825 USD/h", {}),  # 45 % less
        ("sa-east-1: 33.9 USD/h", {}),
        ("us-east-1: 31.2 USD/h", {"server": "trn2.48xlarge", "type": "capacity-block"}),
        ("us-east-2: 48.5 USD/h", {"server": "trn2.48xlarge"}),
        ("eu-west-1: 2.9 USD/h", {"type": "spot"}),
        ("us-east-1: 12.9 USD/h", {"type": "reserved"}),
    ],
)
def test_prices_that_may_be(context, hourly, more) -> None:
    assert set() == codes(context, hourly, **more)


@pytest.mark.parametrize(
    ("hourly", "more", "expected"),
    [
        ("us-east-1: 2.15 USD/h", {}, "TRN803"),
        ("ap-northeast-1: 215 USD/h", {}, "TRN803"),
        ("us-east-1: 24.1 USD/h", {"server": "trn1.2xlarge"}, "TRN803"),
        ("us-east-1: 2.478 USD/h", {"server": "trn1n.32xlarge", "source": "karpenter-pricing-gov-2026-07"}, "TRN806"),
        ("us-east-1: 51 USD/h", {"type": "spot"}, "TRN803"),
        ("us-east-1: 1.21 USD/h", {"type": "reserved"}, "TRN803"),
        ("us-east-2: 3.5 USD/h", {"server": "trn2.48xlarge"}, "TRN804"),
        ("us-east-1: 1 USD/h", {"server": "trn3-gen1-server"}, "TRN805"),
        ("us-east-1: 24.78 USD/h", {"source": "karpenter-pricing-2026-07"}, "TRN806"),
        ("us-east-1: 21.00 USD/h", {"source": "ec2-capacity-blocks-2024"}, "TRN807"),
    ],
)
def test_prices_that_cannot_be(context, hourly, more, expected) -> None:
    assert {expected} == codes(context, hourly, **more)


def test_likely_cause_is_named(graph) -> None:
    """The price of another server, a power of ten, and the price of one chip."""
    edits = {
        "2.478 USD/h": "factor of 0.1: 24.78 USD/h",
        "63.296 USD/h": "63.296 USD/h is the on-demand price of p5en.48xlarge",
        "1.54875 USD/h": "one chip: 16 x 1.54875 = 24.78 USD/h",
    }
    for text, hint in edits.items():
        change = next(c for c in price_changes(graph) if c.name == "trn1n.32xlarge-on-demand")
        path = change.edits[0][0]
        one = type(change)(change.kind, change.name, ((path, text),), change.before)
        hints = [d.hint for d in findings(changed(graph, one), RULES) if d.where.path == path]

        assert any(hint in h for h in hints), hints


def test_a_wrong_server_is_not_reported_at_its_prices(graph) -> None:
    """667 chips instead of 16 make every price per chip implausible."""
    node = graph.named("trn2.48xlarge")
    spec = evolve(node.spec, chips=evolve(node.spec.chips, count=667))
    wrong = graph.replace(node.name, spec)

    assert [one for one in market(wrong).conflicts if one.code == "TRN805"]
    assert [] == [d for d in findings(wrong, RULES) if d.code == "TRN805"]


@pytest.mark.parametrize(
    ("as_of", "age"),
    [("2023-12-01", None), ("2023-12", None), ("2023", None), ("2023-11-30", 19), ("2023-01", 29), ("2022", 30)],
)
def test_a_price_is_stale_18_months_before_the_newest(as_of, age) -> None:
    """That is of 2025-06-01; a year counts as its December."""
    source = linked().named("list-2024-05")
    found = found_by("TRN807", linked().replace(source.name, evolve(source.spec, as_of=as_of)))

    assert [(d.where.path[-1], d.message) for d in found] == [
        (place, f"the price of {place} is of {as_of}, {age} months before the newest price of the catalog")
        for place in ("us-east-1", "us-west-2")
    ] * (age is not None)
