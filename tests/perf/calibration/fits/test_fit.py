"""Fits of all kinds of rows: what was put into rows is found again, in rows that the fit has not seen too; and what cannot be fitted."""

import functools
import math
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from tests.perf.oracles.fits import TRUE, cases
from tests.support.engine import everything
from trnspec.errors import UsageError
from trnspec.loading.files import shipped
from trnspec.perf.calibration.fits import inference, kernels, serving
from trnspec.perf.calibration.fits.fit import Errors, FitModel, Fitted, fit, folds, for_chip, splits
from trnspec.perf.calibration.fits.training import TYPICAL, training
from trnspec.perf.calibration.groups import COVERAGE
from trnspec.perf.calibration.measured.case import Case, Skipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.inference import inference_cases
from trnspec.perf.calibration.measured.kernels import kernel_cases
from trnspec.perf.calibration.measured.serving import serving_cases

DATA = shipped() / "measured"
STEPS = {n: getattr(TRUE, n) for n in (*TYPICAL, "causal") if not n.startswith("matmul_fp")}
TOKENS = {"matmul": 0.4, "attention": 0.3, "weights": 0.7, "cache": 0.4, "call": 3e-5, "hop": 7e-7, "step": 1e-3, "request": 8e-3, "sample": 2e-3,
              "score_passes": 6.0, "matmul_passes": 2.0}  # fmt: skip
REQUESTS = {
    "matmul": 0.5, "weights": 0.7, "cache": 0.6, "launch": 6e-5, "step": 5e-4, "queue": 0.1, "response": 3e-2,
    "request": 5e-3,
}  # fmt: skip
GEMM = {"compute": 0.6, "memory": 0.8, "fixed": 5e-6, "inner": 2e-7, "token": 1e-7, "quantize": 2e-6, "waves": 0.3, "split": 0.6, "sharpness": 3.0,
            "epilogue": 0.15}  # fmt: skip


@frozen
class Known:
    """Rows with times that were computed with known parameters, and the share of them that a fit finds again."""

    model: FitModel
    values: dict[str, float]
    cases: list[Any]
    found: tuple[str, ...]
    seen: float
    unseen: float


def read(name: str, reader: Any, *more: Any) -> list[Any]:
    return [c for c in reader(everything(), records(DATA / f"{name}.csv"), *more) if not isinstance(c, Skipped)]


def timed(model: FitModel, some: list[Any], values: dict[str, float]) -> list[Any]:
    """Cases as if they had been measured on something that achieves some values."""
    times = model.columns(some).times(values)
    return [
        evolve(c, **{c.PARTS.get(p, "seconds"): float(times[p][i]) if c.measured(p) else 0.0 for p in model.parts})
        for i, c in enumerate(some)
    ]


@functools.cache
def known(kind: str) -> Known:
    if kind == "training":
        model, values, some = training(), STEPS, cases(60, TRUE)
        return Known(model, values, timed(model, some, values), ("matmul",), 0.02, 0.05)
    if kind == "inference":
        model, values = inference.MODEL, TOKENS
        some = [c for c in read("inference_neuron", inference_cases) if c.tpot and c.framework != "optimum-neuron"]
        return Known(model, values, timed(model, some, values), ("weights", "cache", "request"), 0.02, 0.02)
    if kind == "serving":
        model, values, some = serving.MODEL, REQUESTS, read("serving_gpu", serving_cases)[::24]
        return Known(model, values, timed(model, some, values), (), 0.1, 0.2)
    model, values, some = kernels.model("gemm"), GEMM, read("gemm_gpu", kernel_cases, "matmul")[::4]
    return Known(model, values, timed(model, some, values), ("memory",), 0.05, 0.1)


@functools.cache
def fitted(kind: str) -> Fitted:
    return fit(known(kind).model, known(kind).cases)["model"]


KINDS = ("training", "inference", "serving", "gemm")


@pytest.mark.parametrize("kind", KINDS)
def test_fit_recovers_known_parameters(kind: str) -> None:
    """What stays is the pull of typical values; also by fits that have not seen the model."""
    of, found = known(kind), fitted(kind)
    assert of.model.parts == tuple(found.errors)
    assert found.main.summary(held_out=False)[0] < of.seen
    assert found.main.summary(held_out=True)[0] < of.unseen
    for name in of.found:
        assert found.values[name] == pytest.approx(of.values[name], rel=0.15), name


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_measurements_do_not_change_predictions(kind: str) -> None:
    of, before = known(kind), fitted(kind)
    group = of.model.folds(of.cases)[0]
    own = next(m for m in folds(of.model.folds(of.cases)) if m[of.model.folds(of.cases).index(group)])
    part = of.model.parts[0]
    names = {c.PARTS.get(part, "seconds") for c in of.cases}
    slower = [
        evolve(c, **{n: 1.2 * getattr(c, n) for n in names}) if out else c for c, out in zip(of.cases, own, strict=True)
    ]
    after = fit(of.model, slower)["model"]
    # Searches that begin at the fit to all rows end within a percent of those from typical values.
    assert (1.0 + before.main.held_out[own]).tolist() == pytest.approx(
        (1.2 * (1.0 + after.main.held_out[own])).tolist(), rel=0.02
    )


@pytest.mark.parametrize("kind", ["training", "inference"])
def test_too_few_rows(kind: str) -> None:
    of = known(kind)
    least = of.model.least
    with pytest.raises(UsageError, match=f"{least - 1} rows are too few to fit; expected at least {least}"):
        fit(of.model, of.cases[: least - 1])
    with pytest.raises(UsageError, match="there are no rows"):
        fit(of.model, [])
    with pytest.raises(UsageError, match="there are no rows"):
        of.model.columns([])


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_timed_as_single_rows(kind: str) -> None:
    of = known(kind)
    together = of.model.columns(of.cases).times(of.values)
    for i in range(0, len(of.cases), max(1, len(of.cases) // 8)):
        alone = of.model.columns([of.cases[i]]).times(of.values)
        assert [float(alone[p][0]) for p in of.model.parts] == pytest.approx(
            [float(together[p][i]) for p in of.model.parts], rel=1e-12
        )


@pytest.mark.parametrize("kind", KINDS)
def test_several_sets_of_parameters_at_once(kind: str) -> None:
    """Columns of parameters are as many sets, before the rows."""
    of = known(kind)
    sets = [of.values, {n: 0.9 * v for n, v in of.values.items()} | {"causal": of.values.get("causal", 1.0)}]
    sets = [{n: v for n, v in each.items() if n in of.values} for each in sets]
    columns = of.model.columns(of.cases)
    both = columns.times({n: np.array([[each[n]] for each in sets]) for n in of.values})
    for i, each in enumerate(sets):
        for part, times in columns.times(each).items():
            assert times.tolist() == pytest.approx(both[part][i].tolist(), rel=1e-12)


def errors(held: list[float], ranks: list[float]) -> Errors:
    @frozen(kw_only=True)
    class Row(Case):
        ranks: float

    return Errors(cases=tuple(Row(id="", ranks=r) for r in ranks), fit=np.array(held), held_out=np.array(held))


def test_interval_by_hand() -> None:
    held = [0.25, 0.0, -0.2, 1.0, -0.5, *[0.0] * 6]
    found = errors(held, [1.0] * len(held))
    # Measured over computed: 0.5, 0.8, 1 seven times, 1.25, 2; 1.1 of 11 rows from either end, rows at 0.5, 1.5, ...
    assert (0.5 + 0.6 * 0.3, 2.0 - 0.6 * 0.75) == pytest.approx((found.low, found.high), rel=1e-12)
    mean, median, worst = found.summary(held_out=True)
    assert (0.0, 1.0) == (median, worst)
    assert math.isclose(1.95 / 11, mean)
    assert (0.5, 3.0) == (evolve(found, ends=(0.5, 3.0)).low, evolve(found, ends=(0.5, 3.0)).high)


def test_rows_that_are_not_fitted_widen_the_interval() -> None:
    found = errors([0.0] * 20, [8.0] * 20)
    wider = found.with_rows([evolve(found.cases[0], ranks=64.0)] * 4, [-0.5] * 4)
    assert (20, 24, 24) == (len(wider.fit), len(wider.held_out), len(wider.cases))
    assert wider.high == 2.0 > found.high


def test_interval_coverage_equals_its_level() -> None:
    """With errors of 8% in the rows: of others with the same errors about eight in ten lie within."""
    found = fit(training(), cases(60, TRUE, noise=0.08))["model"]
    other = cases(400, TRUE, noise=0.08, seed=23)
    computed, measured = training().columns(other).times(found.values)["step"], np.array([c.seconds for c in other])
    inside = np.mean((found.main.low * computed <= measured) & (measured <= found.main.high * computed))
    assert COVERAGE - 0.15 < inside < COVERAGE + 0.15
    # It is of the rows left out: wider than what the fit makes of those it has seen.
    assert found.main.summary(held_out=True)[0] >= found.main.summary(held_out=False)[0]


def test_a_chip_with_few_rows_has_the_interval_of_all() -> None:
    found = for_chip(fitted("training"), "trainium1", "2025")
    assert (found.chip, found.era) == ("trainium1", "2025")
    assert found.main.held_out.tolist() == fitted("training").main.held_out.tolist()
    assert (found.main.low, found.main.high) == (found.groups[0].low, found.groups[0].high)


@frozen
class Row:
    model: str
    chip: str
    framework: str = "f"


def outs(some: list[Row], *holdout: Any) -> list[list[int]]:
    return [out.astype(int).tolist() for _, out in splits(training(), some, holdout)]


def test_chips_are_left_out_whole() -> None:
    some = [Row(model, chip) for model, chip in zip("mnmnm", "babca", strict=True)]
    assert [[0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0]] == outs(some, "chip")
    assert [m.astype(int).tolist() for m in folds([row.model for row in some])] == outs(some, "model")
    assert [] == outs(some, "framework")
    with pytest.raises(UsageError, match="with rows of c only, errors on another chip cannot be estimated"):
        fit(training(), [evolve(case, system=evolve(case.system, chip="c")) for case in cases(5, TRUE)], ("chip",))


def test_of_a_model_and_a_chip_a_fit_has_neither() -> None:
    some = [Row(f"m{i % 6}", chip) for i, chip in enumerate("ab" * 9)]
    found = [*splits(training(), some, ("model", "chip"))]
    assert [1] * len(some) == np.sum([out for _, out in found], axis=0).tolist()
    for kept, out in found:
        for by in ("model", "chip"):
            held, fitted = (
                {getattr(row, by) for row, chosen in zip(some, mask, strict=True) if chosen} for mask in (out, kept)
            )
            assert held.isdisjoint(fitted)


@pytest.mark.parametrize(
    ("groups", "parts"), [(["a"] * 3, 3), (["a", "b"] * 10, 5), (list("abcd") * 2, 5), (list("abcdefghijkl"), 8)]
)
def test_folds(groups: list[str], parts: int) -> None:
    """Every fifth row where models are few; several models at a time where they are many; every row once."""
    found = folds(groups)
    assert parts == len(found)
    assert np.ones(len(groups), int).tolist() == np.sum(found, axis=0).tolist()
    assert all(0 < mask.sum() < len(groups) for mask in found)
