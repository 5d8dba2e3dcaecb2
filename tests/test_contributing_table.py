"""The table "I want to add ..." of CONTRIBUTING.md: its rows, and that their files and tests exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.programs import ROOT, ROWS
from trnspec.plugins.scaffold.writer import KINDS, files

REQUIRED = {
    *("chip generation", "extensive figure", "hardware level (rack)", "kind", "rule", "code", "evaluator"),
    *("evaluator option", "command", "exporter", "reporter", "unit"),
}
MOST_OTHERS = 2
"""Files that a change touches, except the new one that it is about."""


def test_every_row_is_there() -> None:
    assert set() == REQUIRED - set(ROWS)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.what)
def test_files_of_a_row(row) -> None:
    """They exist, those that are new are in folders that exist, and few change beside the one that the change is about."""
    others = row.changed if row.own else row.changed[1:]

    assert [] == [f for f in row.changed if not (ROOT / f).is_file()]
    assert [] == [f for f in row.own if not (ROOT / f.partition("NAME")[0]).parent.is_dir()]
    assert row.own + row.changed
    assert len(others) <= MOST_OTHERS, others


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.what)
def test_tests_of_a_row(row) -> None:
    missing = []
    for test in row.tests:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / file).read_text("utf-8")) if (ROOT / file).is_file() else ast.Module([], [])
        if name not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
            missing.append(test)

    assert row.tests
    assert [] == missing


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r.what in REQUIRED], ids=lambda row: row.what)
def test_files_of_a_plugin(row) -> None:
    """A row of which ``plugin new`` writes an example names the files of the example."""
    written = {_renamed(name, kind) for kind in KINDS for name in files("name", kind)}

    assert row.plugin
    assert [] == [f for f in row.plugin if f not in written]
    assert len([f for f in row.plugin if f.endswith(".py")]) <= MOST_OTHERS


def _renamed(path: str, kind: str) -> str:
    """A path of the example as the table has it."""
    path = path.replace("trnspec_name/", "trnspec_NAME/")
    return re.sub(r"name-[a-z0-9-]+\.yaml$", "NAME.yaml", path)
