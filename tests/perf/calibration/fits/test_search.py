"""Searches: groups with many rows have their own parameters, those with few borrow; limits are kept, also those of chips."""

import sys
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from trnspec.errors import UsageError
from trnspec.perf.calibration.fits.limits import BEST_KERNEL, kernel, limits
from trnspec.perf.calibration.fits.search import SearchResult, Space, bounded, search, unbounded
from trnspec.perf.calibration.fits.uncertainty import OUTLYING, posterior

SIZE = np.tile([1.0, 10.0, 100.0], 12)
FIXED = {"a": 1.0, "b": 3.0}
ROWS = Space(
    typical={"matmul": 0.5, "fixed": 1.0}, pulls={"matmul": 0.02, "fixed": 0.02}, ridge=0.3, loss="rows", tolerance=1e-6,
    limits={"matmul": (0.05, 0.95), "fixed": (1e-3, 1e3)}, deviations={"fixed": ("chip",)},
)  # fmt: skip
SPACES = {"rows": ROWS, "all": evolve(ROWS, loss="all"), "no derivatives": evolve(ROWS, loss="all", step=0.0)}


def rows(few: int) -> list[dict[str, str]]:
    """Of 36 rows those of chip b are few."""
    return [{"chip": "b" if i < few else "a"} for i in range(len(SIZE))]


def fitted(
    space: Space, groups: list[dict[str, str]], calls: list[int] | None = None, start: SearchResult | None = None
) -> SearchResult:
    measured = SIZE / 0.7 + np.array([FIXED[g["chip"]] for g in groups])

    def log_errors(values: dict[str, Any]) -> Any:
        if calls is not None:
            calls.append(1)
        return np.log((SIZE / values["matmul"] + values["fixed"]) / measured)

    return search(space, groups, log_errors, start=start)


@pytest.fixture(params=SPACES)
def space(request: pytest.FixtureRequest) -> Space:
    return SPACES[request.param]


def test_groups_with_rows_have_their_own_parameter(space: Space) -> None:
    found = fitted(space, rows(18))
    assert (0.7, 1.0) == pytest.approx([found.values({"chip": "a"})[n] for n in ("matmul", "fixed")], rel=0.05)
    assert 3.0 == pytest.approx(found.values({"chip": "b"})["fixed"], rel=0.1)
    assert [found.values({"chip": c})["fixed"] for c in "ab"] == found.arrays([{"chip": "a"}, {"chip": "b"}])[
        "fixed"
    ].tolist()


def test_a_group_with_fewer_rows_is_nearer_to_the_others(space: Space) -> None:
    many, few = (fitted(space, rows(n)).values({"chip": "b"})["fixed"] for n in (18, 1))
    assert 1.0 < few < many < 3.0


def test_limits_are_kept(space: Space) -> None:
    """Rows that no machine could reach do not move a parameter outside."""
    found = search(space, rows(18), lambda values: np.log(5.0 / values["matmul"] + 0.0 * values["fixed"] * SIZE))
    assert 0.95 == pytest.approx(found.values({"chip": "a"})["matmul"], rel=1e-3)
    assert found.values({"chip": "a"})["matmul"] <= 0.95


def test_all_derivatives_take_one_call() -> None:
    calls: list[int] = []
    found = fitted(SPACES["all"], rows(18), calls)
    assert len(calls) < 60
    # The derivatives by all parameters are those of single differences, which lead to the same minimum.
    single = fitted(SPACES["no derivatives"], rows(18))
    assert found.means == pytest.approx(single.means, rel=1e-3)
    assert found.deviations == pytest.approx(single.deviations, rel=1e-2, abs=1e-3)


def test_without_rows_the_result_is_the_prior() -> None:
    assert ROWS.typical == pytest.approx(search(ROWS, [], lambda _: np.empty(0)).values())


def test_values_of_a_chip_stay_within_its_limits() -> None:
    space = Space(
        typical={"matmul": 0.9, "call": 3e-5}, pulls={}, limits=limits(), by_chip=True, deviations={"matmul": ("chip",)}
    )
    found = SearchResult(space, space.centers, {("matmul", "chip", "b200"): 3.0})
    assert BEST_KERNEL["b200"] == found.values({"chip": "b200"})["matmul"]
    assert 0.9 == pytest.approx(found.values({"chip": "trainium1"})["matmul"])
    assert 3e-5 == pytest.approx(found.values({"chip": "b200"})["call"])


def test_measured_kernels_of_a_chip() -> None:
    assert 0.0 == kernel("a100-80gb", "matmul") == kernel("b200", "matmul_fp8")
    assert 0.62 == pytest.approx(bounded("matmul", unbounded("matmul", 0.72) + kernel("b200", "matmul")))


def test_the_uncertainty_is_that_of_all_rows() -> None:
    """The inverse of the curvature of the rows and of the prior, whose rows are the last of the Jacobian."""
    rng = np.random.default_rng(3)
    rows, residuals = rng.normal(size=(5, 2)), np.array([2.0, 4.0])
    found = posterior(("matmul", "hop"), np.vstack([rows, np.full((2, 2), 1e9)]), {"matmul": 0.5}, residuals)
    assert np.allclose(np.linalg.inv(found.covariance) * OUTLYING**2, rows.T @ rows + np.diag([4.0, 16.0]))
    assert (found.keys, found.prior) == (("matmul", "hop"), {"matmul": 0.5})


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(UsageError, match=r"scipy.*pip install 'trnspec\[calibrate\]'"):
        fitted(ROWS, rows(18))
