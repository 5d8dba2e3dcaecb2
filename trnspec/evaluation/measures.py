"""Numbers for people: scaled units, as many digits as the interval supports.

Base units go in (seconds, bytes, FLOP/s, joules); ``3.57 s``, ``512 GiB``, ``1.23 M tokens/s`` and ``41.3 %`` come out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from attrs import frozen

from trnspec.evaluation.result import Answer, Table, Value

Scale = tuple[float, str]
"""Base units of a shown unit, and its symbol."""

_DIGITS = 3
"""Significant digits of a value without an interval."""
_FEWEST_DIGITS = 2
_MOST_DIGITS = 7
_ONE_UNIT = 1e6
"""Values further apart than this have no unit in common."""
_CENTS = 2
_MUCH_SMALLER = 0.1
"""The fraction of a unit below which the median of some numbers is read better in a smaller one."""


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
    "USD": ((1.0, "USD"), (1e6, "M USD")),
}
_FROM = {"h": 7200.0, "d": 172800.0}
"""The least for which a unit is used, where that is not one of it."""


def multiples(unit: str) -> tuple[Scale, ...]:
    """The units in which values of a base unit are shown, the base unit among them."""
    return _SCALES.get(unit, ((1.0, unit),))


def scale(values: Iterable[float], unit: str) -> Scale:
    """The unit to show some numbers in: that of the largest, or of the median where it is much smaller.

    Args:
        values: In base units; zeros do not count.
        unit: The base unit; one that has no multiples is returned as it is.
    """
    scales = _SCALES.get(unit)
    sizes = sorted(abs(v) for v in values if v)
    if scales is None or not sizes:
        return 1.0, unit
    for size in (sizes[-1], sizes[len(sizes) // 2]):
        fitting = [s for s in scales if _FROM.get(s[1], s[0]) <= size * (1 + 1e-9)]
        chosen = fitting[-1] if fitting else scales[0]
        if sizes[len(sizes) // 2] >= _MUCH_SMALLER * chosen[0]:
            break
    return chosen


def common(values: Iterable[Value | None], unit: str) -> Scale | None:
    """The unit for all numbers of a row or column; ``None`` where they lie too far apart for one."""
    sizes = [abs(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool) and v]
    if not sizes:
        return 1.0, unit
    return scale(sizes, unit) if max(sizes) <= _ONE_UNIT * min(sizes) else None


def columns(table: Table) -> list[Scale | None]:
    """The unit of each column of a table."""
    units = table.units or ("",) * len(table.columns)
    return [common([row[i] for row in table.rows], units[i]) for i in range(len(units))]


def number(value: float, digits: int = _DIGITS) -> str:
    """A number with some significant digits and commas between thousands; a whole number keeps all of its digits."""
    if value == int(value) and abs(value) < _PLAIN[1]:
        return f"{int(value):,}"
    return _rounded(value, _places(value, digits), value)


_PLAIN = (1e-4, 1e15)
"""Numbers below and above are printed with an exponent, and so are fractions above 1e9."""


def _places(value: float, digits: int) -> int:
    """The decimal places that show a number with some significant digits; negative left of the decimal point."""
    return digits - 1 - math.floor(math.log10(abs(value))) if value else digits - 1


def _rounded(value: float, places: int, like: float) -> str:
    """A number rounded to decimal places; with an exponent where ``like`` is very small or very large.

    Rounding to the same places keeps the order of numbers, so that a value and the ends of its interval do too.
    """
    if _PLAIN[0] <= abs(like) < 1e9 or not like:
        shown = f"{value:,.{max(places, 0)}f}"
        # Zeros at the end are digits, unless nothing was rounded away.
        exact = "." in shown and float(shown.replace(",", "")) == value
        shown = shown.rstrip("0").rstrip(".") if exact else shown
        return "0" if shown.strip("-0.,") == "" else shown
    whole = Decimal(repr(round(value, places)))
    mantissa, _, exponent = f"{whole.normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def _money(value: float, places: int) -> str:
    """A price with at least two decimal places."""
    shown = f"{value:,.{max(places, _CENTS)}f}"
    whole, _, decimals = shown.partition(".")
    return f"{whole}.{decimals[:_CENTS]}{decimals[_CENTS:].rstrip('0')}"


def measure(value: Value | None, unit: str = "", within: Scale | None = None, digits: int = _DIGITS) -> str:
    """A value with its unit: ``3.57 s``; a text as it is, ``yes`` or ``no``, ``-`` for nothing.

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
    size, symbol = within or scale([value], unit)
    if symbol == "USD":
        shown = _money(value, _places(value, digits))
    else:
        shown = number(value if size == 1 else value / size, digits)
    return f"{shown} {symbol}".rstrip()


@frozen
class Printed:
    """An answer as text.

    Attributes:
        value: With its unit; a bound has ``>=`` or ``<=`` before it: ``>= 24.2 s``.
        interval: In the same unit, with as many decimal places: ``[3.21, 3.98] s``, ``at least 3.2 s``; may be empty.
    """

    value: str
    interval: str = ""


def printed(answer: Answer) -> Printed:
    """An answer with as many digits as its interval supports; the value never lies outside the interval.

    Predictions have two or three digits: a bound is rounded away from the value, so that it remains one, and any other
    prediction has ``~`` before it.
    """
    value = answer.value
    if isinstance(value, (bool, str)) or (answer.low is None and answer.high is None):
        if answer.kind and answer.unit == "USD" and not isinstance(value, str):
            size, symbol = scale([value], "USD")
            return Printed(f"{mark(answer)}{predicted(value / size)} {symbol}")
        return Printed(mark(answer) + measure(value, answer.unit))
    size, symbol = scale([value], answer.unit)
    if answer.kind == "ideal" and edge(answer):
        end = answer.high if answer.low is None else answer.low
        assert end is not None
        return Printed(f"{edge(answer)} {outward(end / size, lower=answer.high is None)} {symbol}".rstrip())
    # The ends are computed another way than the value and may differ from it by a rounding error.
    low = None if answer.low is None else min(answer.low, value) / size
    high = None if answer.high is None else max(answer.high, value) / size
    shown = value / size
    places = _supported(low, shown, high, _DIGITS if answer.kind else _MOST_DIGITS)
    ends = [x for x in (low, high) if x is not None]
    if symbol == "USD" and not answer.kind:
        texts = [_money(x, places) for x in (shown, *ends)]
    else:
        # Digits that a prediction does not have are zeros.
        numbers = [round(x, places) if answer.kind and places < 0 else x for x in (shown, *ends)]
        texts = [_rounded(x, places, shown or max(map(abs, ends))) for x in numbers]
    value, others = texts[0], _equally_long(texts[1:])
    if low is not None and high is not None:
        return Printed(f"{mark(answer)}{value} {symbol}".rstrip(), f"[{', '.join(others)}] {symbol}".rstrip())
    words, sign = ("at most", "<=") if low is None else ("at least", ">=")
    if others[0] == value:
        return Printed(f"{sign} {value} {symbol}".rstrip())
    return Printed(f"{mark(answer)}{value} {symbol}".rstrip(), f"{words} {others[0]} {symbol}".rstrip())


def _equally_long(texts: Sequence[str]) -> list[str]:
    """Numbers with as many decimal places as the one with the most; those with an exponent as they are."""
    if any("e" in text for text in texts):
        return [*texts]
    parts = [text.partition(".") for text in texts]
    most = max(len(decimals) for _, _, decimals in parts)
    return [f"{whole}.{decimals.ljust(most, '0')}" if most else whole for whole, _, decimals in parts]


def predicted(value: float) -> str:
    """A prediction in a table, with three digits, so that rows can be compared; others are zeros."""
    places = _places(value, _DIGITS)
    return _rounded(round(value, places) if places < 0 else value, places, value)


def outward(end: float, *, lower: bool) -> str:
    """A bound with three digits, rounded down if it is a lower one, else up, so that it remains a bound."""
    exact = Decimal(end)
    rounding = ROUND_FLOOR if lower else ROUND_CEILING
    places = _places(float(exact), _DIGITS)
    # A sum computed in another order may be past a round number by its last bit.
    near = exact.quantize(Decimal(1).scaleb(-places - _GUARD), ROUND_HALF_EVEN)
    rounded = near.quantize(Decimal(1).scaleb(-places), rounding)
    # Zeros at the end are digits, unless nothing was rounded away.
    if rounded != near and _PLAIN[0] <= abs(rounded) < _PLAIN[1]:
        return f"{rounded:,.{max(places, 0)}f}"
    return _rounded(float(rounded), places, float(rounded))


_GUARD = 9
"""Decimal places, beyond those printed, that count when a bound is rounded."""


def mark(answer: Answer) -> str:
    """``~`` before an estimate; nothing before a bound or an answer that is not a prediction."""
    return "~" if answer.kind and answer.kind != "ideal" else ""


def _supported(low: float | None, value: float, high: float | None, most: int) -> int:
    """The decimal places that an interval supports: one digit more than those on which its ends agree."""
    if low is None or high is None or low == high:
        return _places(value or low or high or 1.0, _DIGITS)
    width = high - low
    if not value:
        return _places(width, _FEWEST_DIGITS)
    digits = math.ceil(math.log10(abs(value) / width)) + 1 if width else _DIGITS
    return _places(value, min(max(digits, _FEWEST_DIGITS), most))


def edge(answer: Answer) -> str:
    """``>=`` for a value that is a lower bound, ``<=`` for an upper bound; empty for any other, as an estimate with one end."""
    if isinstance(answer.value, (bool, str)) or mark(answer) or (answer.low is None) == (answer.high is None):
        return ""
    return ">=" if answer.high is None else "<="
