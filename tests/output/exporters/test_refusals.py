"""Refusals of exporters, from ``refusals.yaml``: the reason of the error, and its message."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog
from trnspec.errors import TrnspecError
from trnspec.yaml import read_file

CAT = Catalog(everything())
TABLE = read_file(Path(__file__).with_name("refusals.yaml")).data
CASES = [pytest.param(name, case, id=f"{name} {case['says'][0]}") for name, cases in TABLE.items() for case in cases]


@pytest.mark.parametrize(("format", "case"), CASES)
def test_refusal(format, case) -> None:
    catalog = CAT
    for name, change in case.get("change", {}).items():
        catalog = catalog.replace(name, change)
    with pytest.raises(TrnspecError) as caught:
        catalog[case["of"]].export(format, use=case.get("use"))

    assert getattr(caught.value, "reason", None) == case.get("reason")
    message = str(caught.value)
    assert [] == [part for part in case["says"] if (part.removeprefix("!") in message) == part.startswith("!")]
