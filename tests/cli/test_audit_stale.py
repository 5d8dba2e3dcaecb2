"""``trnspec audit --stale``: the values without a recent source."""

from __future__ import annotations

import json

import pytest

from tests.support.programs import Here
from trnspec.api import graph
from trnspec.graph.currency import ages, limit


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / ".git").mkdir()
    return Here(tmp_path, monkeypatch, capsys)


def listed(here: Here, *args: str) -> dict[str, object]:
    done = here("audit", "--stale", *args, "--format", "json")
    assert done.status == 0
    data: dict[str, object] = json.loads(done.out)
    return data


@pytest.mark.parametrize("older_than", ["12mo", "2y"])
def test_rows(here, older_than) -> None:
    """Exactly the values that are older, oldest first."""
    data = listed(here, "--older-than", older_than)
    known = list(ages(graph(), str(data["as_of"])))
    months = [row["months"] for row in data["rows"]]

    assert data["values"] == len(known)
    assert data["older_than_months"] == limit(older_than)
    assert {(row["document"], row["figure"]) for row in data["rows"]} == {
        (age.name, age.at) for age in known if age.months > limit(older_than)
    }
    assert months == sorted(months, reverse=True)


def test_names_and_paths(here) -> None:
    rows = listed(here, "neuronlink-v3", "lanes")["rows"]

    assert [(row["document"], row["figure"]) for row in rows] == [
        ("neuronlink-v3", "lanes.count"),
        ("neuronlink-v3", "lanes.rate"),
    ]


def test_text(here) -> None:
    lines = here("audit", "--stale", "neuronlink-v3", "lanes", "--older-than", "1y").out.splitlines()

    assert lines[-1] == "2 of 2 values have no source of the last 12 months."
    assert [line.split()[:2] for line in lines if line.startswith("neuronlink")] == [
        ["neuronlink-v3", "lanes.count"],
        ["neuronlink-v3", "lanes.rate"],
    ]


def test_none(here) -> None:
    done = here("audit", "--stale", "neuronlink-v3", "lanes", "--older-than", "99y")

    assert (done.status, done.out) == (0, "0 of 2 values have no source of the last 1188 months.\n")


@pytest.mark.parametrize(
    "args",
    [
        ("--older-than", "3mo"),
        ("--stale", "--verdict", "rejected"),
        ("--stale", "--details"),
        ("--stale", "--host", "-"),
        ("--stale", "--older-than", "soon"),
    ],
    ids=" ".join,
)
def test_refuses_conflicting_options(here, args) -> None:
    done = here("audit", *args)

    assert (done.status, done.out) == (2, "")
