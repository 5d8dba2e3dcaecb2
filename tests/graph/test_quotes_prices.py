"""The prices of servers: which are known, and which one is meant."""

import csv
from collections import defaultdict

import pytest

from tests.support.engine import everything
from tests.support.programs import DATA
from trnspec.graph.quotes import REGIONS, price_documents, quoted_facts, quotes, region_of
from trnspec.model.quotes import Price

GRAPH = everything()


@pytest.mark.parametrize(
    ("place", "region"),
    [
        ("us-east-2", "us-east-2"),
        ("us-east-2c", "us-east-2"),
        ("us-gov-west-1", "us-gov-west-1"),
        ("unstated", None),
        ("Ohio", None),
    ],
)
def test_region(place, region) -> None:
    assert region == region_of(place)


def test_number_of_regions() -> None:
    assert 40 == len(REGIONS)


def test_every_collected_price_is_in_a_catalog() -> None:
    """As adopted figure or as claim; rows without a price are servers that are not sold that way."""
    known: dict[tuple[str, str], set[float]] = defaultdict(set)
    for node in GRAPH.of(Price):
        texts = [f.value.text for f in node.spec.hourly.values()]
        texts += [str(c.says) for c in node.claims if c.at.startswith("spec.hourly.")]
        known[node.spec.server.name, node.spec.type] |= {float(t.split()[0]) for t in texts}
    missing = []
    with (DATA / "prices.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            server, price = row["server"], row["usd_per_hour"]
            types = ("spot", "capacity-block") if row["type"] == "derived" else (row["type"],)
            values = set().union(*(known[server, t] for t in types))
            stated = any(n.spec.type in types for n in price_documents(GRAPH, GRAPH.named(server)))
            if not stated or (price and float(price) not in values):
                missing.append(row)

    assert [] == missing


def test_prices_as_facts() -> None:
    """Each quote with its place, and its term as the reason; first the types that are not sold, with their source."""
    seen = set()
    for server in {GRAPH.find(node.spec.server) for node in GRAPH.of(Price)}:
        found = [fact for fact in quoted_facts(GRAPH, server) if fact.at.startswith("prices.")]
        known = quotes(GRAPH, server)
        unlisted = [n for n in price_documents(GRAPH, server) if n.spec.status == "unlisted"]
        head, rest = found[: len(unlisted)], found[len(unlisted) :]
        seen |= {fact.verdict for fact in found}

        assert [(f.of, f.at, f.verdict, f.value) for f in head] == [
            (n.name, f"prices.{n.spec.type}", "unlisted", None) for n in unlisted
        ]
        assert [(f.source, f.as_of) for f in head] == [
            (source.name, source.spec.as_of) for source in (GRAPH.find(n.metadata.source) for n in unlisted)
        ]
        assert [(f.of, f.at, f.value, f.reason) for f in rest] == [
            (q.document.name, f"prices.{q.type}.{q.place}", q.figure, q.document.spec.term or "") for q in known
        ]
        assert [(f.source, f.as_of, f.label) for f in rest] == [
            (q.figure.source_name, q.figure.as_of, ", ".join(filter(None, (q.type, q.document.spec.term))))
            for q in known
        ]
    assert {"adopted", "unlisted"} == seen
