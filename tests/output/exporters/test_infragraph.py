"""Infrastructures of InfraGraph, and the package itself building their graphs."""

import warnings
from collections import Counter

import networkx
import pytest

import trnspec
from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog
from trnspec.output.exporters.export_log import ExportLog
from trnspec.output.exporters.infragraph import _runs
from trnspec.output.exporters.link_table import link_table
from trnspec.yaml import read_text

CAT = Catalog(everything())
SYSTEMS = [*CAT.servers, *CAT.ultraservers]


def infrastructure(name: str, catalog: trnspec.Catalog = CAT) -> dict:
    data = read_text(catalog[name].export("infragraph").text).data
    assert isinstance(data, dict)
    return data


def links(name: str) -> dict[str, dict]:
    made = infrastructure(name)
    return {link["name"]: link for part in (made, *made["devices"]) for link in part["links"]}


def test_a_server_is_one_device() -> None:
    made = infrastructure("trn2.48xlarge")

    (device,) = made["devices"]
    assert ("trn2-48xlarge", [{"name": "trn2-48xlarge", "device": "trn2-48xlarge", "count": 1}]) == (
        made["name"],
        made["instances"],
    )
    assert [("trainium2", "xpu", 16)] == [(c["name"], c["choice"], c["count"]) for c in device["components"]]
    assert {
        "bandwidth": {"choice": "gigabytes_per_second", "gigabytes_per_second": 128},
        "latency": {"choice": "us", "us": 1.5},
    } == device["links"][0]["physical"]


def test_a_connection_to_a_switch_has_the_rate_of_all_its_links() -> None:
    assert [450] == [each["physical"]["bandwidth"]["gigabytes_per_second"] for each in links("p5.48xlarge").values()]


def test_unknown_values_are_listed() -> None:
    made = CAT["trn3-gen1-ultraserver"].export("infragraph")

    assert "physical" not in links("trn3-gen1-ultraserver")["neuronlink-v4-direct"]
    assert {"left out: the rate of the connection is not known", "left out: no latency of the link is known"} == {
        a.says for a in made.assumptions if a.field.startswith("links.neuronlink-v4-direct.")
    }


def test_chips_without_a_declared_fabric() -> None:
    several, one = (CAT[name].export("infragraph") for name in ("trn3.48xlarge", "trn1.2xlarge"))

    assert ["none: the links between the 16 chips are not known"] == [
        a.says for a in several.assumptions if a.field == "edges"
    ]
    assert [] == [a for a in one.assumptions if a.field == "edges"], "one chip has no other"


@pytest.fixture(scope="module")
def package():
    """The package, from the group ``exports``."""
    return pytest.importorskip("infragraph.infragraph_service", reason="infragraph is not installed (group exports)")


def expected(name: str) -> networkx.Graph:
    """The chips and switches of the catalog, and their connections; as its service does, once for each pair."""
    node, found = CAT.graph.named(name), networkx.Graph()
    found.add_nodes_from((i, {"type": "xpu"}) for i in range(CAT[name].chip_count))
    declared = node.spec.fabric
    if declared is None or declared.topology is None:
        return found
    fabric = link_table(ExportLog(CAT.graph, node, "infragraph")).shape.build()
    found.add_nodes_from((e.b, {"type": "switch"}) for e in fabric.edges if fabric.is_switch(e.b))
    found.add_edges_from((e.a, e.b) for e in fabric.edges)
    return found


def described(each: networkx.Graph) -> tuple:
    """What equal graphs have in common: types, degrees by type and distances from every vertex."""
    spread = Counter(
        (
            each.nodes[v]["type"],
            tuple(sorted(Counter(networkx.single_source_shortest_path_length(each, v).values()).items())),
        )
        for v in each
    )
    return (len(each.nodes), len(each.edges), spread)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_package_builds_the_fabric_of_the_catalog(package, name) -> None:
    service = package.InfraGraphService()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chips without links, where none are known, and deprecations of protobuf
        service.set_graph(CAT[name].export("infragraph").text)
    made = service.get_networkx_graph()

    assert described(expected(name)) == described(made)


def test_the_package_reads_rates_and_latencies(package) -> None:
    service = package.InfraGraphService()
    service.set_graph(CAT["trn2-ultraserver"].export("infragraph").text)
    found = Counter((d["bandwidth"], d["latency"]) for *_, d in service.get_networkx_graph().edges(data=True))

    assert {("128.0 GBps", "1.5 us"): 128, ("64.0 GBps", "1.5 us"): 64} == found


@pytest.mark.parametrize(("one", "other", "scheme"), [(0, 1, "many2many"), (1, 0, "many2many"), (1, 1, "one2one")])
def test_pairs_along_a_line_are_one_slice(one, other, scheme) -> None:
    pairs = [(4 + k * one, 7 + k * other) for k in range(3)]
    assert list(_runs(pairs)) == [(f"[4:{5 + 2 * one}]", f"[7:{8 + 2 * other}]", scheme)]
