"""Fits that pool chips and eras: own values are found, chips without rows have the common ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from attrs import evolve

from tests.perf.oracles.fits import TRUE, cases
from trnspec.perf.calibration.fits.limits import BEST_KERNEL, kernel
from trnspec.perf.calibration.fits.solver import bounded, unbounded
from trnspec.perf.calibration.fits.training import Pooled, batch, era_of, solved

ROWS = cases(24, TRUE)


def measured(chips: dict[str, float], eras: dict[str, float]) -> list:
    """Rows of some chips and eras, each with its own share of matrix multiplications."""
    rows = []
    for i, case in enumerate(ROWS):
        chip, era = sorted(chips)[i % len(chips)], sorted(eras)[i // len(chips) % len(eras)]
        system = evolve(case.system, chip=chip, name=f"{case.system.name} {chip}")
        row = evolve(case, system=system, era=era)
        share = bounded(unbounded(TRUE.matmul, share=True) + chips[chip] + eras[era], share=True)
        rows.append(evolve(row, seconds=float(batch([row]).times(evolve(TRUE, matmul=share))[0])))
    return rows


@pytest.mark.slow
def test_own_shares_are_found():
    rows = measured({"a": 0.0, "b": -0.9}, {"2025": 0.0})
    data = batch(rows)
    pooled = solved(data)
    assert np.abs(data.times(pooled) / data.seconds - 1.0).mean() < 0.03
    one = solved(batch([evolve(r, system=evolve(r.system, chip="a")) for r in rows]))
    assert np.abs(data.times(one) / data.seconds - 1.0).mean() > 0.06
    assert pooled.of("b").matmul < 0.9 * pooled.of("a").matmul
    # A chip without rows is between them.
    assert pooled.of("b").matmul < pooled.of("c").matmul == pooled.of().matmul < pooled.of("a").matmul


@pytest.mark.slow
def test_own_shares_of_eras_are_found():
    rows = measured({"a": 0.0}, {"2025": -0.9, "2026": 0.0})
    pooled = solved(batch(rows, ("2025", "2026")))
    assert pooled.of("a", "2025").matmul < 0.9 * pooled.of("a", "2026").matmul
    # Told that they are one era, rows of both are off.
    together, apart = batch(rows), batch(rows, ("2025", "2026"))
    errors = [np.abs(d.times(solved(d)) / d.seconds - 1.0).mean() for d in (together, apart)]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    ("release", "era"),
    [("2025-11", "2025"), ("2026-02", "2026-02"), ("2026-04", "2026-02"), ("2026-08", "2026-06"), ("2024", "2025"), ("", "2025")],
)  # fmt: skip
def test_the_era_of_a_release(release, era):
    assert era == era_of(release, ("2026-06", "2025", "2026-02"))
    assert "" == era_of(release, ())


def test_values_of_a_chip_stay_within_its_limits():
    pooled = Pooled({"matmul": unbounded(0.9, share=True), "call": math.log(3e-5)}, {("b200", "matmul"): 3.0})
    assert BEST_KERNEL["b200"] == pooled.of("b200").matmul
    assert 0.9 == pytest.approx(pooled.of("trainium1").matmul)
    assert 3e-5 == pytest.approx(pooled.of("b200").call)


def test_measured_kernels_of_a_chip():
    assert 0.0 == kernel("a100-80gb", "matmul") == kernel("b200", "matmul_fp8")
    typical = unbounded(0.72, share=True)
    assert 0.62 == pytest.approx(bounded(typical + kernel("b200", "matmul"), share=True))


def test_rows_of_few_sizes_of_systems_count_more():
    one, many = ROWS[0], evolve(ROWS[0], layout=evolve(ROWS[0].layout, tp=1, pp=1, dp=1))
    weights = batch([many] * 9 + [one]).weights
    assert [1.0] * 9 + [2.0] == list(weights)
    assert [1.0] * 3 == list(batch([one] * 3).weights)
