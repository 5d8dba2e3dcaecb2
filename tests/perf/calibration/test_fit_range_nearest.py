"""The measured row that is nearest to a question: of the rows of the fit, by the ratios of inputs."""

import re
from typing import Any

import pytest

import trnspec
from tests.support.engine import shipped
from tests.support.programs import NVIDIA
from trnspec.api import load
from trnspec.evaluation.page import page
from trnspec.loading.files import shipped as folder
from trnspec.model.document_text import document_text
from trnspec.perf.calibration.fit_range import far_inputs, nearest_row, with_memory
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.training import training_cases

DATA = folder() / "measured" / "training_trn1.csv"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """The shipped catalog, and a calibration that has seen the rows of a table."""
    place = tmp_path_factory.mktemp("own") / "calibrations"
    place.mkdir()
    data: Any = shipped().graph.named("trainium1-neuron").document.data
    metadata, spec = {**data["metadata"], "name": "trainium1-seen"}, {**data["spec"], "era": "2099"}
    (place / "trainium1-seen.yaml").write_text(document_text("Calibration", metadata, spec))
    return load([str(folder()), str(place.parent)])


def test_a_row_is_nearest_to_itself(catalog):
    """Or to another release of the same run; nothing differs by a quarter."""
    cases = [c for c in training_cases(catalog.graph, records(DATA, catalog.graph)) if not isinstance(c, Skipped)]
    assert cases
    for case in cases:
        found = nearest_row(catalog.graph, "trainium1-seen", case.inputs, case.model)
        assert ("training_trn1", ()) == (found.set, found.differences)


def test_how_it_differs(catalog):
    (case, *_) = [c for c in training_cases(catalog.graph, records(DATA, catalog.graph)) if not isinstance(c, Skipped)]
    inputs = case.inputs
    found = nearest_row(catalog.graph, "trainium1-seen", {**inputs, "seq": 64 * inputs["seq"]}, "another-model")
    different = {o.input: o.factor for o in found.differences}
    assert different["seq"] > 1.25
    assert ("model", "another-model") == (found.differences[-1].input, found.differences[-1].value)
    assert sorted(different.values(), reverse=True)[:-1] == [o.factor for o in found.differences[:-1]]


def test_inputs_are_far_from_every_row(catalog):
    """By more than a factor of two of the row that differs least; a row, and what is within the factor, is near."""
    graph, name = catalog.graph, "trainium1-seen"
    (case, *_) = [c for c in training_cases(graph, records(DATA, graph)) if not isinstance(c, Skipped)]
    inputs = with_memory(case.inputs, case.dims, case.layout)

    assert far_inputs(graph, name, inputs, experts=False) == ()
    assert far_inputs(graph, name, {**inputs, "weights_per_rank": 1.9 * inputs["weights_per_rank"]}) == ()
    far, *_ = far_inputs(graph, name, {**inputs, "weights_per_rank": 1e3 * inputs["weights_per_rank"]})
    assert far.input == "weights_per_rank"
    assert 2.0 < far.factor <= 1e3
    assert far.value == pytest.approx(far.factor * far.low)
    assert re.search(r"^weights_per_rank [\d,.e+]+ GB is [\d,.]+x above [\d.]+ GB$", str(far))
    assert far_inputs(graph, "no-calibration", inputs) == ()


def test_an_answer_far_from_every_row_is_extrapolated():
    """Long outputs, whose sum with the prompt is in the range of the fit."""
    asked = {
        "model": "qwen3-8b",
        "on": "trn2.48xlarge",
        "tp": 4,
        "prompt": 1024,
        "batch": 4,
        "framework": "nxd-inference",
    }
    kinds = [trnspec.evaluate("inference", shipped(), **asked, output=n).evidence for n in (128, 16384)]

    assert kinds[1].kind == "extrapolated"
    assert "no row is near: output 16,384 is " in kinds[1].reason
    assert next(o.input for o in kinds[1].outside) == "output"
    assert "output" not in {o.input for o in kinds[0].outside}


def test_a_measured_collective():
    """Of the same collective where the fit has one, by size and ranks; the answer names it."""
    graph, name = shipped().graph, "trainium2-nccom-2026-collectives"
    found = nearest_row(graph, name, {"size": 2.0**20, "ranks": 64.0}, collective="all-reduce")
    (row,) = [row for row in records(DATA.with_name(f"{found.set}.csv"), graph) if row["id"] == found.id]
    assert ("all_reduce", str(2**20), ()) == (row["collective"], row["size_bytes"], found.differences)
    other = nearest_row(graph, name, {"size": 2.0**20, "ranks": 64.0}, collective="all-to-all")
    assert [("kind", "all-to-all")] == [(o.input, o.value) for o in other.differences]
    answer = trnspec.evaluate("collective", shipped(), kind="all-reduce", size="1 MiB", on="trn2.48xlarge", ranks=16)
    assert [("ranks", 16.0)] == [(o.input, o.value) for o in answer.evidence.nearest.differences]
    assert any("nearest row" in str(part) for part in page(answer))


def test_rows_of_the_kind_of_model_come_first():
    """A fit of serving on several chips has rows of both."""
    graph = load([str(folder()), str(NVIDIA)]).graph
    inputs = {"parameters": 7e10, "tp": 8.0, "prompt": 4096.0, "batch": 16.0, "ranks": 8.0}
    dense, experts = (
        nearest_row(graph, "h200-sglang-2026-dense-inference", inputs, chip="h200", dtype="bf16", experts=kind)
        for kind in (False, True)
    )
    assert ("llama" in dense.id, "llama" in experts.id) == (True, False)


def test_rows_of_the_chip_and_the_dtype_come_first():
    """Of a fit of several chips: another chip or dtype is a difference, and only where the fit has none like it."""
    graph = load([str(folder()), str(NVIDIA)]).graph
    fit = graph.named("h100-sxm-megatron-dense")
    inputs = {"parameters": 4e11, "tp": 8.0, "pp": 8.0, "seq": 8192.0, "ranks": 512.0}
    for chip in fit.spec.fitted_on.chips:
        found = nearest_row(graph, fit.name, inputs, chip=chip, dtype="bf16")
        assert "chip" not in {o.input for o in found.differences}
    same = nearest_row(graph, fit.name, inputs, chip="b200", dtype="bf16")
    assert not {"chip", "dtype"} & {o.input for o in same.differences}
    other = nearest_row(graph, fit.name, inputs, chip="a100-80gb", dtype="fp64")
    assert {"chip", "dtype"} <= {o.input for o in other.differences}


def test_dense_rows_for_a_model_with_experts_are_a_difference() -> None:
    """No model with experts was trained on Trainium1."""
    near = nearest_row(shipped().graph, "trainium1-neuron", {"tp": 8.0}, "mixtral-8x7b", experts=True)

    assert near is not None
    assert "models with experts, fitted on dense" in [str(one) for one in near.differences]
