"""A small catalog without findings, slips in its texts, and every detail of what is found in them."""

from __future__ import annotations

import functools
import random
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from catalogs import KNOWN

from trnspec.checks.runner import check
from trnspec.loading.files import shipped
from trnspec.loading.pipeline import LoadResult, link, load_document
from trnspec.model.reflection import dotted
from trnspec.testing.helpers import split
from trnspec.yaml import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trnspec.checks.runner import Checked
    from trnspec.diagnostics import Diagnostic, Location
    from trnspec.graph.graph import Graph

FILE = Path(__file__).parents[1] / "data" / "checked_catalog.txt"

_QUANTITY = re.compile(r"(?<=[: ])(?P<number>[0-9][0-9,]*(?:\.[0-9]+)?) (?P<unit>[A-Za-z]+(?:/[a-z]+)?)(?=[,}\]\n])")
_COUNT = re.compile(r"(?<=[:\[,] )[1-9][0-9]*(?=[,}\]\n])|(?<=\[)[1-9][0-9]*(?=[,\]])")
_DATE = re.compile(r"(?<= )20[0-9]{2}-[0-9]{2}(?:-[0-9]{2})?(?=[.,}\n])")
_VERDICT = re.compile(r"(?<=verdict: )[a-z-]+")
_WORD = re.compile(r"(?<=[: \[])[a-z][\w.-]+(?=[,}\]\n])")
_CELL = re.compile(r"(?<=,)[0-9.]+(?=[,\n ])")
_OTHER_UNITS = {
    "GB/s": ("GiB/s", "Gbps"), "GiB": ("GB", "MiB"), "MiB": ("MB", "KiB"), "TFLOPS": ("PFLOPS", "GFLOPS"), "TiB": ("TB", "GiB"),
    "TB/s": ("TiB/s", "GB/s"), "Gbps": ("GB/s", "Mbps"), "PFLOPS": ("TFLOPS", "PFLOP/s"), "KiB": ("kB", "MiB"), "W": ("kW", "mW"),
    "GB": ("GiB", "TB"), "USD/h": ("USD/h",), "kW": ("W", "MW"), "GHz": ("MHz", "THz"), "Tbps": ("TB/s", "Gbps"),
}  # fmt: skip
_VERDICTS = ("agrees", "rounded", "superseded", "rejected", "other-scope", "unresolved")


@frozen
class TextSlip:
    """What is written instead at one place of a file."""

    file: str
    line: int
    before: str
    text: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.before} -> {self.after}"


@functools.cache
def files() -> dict[str, str]:
    """The texts of the catalog by file."""
    return dict(split(FILE.read_text("utf-8"), KNOWN))


@functools.cache
def _readings() -> dict[str, LoadResult]:
    return {name: load_document(read_text(text, name), KNOWN) for name, text in files().items()}


def checked(changed: dict[str, str] | None = None, *, only: bool = False) -> Checked:
    """The catalog with other texts; models and the other kinds, which have nothing in common, are not checked together.

    Args:
        changed: The other texts by file.
        only: Whether these files alone are to be checked, with the others as context.
    """
    changed = changed or {}
    groups = {name.startswith("models/") for name in changed} or {True, False}
    kept = [
        evolve(reading, target=not only)
        for name, reading in _readings().items()
        if name not in changed and (name.startswith("sources/") or name.startswith("models/") in groups)
    ]
    return check([*kept, *(load_document(read_text(text, name), KNOWN) for name, text in changed.items())], KNOWN)


def linked(slip: TextSlip | None = None) -> Graph:
    """The graph of the catalog, with one slip."""
    changed = [] if slip is None else [load_document(read_text(slip.text, slip.file), KNOWN)]
    kept = [reading for name, reading in _readings().items() if slip is None or name != slip.file]
    return link([*kept, *changed])[0]


def slips(texts: Mapping[str, str], name: str, each: int) -> Iterator[TextSlip]:
    """Slips at every figure, count, date, verdict and reference of a file: ``each`` at a figure or date, one elsewhere.

    Other figures of the same unit and other names are those of all the texts.
    """
    text = texts[name]
    kinds = ((_CELL, _cells),) if name.endswith(".csv") else _KINDS
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        unnamed = re.sub(r"name: [\w.-]+", lambda named: "-" * len(named[0]), line)
        for pattern, others in kinds:
            for match in pattern.finditer(unnamed):
                draw = random.Random(f"{name} {number} {match.start()}")
                found = [o for o in dict.fromkeys(others(match, texts)) if o != match[0]]
                for other in draw.sample(found, min(len(found), 1 if pattern in (_COUNT, _VERDICT, _WORD) else each)):
                    yield TextSlip(name, number, match[0], _replaced(text, number, match, other), other)


def _replaced(text: str, number: int, match: re.Match[str], other: str) -> str:
    lines = text.splitlines(keepends=True)
    line = lines[number - 1]
    lines[number - 1] = line[: match.start()] + other + line[match.end() :]
    return "".join(lines)


def _quantities(match: re.Match[str], texts: Mapping[str, str]) -> Iterator[str]:
    """Powers of two and of ten, one more or less in the last digit, swapped digits, another unit, another row."""
    number, unit = match["number"].replace(",", ""), match["unit"]
    places = len(number.partition(".")[2])
    value = float(number)
    last = 10.0**-places
    for other in (value * 2, value / 2, value * 4, value * 10, value / 10, value * 1.024, value * 1.25):
        yield f"{other:.{max(places, 3)}f}".rstrip("0").rstrip(".") + f" {unit}"
    for other in (value + last, value - last, value + 5 * last, value + 0.4 * last, value - 0.6 * last):
        yield f"{other:.{places + 1}f}".removesuffix(".0") + f" {unit}"
    if len(number) > 1 and "." not in number[:2]:
        yield f"{number[1]}{number[0]}{number[2:]} {unit}"
    yield from (f"{qualifier} {number} {unit}" for qualifier in ("up to", ">="))
    yield f"~{number[0]}{'0' * len(number.partition('.')[0][1:])} {unit}"
    yield from (f"{number} {other}" for other in _OTHER_UNITS.get(unit, ()))
    yield from (m[0] for text in texts.values() for m in _QUANTITY.finditer(text) if m["unit"] == unit)


def _cells(match: re.Match[str], _: Mapping[str, str]) -> Iterator[str]:
    """About 2 % more and less, other powers of ten, and what is not a number."""
    value = float(match[0])
    yield from (f"{value * factor:.6g}" for factor in (1.015, 1.025, 0.985, 0.975, 1.3, 10, 0.1, 1000, 1e18))
    yield from ("0", "-1", "nan", "inf", "x", "", "n/a", "yes", "5 us")


def _counts(match: re.Match[str], _: Mapping[str, str]) -> Iterator[str]:
    count = int(match[0])
    yield from (
        str(other) for other in (count + 1, count - 1, 2 * count, count // 2, 4 * count, 3 * count) if other > 0
    )


def _dates(match: re.Match[str], _: Mapping[str, str]) -> Iterator[str]:
    year, rest = int(match[0][:4]), match[0][4:]
    yield from (
        f"{year + 1}{rest}",
        f"{year - 1}{rest}",
        f"{year}-12",
        f"{year}-01",
        f"{year - 40}{rest}",
        f"{year + 90}{rest}",
        f"{year}-13",
    )


def _verdicts(_: re.Match[str], __: Mapping[str, str]) -> Iterator[str]:
    yield from _VERDICTS


def _words(match: re.Match[str], texts: Mapping[str, str]) -> Iterator[str]:
    """The names of other documents of the folder, and other types."""
    folder = next((name.partition("/")[0] for name in texts if Path(name).stem == match[0]), "")
    yield from (Path(name).stem for name in texts if name.startswith(f"{folder}/"))
    if not folder:
        yield from {
            "tdp": ["maximum", "typical"],
            "typical": ["measured"],
            "spot": ["on-demand"],
            "on-demand": ["spot"],
        }.get(match[0], [])


_KINDS = ((_QUANTITY, _quantities), (_COUNT, _counts), (_DATE, _dates), (_VERDICT, _verdicts), (_WORD, _words))


def described(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """Every detail of findings, a line for each; the date of today is written TODAY."""
    today = date.today().isoformat()  # as the rules have it
    for d in diagnostics:
        parts = [f"{d.code} {d.severity.label} {_placed(d.where)} {dotted(d.where.path)}: {d.message}"]
        parts += [f"hint: {d.hint}"] if d.hint else []
        parts += [f"see: {'; '.join(map(_placed, d.see))}"] if d.see else []
        parts += [f"edit: {d.edit}"] if d.edit is not None else []
        yield " | ".join(parts).replace(today, "TODAY")


def _placed(where: Location) -> str:
    place = "" if where.place is None else f":{where.place.line}:{where.place.column}"
    file = where.file.removeprefix(f"{shipped()}/")
    return f"{file}{place} [{where.text}]"
