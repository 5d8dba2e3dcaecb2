"""Credit: whether the page of the named source prints the value, over a local copy of the pages.

A page is the text file ``SOURCE.txt`` of a folder. Where a source has several files, such as the records of an API,
``SOURCE/DOCUMENT.txt`` is the page for one document, and all files of ``SOURCE/`` are the page for the others.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

from trnspec.errors import UsageError
from trnspec.graph.citations import Citation, citations
from trnspec.graph.graph import Graph
from trnspec.model.source import Source
from trnspec.quantities.units import UNITS, Dimension

Outcome = Literal["line", "page", "no"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen"),
)
_ORDINALS = ["zeroth", "first", "second", "third", "fourth", "fifth"]
_NUMBER = re.compile(
    r"(?:(?<![\w.])|(?<=\d[x*])|(?<=\dD)|(?<=\bx))(?:(?P<hex>0x[0-9a-fA-F]+)|(?P<digits>\d+(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?)"
    r"(?P<unit> ?[A-Za-zµ]+(?:/[A-Za-z]+)?)?"
)
_PRODUCT = re.compile(r"(\d+)x (\d+) ([A-Za-z]+)")  # 8x 100 Gigabit
_OWN_WORDS = ("connects", "currency", "status")
_NAMED = re.compile(r"\blines? (\d+(?:(?: to |, and | and |, )\d+(?![\d.]* ))*)")
_KEY = re.compile(r"[A-Za-z]+(?:\.[A-Za-z]+(?:\[\d+\])?)+")


def credited(graph: Graph, folder: Path) -> list[tuple[Citation, Outcome]]:
    """The values of every source that has a page in a folder, each with where the page prints it.

    That is ``line`` on the lines that ``where`` names, ``page`` elsewhere on the page, or ``no``.

    Left out are statements in words (features), which are paraphrases; names of documents, which are the catalog's own;
    and words that the catalog uses of every document of a kind, such as ``connects: chips``.

    Raises:
        UsageError: It is not a folder, or has no page of a source.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; it has one page for each source, SOURCE.txt")
    named = {node.name for node in graph.of(Source)}
    sources = {path.stem if path.is_file() else path.name for path in folder.iterdir()} & named
    if not sources:
        raise UsageError(f"{folder} has no page of a source; a page is SOURCE.txt or SOURCE/DOCUMENT.txt")
    pages = {name: _Pages(folder, name) for name in sources}
    return [
        (each, _printed(each, pages[each.source].of(each.of)))
        for each in citations(graph, sources)
        if not each.at.startswith("features.")
        and each.says not in graph
        and each.at.rpartition(".")[2] not in _OWN_WORDS
    ]


class _Pages:
    """The files of one source, each as its lines."""

    def __init__(self, folder: Path, source: str) -> None:
        parts = sorted((folder / source).glob("*.txt")) or [folder / f"{source}.txt"]
        self._files = {path.stem: path.read_text("utf-8", "replace").splitlines() for path in parts}

    def of(self, document: str) -> list[list[str]]:
        """The files for a document: its own, or all."""
        return [self._files[document]] if document in self._files else list(self._files.values())


def _printed(citation: Citation, files: list[list[str]]) -> Outcome:
    if any(prints("\n".join(_lines(lines, citation.where)), citation.says) for lines in files):
        return "line"
    return "page" if any(prints("\n".join(lines), citation.says) for lines in files) else "no"


def _lines(lines: list[str], where: str) -> list[str]:
    """The named lines of a page; those that print a key, such as ``MemoryInfo.SizeInMiB``, where lines are not named."""
    numbers: set[int] = set()
    for match in _NAMED.finditer(where):
        first = 0
        for word, number in re.findall(r"(to )?(\d+)", match[1]):
            numbers |= set(range(first, int(number) + 1)) if word else {int(number)}
            first = int(number)
    if numbers:
        return [lines[n - 1] for n in sorted(numbers) if 0 < n <= len(lines)]
    keys = _KEY.findall(where)
    return [line for line in lines if any(key in line for key in keys)]


def prints(text: str, says: str) -> bool:
    """Whether a text prints a value: each of its numbers, in the same unit or converted, or else its words."""
    if dated := re.fullmatch(r"(\d{4})-(0[1-9]|1[0-2])(?:-(\d\d))?", says):
        year, month, day = dated.groups()
        name, any_day = calendar.month_name[int(month)][:3], day or "[0-9]+"
        written = f"{name}[a-z]*[.]? (?:{any_day.lstrip('0')}, )?{year}|{year}-{month}|{month}/{any_day}/{year}"
        return re.search(written, text) is not None
    expected = list(_numbers(says))
    if not expected:
        return _plain(says).removesuffix("ed") in _plain(text)  # "switched": a page prints switch
    products = ((Fraction(int(times) * int(each)), unit) for times, each, unit in _PRODUCT.findall(text))
    found = [*_numbers(text), *products]
    return all(any(_same(number, unit, *other) for other in found) for number, unit in expected)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _numbers(text: str) -> Iterator[tuple[Fraction, str]]:
    """The numbers of a text, each with the word after it."""
    for match in _NUMBER.finditer(text):
        unit = (match["unit"] or "").strip()
        if match["hex"]:
            yield Fraction(int(match["hex"], 16)), "B"
            continue
        number = Fraction(match["digits"].replace(",", "") + (match["decimals"] or ""))
        yield number, unit
        if text[match.end() : match.end() + 1] == "%":
            yield number / 100, "x"
    for count, words in enumerate(zip(_WORDS, [*_ORDINALS, *_WORDS[len(_ORDINALS) :]], strict=True)):
        if re.search(rf"\b(?:{'|'.join(words)})\b", text, re.IGNORECASE):
            yield Fraction(count), ""


def _same(number: Fraction, unit: str, printed: Fraction, printed_unit: str) -> bool:
    """Whether a printed number is a number: in an equal unit, or in one that the text prints elsewhere."""
    ours, theirs = UNITS.get(unit), UNITS.get(printed_unit)
    if ours is None or theirs is None:
        # The unit of a column is elsewhere; "64 cores" is not 64 GiB.
        is_bare = theirs is None and (ours is None or not printed_unit[:1].islower())
        return number == printed and (is_bare or (theirs is not None and theirs.dimension is Dimension.RATIO))
    return ours.dimension is theirs.dimension and number * ours.factor == printed * theirs.factor
