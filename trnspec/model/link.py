"""The kind Link: one class of connection between chips or servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from attrs import field, frozen

from trnspec.model.annotations import Count, Text
from trnspec.model.fields import AnyFigure, Bandwidth, Duration
from trnspec.short_repr import short_repr


@frozen(kw_only=True)
class Lanes:
    """The electrical lanes that a link is made of.

    Attributes:
        count: Lanes of one link. Example: 8
        rate: What one lane carries in one direction. Example: 32 Gbit/s
    """

    __repr__ = short_repr

    count: Count
    rate: Bandwidth | None = None


@frozen(kw_only=True)
class LinkRate:
    """What one link carries; a page that does not say which of the two it prints is noted as such.

    Attributes:
        per_direction: In one direction. Example: 128 GB/s
        both: Both directions added. Example: 256 GB/s
    """

    __repr__ = short_repr

    per_direction: Bandwidth | None = None
    both: Bandwidth | None = None


@frozen(kw_only=True)
class Link:
    """A class of connection: what one link of it carries, and what it connects.

    Attributes:
        connects: What stands at its two ends.
        version: The version as its publisher writes it. Example: v2
        technology: What it is built on. Example: PCIe Gen5
        lanes: The lanes of one link.
        bandwidth: What one link carries.
        latency: Time for the smallest message from memory to memory. Example: 15 us
        note: What a reader of the figures should know.
        other: Figures that have no attribute of their own, by a name in snake case.
    """

    __repr__ = short_repr

    KIND: ClassVar[str] = "Link"

    connects: Literal["chips", "servers"]
    version: Text | None = None
    technology: Text | None = None
    lanes: Lanes | None = None
    bandwidth: LinkRate | None = None
    latency: Duration | None = None
    note: Text | None = None
    other: Mapping[str, AnyFigure] = field(factory=dict)
