"""trnspec.graph.composition: systems of any depth and of any kind, those of a plugin included."""

import functools
import operator
from pathlib import Path

import pytest
from attrs import evolve

import trnspec
from tests.support.invented_plugins import DOCUMENTS, module
from tests.support.tables import tables
from trnspec.builtin import plugin as builtin
from trnspec.checks.reconcile.relations import relations
from trnspec.checks.runner import run
from trnspec.errors import QuantityError
from trnspec.graph.composition import chip_count, chips, members, part_kinds, servers
from trnspec.graph.graph import Graph
from trnspec.graph.paths import place, total_paths
from trnspec.graph.totals import sums, total
from trnspec.loading.pipeline import link, load_document
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.parts import CountRange
from trnspec.model.ref import Ref
from trnspec.model.reflection import dotted
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Registry
from trnspec.yaml import read_text

TABLES = tables(__file__)

SHIPPED = trnspec.load().graph
TILE = module(Path(__file__).with_name("trnspec_tile.py"))
KNOWN = Registry.of([builtin, evolve(TILE.plugin, catalogs=())])


@functools.cache
def tile(**changed: str) -> Graph:
    """The documents of the plugin; ``changed`` replaces the text of some by name."""
    texts = [changed.get(Path(file).stem.replace("-", "_"), text) for file, text in DOCUMENTS.items()]
    graph, problems = link([load_document(read_text(text, f"{i}.yaml"), KNOWN) for i, text in enumerate(texts)])
    assert not problems
    return graph


def text(name: str, old: str, new: str) -> dict[str, str]:
    """A document with another text in one place."""
    whole = next(t for file, t in DOCUMENTS.items() if Path(file).stem == name)
    assert old in whole
    return {name.replace("-", "_"): whole.replace(old, new)}


@pytest.mark.parametrize(
    ("name", "chips_", "servers_"),
    [("tile-1", 1, None), ("tile-server", 4, 1), ("tile-pod", 8, 2), ("plain-rack", 32, 8), ("tile-hall", 280, 70)],
)
def test_chips_and_servers_at_every_depth(name, chips_, servers_) -> None:
    graph = tile()
    found = servers(graph, graph.named(name))

    assert (chips_, graph.named("tile-1")) == chips(graph, graph.named(name))
    assert chips_ == chip_count(graph, graph.named(name))
    assert servers_ == (None if found is None else found[0])


def test_numbers_of_each_kind_of_part() -> None:
    graph = tile()
    hall = graph.named("tile-hall")
    counts = {
        kind.__name__: [(count, part.name) for count, part in members(graph, hall, kind) or ()]
        for kind in (TILE.Rack, UltraServer, Server, Chip)
    }

    # 10 racks of 3 servers and 2 pods of 2 servers each.
    assert counts == {
        "Rack": [(10, "tile-rack")],
        "UltraServer": [(20, "tile-pod")],
        "Server": [(70, "tile-server")],
        "Chip": [(280, "tile-1")],
    }


@pytest.mark.parametrize(
    ("name", "path", "text_"),
    [
        ("tile-rack", "memory.capacity", "1,792 GiB"),
        ("tile-hall", "memory.capacity", "17,920 GiB"),
        ("tile-hall", "peak.dense.bf16", "112 PFLOPS"),
        ("tile-rack", "host.memory", "1,792 GiB"),
        # What a plugin's chip and a plugin's rack bring adds up too.
        ("tile-server", "scratch", "2,048 MiB"),
        ("tile-hall", "scratch", "143,360 MiB"),
        ("tile-hall", "cooling", "20 kW"),
    ],
)
def test_totals(name, path, text_) -> None:
    graph = tile()

    assert text_ == str(total(graph, graph.named(name), ("spec", *path.split("."))))


@pytest.mark.parametrize(("name", "expected"), TABLES["sums"])
def test_sums(name, expected) -> None:
    """Each total once, although the rack reaches its chips on two ways."""
    graph = tile()

    assert expected == [[s.at, s.text, s.parts] for s in sums(graph, graph.named(name))]


@pytest.mark.parametrize("path", ["clock_domains", "links.bandwidth.both", "nothing", "servers"])
def test_non_extensive_figure_has_no_total(path) -> None:
    graph = tile()

    assert total(graph, graph.named("tile-rack"), ("spec", *path.split("."))) is None


def test_a_total_over_different_chips_is_the_sum_of_each() -> None:
    """A pod of 2 x 4 tile-1 and 3 servers of 4 chips of another capacity: 8 x 64 + 12 x 96."""
    graph = tile()
    other = evolve(graph.named("tile-1"), metadata=evolve(graph.named("tile-1").metadata, name="tile-2"))
    other = evolve(other, spec=evolve(other.spec, memory=SHIPPED.named("trainium2").spec.memory, scratch=None))
    server = graph.named("tile-server")
    bigger = evolve(
        server,
        metadata=evolve(server.metadata, name="big-server"),
        spec=evolve(server.spec, chips=evolve(server.spec.chips, chip=Ref("tile-2"))),
    )
    rack = graph.named("tile-rack")
    boxes = (evolve(rack.spec.servers[0], server=Ref("big-server")),)
    mixed = evolve(rack, spec=evolve(rack.spec, servers=boxes))
    graph = Graph({**graph.nodes, "tile-2": other, "big-server": bigger, "tile-rack": mixed})

    whole = total(graph, mixed, ("spec", "memory", "capacity"))
    assert whole is not None
    assert ("2,176 GiB", 2176 * 2**30) == (str(whole), float(whole))
    assert [str(t) for t in whole.terms] == ["12 x 96 GiB", "16 x 64 GiB"]
    # The scratch memory of one of the two is not known, so the total is not; and there is no single chip.
    assert total(graph, mixed, ("spec", "scratch")) is None
    assert (None, 28) == (chips(graph, mixed), chip_count(graph, mixed))


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        (Chip, ["Core"]),
        (Server, ["Chip", "TileChip", "Core"]),
        (Cluster, ["Server", "Chip", "TileChip", "Core"]),
        (TILE.Hall, ["Rack", "Server", "UltraServer", "Pod", "Chip", "TileChip", "Core"]),
    ],
)
def test_kinds_of_parts(spec, kinds) -> None:
    assert kinds == [kind.__name__ for kind in part_kinds(tile(), spec)]


@pytest.mark.parametrize("graph", [SHIPPED, tile()], ids=["shipped", "plugin"])
def test_show_has_every_total_that_a_query_has(graph) -> None:
    """What is known of a total at its path is the text of the sum, and there is no other sum."""
    seen = 0
    for node in graph:
        spec = type(node.spec)
        fields = {path: place(graph, spec, path) for path in total_paths(graph, spec)}
        known = {path: value.text for path, f in fields.items() if f and (value := f.read(node))}
        shown = {s.path: s.text for s in sums(graph, node) if place(graph, spec, s.path).total}
        assert known == ({} if isinstance(node.spec, Chip) else shown), node.name
        seen += len(known)

    assert seen > 30


def test_published_totals_of_a_plugin_kind_are_checked() -> None:
    levels = {(dotted(r.total.path[1:]), str(r.terms[0]), r.level) for r in relations(tile()) if r.holds}

    assert ("stated.memory.capacity", "3 x 4 x 64 GiB of tile-1", "chips of a rack") in levels
    assert ("stated.chips", "3 x 4 of tile-server", "servers of a rack") in levels

    wrong = tile(**text("tile-rack", "1,792 GiB", "1,024 GiB"))
    found = run([r for r in KNOWN.rules if r.code.id == "TRN402"], wrong)
    assert [dotted(d.where.path) for d in found] == ["spec.stated.memory.capacity"]


# Clusters: a number of chips of which only a bound is published.


def test_the_chips_of_a_cluster_are_a_bound() -> None:
    cluster = trnspec.load()["trn1-ultracluster"]

    assert CountRange(100_000) == cluster.chip_count
    assert (">= 100,000", ">= 3,200,000 GiB") == (str(cluster.chip_count), str(cluster.total("memory.capacity")))
    assert cluster.total("memory.capacity").interval.high is None
    # 16 chips in a server.
    assert [(CountRange(6_250), "trn1.32xlarge")] == [
        (count, part.name) for count, part in members(SHIPPED, cluster.node, Server) or ()
    ]


@pytest.mark.parametrize(
    ("text_", "count"),
    [
        ("~500,000", CountRange(450_000, 550_000)),
        ("~512", CountRange(512, 512)),
        ("over 100,000", CountRange(100_000)),
        ("up to 30,000", CountRange(0, 30_000)),
        ("512", 512),
    ],
)
def test_counts_as_printed(text_, count) -> None:
    assert count == CountRange.parse(text_)


def test_arithmetic_of_bounds() -> None:
    lower_, upper = CountRange(100), CountRange(0, 30)

    assert (CountRange(300), CountRange(0, 90)) == (3 * lower_, upper * 3)
    assert (CountRange(101), CountRange(5, 35), CountRange(100)) == (1 + lower_, upper + 5, upper + lower_)
    # Whole servers: at least 7 of 16 chips for 100 chips, at most 1 for 30.
    assert (CountRange(7), CountRange(0, 1)) == (lower_ // 16, upper // 16)
    assert (">= 100", "<= 30", "5 to 35") == (str(lower_), str(upper), str(upper + 5))


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 3), (2, 3), (2, 4), (3, None)])
def test_bounds_decide_a_comparison_where_all_counts_agree(compare, low, high) -> None:
    for other in range(6):
        answers = {compare(count, other) for count in range(low, (high or 9) + 1)}
        if len(answers) == 1:
            assert compare(CountRange(low, high), other) is answers.pop()
            continue
        with pytest.raises(QuantityError) as error:
            compare(CountRange(low, high), other)
        assert ("bounds", True) == (error.value.reason, bool(error.value.hint))
