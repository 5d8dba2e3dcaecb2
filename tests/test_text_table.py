"""Tables: what fits, what wraps, what is hidden, and the same rows for programs."""

import csv
import io
import json
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trnspec import text_table
from trnspec.errors import UsageError
from trnspec.text_table import (
    Column,
    Number,
    TextTable,
    columns_of,
    fit,
    folded,
    lines,
    padded,
    rendered,
    shown,
    table,
    wrapped,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")), max_size=40)


@st.composite
def tables(draw) -> TextTable:
    names = draw(st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=6))
    made = [Column(n, right=draw(st.booleans()), wrap=draw(st.booleans()), keep=draw(st.booleans())) for n in names]
    cell = st.one_of(st.none(), TEXTS)
    rows = draw(st.lists(st.tuples(*[cell for _ in made]), max_size=5))
    return table(made, rows)


# An indent leaves room for a character of two columns.
@example(table([Column(n, keep=True) for n in ("a", "a", "aa", "aa", "aa", "a")], [(None,) * 5 + (" \u2e80",)]), 20)
# No column is narrower than its widest character.
@example(
    table([Column(n, keep=True) for n in ("a", "a", "a", "aa", "aa", "a")], [(None, "\u1100", "00", None, None, "00")]),
    20,
)
@given(tables(), st.integers(20, 100))
def test_tables_fit_the_page_width(found, room) -> None:
    """Whatever the cells are, unless there are more columns that must be kept than the page has room for."""
    layout = fit(found, room)

    wide = sum(
        max(map(columns_of, c.name + "".join(cells))) > 1
        for c, *cells in zip(layout.columns, *layout.rows, strict=True)
    )
    if 3 * len(layout.columns) + wide <= room:
        assert [line for line in lines(found, room) if columns_of(line) > room] == []


@given(tables(), st.integers(20, 100))
def test_every_column_is_shown_or_named_as_hidden(found, room) -> None:
    layout = fit(found, room)
    names = [c.name for c in found.columns]

    assert sorted([*(c.name for c in layout.columns), *layout.hidden]) == sorted(names)
    assert layout.columns[0] == found.columns[0]
    assert [c for c in found.columns if c.keep and c.name in layout.hidden and names.count(c.name) == 1] == []
    assert ("hidden columns:" in " ".join(lines(found, room))) == bool(layout.hidden)


WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=6).map(" ".join)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=4))
def test_no_word_is_broken(rows) -> None:
    """Columns are hidden instead, as long as the first one fits."""
    found = table([Column("n", wrap=True), *(Column(f"c{i}", wrap=True) for i in range(4))], rows)
    layout = fit(found, 40)
    words = {w for row in layout.rows for cell in row for w in cell.split()}

    assert {w for line in lines(found, 40)[2:] for w in line.split()} >= words


def test_columns_of_little_importance_are_hidden_first() -> None:
    columns = [Column("a"), Column("b", importance=1), Column("c"), Column("d"), Column("e", importance=-1)]
    found = table(columns, [("x" * 10,) * 5])

    assert [fit(found, size).hidden for size in (60, 50, 40, 30, 20)] == [
        (), ("e",), ("d", "e"), ("c", "d", "e"), ("b", "c", "d", "e"),
    ]  # fmt: skip


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_all_columns_are_kept_where_they_fit(cells) -> None:
    """All characters of a wrapped column are on the page, in order, without its spaces."""
    made = lines(table([Column("x", wrap=True)], [[c] for c in cells]), 20)[2:]

    assert "".join("".join(made).split()) == "".join("".join(shown(c).split()) for c in cells)


def test_wide_and_joining_characters() -> None:
    """A wide character takes two columns, one that joins another takes none."""
    made = lines(table(["a", "b"], [("日本", "x"), ("e\u0301", "y"), ("abcd", "z")]), 80)

    assert [columns_of(line.partition(end)[0]) for line, end in zip(made[2:], "xyz", strict=True)] == [6, 6, 6]
    assert (columns_of("日本"), columns_of("e\u0301"), columns_of("a\u200db")) == (4, 1, 2)
    assert padded("日", 4, right=True) == "  日"


@pytest.mark.parametrize(
    ("head", "text", "width", "expected"),
    [
        ("hint: ", "one two three", 13, "hint: one two\n      three"), ("hint: ", "one two", 12, "hint: one\n      two"),
        ("\u6ce8: ", "one two", 8, "\u6ce8: one\n    two"), ("note: ", "abcdef", 2, "note: abcd\n      ef"), ("note: ", "", 9, "note: "),
    ],
)  # fmt: skip
def test_further_lines_are_indented(head, text, width, expected) -> None:
    assert expected == wrapped(head, text, width)


def test_wrapping_comes_before_hiding() -> None:
    found = table([Column("a"), Column("b", wrap=True), Column("c")], [("x x x x xx", "one two three four", "y" * 10)])

    assert fit(found, 40).hidden == ()
    many = table([Column(name * 10) for name in "abcd"], [])
    assert lines(many, 40)[3:] == ["hidden columns: dddddddddd (use --format", "csv or a wider terminal)"]
    assert lines(found, 34)[2:] == ["x x x x xx  one two     yyyyyyyyyy", "            three four"]
    assert lines(table([Column("a"), Column("two\nlines")], []), 80) == ["   two", "a  lines", "-  -----"]
    assert lines(table([Column("x", wrap=True)], [[" " * 30]]), 20) == ["x", "-" * 10, ""]
    assert fit(found, 24).hidden == ("c",)
    assert " ".join(lines(found, 24)).endswith("hidden columns: c (use --format csv or a wider terminal)")


ROWS = table(
    [Column("name"), Column("memory [GiB]", right=True, key="memory")],
    [("b", Number(2, "~2")), "heading", ("a", Number(10, "10")), ("c", None)],
)


def test_sorted() -> None:
    """By value, gaps last."""
    ascending, descending = ROWS.sorted("memory"), ROWS.sorted("-memory")

    assert [r[0] for r in ascending.rows] == ["b", "a", "c"]
    assert [r[0] for r in descending.rows] == ["a", "b", "c"]
    assert ROWS.sorted(None) is ROWS


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True), st.sets(st.integers(0, 4)))
def test_identity_columns_are_always_selected(named: list[int], identities: set[int]) -> None:
    """Before what is named, unless it is named too."""
    columns = [Column(f"c{i}", identity=i in identities) for i in range(5)]
    some = table(columns, [range(5)]).selected(",".join(f"c{i}" for i in named))

    assert some.rows == ((*sorted(identities - {*named}), *named),)
    assert [c.name for c in some.columns] == [f"c{i}" for i in some.rows[0]]


def test_a_command_is_folded_before_its_options() -> None:
    assert ["trnspec eval a \\", "  --on 'b c' \\", "  --full"] == folded("trnspec eval a --on 'b c' --full", 16)


def test_a_long_word_is_broken_after_punctuation_to_its_end() -> None:
    """Also where the rest of it is not long any more."""
    path = "trn2.48xlarge.network.bandwidth"
    page = rendered([table([Column(path, keep=True), Column("x" * 60, keep=True)], [("1", "2")])], 74)

    assert [line.split()[0] for line in page.splitlines()[:4]] == ["trn2.", "48xlarge.", "network.", "bandwidth"]


@pytest.mark.parametrize("call", [ROWS.selected, ROWS.sorted])
def test_unknown_column(call) -> None:
    with pytest.raises(UsageError, match="did you mean 'memory'"):
        call("memroy")


FOUND = table(
    ["name", Column("n", right=True)],
    [("a|b", Fraction(3)), "a heading", ('q"u,\no', Fraction(1, 4)), ("gap", None), ("yes", True)],
)


def test_csv() -> None:
    """Headings are for people; a gap is empty; a whole number is whole."""
    text = text_table.csv(FOUND)

    assert list(csv.reader(io.StringIO(text))) == [
        ["name", "n"], ["a|b", "3"], ['q"u,\no', "0.25"], ["gap", ""], ["yes", "True"],
    ]  # fmt: skip


def test_html() -> None:
    """Headings reach over all columns; markup of a cell is text."""
    made = text_table.html(table(["a", Column("n", right=True)], ["one", ("<b>", Fraction(3))]))

    assert made.splitlines() == [
        "<table>",
        '<thead><tr><th style="text-align: left">a</th><th style="text-align: right">n</th></tr></thead>',
        "<tbody>",
        '<tr><th colspan="2" style="text-align: left">one</th></tr>',
        '<tr><td style="text-align: left">&lt;b&gt;</td><td style="text-align: right">3</td></tr>',
        "</tbody>",
        "</table>",
    ]


def test_json() -> None:
    text = '{\n  "version": 1,\n  "rows": [\n    {\n      "n": "\u00e9"\n    }\n  ]\n}\n'
    assert text == text_table.json(table(["n"], [("\u00e9",)]))
    assert json.loads(text_table.json(FOUND, {"of": "x"})) == {
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
    assert text_table.markdown(FOUND).splitlines() == [
        "| name | n |",
        "| --- | ---: |",
        "| a\\|b | 3 |",
        '| q"u, o | 0.25 |',
        "| gap | - |",
        "| yes | yes |",
    ]


HOSTILE = "\x1b]0;t\x07\r\x9b\u202e<b>`c`[a](javascript:1)|\\\ttab\nline"


def test_control_characters_are_written_out() -> None:
    """In pages, CSV and Markdown, also those of a heading; tabs and lines stay, colours of a page too."""
    data = table([Column(f"h{HOSTILE}"), Column("b")], [(HOSTILE, Number(1, "1\x1b"))])
    page = rendered([HOSTILE, data, "\x1b[31mred\x1b[0m\x1b[2J"], 200)

    for text in (page.replace("\x1b[31m", "").replace("\x1b[0m", ""), text_table.csv(data), text_table.markdown(data)):
        assert {c for c in text if not c.isprintable()} <= {"\n", "\t"}
    assert "\x1b[31mred\x1b[0m\\x1b[2J" in page


def test_markdown_begins_no_code_and_no_link() -> None:
    data = table(["a"], [(HOSTILE,)])

    assert text_table.markdown(data).splitlines()[-1] == (
        "| \\\\x1b]0;t\\\\x07\\\\r\\\\x9b\\\\u202e\\<b>\\`c\\`[a]\\(javascript:1)\\|\\\\\ttab line |"
    )
