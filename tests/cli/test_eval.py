"""trnspec eval: options from the signature, sweeps, four formats, refusals."""

import re
from pathlib import Path

import pytest

from tests.support.evaluations import CALLS, install
from tests.support.programs import Here


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    install(tmp_path / "site", monkeypatch)
    CALLS.clear()
    return Here(tmp_path, monkeypatch, capsys)


def test_list(here) -> None:
    done = here("eval")

    assert (0, "") == (done.status, done.err)
    assert {"sweep", "broken", "bare", "absent"} <= {line.split()[0] for line in done.out.splitlines()}
    assert "The time to read all device memory." in done.out


def test_help_lists_without_importing(here) -> None:
    done = here("eval", "--help")

    assert (0, "") == (done.status, done.err)
    assert "absent" in done.out
    assert "It is not there." in done.out


def test_without_plugins(here) -> None:
    done = here("--no-plugins", "eval")
    refused = here("--no-plugins", "eval", "sweep", "--chip", "trainium2")

    assert (0, "") == (done.status, done.err)
    assert "sweep" not in [line.split()[0] for line in done.out.splitlines()]
    assert (2, True) == (refused.status, "there is no evaluator 'sweep'; known: training, " in refused.err)


PAGE = Path(__file__).with_name("eval_sweep.txt").read_text("utf-8")


def test_page(here) -> None:
    done = here("eval", "sweep", "--chip", "trainium2", "--times", "2", "--full")

    assert (0, "") == (done.status, done.err)
    assert PAGE == done.out[: len(PAGE)]
    assert "  conflicting value: 2,400 GB/s, rejected" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out


def test_refusal(here) -> None:
    done = here("eval", "sweep", "--chip", "trainium2", "--times", "65")

    assert (1, "") == (done.status, done.out)
    assert "trnspec: sweep: does-not-fit: 65 times are too many\n  at: times\n" == done.err


def test_sweep(here) -> None:
    done = here("eval", "sweep", "--chip", "trainium1,trainium2", "--times", "1,65", "--times", "2", "--share", "0.5")
    lines = done.out.splitlines()

    assert (0, "") == (done.status, done.err)
    assert "sweep: 6 combinations, share 0.5" == lines[0]
    assert ["chip", "times", "time [ms]", "read [GiB]", "fits", "chips", "refused"] == re.split("  +", lines[2].strip())
    assert 2 == sum("does-not-fit: 65" in line for line in lines)
    assert [("trainium1", 1), ("trainium1", 65), ("trainium1", 2)] == [(c["chip"], c["times"]) for c in CALLS[:3]]
    assert max(map(len, lines)) <= 80


def test_sweep_that_is_too_large(here) -> None:
    many = ",".join(map(str, range(1, 102)))
    done = here("eval", "sweep", "--chip", ",".join(["trainium2"] * 100), "--times", many)

    assert (2, "") == (done.status, done.out)
    assert "trnspec: 100 of --chip x 101 of --times are 10,100 combinations; one sweep evaluates at most 10,000\n" == (
        done.err
    )
    assert [] == CALLS


def test_markdown(here) -> None:
    done = here("eval", "sweep", "--chip", "trainium2", "--format", "markdown", "--full")

    assert done.out.startswith("## sweep: trainium2, 1 times\n\n- time: 35.5 ms [34.9, 36.2] ms\n")
    assert "| time | 35.5 ms | [34.9, 36.2] ms | rounding of the bandwidth |" in done.out
    assert "| conflicting value | 2,400 GB/s, rejected |" in done.out
    assert "### Inputs\n\nchip `trainium2`, times `1`, " in done.out


@pytest.mark.parametrize("format_", ["text", "csv", "json"])
def test_sweep_without_any_answer(here, format_) -> None:
    done = here("eval", "sweep", "--chip", "trainium2", "--times", "65,66", "--format", format_)

    assert 1 == done.status
    assert "65 times are too many" in done.out
