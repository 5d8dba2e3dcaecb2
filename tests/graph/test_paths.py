"""trnspec.graph.paths and trnspec.graph.values: what a path means for a kind, and what a document has there."""

import pytest
from attrs import evolve, frozen

import trnspec
from tests.support.small_catalog import GRAPH
from trnspec.graph.graph import Graph
from trnspec.graph.paths import paths, place, present_path, total_paths, unknown_path
from trnspec.graph.values import Sort
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.ref import Ref
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.units import Dimension

SPECS = (Core, Chip, Link, Server, UltraServer, Source)


@pytest.mark.parametrize(
    ("spec", "path", "holds", "total"),
    [
        (Chip, "memory.capacity", Dimension.INFORMATION, False),
        (Server, "memory.capacity", Dimension.INFORMATION, True),
        (Server, "chip.memory.capacity", Dimension.INFORMATION, False),
        (Server, "stated.memory.capacity", Dimension.INFORMATION, False),
        (UltraServer, "server.memory.capacity", Dimension.INFORMATION, True),
        (UltraServer, "chips.count", Sort.COUNT, True), (UltraServer, "host.memory", Dimension.INFORMATION, True),
        (Server, "host.memory", Dimension.INFORMATION, False), (Server, "peak", Sort.GROUP, True),
        (Server, "memory", Sort.GROUP, True), (Chip, "launched", Sort.DATE, False),
        (Chip, "memory.technology", Sort.WORD, False), (Chip, "other.share", Dimension.RATIO, False),
        (Link, "other.odd", None, False), (Server, "chip", Sort.WORD, False), (Server, "chip.name", Sort.WORD, False),
        (Server, "name", Sort.WORD, False),
    ],
)  # fmt: skip
def test_place(spec, path, holds, total) -> None:
    found = place(GRAPH, spec, path)

    assert found is not None
    assert (path, holds, total) == (found.path, found.holds, found.total)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (Chip, "memory.capacty"), (Chip, "memory.capacity.value"), (Chip, "chips.count"), (Chip, "other.nothing"),
        (Chip, ""), (Chip, "memory..capacity"), (Server, "links.bandwidth.both"), (Server, "memory.stacks.capacity"),
        (Server, "server.host.memory"), (UltraServer, "network.peak"), (Source, "memory.capacity"),
    ],
)  # fmt: skip
def test_no_place(spec, path) -> None:
    assert place(GRAPH, spec, path) is None


@pytest.mark.parametrize(
    ("spec", "path", "hint"),
    [
        (Server, "links.bandwidth.both", "chip.links.bandwidth.both"),
        (UltraServer, "network.peak", "server.network.peak"),
        (Chip, "sbuf.banks", "core.sbuf.banks"),
        (Chip, "nothing", ""),
    ],
)
def test_why_not(spec, path, hint) -> None:
    assert unknown_path(GRAPH, spec, path).endswith(hint)
    assert bool(hint) == bool(unknown_path(GRAPH, spec, path))


@pytest.mark.parametrize(
    ("spec", "path", "present"),
    [
        (Chip, "efa", ""), (Chip, "server.efa.cards", ""), (Server, "efa", "network"),
        (Server, "efa.bandwidth", "network.bandwidth"), (Server, "efa.cards", "network.nics"),
        (Server, "network.bandwidth", ""), (Server, "server.efa.cards", ""),
        (Server, "fabric.bandwidth", "fabric.bandwidth.both"), (UltraServer, "efa", "network"),
        (UltraServer, "efa.bandwidth", "network.bandwidth"), (UltraServer, "efa.cards", "network.nics"),
        (UltraServer, "server.efa.cards", "server.network.nics"),
        (UltraServer, "fabric.bandwidth", "fabric.bandwidth.both"),
        (UltraServer, "server.fabric.bandwidth", "server.fabric.bandwidth.both"), (UltraServer, "chip.efa", ""),
        (UltraServer, "stated.efa.bandwidth", "stated.network.bandwidth"),
        (UltraServer, "stated.efa", "stated.network"), (UltraServer, "server.stated.efa", ""),
        (UltraServer, "between_servers.bandwidth", "between_servers.bandwidth.both"),
        (UltraServer, "servers.server.efa.cards", ""), (Cluster, "efa", "network"),
        (Cluster, "efa.bandwidth", "network.bandwidth"), (Cluster, "efa.cards", "network.nics"),
        (Cluster, "server.efa.cards", "server.network.nics"), (Cluster, "fabric.bandwidth", "fabric.bandwidth.both"),
        (Cluster, "server.fabric.bandwidth", "server.fabric.bandwidth.both"),
    ],
)  # fmt: skip
def test_present_path(spec, path, present) -> None:
    """Of a renamed attribute of the kind, of a part that the path names, and of any part; empty where none is renamed."""
    assert present == present_path(spec, path)
    if present:
        assert f"{path} is now {present}" == unknown_path(GRAPH, spec, path)


@pytest.mark.parametrize("spec", SPECS)
def test_every_path_is_a_place(spec) -> None:
    """What is offered can be asked, in the small catalog and the shipped one, and is offered once."""
    for made in (GRAPH, trnspec.load().graph):
        offered = list(paths(made, spec))

        assert [p for p in offered if place(made, spec, p) is None] == []
        assert sorted(set(offered)) == sorted(offered)


@pytest.mark.parametrize("spec", [Server, UltraServer])
def test_totals_are_places_that_say_so(spec) -> None:
    totals = set(total_paths(GRAPH, spec))

    assert totals
    assert totals == {p for p in paths(GRAPH, spec, parts=False) if (f := place(GRAPH, spec, p)) and f.total}


def test_every_figure_of_the_catalog_is_found_at_its_path() -> None:
    """All that a document states, a printed ratio apart, is where its path says, with the same value."""
    cat = trnspec.load()
    seen = 0
    for bound in cat:
        for path, figure in bound.figures.items():
            if path.startswith("ratios."):
                continue
            found = place(cat.graph, type(bound.node.spec), path)
            assert found is not None, path
            read = found.read(bound.node)
            assert read is not None
            assert (figure.amount, figure.value.text) == (read.value, read.text)
            seen += 1

    assert seen > 100


def test_parts_that_are_missing() -> None:
    """A reference that leads nowhere, or to another kind, makes figures unknown; it is reported where it is."""
    box = GRAPH.named("box")
    for name in ("nothing", "wire"):
        spec = evolve(box.spec, chips=evolve(box.spec.chips, chip=Ref(name)))
        changed = Graph({**GRAPH.nodes, "box": evolve(box, spec=spec)})
        for path in ("memory.capacity", "chip.memory.capacity", "peak"):
            found = place(changed, Server, path)
            assert found is not None
            assert found.read(changed.named("box")) is None

    rack = GRAPH.named("rack")
    spec = evolve(rack.spec, servers=evolve(rack.spec.servers, server=Ref("wire")))
    changed = Graph({**GRAPH.nodes, "rack": evolve(rack, spec=spec)})
    for path in ("host.memory", "chips.count", "server.host.memory"):
        found = place(changed, UltraServer, path)
        assert found is not None
        assert found.read(changed.named("rack")) is None


@frozen(kw_only=True)
class Extended(Server):
    """A kind that a plugin derives from a known one."""

    racks: int | None = None


def test_derived_kinds() -> None:
    """A derived kind has the totals of what it is derived from, and its own fields."""
    node = GRAPH.named("box")
    fields = {f: getattr(node.spec, f) for f in ("chips", "host")}
    changed = Graph({**GRAPH.nodes, "box": evolve(node, kind="Extended", spec=Extended(racks=3, **fields))})
    values = []
    for path in ("racks", "memory.capacity", "chip"):
        found = place(changed, Extended, path)
        assert found is not None
        read = found.read(changed.named("box"))
        values.append(read and read.text)

    assert ["3", "400 GiB", "full"] == values
