"""Power: what its rules find in slips and do not find in documents that are right."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from attrs import evolve

from tests.checks.power_changes import KINDS, power_changes
from tests.support.mutations import changed, findings
from tests.support.programs import ROOT
from tests.support.rules import KNOWN, linked, put
from tests.support.rules import findings as found_by
from trnspec.api import graph as load
from trnspec.api import registry
from trnspec.checks.reconcile.power import power_conflicts
from trnspec.graph.graph import Graph
from trnspec.graph.quotes import draws, upper_power
from trnspec.loading.pipeline import link, load_document
from trnspec.model.quotes import Power
from trnspec.model.ref import Ref
from trnspec.yaml import read_text

NVIDIA = str(ROOT / "plugins" / "trnspec-nvidia" / "src" / "trnspec_nvidia" / "catalog")
RULES = [r for r in registry().rules if r.code.id.startswith("TRN8")]
SEED = 20261122
EACH = 10
LEAST = 0.9

DOCUMENT = """\
api_version: trnspec/v1
kind: Power
metadata: {{name: {of}-{type}-example, title: Example, source: {source}}}
spec: {{of: {of}, type: {type}, power: {power}{more}}}
"""
PAGE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: sheet-2026-11, title: A newer data sheet}
spec: {publisher: Example, as_of: 2026-11-01, rank: vendor-chip-page}
"""


@pytest.fixture(scope="module")
def graph():
    """The catalogs that have powers, all of whose documents are checked."""
    return Graph({name: evolve(node, target=True) for name, node in load([NVIDIA]).nodes.items()})


@pytest.fixture(scope="module")
def context(graph) -> Graph:
    """The same as context of documents that are added."""
    return Graph({name: evolve(node, target=False) for name, node in graph.nodes.items()})


def test_no_findings_in_the_shipped_catalogs(graph) -> None:
    assert [] == [d for d in findings(graph, RULES) if d.code != "TRN304"]


def test_slips_are_found(graph) -> None:
    """Of every kind, in a sample; almost always in the document that was changed."""
    possible = defaultdict(list)
    for change in power_changes(graph):
        possible[change.kind].append(change)
    chosen = random.Random(SEED)
    found, placed, made, missed = Counter(), Counter(), Counter(), []
    for kind, changes in possible.items():
        for change in chosen.sample(changes, min(EACH, len(changes))):
            reported = findings(changed(graph, change), RULES)
            made[kind] += 1
            found[kind] += bool(reported)
            placed[kind] += any(Path(d.where.file).stem == change.name for d in reported)
            missed += [] if reported else [str(change)]

    assert set(KINDS) == set(possible)
    assert LEAST <= found.total() / made.total(), missed
    assert LEAST <= placed.total() / found.total(), placed


def codes(context, power, of="trn2.48xlarge", type="maximum", source="sheet-2026-11", more="") -> set:
    """The codes found in one more document of power."""
    text = DOCUMENT.format(of=of, type=type, source=source, power=power, more=more)
    readings = [load_document(read_text(t, name), KNOWN) for t, name in ((PAGE, "page.yaml"), (text, "example.yaml"))]
    added = link([r for r in readings if r.node is not None])[0]
    found = findings(Graph({**context.nodes, **added.nodes}), RULES)
    return {d.code for d in found if d.where.file == "example.yaml"}


@pytest.mark.parametrize(
    ("power", "more"),
    [
        ("500 W", {"of": "trainium2", "type": "tdp"}),
        ("over 1,000 W", {"of": "trainium3", "type": "tdp"}),
        ("560 W", {"of": "h100-sxm", "type": "typical", "more": ", load: training"}),
        ("400 W", {"of": "h100-sxm", "type": "configurable-tdp"}),
        ("700 W", {"of": "h100-sxm", "type": "tdp"}),
        ("7.6 kW", {"of": "dgx-h100", "type": "measured", "more": ", load: HPL"}),
        ("19.8 kW", {"of": "dgx-h100", "type": "nameplate"}),
        ("115 kW", {"of": "gb300-nvl72", "type": "typical"}),
        ("12 kW", {"of": "p5.48xlarge"}),
        ("~30 kW", {"of": "trn3-gen1-server"}),
    ],
)
def test_powers_that_may_be(context, power, more) -> None:
    assert set() == codes(context, power, **more)


@pytest.mark.parametrize(
    ("power", "more", "expected"),
    [
        ("5 kW", {"of": "trainium2", "type": "tdp"}, "TRN805"),
        ("70 W", {"of": "h200", "type": "typical"}, "TRN804"),
        ("7 kW", {"of": "h200", "type": "nameplate"}, "TRN804"),
        ("500 W", {"of": "h100-sxm", "type": "tdp"}, "TRN806"),
        ("5.6 kW", {"of": "p5.48xlarge"}, "TRN813"),
        ("100 kW", {"of": "p5.48xlarge"}, "TRN813"),
        ("700 W", {"of": "llama-3-8b"}, "TRN801"),
        ("11 kW", {"of": "p5.48xlarge", "more": ", scope: package"}, "TRN801"),
        ("1 kW", {"of": "trainium3", "type": "tdp", "source": "dcd-trainium3-2024"}, "TRN807"),
        ("6 kW", {"of": "dgx-h200", "type": "typical", "source": "nvidia-dgx-h100-datasheet-2023"}, "TRN807"),
    ],
)
def test_powers_that_cannot_be(context, power, more, expected) -> None:
    assert {expected} == codes(context, power, **more)


def test_likely_cause_is_named(graph) -> None:
    edits = {
        ("dgx-h100-maximum", "1.02 kW"): "factor of 0.1: 10,200 W",
        ("dgx-b200-maximum", "1.7875 kW"): "one chip: 8 x 1,787.5 = 14,300 W",
    }
    for (name, text), hint in edits.items():
        change = next(c for c in power_changes(graph) if c.name == name)
        one = type(change)("", name, ((("spec", "power"), text),), change.before)

        assert any(hint in d.hint for d in findings(changed(graph, one), RULES))


def test_the_power_of_a_chip_is_found_by_type(graph) -> None:
    chip = graph.named("h100-96gb-hbm2e")

    assert ["configurable-tdp"] == [d.type for d in draws(graph, chip)]
    assert "500 W" == upper_power(graph, chip).figure.value.text
    assert () == draws(graph, graph.named("trainium3"))
    assert upper_power(graph, graph.named("trainium3")) is None


@pytest.mark.parametrize(
    ("type", "power", "code", "why"),
    [("tdp", "500 W", "TRN806", "digits"), ("maximum", "100 W", "TRN804", "type"), ("tdp", "1 kW", None, None)],
)
def test_the_power_of_a_chip_is_a_design_power(graph, type, power, code, why) -> None:
    """The figure of the chip itself is compared with the documents on it."""
    name = next(n.name for n in graph.of(Power) if n.spec.type == "tdp" and n.spec.of.name == "trainium3")
    plain = graph.replace(name, evolve(graph.named(name).spec, type=type))
    one = put(plain, name, "power", power)
    chip = put(one, "trainium3", "power", "1,000 W")
    conflicts = [(c.code, c.why) for c in power_conflicts(chip) if c.one.subject.name == "trainium3"]

    assert conflicts == ([] if code is None else [(code, why)])


@pytest.mark.parametrize(
    ("name", "as_of", "message"),
    [
        # The newest power is of 2025-03-04; a year counts as its December.
        ("b2.large-typical", "2023-09-30", ""),
        ("b2.large-typical", "2023", ""),
        ("b2.large-typical", "2023-08", "the typical power is of 2023-08, 19 months before the newest"),
        ("b2.large-maximum", "2019", ""),
        # beta2 was launched in 2024-12.
        ("beta2-tdp", "2024-12", ""),
        ("beta2-tdp", "2024-12-31", ""),
        ("beta2-tdp", "2024", ""),
        ("beta2-tdp", "2024-11-30", "the source is of 2024-11-30, before beta2 was launched (2024-12)"),
        ("beta2-tdp", "2023", "the source is of 2023, before beta2 was launched (2024-12)"),
    ],
)
def test_a_power_is_stale_after_18_months_and_a_forecast_before_the_launch(name, as_of, message) -> None:
    source, node = linked().named("list-2024-05"), linked().named(name)
    graph = linked().replace(source.name, evolve(source.spec, as_of=as_of))
    moved = evolve(node, metadata=evolve(node.metadata, source=Ref(source.name)))
    changed = Graph({**graph.nodes, name: moved})
    found = [d for d in found_by("TRN807", changed) if d.where.file == node.document.file]

    assert [d.message.startswith(message) for d in found] == [True] * bool(message)
