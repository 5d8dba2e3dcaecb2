"""The generation numbers of chips, which are compared across a whole catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trnspec.model.document import Node

Numbers = tuple[int, int, str]
"""Training generation, accelerator generation, and the name of the source that counts them."""


def generation_numbers(node: Node[Any]) -> Numbers | None:
    """The generation numbers of a chip and their source; ``None`` where one of them is not stated."""
    generation, source = getattr(node.spec, "generation", None), node.metadata.source
    if generation is None or generation.training is None or generation.accelerator is None or source is None:
        return None
    return int(generation.training), int(generation.accelerator), source.name
