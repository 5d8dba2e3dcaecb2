"""Inputs with a suffix or a unit, as planners write them: lengths, numbers of tokens, durations, rates and money.

Every evaluator reads them here: inputs that are numbers by the unit of their metavar (see :data:`OF_UNIT`), others where
they are used.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import UTC, date, datetime

from trnspec.errors import QuantityError, RefusalError, UsageError
from trnspec.quantities.quantity import Qualifier, parse
from trnspec.quantities.units import Dimension

SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
"""Seconds by unit of a duration."""
MULTIPLES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
"""Factors by suffix of a number; B and G are both 10^9."""
LENGTHS = {"": 1, "K": 1024, "M": 1024**2}
"""Factors by suffix of a length: a context of 8k is one of 8,192 tokens."""

_WORDS = {
    "millisecond": "ms", "second": "s", "sec": "s", "minute": "min", "hour": "h", "hr": "h", "day": "d", "week": "w",
}  # fmt: skip
"""Units of a duration in words; a plural has an s."""
_UNSPACED = re.compile(r"^(\d[\d.,]*+(?:[eE][+-]?\d++)?+)(?=[A-Za-z%])", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
_NUMBER = r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)"
_DURATION = re.compile(rf"{_NUMBER}\s*(?P<unit>[A-Za-z]+)")
_AMOUNT = re.compile(rf"(?P<sign>\$?)\s*{_NUMBER}\s*(?P<unit>[KMBGT]?)(?:\s*(?P<noun>[A-Za-z]+))?", re.IGNORECASE)
_LENGTH = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,3})?)\s*(?P<unit>[KM]?)", re.IGNORECASE)
_RATE = re.compile(rf"{_NUMBER}\s*(?P<unit>K?)\s*(?:[A-Za-z]+\s*)?(?:/\s*(?P<per>[A-Za-z]+))?", re.IGNORECASE)
_SHARE = re.compile(rf"{_NUMBER}\s*(?P<percent>%?)")


def spaced(text: str) -> str:
    """A quantity with the space before its unit: ``3 TB/s`` for ``3TB/s``."""
    return _UNSPACED.sub(r"\1 ", text.strip())


def exact(text: str, name: str, dimension: Dimension, such_as: str, *, zero: bool = False) -> float:
    """The value of an exact quantity in base units: ``16 GB/s``, ``64MiB``.

    Args:
        text: The text.
        name: The input, for messages.
        dimension: The dimension.
        such_as: An example, for messages.
        zero: Whether it may be 0.

    Raises:
        UsageError: The text is not a quantity of the dimension.
        RefusalError: ``not-exact``: it is approximate or a bound, and so would be the answer; ``not-positive``: it is 0.
    """
    try:
        quantity = parse(spaced(text), dimension)
    except QuantityError as error:
        raise UsageError(f"{name}: {error}; write it such as {such_as}") from error
    if quantity.qualifier is not Qualifier.EXACT:
        kind = "approximate" if quantity.qualifier is Qualifier.ABOUT else "a bound"
        message = f"{name} is {text}, which is {kind}; an exact value is needed"
        raise RefusalError("not-exact", message, place=name, hint=f'an exact value, such as "{such_as}"')
    if not quantity.value and not zero:
        raise RefusalError("not-positive", f"{name} is {text}; a value above 0 is needed", place=name)
    return float(quantity)


def duration(text: str, name: str, such_as: str = "60d") -> float:
    """A duration in seconds: ``60d``, ``1.5 h``, ``10min``.

    Args:
        text: The text.
        name: The input, for messages.
        such_as: Examples of what is expected, for messages.

    Raises:
        UsageError: The text is not a duration above 0.
    """
    match = _DURATION.fullmatch(text.strip())
    second = _second(match["unit"]) if match else None
    value = float(match["number"]) * second if match and second else 0.0
    if not 0.0 < value < float("inf"):
        units = ", ".join(SECONDS)
        raise UsageError(f"{name}: a duration above 0 such as {such_as} is expected, not {text!r}; units are {units}")
    return value


def _second(unit: str) -> float | None:
    """Seconds of a unit, such as ``d``, ``day`` or ``days``; ``None`` if it is not one."""
    word = unit.casefold()
    return SECONDS.get(unit) or SECONDS.get(_WORDS.get(word, _WORDS.get(word.removesuffix("s"), "")))


def until(text: str, name: str, today: date | None = None) -> float:
    """The time to a deadline in seconds: a duration, a day such as ``2027-03-31``, of which all counts, or a month.

    Args:
        text: The text.
        name: The input, for messages.
        today: The day on which the time begins; the present one if left out.

    Raises:
        UsageError: The text is none of these, or the day is past.
    """
    if _DAY.fullmatch(text.strip()) is None:
        return duration(text, name, "60d, or a day such as 2027-03-31,")
    begin = datetime.now(tz=UTC).date() if today is None else today
    try:
        days = (_last_day(text.strip()) - begin).days + 1
    except ValueError as error:
        raise UsageError(f"{name}: {text!r} is not a day: {error}") from None
    if days <= 0:
        raise UsageError(f"{name}: a day from {begin} on is expected, not {text!r}")
    return days * SECONDS["d"]


def _last_day(text: str) -> date:
    """A day; of a month the last."""
    year, month, *day = map(int, text.split("-"))
    first = date(year, month, 1)
    return date(year, month, day[0]) if day else first.replace(day=calendar.monthrange(year, month)[1])


def amount(text: str, name: str, noun: str) -> float:
    """A number with a suffix: ``10T``, ``300B tokens``, ``2.5M``, ``3M USD``, ``$500k``.

    Args:
        text: The text.
        name: The input, for messages.
        noun: The unit that may follow: ``tokens``.

    Raises:
        UsageError: The text is not a number above 0.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match and (match["noun"] or noun).casefold() != noun.casefold():
        match = None
    if match and match["sign"] and noun != "USD":
        match = None
    value = float(match["number"]) * MULTIPLES[match["unit"].upper()] if match else 0.0
    if not 0.0 < value < float("inf"):
        raise UsageError(f"{name}: a number above 0 such as 10T is expected, not {text!r}; suffixes are K, M, B and T")
    return value


def suffixed(value: float) -> str:
    """A number as a text that :func:`amount` reads: ``10T``."""
    texts = (f"{value / MULTIPLES[of]:.15g}{of}" for of in ("T", "B", "M") if value >= MULTIPLES[of])
    return next((text for text in texts if len(text) <= _SHORT), f"{value:.15g}")


_SHORT = 6


def _length(text: str, name: str) -> int:
    """A whole number of tokens or sequences: ``4096``, ``8k`` for 8,192, ``1M`` for 1,048,576."""
    match = _LENGTH.fullmatch(text.strip())
    value = float(match["number"]) * LENGTHS[match["unit"].upper()] if match else 0.5
    if value != int(value):
        raise UsageError(f"{name}: a whole number is expected, such as 4096 or 4k, not {text!r}")
    return int(value)


def _rate(text: str, name: str) -> float:
    """A number per second: ``20``, ``20/s``, ``20 requests/s``, ``1.2k/min``."""
    match = _RATE.fullmatch(text.strip())
    second = _second(match["per"] or "s") if match else None
    if match is None or second is None:
        raise UsageError(f"{name}: a rate is expected, such as 20, 20/s or 1200/min, not {text!r}")
    return float(match["number"]) * MULTIPLES[match["unit"].upper()] / second


def _share(text: str, name: str) -> float:
    """A share: ``0.5`` or ``50%``."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{name}: a share is expected, such as 0.5 or 50%, not {text!r}")
    return float(match["number"]) / (100.0 if match["percent"] else 1.0)


OF_UNIT: dict[tuple[type, str], Callable[[str, str], float]] = {
    (int, "TOKENS"): _length,
    (int, "SEQUENCES"): _length,
    (float, "TOKENS"): lambda text, name: amount(text, name, "tokens"),
    (float, "REQUESTS/S"): _rate,
    (float, "HOURS"): lambda text, name: duration(text, name) / SECONDS["h"],
    (float, "SECONDS"): duration,
    (float, "SHARE"): _share,
}
"""Parsers of numbers with a suffix or a unit of their own, by the type and the unit of an input."""
