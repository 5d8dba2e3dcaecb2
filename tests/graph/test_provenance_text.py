"""trnspec.graph.provenance: figures with scope, source and conflicting values, as they are shown."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.support.rules import document, graph
from tests.support.small_catalog import GRAPH, OLD, PAGE
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import figures, scope, source_of, with_provenance
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.quantities.quantity import parse


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("Core", "sbuf.capacity", "per core"),
        ("Chip", "memory.capacity", "per chip"),
        ("Link", "bandwidth.per_direction", "per link, one direction"),
        ("Link", "bandwidth.both", "per link, both directions added"),
        ("Link", "both.bandwidth", "per link"),
        ("Link", "per_direction.bandwidth", "per link"),
        ("Server", "host.memory", "per server"),
        ("Server", "fabric.bandwidth.both", "per chip, both directions added"),
        ("UltraServer", "between_servers.bandwidth.per_direction", "per chip, one direction"),
        ("UltraServer", "stated.peak.sparse.bf16", "per UltraServer, sparse, total as printed"),
        ("Cluster", "per_server", "per Cluster"),
        ("Price", "hourly.us-east-1", "per server"),
        ("Power", "power", "per unit"),
        ("Chip", "tensor_peak.dense.bf16", "per chip, dense, tensor engines alone"),
        ("Core", "engines.tensor.clock", "per core, tensor engine"),
        ("Core", "engines.vector.clock", "per core, vector engine"),
        ("Core", "engines.scalar.clock", "per core, scalar engine"),
        ("Core", "engines.gpsimd.clock", "per core, GpSimd engine"),
        ("Chip", "achieved.dense", "per chip, dense, achieved, not peak"),
        ("Core", "achieved_per_engine.x", "per core, achieved, not peak"),
        ("Server", "network.baseline", "per server, baseline"),
    ],
)
def test_scope(kind, path, expected) -> None:
    assert expected == scope(kind, ("spec", *path.split(".")))


FULL = figures(GRAPH, GRAPH.named("full"))


@pytest.mark.parametrize(
    ("at", "lines", "short"),
    [
        (
            "peak.dense.bf16",
            [
                "600 TFLOPS  (peak.dense.bf16 of full)",
                "  interval     [599.5, 600.5 TFLOPS)",
                "  scope        per chip, dense",
                "  source       The page page, 2024-02 (page)",
                "  superseded   610 TFLOPS (old, 2023)",
            ],
            "<Stated 600 TFLOPS: peak.dense.bf16 of full, page 2024-02>",
        ),
        (
            "links.bandwidth.both",
            [
                "1 TB/s  (links.bandwidth.both of full)",
                "  interval     [0.5, 1.5 TB/s)",
                "  scope        per chip, both directions added",
                "  source       The page old, 2023 (old, line 3)",
            ],
            "<Stated 1 TB/s: links.bandwidth.both of full, old 2023>",
        ),
        (
            "peak.dense.fp8",
            [
                "1.2 PFLOPS  (peak.dense.fp8 of full)",
                "  interval     [1.15, 1.25 PFLOPS)",
                "  scope        per chip, dense",
                "  source       derived: twice the bf16",
            ],
            "<Stated 1.2 PFLOPS: peak.dense.fp8 of full, derived>",
        ),
    ],
)
def test_as_text(at, lines, short) -> None:
    assert (lines, short) == (str(FULL[at]).splitlines(), repr(FULL[at]))


def test_without_a_source() -> None:
    clock = figures(GRAPH, GRAPH.named("core"))["engines.tensor.clock"]

    assert ("", "", "", None) == (clock.source_name, clock.source_title, clock.as_of, clock.source)
    assert "  source       none" in str(clock).splitlines()
    assert "<Stated 2.8 GHz: engines.tensor.clock of core, no source>" == repr(clock)


def test_bounds() -> None:
    """A figure without an upper bound; one with digits that the interval needs."""
    wire = GRAPH.named("wire")
    made = GRAPH.replace("wire", evolve(wire.spec, other={"odd": Figure(value=parse(">= 2.50 GB"))}))

    assert "  interval     [2.495, and more)" in str(figures(made, made.named("wire"))["other.odd"]).splitlines()


def test_as_tables() -> None:
    markdown = FULL["peak.dense.bf16"]._repr_markdown_()
    html = FULL["peak.dense.bf16"]._repr_html_()
    rows = [
        "| value | interval | verdict | source |",
        "| ---: | ---: | --- | --- |",
        "| 600 TFLOPS | [599.5, 600.5) | adopted | The page page, 2024-02 (page) |",
        "| 610 TFLOPS |  | superseded | old, 2023 |",
    ]

    assert ["### peak.dense.bf16 of full, per chip, dense", "", *rows] == markdown.strip().splitlines()
    assert "<h4>peak.dense.bf16 of full, per chip, dense</h4>" in html
    assert 2 == html.count("<tr><td ")


def test_a_spec_with_provenance() -> None:
    """Every figure, also in lists and mappings, and nothing else, is replaced."""
    node = GRAPH.named("full")
    fields = with_provenance(GRAPH, node)

    assert FULL["memory.capacity"] == fields["memory"].capacity
    assert FULL["other.share"] == fields["other"]["share"]
    assert (node.spec.launched, node.spec.dies, node.spec.links.ports, None) == (
        fields["launched"], fields["dies"], fields["links"].ports, fields["power"])  # fmt: skip


def test_a_source_that_is_not_there() -> None:
    """The name stays, without title and date; claims too."""
    node = GRAPH.named("full")
    claims = tuple(evolve(claim, source=Ref("gone", type(None))) for claim in node.claims)
    metadata = evolve(node.metadata, source=Ref("gone", type(None)))
    made = Graph({**GRAPH.nodes, "full": evolve(node, metadata=metadata, claims=claims)})
    figure = figures(made, made.named("full"))["peak.dense.bf16"]

    assert ("gone", "", "") == (figure.source_name, figure.source_title, figure.as_of)
    assert [("gone", "")] == [(c.source, c.as_of) for c in figure.conflicting]


def test_the_source_of_a_printed_ratio_is_next_to_it() -> None:
    """Not that of the document, and not one that is elsewhere in it."""
    chip = document(
        "Chip",
        "new",
        "spec: {memory: {capacity: 8 GiB}, ratios: [{of: spec.memory.capacity, over: new, says: 1x, source: old, where: p}]}",
        "source: page",
    )
    made = graph(PAGE, OLD, chip)
    ratio = figures(made, made.named("new"))["ratios.0.says"]

    assert ("old", "The page old", "2023") == (ratio.source_name, ratio.source_title, ratio.as_of)
    assert "old" == source_of(made.named("new"), ("spec", "ratios", 0, "says")).name
