"""The kind Platforms: names of servers that only a driver has."""

from __future__ import annotations

from attrs import frozen

from trnspec.model.annotations import Count, Name, Text
from trnspec.model.chip import Chip
from trnspec.model.feature import Feature
from trnspec.model.ref import Ref
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class Platform(ShortRepr):
    """The names that a driver has for servers of one form, and what it knows of them.

    Attributes:
        names: The names. Example: trn3.48xlarge
        chips: The number of chips of a server. Example: 16
        cores: The number of cores of a server, if the driver has one. Example: 128
        where: The place of the names in the source of the document. Example: v4_platform_map
        note: A remark for readers, in addition to that of the document.
        features: Statements that are not figures, each with its source.
    """

    names: tuple[Name, ...]
    chips: Count
    cores: Count | None = None
    where: Text | None = None
    note: Text | None = None
    features: tuple[Feature, ...] = ()


@frozen(kw_only=True, repr=False)
class Platforms(ShortRepr):
    """Names of servers that a driver has and no page describes. The catalog has a server for each name.

    Attributes:
        chip: The chip of all of them. Example: trainium3
        platforms: The names, by form.
    """

    chip: Ref[Chip]
    platforms: tuple[Platform, ...]
