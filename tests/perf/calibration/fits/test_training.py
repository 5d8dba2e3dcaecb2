"""Fits: what was put into rows is found again, in rows that the fit has not seen too; and what cannot be fitted."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from attrs import evolve, fields

from tests.perf.oracles.fits import MODELS, TRUE, WRITTEN, cases
from trnspec.errors import UsageError
from trnspec.perf.calibration.document import achieved
from trnspec.perf.calibration.fits.training import (
    COVERAGE,
    SHARES,
    TYPICAL,
    Fitted,
    _free,
    batch,
    fit,
    folds,
    holdout_masks,
)
from trnspec.perf.lowering.calibrated import Calibrated
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL, Efficiency
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import step
from trnspec.perf.work.transformer import transformer

CLEAN = cases(60, TRUE)


@pytest.fixture(scope="module")
def clean() -> Fitted:
    return fit(CLEAN)


def test_times_are_found_again(clean):
    """No error was put in: what stays is the pull of what is usual, where rows tell little."""
    mean, median, worst = clean.summary(held_out=False)
    assert mean < 0.02
    assert median <= 0.02
    assert worst < 0.1
    # Also by fits that had never seen the model.
    mean, _, _ = clean.summary(held_out=True)
    assert mean < 0.05


def test_what_rows_tell_most_of_is_found_again(clean):
    assert math.isclose(TRUE.matmul, clean.efficiency.matmul, rel_tol=0.1)
    assert TRUE.causal == clean.efficiency.causal


def test_steps_that_were_not_among_them(clean):
    other = batch(cases(60, TRUE, seed=11))
    off = np.abs(other.times(clean.efficiency) / other.seconds - 1.0)
    assert off.mean() < 0.04


def test_scores_that_are_written_are_fitted():
    """In rows without flash attention; such a fit charges none of them to a run with flash attention."""
    written = cases(30, WRITTEN, flash=False)
    found = fit(written)
    fused = batch([evolve(c, layout=evolve(c.layout, flash=True)) for c in written])
    assert (fused.times(found.efficiency) == fused.times(evolve(found.efficiency, score_passes=0.0, causal=1.0))).all()
    assert 0.0 == found.efficiency.causal
    assert found.efficiency.score_passes > 0.0
    assert "score_passes" in found.names
    assert found.summary(held_out=False)[0] < 0.03


def test_software_that_overlaps_no_gradients():
    """Whatever a calibration says of other software, its rows are computed so; the fit to them says so too."""
    blocking = [evolve(c, blocking=True) for c in cases(30, evolve(TRUE, overlap=0.0))]
    data = batch(blocking)
    assert (data.times(TRUE) == batch(cases(30, TRUE)).times(evolve(TRUE, overlap=0.0))).all()
    assert (data.times(TRUE) > batch(cases(30, TRUE)).times(TRUE)).any()
    found = fit(blocking)
    assert 0.0 == found.efficiency.overlap
    assert not {"overlap", "exposed"} & set(found.names)
    assert "0x" == achieved(found.efficiency, found.names)["overlap"]
    assert found.summary(held_out=False)[0] < 0.03
    # With rows of other software it is a parameter again, and holds for those alone.
    mixed = fit([*blocking[:15], *cases(30, TRUE)[15:]])
    assert {"overlap", "exposed"} < set(mixed.names)
    assert mixed.efficiency.overlap > 0.0


def test_what_is_found_can_be(clean):
    for name in clean.names:
        value = getattr(clean.efficiency, name)
        assert value > 0.0
        assert value < 1.0 or name not in SHARES
    fixed = {f.name for f in fields(Efficiency)} - set(clean.names) - {"causal"}
    assert {name: getattr(IDEAL, name) for name in fixed} == {name: getattr(clean.efficiency, name) for name in fixed}


def test_the_interval_covers_what_it_says():
    """With errors of 8% in the rows: of others with the same errors about eight in ten lie within."""
    found = fit(cases(60, TRUE, noise=0.08))
    other = batch(cases(400, TRUE, noise=0.08, seed=23))
    computed = other.times(found.efficiency)
    inside = np.mean((found.low * computed <= other.seconds) & (other.seconds <= found.high * computed))
    assert COVERAGE - 0.15 < inside < COVERAGE + 0.15
    assert found.low < 1.0 < found.high
    # It is of the rows left out: wider than what the fit makes of those it has seen.
    assert found.summary(held_out=True)[0] >= found.summary(held_out=False)[0]


def test_interval_by_hand():
    held = np.array([0.25, 0.0, -0.2, 1.0, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = Fitted(IDEAL, held, held, (), scales=np.ones(len(held)))
    # Measured over computed: 0.5, 0.8, 1 seven times, 1.25, 2; 1.1 of 11 rows from either end, rows at 0.5, 1.5, ...
    assert (0.5 + 0.6 * 0.3, 2.0 - 0.6 * 0.75) == pytest.approx((found.low, found.high), rel=1e-12)
    mean, median, worst = found.summary(held_out=True)
    assert (0.0, 1.0) == (median, worst)
    assert math.isclose(1.95 / 11, mean)


def test_every_number_of_ranks_has_the_same_weight():
    """Twenty rows of one server do not hide two of many."""
    held = np.array([0.0] * 20 + [-0.5] * 2)
    one = Fitted(IDEAL, held, held, (), scales=np.ones(22))
    several = Fitted(IDEAL, held, held, (), scales=np.array([8.0] * 20 + [512.0] * 2))
    assert (1.0, 1.0) == (one.low, several.low)
    assert pytest.approx(1.3) == one.high
    assert 2.0 == several.high


def test_the_same_rows_give_the_same_fit(clean):
    again = fit(CLEAN)
    assert clean.efficiency == again.efficiency
    assert clean.errors.tobytes() == again.errors.tobytes()
    assert clean.held_out.tobytes() == again.held_out.tobytes()


@pytest.mark.parametrize("many", [1, 2])
def test_too_few_rows(many):
    with pytest.raises(UsageError, match=f"{many} rows are too few to fit; expected at least 3"):
        fit(CLEAN[:many])


def test_no_rows():
    with pytest.raises(UsageError, match="there are no rows"):
        fit([])


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(UsageError, match="fitting needs scipy; install trnspec with the extra calibrate"):
        fit(CLEAN[:5])


def test_chips_are_left_out_whole():
    masks = holdout_masks(["m"] * 5, ["b", "a", "b", "c", "a"], "chip")
    assert [[0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0]] == [m.astype(int).tolist() for m in masks]
    by_model = holdout_masks(["m", "n"] * 3, ["b"] * 6, "model")
    assert [m.tolist() for m in folds(["m", "n"] * 3)] == [m.tolist() for m in by_model]
    with pytest.raises(UsageError, match="with rows of b only, errors on another chip cannot be estimated"):
        holdout_masks(["m", "n"], ["b", "b"], "chip")


@pytest.mark.slow
def test_what_a_fit_says_of_a_chip_it_has_not_seen():
    """Nothing that was measured of a chip changes what is computed for it."""
    some = [evolve(c, system=evolve(c.system, chip=c.system.name)) for c in CLEAN]
    own = np.array([c.system.chip == "system-0" for c in some])
    assert 0 < own.sum() < len(some)
    found = fit(some, "chip")
    assert found.efficiency == fit(some).efficiency
    # Both achieve the same, so that one determines the other.
    assert found.summary(held_out=True)[0] < 0.05
    slower = [evolve(c, seconds=1.5 * c.seconds) if o else c for c, o in zip(some, own, strict=True)]
    again = fit(slower, "chip")
    assert ((1.0 + found.held_out[own]) / 1.5).tolist() == pytest.approx((1.0 + again.held_out[own]).tolist(), rel=2e-3)
    assert found.held_out[~own].tolist() != again.held_out[~own].tolist()


def test_folds_leave_out_whole_models():
    """So that a row left out is of a model that the fit has not seen."""
    groups = [c.model for c in CLEAN]
    found = folds(groups)
    assert len(MODELS) == len(found)
    for mask in found:
        out = {g for g, o in zip(groups, mask, strict=True) if o}
        kept = {g for g, o in zip(groups, mask, strict=True) if not o}
        assert len(out) == 1
        assert not out & kept
    assert np.ones(len(groups), int).tolist() == np.sum(found, axis=0).tolist()


@pytest.mark.parametrize(
    ("groups", "parts"), [(["a"] * 3, 3), (["a", "b"] * 10, 5), (list("abcd") * 2, 5), (list("abcdefghijkl"), 8)]
)
def test_folds(groups, parts):
    """Every fifth row where models are few; several models at a time where they are many; every row once."""
    found = folds(groups)
    assert parts == len(found)
    assert np.ones(len(groups), int).tolist() == np.sum(found, axis=0).tolist()
    assert all(0 < mask.sum() < len(groups) for mask in found)


def test_times_of_a_batch_are_those_of_each_row():
    whole = batch(CLEAN)
    for efficiency in (IDEAL, TRUE, WRITTEN):
        each = [step(transformer(c.dims), c.layout, machine(c.system, efficiency, c.dtype)).total for c in CLEAN]
        assert each == whole.times(efficiency).tolist()


def test_some_rows_of_a_batch():
    whole = batch(CLEAN)
    chosen = np.arange(len(CLEAN)) % 3 == 1
    some = whole.rows(chosen)
    assert whole.times(TRUE)[chosen].tolist() == some.times(TRUE).tolist()
    assert tuple(c.model for c in CLEAN[1::3]) == some.groups
    # All on one system: its numbers need no rows.
    alone = batch([c for c in CLEAN if c.system == CLEAN[0].system])
    assert 1 == len(alone.systems)
    assert alone.times(TRUE).shape == alone.seconds.shape


ONE = evolve(CLEAN[0], layout=evolve(CLEAN[0].layout, tp=1, pp=1, dp=1, cp=1, overlap=False))


def test_only_what_rows_tell_of_is_free():
    alone = evolve(ONE, system=evolve(ONE.system, levels=ONE.system.levels[:-1]))
    least = set(_free(batch([alone])))
    assert (
        set(TYPICAL)
        - {
            *("score_passes", "tensor_overlap", "send", "overlap", "exposed", "network", "ultraserver"),
            *("pipeline_overlap", "matmul_fp8", "matmul_fp4"),
        }
        == least
    )
    for changed, more in (
        ({"overlap": True}, {"tensor_overlap"}), ({"pp": 2}, {"send"}), ({"dp": 2}, {"overlap", "exposed"}),
        ({"cp": 2}, {"overlap", "exposed"}),
    ):  # fmt: skip
        case = evolve(alone, layout=evolve(alone.layout, **changed))
        assert more == set(_free(batch([case]))) - least
    assert {"network"} == set(_free(batch([ONE]))) - least
    written = evolve(alone, layout=evolve(alone.layout, flash=False))
    assert {"score_passes"} == set(_free(batch([written]))) - least


def test_the_estimator_takes_a_fit(clean):
    """A fit is what an estimate is calibrated with: the time of a row is that of the estimator."""
    case = CLEAN[0]
    on = machine(case.system, clean.efficiency, case.dtype)
    made = Estimator(
        case.model, case.dims, transformer(case.dims), case.system, Calibrated("x", clean.efficiency), case.dtype, on,
        (on, on),
    )  # fmt: skip
    assert batch(CLEAN).times(clean.efficiency)[0] == made.step(case.layout).total
