"""``trnspec list``: the documents of a kind, or of all."""

import csv
import io

import pytest

from tests.support.programs import NVIDIA
from trnspec.api import graph, registry
from trnspec.cli.render import SCREEN

GRAPH = graph()
KINDS = list(registry().kinds.values())


def names(text: str) -> list[str]:
    return [row["name"] for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("kind", [k for k in KINDS if any(n.kind == k.name for n in GRAPH)], ids=lambda k: k.folder)
def test_kind(here, kind) -> None:
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


def test_screen(here) -> None:
    """The systems with their main figures, the newest first, and the number of other documents, in 40 lines."""
    for options in ([], ["--catalog", str(NVIDIA)]):
        text = here("list", *options).out
        assert len(text.splitlines()) <= SCREEN
        first = [line.split()[0] for line in text.splitlines() if line[:8] in ("trainium", "trn3-gen")]
        assert first[:3] == ["trainium3", "trainium2", "trainium1"]
    assert f"{sum(n.kind == 'Model' for n in GRAPH)} models" in here("list").out


def test_hidden_by_the_date(here) -> None:
    text = here("list", "chips", "--as-of", "2023-01").out

    assert text.startswith("There are no chips.\n\nhidden, because not published by 2023-01:\n")
    assert {"trainium1", "trainium2", "trainium3"} <= set(text.split())
    later = here("list", "chips", "--as-of", "2023-06").out
    assert later.split()[0] == "name"
    assert "trainium1" not in later.partition("hidden, because")[2].split()


def test_prices(here) -> None:
    rows = here("list", "prices", "--format", "json").data["rows"]
    found = {r["name"]: (r["server"], r["price"], r["region"], r["date"]) for r in rows}

    assert ("trn1.32xlarge", 21.5, "us-east-1", "2026-07-20") == found["trn1.32xlarge-on-demand"]
    assert ("trn2.48xlarge", None, "unlisted", None) == found["trn2.48xlarge-on-demand"]
