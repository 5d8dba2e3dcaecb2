"""Fits of training steps: which parameters are free, what chips and eras have of their own, and times of batches."""

import numpy as np
import pytest
from attrs import asdict, evolve

from tests.perf.oracles.fits import TRUE, WRITTEN, cases
from trnspec.perf.calibration.document import printed
from trnspec.perf.calibration.fits.fit import Fitted, fit
from trnspec.perf.calibration.fits.search import SearchResult, unbounded
from trnspec.perf.calibration.fits.training import TYPICAL, batch, era_of, free, training, weights
from trnspec.perf.calibration.measured.training import TrainingCase
from trnspec.perf.lowering.machine import IDEAL, Efficiency, machine
from trnspec.perf.training.step import step
from trnspec.perf.work.transformer import transformer

CLEAN = cases(60, TRUE)
ROWS = CLEAN[:24]


def fitted(some: list[TrainingCase]) -> Fitted:
    return fit(training(), some)["model"]


def times(some: list[TrainingCase], efficiency: Efficiency | Fitted) -> np.ndarray:
    return batch(some).times(asdict(efficiency) if isinstance(efficiency, Efficiency) else efficiency.values)["step"]


def test_scores_that_are_written_are_fitted():
    """In rows without flash attention; such a fit charges none of them to a run with flash attention."""
    written = cases(30, WRITTEN, flash=False)
    found = fitted(written)
    fused = [evolve(c, layout=evolve(c.layout, flash=True)) for c in written]
    without = evolve(found, values=found.values | {"score_passes": 0.0, "causal": 1.0})
    assert (times(fused, found) == times(fused, without)).all()
    assert 0.0 == found.values["causal"]
    assert found.values["score_passes"] > 0.0
    assert found.main.summary(held_out=False)[0] < 0.03


def test_software_that_overlaps_no_gradients():
    """Whatever a calibration says of other software, its rows are computed so; the fit to them says so too."""
    blocking = [evolve(c, blocking=True) for c in cases(30, evolve(TRUE, overlap=0.0))]
    plain = cases(30, TRUE)
    assert (times(blocking, TRUE) == times(plain, evolve(TRUE, overlap=0.0))).all()
    assert (times(blocking, TRUE) > times(plain, TRUE)).any()
    found = fitted(blocking)
    assert (0.0, False) == (found.values["overlap"], "exposed" in found.values)
    assert "0x" == printed(found.values)["overlap"]
    assert found.main.summary(held_out=False)[0] < 0.03
    # With rows of other software it is a parameter again, and holds for those alone.
    mixed = fitted([*blocking[:15], *plain[15:]])
    assert {"overlap", "exposed"} < set(mixed.values)
    assert mixed.values["overlap"] > 0.0


def test_times_of_a_batch_are_those_of_each_row():
    for efficiency in (IDEAL, TRUE, WRITTEN):
        each = [step(transformer(c.dims), c.layout, machine(c.system, efficiency, c.dtype)).total for c in CLEAN]
        assert each == times(CLEAN, efficiency).tolist()
    # All on one system: its numbers need no rows.
    some = [c for c in CLEAN if c.system == CLEAN[0].system]
    assert 1 == len(batch(some).systems)
    assert times(some, TRUE).shape == (len(some),)


ONE = evolve(CLEAN[0], layout=evolve(CLEAN[0].layout, tp=1, pp=1, dp=1, cp=1, overlap=False))


def test_free_parameters_are_those_of_the_rows():
    alone = evolve(ONE, system=evolve(ONE.system, levels=ONE.system.levels[:-1]))
    least = set(free([alone]))
    absent = {
        "score_passes", "tensor_overlap", "send", "overlap", "exposed", "network", "ultraserver", "pipeline_overlap",
    }  # fmt: skip
    assert set(TYPICAL) - absent - {"matmul_fp8", "matmul_fp4"} == least
    for changed, more in (
        ({"overlap": True}, {"tensor_overlap"}), ({"pp": 2}, {"send"}), ({"dp": 2}, {"overlap", "exposed"}),
        ({"cp": 2}, {"overlap", "exposed"}), ({"flash": False}, {"score_passes"}),
    ):  # fmt: skip
        assert more == set(free([evolve(alone, layout=evolve(alone.layout, **changed))])) - least
    assert {"network"} == set(free([ONE])) - least


@pytest.mark.parametrize(
    ("release", "era"),
    [("2025-11", "2025"), ("2026-02", "2026-02"), ("2026-04", "2026-02"), ("2026-08", "2026-06"), ("2024", "2025"), ("", "2025")],
)  # fmt: skip
def test_the_era_of_a_release(release, era):
    assert era == era_of(release, ("2026-06", "2025", "2026-02"))
    assert "" == era_of(release, ())


def test_parameters_of_several_chips_and_eras():
    """The rows of each system have those of its chip and era."""
    eras = ("2020", "2022")
    chips = [
        evolve(c, system=evolve(c.system, chip=f"chip-{i % 2}", name=f"{c.system.name} {i % 2}"))
        for i, c in enumerate(cases(12, TRUE))
    ]
    some = [evolve(c, era=str(2020 + i % 3)) for i, c in enumerate(chips)]
    model = training(eras)
    found = SearchResult(
        model.space(some, fit(training(), some)["model"].prior), {n: unbounded(n, getattr(TRUE, n)) for n in ("matmul", "call")},
        {("matmul", "chip", "chip-0"): 0.2, ("matmul", "era", "2022"): -0.1},
    )  # fmt: skip
    together = model.times(some, found)["step"]
    alone = [times([c], Efficiency(**found.values(model.groups(c))))[0] for c in some]
    assert alone == together.tolist()


def test_rows_of_few_sizes_of_systems_count_more():
    one, many = ROWS[0], evolve(ROWS[0], layout=evolve(ROWS[0].layout, tp=1, pp=1, dp=1))
    assert [1.0] * 9 + [2.0] == list(weights([many] * 9 + [one]))
    assert [1.0] * 3 == list(weights([one] * 3))
