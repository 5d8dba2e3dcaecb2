"""Counts, words and dates with a source of their own."""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import frozen

from trnspec.model.annotations import Text, Unsourced
from trnspec.model.ref import Ref
from trnspec.model.source import Source


@frozen(kw_only=True, repr=False)
class Origin(Unsourced):
    """The origin of a count, a word or a date: the source that states it, or the formula that gives it.

    Attributes:
        source: Its source, if it is not the source of the document. Example: neuron-trainium-2024-02
        where: The location in the source. Example: line 24
        derived: The formula of a count that no source prints. Example: 2 x 16
        note: A remark for readers.
    """

    source: Ref[Source] | None = None
    where: Text | None = None
    derived: Text | None = None
    note: Text | None = None


class SourcedCount(int):
    """A count with an origin; in every other respect an ``int``."""

    origin: Origin


class SourcedText(str):
    """A word or a date with an origin; in every other respect a ``str``."""

    __slots__ = ("origin",)

    origin: Origin


T = TypeVar("T", int, str)


def sourced(value: T, origin: Origin) -> T:
    """A count or a text with its origin."""
    result: Any = value  # a rounded count has a place for it
    if not isinstance(value, SourcedCount):
        result = SourcedCount(value) if isinstance(value, int) else SourcedText(value)
    result.origin = origin
    return result  # type: ignore[no-any-return]  # of a subclass of T


def origin_of(value: Any) -> Origin | None:
    """The origin of a value; ``None`` for one that has that of its document."""
    return value.origin if isinstance(value, (SourcedCount, SourcedText)) else None
