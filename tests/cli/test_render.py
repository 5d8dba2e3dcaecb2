"""Pages on a terminal: their width and their colours."""

import re

import pytest

from tests.support.programs import ROOT, at_a_terminal, forked
from trnspec.cli.render import numbers, versioned_json
from trnspec.text_table import columns_of


def on_terminal(*args: str, columns: int, **env: str) -> str:
    """What a command writes to a terminal of a number of columns."""
    result = at_a_terminal(*args, cwd=ROOT, COLUMNS=str(columns), **env)
    assert result.status == 0
    return result.out


def piped(*args: str) -> str:
    """What it writes to a pipe."""
    return forked(*args, cwd=ROOT, path=ROOT, COLUMNS="80").out


@pytest.mark.parametrize(("value", "found"), [(3, (3, 3, 3, None)), (True, (None,) * 4), ("3", (None,) * 4)])
def test_numbers(value, found) -> None:
    assert found == numbers(value)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_terminal(columns) -> None:
    text = on_terminal("list", "servers", columns=columns, TERM="xterm", NO_COLOR="1")
    colored = on_terminal("list", "servers", columns=columns, TERM="xterm-256color")

    assert [line for line in text.splitlines() if columns_of(line) > columns and "\x1b" not in line] == []
    assert "trn2u.48xlarge" in text
    assert "\x1b[" in colored


@pytest.mark.slow
@pytest.mark.parametrize("args", [("show", "trainium1"), ("audit", "trainium1"), ("list", "chips")])
def test_colours_only_on_a_terminal(args) -> None:
    colored = on_terminal(*args, columns=80, TERM="xterm-256color")
    plain = on_terminal(*args, columns=80, TERM="xterm-256color", NO_COLOR="1")

    assert "\x1b[" in colored
    assert plain == piped(*args)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


@pytest.mark.parametrize(
    ("width", "args", "heads"),
    [
        (38, ["source", "neuron-trainium2-2026-08"], "document figure says verdict"), (34, ["source"], "source date"),
        (20, ["query", "chip", "--columns", "name,title,memory.capacity"], "name title"),
        (20, ["compare", "trainium1", "trainium2"], "figure"), (20, ["list", "servers"], "name"),
        (34, ["check", "trainium2", "memory.bandwidth", "3 TB/s"], "value verdict source"),
    ],
)  # fmt: skip
def test_a_narrow_table_wraps_texts_and_keeps_the_columns_that_name_its_rows(here, monkeypatch, width, args, heads):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = here(*args).out.splitlines()
    rule = next(number for number, line in enumerate(lines) if re.fullmatch(r"--[- ]+", line))

    assert heads.split() == lines[rule - 1].split()
    assert max(map(len, lines[rule:])) <= width


def test_json_has_the_characters_of_the_text() -> None:
    assert '{\n  "version": 1,\n  "a": "2 µs"\n}' == versioned_json({"a": "2 µs"})
