"""The marks that an annotation may carry, and the plain types that are made with them."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from trnspec.quantities.units import Dimension


@frozen
class Measures:
    """Marks a figure with the dimension it must have."""

    dimension: Dimension | None
    """``None`` allows every dimension."""

    decimal: bool = False
    """Whether the figure is usual in decimal units, as the capacity of a disk is."""


@frozen
class Pattern:
    """Marks a text with the regular expression it must match (ECMA-262 and Python), and the words for it."""

    regex: str
    words: str


@frozen
class Least:
    """Marks a number with its least value."""

    value: int


NAME_PATTERN = Pattern(
    r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", "a name of lower-case letters, digits, '.' and '-', such as trn2.48xlarge"
)
Name = Annotated[str, NAME_PATTERN]
"""The name of a document."""

Text = Annotated[str, Pattern(r"\S", "a text that is not empty")]
"""A sentence or a title for people."""

Date = Annotated[
    str,
    Pattern(r"^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$", "a date such as 2024-02-13, 2024-02 or 2024"),
]
"""A date to the precision that is known: a day, a month or a year."""

Count = Annotated[int, Least(1)]
"""How many of something there are: exact, at least one."""
