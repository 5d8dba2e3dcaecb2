"""The table "I want to add ..." of CONTRIBUTING.md."""

from __future__ import annotations

import re

from attrs import frozen
from running import ROOT
from scratch import Scratch


@frozen
class Row:
    """A row of the table.

    Attributes:
        what: What is added.
        changed: The files of trnspec that change.
        own: The new files, with NAME in their paths; where there are none, the first file that changes.
        plugin: The files of a plugin.
        tests: The tests that make the change.
    """

    what: str
    changed: tuple[str, ...]
    own: tuple[str, ...]
    plugin: tuple[str, ...]
    tests: tuple[str, ...]


def rows() -> dict[str, Row]:
    """The table, by the first column."""
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## I want to add ...\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    result = {}
    for line in table[1:]:
        what, core, plugin, tried = (cell.strip() for cell in line.strip("|").split(" | "))
        paths = [p for p in re.findall(r"`([^`]+)`", core) if re.search(r"\.(py|md|yaml)$", p)]
        own = tuple(p for p in paths if "NAME" in p)
        changed = tuple(p for p in paths if "NAME" not in p)
        in_plugin = tuple(p for p in re.findall(r"`([^`]+)`", plugin) if re.search(r"\.(py|yaml)$", p))
        result[what] = Row(what, changed, own, in_plugin, tuple(re.findall(r"`(tests/[^`]+)`", tried)))
    return result


ROWS = rows()


def made_as_stated(scratch: Scratch, what: str) -> None:
    """The files that were touched are those of the row."""
    patterns = [re.escape(f).replace("NAME", "[A-Za-z0-9_-]+") for f in ROWS[what].own]

    assert set(ROWS[what].changed) == scratch.changed
    assert set() == {f for f in scratch.added if not any(re.fullmatch(p, f) for p in patterns)}
    assert [] == [p for p in patterns if not any(re.fullmatch(p, f) for f in scratch.added)]
