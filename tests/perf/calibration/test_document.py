"""A fit as a document: sound, and what is read from it is what was fitted, to four digits."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import fields, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perf.oracles.fits import TRUE, WRITTEN
from trnspec.api import load, validate
from trnspec.perf.calibration.document import document, printed
from trnspec.perf.calibration.fits.fit import Errors, Fitted
from trnspec.perf.calibration.fits.training import TYPICAL
from trnspec.perf.calibration.groups import COVERAGE, GroupErrors
from trnspec.perf.lowering.calibrated import calibrated
from trnspec.perf.lowering.machine import IDEAL, Efficiency
from trnspec.quantities.quantity import parse

HELD = np.array([0.1234567, -0.0371234, 0.0, 0.02, -0.5])
NAMES = tuple(TYPICAL)
TOLD = {
    "name": "trainium1-mine", "of": "training", "software": "Megatron-LM", "source": "neuron-benchmarks-2026-08",
    "data": ["rows.csv"], "date": "2026-11-21", "schema": "../../schemas/v1/calibration.schema.json",
}  # fmt: skip


@frozen
class Row:
    """A row of one size of systems."""

    ranks: float = 1.0


def fitted(efficiency: Efficiency = TRUE, names: tuple[str, ...] = NAMES, **about: Any) -> Fitted:
    rows = (Row(),) * len(HELD)
    values = {n: value for n in (*names, "causal") if (value := getattr(efficiency, n)) is not None}
    errors = Errors(cases=rows, fit=HELD / 2, held_out=HELD)
    return Fitted(cases=rows, values=values, errors={"step": errors}, chip="trainium1", **about)


def written(folder: Path, found: Fitted, **changed: Any) -> Path:
    shown = TOLD | changed
    place = folder / "calibrations"
    place.mkdir(exist_ok=True)
    (place / f"{shown['name']}.yaml").write_text(document(found, **shown), encoding="utf-8")
    return folder


@pytest.mark.parametrize("efficiency", [TRUE, WRITTEN], ids=["flash", "scores"])
def test_calibration_document_round_trip(tmp_path, efficiency):
    found = fitted(efficiency)
    read = calibrated(load([str(written(tmp_path, found))]).graph, "trainium1", "training", "trainium1-mine")
    for each in fields(Efficiency):
        expected, actual = found.values.get(each.name, getattr(IDEAL, each.name)), getattr(read.efficiency, each.name)
        if expected is None:
            assert actual is None
            continue
        assert math.isclose(expected, actual, rel_tol=0.5e-3, abs_tol=0.0), each.name
    assert math.isclose(found.main.low, read.low, rel_tol=0.5e-3)
    assert math.isclose(found.main.high, read.high, rel_tol=0.5e-3)
    assert COVERAGE == read.coverage
    assert "Megatron-LM, 5 rows, 13.6% mean error" in read.description


GROUP = GroupErrors("step", "cluster", "dense", 5, 4, 0.09, 0.053, 0.91, 1.08)
LABELS = {"framework": "megatron", "era": "2026", "models": "dense"}


def test_labels_groups_and_rows(tmp_path):
    written(tmp_path, fitted(**LABELS, groups=(GROUP,)), hashes=["1b2c3d4e", "0a1b2c3d"])
    assert [] == list(validate([str(tmp_path)]).report.diagnostics)
    spec = load([str(tmp_path)]).graph.named("trainium1-mine").spec
    assert ("megatron", "2026", "dense") == (spec.framework, spec.era, spec.models)
    assert "0a1b2c3d 1b2c3d4e" == spec.rows
    (read,) = spec.groups
    assert ("step", "cluster", "dense", 5, 4) == (read.phase, read.scale, read.models, read.rows, read.clusters)
    assert [0.09, 0.053, 0.91, 1.08] == [float(getattr(read, name)) for name in ("mean", "median", "low", "high")]


def test_document_has_only_fitted_parameters():
    """What was not free to move is left out, and so read as ideal; causality is always reported."""
    assert {"matmul": "0.72x", "step": "2 ms", "causal": "1x"} == printed(fitted(names=("matmul", "step")).values)
    assert {*NAMES, "causal"} - {"matmul_fp8", "matmul_fp4"} - {"score_passes"} <= set(printed(fitted().values))


PRINTED = {
    0.723456: ("0.7235x", "723.5 ms"), 1.0: ("1x", "1 s"), 110.94321: ("110.9x", "110.9 s"), 0.0: ("0x", "0 ns"),
    2e-5: ("0.00002x", "20 us"), 1.23456e-4: ("0.0001235x", "123.5 us"), 3.4e-9: ("0.0000000034x", "3.4 ns"),
    12345678.0: ("12350000x", "12350000 s"), 0.99999999: ("1x", "1000 ms"),
}  # fmt: skip


@pytest.mark.parametrize("value", PRINTED)
def test_figures_as_printed(value):
    found = printed({"matmul": value, "step": value})
    assert PRINTED[value] == (found["matmul"], found["step"])


@given(st.floats(1e-6, 1e6), st.floats(1e-9, 1e3))
@settings(deadline=None)
def test_four_digits_of_every_figure(share, seconds):
    found = printed({"matmul_passes": share, "step": seconds})
    assert math.isclose(share, float(parse(found["matmul_passes"]).value), rel_tol=0.5e-3, abs_tol=1e-10)
    assert math.isclose(seconds, float(parse(found["step"]).value), rel_tol=0.5e-3, abs_tol=1e-12)


WORDS = [
    "Neuron: 2.18 # nightly", "yes", "2.18", "a 'quoted' \"text\"", "- dash", "{braces}", "*star", "line\nbreak",
    "100%", "Ünïcode 模型", "back\\slash", "a: b", "null", "x ", "@at", "Megatron-LM, Bridge",
]  # fmt: skip


def test_text_fields_are_unchanged(tmp_path):
    """Whatever the software and the file are called, the document is sound and says that."""
    for i, words in enumerate(WORDS):
        written(tmp_path, fitted(), name=f"mine-{i}", software=words, data=[words])
    assert [] == list(validate([str(tmp_path)]).report.diagnostics)
    found = load([str(tmp_path)])
    for i, words in enumerate(WORDS):
        node = found.graph.named(f"mine-{i}")
        assert (words, words) == (node.spec.software, node.spec.data)
        assert f"{words}, training" == node.metadata.title


def test_empty_fields_are_omitted():
    """A mapping without entries has no line, and a count of 0 has one."""
    roof = {"kernel": "gemm", "precision": "bf16", "rows": 0, "compute": 0.5, "fixed": 3e-6}
    text = document(fitted(roofs=(roof,)), **TOLD)
    assert "  roofs: [{kernel: gemm, precision: bf16, rows: 0, compute: 0.5x, fixed: 3 us}]\n" in text
    assert not {"fitted_on:", "groups:", "prior:", "tables:", "rows:", "era:", "note:"} & {
        line.strip() for line in text.splitlines()
    }
