"""Step times by refits: to other models or chips, where there are enough rows of several."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured.tables import Record, records
from trnspec.perf.calibration.measured.training import Case, training_cases
from trnspec.perf.calibration.scores import training
from trnspec.perf.calibration.scores.training import LEAST, refit_training


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The fits made: rows, what is held out, and eras; each row is off by a tenth."""
    made: list[tuple[Any, ...]] = []

    def fit(cases: list[Case], *about: Any) -> Any:
        made.append((len(cases), *about))
        return SimpleNamespace(held_out=np.full(len(cases), 0.1))

    monkeypatch.setattr(training, "fit", fit)
    return made


def rows(name: str = "training_mpt") -> list[Record]:
    return records(shipped() / "measured" / f"{name}.csv")


def cases(some: list[Record]) -> list[Case]:
    return [case for case in training_cases(everything(), some) if isinstance(case, Case)]


@functools.cache
def known() -> dict[str, str]:
    """The chips of the cases of the table, by their rows."""
    return {case.id: case.system.chip for case in cases(rows())}


def only(ids: list[str]) -> list[Record]:
    return [row for row in rows() if row.get("id", "") in ids]


def test_enough_rows_are_fitted(fits) -> None:
    some = rows()
    found = refit_training(everything(), some)

    assert found == {(c.id, "step"): pytest.approx(1.1 * c.seconds) for c in cases(some)}
    assert fits[0][:2] == (len(cases(some)), "model")


@pytest.mark.parametrize("holdout", ["model", "chip"])
def test_few_rows_are_not_fitted(fits, holdout) -> None:
    some = only(list(known())[: LEAST - 1])

    assert len(cases(some)) == LEAST - 1
    assert (refit_training(everything(), some, holdout), fits) == ({}, [])


@pytest.mark.parametrize(("chips", "holdout", "fitted"), [(1, "model", True), (1, "chip", False), (2, "chip", True)])
def test_other_chips_need_two(fits, chips, holdout, fitted) -> None:
    names = sorted(set(known().values()))[:chips]
    some = only([id_ for id_, chip in known().items() if chip in names])

    assert len(names) == chips
    assert bool(refit_training(everything(), some, holdout)) is bool(fits) is fitted


def test_eras_are_those_of_the_calibrations_of_the_rows() -> None:
    """Several of them, or none."""
    graph = everything()
    eras = {}
    for name in sorted({file.stem for file in (shipped() / "measured").glob("training_*.csv")}):
        hashes = {each for row in rows(name) for each in training.row_hashes(row)}
        of = {n.spec.era for n in graph.of(Calibration) if n.spec.rows and hashes & set(n.spec.rows.split())} - {
            None,
            "",
        }
        eras[name] = sorted(of) if len(of) > 1 else []
        assert list(training._eras(graph, rows(name))) == eras[name]
    assert eras
