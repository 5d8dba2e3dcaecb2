"""``trnspec audit``: documents, figure paths and verdicts; the summary."""

from __future__ import annotations

import json

import pytest
from running import Here


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / ".git").mkdir()
    return Here(tmp_path, monkeypatch, capsys)


def disagreements(here: Here, *args: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(here("audit", *args, "--format", "json").out)["disagreements"]
    return found


def test_names_paths_and_verdicts(here) -> None:
    """Each restricts the disagreements, and they combine."""
    every = disagreements(here)
    of_path = disagreements(here, "memory.bandwidth")
    below = disagreements(here, "memory")
    of_verdict = disagreements(here, "--verdict", "rejected")
    both = disagreements(here, "trainium2", "memory.bandwidth", "--verdict", "rejected")

    assert [d for d in every if d["at"] == "spec.memory.bandwidth"] == of_path
    assert [d for d in every if str(d["at"]).startswith("spec.memory") and d["at"] != "spec.memory_pool"] == below
    assert [d for d in every if d["verdict"] == "rejected"] == of_verdict
    assert [d for d in of_path if (d["name"], d["verdict"]) == ("trainium2", "rejected")] == both
    assert both


def test_summary(here) -> None:
    """The counts are those of the disagreements, and it fits on a screen."""
    found = disagreements(here, "trn2.48xlarge")
    lines = here("audit", "trn2.48xlarge").out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{len(found)} disagreements"))
    counts = {line.split()[0]: int(line.split()[1]) for line in lines[at + 1 :]}

    assert {v: sum(d["verdict"] == v for d in found) for v in {str(d["verdict"]) for d in found}} == counts
    assert max(map(len, lines)) <= 80


def test_at_most_three_causes(here) -> None:
    """JSON has all of them."""
    (found,) = disagreements(here, "trn2-ultraserver", "stated.peak.dense.fp8")
    text = here("audit", "trn2-ultraserver", "stated.peak.dense.fp8").out

    assert len(found["causes"]) > 3
    causes = [line for line in text.splitlines() if line.startswith(("  cause  ", "           or  "))]
    assert (3, f"           or  {len(found['causes']) - 3} more") == (len(causes) - 1, causes[-1])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("memory.bandwith",), "did you mean 'memory.bandwidth'"),
        (("trainum2",), "did you mean 'trainium2'"),
        (("--verdict", "reject"), "did you mean 'rejected'"),
    ],
)
def test_misuse(here, args, message) -> None:
    done = here("audit", *args)

    assert (2, "") == (done.status, done.out)
    assert message in done.err
