"""The calibrations of the rows of a table: one of each chip, framework, era and kind of model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped
from trnspec.perf.calibration import chosen
from trnspec.perf.calibration.chosen import Chosen
from trnspec.perf.calibration.measured.tables import records
from trnspec.perf.calibration.measured.training import Case, training_cases


class Known:
    """A calibration that is named by what it was chosen by, and at some inputs is those."""

    def __init__(self, *key: Any) -> None:
        self.name = " ".join(map(str, key))

    def at(self, inputs: dict[str, float], dtype: str, **about: Any) -> tuple[str, dict[str, Any]]:
        return dtype, about


@pytest.mark.parametrize("name", ["training_megatron_bridge", "training_mpt"])
def test_rows_by_calibration(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Dense models and experts, chips and frameworks apart; each row at its own scale and kind of model."""
    monkeypatch.setattr(chosen, "calibrated", lambda _, chip, of, *key, experts: Known(chip, of, *key, experts))
    table = records(shipped() / "measured" / f"{name}.csv")
    rows = [case for case in training_cases(everything(), table) if isinstance(case, Case)][:60]
    made = Chosen(everything(), "training", "mine")
    groups = list(made.groups(rows))
    seen = [case for _, some in groups for case, _ in some]

    assert sorted(case.id for case in seen) == sorted(case.id for case in rows)
    assert len({known.name for known, _ in groups}) == len(groups)
    for known, some in groups:
        for case, (dtype, about) in some:
            experts = case.dims.experts > 0
            assert known.name.startswith(f"{case.system.chip} training mine ")
            assert known.name.endswith(f" {experts}")
            assert (dtype, about["experts"]) == (case.dtype, experts)
            stated = made.about(case, "rows.csv")
            assert (stated["models"], stated["scale"]) == ("experts" if experts else "dense", about["scale"])
            assert (stated["dataset"], stated["id"], stated["chip"]) == ("rows.csv", case.id, case.system.chip)
