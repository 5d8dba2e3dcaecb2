"""The shipped catalog as a session of the language server has it in memory."""

import functools
import random
from pathlib import Path

from tests.support.programs import ROOT
from trnspec.api import registry
from trnspec.lsp.checking import QuickCheck, quick
from trnspec.lsp.documents import OpenDocuments, canonical
from trnspec.lsp.positions import Spot, TextLines, spot_at
from trnspec.yaml import Place

CHIP = canonical(ROOT / "catalog" / "chips" / "trainium2.yaml")
SCRIBBLES = (
    "{", "[", '"', "\t", ": ", "- ", "\n", "\u2028", "\U0001d54f", "&a ", "*a", "!!x ", "|", "null", "{a: {b: [",
)  # fmt: skip


@functools.cache
def session() -> OpenDocuments:
    """One for all tests, which leave no texts in it."""
    documents = OpenDocuments(registry())
    documents.surroundings(CHIP)
    return documents


def edited(old: str = "", new: str = "", file: str = CHIP) -> QuickCheck:
    """A document of the catalog with one text replaced, in the editor."""
    text = Path(file).read_text(encoding="utf-8")
    assert old in text
    documents = session()
    documents.texts[file] = text.replace(old, new, 1)
    try:
        return quick(documents, file)
    finally:
        del documents.texts[file]


def place_in(text: str, words: str, offset: int = 0) -> Place:
    """The position of some words of a text."""
    at = text.index(words) + offset
    return Place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def spot_in(result: QuickCheck, words: str, offset: int = 0) -> tuple[Spot, Place]:
    """What is at some words of a document."""
    place = place_in(result.document.text, words, offset)
    spot = spot_at(result.document, place)
    assert spot is not None
    return spot, place


def lines_of(result: QuickCheck) -> TextLines:
    """The lines of a document."""
    return TextLines.of(result.document.text)


def mutated(text: str, seed: int) -> str:
    """A text that is cut, scribbled in, or shuffled."""
    chance = random.Random(seed)
    at = chance.randrange(len(text))
    if seed % 4 == 0:
        return text[:at]
    if seed % 4 == 1:
        return text[:at] + chance.choice(SCRIBBLES) + text[at:]
    if seed % 4 == 2:
        return text[:at] + text[at + chance.randrange(60) :]
    lines = text.split("\n")
    start = chance.randrange(len(lines))
    part = lines[start : start + 6]
    chance.shuffle(part)
    return "\n".join([*lines[:start], *part, *lines[start + 6 :]])
