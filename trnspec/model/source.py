"""The kind Source: where figures come from, and when it said so."""

from __future__ import annotations

from typing import ClassVar, Literal

from attrs import frozen

from trnspec.model.annotations import Date, Text
from trnspec.short_repr import short_repr

Rank = Literal[
    "vendor-chip-page",
    "vendor-architecture-guide",
    "vendor-system-page",
    "vendor-guide",
    "vendor-figure",
    "vendor-api",
    "vendor-driver",
    "model-publisher",
    "third-party",
]


@frozen(kw_only=True)
class Source:
    """A document that states figures, in one version: two versions of a page are two sources.

    Attributes:
        publisher: Who answers for it. Example: AWS Neuron documentation
        as_of: The day, month or year that this version dates from. Example: 2024-02-13
        dating: How the date is known; "not-before" marks a date inferred from what the text mentions.
        rank: How near the publisher stands to the hardware, or to the model; it weighs when two sources disagree.
        address: Where this version can be read. Example: https://github.com/aws-neuron/aws-neuron-sdk
        version: The revision or release that was read. Example: 82ffe529
        note: What a reader of the source should know.
    """

    __repr__ = short_repr

    KIND: ClassVar[str] = "Source"

    publisher: Text
    as_of: Date
    dating: Literal["exact", "not-before"] = "exact"
    rank: Rank
    address: Text | None = None
    version: Text | None = None
    note: Text | None = None
