"""Elasticities: the sum that homogeneity implies, closed forms, kinks and refusals."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from tests.support.engine import refusal
from tests.support.tables import tables
from trnspec.errors import RefusalError, UnknownNameError, UsageError
from trnspec.evaluation.analysis import COLUMNS, STEP, Target, elasticities, solve
from trnspec.evaluation.figure_path import figure_path
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evidence import UsedFigure
from trnspec.plugins.api import Evaluator
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


def _of(catalog: Any, compute) -> Evaluation:
    bandwidth = float(catalog.chips["trainium2"].memory.bandwidth)
    used = UsedFigure("trainium2", "memory.bandwidth", "", "")
    return Evaluation(evaluator="e", title="t", answers=(Answer("y", compute(bandwidth)),), figures_used=(used,))


def _elasticity(compute):
    ((_, value, note),) = elasticities(CATALOG, lambda c: _of(c, compute), _of(CATALOG, compute), "y")
    return value, note


@pytest.mark.parametrize("power", [-2.0, -1.0, 0.5, 3.0])
def test_power_law(power) -> None:
    assert power == pytest.approx(_elasticity(lambda x: 7.0 * x**power)[0], rel=1e-9)


def test_kink_has_both_slopes() -> None:
    x = float(CATALOG.chips["trainium2"].memory.bandwidth)
    value, note = _elasticity(lambda y: max(1.0, x / y))

    assert -0.5 == pytest.approx(value, abs=1e-8)
    assert "-1 below, 0 above" == note


def test_refusal_on_one_side() -> None:
    x = float(CATALOG.chips["trainium2"].memory.bandwidth)

    def compute(y: float) -> float:
        if y < x:
            raise RefusalError("does-not-fit", "too little")
        return 1.0 / y

    value, note = _elasticity(compute)

    assert -1.0 == pytest.approx(value, rel=1e-9)
    assert "does-not-fit below it" == note


def test_zero_answer_has_no_elasticity() -> None:
    value, note = _elasticity(lambda _: 0.0)

    assert value is None
    assert "y is 0" == note


TRAINING_FOR_TARGET: dict[str, Any] = {
    "model": "llama-3.1-70b", "on": "trn2.48xlarge*16", "seq": 8192, "global_batch": 256, "tp": 16, "pp": 4, "zero": 1,
    "recompute": "full", "must_fit": False, "calibration": "none",
}  # fmt: skip
NETWORK = "trn2.48xlarge.network.bandwidth"
TENSOR = "trainium2.tensor_peak.dense.bf16"


@pytest.mark.parametrize(
    ("target", "vary", "calibration"),
    [
        ("step_time=10 s", TENSOR, "none"),
        ("step_time=20 s", TENSOR, "none"),
        ("step_time=13 s", NETWORK, "none"),
        ("mfu=50 %", TENSOR, "none"),
        ("throughput=150 k tokens/s", "trainium2.memory.bandwidth", "none"),
        ("step_time=30 s", "trainium1-neuron.achieved.matmul", "trainium1-neuron"),
    ],
)
def test_the_value_found_gives_the_target(target, vary, calibration) -> None:
    """An evaluation that assumes the value found has the target as its answer, to the digits of the assumption."""
    inputs = {**TRAINING_FOR_TARGET, "calibration": calibration}
    found = trnspec.solve("training", CATALOG, target, vary, **inputs)
    present = trnspec.evaluate("training", CATALOG, **inputs)
    name, text = target.split("=")
    goal = Target.of(name, text, present).value
    needed = found.answer("needed")
    text = needed.note.removeprefix(f"{vary}: ")
    again = trnspec.evaluate("training", CATALOG, assume={vary: text}, **inputs)

    assert goal == pytest.approx(found.number(name), rel=1e-6)
    assert goal == pytest.approx(again.number(name), rel=1e-3)
    says = [used.says for used in found.figures_used if f"{used.of}.{used.at}" == vary]
    assert [text] * (calibration == "none") == says
    assert needed.value == pytest.approx(found.number("present") * found.number("ratio"), rel=1e-12)


def test_a_share_is_not_above_one() -> None:
    with pytest.raises(RefusalError, match="largest share"):
        trnspec.solve(
            "training",
            CATALOG,
            "mfu=50 %",
            "trainium1-neuron.achieved.matmul",
            **{**TRAINING_FOR_TARGET, "calibration": "trainium1-neuron"},
        )


@pytest.mark.parametrize(("target", "vary", "part"), tables(__file__)["errors"])
def test_errors(target, vary, part) -> None:
    with pytest.raises(UnknownNameError if target.startswith("step_tim=") else UsageError) as caught:
        trnspec.solve("training", CATALOG, target, vary, **TRAINING_FOR_TARGET)

    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "answer", "value"),
    [
        ("t=20 ms", Answer("t", 1.0, "s"), 0.02),
        ("t=1.5 h", Answer("t", 1.0, "s"), 5400.0),
        ("b=3,200 Gbps", Answer("b", 1.0, "B/s"), 400e9),
        ("m=64 GiB", Answer("m", 1.0, "B"), 64 * 2**30),
        ("f=50 %", Answer("f", 1.0, "%"), 50.0),
        ("r=1.5 k tokens/s", Answer("r", 1.0, "tokens/s"), 1500.0),
        ("r=2 M tokens/s", Answer("r", 1.0, "tokens/s"), 2e6),
        ("n=3", Answer("n", 1.0), 3.0),
    ],
)
def test_targets(text, answer, value) -> None:
    evaluation = Evaluation(evaluator="e", title="t", answers=(answer,))
    assert value == pytest.approx(Target.of(*text.split("="), evaluation).value, rel=1e-12)


def formula(catalog: trnspec.Catalog, *, kind: str) -> Evaluation:
    """A time of the memory bandwidth ``x``, relative to 1 TB/s."""
    x = float(catalog.chips["trainium2"].memory.bandwidth) / 1e12
    if kind == "refused" and x > 4.0:
        raise RefusalError("too-fast", "too fast")
    value = {
        "inverse": 1.0 / x, "refused": 1.0 / x, "offset": 1.0 + 1.0 / x, "maximum": max(0.1, 1.0 / x),
        "jump": 1.0 if x > 5.0 else 2.0, "falling": x**2,
    }[kind]  # fmt: skip
    used = UsedFigure("trainium2", "memory.bandwidth", "2.9 TB/s", "")
    return Evaluation(evaluator="formula", title="t", answers=(Answer("time", value, "s"),), figures_used=(used,))


FORMULA = Evaluator("formula", "A time.", formula)
BANDWIDTH = "trainium2.memory.bandwidth"


def solved(kind: str, target: str) -> Evaluation:
    return solve(FORMULA, "the plugin acme", CATALOG, {"kind": kind}, f"time={target}", BANDWIDTH)


@pytest.mark.parametrize(
    ("kind", "target", "needed"),
    [
        ("inverse", "100 ms", 10e12),
        ("inverse", "1000 s", 1e9),
        ("offset", "1.001 s", 1e15),
        ("maximum", "0.1 s", 10e12),
        ("falling", "1 s", 1e12),
        ("falling", "9 s", 3e12),
        ("refused", "0.3 s", 1e13 / 3),
    ],
)
def test_formulas(kind, target, needed) -> None:
    assert needed == pytest.approx(solved(kind, target).number("needed"), rel=1e-8)


@pytest.mark.parametrize(
    ("kind", "target", "reason", "part"),
    [
        ("offset", "1 s", "out-of-reach", "approaches 1.000 s as the figure goes to infinity"),
        ("maximum", "50 ms", "out-of-reach", "approaches 100 ms"),
        ("refused", "0.2 s", "out-of-reach", "250.0 ms at 1.379 times the present figure"),
        ("jump", "1.5 s", "jump", "from 2 s to 1 s at 1.724 times"),
    ],
)
def test_formulas_out_of_reach(kind, target, reason, part) -> None:
    caught = refusal(solved, kind, target)

    assert reason == caught.reason
    assert part in str(caught)


@settings(max_examples=5)
@given(ratio=st.floats(-20.0, 20.0).map(lambda e: 2.0**e))
def test_any_ratio_is_found(ratio) -> None:
    found = solved("inverse", f"{1.0 / 2.9 / ratio!r} s")

    assert ratio == pytest.approx(found.number("ratio"), rel=1e-8)


def test_the_present_value_suffices() -> None:
    now = trnspec.evaluate("training", CATALOG, **TRAINING_FOR_TARGET).number("step_time")

    assert 1.0 == trnspec.solve("training", CATALOG, f"step_time={now!r} s", TENSOR, **TRAINING_FOR_TARGET).number(
        "ratio"
    )
