"""``trnspec compare``: values, ratios and gaps side by side."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.support.programs import Here
from trnspec import load

CATALOG = load()


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    return Here(tmp_path, monkeypatch, capsys)


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_chips(here) -> None:
    """667 / 190 = 3.51; what one lacks is a gap, and so is its ratio."""
    result = here("compare", "trainium1", "trainium2", "trainium3")
    found = words(result.out)

    assert (result.status, result.err) == (0, "")
    assert [line for line in result.out.splitlines() if len(line) > 80] == []
    assert found[0] == ["figure", "trainium1", "trainium2", "ratio", "trainium3", "ratio"]
    assert ["bf16", "[TFLOPS]", "190", "667", "3.51x", "671", "3.53x"] in found
    assert ["bf16", "[TFLOPS]", "-", "2,563", "-", "2,517", "-"] in found
    assert ["memory_pool", "16", "64", "4x", "-", "-"] in found


def test_baseline(here) -> None:
    """The same values; ratios to the other one."""
    found = words(here("compare", "trainium1", "trainium2", "--baseline", "trainium2").out)

    assert found[0] == ["figure", "trainium1", "ratio", "trainium2"]
    assert ["bf16", "[TFLOPS]", "190", "0.285x", "667"] in found


def test_rows_of_one_alone(here) -> None:
    """Counted, and shown with --all."""
    some, all_ = (here("compare", "trainium1", "trainium2", *more).out for more in ([], ["--all"]))

    assert "--all shows all." in some
    assert ["cfp8", "[TFLOPS]", "190", "-", "-"] not in words(some)
    assert ["cfp8", "[TFLOPS]", "190", "-", "-"] in words(all_)
    assert "--all shows" not in all_


def rows(here, *args: str) -> dict[tuple[str, str], dict]:
    data = json.loads(here("compare", *args, "--all", "--format", "json").out)
    return {(r["at"], r["document"]): r for r in data["rows"]}


def test_across_kinds(here) -> None:
    """Totals of a server and an UltraServer against the chip they are made of: its counts."""
    found = rows(here, "trainium2", "trn2.48xlarge", "trn2-ultraserver")

    for at in ("peak.dense.bf16", "memory.capacity", "memory.bandwidth", "cores", "chips"):
        ratios = [found[at, name]["ratio"] for name in ("trainium2", "trn2.48xlarge", "trn2-ultraserver")]
        assert ratios == [1, 16, 64], at


def test_values_are_those_of_the_catalog(here) -> None:
    found = rows(here, "trn1.32xlarge", "trn2-ultraserver")

    for name in ("trn1.32xlarge", "trn2-ultraserver"):
        for at in ("peak.dense.bf16", "memory.capacity"):
            row, amount = found[at, name], CATALOG[name].total(at)
            assert (row["value"], row["unit"]) == (float(amount), amount.dimension.base)
            assert (row["low"], row["high"]) == (float(amount.interval.low), float(amount.interval.high))


def test_gap_is_never_0(here) -> None:
    """In JSON it is null, in CSV empty."""
    found = rows(here, "trainium1", "trainium2")
    text = here("compare", "trainium1", "trainium2", "--all", "--format", "csv").out
    lacking = [r for r in csv.DictReader(io.StringIO(text)) if not r["says"]]
    nothing = ("value", "low", "high", "unit", "ratio", "ratio_low", "ratio_high")

    assert {found["peak.dense.fp8", "trainium1"][k] for k in nothing} == {None}
    assert lacking
    assert {r[k] for r in lacking for k in nothing} == {""}


def test_interval_of_a_ratio(here) -> None:
    row = rows(here, "trainium1", "trainium2")["memory.bandwidth", "trainium2"]

    assert row["ratio_low"] == pytest.approx(2.85e12 / 820.5e9)
    assert row["ratio_high"] == pytest.approx(2.95e12 / 819.5e9)


def test_markdown(here) -> None:
    text = here("compare", "trainium1", "trainium2", "--format", "markdown").out.splitlines()

    assert text[0] == "| figure | trainium1 | trainium2 | ratio |"
    assert "| peak.dense.bf16 [TFLOPS] | 190 | 667 | 3.51x |" in text


def test_more_than_the_page_holds(here) -> None:
    """The hidden columns are named."""
    names = ["trn1.32xlarge", "trn2.48xlarge", "trn2u.48xlarge", "trn3-gen1-server", "trn3-gen2-server"]
    text = here("compare", *names).out

    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "hidden columns: " in text
    left = text.partition("hidden columns: ")[2]
    assert [n for n in names if n not in text.splitlines()[0] and n not in left] == []


def test_one_unit_per_row(here, tmp_path) -> None:
    """MiB beside GiB: the row is in GiB."""
    (tmp_path / "mib.yaml").write_text("change:\n  trainium1: {memory.capacity: '32,768 MiB'}\n")
    found = words(here("compare", "trainium1", "trainium2", "--overlay", "mib.yaml").out)

    assert ["capacity", "[GiB]", "32", "96", "3x"] in found


def test_columns_and_order(here) -> None:
    """The largest ratio first; without groups, so that every figure has its whole path."""
    options = ("--columns", "figure,ratio", "--sort", "-ratio")
    found = words(here("compare", "trainium1", "trainium2", *options).out)
    ratios = [float(row[-1].removesuffix("x")) for row in found[2:] if row and row[-1].endswith("x")]

    assert found[0] == ["figure", "ratio"]
    assert ratios == sorted(ratios, reverse=True)
    assert ["peak.dense.bf16", "[TFLOPS]", "3.51x"] in found


def test_no_word_is_broken(here) -> None:
    names = ["trainium1", "trainium2", "trainium3"]
    text = here("compare", *names).out

    assert {"neuronlink-v2", "neuronlink-v3", "capacity", "bandwidth", "[TFLOPS]"} <= set(text.split())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["trainium1"], "name at least two"),
        (["trainium1", "trainium"], "name at least two"),
        (["trainium1", "trainum2"], "did you mean 'trainium2'"),
        (["trainium1", "trainium2", "--baseline", "trainium3"], "trainium3 is not one of"),
    ],
)
def test_misuse(here, args, message) -> None:
    result = here("compare", *args)

    assert (result.status, result.out) == (2, "")
    assert message in result.err
