"""Rows of measurements as cases: the edits of ``rows.yaml``, each with what the case has or why the row is skipped."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from tests.perf.calibration.measured.rows import READERS, ROWS, changed, one
from tests.support.engine import everything
from trnspec.perf.calibration.measured.case import Case, Skipped


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
