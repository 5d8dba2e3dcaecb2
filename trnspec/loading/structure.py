"""Plain data to typed nodes, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from trnspec.loading.conversion import converter, rejections_of
from trnspec.model.document import API_VERSIONS, Claim, Metadata, Node
from trnspec.model.reflection import shape_of, unless_announced
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import Document, Json, Path

T = TypeVar("T")


@attrs.frozen
class Rejection:
    """The reason why a value was rejected, and its path."""

    path: Path
    message: str


def structure(
    kind: str,
    spec: type[T],
    document: Document,
    data: Mapping[str, Json],
    units: UnitTable = UNITS,
    api_versions: Sequence[str] = API_VERSIONS,
) -> Node[T]:
    """The node that ``data`` describes, with figures in the units of a table; of the versions the first is the present one.

    Raises:
        StructureError: With every rejected value and its path.
    """
    rejections: list[Rejection] = []
    parts: dict[str, Any] = {}
    cls: Any
    for key, cls in (("metadata", Metadata), ("spec", spec), ("claims", tuple[Claim, ...])):
        shape: Any = shape_of(cls)  # of another type than cattrs expects
        if key not in data:
            if key != "claims":
                rejections.append(Rejection((), f"{key} is missing"))
            continue
        try:
            parts[key] = converter(units).structure(data[key], shape)
        except Exception as error:  # noqa: BLE001  # every error of a hook arrives here, alone or in a group
            rejections += [Rejection((key, *path), message) for path, message in rejections_of(error)]
    if (found := parts.get("spec")) is not None and getattr(found, "status", None) is None:
        rejections += [Rejection(("spec",), f"{name} is missing") for name in _missing(found)]
    rejections += [Rejection((k,), f"{k} is not a key of a document") for k in data if k not in _ENVELOPE]
    for key, values in (("api_version", api_versions), ("kind", (kind,))):
        if data.get(key) not in values:
            rejections.append(Rejection((key,), f"{key} is not {values[0]}"))
    if rejections:
        raise StructureError(rejections)
    return Node(kind=kind, document=document, units=units, api_version=api_versions[0], **parts)


def _missing(part: Any) -> Iterator[str]:
    """The fields that only an announced product may lack, by their names from the part on."""
    for name in unless_announced(type(part)):
        value = getattr(part, name)
        yield from (name,) if value is None else (f"{name}.{inner}" for inner in _missing(value))


_ENVELOPE = ("api_version", "kind", "metadata", "spec", "claims")


class StructureError(Exception):
    """Data that the classes reject."""

    def __init__(self, rejections: list[Rejection]) -> None:
        super().__init__("; ".join(r.message for r in rejections))
        self.rejections = rejections


def plain_spec(spec: Any) -> dict[str, Json]:
    """A spec as plain data, without the fields that have their default."""
    data: dict[str, Json] = converter().unstructure(spec)
    return data


def plain(node: Node[Any]) -> dict[str, Json]:
    """The document of a node as plain data; structuring it again gives an equal node."""
    data: dict[str, Json] = {"api_version": node.api_version, "kind": node.kind}
    data["metadata"] = converter().unstructure(node.metadata)
    data["spec"] = plain_spec(node.spec)
    if node.claims:
        data["claims"] = [converter().unstructure(c) for c in node.claims]
    return data
