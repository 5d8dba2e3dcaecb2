"""What is found in slips, in full: code, severity, place, message, hint, related places and edit.

The slips are made in the texts of a small catalog and in the examples of the rules. The expected findings are in
``tests/data/findings.json``; after a change of a message, ``python tests/checks/test_findings.py`` writes them anew, and
the difference is to be read.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# Run as a program, too.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tests.support.rules import KNOWN, beside, checked, described, files, shipped, slips
from trnspec.checks.runner import run
from trnspec.testing.helpers import examples, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trnspec.plugins.api import Rule

STORED = Path(__file__).parents[1] / "data" / "findings.json"
FIGURES = 2
"""Slips at each figure."""

# Options of evaluators have tests of their own.
RULES = {rule.code.id: rule for rule in KNOWN.rules if rule.code.id != "TRN820"}


def of_file(name: str) -> Iterator[str]:
    """The findings of each slip in a file of the catalog; five of six are checked in this file alone."""
    for number, slip in enumerate(slips(files(), name, FIGURES)):
        yield str(slip)
        yield from described(checked({name: slip.text}, only=number % 6 != 0).report.diagnostics)


def of_rule(rule: Rule) -> Iterator[str]:
    """What a rule finds in its example, and what a slip in it, or in the corrected one, adds and removes."""
    for heading, text in examples(rule.code):
        texts = dict(split(re.sub(r" *#! .*", "", text), KNOWN))
        before = list(_found(rule, texts))
        yield from (heading, *before)
        for slip in (s for name in texts for s in slips(texts, name, FIGURES)):
            after = list(_found(rule, texts | {slip.file: slip.text}))
            yield str(slip)
            yield from (line for line in after if line not in before)
            yield from (f"- {line.partition(': ')[0]}" for line in before if line not in after)


def _found(rule: Rule, texts: dict[str, str]) -> Iterator[str]:
    graph = beside(*(f"# file: {name}\n{text}" for name, text in texts.items() if name.endswith(".yaml")))
    added = [name for name, node in graph.nodes.items() if node is not shipped().nodes.get(name)]
    for name, text in texts.items():
        if not name.endswith(".yaml"):
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(text, "utf-8")
    yield from described(run([rule], graph.focused_on(added)))


def lines_of(name: str) -> list[str]:
    """The findings of one subject; tables are written to a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return list(FOUND[name]())


FOUND: dict[str, Callable[[], Iterator[str]]] = {
    **{name: lambda name=name: of_file(name) for name in files()},
    **{code: lambda rule=rule: of_rule(rule) for code, rule in RULES.items()},
}  # fmt: skip


def test_nothing_without_slips() -> None:
    assert list(described(checked().report.diagnostics)) == []


@pytest.mark.parametrize("name", FOUND)
def test_as_stored(name) -> None:
    expected = json.loads(STORED.read_text("utf-8"))

    assert expected[name] == lines_of(name)
    assert set(FOUND) == set(expected)


if __name__ == "__main__":
    STORED.write_text(json.dumps({name: lines_of(name) for name in FOUND}, indent=0) + "\n", "utf-8")
