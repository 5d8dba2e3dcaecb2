"""The kind Source: the origin of figures, with its date."""

from __future__ import annotations

from typing import Literal, get_args

from attrs import frozen

from trnspec.model.annotations import Address, Date, Text, Unsourced

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

RANKS: tuple[str, ...] = get_args(Rank)
"""The ranks, the closest to the hardware first."""

_LATEST = "-12-31"


def end(date: str) -> str:
    """The last day of a day, a month or a year, as a sortable text: every month ends on the 31st."""
    return date if len(date) == len("2023-04-15") else date + _LATEST[len(date) - len("2023") :]


@frozen(kw_only=True, repr=False)
class Source(Unsourced):
    """A document that states figures, in one version: two versions of a page are two sources.

    Attributes:
        publisher: The publisher. Example: AWS Neuron documentation
        as_of: The date of this version: a day, a month or a year. Example: 2024-02-13
        dating: How the date is known; "not-before" marks a date inferred from what the text mentions.
        rank: How close the publisher is to the hardware, or to the model; it decides between conflicting sources.
        address: The address of this version. Example: https://github.com/aws-neuron/aws-neuron-sdk
        version: The revision or release that was read. Example: 82ffe529
        note: A remark for readers of the source.
    """

    publisher: Text
    as_of: Date
    dating: Literal["exact", "not-before"] = "exact"
    rank: Rank
    address: Address | None = None
    version: Text | None = None
    note: Text | None = None

    @property
    def standing(self) -> str:
        """The rank; ``no address`` marks a source that a reader cannot look up."""
        return self.rank if self.address else f"{self.rank}, no address"

    @property
    def precedence(self) -> tuple[bool, str, int]:
        """Sort key, largest for the source that decides: publishers before third parties, the newest, the closest rank."""
        return self.rank != "third-party", end(self.as_of), -RANKS.index(self.rank)
