"""Tables: what fits, what is folded, what is left out, and the same rows for programs."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import ROOT, command, environment

from trnspec.cli.render import Column, Table, columns_of, fit, lines, padded, shown, table, wrapped, written

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), max_size=40)


@st.composite
def tables(draw) -> Table:
    names = draw(st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=6))
    made = [Column(n, right=draw(st.booleans()), fold=draw(st.booleans()), keep=draw(st.booleans())) for n in names]
    cell = st.one_of(st.none(), TEXTS)
    rows = draw(st.lists(st.tuples(*[cell for _ in made]), max_size=5))
    return table(made, rows)


@given(tables(), st.integers(20, 100))
def test_nothing_is_wider_than_the_page(found, room) -> None:
    """Whatever the cells are, unless there are more columns that must be kept than the page has room for."""
    layout = fit(found, room)

    if 3 * len(layout.columns) <= room:
        assert [line for line in lines(found, room) if columns_of(line) > room] == []


@given(tables(), st.integers(20, 100))
def test_every_column_is_shown_or_named_as_left_out(found, room) -> None:
    layout = fit(found, room)
    names = [c.name for c in found.columns]

    assert sorted([*(c.name for c in layout.columns), *layout.left_out]) == sorted(names)
    assert layout.columns[0] == found.columns[0]
    assert [c for c in found.columns if c.keep and c.name in layout.left_out and names.count(c.name) == 1] == []
    assert ("Left out" in " ".join(lines(found, room))) == bool(layout.left_out)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_nothing_is_lost_where_there_is_room(cells) -> None:
    """All characters of a folded column are on the page, in order, without its spaces."""
    made = lines(table([Column("x", fold=True)], [[c] for c in cells]), 20)[2:]

    assert "".join("".join(made).split()) == "".join("".join(shown(c).split()) for c in cells)


def test_plain_table() -> None:
    found = table(["name", Column("value", right=True)], [("a", "1 GB"), ("bc", None), "heading", ("d", 12345)])

    assert lines(found, 80) == [
        "name   value",
        "----  ------",
        "a       1 GB",
        "bc         -",
        "heading",
        "d     12,345",
    ]


def test_wide_and_joining_characters() -> None:
    """A wide character takes two columns, one that joins another takes none."""
    made = lines(table(["a", "b"], [("日本", "x"), ("e\u0301", "y"), ("abcd", "z")]), 80)

    assert [columns_of(line.partition(end)[0]) for line, end in zip(made[2:], "xyz", strict=True)] == [6, 6, 6]
    assert (columns_of("日本"), columns_of("e\u0301"), columns_of("a\u200db")) == (4, 1, 2)
    assert padded("日", 4, right=True) == "  日"


def test_folding_comes_before_leaving_out() -> None:
    found = table([Column("a"), Column("b", fold=True), Column("c")], [("x" * 10, "one two three four", "y" * 10)])

    assert fit(found, 40).left_out == ()
    assert lines(found, 34)[2:] == ["xxxxxxxxxx  one two     yyyyyyyyyy", "            three four"]
    assert fit(found, 24).left_out == ("c",)
    assert " ".join(lines(found, 24)).endswith(
        "Left out for want of room: c. A wider page (COLUMNS) or --format csv has all."
    )


def test_units_below_headings() -> None:
    """In one line, however many the headings have; programs get them in one."""
    columns = [Column("a"), Column("step\ntime", right=True, unit="ms"), Column("x", right=True, unit="GiB")]
    found = table(columns, [("b", "1.5", "20")], "--format json")

    assert lines(found, 80) == ["   step", "   time    x", "a    ms  GiB", "-  ----  ---", "b   1.5   20"]
    assert written(found, "markdown").splitlines()[0] == "| a | step time ms | x GiB |"
    told = "".join(lines(found, 8)).replace(" ", "")
    assert told.endswith("Leftoutforwantofroom:x.Awiderpage(COLUMNS)or--formatjsonhasall.")


def test_indent_of_a_folded_cell_is_kept() -> None:
    found = table([Column("a", fold=True)], [("  " + "word " * 6,)])

    assert {line[:3] for line in lines(found, 20)[2:]} == {"  w"}


def test_paragraph() -> None:
    assert wrapped("note: ", "one two three", 14) == "note: one two\n      three"


FOUND = table(
    ["name", Column("n", right=True)],
    [("a|b", Fraction(3)), "a heading", ('q"u,\no', Fraction(1, 4)), ("gap", None), ("yes", True)],
)


def test_csv() -> None:
    """Headings are for people; a gap is empty; a whole number is whole."""
    text = written(FOUND, "csv")

    assert list(csv.reader(io.StringIO(text))) == [
        ["name", "n"], ["a|b", "3"], ['q"u,\no', "0.25"], ["gap", ""], ["yes", "True"],
    ]  # fmt: skip


def test_json() -> None:
    assert json.loads(written(FOUND, "json", {"of": "x"})) == {
        "version": 1,
        "of": "x",
        "rows": [
            {"name": "a|b", "n": 3},
            {"name": 'q"u,\no', "n": 0.25},
            {"name": "gap", "n": None},
            {"name": "yes", "n": True},
        ],
    }


def test_markdown() -> None:
    """A bar and a line break would end a cell."""
    assert written(FOUND, "markdown").splitlines() == [
        "| name | n |",
        "| --- | ---: |",
        "| a\\|b | 3 |",
        '| q"u, o | 0.25 |',
        "| gap | - |",
        "| yes | yes |",
    ]


def on_terminal(*args: str, columns: int, **env: str) -> str:
    """What a command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(*args), cwd=ROOT, stdout=theirs, stderr=theirs, env=environment(COLUMNS=str(columns), **env)
    ) as process:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            pass  # Linux ends a terminal so
        os.close(ours)
    assert process.returncode == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_terminal(columns) -> None:
    """Rich writes the same cells, in the same room, with colour unless it is not wanted."""
    text = on_terminal("list", "servers", columns=columns, TERM="xterm", NO_COLOR="1")
    colored = on_terminal("list", "servers", columns=columns, TERM="xterm-256color")

    assert [line for line in text.splitlines() if columns_of(line) > columns and "\x1b" not in line] == []
    assert "trn2u.48xlarge" in text
    assert "\x1b[" in colored


def test_a_terminal_cuts_nothing_off() -> None:
    """The words of a page that is as wide as its room are those that a pipe gets."""
    args = ("eval", "roofline", "--on", "trainium2")
    told = on_terminal(*args, columns=80, TERM="xterm", NO_COLOR="1")
    piped = subprocess.run(
        command(*args), cwd=ROOT, env=environment(COLUMNS="80"), capture_output=True, check=True, text=True
    ).stdout

    assert words(piped) == words(re.sub(r"\x1b\[[0-9;]*m", "", told))


def words(text: str) -> list[str]:
    return sorted(w for w in text.split() if w.strip("-─"))
