"""Rows of measurements as cases: the edits of ``rows.yaml``, each with what the case has or why the row is skipped."""

from collections import Counter
from functools import reduce
from typing import Any

import pytest

from tests.perf.calibration.measured.conftest import READERS, ROWS, changed, one
from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured.case import Case, Skipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measured.serving import ServingCase, on_gpu, serving_cases

DATA = folder() / "measured"


def attribute(value: Any, path: str) -> Any:
    def step(of: Any, name: str) -> Any:
        return of[int(name)] if name.isdigit() else getattr(of, name)

    return reduce(step, path.split("."), value)


def edits(of: str) -> list[Any]:
    return [pytest.param(name, *each, id=f"{name} {each[0]}"[:60]) for name in ROWS for each in ROWS[name][of]]


def test_every_reader_has_rows() -> None:
    assert READERS.keys() == ROWS.keys()


@pytest.mark.parametrize(("name", "edit", "expected"), edits("read"))
def test_case_of_a_row(name: str, edit: dict[str, Any], expected: dict[str, Any]) -> None:
    found = one(name, **edit)
    assert isinstance(found, Case), found
    assert not any(found.measured(part) for part in {"step", "tpot", "collective", "op"} - found.PARTS.keys())
    actual = {path: attribute(found, path) for path in expected}
    numbers = {p: pytest.approx(v, rel=1e-12) for p, v in expected.items() if isinstance(v, float)}
    assert expected | numbers == {p: [*v] if isinstance(v, tuple) else v for p, v in actual.items()}


@pytest.mark.parametrize(("name", "edit", "reason"), edits("skipped"))
def test_skipped_row_states_its_reason(name: str, edit: dict[str, Any], reason: str) -> None:
    found = one(name, **edit)
    assert isinstance(found, Skipped)
    assert "r" == found.id
    assert reason in found.reason


@pytest.mark.parametrize("name", READERS)
def test_row_of_another_kind_or_without_a_name(name: str) -> None:
    """Rows of other kinds are no cases; a row without a name is called by its line."""
    assert [] == [*READERS[name](everything(), [changed(name, {"kind": "weather"})])]
    (found,) = READERS[name](everything(), [changed(name, {"id": "", "hardware": "a TPU"})])
    assert "line 2" == found.id


@pytest.fixture(scope="module")
def found():
    return list(inference_cases(everything(), records(DATA / "inference_neuron.csv")))


def test_shipped_rows_are_cases_or_skipped_with_reason(found):
    cases = [c for c in found if isinstance(c, InferenceCase)]
    lacking = "the catalog has no model like {!r}, and the row lacks its dimensions"
    assert {
        lacking.format("albert-base-v2"): 4,
        lacking.format("google/flan-t5-xl"): 2,
        lacking.format("t5-3b"): 1 + 1,
    } == Counter(s.reason for s in found if isinstance(s, Skipped))
    assert {"transformers-neuronx": 46, "optimum-neuron": 15, "": 12} == Counter(c.framework for c in cases)
    assert {"trainium1": 31, "inferentia2": 42} == Counter(c.system.chip for c in cases)
    assert 12 == sum(c.encoded > 0.0 for c in cases)
    assert 10 == sum(c.interrupted for c in cases)
    assert 61 == sum(c.ttft > 0.0 for c in cases)
    assert 7 == sum(c.queued > 0.0 for c in cases)
    assert 4 == sum(c.host for c in cases)


@pytest.mark.parametrize(("below", "skipped"), [(2, 2), (3, 3), (4, 13)])
def test_a_sweep_with_many_rows_below_their_bounds_is_skipped(below: int, skipped: int) -> None:
    """Of 13 rows three are fewer than a quarter."""
    rows = [changed("serving", {"id": i, "tpot_ms": "0.5" if i < below else 20}) for i in range(13)]
    # The rows of another model are a sweep of their own.
    rows += [changed("serving", {"id": f"other {i}", "model": "openai/gpt-oss-20b", "tpot_ms": 20}) for i in range(3)]
    found = serving_cases(everything(), rows)
    assert skipped == sum(isinstance(c, Skipped) for c in found)
    assert all(isinstance(c, ServingCase) for c in found[-3:])


def test_gpu_rows() -> None:
    assert on_gpu(changed("serving", {}))
    assert not on_gpu(changed("inference", {}))
    assert not on_gpu(changed("serving", {"kind": "train"}))


def test_every_row_is_read_or_below_its_bound() -> None:
    found = serving_cases(everything(), records(DATA / "serving_gpu.csv"))
    reasons = Counter(c.reason.split(" with ")[0].split(":")[0] for c in found if isinstance(c, Skipped))
    sweep = "of the 21 rows of its sweep 7 are below their lower bound"
    assert {"the time per output token is below its lower bound": 15, sweep: 14} == reasons
    assert 967 == sum(isinstance(c, ServingCase) for c in found)
