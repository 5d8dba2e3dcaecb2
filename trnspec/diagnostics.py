"""Severities, codes with their explanations, diagnostics and reports.

A diagnostic has the *code* of a rule, not the rule itself, because rules belong to a higher layer.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from pathlib import Path as FilePath

from attrs import field, frozen

from trnspec.errors import UnknownNameError
from trnspec.short_repr import ShortRepr
from trnspec.yaml import Edit, Path, Place


class Severity(enum.IntEnum):
    """The severity of a finding; ``ERROR`` and ``WARNING`` give the exit status 1, ``INFO`` does not."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The name in lower case, as in output and settings."""
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> Severity:
        """The severity called ``label``; a ``ValueError`` lists the three labels."""
        try:
            return cls[label.upper()]
        except KeyError:
            labels = ", ".join(s.label for s in cls)
            raise ValueError(f"{label!r} is not a severity; write one of {labels}") from None


FORMER_IDS = {"TRN811": "TRN801", "TRN812": "TRN804", "TRN814": "TRN806", "TRN815": "TRN805", "TRN816": "TRN807"}
"""Present ids of codes that were merged; the former ids work in settings, waivers, baselines and explanations."""

FORMER_NAMES = {
    "name-taken": "TRN204",
    "name-not-file-name": "TRN205",
    "family-not-name": "TRN206",
    "version-not-name": "TRN207",
    "idle-waiver": "TRN304",
    "two-values-of-one-source": "TRN309",
    "older-than-the-product": "TRN310",
    "page-of-another-product": "TRN311",
    "not-a-rounding": "TRN312",
    "false-arithmetic": "TRN313",
    "value-not-of-its-scope": "TRN314",
    "impossible-date-of-change": "TRN315",
    "size-in-name": "TRN407",
    "odd-one-of-family": "TRN409",
    "link-of-another-chip": "TRN504",
    "link-of-another-use": "TRN505",
    "chip-not-of-the-servers": "TRN506",
    "rates-of-one-engine": "TRN608",
    "order-of-generations": "TRN610",
    "unit-not-of-its-field": "TRN611",
    "price-not-of-its-server": "TRN801",
    "power-not-of-its-subject": "TRN801",
    "price-types-disagree": "TRN804",
    "power-types-disagree": "TRN804",
    "implausible-price": "TRN805",
    "implausible-power": "TRN805",
    "two-prices": "TRN806",
    "two-powers": "TRN806",
    "stale-price": "TRN807",
    "stale-power": "TRN807",
    "power-below-its-chips": "TRN813",
}
"""Ids of codes by former names."""


def present_id(code: str) -> str:
    """The present id of a code, given its id, a former id or a former name; other texts are returned unchanged."""
    return FORMER_NAMES.get(code) or FORMER_IDS.get(code.upper(), code)


@frozen(repr=False)
class Code(ShortRepr):
    """A code and its explanation, which is help text, manual page and test at once.

    Attributes:
        id: For instance ``TRN402``.  Never reused for another meaning.
        name: For instance ``aggregate-mismatch``: it names the defect, so that it reads well after "allow".
        severity: The severity of its findings unless the settings change it.
    """

    id: str
    name: str
    severity: Severity
    _doc: str | FilePath

    @property
    def doc(self) -> str:
        """One sentence, then the sections Why, Example, Instead and Source.

        A code that was created with the path of a Markdown page reads the page here.
        """
        if not isinstance(self._doc, str):
            return read_page(self._doc)[1]
        from inspect import cleandoc

        return cleandoc(self._doc)

    @property
    def page(self) -> FilePath | None:
        """The Markdown page of the explanation; ``None`` for one that is the docstring of a rule."""
        return None if isinstance(self._doc, str) else self._doc

    @property
    def summary(self) -> str:
        """The first sentence of the explanation."""
        return self.doc.strip().split("\n\n", 1)[0].replace("\n", " ")


def read_page(file: FilePath) -> tuple[dict[str, str], str]:
    """The front matter of a Markdown page, and its text in the form of a docstring.

    ``## Why`` becomes ``Why:``, and the section below it is indented by four spaces.
    """
    _, front, body = file.read_text(encoding="utf-8").split("---\n", 2)
    lines: list[str] = []
    margin, fenced = "", False
    for line in body.strip("\n").split("\n"):
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            lines.append(f"{line[3:]}:")
            margin = "    "
        elif line or not lines[-1].endswith(":") or lines[-1].startswith(" "):  # no blank line below a heading
            lines.append(f"{margin}{line}" if line else "")
    return dict(line.split(": ", 1) for line in front.splitlines()), "\n".join(lines)


@frozen(repr=False)
class Location(ShortRepr):
    """A position in a file, with its text.

    Attributes:
        file: The file as it was named, or ``<stdin>``.
        place: Line and column, counted from 1; ``None`` for the file as a whole.
        path: The path in the document: ``("spec", "peak", "dense", "bf16")``.
        text: The text at the position, or an empty text.
    """

    file: str
    place: Place | None = None
    path: Path = ()
    text: str = ""

    def __str__(self) -> str:
        return self.file if self.place is None else f"{self.file}:{self.place.line}:{self.place.column}"


@frozen(repr=False)
class Diagnostic(ShortRepr):
    """One finding.

    Attributes:
        code: The id of its :class:`Code`.
        severity: The severity according to the settings.
        message: One sentence with both values.
        where: The location.
        hint: How to fix it, or an empty text.
        see: Related locations.
        name: The name of the code, for instance ``aggregate-mismatch``.
        edit: A correction of the file of ``where`` that is safe to apply, if there is one.
    """

    code: str
    severity: Severity
    message: str
    where: Location
    hint: str = ""
    see: tuple[Location, ...] = ()
    name: str = ""
    edit: Edit | None = None

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """The sort key: file, then position, then code."""
        place = self.where.place or Place(0, 0)
        return (self.where.file, place.line, place.column, self.code, self.message)


@frozen(repr=False)
class Report(ShortRepr):
    """All findings of one run, in reading order.

    Attributes:
        diagnostics: The reported findings.
        checked: The number of checked documents by kind.
        files: The number of files.
        waived: The number of findings that waivers suppressed.
        accepted: The number of findings that a baseline suppressed.
        codes: The codes, for reporters that include descriptions of rules.
    """

    diagnostics: tuple[Diagnostic, ...]
    checked: dict[str, int] = field(factory=dict)
    files: int = 0
    waived: int = 0
    codes: tuple[Code, ...] = ()
    accepted: int = 0

    def __attrs_post_init__(self) -> None:
        # Not a converter: attrs imports inspect for it.
        object.__setattr__(self, "diagnostics", tuple(sorted(self.diagnostics, key=lambda d: d.order)))

    def count(self, severity: Severity) -> int:
        """The number of findings with exactly this severity."""
        return sum(d.severity is severity for d in self.diagnostics)

    @property
    def ok(self) -> bool:
        """True if there is no finding above ``INFO``."""
        return all(d.severity <= Severity.INFO for d in self.diagnostics)

    def lines(self) -> set[tuple[str, int]]:
        """The set of (code, line), for tests."""
        return {(d.code, d.where.place.line if d.where.place else 0) for d in self.diagnostics}


def in_plugin(name: str) -> str:
    """The hint that a system is in the catalog of a published plugin that is not installed; empty if it is in none."""
    from importlib.util import find_spec

    for plugin, systems in _SYSTEMS.items():
        if systems.match(name.casefold()) and find_spec(plugin.replace("-", "_")) is None:
            return f"the plugin {plugin} has such systems: pip install {plugin}"
    return ""


_SYSTEMS = {
    "trnspec-inferentia": re.compile(r"inf[12]\b|inferentia"),
    "trnspec-nvidia": re.compile(r"(?:[abh]|gb)[1-3]00\b|p[4-6][den]{0,2}\b|[dh]gx|grand-teton"),
}
"""The chips, servers and UltraServers in the catalogs of published plugins."""


def nearest(word: str, words: Iterable[str], most: int = 3) -> list[str]:
    """The names that ``word`` may be an abbreviation or a misspelling of, best first; may be empty.

    Names that begin with ``word`` come first: those in which it is followed by a separator (``trn2.48xlarge`` for
    ``trn2``) before others, shorter ones before longer ones. Then come the names with a similar spelling, and if there
    are none, names of which ``word`` is a part (``llama-3-8b`` for ``8b``) or whose beginning is similar
    (``trn1.2xlarge`` for ``trn9``). Case is ignored.
    """
    import difflib

    typed = word.casefold()
    by_folded = {w.casefold(): w for w in words}
    completions = [folded for folded in by_folded if len(typed) > 1 and folded.startswith(typed)]
    completions.sort(key=lambda folded: (folded[len(typed) : len(typed) + 1].isalnum(), len(folded)))
    similar = difflib.get_close_matches(typed, list(by_folded), n=most, cutoff=0.6)
    # A letter of another script may look like the one that is meant.
    same = re.compile(re.sub(r"[^\x00-\x7f]", ".", re.escape(typed)))
    is_other = not typed.isascii() and typed not in by_folded
    lookalikes = [folded for folded in by_folded if is_other and same.fullmatch(folded)]
    candidates = [*completions, *lookalikes, *similar]
    if not candidates:
        candidates = sorted((folded for folded in by_folded if typed in re.split(r"[^a-z0-9]+", folded)), key=len)
    if not candidates and len(typed) > 3:  # a shorter beginning is similar to too many
        beginnings = [folded for folded in by_folded if len(folded) > len(typed)]
        candidates = sorted((f for f in beginnings if _differ_by_one(typed, f[: len(typed)])), key=len)
    return [by_folded[folded] for folded in dict.fromkeys(candidates)][:most]


def _differ_by_one(one: str, other: str) -> bool:
    """Whether two texts of one length differ in one character."""
    return sum(a != b for a, b in zip(one, other, strict=True)) == 1


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """``did you mean 'bandwidth'?``, or an empty text if no name is similar."""
    names = nearest(word, words)
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def unknown_name(message: str, word: str, words: Iterable[str]) -> UnknownNameError:
    """The error of a name that does not exist, with the nearest ones."""
    hint = did_you_mean(word, words)
    return UnknownNameError(f"{message}; {hint}" if hint else message)
