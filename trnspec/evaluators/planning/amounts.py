"""Inputs with a suffix: numbers of tokens, durations and sums of money, as planners write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from trnspec.errors import UsageError

SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
"""Seconds by unit of a duration."""
MULTIPLES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
"""Factors by suffix of a number; B and G are both 10^9."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER = r"(?P<number>\d+(?:\.\d+)?(?:[eE]\+?\d{1,2})?)"
_DURATION = re.compile(rf"{_NUMBER}\s*(?P<unit>{'|'.join(SECONDS)})")
_AMOUNT = re.compile(rf"{_NUMBER}\s*(?P<unit>[KMBGT]?)(?:\s*(?P<noun>[A-Za-z]+))?", re.IGNORECASE)


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
    value = float(match["number"]) * SECONDS[match["unit"]] if match else 0.0
    if not 0.0 < value < float("inf"):
        units = ", ".join(SECONDS)
        raise UsageError(f"{name}: a duration above 0 such as {such_as} is expected, not {text!r}; units are {units}")
    return value


def until(text: str, name: str, today: date | None = None) -> float:
    """The time to a deadline in seconds: a duration, or a day such as ``2027-03-31``, of which all counts.

    Args:
        text: The text.
        name: The input, for messages.
        today: The day on which the time begins; the present one if left out.

    Raises:
        UsageError: The text is neither, or the day is past.
    """
    if _DAY.fullmatch(text.strip()) is None:
        return duration(text, name, "60d, or a day such as 2027-03-31,")
    begin = datetime.now(tz=UTC).date() if today is None else today
    try:
        days = (date.fromisoformat(text.strip()) - begin).days + 1
    except ValueError as error:
        raise UsageError(f"{name}: {text!r} is not a day: {error}") from None
    if days <= 0:
        raise UsageError(f"{name}: a day from {begin} on is expected, not {text!r}")
    return days * SECONDS["d"]


def best_of(plans: int) -> str:
    """What the best of some plans is called in a title."""
    return f"the best of {plans} plans" if plans > 1 else "the only plan"


def amount(text: str, name: str, noun: str) -> float:
    """A number with a suffix: ``10T``, ``300B tokens``, ``2.5M``.

    Args:
        text: The text.
        name: The input, for messages.
        noun: The unit that may follow: ``tokens``.

    Raises:
        UsageError: The text is not a number above 0.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match and match["noun"] and match["noun"].casefold() != noun.casefold():
        match = None
    value = float(match["number"]) * MULTIPLES[match["unit"].upper()] if match else 0.0
    if not 0.0 < value < float("inf"):
        raise UsageError(f"{name}: a number above 0 such as 10T is expected, not {text!r}; suffixes are K, M, B and T")
    return value
