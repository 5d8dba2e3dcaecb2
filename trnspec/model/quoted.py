"""Base class of the documents that quote a quantity of a product: prices and powers."""

from __future__ import annotations

from trnspec.short_repr import ShortRepr


class Quoted(ShortRepr):
    """The spec of a document that quotes a quantity of a product, so that one rule checks all of them."""

    __slots__ = ()
