"""Pages on a terminal: their width and their colours."""

from __future__ import annotations

import os
import pty
import re
import subprocess

import pytest
from running import ROOT, command, environment

from trnspec.text_table import columns_of


def on_terminal(*args: str, columns: int, **env: str) -> str:
    """What a command writes to a terminal of a number of columns."""
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
    """The same cells in the same width, with colours unless NO_COLOR is set."""
    text = on_terminal("list", "servers", columns=columns, TERM="xterm", NO_COLOR="1")
    colored = on_terminal("list", "servers", columns=columns, TERM="xterm-256color")

    assert [line for line in text.splitlines() if columns_of(line) > columns and "\x1b" not in line] == []
    assert "trn2u.48xlarge" in text
    assert "\x1b[" in colored


def test_a_terminal_cuts_nothing_off() -> None:
    """The words of a page that is as wide as its room are those that a pipe gets."""
    args = ("eval", "roofline", "--on", "trainium2")
    reported = on_terminal(*args, columns=80, TERM="xterm", NO_COLOR="1")
    piped = subprocess.run(
        command(*args), cwd=ROOT, env=environment(COLUMNS="80"), capture_output=True, check=True, text=True
    ).stdout

    assert words(piped) == words(re.sub(r"\x1b\[[0-9;]*m", "", reported))


def words(text: str) -> list[str]:
    return sorted(w for w in text.split() if w.strip("-─"))


@pytest.mark.parametrize("args", [("show", "trainium1"), ("audit", "trainium1"), ("list", "chips")])
def test_colours_only_on_a_terminal(args) -> None:
    """A terminal gets colours, a pipe and NO_COLOR do not; the text is the same."""
    colored = on_terminal(*args, columns=80, TERM="xterm-256color")
    plain = on_terminal(*args, columns=80, TERM="xterm-256color", NO_COLOR="1")
    piped = subprocess.run(
        command(*args), cwd=ROOT, env=environment(COLUMNS="80"), capture_output=True, check=True, text=True
    ).stdout

    assert "\x1b[" in colored
    assert plain == piped
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == piped


def test_verdicts_have_their_colours() -> None:
    text = on_terminal("show", "trainium1", columns=80, TERM="xterm-256color")

    assert "\x1b[31m    rejected" in text
    assert "\x1b[32m    agrees" in text
