"""The range of a fit, and how far rows are outside."""

from __future__ import annotations

from attrs import evolve

from tests.perf.oracles.fits import TRUE, cases
from tests.support.engine import everything
from trnspec.loading.files import shipped
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fit_range import fitted_on, ranges, versions, within
from trnspec.perf.calibration.measured.tables import records
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases

ROWS = cases(12, TRUE)

MODEL_INPUTS = {"parameters", "seq", "tp", "pp", "ep", "ranks"}
INPUTS = {
    "training": MODEL_INPUTS | {"cp", "tokens_per_rank", "global_batch"},
    "inference": MODEL_INPUTS | {"prompt", "batch"},
    "collectives": {"ranks", "servers", "size"},
    "kernels": set(),
}
"""The inputs whose range a calibration has, by what was measured; kernels have none."""


def test_ranges() -> None:
    inputs = [c.inputs for c in ROWS]
    found = ranges(inputs)

    assert {n: (min(i[n] for i in inputs), max(i[n] for i in inputs)) for n in inputs[0]} == found
    assert {c.layout.microbatch * c.layout.seq / c.layout.cp for c in ROWS} == {i["tokens_per_rank"] for i in inputs}


def test_versions() -> None:
    texts = ("; Neuron 2.24.0", "26.02.01 NeMo Container; x", "eos_n64_ngc24.04_nemo", "Neuron 2.9.1", "no version")

    assert ["2.9.1", "2.24.0", "24.04", "26.02.01"] == versions(
        [evolve(c, source_text=t) for c, t in zip(ROWS, texts, strict=False)]
    )


def test_shipped_calibrations_record_the_range_of_their_rows() -> None:
    """The document has the least and the largest value of the measured rows."""
    spec = everything().named("trainium1-neuron").spec
    found = training_cases(everything(), records(shipped() / "measured" / spec.tables[0].table))
    rows = [c for c in found if isinstance(c, TrainingCase)]

    assert within(spec.fitted_on) == {n: (round(a), round(b)) for n, (a, b) in ranges([c.inputs for c in rows]).items()}
    assert ("trainium1",) == spec.fitted_on.chips
    assert [*spec.fitted_on.dtypes] == fitted_on(rows)["dtypes"]


def test_every_shipped_calibration_has_ranges_and_a_transfer() -> None:
    for node in everything().of(Calibration):
        fitted = node.spec.fitted_on
        assert INPUTS[node.spec.of] <= set(within(fitted) if fitted else ()), node.name
        assert node.spec.spread.transfer is not None, node.name
        assert node.spec.spread.extrapolation is not None, node.name
