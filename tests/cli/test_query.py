"""``trnspec query``."""

from __future__ import annotations

import json
import shutil

import pytest

import trnspec

QUERY = "server where peak.dense.bf16 >= 3 PFLOPS and memory.capacity > 1 TiB"


def rows(text: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(text)["rows"]
    return found


def test_text(here) -> None:
    result = here("query", "chip", "--columns", "name,memory.capacity,peak.dense.bf16 / memory.bandwidth")

    assert (0, "") == (result.status, result.err)
    assert result.out.splitlines() == [
        "name       memory.capacity [GiB]  peak.dense.bf16 / memory.bandwidth [FLOP/B]",
        "---------  ---------------------  -------------------------------------------",
        "trainium1                     32                                          232",
        "trainium2                     96                                          230",
        "trainium3                    144                                          137",
        "trainium4                      -                                            -",
    ]


def test_the_same_as_in_python(here) -> None:
    result = here("query", QUERY, "--format", "json")

    assert [b.name for b in trnspec.load().query(QUERY)] == [r["name"] for r in rows(result.out)]
    assert len(rows(result.out)) > 1


def test_json(here) -> None:
    """Numbers in base units, the units beside them, and what nothing can tell."""
    result = here(
        "query", "chip where peak.sparse.fp8 > 1 PFLOPS", "--columns", "name,memory.capacity,dies", "--format", "json"
    )
    found = json.loads(result.out)

    assert {"memory.capacity": "B"} == found["units"]
    assert [{"name": "trainium2", "memory.capacity": 96 * 1024**3, "dies": 2}] == found["rows"]
    assert ["trainium1", "trainium3", "trainium4"] == found["undecided"]


@pytest.mark.parametrize(
    "columns", ["name,title,memory.capacity,memory.bandwidth,peak.dense.bf16,sbuf,host.memory,chips.count", None]
)
def test_every_line_fits(here, columns) -> None:
    options = ["--columns", columns] if columns else []
    result = here("query", "server", *options)

    assert max(map(len, result.out.splitlines())) <= 80
    assert ("hidden columns: " in result.out) == (columns is not None)


def test_sort(here) -> None:
    result = here("query", "chip", "--sort", "-memory.capacity", "--format", "json")
    several = here(
        "query", "server", "--columns", "name,chips.count", "--sort", "-chips.count,name", "--format", "json"
    )

    assert ["trainium3", "trainium2", "trainium1", "trainium4"] == [r["name"] for r in rows(result.out)]
    counts = [(-int(str(r["chips.count"])), str(r["name"])) for r in rows(several.out)]
    assert sorted(counts) == counts


def test_wrong_query(here) -> None:
    """Status 2, one message, the place marked."""
    result = here("query", "server where memory.capacity > 3 TB/s")

    assert (2, "") == (result.status, result.out)
    assert result.err.splitlines()[0].endswith("did you mean 3 TB?")
    assert result.err.splitlines()[1:] == ["  server where memory.capacity > 3 TB/s", " " * 33 + "^" * 6]


def test_query_another_catalog(here, edited) -> None:
    mine = edited("chips/trainium2", "capacity: 96 GiB", "capacity: 960 GiB")
    (found,) = rows(here("query", "chip where memory.capacity > 500 GiB", "--catalog", mine, "--format", "json").out)

    assert found["name"] == "trainium2"
    assert rows(here("query", "chip where memory.capacity > 500 GiB", "--format", "json").out) == []


def test_query_at_a_date_with_an_overlay(here) -> None:
    (here.folder / "my.yaml").write_text("change:\n  trainium1: {memory.capacity: 1 TiB}\n")
    early = here("query", "chip", "--as-of", "2023-03", "--format", "json")
    changed = here("query", "chip where memory.capacity >= 1 TiB", "--overlay", "my.yaml", "--format", "json")

    assert ["trainium1"] == [r["name"] for r in rows(early.out)] == [r["name"] for r in rows(changed.out)]


def test_an_edition(here, edited) -> None:
    assert here("edition", "freeze", "2026.11", "--catalog", edited()).status == 0

    shutil.rmtree(here.folder / "mine" / "chips")
    found = here("query", "chip", "--catalog", "mine", "--edition", "2026.11", "--format", "json")

    assert list(trnspec.load().chips) == [r["name"] for r in rows(found.out)]
