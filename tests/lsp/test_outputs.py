"""Answers about the documents of a small catalog at the beginning and the end of every word, and about texts with a slip.

``tests/data/answers/lsp.txt`` has for each request an answer of each wording, and before them the number and a checksum of all.
After a change of an answer, ``python -m tests.lsp.test_outputs`` writes it; read the difference.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from lsprotocol.types import DocumentSymbol

import trnspec
from tests.lsp.conftest import lines_of, mutated
from tests.support.programs import written
from tests.support.rules import KNOWN, files, slips
from tests.support.stored import DATA, sample, sampled
from trnspec.lsp import actions, navigation
from trnspec.lsp.checking import QuickCheck, quick
from trnspec.lsp.completion import complete
from trnspec.lsp.documents import OpenDocuments, canonical
from trnspec.lsp.hover import hover
from trnspec.lsp.messages import by_file
from trnspec.lsp.positions import spot_at
from trnspec.lsp.symbols import symbols
from trnspec.yaml import Place

STORED = "answers/lsp.txt"
PACKAGE = str(Path(trnspec.__file__).parent)
NAMES = [f"{name}.yaml" for name in (
    "sources/acme-a1-2024-07", "links/wire-v1", "cores/kern-v1", "chips/alpha1", "servers/a1.large", "ultraservers/b2-ultra",
    "prices/a1.large-spot", "models/mix-671b",
)]  # fmt: skip


class Editor:
    """A session with the small catalog in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = canonical(folder)
        self.documents = OpenDocuments(KNOWN)
        for name, text in files().items():
            written(folder / name, text)

    def opened(self, name: str, text: str) -> QuickCheck:
        file = canonical(f"{self.folder}/{name}")
        self.documents.texts[file] = text
        try:
            return quick(self.documents, file)
        finally:
            del self.documents.texts[file]

    def shown(self, *answers: object) -> str:
        text = " | ".join(map(str, answers))
        # Pages of codes are files of the package.
        return " ".join(text.replace(self.folder, "").replace(PACKAGE, "").split())


def words(result: QuickCheck) -> Iterator[Place]:
    """The beginning and the end of every word of a document."""
    for number, line in enumerate(lines_of(result).texts, 1):
        yield from (Place(number, match.start() + 1) for match in re.finditer(r"\b|$", line))


def hovers(editor: Editor, result: QuickCheck, spec: Any) -> Iterator[str]:
    for place in words(result):
        if spot := spot_at(result.document, place):
            yield editor.shown(place, hover(spot, spec, result.node, result.graph, KNOWN.units))


def completions(editor: Editor, result: QuickCheck, _: Any) -> Iterator[str]:
    lines = lines_of(result).texts
    for place in words(result):
        # As it is typed: what follows on the line is not there yet.
        begun = [*lines[: place.line - 1], lines[place.line - 1][: place.column - 1], *lines[place.line :]]
        for text in (lines, begun):
            found = complete(text, place, result.graph, KNOWN)
            yield editor.shown(place, found.typed, *found.items)


def places(editor: Editor, result: QuickCheck, spec: Any) -> Iterator[str]:
    """Definitions, references and the actions that add a claim; the outline."""
    yield from outline(editor, symbols(result.document, lines_of(result)))
    for place in words(result):
        spot = spot_at(result.document, place)
        if spot is not None and result.node is not None:
            named = navigation.named_at(spot, place, result.node, result.graph)
            yield editor.shown(place, named and named.name, *navigation.definition(spot, named, result.node))
            yield editor.shown(*navigation.claims_on(spot.path, result.node))
            yield editor.shown(*actions.claim(spot, spec, "file:///x.yaml", result.document, lines_of(result)))
            if named is not None:
                yield editor.shown(*navigation.uses(named, result.graph))


def outline(editor: Editor, found: Sequence[DocumentSymbol]) -> Iterator[str]:
    for one in found:
        yield editor.shown(one.name, one.kind, one.range, one.selection_range, one.detail)
        yield from outline(editor, one.children or ())


def messages(editor: Editor, whole: QuickCheck, _: Any) -> Iterator[str]:
    """Findings, what an editor offers to do about them, and outlines and completions, also of a text that is cut or misspelt."""
    name, text = whole.document.file.removeprefix(f"{editor.folder}/"), whole.document.text
    broken = [mutated(text, seed) for seed in range(12)] + [text.replace(*pair) for pair in MISSPELT]
    for slip in [*broken, *(slip.text for slip in slips(files(), name, 1))]:
        result = editor.opened(name, slip)
        file, lines = result.document.file, lines_of(result)
        uri = Path(file).as_uri()
        for message in by_file(result.diagnostics, [file], lambda _, lines=lines: lines, KNOWN.codes)[file]:
            yield editor.shown(message)
            for made in (
                actions.fixes(message, uri, lines), actions.waiver(message, uri, result.document, lines),
                actions.new_source(message, uri, KNOWN),
            ):  # fmt: skip
                yield from (editor.shown(action.title, action.edit) for action in made)
        if slip in broken:
            yield from outline(editor, symbols(result.document, lines))
            for place in [*words(result)][::9]:
                found = complete(lines.texts, place, result.graph, KNOWN)
                yield editor.shown(place, found.typed, *(item.label for item in found.items))


MISSPELT = (
    ("GB/s", "GBps"), ("TFLOPS", "TFLOP"), ("spec:", "spce:"), ("source: ", "source: x"), ("name: ", "name: 'a"), ("count", "cuont"),
)  # fmt: skip

REQUESTS = {request.__name__: request for request in (hovers, completions, places, messages)}


def made(name: str, folder: Path) -> list[str]:
    """The answers to a request; each is shown as far as a line is read."""
    editor, answers = Editor(folder), list[str]()
    for file in NAMES:
        result = editor.opened(file, files()[file])
        assert result.node is not None
        answers += REQUESTS[name](editor, result, type(result.node.spec))
    return [line[:200] for line in sample(name, answers, 8)]


@pytest.mark.parametrize("name", REQUESTS)
def test_answers(name: str, tmp_path: Path) -> None:
    assert sampled(STORED, name) == made(name, tmp_path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place_:
        lines_ = [line for name_ in REQUESTS for line in made(name_, Path(place_))]
    (DATA / STORED).write_text("".join(f"{line}\n" for line in lines_), "utf-8")
