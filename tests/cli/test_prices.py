"""Prices in ``trnspec show``, ``trnspec list`` and ``trnspec new``."""

from __future__ import annotations

import io
import json

import pytest

from tests.support.programs import Here
from trnspec.api import validate


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return Here(tmp_path, monkeypatch, capsys)


def test_prices_for_programs(here) -> None:
    rows = json.loads(here("show", "trn1.32xlarge", "--format", "json").out)
    (row,) = [r for r in rows["rows"] if r["at"] == "prices.on-demand.us-east-1"]

    assert (21.5, "USD/h", "karpenter-pricing-2026-07", "2026-07-20") == tuple(
        row[k] for k in ("value", "unit", "source", "as_of")
    )
    assert "karpenter-pricing-2026-07" in rows["sources"]


def test_list(here) -> None:
    rows = json.loads(here("list", "prices", "--format", "json").out)["rows"]
    found = {r["name"]: (r["server"], r["price"], r["region"], r["date"]) for r in rows}

    assert ("trn1.32xlarge", 21.5, "us-east-1", "2026-07-20") == found["trn1.32xlarge-on-demand"]
    assert ("trn2.48xlarge", None, "unlisted", None) == found["trn2.48xlarge-on-demand"]


def test_new_price_is_valid(here, tmp_path) -> None:
    given = ("--source", "karpenter-pricing-2026-07", "--set", "server=trn1.32xlarge", "--set", "type=on-demand")
    file = tmp_path / "prices" / "trn1.32xlarge-on-demand-europe.yaml"
    done = here("new", "price", *given, "--set", "hourly.eu-central-1=26.90 USD/h", "--out", str(file))

    assert (0, ()) == (done.status, validate([str(file)]).report.diagnostics)


def test_new_price_with_a_wrong_factor_is_not_written(here, tmp_path) -> None:
    given = ("--source", "karpenter-pricing-2026-07", "--set", "server=trn1.32xlarge", "--set", "type=on-demand")
    file = tmp_path / "prices" / "trn1.32xlarge-on-demand-europe.yaml"
    done = here("new", "price", *given, "--set", "hourly.eu-central-1=269.0 USD/h", "--out", str(file))

    assert (1, False) == (done.status, file.exists())
    assert "TRN803" in done.err
