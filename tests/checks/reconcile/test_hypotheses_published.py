"""trnspec.checks.reconcile.hypotheses: what was found in the published pages, reproduced."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.rules import FP32, bare, causes, claim, efa, interval, put, shipped, sites
from trnspec.checks.reconcile.hypotheses import explain
from trnspec.checks.reconcile.relations import relations
from trnspec.checks.reconcile.suspects import suspects
from trnspec.graph.graph import Graph
from trnspec.quantities.quantity import parse


def gap(graph: Graph, name: str, at: str) -> set[str]:
    """The explanations of whatever is wrong at a place of a graph: its figure, or its newest claim."""
    found = [
        s for s in suspects(relations(graph)) if s.site.node.name == name and s.site.path[1:] == tuple(at.split("."))
    ]
    assert len(found) == 1
    return {e.id for e in explain(found[0], graph)}


@pytest.mark.parametrize(
    ("name", "at", "says", "expected"),
    [
        pytest.param("trainium1", "peak.dense.bf16", "210 TFLOPS", {"older-claim"}, id="A1"),
        pytest.param("trainium1", "peak.dense.fp32", "52.5 TFLOPS", {"older-claim"}, id="A2"),
        pytest.param("trn1.32xlarge", "stated.peak.dense.bf16", "3,360 TFLOPS", {"older-claim"}, id="A4"),
        pytest.param("trn1.32xlarge", "stated.peak.dense.fp32", "840 TFLOPS", {"older-claim"}, id="A4 FP32"),
        pytest.param("trainium1", "memory.bandwidth", "820 GiB/s", {"decimal-unit", "older-claim"}, id="A5"),
        pytest.param("trainium1", "memory.capacity", "32 GB", {"decimal-unit", "older-claim"}, id="A7"),
        pytest.param("trn1.32xlarge", "stated.memory.capacity", "512 GB", {"decimal-unit"}, id="A7 server"),
        pytest.param(
            "trn3-gen1-ultraserver", "fabric.bandwidth.both", "2,048 GiB/s", {"decimal-unit", "older-claim"}, id="A14"
        ),
        pytest.param(
            "trn2.48xlarge", "stated.peak.dense.fp8", "20 PFLOPS", {"truncation", "older-claim"}, id="A21 FP8"
        ),
        pytest.param(
            "trn2.48xlarge", "stated.peak.dense.bf16", "10 PFLOPS", {"truncation", "older-claim"}, id="A21 BF16"
        ),
        pytest.param(
            "trn2.48xlarge", "stated.peak.sparse.bf16", "40 PFLOPS", {"truncation", "older-claim"}, id="A21 sparse"
        ),
    ],
)
def test_a_published_figure_as_one_more_claim(name, at, says, expected):
    """The figure is claimed without a verdict, beside what the catalog records of it already."""
    graph = claim(shipped(), name, f"spec.{at}", says, source="glennklockwood-trainium2")

    assert expected <= gap(graph, name, at)


@pytest.mark.parametrize(
    ("name", "at", "says", "expected"),
    [
        pytest.param("trn1.32xlarge", "stated.memory.bandwidth", "13,120 GiB/sec", {"decimal-unit"}, id="A6"),
        pytest.param("trn2-ultraserver", "stated.network.bandwidth", "3,200 Gbps", {"part-for-whole"}, id="A11"),
        pytest.param(
            "trn3-gen2-ultraserver", "stated.memory.capacity", "20 TB", {"decimal-unit", "rounding"}, id="A13"
        ),
        pytest.param("trn2-ultraserver", "stated.peak.dense.bf16", "42.8 PFLOPS", {"chained-rounding"}, id="B30"),
        pytest.param("trn2-ultraserver", "stated.peak.dense.bf16", "40 PFLOPS", {"chained-rounding"}, id="A21 four"),
        pytest.param(
            "trn2-ultraserver", "stated.peak.dense.fp8", "80 PFLOPS", {"chained-rounding"}, id="A21 four, FP8"
        ),
    ],
)
def test_a_published_total_against_its_parts(name, at, says, expected):
    """The figure is as adopted, without any claims that could tell on it."""
    graph = bare()
    steps = at.split(".")
    if graph.named(name).spec.stated is None or _missing(graph, name, steps):
        graph = claim(graph, name, f"spec.{at}", says)
    else:
        graph = put(graph, name, at, says)

    assert expected <= gap(graph, name, at)


def _missing(graph: Graph, name: str, steps: list[str]) -> bool:
    value = graph.named(name).spec
    for step in steps:
        value = getattr(value, step, None)
    return value is None


def test_a3_47_for_47_5():
    """47.5 rounds to 48, so 47 was cut off; that the two intervals overlap all the same is not the reason."""
    assert {"truncation"} == set(causes("47 TFLOPS", "47.5 TFLOPS", at=FP32, graph=bare()))
    assert {"truncation"} == set(causes("~47 TFLOPS", "47.5 TFLOPS", at=FP32, graph=bare()))


def test_a12_efa_per_chip():
    """50 Gbps a chip is a quarter of 200: the UltraServer's figure is that of one server of four."""
    by_chip = efa().interval.scaled(Fraction(1, 64))

    assert not by_chip.overlaps(interval("3,200 Gbps").scaled(Fraction(1, 64)))
    assert by_chip.overlaps(interval("200 Gbps"))


def test_a18_hosts_do_not_scale_with_chips():
    """12 and 16 vCPUs, 128 and 192 GiB a chip: no relation forces them to be equal, so nothing is to be explained."""
    totals = {r.total.path[2:] for r in relations(shipped()) if r.level.startswith("chips of")}

    assert not [path for path in totals if "host" in path]


@pytest.mark.parametrize(("over", "ratio"), [("dense.bf16", "3.84x"), ("dense.fp8", "1.97x")])
def test_a19_one_sparse_figure_over_two_dense_ones(over, ratio):
    """Sparsity gives four times the 16-bit rate and twice that of FP8; both are far from rounding of each other."""
    sparse, dense = sites(bare(), "trainium2", "peak.sparse.bf16", f"peak.{over}")

    assert sparse.interval.ratio(dense.interval).overlaps(parse(ratio).interval)


def test_a20_fp32_is_no_quarter_of_bf16():
    """181 is no rounding of 667 / 4, and none of the usual causes makes it one."""
    quarter = interval("667 TFLOPS").scaled(Fraction(1, 4))

    assert causes("181 TFLOPS", quarter, at=("trainium2", "peak.dense.fp32"), graph=bare()) == {}


def test_a22_text_is_not_a_figure():
    """The words "Yes" and "N/A" in a column of figures take part in no relation."""
    graph = claim(shipped(), "trn1.32xlarge", "spec.fabric.bandwidth.both", "Yes")

    assert suspects(relations(graph)) == []


def test_a28_one_digit_overlaps_with_nearly_anything():
    """1 TB/s of DMA is [0.5, 1.5): neither 0.82 nor 0.87 needs an explanation."""
    assert causes("1 TB/s", "820 GB/s", "0.87 TB/s", at=("trainium1", "dma.bandwidth"), graph=bare()) == {}
