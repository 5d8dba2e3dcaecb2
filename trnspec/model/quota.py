"""The kind Quota: limits of an account or of a reservation of servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from attrs import frozen

from trnspec.model.annotations import Count, Least, Name, Pattern, Text
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class Quota(ShortRepr):
    """The limits of one way to buy the servers of some families, before an account has any of them raised.

    Attributes:
        families: The families of servers. Example: trn2
        purchase: The way to buy them. Example: spot
        code: The code in Service Quotas. Example: L-6B0D517C
        vcpus: Virtual processors of all running servers of an account in a region. Example: 0
        servers: The most servers of one reservation. Example: 64
        servers_in_all: The most servers of all reservations of an account. Example: 256
        days: The longest duration of a reservation, in days. Example: 182
        days_ahead: The latest start of a reservation, in days from now. Example: 56
        note: A remark for readers.
    """

    SHORT: ClassVar[Mapping[str, str]] = {"family": "families"}

    families: tuple[Name, ...]
    purchase: Literal["on-demand", "spot", "capacity-block"]
    code: Annotated[str, Pattern(r"^L-[0-9A-F]{8}$", "a code of Service Quotas, such as L-6B0D517C")] | None = None
    vcpus: Annotated[int, Least(0)] | None = None
    servers: Count | None = None
    servers_in_all: Count | None = None
    days: Count | None = None
    days_ahead: Count | None = None
    note: Text | None = None
