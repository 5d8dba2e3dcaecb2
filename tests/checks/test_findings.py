"""Findings of slips in the texts of a small catalog and in the examples of the rules.

``tests/data/finding_places.txt`` has code and place of every finding, a line for each file or rule, and a checksum of all that is found.
``tests/data/finding_texts.txt`` has a finding of each wording: code, message, hint and edit.
After a change of a message, ``python tests/checks/test_findings.py`` writes both; read the difference.
"""

import contextlib
import re
import sys
import tempfile
import zlib
from pathlib import Path

import pytest

# Run as a program, too.
sys.path.extend(map(str, Path(__file__).parents[2].glob("plugins/*/src")))

from collections.abc import Callable, Iterator

from tests.support.rules import KNOWN, beside, checked, described, files, shipped, slips
from trnspec.checks.runner import run
from trnspec.plugins.api import Rule
from trnspec.testing.helpers import examples, split

DATA = Path(__file__).parents[1] / "data"
PLACES, TEXTS = DATA / "finding_places.txt", DATA / "finding_texts.txt"
FIGURES = 1
"""Slips of each figure."""

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


_FINDING = re.compile(r"(?P<gone>- )?(?P<code>TRN\d+) \w+ (?P<place>\S+) \[")


def places_of(name: str, lines: list[str]) -> str:
    """Code and place of the findings of a subject after each slip; slips without findings are left out.

    A code is not repeated, and a file is named by its document. The checksum shows a change of any detail of a finding.
    """
    slip, cases = "", dict[str, dict[str, list[str]]]()
    for line in lines:
        if (found := _FINDING.match(line)) is None:
            slip = line.removeprefix(f"{name}:")
        else:
            codes = cases.setdefault(slip, {})
            place = re.sub(r"^.*/(.*?)(\.yaml)?:", r"\1:", found["place"].removeprefix(name))
            codes.setdefault(f"{found['gone'] or ''}{found['code']}", []).append(place)
    shown = [
        f"{slip}: {', '.join(' '.join([code, *at]) for code, at in found.items())}" for slip, found in cases.items()
    ]
    checksum = zlib.crc32("\n".join(lines).encode())
    return " | ".join([name, *shown, f"{checksum:08x}"])


def words(line: str) -> str:
    """Code, message, hint and edit of a finding."""
    text = re.sub(r" \| see: .*?(?= \| edit: |$)", "", line.partition("] ")[2]).partition(": ")[2]
    return f"{line.partition(' ')[0]} {text}"


def wordings(text: str) -> set[tuple[str, ...]]:
    """What findings of one wording have in common: the code and the words of a clause, without names and numbers."""
    clauses = [clause.split() for clause in re.split(r"; | \| | or ", re.sub(r"\(.*?\)", "", text))]
    return {(text[:6], *(w for w in clause if re.fullmatch(r"[a-z]+[,:]?", w))) for clause in clauses}


def texts_of(found: dict[str, list[str]]) -> list[str]:
    """Findings that have every wording of a clause, each after its file or rule."""
    texts: list[str] = []
    known: set[tuple[str, ...]] = set()
    for name, lines in found.items():
        for text in (words(line) for line in lines if line.startswith("TRN") and _FINDING.match(line)):
            if not wordings(text) <= known:
                known |= wordings(text)
                texts.append(f"{name} | {text}".replace("\n", "\\n"))
    return texts


def test_no_findings_without_slips() -> None:
    assert list(described(checked().report.diagnostics)) == []


@pytest.mark.parametrize("name", FOUND)
def test_places_and_texts(name) -> None:
    lines = lines_of(name)
    shown = {words(line).replace("\n", "\\n") for line in lines}
    texts = [t.partition(" | ") for t in TEXTS.read_text("utf-8").splitlines()]

    assert places_of(name, lines) in PLACES.read_text("utf-8").splitlines()
    assert [text for subject, _, text in texts if subject == name and text not in shown] == []


def test_stored_subjects() -> None:
    assert [line.partition(" | ")[0] for line in PLACES.read_text("utf-8").splitlines()] == list(FOUND)
    assert {line.partition(" | ")[0] for line in TEXTS.read_text("utf-8").splitlines()} <= set(FOUND)


if __name__ == "__main__":
    FOUND_IN = {name: lines_of(name) for name in FOUND}
    PLACES.write_text("".join(f"{places_of(name, lines)}\n" for name, lines in FOUND_IN.items()), "utf-8")
    TEXTS.write_text("".join(f"{text}\n" for text in texts_of(FOUND_IN)), "utf-8")
