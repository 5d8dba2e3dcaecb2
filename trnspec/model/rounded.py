"""Counts as publishers round them: 70.6 B parameters, 671B, 22 billion."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cached_property, lru_cache

from trnspec.model.annotations import Pattern
from trnspec.model.sourced import Origin, SourcedCount
from trnspec.quantities.quantity import Interval

PATTERN = Pattern(
    r"^~? ?[0-9]{1,3}(,?[0-9]{3})*(\.[0-9]+)? ?([KMBTkmbt]|thousand|million|billion|trillion)$",
    "a whole number, or a rounded one such as 70.6 B or 671B",
)

_SCALE = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}

_ZEROS = Fraction(1, 40)
"""Tolerance of a count whose last digits are zeros: 230 B is printed for 228.7, and 340 M for 336.2."""


_THOUSANDS = {"k": 1, "m": 2}

_LARGEST_BINARY = 10**8
"""Numbers of tokens are powers of two, such as 128K for 131,072; larger counts are decimal."""


class RoundedCount(SourcedCount):
    """A count that is printed rounded; in calculations it is the printed number.

    Attributes:
        text: As printed: ``70.6 B``.
    """

    text: str
    origin: Origin | None = None  # type: ignore[assignment]  # a rounded count may have that of its document

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        """The text, so that no digits are shown that were not printed."""
        return self.text if spec in ("", ",") else format(int(self), spec)

    @cached_property
    def interval(self) -> Interval:
        """The counts that are printed so: rounded, cut off, with zeros in place of digits, or with 1,024 for 1,000."""
        number, letter = _parts(self.text)
        places = len(number.partition(".")[2])
        step = Fraction(_SCALE[letter], 10**places)
        low, high = max(int(self) - step / 2, Fraction(0)), int(self) + step
        if not places and self < _LARGEST_BINARY:
            high *= Fraction(1024, 1000) ** _THOUSANDS.get(letter, 0)
        if self.text.startswith("~") or (number.endswith("0") and not places):
            low, high = min(low, int(self) * (1 - _ZEROS)), max(high, int(self) * (1 + _ZEROS))
        return Interval(low, high)

    @property
    def interval_text(self) -> str:
        """The interval in the unit of the text: ``[70.55, 70.7) B``."""
        _, letter = _parts(self.text)
        low, high = (end / _SCALE[letter] for end in (self.interval.low, self.interval.high or 0))
        return f"[{float(low):.6g}, {float(high):.6g}) {letter.upper()}"


def _parts(text: str) -> tuple[str, str]:
    """The number of a text, without commas, and the letter of its scale."""
    number, letter = re.match(r"~? ?([0-9.,]+) ?([a-z])", text.lower().replace("thousand", "k")).groups()  # type: ignore[union-attr]  # it matches
    return number.replace(",", ""), letter


def rounded(text: str) -> RoundedCount:
    """The count that a text prints.

    Raises:
        ValueError: The text is not a rounded count.
    """
    if not re.search(PATTERN.regex, text) or text.endswith("\n"):
        raise ValueError(f"{text!r} is not {PATTERN.words}")
    number, letter = _parts(text)
    count = RoundedCount(Fraction(number) * _SCALE[letter])
    count.text = text
    return count


def interval_of(count: int) -> Interval:
    """The counts that a printed one may represent; an integer is exact."""
    return count.interval if isinstance(count, RoundedCount) else _point(int(count))


@lru_cache(maxsize=1024)
def _point(count: int) -> Interval:
    return Interval.point(Fraction(count))


def count_of(says: int | str) -> int | None:
    """The count that a claim states: a whole number, or a rounded one; ``None`` for any other text, and below zero."""
    if isinstance(says, int):
        return says if says >= 0 else None
    try:
        return rounded(says)
    except ValueError:
        return None
