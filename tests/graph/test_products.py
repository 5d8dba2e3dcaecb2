"""trnspec.graph.products: which chips documents and names of sources are about, in a small catalog."""

import pytest

from tests.support.rules import document, graph, source
from tests.support.tables import tables
from trnspec.graph.products import about, chips_of, is_described

PAGES = [source(name, "2024-02") for name in ("neuron-one-2024", "box-page", "a-page", "uno-and-other")]
CORE = document(
    "Core",
    "core-v2",
    "spec: {version: v2, engines: {tensor: {clock: 1 GHz}}, sbuf: {capacity: 1 MiB}}",
    "source: a-page, aliases: [kernel]",
)
SHARED = document(
    "Core", "plain", "spec: {engines: {tensor: {clock: 1 GHz}}, sbuf: {capacity: 1 MiB}}", "source: a-page"
)
CHIPS = [
    document("Chip", "one", "spec: {cores: {core: core-v2, count: 2}, memory: {capacity: 1 GiB}, links: {link: wire, ports: 2},"
             " generation: {training: 2, accelerator: 3}}", "source: a-page, aliases: [uno]"),
    document("Chip", "other", "spec: {cores: {core: plain, count: 2}, memory: {capacity: 1 GiB}, generation: {training: 2}}", "source: a-page"),
    document("Chip", "third", "spec: {cores: {core: plain, count: 2}, memory: {capacity: 1 GiB}, generation: {training: 1, accelerator: 1}}"),
    document("Chip", "fourth", "spec: {memory: {capacity: 1 GiB}}", "source: a-page"),
]  # fmt: skip
SYSTEMS = [
    document("Link", "wire", "spec: {connects: chips}", "source: a-page"),
    document("Link", "rope", "spec: {connects: servers}", "source: a-page"),
    document("Server", "box.4xlarge", "spec: {chips: {chip: other, count: 4}}", "source: a-page, aliases: [crate-4.large]"),
    document("Server", "tin.large", "spec: {chips: {chip: fourth, count: 4}, fabric: {link: wire, topology: {shape: ring, dimensions: [4]}}}"),
    document("UltraServer", "rack", "spec: {servers: {server: box.4xlarge, count: 2}}", "source: a-page"),
    document("Power", "rack-tdp", "spec: {of: rack, type: tdp, power: 1 kW}", "source: a-page"),
    document("Power", "wire-tdp", "spec: {of: wire, type: tdp, power: 1 kW}"),
    document("Cluster", "hall", "spec: {servers: [tin.large], chips: '8'}", "source: a-page"),
]  # fmt: skip
MADE = graph(*PAGES, CORE, SHARED, *CHIPS, *SYSTEMS)


@pytest.mark.parametrize(("name", "chips"), tables(__file__)["chips_of"])
def test_chips_of(name, chips) -> None:
    assert {*chips} == chips_of(MADE, MADE.named(name))


@pytest.mark.parametrize(("name", "chips"), tables(__file__)["about"])
def test_about(name, chips) -> None:
    assert {*chips} == about(MADE, name) == about(MADE, name)


@pytest.mark.parametrize(
    ("chips", "described"),
    [
        # By the name of a source, by an alias in it, by its server.
        (["one"], True), (["other"], True), (["third"], False), (["fourth"], False), (["third", "fourth"], False),
        (["third", "one"], True), ([], False),
    ],
)  # fmt: skip
def test_is_described(chips, described) -> None:
    assert described == is_described(MADE, chips) == is_described(MADE, chips)


def test_described_by_a_server_alone() -> None:
    """By one that it is in; a source about another server does not describe it."""
    made = graph(*(text for text in (*PAGES[1:3], CORE, SHARED, *CHIPS, *SYSTEMS)))

    assert [False, True, False, False] == [is_described(made, [name]) for name in ("one", "other", "third", "fourth")]
