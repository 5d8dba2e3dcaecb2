"""``trnspec explain``: the manual page of every code, and the fields of every kind."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.support.programs import Site
from trnspec.api import registry
from trnspec.model.reflection import ObjectShape

KNOWN = registry()


@pytest.mark.parametrize("code", sorted(KNOWN.codes))
def test_page_of_a_code(here, code) -> None:
    result = here("explain", code)
    written = here("explain", code, "--format", "markdown")
    known = KNOWN.codes[code]

    assert (result.status, result.err) == (0, "")
    page, _, waiver = written.out.partition("\n\nAccept:\n")
    assert f"# {code} {known.name} ({known.severity.label})\n\n{known.doc.strip()}" == page.rstrip("\n")
    assert (f"- {{code: {code}, at: PATH, reason: REASON}}" in waiver) == any(r.code.id == code for r in KNOWN.rules)
    assert result.out.split() == written.out.removeprefix("# ").split()


def test_json(here) -> None:
    known = KNOWN.codes["TRN402"]
    data = json.loads(here("explain", "TRN402", "--format", "json").out)

    assert {"version": 1, "id": "TRN402", "name": known.name, "severity": "error", "doc": known.doc.strip()} == data
    listed = json.loads(here("explain", "--format", "json").out)["rows"]
    assert sorted(KNOWN.codes) == [row["code"] for row in listed]


def test_list(here) -> None:
    """One line for each code, in order."""
    rows = list(csv.reader(io.StringIO(here("explain", "--format", "csv").out)))

    assert ["code", "severity", "name", "summary"] == rows[0]
    assert [[c.id, c.severity.label, c.name, c.summary] for c in KNOWN.codes.values()] == rows[1:]
    assert max(map(len, here("explain").out.splitlines())) <= 80


# Kinds and fields.


def field_lines(page: str) -> dict[str, str]:
    """The type of each field on a page, by its path."""
    heads = (line.strip().partition("  ") for line in page.splitlines() if line.startswith("  ") and line[2] != " ")
    return {path: words for path, _, words in heads}


@pytest.mark.parametrize("kind", sorted(KNOWN.kinds))
def test_fields_of_a_kind(here, kind) -> None:
    done = here("explain", kind)
    fields = ObjectShape(KNOWN.kinds[kind].spec).fields.values()

    assert (0, "") == (done.status, done.err)
    assert [f"{f.name}{'*' if f.required else ''}" for f in fields] == list(field_lines(done.out))
    assert [] == [line for line in done.out.splitlines() if len(line) > 80]


def test_a_field(here) -> None:
    """Type, units, description and example; then the fields below it."""
    page, leaf = here("explain", "chip.memory").out, here("explain", "chip.memory.bandwidth").out

    assert page.startswith("memory*  Memory ...\n")
    assert "information [GB, " in field_lines(page)["memory.capacity*"]
    assert leaf.startswith("memory.bandwidth  bandwidth [GB/s, ")
    assert leaf.endswith(" Example: 820 GB/s\n")


def test_built_in_kinds_are_explained_without_plugins(tmp_path) -> None:
    site = Site(tmp_path / "site")
    site.add("bad", "raise ValueError")

    assert (0, "") == ((done := site.run("explain", "chip.peak")).status, done.err)
