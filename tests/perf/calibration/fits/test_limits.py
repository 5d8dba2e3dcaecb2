"""Physical limits of fits: kept by every fit, and not contradicted by a measurement."""

import numpy as np
import pytest
from attrs import evolve

from tests.perf.oracles.fits import TRUE, cases
from tests.support.engine import everything
from tests.support.programs import ROOT
from trnspec.loading.files import shipped
from trnspec.perf.calibration.fits.fit import fit
from trnspec.perf.calibration.fits.inference import FIRST, TOKEN
from trnspec.perf.calibration.fits.limits import BEST_KERNEL, LIMITS, limits
from trnspec.perf.calibration.fits.serving import TYPICAL as IN_FLIGHT
from trnspec.perf.calibration.fits.training import TYPICAL, training
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.kernels import KernelCase, KernelRuns, kernel_cases


def test_every_fitted_parameter_has_limits() -> None:
    typical = IN_FLIGHT | TYPICAL | TOKEN | FIRST

    assert set(typical) == set(LIMITS)
    assert dict.fromkeys(typical, True) == {n: LIMITS[n].low < typical[n] < LIMITS[n].high for n in typical}


def test_no_measured_kernel_is_better_than_the_limit() -> None:
    read = kernel_cases(everything(), records(shipped() / "measured" / "matmul.csv"), "matmul")
    rows = [c for c in read if isinstance(c, KernelCase)]

    assert rows
    best: dict[str, float] = {}
    for row, ideal in zip(rows, KernelRuns.of("gemm", rows).times({})["gemm"], strict=True):
        best[row.chip] = max(best.get(row.chip, 0.0), ideal / row.seconds)
    for chip, share in best.items():
        assert share <= limits([chip])["matmul"][1], chip
    assert LIMITS["matmul"].high - max(best.values()) < 0.005


def test_the_least_of_the_chips_of_a_fit() -> None:
    assert 0.94 == limits()["matmul"][1] == limits(["trainium1"])["matmul"][1]
    assert BEST_KERNEL["b200"] == limits(["h100-sxm", "b200", "a100-80gb"])["matmul"][1]


@pytest.mark.parametrize("off", [0.05, 20.0])
def test_a_fit_stays_within(off) -> None:
    """Times that no machine could reach, or that are far too long, do not move a parameter outside."""
    rows = [evolve(c, seconds=off * c.seconds) for c in cases(12, TRUE)]
    fitted = fit(training(), rows)["model"]

    for name in fitted.values.keys() - {"causal"}:
        low, high = limits({c.chip for c in rows})[name]
        assert low <= fitted.values[name] * (1 + 1e-9), name
        assert fitted.values[name] <= high * (1 + 1e-9), name
    assert np.abs(fitted.main.fit).max() > 0.1


def test_the_documentation_has_the_same_table() -> None:
    text = (ROOT / "docs/explanation/performance/calibration.md").read_text(encoding="utf-8")
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    table = {name.strip("` "): cells[1:] for cells in rows if len(cells) == 4 for name in cells[0].split(",")}

    assert {name: limit.reason for name, limit in LIMITS.items()} == {name: row[2] for name, row in table.items()}
    for name, limit in LIMITS.items():
        assert (limit.low, limit.high) == pytest.approx(tuple(map(_value, table[name][:2]))), name


def _value(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number) * {"": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
