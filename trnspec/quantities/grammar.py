"""The grammar of a printed quantity, and the errors for texts that do not follow it."""

from __future__ import annotations

import re
import unicodedata

from trnspec.errors import QuantityError
from trnspec.quantities.units import Dimension, UnitTable
from trnspec.yaml.text import foreign

MAX_TEXT = 64
"""Longest accepted text, in characters."""

QUALIFIER = r"~ ?|<=? ?|>=? ?|up[ -]to |over "
INTEGER = r"[1-9][0-9]{0,2}(?:,[0-9]{3}){1,5}|[1-9][0-9]{0,17}|0"
FRACTION = r"\.[0-9]{1,15}"
EXPONENT = r"[eE][+-]?(?:30|[0-2]?[0-9])"

# Never fails after a number, and never backtracks: the unit is looked up in a table, not matched.
PARTS = re.compile(rf"({QUALIFIER})?({INTEGER})({FRACTION})?({EXPONENT})?( ?)(.*)\Z", re.DOTALL)
"""Groups: qualifier, integer part, decimals, exponent, the space before the unit, the rest."""


def quoted(text: str) -> str:
    """A text in quotes, with its unprintable characters escaped."""
    return f'"{text}"' if text.isprintable() else ascii(text)


def form(dimension: Dimension | None) -> str:
    """The hint with an example of a quantity of the dimension."""
    example = "820 GB/s" if dimension is None else f"820 {dimension.example}"
    if dimension is Dimension.RATIO:
        example = "6.7x"
    return f'write one number, one space and a unit, such as "{example}"'


_GROUPS = re.compile(r"[1-9][0-9]{0,2}(?:[ '_\u00a0\u2009\u202f\u2019][0-9]{3})+(?![0-9])")
"""Groups of three digits that are not separated by commas."""

_PLAUSIBLE = 10**6
"""More than any figure in a commonly printed unit: a larger number is in base units, or in none."""


def not_text(value: object, dimension: Dimension | None) -> QuantityError:
    """The error for a value that is not a text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        example = (dimension or Dimension.BANDWIDTH).example
        shown = f"{value:.15g}" if 0 <= value < _PLAUSIBLE else "820"
        return QuantityError("no-unit", "a number alone has no unit", f'write a text, such as "{shown} {example}"')
    return QuantityError("malformed", f"a quantity is a text, not {type(value).__name__}", form(dimension))


_QUALIFIER_WORDS = {
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
    """The error for a text that does not start with a qualifier and a number."""
    stripped = text.strip()
    hint = form(dimension)
    message = f"{quoted(text)} does not start with a number"
    if not stripped:
        message = "a quantity is missing: the text is empty"
    elif PARTS.match(stripped):  # the text itself does not match
        message, hint = f"{quoted(text)} starts with a space", f'write "{stripped}"'
    elif re.match(r"[-−][0-9.]", stripped):
        message = f"{quoted(text)} is negative; quantities are not"
    elif stripped.startswith("+") and PARTS.match(stripped[1:].lstrip()):
        message, hint = f"{quoted(text)} has a sign; quantities have none", f'write "{stripped[1:].lstrip()}"'
    elif PARTS.match(plain := "".join(map(_plain, unicodedata.normalize("NFKC", stripped)))):
        message, hint = f"{quoted(text)} has digits other than 0 to 9", f'write "{plain}"'
    elif re.match(r"\.[0-9]", stripped):
        message, hint = f"{quoted(text)} starts with a point", f'write "0{stripped}"'
    else:
        for word, qualifier in _QUALIFIER_WORDS.items():
            rest = stripped[len(word) :].strip()
            if stripped.lower().startswith(word) and PARTS.match(qualifier + rest):
                hint = f'write "{qualifier}{rest}"'
                break
    return QuantityError("malformed", message, hint)


def _plain(character: str) -> str:
    """A digit of any script as one of 0 to 9; other characters as they are."""
    return str(unicodedata.decimal(character, character))


def no_unit(text: str, match: re.Match[str], dimension: Dimension | None, table: UnitTable) -> QuantityError:
    """The error for a number that is not followed by one space and a unit."""
    spelling = match[6]
    number = text[: match.end(4) if match[4] else match.end(3) if match[3] else match.end(2)]
    bare = spelling.strip()
    if not bare:
        return QuantityError("no-unit", f"{quoted(text)} has no unit", table.choices(dimension))
    unit = table.get(bare)
    if unit is not None:
        fixed = f"{number}{unit.separator}{bare}"
        wrong = (
            "exactly one space is expected between number and unit" if text == text.rstrip() else "it ends with a space"
        )
        return QuantityError("malformed", f"{quoted(text)}: {wrong}", f'write "{fixed}"')
    if grouped := _GROUPS.match(text, match.start(2)):
        commas = re.sub(r"[^0-9]", ",", grouped[0])
        hint = (
            f'write "{text[: match.start(2)]}{commas}{text[grouped.end() :]}": commas separate groups of three digits'
        )
        return QuantityError("malformed", f"{quoted(text)}: malformed number", hint)
    # Directly after 0 an x is the beginning of a hexadecimal number.
    joined = bare[0] in "-–/±×+*" or bare.startswith("..") or (bare[0] == "x" and match[2] != "0")
    if re.match(r"(?:[-–/+±×x*]|\.\.+|to\b)?\s*[0-9]", bare) and (match[5] or joined):
        return QuantityError("malformed", f"{quoted(text)}: more than one number", form(dimension))
    if not match[5] and re.match(r"[0-9.,+_'eE*^-]|[xob][0-9a-fA-F]", spelling):
        return QuantityError("malformed", f"{quoted(text)}: malformed number", _number_hint(text))
    message = f"{quoted(text)}: unknown unit {quoted(bare)}"
    return QuantityError("unknown-unit", message, table.suggest(bare, dimension) + foreign(bare), bare)


def _number_hint(text: str) -> str:
    """The rule that a malformed number violates."""
    if bound := re.fullmatch(r"([0-9.,]+)\+ *(\S+)", text):
        return f'write ">={bound[1]} {bound[2]}"'
    if "," in text or "_" in text or "'" in text:
        return "commas separate groups of three digits, as in 1,299 or 13,120, or are omitted; decimals follow a point"
    if re.match(r"[^0-9]*0[xob]", text):
        return "write the number in decimal digits"
    if re.search(r"[0-9]\.(?:[^0-9]|$)|\.[0-9]+\.", text):
        return "one point is followed by the decimals; commas separate groups of three digits, as in 1,299"
    if re.search(r"[0-9][eE]", text):
        return "an exponent is a whole number from -30 to 30, as in 1.5e3"
    return "a number has no leading zeros, at most 18 digits before the point and 15 after it"
