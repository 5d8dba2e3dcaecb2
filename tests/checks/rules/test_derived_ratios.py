"""trnspec.checks.rules.derived: printed ratios between generations."""

from __future__ import annotations

import attrs
import pytest

from tests.support.rules import bare, findings, shipped
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


@pytest.mark.parametrize(
    ("of", "says"),
    [
        ("spec.peak.dense.bf16", "3.5x"),
        ("spec.peak.dense.{bf16,fp16,tf32}", "3.5x"),
        ("spec.peak.dense.fp32", "3.8x"),
        ("spec.memory.capacity", "3x"),
        ("spec.memory.bandwidth", "3.5x"),
        ("spec.sbuf", "4.7x"),
        ("spec.links.bandwidth.both", "3.3x"),
        ("spec.cores.count", "4x"),
        ("spec.memory_pool", "4x"),
        ("spec.peak.sparse.bf16", "17x"),  # the older chip has no sparse rate
    ],
)
def test_ratios_that_the_figures_give(of, says):
    assert findings("TRN606", said((of, says))) == []


@pytest.mark.parametrize(
    ("of", "says", "given"),
    [
        ("spec.peak.dense.bf16", "3.4x", "667 TFLOPS over 190 TFLOPS is 3.51x"),
        ("spec.memory.capacity", "3.2x", "96 GiB over 32 GiB is 3x"),
        ("spec.cc_cores.usable", "3.3x", "16 over 6 is 2.67x"),
        ("spec.memory.bandwidth", "3.8x", "2.9 TB/sec over 820 GB/s is 3.54x"),
    ],
)
def test_ratios_that_they_do_not_give(of, says, given):
    (finding,) = findings("TRN606", said((of, says)))

    assert f"neuron-trainium2-2026-08 has {says}, but {given}" == finding.message
    assert finding.where.path == ("spec", "ratios", 0, "says")
    assert [s.file.rsplit("/", 1)[1].removesuffix(".yaml") for s in finding.see] == ["trainium2", "trainium1"]


def test_each_of_several_figures_is_divided():
    reported = findings("TRN606", said(("spec.peak.dense.{bf16,fp32}", "3.8x")))

    assert len(reported) == 1
    assert "667 TFLOPS" in reported[0].message


@pytest.mark.parametrize("verdict", ["rounded", "superseded", "rejected"])
def test_a_ratio_that_was_judged(verdict):
    assert findings("TRN606", said(("spec.peak.dense.bf16", "3.0x"), verdict=verdict)) == []


def test_ratio_with_zero_denominator_hides_no_finding():
    """A chip that is not there is reported by its reference; the ratios after it are checked all the same."""
    graph = said(("spec.peak.dense.bf16", "3.0x"), ("spec.memory.capacity", "9x"))
    spec = graph.named("trainium2").spec
    first = attrs.evolve(spec.ratios[0], over=Ref("trainium0"))
    reported = findings("TRN606", graph.replace("trainium2", attrs.evolve(spec, ratios=(first, spec.ratios[1]))))

    assert [d.where.path for d in reported] == [("spec", "ratios", 1, "says")]


def test_ratio_of_zero():
    (finding,) = findings("TRN606", said(("spec.memory.capacty", "3x")))

    assert finding.where.path == ("spec", "ratios", 0, "of")


def test_the_shipped_ratios_are_given_or_judged():
    assert findings("TRN606", shipped()) == []
