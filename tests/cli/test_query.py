"""``trnspec query``."""

from __future__ import annotations

import json

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
