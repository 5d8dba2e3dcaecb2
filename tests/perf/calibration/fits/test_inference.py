"""Which rows are held out together, and which parameters rows determine."""

from types import SimpleNamespace
from typing import Any

import pytest

from trnspec.perf.calibration.fits.inference import MODELS, folds, free
from trnspec.perf.serving.forward_pass import Deployment

SYSTEM = SimpleNamespace(name="box")


def case(model: str = "m", host: bool = False, **plan: float) -> Any:
    return SimpleNamespace(model=model, system=SYSTEM, plan=Deployment(**plan), interrupted=0.0, host=host)


def test_rows_of_a_model_are_held_out_together_if_there_are_five() -> None:
    rows = [case(f"m{number}", batch=batch) for number in range(5) for batch in (1.0, 2.0)]

    assert 5 == MODELS == len(set(folds(rows)))
    assert 8 == len(set(folds(rows[:-2])))  # each configuration


@pytest.mark.parametrize(
    ("plans", "expected"),
    [
        ([{"tp": 1.0}], {"launch", "padding"}), ([{"tp": 2.0}], {"call", "padding"}), ([{"tp": 4.0}], {"call", "hop", "padding"}),
        ([{"tp": 1.0}, {"tp": 8.0, "compiled_keys": 100.0}], {"launch", "call", "hop", "padding"}),
        ([{"tp": 1.0, "compiled_keys": 100.0}], {"launch"}), ([{"tp": 1.0, "single_core": 1.0}], {"launch", "padding", "single_core"}),
    ],
)  # fmt: skip
def test_free_parameters(plans, expected) -> None:
    uncertain = {"sample", "padding", "launch", "call", "hop", "single_core"}

    assert expected == uncertain & {*free([case(**plan) for plan in plans])}
    assert expected | {"sample"} == uncertain & {*free([case(host=True, **plan) for plan in plans])}
