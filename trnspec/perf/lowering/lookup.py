"""Documents by the name that an evaluator is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError
from trnspec.model.transformers.model import Model

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


def model_named(graph: Graph, name: str) -> Node[Model]:
    """The model with this name or alias.

    Raises:
        UnknownNameError: No such model; the message suggests the nearest.
    """
    for node in graph.of(Model):
        if name in (node.name, *node.metadata.aliases):
            return node
    hint = did_you_mean(name, [alias for n in graph.of(Model) for alias in (n.name, *n.metadata.aliases)])
    raise UnknownNameError(f"no model is named {name!r}" + (f"; {hint}" if hint else ""))
