"""Ranges of values: ``1..64:x2`` multiplies, ``8..64:+8`` adds, ``1.6..6.4Tbps:x2`` has a unit.

The values are written out as texts, exactly, and read as if each of them had been given.
"""

from __future__ import annotations

import re
from fractions import Fraction

from trnspec.errors import UsageError

MOST = 10_000
"""The maximum number of values of a range."""

_NUMBER = r"\d{1,30}(?:\.\d{1,30})?(?:[eE]\+?\d{1,2})?"
_UNIT = r"\s*[A-Za-z%][A-Za-z/%]*"
_RANGE = re.compile(
    rf"(?P<first>{_NUMBER})(?P<one>{_UNIT})?\s*\.\.\s*(?P<last>{_NUMBER})(?P<unit>{_UNIT})?\s*"
    rf"(?::\s*(?P<by>[x+])\s*(?P<step>{_NUMBER}))?",
    re.ASCII,
)
_DIGITS = 12
"""Significant digits of a value that is not a whole number; products of decimals may have many more."""


def expanded(text: str, name: str, *, numeric: bool = True) -> list[str]:
    """The values of a range as texts; a text that is not a range, by itself.

    Args:
        text: ``1..64:x2``, ``8..64:+8``, ``1..8`` in steps of 1, ``1.6..6.4Tbps:x2``; or one value. The last value
            belongs to the range if a step meets it.
        name: The option or input, for messages.
        numeric: Whether values are numbers, so that ``..`` can only be that of a range. Where they are texts, a range
            has a step, so that no path is mistaken for one.

    Raises:
        UsageError: The range is malformed or empty, its steps lead nowhere, or it has over :data:`MOST` values.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None or not (numeric or match["by"]):
        if numeric and ".." in text:
            example = "such as 1..64:x2 or 8..64:+8"
            raise UsageError(
                f"{name}: {text!r} is not a range; write FIRST..LAST:xFACTOR or FIRST..LAST:+STEP, {example}"
            )
        return [text]
    first, last = Fraction(match["first"]), Fraction(match["last"])
    unit = (match["unit"] or "").strip()
    fault = _fault(match, first, last, unit)
    if fault:
        raise UsageError(f"{name}: the range {text!r} {fault}")
    step = Fraction(match["step"] or 1)
    values = [first]
    while (after := values[-1] * step if match["by"] == "x" else values[-1] + step) <= last:
        values.append(after)
        if len(values) > MOST:
            raise UsageError(f"{name}: the range {text!r} has more than {MOST:,} values")
    return [f"{_written(value)}{' ' if unit else ''}{unit}" for value in values]


def _fault(match: re.Match[str], first: Fraction, last: Fraction, unit: str) -> str:
    """What is wrong with a range; empty if nothing is."""
    step = Fraction(match["step"] or 1)
    if match["one"] and match["one"].strip() != unit:
        return f"has two units, {match['one'].strip()} and {unit or 'none'}; write the unit once, after the last value"
    if first > last:
        return "ends below its first value; write the smaller value first"
    if match["by"] is None and (unit or first.denominator != 1 or last.denominator != 1):
        return "has no step; write :xFACTOR or :+STEP after it"
    if match["by"] == "x" and (step <= 1 or not first):
        return "does not grow; a factor above 1 and a first value above 0 are expected"
    if not step:
        return "does not grow; a step above 0 is expected"
    return ""


def _written(value: Fraction) -> str:
    """A value as decimal text."""
    if value.denominator == 1:
        return str(value.numerator)
    whole = len(str(value.numerator // value.denominator))
    places = max(1, _DIGITS - whole) if value >= 1 else _DIGITS + 8
    scaled = round(value * 10**places)
    digits = str(scaled).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
