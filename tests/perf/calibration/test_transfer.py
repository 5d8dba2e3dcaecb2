"""Errors of a fit on other chips, of other software, and outside the range of its rows."""

import numpy as np
import pytest
from attrs import evolve

from tests.perf.oracles.fits import TRUE, cases
from trnspec.perf.calibration.fit_range import EXPONENT, FAR
from trnspec.perf.calibration.fits.fit import INPUTS, Fitted, fit, splits
from trnspec.perf.calibration.fits.training import training
from trnspec.perf.calibration.transfer import beyond, computed, elsewhere, exponents

ROWS = cases(14, TRUE)
MODEL = training()


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return fit(MODEL, ROWS)["model"]


def test_measured_over_computed(fitted) -> None:
    slower = [evolve(c, seconds=1.5 * c.seconds) for c in ROWS]
    (steps,), (unchanged,) = (computed(MODEL, some, fitted.found) for some in (slower, ROWS))

    assert steps == pytest.approx(1.5 * unchanged)
    assert unchanged == pytest.approx(1.0 / (1.0 + fitted.main.fit))


def test_groups_have_the_same_weight() -> None:
    """A hundred rows of one chip do not hide four of another."""
    measured = np.array([1.0] * 100 + [2.0, 2.0, 2.0, 2.0])
    found = elsewhere(measured, ["a"] * 100 + ["b"] * 4)

    assert found is not None
    assert (104, 2, 1.0, 2.0) == (found.rows, found.groups, found.low, found.high)
    # As one group the few are not seen.
    assert 1.0 == elsewhere(measured, ["a"] * 104).high
    assert None is elsewhere(np.array([np.nan]), ["a"])


def test_a_fit_that_extrapolates_needs_no_exponent(fitted) -> None:
    assert exponents(MODEL, fitted, splits(MODEL, ROWS, INPUTS))[0] < 0.05
    few = np.arange(len(ROWS)) < 4
    assert [EXPONENT] == exponents(MODEL, fitted, [(few, ~few)])


def test_exponent_of_rows_that_are_off(fitted) -> None:
    """Rows that take twice as long need an exponent by their distance, the smaller the further they are."""
    masks = [*splits(MODEL, ROWS, INPUTS)]
    slower = {id(case) for _, out in masks for case, is_out in zip(ROWS, out, strict=True) if is_out}
    rows = tuple(evolve(c, seconds=2.0 * c.seconds) if id(c) in slower else c for c in ROWS)

    assert 0.05 < exponents(MODEL, evolve(fitted, cases=rows), masks)[0] < np.log(4.0) / np.log(FAR)


def test_beyond(fitted) -> None:
    slower = [evolve(c, seconds=2.0 * c.seconds) for c in ROWS[:5]]
    (step,) = beyond(MODEL, fitted, {"c x.csv": slower}, [])

    assert (5, 1) == (step.elsewhere.rows, step.elsewhere.groups)
    assert 2.0 == pytest.approx(step.elsewhere.low, rel=0.1)
