"""The range of a fit, and how far rows are outside."""

import pytest
from attrs import evolve

from tests.perf.oracles.fits import TRUE, cases
from tests.support.engine import everything, shipped
from trnspec.loading.files import shipped as folder
from trnspec.model.calibration import Calibration
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.calibration.degrees import measured_degrees
from trnspec.perf.calibration.fit_range import fitted_on, ranges, rows_of, versions, within
from trnspec.perf.calibration.measured.case import ModelCase
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.inference import inference_cases
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases
from trnspec.perf.lowering.lower import model_named

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


@pytest.mark.parametrize(
    ("fit", "table", "read"),
    [
        ("h100-sxm-megatron-dense", "training_mlperf", training_cases),
        ("trainium2-nxd-inference-2026-dense-inference", "inference_neuron_2026", inference_cases),
        ("trainium1-optimum-neuron-2025-dense-inference", "inference_neuron", inference_cases),
    ],
)
def test_inputs_of_rows_are_those_of_their_cases(fit, table, read) -> None:
    """Those that a row states."""
    rows = {row.id: row.inputs for row in rows_of(everything(), fit)}
    found = read(everything(), records(folder() / "measured" / f"{table}.csv"))
    known = {c.id: c.inputs for c in found if isinstance(c, ModelCase) and c.id in rows}
    assert known
    assert known == {name: known[name] | {n: rows[name][n] for n in known[name] if n in rows[name]} for name in known}
    assert {name for inputs in known.values() for name in inputs} <= {n for name in known for n in rows[name]}


def test_shipped_calibrations_record_the_range_of_their_rows() -> None:
    """The document has the least and the largest value of the measured rows."""
    spec = everything().named("trainium1-neuron").spec
    found = training_cases(everything(), records(folder() / "measured" / spec.tables[0].table))
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


def degrees(chip: str, model: str) -> dict[str, tuple[int, ...]]:
    return measured_degrees(everything(), chip, dimensions(model_named(everything(), model).spec))


def test_models_of_similar_size_on_chips_of_the_publisher() -> None:
    """Llama 3.1 8B on Trainium1 was measured with TP 32, Llama 2 7B and 13B with TP 8 and PP 4; Trainium2 has no rows."""
    expected = {"tp": (8, 32), "pp": (1, 4), "cp": (1,), "ep": (1,)}
    assert degrees("trainium1", "llama-3.1-8b") == degrees("trainium2", "llama-3.1-8b") == expected
    assert max(degrees("h100-sxm", "llama-3.1-405b")["pp"]) > 1


def test_without_a_comparable_model() -> None:
    """None of more than 13B parameters was trained on Trainium1 in a table."""
    assert degrees("trainium1", "llama-3.1-405b") == {}


def test_models_with_experts_have_degrees_of_dense_ones_where_none_was_measured() -> None:
    """Of Trainium1; the expert-parallel degree is open."""
    assert degrees("trainium1", "mixtral-8x7b") == {"tp": (8,), "pp": (4,), "cp": (1,)}
    assert max(degrees("h100-sxm", "qwen3-30b-a3b")["ep"]) > 1


def test_a_catalog_without_the_hardware_of_a_table() -> None:
    """Rows of chips that the catalog lacks do not count."""
    llama = dimensions(model_named(shipped().graph, "llama-3.1-8b").spec)
    assert measured_degrees(shipped().graph, "h100-sxm", llama) == {}
