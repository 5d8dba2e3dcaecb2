"""Plain scalars by the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema), within JSON's range."""

from __future__ import annotations

import re

from attrs import frozen

from trnspec.yaml.document import shorten

WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_DECIMAL = re.compile(r"([-+]?)([0-9]+)")
_BASED = re.compile(r"0o([0-7]+)|0x([0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\.([0-9]+)|([0-9]+)(\.([0-9]*))?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
NUMBER_STARTS = frozenset("0123456789+-.")
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_EXACT = 2**53
_DIGITS = 22  # of 2**64 - 1 in octal


@frozen
class OutOfRange:
    """A plain scalar that is a number outside the range of other programs; ``why`` ends a sentence."""

    why: str
    hint: str = "write a number within range; as text, put it in quotes"


def resolve(text: str) -> bool | int | float | str | OutOfRange | None:  # noqa: PLR0911  One per form of the schema.
    """The value of the plain scalar ``text``.

    Integers range from -2**63 to 2**64 - 1, floats are double precision. The cost is linear in the length: digits are
    counted before they are converted.
    """
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMBER_STARTS:
        return text
    if match := _DECIMAL.fullmatch(text):
        return _integer(match[1], match[2].lstrip("0"), 10)
    if match := _BASED.fullmatch(text):
        if match[1]:
            return _integer("", match[1].lstrip("0"), 8)
        return _integer("", match[2].lstrip("0"), 16)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            return OutOfRange("is beyond 1.8e308, the largest number of double precision")
        mantissa, *_ = text.lower().split("e")
        if value == 0 and mantissa.strip("+-.0"):
            return OutOfRange("is too small for double precision and would become 0")
        return value
    if _NO_NUMBER.fullmatch(text):
        return OutOfRange("is not a finite number", "leave the key out, or write null, when there is no figure")
    return text


def _integer(sign: str, digits: str, base: int) -> int | OutOfRange:
    if len(digits) <= _DIGITS:
        value = int(sign + (digits or "0"), base)
        if _LOWEST <= value <= _HIGHEST:
            return value
    return OutOfRange("does not fit in 64 bits")


def doubt(text: str, value: float) -> tuple[str, str] | None:
    """The reason for which the plain number ``text`` is ambiguous, and a replacement; ``None`` if it is not ambiguous."""
    return _doubt_integer(text, value) if isinstance(value, int) else _doubt_float(text, value)


def _doubt_integer(text: str, value: int) -> tuple[str, str] | None:
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        octal = f"0o{digits.lstrip('0')}" if set(digits) <= set("01234567") and value > 0 else ""
        return (
            f"The leading zero of {shorten(text)} has no meaning here, but means octal to other programs.",
            f"write {value}" + (f" or, for octal, {octal}" if octal else ""),
        )
    if abs(value) > _EXACT:
        return (
            f"The integer {shorten(text)} is beyond 2**53: programs that use double precision round it.",
            f'write it in quotes if it is a name: "{shorten(text)}"',
        )
    return None


def _doubt_float(text: str, value: float) -> tuple[str, str] | None:
    match = _FLOAT.fullmatch(text)
    if match is None or match[5]:
        return None
    fraction, shown = match[1] or match[4] or "", shorten(text)
    if not fraction.strip("0") and abs(value) < _EXACT:
        return (
            f"The number {shown} is a whole number written as a fraction.",
            f'write {int(value)}, or "{shown}" if the digits are meant as printed',
        )
    if fraction.endswith("0"):
        return (
            f"The last zero of {shown} is lost: the number is {value!r}.",
            f'write "{shown}" if the digits are meant as printed (a version, for instance), or {value!r}',
        )
    return None
