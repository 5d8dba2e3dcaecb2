"""Elasticities: the sum that homogeneity implies, closed forms, kinks and refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from trnspec.errors import RefusalError, UnknownNameError, UsageError
from trnspec.evaluation.analysis import COLUMNS, STEP, elasticities
from trnspec.evaluation.figure_path import figure_path, figures_of, scaled
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evidence import UsedFigure
from trnspec.quantities.units import Dimension

CATALOG = trnspec.load()
RATES = (Dimension.BANDWIDTH, Dimension.FLOP_RATE)
TRAINING = {"model": "llama-3.1-70b", "seq": 8192, "global_batch": 256, "tp": 16, "pp": 4, "zero": 1, "must_fit": False}
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("training", {**TRAINING, "on": "trn2.48xlarge*16", "calibration": "none"}),
    ("training", {**TRAINING, "on": "trn2.48xlarge*16", "calibration": "trainium1-neuron", "recompute": "full"}),
    ("training", {**TRAINING, "on": "trn2-ultraserver*4", "calibration": "none", "interleave": 2, "overlap": True}),
    ("inference", {"model": "llama-3.1-70b", "on": "trn2.48xlarge", "tp": 32, "batch": 8}),
    ("inference", {"model": "llama-3.1-8b", "on": "trn1.32xlarge", "tp": 32, "calibration": "none"}),
    # A measured library has times that no figure sets.
    ("collective", {"kind": "all-reduce", "size": "64 MiB", "on": "trn2.48xlarge*2", "calibration": "none"}),
    ("collective", {"kind": "all-to-all", "size": "64 KiB", "on": "trn2-ultraserver", "calibration": "none"}),
    (
        "search",
        {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "seq": 4096, "global_batch": 64, "calibration": "none"},
    ),
]


@pytest.mark.parametrize(("name", "inputs"), QUESTIONS)
def test_elasticities_of_a_time_sum_to_minus_one(name, inputs) -> None:
    """Twice all rates and half of all latencies make half the time (Euler's theorem for degree -1)."""
    total, kinks = 0.0, False
    for row in trnspec.sensitivity(name, CATALOG, **inputs).records():
        figure = figure_path(CATALOG.graph, str(row["figure"])).figure
        assert figure is not None
        dimension = figure.value.dimension
        sign = 1.0 if dimension in RATES else -1.0 if dimension is Dimension.TIME else 0.0
        total += sign * float(row["elasticity"])
        kinks |= row["note"] != ""

    # At a kink the error is of the order of the step, elsewhere of its square.
    assert -1.0 == pytest.approx(total, abs=STEP if kinks else 1e-6)


def test_every_figure_and_parameter_has_a_row() -> None:
    inputs = QUESTIONS[1][1]
    rows = {row["figure"] for row in trnspec.sensitivity("training", CATALOG, **inputs).records()}
    used = {f"{f.of}.{f.at}" for f in trnspec.evaluate("training", CATALOG, **inputs).figures_used}

    assert used <= rows
    assert "trainium1-neuron.achieved.matmul" in rows


def test_sensitivity_of_a_named_answer() -> None:
    found = trnspec.sensitivity("training", CATALOG, "mfu", **QUESTIONS[0][1])
    rows = {row["figure"]: row["elasticity"] for row in found.records()}

    assert "sensitivity of mfu" == found.title
    assert COLUMNS == found.columns
    assert -1.0 == pytest.approx(rows["trainium2.peak.dense.bf16"], abs=1e-9)


@pytest.mark.parametrize(("answer", "error"), [("step", UnknownNameError), ("fits", UsageError)])
def test_not_a_number(answer, error) -> None:
    with pytest.raises(error):
        trnspec.sensitivity("training", CATALOG, answer, **QUESTIONS[0][1])


# Closed forms.


def _of(catalog: Any, compute) -> Evaluation:
    bandwidth = float(catalog.chips["trainium2"].memory.bandwidth)
    used = UsedFigure("trainium2", "memory.bandwidth", "", "")
    return Evaluation(evaluator="e", title="t", answers=(Answer("y", compute(bandwidth)),), figures_used=(used,))


def _elasticity(compute):
    (row,) = elasticities(CATALOG, lambda c: _of(c, compute), _of(CATALOG, compute))
    return row


@pytest.mark.parametrize("power", [-2.0, -1.0, 0.5, 3.0])
def test_power_law(power) -> None:
    assert power == pytest.approx(_elasticity(lambda x: 7.0 * x**power).value, rel=1e-9)


def test_kink_has_both_slopes() -> None:
    x = float(CATALOG.chips["trainium2"].memory.bandwidth)
    row = _elasticity(lambda y: max(1.0, x / y))

    assert -0.5 == pytest.approx(row.value, abs=1e-8)
    assert "-1 below, 0 above" == row.note


def test_refusal_on_one_side() -> None:
    x = float(CATALOG.chips["trainium2"].memory.bandwidth)

    def compute(y: float) -> float:
        if y < x:
            raise RefusalError("does-not-fit", "too little")
        return 1.0 / y

    row = _elasticity(compute)

    assert -1.0 == pytest.approx(row.value, rel=1e-9)
    assert "does-not-fit below it" == row.note


@given(
    tp=st.sampled_from([4, 8, 16]),
    pp=st.sampled_from([1, 2, 4]),
    zero=st.integers(0, 3),
    recompute=st.sampled_from(["none", "selective", "full"]),
    overlap=st.booleans(),
    on=st.sampled_from(["trn1.32xlarge*4", "trn2.48xlarge*4", "trn2-ultraserver"]),
    calibration=st.sampled_from(["none", "trainium1-neuron"]),
)
@settings(max_examples=12)
def test_any_layout_is_homogeneous(tp, pp, zero, recompute, overlap, on, calibration) -> None:
    inputs: dict[str, Any] = {
        "model": "llama-3.1-8b", "on": on, "seq": 4096, "global_batch": 512, "tp": tp, "pp": pp, "zero": zero,
        "recompute": recompute, "overlap": overlap, "calibration": calibration, "must_fit": False,
    }  # fmt: skip
    evaluation = trnspec.evaluate("training", CATALOG, **inputs)
    changed: Any = CATALOG
    for path in figures_of(evaluation, CATALOG.graph):
        figure = path.figure
        assert figure is not None
        dimension = figure.value.dimension
        power = 1 if dimension in RATES else -1 if dimension is Dimension.TIME else 0
        changed = scaled(changed, figure_path(changed.graph, str(path)), Fraction(2) ** power)

    assert evaluation.number("step_time") / 2 == pytest.approx(
        trnspec.evaluate("training", changed, **inputs).number("step_time"), rel=1e-12
    )


def test_zero_answer_has_no_elasticity() -> None:
    row = _elasticity(lambda _: 0.0)

    assert row.value is None
    assert "y is 0" == row.note
