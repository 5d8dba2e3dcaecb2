"""What-if: a document with other values, and a catalog with a document more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from trnspec.errors import UsageError
from trnspec.model.document import Node
from trnspec.structure import StructureError, plain, structure


def changed(node: Node[Any], changes: Mapping[str, Any]) -> Any:
    """The spec of a node with some values exchanged.

    Args:
        node: The document.
        changes: Values by dotted path below ``spec``, written as in YAML; ``None`` takes a value away.

    Raises:
        UsageError: A change does not fit the kind; the message says which and what was expected.
    """
    data: dict[str, Any] = plain(node)
    for path, value in changes.items():
        put(data["spec"], path.removeprefix("spec.").split("."), value)
    try:
        made = structure(node.kind, type(node.spec), node.document, data)
    except StructureError as error:
        told = "; ".join(f"{r.message} (at {'.'.join(map(str, r.path))})" for r in error.refusals)
        raise UsageError(f"{node.name} cannot be changed so: {told}") from error
    return made.spec


def put(data: dict[str, Any], steps: list[str], value: Any) -> None:
    """Write a value at a path of plain data, making mappings on the way; ``None`` takes away what stands there."""
    *way, last = steps
    for step in way:
        inner = data.setdefault(step, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{'.'.join(steps)} leads through {step}, which is not a mapping")
        data = inner
    if value is None:
        data.pop(last, None)
    else:
        data[last] = value


def retitled(node: Node[Any], **metadata: Any) -> Node[Any]:
    """The same node with other metadata."""
    return evolve(node, metadata=evolve(node.metadata, **metadata))
