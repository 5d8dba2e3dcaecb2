"""The grammar of a printed figure, and what is wrong with a text that does not follow it."""

from __future__ import annotations

import re

from trnspec.errors import QuantityError
from trnspec.quantities.units import Dimension, UnitTable

MAX_TEXT = 64
"""Longest text that is looked at."""

QUALIFIER = r"~ ?|<=? ?|>=? ?|up[ -]to |over "
INTEGER = r"[1-9][0-9]{0,2}(?:,[0-9]{3}){1,5}|[1-9][0-9]{0,17}|0"
FRACTION = r"\.[0-9]{1,15}"
EXPONENT = r"[eE][+-]?(?:30|[0-2]?[0-9])"

# Never fails after a number, and never tries a second way: what follows the number is looked up, not matched.
PARTS = re.compile(rf"({QUALIFIER})?({INTEGER})({FRACTION})?({EXPONENT})?( ?)(.*)\Z", re.DOTALL)
"""Groups: qualifier, integer part, decimals, exponent, the space before the unit, all that follows."""


def quoted(text: str) -> str:
    """A text in quotes, with its unprintable characters told by their codes."""
    return f'"{text}"' if text.isprintable() else ascii(text)


def form(dimension: Dimension | None) -> str:
    """The hint that shows a whole quantity of the dimension."""
    example = "820 GB/s" if dimension is None else f"820 {dimension.usual}"
    if dimension is Dimension.RATIO:
        example = "6.7x"
    return f'write one number, one space and a unit, such as "{example}"'


def not_text(value: object, dimension: Dimension | None) -> QuantityError:
    """Why a value that is not a text is not a quantity."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        usual = (dimension or Dimension.BANDWIDTH).usual
        shown = value if 0 <= value < 10**18 else 820
        return QuantityError("no-unit", "a number alone has no unit", f'write a text, such as "{shown} {usual}"')
    return QuantityError("malformed", f"a quantity is a text, not {type(value).__name__}", form(dimension))


_WORDS_BEFORE = {
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "about ": "~",
    "approx. ": "~",
    "around ": "~",
    "at least ": ">= ",
    "at most ": "<= ",
    "more than ": "> ",
    "less than ": "< ",
    "up to": "up to ",
    "over ": "over ",
}


def no_number(text: str, dimension: Dimension | None) -> QuantityError:
    """Why a text does not start like a quantity."""
    stripped = text.strip()
    hint = form(dimension)
    message = f"{quoted(text)} does not start with a number"
    if not stripped:
        message = "a quantity is missing: the text is empty"
    elif stripped != text and PARTS.match(stripped):
        message, hint = f"{quoted(text)} starts with a space", f'write "{stripped}"'
    elif re.match(r"[-−][0-9.]", stripped):
        message = f"{quoted(text)} is negative, and no figure here can be"
    elif re.match(r"\.[0-9]", stripped):
        message, hint = f"{quoted(text)} starts with a point", f'write "0{stripped}"'
    else:
        for word, ours in _WORDS_BEFORE.items():
            rest = stripped[len(word) :].strip()
            if stripped.lower().startswith(word) and PARTS.match(ours + rest):
                hint = f'write "{ours}{rest}"'
                break
    return QuantityError("malformed", message, hint)


def no_unit(text: str, match: re.Match[str], dimension: Dimension | None, table: UnitTable) -> QuantityError:
    """Why what stands after the number is not one space and a unit."""
    spelling = match[6]
    number = text[: match.end(4) if match[4] else match.end(3) if match[3] else match.end(2)]
    bare = spelling.strip()
    if not bare:
        return QuantityError("no-unit", f"{quoted(text)} has no unit", table.choices(dimension))
    unit = table.get(bare)
    if unit is not None:
        fixed = f"{number}{unit.separator}{bare}"
        return QuantityError(
            "malformed", f"{quoted(text)}: between number and unit stands exactly one space", f'write "{fixed}"'
        )
    if re.match(r"[-–/]\s*[0-9]", bare):
        return QuantityError("malformed", f"{quoted(text)}: more than one number", form(dimension))
    if not match[5] and re.match(r"[0-9.,+_'eE*^-]", spelling):
        return QuantityError("malformed", f"{quoted(text)}: the number is not well formed", _number_hint(text))
    return QuantityError("unknown-unit", f"{quoted(text)}: unknown unit {quoted(bare)}", table.suggest(bare, dimension))


def _number_hint(text: str) -> str:
    """What a well formed number is, told from the mistake at hand."""
    if "," in text or "_" in text or "'" in text:
        return "commas stand before every third digit, as in 1,299 or 13,120, or are left out; a point starts decimals"
    if re.search(r"[eE]", text):
        return "an exponent is a whole number from -30 to 30, as in 1.5e3"
    return "a number has no leading zeros, at most 18 digits before the point and 15 after it"
