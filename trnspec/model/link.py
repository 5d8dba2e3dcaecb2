"""The kind Link: one class of connection between chips or servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from trnspec.model.annotations import Count, Text
from trnspec.model.fields import AnyFigure, Bandwidth, Duration
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class Lanes(ShortRepr):
    """The electrical lanes of a link.

    Attributes:
        count: Lanes of one link. Example: 8
        rate: The rate of one lane in one direction. Example: 32 Gbit/s
    """

    count: Count
    rate: Bandwidth | None = None


@frozen(kw_only=True, repr=False)
class LinkRate(ShortRepr):
    """The rate of one link, or of all links of one chip, per direction and in both directions.

    Where a page does not state which of the two it prints, the figure has a note.

    Attributes:
        per_direction: The rate in one direction. Example: 128 GB/s
        both: The sum of both directions. Example: 256 GB/s
    """

    per_direction: Bandwidth | None = None
    both: Bandwidth | None = None


@frozen(kw_only=True, repr=False)
class Link(ShortRepr):
    """A class of connection: the rate of one link, and what it connects.

    Attributes:
        connects: What the link connects.
        version: The version as its publisher writes it. Example: v2
        technology: The technology it is built on. Example: PCIe Gen5
        lanes: The lanes of one link.
        bandwidth: The rate of one link.
        latency: Time for the smallest message from memory to memory. Example: 15 us
        in_network_reduction: The protocol by which switches of these links reduce and multicast data. Example: SHARP
        note: A remark for readers of the figures.
        other: Figures that have no attribute of their own, by a name in snake case.
    """

    connects: Literal["chips", "servers"]
    version: Text | None = None
    technology: Text | None = None
    lanes: Lanes | None = None
    bandwidth: LinkRate | None = None
    latency: Duration | None = None
    in_network_reduction: Text | None = None
    note: Text | None = None
    other: Mapping[str, AnyFigure] = field(factory=dict)
