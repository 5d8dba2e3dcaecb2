"""Dates as precise as they are known: 2024, 2024-02 or 2024-02-13."""

from __future__ import annotations

import re
from datetime import date

_MONTHS = {
    name: f"{number:02}"
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}


def compared(one: str, other: str) -> int:
    """Order of two dates: 1, 0 or -1; 0 also where one is less precise and contains the other."""
    length = min(len(one), len(other))
    return (one[:length] > other[:length]) - (one[:length] < other[:length])


def date_of(text: str) -> str:
    """A date in words as an ISO date, as precise as it is: ``October 2022`` is ``2022-10``; empty if it is none."""
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?", text):
        return text
    words = re.findall(r"[a-z]+|[0-9]+", text.lower())
    year = next((w for w in words if re.fullmatch(r"(?:19|20)[0-9]{2}", w)), "")
    month = next((_MONTHS[w[:3]] for w in words if w[:3] in _MONTHS), "")
    day = next((f"{int(w):02}" for w in words if w.isdigit() and len(w) <= len("31")), "")
    return "-".join(part for part in (year, month, day if month else "") if part) if year else ""


_NUMBERS = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})(?:[-/.]([0-9]{1,2}))?(?![0-9])")


def likely_date(text: str) -> str:
    """The ISO date that a text in another form likely is, such as ``2024/2/13`` or ``October 2022``; empty if unclear."""
    if (match := _NUMBERS.match(text)) is None:
        words = date_of(text)
        return words if "-" in words else ""
    year, *rest = (int(part) for part in match.groups() if part)
    try:
        date(year, *(*rest, 1)[:2])
    except ValueError:
        return ""
    return "-".join((f"{year:04}", *(f"{part:02}" for part in rest)))
