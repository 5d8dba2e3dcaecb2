"""The prices of servers: which are known, and which one is meant."""

from __future__ import annotations

import csv
from collections import defaultdict

import pytest

from tests.support.programs import DATA, ROOT
from trnspec.api import graph as load
from trnspec.graph.graph import Graph
from trnspec.graph.quotes import price_documents, region_of
from trnspec.model.quotes import Price

PLUGINS = [
    str(ROOT / "plugins" / f"trnspec-{n}" / "src" / f"trnspec_{n}" / "catalog") for n in ("nvidia", "inferentia")
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load(PLUGINS)


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


def test_every_collected_price_is_in_a_catalog(graph) -> None:
    """As adopted figure or as claim; rows without a price are servers that are not sold that way."""
    known: dict[tuple[str, str], set[float]] = defaultdict(set)
    for node in graph.of(Price):
        texts = [f.value.text for f in node.spec.hourly.values()]
        texts += [str(c.says) for c in node.claims if c.at.startswith("spec.hourly.")]
        known[node.spec.server.name, node.spec.type] |= {float(t.split()[0]) for t in texts}
    missing = []
    with (DATA / "prices.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            server, price = row["server"], row["usd_per_hour"]
            types = ("spot", "capacity-block") if row["type"] == "derived" else (row["type"],)
            values = set().union(*(known[server, t] for t in types))
            stated = any(n.spec.type in types for n in price_documents(graph, graph.named(server)))
            if not stated or (price and float(price) not in values):
                missing.append(row)

    assert [] == missing
