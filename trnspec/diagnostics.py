"""Diagnostics: severities, codes with their explanations, a diagnostic, a report; and did-you-mean suggestions.

A diagnostic holds the id of a code, not the rule, so that this module does not depend on the rules.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.short_repr import short_repr
from trnspec.yaml import Path, Place

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(enum.IntEnum):
    """The severity of a finding; ``ERROR`` and ``WARNING`` make the exit status 1, ``INFO`` does not."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The name in lower case, as in settings and output."""
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> Severity:
        """The severity of that label; ``ValueError`` lists the labels."""
        try:
            return cls[label.upper()]
        except KeyError:
            labels = ", ".join(s.label for s in cls)
            raise ValueError(f"{label!r} is not a severity; write one of {labels}") from None


@frozen
class Code:
    """A code and its explanation, which is its help text, its manual page and its test.

    Attributes:
        id: For instance ``TRN402``. Never reused with another meaning.
        name: The defect, for instance ``aggregate-mismatch``.
        severity: The severity of its findings unless the settings change it.
        doc: One sentence, then the sections Why, Example, Instead and Source.
    """

    id: str
    name: str
    severity: Severity
    doc: str

    __repr__ = short_repr

    @property
    def summary(self) -> str:
        """The first sentence of the explanation."""
        return self.doc.strip().split("\n\n", 1)[0].replace("\n", " ")


@frozen
class Location:
    """A position in a file.

    Attributes:
        file: The file as given by the caller, or ``<stdin>``.
        place: Line and column, counted from 1; ``None`` for the file as a whole.
        path: The path in the document: ``("spec", "peak", "dense", "bf16")``.
        text: The content of that position, for the reader, or an empty text.
    """

    file: str
    place: Place | None = None
    path: Path = ()
    text: str = ""

    __repr__ = short_repr

    def __str__(self) -> str:
        return self.file if self.place is None else f"{self.file}:{self.place.line}:{self.place.column}"


@frozen
class Diagnostic:
    """One finding.

    Attributes:
        code: The id of its :class:`Code`.
        severity: Its severity under the settings of the run.
        message: One sentence with both values.
        where: Its position.
        hint: The suggested correction, or an empty text.
        see: Related positions.
        name: The name of the code, for instance ``aggregate-mismatch``.
    """

    code: str
    severity: Severity
    message: str
    where: Location
    hint: str = ""
    see: tuple[Location, ...] = ()
    name: str = ""

    __repr__ = short_repr

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """The sort key: file, line, column, code, message."""
        place = self.where.place or Place(0, 0)
        return (self.where.file, place.line, place.column, self.code, self.message)


def _sorted(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(sorted(diagnostics, key=lambda d: d.order))


@frozen
class Report:
    """All findings of a run, by file and line.

    Attributes:
        diagnostics: The findings to show.
        checked: The number of checked documents of each kind.
        files: The number of files.
        waived: The number of findings that a waiver suppressed.
        codes: The known codes, for reporters that include rule descriptions.
    """

    diagnostics: tuple[Diagnostic, ...] = field(converter=_sorted)
    checked: dict[str, int] = field(factory=dict)
    files: int = 0
    waived: int = 0
    codes: tuple[Code, ...] = ()

    __repr__ = short_repr

    def count(self, severity: Severity) -> int:
        """The number of findings of exactly this severity."""
        return sum(d.severity is severity for d in self.diagnostics)

    @property
    def ok(self) -> bool:
        """True if there are no warnings and no errors."""
        return all(d.severity <= Severity.INFO for d in self.diagnostics)

    def lines(self) -> set[tuple[str, int]]:
        """The set of (code, line), for tests."""
        return {(d.code, d.where.place.line if d.where.place else 0) for d in self.diagnostics}


def nearest(word: str, words: Iterable[str], most: int = 3) -> list[str]:
    """The names that ``word`` may be an abbreviation or a misspelling of, best first; may be empty.

    Names that begin with ``word`` come first: those in which it is followed by a separator (``trn2.48xlarge`` for
    ``trn2``) before others, shorter ones before longer ones. Then come the names with a similar spelling. Case is
    ignored.
    """
    import difflib

    typed = word.casefold()
    by_folded = {w.casefold(): w for w in words}
    completions = [folded for folded in by_folded if len(typed) > 1 and folded.startswith(typed)]
    completions.sort(key=lambda folded: (folded[len(typed) : len(typed) + 1].isalnum(), len(folded)))
    similar = difflib.get_close_matches(typed, list(by_folded), n=most, cutoff=0.6)
    return [by_folded[folded] for folded in dict.fromkeys((*completions, *similar))][:most]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """``did you mean 'bandwidth'?``, or an empty text if no name is similar."""
    names = nearest(word, words)
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""
