"""trnspec.graph.provenance: the source of a value, and figures with scope, source and conflicting values, as shown."""

import pytest

from tests.support.rules import KNOWN, document, graph
from tests.support.small_catalog import GRAPH, OLD, PAGE
from tests.support.tables import tables
from trnspec.graph.provenance import figures, scope, source_of, with_provenance
from trnspec.loading.pipeline import load_document
from trnspec.yaml import read_text

TEXT = """\
api_version: trnspec/v1
kind: Server
metadata: {name: box, title: Box, source: of-the-document}
spec:
  chips: {chip: one, count: {value: 16, source: own}}
  network:
    nics: 8
    bandwidth: {value: 800 Gbps, derived: 8 x 100 Gbps}
    peak: {value: 900 Gbps, source: another}
    storage: 80 Gbps
"""


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (("chips", "count"), "own"), (("network", "nics"), "of-the-document"), (("network", "bandwidth"), None),
        (("network", "peak"), "another"), (("network", "storage"), "of-the-document"),
        (("network", "baseline"), None), (("local_storage",), None),
    ],
)  # fmt: skip
def test_source_of(path, source) -> None:
    """Its own, or that of the document; a derived figure has none, and neither has what is not there."""
    node = load_document(read_text(TEXT, "box.yaml"), KNOWN).node
    assert node is not None
    found = source_of(node, ("spec", *path))

    assert source == (None if found is None else found.name)


TABLES = tables(__file__)


@pytest.mark.parametrize(("kind", "path", "expected"), TABLES["scope"])
def test_scope(kind, path, expected) -> None:
    assert expected == scope(kind, ("spec", *path.split(".")))


FULL = figures(GRAPH, GRAPH.named("full"))


@pytest.mark.parametrize(("at", "lines", "short"), TABLES["as_text"])
def test_as_text(at, lines, short) -> None:
    assert (lines, short) == (str(FULL[at]).splitlines(), repr(FULL[at]))


def test_without_a_source() -> None:
    clock = figures(GRAPH, GRAPH.named("core"))["engines.tensor.clock"]

    assert ("", "", "", None) == (clock.source_name, clock.source_title, clock.as_of, clock.source)
    assert "  source       none" in str(clock).splitlines()
    assert "<Stated 2.8 GHz: engines.tensor.clock of core, no source>" == repr(clock)


def test_as_tables() -> None:
    markdown = FULL["peak.dense.bf16"]._repr_markdown_()
    html = FULL["peak.dense.bf16"]._repr_html_()
    rows = [
        "| value | interval | verdict | source |",
        "| ---: | ---: | --- | --- |",
        "| 600 TFLOPS | [599.5, 600.5) | adopted | The page page, 2024-02 (page, no address) |",
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
