"""trnspec.catalog.versions.diff: what differs, by how much, by which source, and why."""

import functools
import random
import re
import shutil

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.programs import ROOT
from tests.support.rules import document, graph, source
from trnspec.api import load
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.versions.diff import differences
from trnspec.graph.graph import Graph

PAGES = (source("old", "2022-05-01"), source("new", "2024-06-02"))


def chip(spec: str, *claims: str, metadata: str = "source: new") -> str:
    return document("Chip", "part", f"spec: {spec}\nclaims: [{', '.join(claims)}]", metadata)


BEFORE = chip(
    "{launched: 2022-10, dies: 2, peak: {dense: {bf16: 210 TFLOPS, fp16: 210 TFLOPS}},"
    " memory: {capacity: 32 GiB, bandwidth: 820 GB/s}, sbuf: 1 MiB}",
    "{at: spec.dies, says: 2, source: old}",
    "{at: spec.sbuf, says: 1 MiB, source: old}",
    metadata="source: old, where: line 1",
)
AFTER = chip(
    "{launched: 2022-10, dies: 4, peak: {dense: {bf16: 190 TFLOPS, fp16: 190 TFLOPS}},"
    " memory: {capacity: 32768 MiB, bandwidth: 820 GB/s, technology: HBM}, power: 500 W}",
    '{at: "spec.peak.dense.{bf16,fp16}", says: 210 TFLOPS, source: old, verdict: superseded, reason: It was lowered.}',
    "{at: spec.dies, says: 2, source: old, verdict: superseded, reason: It was two.}",
)


@functools.cache
def whole() -> Catalog:
    return load()


@functools.cache
def found():
    return differences(graph(*PAGES, BEFORE), graph(*PAGES, AFTER))


def test_lines_are_short() -> None:
    text = str(whole().then("2023-05").diff(whole()))

    assert max(map(len, text.splitlines())) <= 80


def test_diff_of_trn1_between_two_dates(tmp_path) -> None:
    """The rates were lowered by 9.5 per cent: from what, to what, by which source, and why."""
    shutil.copytree(ROOT / "catalog", tmp_path / "copy")
    file = tmp_path / "copy" / "chips" / "trainium1.yaml"
    claim = "  - {at: spec.memory.capacity, says: 32 GiB, source: neuron-trn1-2023-02, where: line 47}\n"
    file.write_text(file.read_text(encoding="utf-8").replace("claims:\n", f"claims:\n{claim}", 1), encoding="utf-8")
    catalog = load([str(tmp_path / "copy")])
    made = catalog.then("2023-03").diff(catalog.then("2024-03"), "trainium1")
    rates = {c.at: c for c in made.figures if c.at.startswith("peak.")}
    bf16 = rates["peak.dense.bf16"]

    assert {"bf16", "fp16", "tf32", "cfp8", "fp32", "int8"} == {at.rpartition(".")[2] for at in rates}
    assert {0.9048} == {round(c.ratio, 4) for c in rates.values()}
    assert ("210 TFLOPS", "2023-02-24") == (bf16.old.says, bf16.old.as_of)
    assert ("190 TFLOPS", "2024-02-13") == (bf16.new.says, bf16.new.as_of)
    assert "superseded" == bf16.verdict
    assert "lowered the rate to 190 on 2023-04-15" in bf16.reason


@settings(max_examples=5)
@given(st.randoms(use_true_random=False), st.data())
def test_diff_reports_exactly_the_changed_figures(chance: random.Random, data) -> None:
    """Figures anywhere in the catalog, in whatever order its documents come."""
    # Entries of lists, such as ratios.0.says, are not replaced by path.
    fields = [(b.name, at, f.value.value) for b in whole() for at, f in b.figures.items()]
    places = [(name, at) for name, at, value in fields if value and not re.search(r"\.\d+\.", at)]
    chosen = data.draw(st.lists(st.sampled_from(places), max_size=4, unique=True))
    made = whole()
    for name, at in chosen:
        quantity = whole()[name].figure(at).value
        made = made.replace(name, {at: f"{int(quantity.number) + 7} {quantity.unit.symbol}"})
    nodes = list(made.graph.nodes.items())
    chance.shuffle(nodes)
    there = whole().diff(evolve(made, graph=Graph(dict(nodes))))
    back = made.diff(whole())

    assert set(chosen) == {(c.of, c.at) for c in there.figures} == {(c.of, c.at) for c in back.figures}
    assert bool(chosen) == bool(there)
    assert () == there.words == there.claims == there.restated
    for one, other in zip(there.figures, back.figures, strict=True):
        assert (one.old, one.new) == (other.new, other.old)
