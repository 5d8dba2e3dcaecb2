"""A figure: a printed quantity with its source."""

from __future__ import annotations

from attrs import frozen

from trnspec.model.marks import Text
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.quantity import Quantity


@frozen(kw_only=True)
class Figure:
    """A quantity as printed, with what is known of where it comes from.

    In YAML a figure is a text, ``820 GB/s``, or a mapping when it has a source of its own, is derived or needs a note.

    Attributes:
        value: The quantity as printed, with its unit. Example: 820 GB/s
        source: Who says so, when it is not the source of the document. Example: neuron-trainium-2024-02
        where: The place in the source. Example: line 24
        derived: The formula, when nobody printed the figure: it is computed and never shown as published.
        note: What a reader of the figure should know.
    """

    value: Quantity
    source: Ref[Source] | None = None
    where: Text | None = None
    derived: Text | None = None
    note: Text | None = None

    def __str__(self) -> str:
        return self.value.text
