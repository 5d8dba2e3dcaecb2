"""Measurements next to what is computed for them: what every kind keeps, and what the evaluators answer for the same row."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.engine import everything, shipped
from tests.support.evaluations import keywords
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluators.inference import run as inference_
from trnspec.evidence import Evidence
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured.case import PARTS, Skipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.score import KINDS, AccuracyRow, RowKind, score
from trnspec.perf.lowering.calibrated import Calibrated

run = keywords(inference_)

DATA = folder() / "measured"
TABLES = {
    "train": "training_torchtitan", "infer": "inference_neuron", "collective": "collectives_nccl", "matmul": "matmul",
    "attention": "attention_prefill_gpu", "moe": "moe_gpu", "device_profile": "device_profile_neuron", "op": "ops_neuron",
}  # fmt: skip
FITTED = [kind for kind, of in KINDS.items() if any(each.refit for each in of)]


def rows(name: str) -> list[dict[str, str]]:
    return records(DATA / f"{name}.csv", everything())


def scored(name: str, **options: Any) -> list[AccuracyRow]:
    return [s for s in score(everything(), {name: rows(name)}, **options) if not s.skipped]


@pytest.fixture(scope="module")
def served() -> list[AccuracyRow]:
    return scored("inference_neuron")


def cases_of(kind: str, some: list[dict[str, str]]) -> list[tuple[RowKind, list[Any]]]:
    return [(of, [c for c in of.read(everything(), some) if not isinstance(c, Skipped)]) for of in KINDS[kind]]


def held(kind: str, some: list[dict[str, str]], *holdout: Any) -> dict[tuple[str, Any], tuple[float, Calibrated]]:
    """The rows of a table by fits to other rows, with the calibration that each has then."""
    known = Calibrated(name="a", evidence=Evidence(kind="estimate", reason=""))
    of_kind = [(of, [(case, known) for case in cases]) for of, cases in cases_of(kind, some)]
    every = [of.refit(everything(), cases, holdout) for of, cases in of_kind if of.refit and cases]
    return {key: value for values in every for key, value in values.items()}


def errors(some: list[AccuracyRow], of: str) -> list[float]:
    return [abs(s.error(value)) for s in some if (value := getattr(s, of)) is not None]


def test_every_kind_has_a_table() -> None:
    assert set(TABLES) == set(KINDS)


@pytest.mark.parametrize("kind", TABLES)
def test_every_row_is_scored_or_skipped(kind: str) -> None:
    """With a part that is known; an interval, a kind of evidence and a calibration are together or absent."""
    some = rows(TABLES[kind])
    found = score(everything(), {"a-name": some})
    assert {row["id"] for row in some} == {s.id for s in found}
    for each in found:
        assert "a-name" == each.set
        if each.skipped:
            continue
        assert each.part in PARTS
        assert ("B" if each.part == "memory" else "s") == each.unit
        assert each.ideal
        together = [
            each.calibrated, each.low, each.high, each.calibration or None, None if each.kind == "ideal" else "",
        ]  # fmt: skip
        assert 1 == len({value is None for value in together}), each


@pytest.mark.parametrize("kind", TABLES)
def test_without_a_calibration_only_bounds_are_stated(kind: str) -> None:
    found = scored(TABLES[kind], calibration="none")
    assert found
    assert {(None, None, None, None, "ideal", "")} == {
        (s.calibrated, s.held_out, s.low, s.high, s.kind, s.calibration) for s in found
    }
    assert all(s.error(s.ideal) <= 0.0 for s in found if s.part != "memory")


def test_scored_value_equals_evaluator_answer(served: list[AccuracyRow]) -> None:
    one = next(s for s in served if s.id == "trn1-latency_data_decoder-6-Llama-2-7b" and s.part == "tpot")
    first = next(s for s in served if s.id == one.id and s.part == "ttft")
    asked = {
        "model": "llama-2-7b", "on": "trn1.32xlarge", "tp": 32, "prompt": 128, "output": 8064, "batching": "static",
        "framework": "transformers-neuronx",
    }  # fmt: skip
    found = run(shipped(), **asked)
    for each, answer in ((one, "time_per_output_token"), (first, "time_to_first_token")):
        stated = found.answer(answer)
        assert (stated.value, stated.low, stated.high) == pytest.approx(
            (each.calibrated, each.low, each.high), rel=0.02
        )
        assert run(shipped(), **asked, calibration="none")[answer] == pytest.approx(each.ideal, rel=0.02)


def test_a_calibration_by_name(served: list[AccuracyRow]) -> None:
    name = next(s.calibration for s in served if s.chip == "inferentia2")
    assert {name} == {s.calibration for s in scored("inference_neuron", calibration=name)}
    with pytest.raises(UnknownNameError, match="no calibration is named 'neurn'"):
        scored("inference_neuron", calibration="neurn")
    with pytest.raises(UsageError, match="trainium1-neuron is for training, not for inference"):
        scored("inference_neuron", calibration="trainium1-neuron")


def test_kinds_without_a_scorer_are_skipped() -> None:
    some = [{"kind": "weather", "id": "a"}, {"kind": "", "id": ""}]
    found = score(everything(), {"odd": some})
    assert [("a", "no evaluator for the kind weather"), ("line 3", "no evaluator for rows without a kind")] == [
        (s.id, s.skipped) for s in found
    ]


def few(kind: str) -> list[dict[str, str]]:
    """Rows of one kind of two chips, about twelve of each; of collectives those of one chip, whose fit takes a second."""
    name = {"train": "training_mpt", "collective": "collectives_neuron", "matmul": "gemm_gpu"}.get(kind, TABLES[kind])
    by_chip: dict[str, list[dict[str, str]]] = {}
    for row in rows(name):
        by_chip.setdefault(row["hardware"], []).append(row)
    return [row for some in [*by_chip.values()][:2] for row in some[:: max(1, len(some) // 12)]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITTED)
def test_rows_are_held_out(kind: str) -> None:
    """Each row has a value by fits to other models, and others by fits to other chips and frameworks, where there are several."""
    some = few(kind)
    cases = [c for _, of_kind in cases_of(kind, some) for c in of_kind]
    by_model, by_chip, by_framework, by_both = (
        {key: value for key, (value, _) in held(kind, some, *holdout.split()).items()}
        for holdout in ("model", "chip", "framework", "model chip")
    )
    timed = {(c.id, part): c.measured(part) for c in cases for part in PARTS if part != "memory" and c.measured(part)}
    assert timed.keys() >= by_model.keys()
    assert len(by_model) > 0.8 * len(timed)
    off = [abs(np.log(value / timed[key])) for key, value in by_model.items()]
    assert 1e-3 < np.median(off) < 0.5
    assert by_chip.keys() <= timed.keys()
    assert len({c.chip for c in cases}) == 1 or by_chip != by_model
    # A fit without the model and the chip has neither.
    assert by_both.keys() == by_chip.keys()
    assert not by_both or kind == "collective" or by_both not in (by_model, by_chip)
    # Collectives are fitted to each library, and to all sizes and ranks.
    assert kind != "collective" or not held(kind, some, "ranks")
    assert bool(by_framework) == (kind != "collective" and len({c.framework for c in cases}) > 1)
    assert not by_framework or by_framework not in (by_model, by_chip)


@pytest.mark.parametrize(("kind", "name"), [("train", "ranks"), ("train", "parameters"), ("infer", "seq")])
def test_rows_above_the_middle_of_a_range(kind: str, name: Any) -> None:
    """They are by a fit to the others, whose range is then known."""
    some = few(kind)
    cases = {c.id: c for _, of_kind in cases_of(kind, some) for c in of_kind}
    found = {row: known for (row, _), (_, known) in held(kind, some, name).items()}
    assert found
    assert set(found) < set(cases)
    left = [case.inputs[name] for row, case in cases.items() if row not in found and (kind == "train" or case.tpot)]
    assert {(min(left), max(left))} == {known.ranges[name] for known in found.values()}


def test_a_row_without_its_chip_is_transferred() -> None:
    """With the interval of other chips, which is never narrower; a row by a fit to other models stays an estimate."""
    table = {"t": few("matmul")}
    own, by_model, by_chip = (
        score(everything(), table, **more) for more in ({}, {"refit": True}, {"refit": True, "holdout": ("chip",)})
    )
    assert {"estimate"} == {s.kind for s in own} == {s.kind for s in by_model}
    assert {"transferred"} == {s.kind for s in by_chip if s.held_out}
    assert [(s.low, s.high) for s in own] == [(s.low, s.high) for s in by_model]
    assert all(b.low <= a.low < a.high <= b.high for a, b in zip(own, by_chip, strict=True))
    assert any(b.high > a.high for a, b in zip(own, by_chip, strict=True))


@functools.cache
def computed(table: Path) -> list[AccuracyRow]:
    """The rows of a table that can be computed, with their ideal times."""
    return [s for s in scored(table.stem, calibration="none") if s.part != "memory"]


@pytest.mark.parametrize("table", sorted(DATA.glob("*.csv")), ids=lambda t: t.stem)
def test_no_measured_row_is_faster_than_its_bound(table: Path) -> None:
    assert [] == [(s.id, s.part, s.measured, s.ideal) for s in computed(table) if s.error(s.ideal) > 0.0]


def test_the_tables_have_rows() -> None:
    """Most tables can be computed; a reader that skips all rows would make the test above empty."""
    assert {t.stem for t in DATA.glob("*.csv") if len(computed(t)) > 10} >= {
        "collectives_gpu", "collectives_nccl", "collectives_neuron", "gemm_gpu", "inference_neuron", "attention_prefill_gpu",
        "attention_decode_gpu", "moe_gpu", "serving_gpu", "inference_h100_reference", "inference_neuron_2026",
        "training_a100_vtrain", "training_megatron_bridge", "training_mlperf", "training_mpt",
    }  # fmt: skip
