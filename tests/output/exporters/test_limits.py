"""Fabrics of any size: an exporter refuses before it builds one."""

import tracemalloc
import xml.etree.ElementTree as ET

import pytest
from attrs import evolve

from tests.support.rules import document, graph, source
from trnspec.output.exporters import export
from trnspec.output.exporters.exported import ExportError
from trnspec.yaml import read_text

CHIP = document("Chip", "part", "spec: {peak: {}, memory: {capacity: 32 GiB}}", "source: page")
LINK = document("Link", "wire", "spec: {connects: chips, bandwidth: {per_direction: 128 GB/s}}", "source: page")
SHAPES = [
    (10**9, "{shape: torus, dimensions: [1000, 1000, 1000]}"),
    (2**53, "{shape: torus, dimensions: [9007199254740992]}"),
    (10**9, "{shape: fully-connected}"),
    (10**9, "{shape: ring}"),
    (2**20, "{shape: hypercube, dimensions: [20]}"),
    (10**6, "{shape: switched, levels: [{name: a, chips: 1000, count: 1000}, {name: b, chips: 1000000, count: 1}]}"),
]


def server(count: int, topology: str, title: str = "T"):
    spec = f"spec: {{chips: {{chip: part, count: {count}}}, fabric: {{link: wire, topology: {topology}}}}}"
    catalog = graph(source("page", "2024-01-01"), CHIP, LINK, document("Server", "big", spec, "source: page"))
    return evolve(catalog.named("big"), metadata=evolve(catalog.named("big").metadata, title=title)), catalog


@pytest.mark.parametrize("format", ["svg", "dot", "astra-sim", "infragraph"])
@pytest.mark.parametrize(("count", "topology"), SHAPES)
def test_large_fabrics(format, count, topology) -> None:
    node, catalog = server(count, topology)
    tracemalloc.start()
    with pytest.raises(ExportError) as caught:
        export(format, node, catalog)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert "not-expressible" == caught.value.reason
    assert peak < 10_000_000


HOSTILE = 'A\x1b]0;t\x07\x9b \u202e<script>`x`[a](javascript:1)|"\\'


def test_titles_that_are_hostile() -> None:
    """A plugin may build a document with any title; what is written holds none of its control characters."""
    node, catalog = server(4, "{shape: torus, dimensions: [2, 2]}", HOSTILE)
    svg, *others = (export(format, node, catalog).text for format in ("svg", "dot", "astra-sim", "infragraph"))

    assert "A\\x1b]0;t\\x07\\x9b \\u202e<script>" in "".join(ET.fromstring(svg).itertext())
    for text in (svg, *others):
        assert {c for c in text if not c.isprintable()} == {"\n"}
    assert {"description": HOSTILE}.items() <= read_text(others[-1]).data.items()
