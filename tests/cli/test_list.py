"""``trnspec list``: the documents of a kind, or of all."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from tests.support.programs import ROOT
from trnspec.api import graph, registry
from trnspec.cli.render import SCREEN

GRAPH = graph()
NVIDIA = ROOT / "plugins" / "trnspec-nvidia" / "src" / "trnspec_nvidia" / "catalog"
KINDS = list(registry().kinds.values())


def names(text: str) -> list[str]:
    return [row["name"] for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("kind", [k for k in KINDS if any(n.kind == k.name for n in GRAPH)], ids=lambda k: k.folder)
def test_kind(here, kind) -> None:
    """By folder or by name, in any letters; every document of the kind and no other."""
    expected = sorted(n.name for n in GRAPH if n.kind == kind.name)
    texts = [here("list", word, "--format", "csv").out for word in (kind.folder, kind.name, kind.name.upper())]

    assert sorted(names(texts[0])) == expected
    assert len(set(texts)) == 1
    page = here("list", kind.folder)
    assert page.status == 0
    assert len(page.out.splitlines()) <= SCREEN
    whole = here("list", kind.folder, "--full").out
    assert [name for name in expected if name not in whole and len(name) < 30] == []  # a longer name may be wrapped
    assert [line for line in page.out.splitlines() if len(line) > 80] == []


def test_all(here) -> None:
    """Programs, and people with --full, get every document, the hardware first."""
    text = here("list", "--full").out

    assert sorted(names(here("list", "--format", "csv").out)) == sorted(GRAPH.nodes)
    assert [n.name for n in GRAPH if n.name not in text] == []
    assert [line.split()[0] for line in text.splitlines()[2:5]] == ["trainium3", "trainium2", "trainium1"]


def test_screen(here) -> None:
    """The systems with their main figures, the newest first, and the number of other documents, in 40 lines."""
    for options in ([], ["--catalog", str(NVIDIA)]):
        text = here("list", *options).out
        assert len(text.splitlines()) <= SCREEN
        first = [line.split()[0] for line in text.splitlines() if line[:8] in ("trainium", "trn3-gen")]
        assert first[:3] == ["trainium3", "trainium2", "trainium1"]
    assert f"{sum(n.kind == 'Model' for n in GRAPH)} models" in here("list").out


def test_totals_of_systems(here) -> None:
    """16 x 667 TFLOPS, computed."""
    rows = json.loads(here("list", "servers", "--format", "json").out)["rows"]
    row = next(r for r in rows if r["name"] == "trn2.48xlarge")

    assert (row["chips"], row["bf16 dense"], row["memory"]) == ("16 x trainium2", 16 * 667 * 10**12, 1536 * 2**30)


def test_one_unit_per_column(here) -> None:
    """With the unit in the heading: text in a unit that reads well, CSV in base units."""
    text = here("list", "chips").out.splitlines()
    in_csv = list(csv.DictReader(io.StringIO(here("list", "chips", "--format", "csv").out)))

    assert ["name", "bf16 dense [TFLOPS]", "memory [GiB]", "bandwidth [TB/s]", "title"] == re.split("  +", text[0])
    assert ["trainium2", "667", "96", "2.9", "AWS Trainium2"] == re.split(
        "  +", next(line for line in text if line.startswith("trainium2"))
    )
    assert "memory [B]" in in_csv[0]
    assert str(96 * 2**30) in [row["memory [B]"] for row in in_csv]


def test_columns_and_order(here) -> None:
    done = here("list", "chips", "--columns", "memory,name", "--sort", "-memory", "--format", "csv")

    assert ["memory [B]", "name"] == done.out.splitlines()[0].split(",")
    assert ["trainium3", "trainium2", "trainium1", "trainium4"] == [
        line.split(",")[1] for line in done.out.splitlines()[1:]
    ]


def test_hidden_by_the_date(here) -> None:
    """The chips that are left out are listed, each with the reason."""
    text = here("list", "chips", "--as-of", "2023-01").out

    assert text.startswith("There are no chips.\n\nhidden, because not published by 2023-01:\n")
    assert {"trainium1", "trainium2", "trainium3"} <= set(text.split())
    later = here("list", "chips", "--as-of", "2023-06").out
    assert later.split()[0] == "name"
    assert "trainium1" not in later.partition("hidden, because")[2].split()


def test_gap(here) -> None:
    """No source prints what the link of generation 2 carries in one direction."""
    rows = json.loads(here("list", "links", "--format", "json").out)["rows"]

    assert next(r for r in rows if r["name"] == "neuronlink-v2")["per direction"] is None
