"""``trnspec compare``: values, ratios and gaps side by side."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.support.programs import ROOT, Here
from trnspec import load
from trnspec.cli.render import SCREEN

CATALOG = load()
NVIDIA = str(ROOT / "plugins" / "trnspec-nvidia" / "src" / "trnspec_nvidia" / "catalog")


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
    assert ["memory_pool", "16", "64", "4x"] in words(here("compare", "trainium1", "trainium2", "--full").out)


def test_formats_of_one_width(here) -> None:
    """The highest rate of each width, with its format; the row of mxfp8 alone is not hidden."""
    found = words(here("compare", "trainium3", "b200", "--catalog", NVIDIA).out)

    assert ["8-bit", "float", "[PFLOPS]", "2.517", "mxfp8", "4.5", "fp8", "1.79x"] in found
    assert ["4-bit", "float", "[PFLOPS]", "2.517", "mxfp4", "9", "fp4", "3.58x"] in found


def test_formats_that_all_have(here) -> None:
    """Stay rows of their own."""
    found = words(here("compare", "trn2.48xlarge", "p5.48xlarge", "--catalog", NVIDIA).out)

    assert ["fp8", "[PFLOPS]", "20.784", "15.8312", "0.762x"] in found
    assert not [row for row in found if row[:2] == ["8-bit", "float"]]


def test_disputed(here) -> None:
    """No source is believed: neither a value nor a gap."""
    found = words(here("compare", "trainium3", "b200", "--catalog", NVIDIA).out)

    assert ["launched", "2025-12", "disputed"] in found


def test_per_chip(here) -> None:
    """A server and an UltraServer of the same chip are equal; what does not add up has no row."""
    out = here("compare", "trn2.48xlarge", "trn2-ultraserver", "--per", "chip").out
    data = json.loads(here("compare", "trainium2", "trn2.48xlarge", "--per", "chip", "--format", "json").out)

    assert ["bf16", "[PFLOPS]", "0.667", "0.667", "1x"] in words(out)
    assert "Per chip: divided by the number of chips, 16 of trn2.48xlarge, 64 of" in out
    assert "cpu_clock" not in out
    assert {r["ratio"] for r in data["rows"] if r["at"].startswith(("peak", "memory."))} == {1}


def test_per_usd(here) -> None:
    """Prices of the same type, which are printed; the quotient is that of the catalog."""
    names = ("trn2.48xlarge", "p5.48xlarge")
    out = here("compare", *names, "--per", "usd", "--catalog", NVIDIA).out
    data = json.loads(here("compare", *names, "--per", "usd", "--catalog", NVIDIA, "--format", "json").out)
    (price,) = CATALOG.servers["trn2.48xlarge"].prices("spot", "us-east-2c")
    row = next(r for r in data["rows"] if (r["at"], r["document"]) == ("memory.capacity", "trn2.48xlarge"))

    assert out.startswith("Per USD/h: divided by the price of an hour. trn2.48xlarge 14.5593 USD/h spot")
    assert row["value"] == pytest.approx(1536 * 2**30 / float(price.figure.value.value))


@pytest.mark.parametrize(
    "names",
    [
        ("trainium1", "trainium2", "trainium3"),
        ("trn1.32xlarge", "trn2.48xlarge"),
        ("trn2.48xlarge", "p5.48xlarge"),
        ("trn3-gen2-ultraserver", "p6-b200.48xlarge"),
        ("llama-3.1-8b", "kimi-k2"),
    ],
)
def test_screen(here, names) -> None:
    lines = here("compare", *names, "--catalog", NVIDIA).out.splitlines()

    assert len(lines) <= SCREEN
    assert [line for line in lines if len(line) > 80] == []


def test_baseline(here) -> None:
    """The same values; ratios to the other one."""
    found = words(here("compare", "trainium1", "trainium2", "--baseline", "trainium2").out)

    assert found[0] == ["figure", "trainium1", "ratio", "trainium2"]
    assert ["bf16", "[TFLOPS]", "190", "0.285x", "667"] in found


def test_compare_rows_of_one_document_only(here) -> None:
    """Counted, and shown with --full, or --all as it was called."""
    some, all_ = (here("compare", "trainium1", "trainium2", *more).out for more in ([], ["--full"]))

    assert "--full prints all." in some
    assert here("compare", "trainium1", "trainium2", "--all").out == all_
    assert ["cfp8", "[TFLOPS]", "190", "-", "-"] not in words(some)
    assert ["cfp8", "[TFLOPS]", "190", "-", "-"] in words(all_)
    assert "--full prints" not in all_


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
        (["trn2.48xlarge", "trn2-ultraserver", "--per", "usd"], "no type of price is known for all"),
        (["trainium1", "llama-3.1-8b", "--per", "chip"], "the number of chips of llama-3.1-8b is not known"),
    ],
)
def test_misuse(here, args, message) -> None:
    result = here("compare", *args)

    assert (result.status, result.out) == (2, "")
    assert message in result.err


def test_compare_without_common_rows(here) -> None:
    """All rows are of one document only: they are counted."""
    done = here("compare", "neuronlink-v3", "trainium2")

    assert (0, "") == (done.status, done.err)
    assert "--full" in done.out


def test_announced_chip_has_ratios_in_place_of_figures(here) -> None:
    done = here("compare", "trainium3", "trainium4", "--format", "csv")
    says = {r["at"]: r["says"] for r in csv.DictReader(done.out.splitlines()) if r["document"] == "trainium4"}

    assert (">= 6x of trainium3", "4x of trainium3") == (says["peak.dense.mxfp4"], says["memory.bandwidth"])
