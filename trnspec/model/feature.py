"""Statements of sources about hardware that are not figures."""

from __future__ import annotations

from attrs import frozen

from trnspec.model.annotations import Name, Text, Unsourced
from trnspec.model.ref import Ref
from trnspec.model.source import Source


@frozen(kw_only=True, repr=False)
class Feature(Unsourced):
    """A capability that a source states in words.

    Attributes:
        name: A short name, the same for all hardware that has the feature. Example: dma-compression
        says: The statement. Example: inline memory compression and decompression
        source: The source of the statement. Example: neuron-trainium-2024-02
        where: The location in the source. Example: lines 28 and 29
    """

    name: Name
    says: Text
    source: Ref[Source]
    where: Text | None = None
