"""Partially pooled fits: groups with many rows have their own parameters, those with few borrow."""

from __future__ import annotations

import numpy as np
import pytest

from trnspec.perf.calibration.fits.pooled import Pooled, Pooling, fit_pooled

SIZE = np.tile([1.0, 10.0, 100.0], 12)
POOLING = Pooling(
    typical={"rate": 0.5, "fixed": 1.0}, shares=frozenset({"rate"}), deviations={"fixed": ("chip",)}, prior=0.02, ridge=0.3,
    limits={"rate": (0.05, 0.95)},
)  # fmt: skip
FIXED = {"a": 1.0, "b": 3.0}


def rows(few: int) -> list[dict[str, str]]:
    """Of 36 rows those of chip b are few."""
    return [{"chip": "b" if i < few else "a"} for i in range(len(SIZE))]


def fitted(groups: list[dict[str, str]]) -> Pooled:
    fixed = np.array([FIXED[g["chip"]] for g in groups])
    measured = SIZE / 0.7 + fixed

    def log_errors(values: dict[str, np.ndarray]) -> np.ndarray:
        return np.log((SIZE / values["rate"] + values["fixed"]) / measured)[None]

    return fit_pooled(POOLING, groups, log_errors, np.ones((1, len(groups))))


def test_groups_with_rows_have_their_own_parameter() -> None:
    found = fitted(rows(18))
    assert (0.7, 1.0) == pytest.approx([found.values({"chip": "a"})[n] for n in ("rate", "fixed")], rel=0.05)
    assert 3.0 == pytest.approx(found.values({"chip": "b"})["fixed"], rel=0.1)


def test_a_group_with_fewer_rows_is_nearer_to_the_others() -> None:
    many, few = (fitted(rows(n)).values({"chip": "b"})["fixed"] for n in (18, 1))
    assert 1.0 < few < many < 3.0


def test_a_group_without_rows_has_the_mean() -> None:
    found = fitted(rows(18))
    mean = found.values({"chip": "c"})["fixed"]
    assert found.values({"chip": "a"})["fixed"] < mean < found.values({"chip": "b"})["fixed"]
    assert mean == pytest.approx(np.exp(found.means["fixed"]))


def test_limits_are_kept() -> None:
    groups = rows(18)

    def log_errors(values: dict[str, np.ndarray]) -> np.ndarray:
        return np.log(SIZE / values["rate"] / (SIZE / 5.0) + 0.0 * values["fixed"])[None]

    found = fit_pooled(POOLING, groups, log_errors, np.ones((1, len(groups))))
    assert 0.95 == found.values({"chip": "a"})["rate"]


def test_a_search_from_a_result_finds_it_again() -> None:
    groups = rows(18)
    first = fitted(groups)
    fixed = np.array([FIXED[g["chip"]] for g in groups])

    def log_errors(values: dict[str, np.ndarray]) -> np.ndarray:
        return np.log((SIZE / values["rate"] + values["fixed"]) / (SIZE / 0.7 + fixed))[None]

    again = fit_pooled(POOLING, groups, log_errors, np.ones((1, len(groups))), first)
    for chip in ("a", "b"):
        assert first.values({"chip": chip}) == pytest.approx(again.values({"chip": chip}), rel=0.02)
