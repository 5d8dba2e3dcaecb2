"""Priors: few rows move a fit from the prior towards the truth, none leave it, many replace it; and which calibration is one."""

from typing import Any

import numpy as np
import pytest
from attrs import asdict, evolve

from tests.perf.oracles.fits import TRUE, cases
from tests.support.engine import everything
from trnspec.errors import UsageError
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fits.fit import Fitted, fit
from trnspec.perf.calibration.fits.prior import WIDTHS, FitPrior, prior_of
from trnspec.perf.calibration.fits.training import TYPICAL, batch, training
from trnspec.perf.calibration.fits.uncertainty import Posterior
from trnspec.perf.calibration.groups import GroupErrors
from trnspec.perf.calibration.measured.cells import fitted_hashes

NAMES = tuple(n for n in TYPICAL if n not in {"matmul_fp8", "matmul_fp4", "score_passes"})
NOT_USED = {n: TYPICAL[n] for n in ("ultraserver", "exchange", "dispatch", "expert_overlap", "pipeline_overlap")}
SLOW = evolve(TRUE, matmul=0.5, hidden_passes=9.0, server=0.45, network=0.4, forward=5e-4, **NOT_USED)
"""What another machine achieves: less than :data:`TRUE`."""

PRIOR = FitPrior(name="slow", values={n: getattr(SLOW, n) for n in NAMES}, widths=dict.fromkeys(NAMES, 0.5))
OTHERS = cases(60, TRUE, seed=11)
MEASURED = np.array([c.seconds for c in OTHERS])


def error(values: Any) -> float:
    return float(np.abs(batch(OTHERS).times(values)["step"] / MEASURED - 1.0).mean())


def fitted(some: list[Any], prior: FitPrior = PRIOR) -> Fitted:
    return fit(training(), some, prior=prior)["model"]


@pytest.fixture(scope="module")
def few():
    """Three rows of the machine that differs from the prior."""
    return fitted(cases(3, TRUE))


def test_few_rows_move_the_prior_towards_the_data(few):
    assert SLOW.matmul < few.values["matmul"] < TRUE.matmul * 1.05
    # On rows that no fit has seen it is better than the prior.
    assert error(few.values) < 0.6 * error(asdict(SLOW))
    learned = {each.name: each for each in few.learned}
    assert learned["matmul"].share > 0.3
    assert set(NAMES) == set(learned) == set(few.values) - {"causal"}


def test_unidentified_parameters_equal_the_prior(few):
    """Rows without experts say nothing of all-to-alls: neither value nor width changes."""
    learned = {each.name: each for each in few.learned}
    for name in NOT_USED:
        assert PRIOR.values[name] == pytest.approx(learned[name].value, rel=1e-4)
        assert (0.5, 0.5) == (learned[name].prior_width, pytest.approx(learned[name].width, rel=1e-3))
        assert "prior" == learned[name].origin
    assert all(0.0 <= each.share <= 1.0 for each in few.learned)


def test_the_width_of_a_group_includes_its_deviation() -> None:
    keys = ("a", ("a", "chip", "x"), ("a", "chip", "y"), ("b", "chip", "x"), "b")
    made = Posterior(keys, np.diag([4.0, 5.0, 12.0, 1.0, 1.0]), {"a": 0.5}, np.array([0.1, 0.05, 0.05, 0.1, 0.1]))
    (mean,), (x,), (other,) = (made.learned({"a": 0.7}, {"chip": of}) for of in ("", "x", "z"))
    assert [(2.0, 1.0), (3.0, 5**0.5), (2.0, 1.0)] == [
        (i.width, pytest.approx(i.prior_width)) for i in (mean, x, other)
    ]


def test_uninformative_rows_keep_the_prior():
    """No rows, and rows that are exactly as the prior computes them."""
    for rows in ([], cases(5, SLOW)):
        values = training().solve(rows, PRIOR).values()
        assert {n: pytest.approx(getattr(SLOW, n), rel=1e-5) for n in NAMES} == {n: values[n] for n in NAMES}


def test_a_row_is_enough_with_a_prior():
    one = cases(1, TRUE)
    with pytest.raises(UsageError, match="1 rows are too few to fit; expected at least 3"):
        fitted(one, FitPrior())
    found = fitted(one)
    # The error of a row that was left out is that of the prior.
    assert batch(one).times(asdict(SLOW))["step"] / one[0].seconds - 1.0 == pytest.approx(found.main.held_out)
    assert abs(found.main.fit[0]) < abs(found.main.held_out[0])


def test_the_nearest_calibration_without_the_rows():
    """Of the chip and the framework; the next one where it has some of the rows; of no publisher but the chip's."""
    graph = everything()
    own = next(n for n in graph.of(Calibration) if n.name == "b200-megatron-dense")
    nearest = prior_of(graph, "b200", "training", framework="megatron", experts=False)
    assert (own.name, "", "b200") == (nearest.name, nearest.relation, nearest.chip)
    assert float(own.spec.achieved.matmul) == nearest.values["matmul"]
    other = prior_of(
        graph, "b200", "training", framework="megatron", experts=False, hashes=[*fitted_hashes(graph)[own.name]][:1]
    )
    assert "b200" == other.chip
    assert own.name != other.name
    assert "experts" in other.relation
    assert all(WIDTHS[0] <= width <= WIDTHS[1] for width in nearest.widths.values())
    assert FitPrior() == prior_of(graph, "b200", "training", "none")
    assert FitPrior() == prior_of(graph, "abacus", "training")


def test_an_interval_of_few_rows_is_mostly_that_of_the_prior():
    prior = evolve(PRIOR, ends={"step": (0.5, 2.0)})
    group = GroupErrors("step", "", "", 5, 5, 0.1, 0.1, 0.9, 1.1)
    few, many = prior.drawn(group, 20), prior.drawn(evolve(group, clusters=20), 20)
    assert (0.9**0.25 * 0.5**0.75, 1.1**0.25 * 2.0**0.75) == (pytest.approx(few.low), pytest.approx(few.high))
    assert (0.9, 1.1) == (many.low, many.high)
    assert group == PRIOR.drawn(group, 20)
