"""``trnspec show``: every figure with unit, interval, source, date and conflicting values."""

import re

import pytest

from trnspec.api import graph
from trnspec.cli.render import SCREEN
from trnspec.graph.facts import facts
from trnspec.graph.totals import sums

GRAPH = graph()
# Of models and tables of measurements, of which there are many, each eighth.
MANY = {"Model", "Measurements"}
NAMES = sorted(n.name for n in GRAPH if n.kind not in MANY | {"Source"})
NAMES += sorted(n.name for n in GRAPH if n.kind in MANY)[::8]


def lines(text: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("name", [*NAMES, "semianalysis-2024-12"])
def test_whole_page_and_screen(here, name) -> None:
    """The screen has at most 40 lines of 80 columns, every unresolved value, and the adopted value too."""
    result = here("show", name, "--full")
    node = GRAPH.named(name)
    found = facts(GRAPH, node)
    squeezed = "".join(result.out.split())

    assert (result.status, result.err) == (0, "")
    assert [line for line in result.out.splitlines() if len(line) > 80] == []
    assert "".join(node.metadata.title.split()) in squeezed
    assert [f.at for f in found if f.figure is not None and f.text not in result.out] == []
    names = {s for f in found for s in (f.source, *(r.source for r in f.conflicting)) if s}
    assert [s for s in names if s not in squeezed] == []
    assert result.out.count("derived") >= sum(f.verdict == "derived" for f in found)
    assert [s.text for s in sums(GRAPH, node) if s.text not in result.out] == []
    # Numbers of sources are aligned at their last digit.
    for table in result.out.split("\n\n"):
        numbers = [re.search(r" (\d+) +\d{4}(-\d\d)*$", line) for line in table.splitlines()]
        assert len({number.end(1) for number in numbers if number}) <= 1

    out = here("show", name).out
    squeezed = "".join(out.split())
    disputed = [f for f in found if any(c.verdict == "unresolved" for c in f.conflicting)]
    values = [c.says for f in disputed for c in f.conflicting if c.verdict == "unresolved"]
    values += [f.text for f in disputed if f.text and not f.at.startswith("stated.")]

    assert len(out.splitlines()) <= SCREEN
    assert [line for line in out.splitlines() if len(line) > 80] == []
    assert [v for v in values if "".join(v.split()) not in squeezed] == []


@pytest.mark.parametrize("name", ["trainium1", "trn2-ultraserver", "efa"])
def test_data(here, name) -> None:
    data = here("show", name, "--format", "json").data
    rows = here("show", name, "--format", "csv").rows
    found = facts(GRAPH, GRAPH.named(name))
    adopted = [f for f in found if f.value is not None]

    assert data["name"] == name
    assert [(r["at"], r["says"], r["verdict"]) for r in rows] == [
        (r["at"], r["says"], r["verdict"]) for r in data["rows"]
    ]
    assert sorted(r["at"] for r in rows if r["verdict"] == "total") == sorted(
        s.at for s in sums(GRAPH, GRAPH.named(name))
    )
    assert len(rows) == len(adopted) + sum(len(f.conflicting) for f in found) + len(sums(GRAPH, GRAPH.named(name)))
    figure = next(f.figure for f in adopted if f.figure is not None)
    row = next(r for r in data["rows"] if r["at"] == figure.at)
    assert (row["value"], row["unit"]) == (float(figure), figure.value.dimension.base)
    assert row["low"] <= row["value"] <= row["high"]
    assert data["sources"][row["source"]]["as_of"] == row["as_of"]


def test_alias(here) -> None:
    assert here("show", "u-trn2x64").out == here("show", "trn2-ultraserver").out


def test_prices_for_programs(here) -> None:
    rows = here("show", "trn1.32xlarge", "--format", "json").data
    (row,) = [r for r in rows["rows"] if r["at"] == "prices.on-demand.us-east-1"]

    assert (21.5, "USD/h", "karpenter-pricing-2026-07", "2026-07-20") == tuple(
        row[k] for k in ("value", "unit", "source", "as_of")
    )
    assert "karpenter-pricing-2026-07" in rows["sources"]


def test_missing_figures(here, tmp_path, monkeypatch) -> None:
    (tmp_path / "less.yaml").write_text("change:\n  trainium1: {links: null}\n")
    out = here("show", "trainium1", "--overlay", "less.yaml").out

    assert ["no", "source", "links.bandwidth.both"] in lines(out)
    monkeypatch.setenv("COLUMNS", "40")  # where not all figures are shown
    assert "no source" not in here("show", "trainium2").out
