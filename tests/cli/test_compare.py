"""``trnspec compare``: values, ratios and gaps side by side."""

import csv
import io

import pytest

from tests.support.programs import NVIDIA
from trnspec import load

CATALOG = load()


def test_per_chip(here) -> None:
    data = here("compare", "trainium2", "trn2.48xlarge", "--per", "chip", "--format", "json").data

    assert {r["ratio"] for r in data["rows"] if r["at"].startswith(("peak", "memory."))} == {1}


def test_per_usd(here) -> None:
    names = ("trn2.48xlarge", "p5.48xlarge")
    out = here("compare", *names, "--per", "usd", "--catalog", NVIDIA).out
    data = here("compare", *names, "--per", "usd", "--catalog", NVIDIA, "--format", "json").data
    (price,) = CATALOG.servers["trn2.48xlarge"].prices("spot", "us-east-2c")
    row = next(r for r in data["rows"] if (r["at"], r["document"]) == ("memory.capacity", "trn2.48xlarge"))

    assert out.startswith("Per USD/h: divided by the price of an hour. trn2.48xlarge 14.5593 USD/h spot")
    assert row["value"] == pytest.approx(1536 * 2**30 / float(price.figure.value.value))


def rows(here, *args: str) -> dict[tuple[str, str], dict]:
    data = here("compare", *args, "--all", "--format", "json").data
    return {(r["at"], r["document"]): r for r in data["rows"]}


def test_across_kinds(here) -> None:
    found = rows(here, "trainium2", "trn2.48xlarge", "trn2-ultraserver")

    for at in ("peak.dense.bf16", "memory.capacity", "memory.bandwidth", "cores", "chips"):
        ratios = [found[at, name]["ratio"] for name in ("trainium2", "trn2.48xlarge", "trn2-ultraserver")]
        assert ratios == [1, 16, 64], at


def test_gap_is_never_0(here) -> None:
    found = rows(here, "trainium1", "trainium2")
    text = here("compare", "trainium1", "trainium2", "--all", "--format", "csv").out
    lacking = [r for r in csv.DictReader(io.StringIO(text)) if not r["says"]]
    nothing = ("value", "low", "high", "unit", "ratio", "ratio_low", "ratio_high")

    assert {found["peak.dense.fp8", "trainium1"][k] for k in nothing} == {None}
    assert lacking
    assert {r[k] for r in lacking for k in nothing} == {""}


def test_more_than_the_page_holds(here) -> None:
    names = ["trn1.32xlarge", "trn2.48xlarge", "trn2u.48xlarge", "trn3-gen1-server", "trn3-gen2-server"]
    text = here("compare", *names).out

    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "hidden columns: " in text
    left = text.partition("hidden columns: ")[2]
    assert [n for n in names if n not in text.splitlines()[0] and n not in left] == []
