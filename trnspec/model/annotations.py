"""Metadata of annotations (dimension, pattern, minimum, extensive), and the plain types that are built with it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from attrs import frozen

from trnspec.quantities.units import Dimension
from trnspec.short_repr import ShortRepr


class Unsourced(ShortRepr):
    """Base of classes whose values have no source of their own."""

    __slots__ = ()

    SOURCED: ClassVar[bool] = False


@frozen
class Measures:
    """The dimension that a figure must have."""

    dimension: Dimension | None
    """``None`` allows any dimension."""

    decimal: bool = False
    """Whether the figure is printed in decimal units, as the capacity of a disk is."""


@frozen
class Pattern:
    """The regular expression that a text must match (valid in ECMA-262 and Python), and its description.

    Attributes:
        regex: The regular expression.
        words: The description.
        longest: The most characters; ``None`` for no limit of its own.
        paths: The most paths that the text may name, of a text with alternatives in braces.
        numbers: The least and the largest whole number that is such a text without quotes: the ``2025`` of a date.
    """

    regex: str
    words: str
    longest: int | None = None
    paths: int | None = None
    numbers: tuple[int, int] | None = None

    def text_of(self, value: object) -> object:
        """The text that a whole number is; any other value as it is."""
        if self.numbers is None or type(value) is not int:
            return value
        least, largest = self.numbers
        return str(value) if least <= value <= largest else value


MOST_PATHS = 64
"""The most paths that one text with alternatives in braces may name."""


@frozen
class Least:
    """The minimum of a number, or of the items of a list that is given."""

    value: int


@frozen
class Rounded:
    """A count that may be written as publishers round it: ``70.6 B``."""


@frozen
class Extensive:
    """The values of this field, and of all fields below it, add up over the parts of a system.

    ``power: Annotated[Power, Extensive()] | None`` of a chip gives a server, and all that is built of servers, a total
    ``power``. Memory capacity and peak rates are extensive; the rate of a link and a clock rate are not.
    """


NAME_PATTERN = Pattern(
    r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", "a name of lower-case letters, digits, '.' and '-', such as trn2.48xlarge"
)
Name = Annotated[str, NAME_PATTERN]
"""The name of a document."""

Address = Annotated[
    str,
    Pattern(r"^https?://[A-Za-z0-9\[][^\s<>\"]*$", "an address such as https://github.com/aws-neuron/aws-neuron-sdk"),
]
"""The address of a page; it is shown as a link."""

Text = Annotated[
    str,
    Pattern(
        r"^(?!\s*([Tt][Oo][Dd][Oo]|[Tt][Bb][DdAa]|[Ff][Ii][Xx][Mm][Ee]|[Xx]{3}|\?+|<[^<>]*>)\s*$)[\s\S]*\S",
        "a text with content",
    ),
]
"""A sentence or a title."""

Precision = Annotated[
    str,
    Pattern(
        r"^((?!(b?f|b?float|e|[iu]|mx|nv|fp|int|mxfp|nvfp|tf|uint)[0-9]+$)[a-z0-9][a-z0-9_.-]*|bf16|fp(4|6|8|16|32|64)|u?int([1-8]|16|32)|mxfp[468]|nvfp4|tf32)$",
        "a number format in lower case, such as bf16, fp8 or mxfp4",
    ),
]
"""The name of a number format or of a quantisation; a format that is named by its bits is a known one."""

DATE_PATTERN = Pattern(
    r"^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$",
    "a date such as 2024-02-13, 2024-02 or 2024",
    numbers=(1000, 9999),
)
Date = Annotated[str, DATE_PATTERN]
"""A date as precise as it is known: a day, a month or a year."""

Count = Annotated[int, Least(1)]
"""An exact count, at least 1."""
