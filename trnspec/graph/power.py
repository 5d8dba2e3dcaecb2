"""The power of hardware: which is known, by type, and which one an evaluator computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from attrs import frozen

from trnspec.graph.provenance import Stated, figures
from trnspec.model.chip import Chip
from trnspec.model.document import Node  # read at run time
from trnspec.model.power import Power, PowerType
from trnspec.short_repr import ShortRepr

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph

TYPES: tuple[PowerType, ...] = get_args(PowerType)
"""The types of power in the order in which they are listed."""

UPPER: tuple[PowerType, ...] = ("tdp", "maximum", "configurable-tdp")
"""The types that bound the power of a chip from above, the preferred one first."""


@frozen(repr=False)
class Draw(ShortRepr):
    """One power of a chip or a system.

    Attributes:
        document: The document that states it: of the kind Power, or the chip.
        type: What it is a statement of.
        figure: The power, with source and date.
    """

    document: Node[Any]
    type: PowerType
    figure: Stated

    def __str__(self) -> str:
        load = getattr(self.document.spec, "load", None)
        return f"{self.figure.value} {self.type}{f' at {load}' if load else ''} ({self.figure.as_of})"


def power_documents(graph: Graph, node: Node[Any]) -> tuple[Node[Power], ...]:
    """The documents on the power of a chip or a system, by type and name."""
    of = (n for n in graph.of(Power) if graph.find(n.spec.of) is node)
    return tuple(sorted(of, key=lambda n: (TYPES.index(n.spec.type), n.name)))


def draws(graph: Graph, node: Node[Any], type: PowerType | None = None) -> tuple[Draw, ...]:
    """The known powers of a chip or a system, by type; the figure ``power`` of a chip is a design power.

    Args:
        graph: The catalog.
        node: The chip, server, UltraServer or document of another kind.
        type: Only powers of this type.
    """
    known = [
        Draw(document, document.spec.type, figures(graph, document)["power"])
        for document in power_documents(graph, node)
        if document.spec.power is not None
    ]
    if isinstance(node.spec, Chip) and node.spec.power is not None:
        known.insert(0, Draw(node, "tdp", figures(graph, node)["power"]))
    order = sorted(known, key=lambda d: TYPES.index(d.type))
    return tuple(d for d in order if type in (None, d.type))


def upper_power(graph: Graph, chip: Node[Any]) -> Draw | None:
    """The power of a chip that an upper bound on energy uses: the first of :data:`UPPER`; ``None`` if none is known."""
    known = [d for d in draws(graph, chip) if d.type in UPPER]
    return min(known, key=lambda d: UPPER.index(d.type), default=None)
