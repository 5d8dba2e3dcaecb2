"""An evaluation for people and for programs: numbers in units that read well, and plain data.

Base units go in (seconds, bytes, FLOP/s, joules); ``3.57 s``, ``512 GiB``, ``1.23 M tokens/s`` and ``41.3 %`` come out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.evaluation.result import Answer, Evaluation, RefusalError, Table, Value

Scale = tuple[float, str]
"""How many base units a shown unit is, and its symbol."""

_DIGITS = 3
_MOST_DIGITS = 7


def _decimal(symbol: str, *prefixes: str) -> tuple[Scale, ...]:
    sizes = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
    spaced = " " if symbol[:1].islower() and len(symbol) > 1 else ""
    return tuple((sizes[p], f"{p}{spaced if p else ''}{symbol}") for p in prefixes)


_LARGE = ("", "k", "M", "G", "T", "P", "E")
_SCALES: dict[str, tuple[Scale, ...]] = {
    "s": (*_decimal("s", "n", "u", "m", ""), (3600.0, "h"), (86400.0, "d")),
    "B": ((1.0, "B"), *((1024.0**n, f"{p}iB") for n, p in enumerate("KMGTPE", 1))),
    "B/s": _decimal("B/s", *_LARGE),
    "FLOP": _decimal("FLOP", *_LARGE),
    "FLOP/s": _decimal("FLOP/s", *_LARGE),
    "tokens": _decimal("tokens", "", "k", "M", "G", "T"),
    "tokens/s": _decimal("tokens/s", "", "k", "M", "G", "T"),
    "J": (*_decimal("J", "m", "", "k"), (3.6e6, "kWh"), (3.6e9, "MWh"), (3.6e12, "GWh")),
    "W": _decimal("W", "m", "", "k", "M", "G"),
}
_FROM = {"h": 7200.0, "d": 172800.0}
"""The least for which a unit is used, where that is not one of it."""


def scale(values: Iterable[float], unit: str) -> Scale:
    """The unit to show some numbers in: the largest of which the largest of them is at least one.

    Args:
        values: In base units.
        unit: The base unit; one that has no multiples stays.
    """
    scales = _SCALES.get(unit)
    size = max(map(abs, values), default=0.0)
    if scales is None or size == 0:
        return 1.0, unit
    fitting = [s for s in scales if _FROM.get(s[1], s[0]) <= size * (1 + 1e-9)]
    return fitting[-1] if fitting else scales[0]


def number(value: float, digits: int = _DIGITS) -> str:
    """A number with so many significant digits and commas between thousands; one that is whole keeps all of them."""
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}" if abs(value) < 1e15 else f"{float(value):.{digits - 1}e}"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits - 1}e}"
    places = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    shown = f"{value:,.{places}f}"
    # Zeros at the end are digits, unless nothing was rounded away.
    exact = "." in shown and float(shown.replace(",", "")) == value
    return shown.rstrip("0").rstrip(".") if exact else shown


def measure(value: Value | None, unit: str = "", within: Scale | None = None, digits: int = _DIGITS) -> str:
    """A value with its unit: ``3.57 s``; a word as it is, ``yes`` or ``no``, ``-`` for nothing.

    Args:
        value: In the unit.
        unit: Its unit, empty for none.
        within: The unit to show it in; the one that fits it best when left out.
        digits: How many significant digits to show.
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"{value} {unit}".rstrip()
    if unit == "USD":
        return f"{value:,.2f} USD"
    size, symbol = within or scale([value], unit)
    shown = number(value if size == 1 else value / size, digits)
    return f"{shown} {symbol}".rstrip()


def interval(answer: Answer) -> str:
    """The interval of an answer in the unit that its value is shown in: ``[3.21, 3.98] s``; empty where it has none.

    Of a bound, whose other end nobody knows, ``at least 3.21 s`` or ``at most 3.98 s``.
    """
    value = answer.value
    if isinstance(value, (bool, str)) or (answer.low is None and answer.high is None):
        return ""
    size, symbol = scale([value], answer.unit)
    low, high = (None if end is None else end / size for end in (answer.low, answer.high))
    digits = digits_of(answer)
    if low is None or high is None:
        words, end = ("at most", high) if low is None else ("at least", low)
        return f"{words} {number(end or 0.0, digits)} {symbol}".rstrip()
    return f"[{number(low, digits)}, {number(high, digits)}] {symbol}".rstrip()


def edge(answer: Answer) -> str:
    """``>=`` before a value that is only known to be at least so much, ``<=`` at most; empty before any other."""
    value = answer.value
    if isinstance(value, (bool, str)) or (answer.low is None) == (answer.high is None):
        return ""
    return ">=" if answer.high is None else "<="


def digits_of(answer: Answer) -> int:
    """How many digits show that the ends of an answer's interval differ, and that its value lies between them."""
    value = answer.value
    if isinstance(value, (bool, str)) or not value:
        return _DIGITS
    # Of a bound the distance to its only end.
    low, high = (value if end is None else end for end in (answer.low, answer.high))
    if low == high:
        return _DIGITS
    return min(max(_DIGITS, math.ceil(math.log10(abs(value) / abs(high - low))) + 1), _MOST_DIGITS)


def columns(table: Table) -> list[Scale | None]:
    """The unit of each column of a table: one for all its numbers, unless they lie too far apart."""
    units = table.units or ("",) * len(table.columns)
    return [common([row[i] for row in table.rows], units[i]) for i in range(len(units))]


def common(values: Iterable[Value | None], unit: str) -> Scale | None:
    """The unit in which some values can be compared, or ``None`` where they lie too far apart for one unit."""
    sizes = [abs(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool) and v]
    if not sizes:
        return 1.0, unit
    return scale(sizes, unit) if max(sizes) <= 1e4 * min(sizes) else None


def refusal(error: RefusalError) -> dict[str, str]:
    """A refusal as plain data."""
    return {"reason": error.reason, "message": str(error), "place": error.place, "hint": error.hint}


def sentence(evaluator: str, error: RefusalError) -> str:
    """A refusal for people: what, why, where, and what to do."""
    lines = [f"trnspec: {evaluator}: {error.reason}: {error}"]
    lines += [f"  at: {error.place}"] if error.place else []
    lines += [f"  hint: {error.hint}"] if error.hint else []
    return "\n".join(lines)


def cells(found: Evaluation) -> dict[str, dict[str, Any]]:
    """Each answer as cells under headings: its value, with its unit, and the ends of its interval where it has one.

    A name that the question has already is told apart as ``answer NAME``.
    """
    made: dict[str, dict[str, Any]] = {}
    for answer in found.answers:
        name = f"answer {answer.name}" if answer.name in found.inputs else answer.name
        unit = f" [{answer.unit}]" if answer.unit else ""
        made[name] = {f"{name}{unit}": answer.value}
        if answer.low is not None or answer.high is not None:
            made[name] |= {f"{name} low{unit}": answer.low, f"{name} high{unit}": answer.high}
    return made


def record(found: Evaluation) -> dict[str, Any]:
    """An evaluation as one flat record: the question, then the answers with their units and intervals."""
    made: dict[str, Any] = dict(found.inputs)
    for each in cells(found).values():
        made |= each
    return made
