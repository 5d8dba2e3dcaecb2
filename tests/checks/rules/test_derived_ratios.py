"""trnspec.checks.rules.derived: printed ratios between generations."""

from __future__ import annotations

import attrs

from tests.support.rules import bare, findings
from trnspec.graph.graph import Graph
from trnspec.model.chip import PrintedRatio
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.quantities.quantity import parse


def said(*ratios: tuple[str, str], over: str = "trainium1", verdict: str | None = None) -> Graph:
    """The catalog with these ratios, and no others, printed of Trainium2."""
    printed = tuple(
        PrintedRatio(
            of=of,
            over=Ref(over),
            says=Figure(value=parse(says)),
            source=Ref("neuron-trainium2-2026-08"),
            verdict=verdict,
        )
        for of, says in ratios
    )
    graph = bare()
    for chip in ("trainium2", "trainium3"):
        graph = graph.replace(chip, attrs.evolve(graph.named(chip).spec, ratios=printed if chip == "trainium2" else ()))
    return graph


def test_ratio_with_zero_denominator_hides_no_finding():
    """A chip that is not there is reported by its reference; the ratios after it are checked all the same."""
    graph = said(("spec.peak.dense.bf16", "3.0x"), ("spec.memory.capacity", "9x"))
    spec = graph.named("trainium2").spec
    first = attrs.evolve(spec.ratios[0], over=Ref("trainium0"))
    reported = findings("TRN606", graph.replace("trainium2", attrs.evolve(spec, ratios=(first, spec.ratios[1]))))

    assert [d.where.path for d in reported] == [("spec", "ratios", 1, "says")]
