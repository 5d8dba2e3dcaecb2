"""The errors against measurements do not grow: a group fails that is worse by two points and by a tenth."""

import importlib.util
import json
import sys
from collections import Counter

import pytest

from tests.support.programs import ROOT

POINTS, SHARE = 0.02, 0.1


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("accuracy_page", ROOT / "docs" / "accuracy.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy_page"] = module
    spec.loader.exec_module(module)
    return module


def worse(now, before):
    """The groups whose error has grown, and those that lost a tenth of their rows."""
    known = {(g["chip"], g["framework"], g["part"]): g for g in now}
    for group in before:
        name = group["chip"], group["framework"], group["part"]
        found = known.get(name, {"rows": 0, "mean": 0.0})
        if found["mean"] > group["mean"] + POINTS and found["mean"] > group["mean"] * (1.0 + SHARE):
            yield *name, f"mean {found['mean']:.1%}, was {group['mean']:.1%}"
        if found["rows"] < group["rows"] * (1.0 - SHARE):
            yield *name, f"{found['rows']} rows, were {group['rows']}"


@pytest.mark.slow
def test_no_group_is_worse(script):
    """After a change that makes one worse for a reason, ``make accuracy`` writes the new errors."""
    before = json.loads(script.ERRORS.read_text())["groups"]
    rows = script.rows(script.Catalog(script.everything()), refit=False)
    assert [] == list(worse(script.gate(rows), before))
    # The page has a line for each of these groups.
    page = script.PAGE.read_text()
    assert [] == [p for p in {g["part"] for g in before} if f"| {script.PHASES[p]} |" not in page]


def test_kinds_of_evidence(script):
    """Estimates are nearer than other answers to the same rows, for every quantity; intervals of 80 % cover clusters."""
    kinds = {(k["quantity"], k["kind"]): k for k in json.loads(script.ERRORS.read_text())["kinds"]}
    same = {key: k["same_rows"] for key, k in kinds.items() if "same_rows" in k}
    assert {} == {key: errors for key, errors in same.items() if errors[0] >= errors[1]}
    assert {"extrapolated": 4, "transferred": 8} == Counter(kind for _, kind in same)
    many = {key: k for key, k in kinds.items() if k["clusters"] >= 10}
    assert len(many) >= 14
    assert {} == {key: k["inside"] for key, k in many.items() if not 0.68 < k["inside"] < 0.94}
    # The page has a line for each.
    page = script.PAGE.read_text()
    assert [] == [key for key in kinds if f"| {key[0]} | {key[1]} |" not in page]


def test_the_plots_are_on_the_page(script):
    page = script.PAGE.read_text()
    plots = sorted(script.FOLDER.glob("*.svg"))
    assert plots
    assert [] == [p.name for p in plots if f"](accuracy/{p.name})" not in page]
