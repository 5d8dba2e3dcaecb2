"""The value that a figure needs for a target: closed forms, limits, units, errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trnspec
from trnspec.errors import RefusalError, TrnspecError, UnknownNameError, UsageError
from trnspec.evaluation.analysis import Target, solve
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evidence import UsedFigure
from trnspec.plugins.api import Evaluator

CATALOG = trnspec.load()
TRAINING: dict[str, Any] = {
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
    inputs = {**TRAINING, "calibration": calibration}
    found = trnspec.solve("training", CATALOG, target, vary, **inputs)
    wanted = Target.parse(target)
    present = trnspec.evaluate("training", CATALOG, **inputs)
    goal = wanted.value(present.answer(wanted.answer))
    needed = found.answer("needed")
    text = needed.note.removeprefix(f"{vary}: ")
    again = trnspec.evaluate("training", CATALOG, assume={vary: text}, **inputs)

    assert goal == pytest.approx(found.number(wanted.answer), rel=1e-6)
    assert goal == pytest.approx(again.number(wanted.answer), rel=1e-3)
    assert needed.value == pytest.approx(found.number("present") * found.number("ratio"), rel=1e-12)


def test_units_are_kept() -> None:
    found = trnspec.solve("training", CATALOG, "step_time=13 s", NETWORK, **TRAINING)

    assert "Gbps" in found.answer("needed").note
    assert "B/s" == found.answer("needed").unit
    assert 400e9 == found.number("present")
    assert {"target": "step_time=13 s", "vary": NETWORK}.items() <= found.inputs.items()


@pytest.mark.parametrize(
    ("target", "vary", "end"),
    [
        ("step_time=5 s", NETWORK, "infinity"),
        ("mfu=99 %", "trainium2.memory.bandwidth", "infinity"),
        ("mfu=99 %", "efa-v3.latency", "zero"),
        ("step_time=5 s", "trainium2.memory.capacity", "does not change it"),
    ],
)
def test_no_value_suffices(target, vary, end) -> None:
    with pytest.raises(RefusalError) as caught:
        trnspec.solve("training", CATALOG, target, vary, **TRAINING)

    assert ("out-of-reach", vary) == (caught.value.reason, caught.value.place)
    assert end in str(caught.value)


def test_a_share_is_not_above_one() -> None:
    with pytest.raises(RefusalError, match="largest share"):
        trnspec.solve(
            "training",
            CATALOG,
            "mfu=50 %",
            "trainium1-neuron.achieved.matmul",
            **{**TRAINING, "calibration": "trainium1-neuron"},
        )


@pytest.mark.parametrize(
    ("target", "vary", "error", "part"),
    [
        ("step_time", TENSOR, UsageError, "ANSWER=VALUE"),
        ("step_tim=20 s", TENSOR, UnknownNameError, "step_time"),
        ("step_time=20", TENSOR, UsageError, "in s"),
        ("step_time=20 GB", TENSOR, UsageError, "in s"),
        ("step_time=0 s", TENSOR, UsageError, "above 0"),
        ("step_time=-3 s", TENSOR, UsageError, "above 0"),
        ("step_time=~20 s", TENSOR, UsageError, "above 0"),
        ("fits=yes", TENSOR, UsageError, "not a number"),
        ("step_time=20 s", "trn2.48xlarge.memory.bandwidth", UsageError, "trainium2.memory.bandwidth"),
        ("step_time=20 s", "trn2.48xlarge.netwrk.bandwidth", UnknownNameError, "network.bandwidth"),
        ("step_time=20 s", "trainium3.memory.bandwidth", UsageError, "does not use trainium3.memory.bandwidth"),
        ("step_time=20 s", "trainium1-neuron.achieved.matmul", UsageError, "does not use the calibration"),
        ("step_time=20 s", "trn2.48xlarge.chips.count", UsageError, "no value"),
    ],
)
def test_errors(target, vary, error, part) -> None:
    with pytest.raises(error) as caught:
        trnspec.solve("training", CATALOG, target, vary, **TRAINING)

    assert part in str(caught.value)
    assert isinstance(caught.value, TrnspecError)


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
    assert value == pytest.approx(Target.parse(text).value(answer), rel=1e-12)


# Evaluators with a closed form.


def formula(catalog: trnspec.Catalog, *, kind: str) -> Evaluation:
    """A time of the memory bandwidth ``x``, relative to 1 TB/s."""
    x = float(catalog.chips["trainium2"].memory.bandwidth) / 1e12
    if kind == "refused" and x > 4.0:
        raise RefusalError("too-fast", "too fast")
    value = {
        "inverse": 1.0 / x,
        "refused": 1.0 / x,
        "offset": 1.0 + 1.0 / x,
        "maximum": max(0.1, 1.0 / x),
        "jump": 1.0 if x > 5.0 else 2.0,
        "falling": x**2,
    }[kind]
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
    with pytest.raises(RefusalError) as caught:
        solved(kind, target)

    assert reason == caught.value.reason
    assert part in str(caught.value)


@given(ratio=st.floats(-20.0, 20.0).map(lambda e: 2.0**e))
def test_any_ratio_is_found(ratio) -> None:
    found = solved("inverse", f"{1.0 / 2.9 / ratio!r} s")

    assert ratio == pytest.approx(found.number("ratio"), rel=1e-8)


def test_the_present_value_suffices() -> None:
    now = trnspec.evaluate("training", CATALOG, **TRAINING).number("step_time")

    assert 1.0 == trnspec.solve("training", CATALOG, f"step_time={now!r} s", TENSOR, **TRAINING).number("ratio")
