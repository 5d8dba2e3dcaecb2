"""Documents that an input names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError
from trnspec.model.transformers.model import Model

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


def model_named(graph: Graph, name: str) -> Node[Model]:
    """The model of a name or an alias.

    Raises:
        UnknownNameError: There is no such model; the message lists the nearest.
    """
    for node in graph.of(Model):
        if name in (node.name, *node.metadata.aliases):
            return node
    hint = did_you_mean(name, [a for n in graph.of(Model) for a in (n.name, *n.metadata.aliases)])
    raise UnknownNameError(f"no model is named {name!r}" + (f"; {hint}" if hint else ""))
