"""The prices of servers: which are known, and which one is meant."""

from __future__ import annotations

import csv
from collections import defaultdict

import pytest
from attrs import evolve

from tests.support.programs import DATA, ROOT
from trnspec.api import graph as load
from trnspec.graph.graph import Graph
from trnspec.graph.quotes import chosen, price_documents, quotes, region_of
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


def test_choice_of_price(graph) -> None:
    """That of us-east-1; else the newest, then the lowest; of the region or availability zone that is given."""
    servers = {
        name: graph.named(name) for name in ("trn1.32xlarge", "trn2.48xlarge", "p5en.48xlarge", "trn2u.48xlarge")
    }
    found = {
        (name, type_, region): (None if (q := chosen(graph, servers[name], type_, region)) is None else q.place)
        for name, type_, region in (
            ("trn1.32xlarge", "on-demand", None),
            ("trn1.32xlarge", "spot", "us-east-2"),
            ("trn1.32xlarge", "spot", "us-east-2c"),
            ("trn2.48xlarge", "spot", None),
            ("trn2.48xlarge", "capacity-block", None),
            ("trn2.48xlarge", "on-demand", None),
            ("p5en.48xlarge", "on-demand", "ap-south-1"),
            ("trn2u.48xlarge", "spot", None),
        )
    }

    assert ["us-east-1", "us-east-2c", "us-east-2c", "us-east-2c", "ap-south-2b", None, "ap-south-1", None] == [
        *found.values()
    ]


def test_order_does_not_depend_on_that_of_documents(graph) -> None:
    server = graph.named("p5en.48xlarge")
    backwards = Graph(dict(reversed(graph.nodes.items())))

    assert [str(q) for q in quotes(graph, server)] == [str(q) for q in quotes(backwards, server)]
    assert "on-demand" == quotes(graph, server)[0].type


def test_alias_of_a_server(graph) -> None:
    """A price that names the server by an alias is a price of it."""
    node = graph.named("trn2.48xlarge-spot")
    alias = graph.named("trn2.48xlarge").metadata.aliases[0]
    other = graph.replace(node.name, evolve(node.spec, server=evolve(node.spec.server, name=alias)))

    assert [str(q) for q in quotes(graph, graph.named("trn2.48xlarge"))] == [
        str(q) for q in quotes(other, other.named("trn2.48xlarge"))
    ]
