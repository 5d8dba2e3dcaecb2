"""Lists, each read as several documents, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from trnspec.loading.files import misplacements
from trnspec.loading.forms.fits import calibration_documents, list_name
from trnspec.loading.forms.part import metadata_of
from trnspec.loading.forms.platforms import server_documents
from trnspec.loading.forms.price_rows import documents_in_rows
from trnspec.model.document import Node
from trnspec.model.reflection import dotted
from trnspec.yaml import Document, Path, Problem


def documents_in_list(node: Node[Any], rejected: Collection[int | str]) -> Iterator[Document]:
    """The documents of the kind in :data:`trnspec.model.kinds.LISTS` that a list is read as.

    Args:
        node: The list.
        rejected: The indices of items that are invalid.
    """
    return _READERS[node.kind](node.document, rejected)


def list_problems(node: Node[Any]) -> Iterator[Problem]:
    """Problems of a list: fields that its documents cannot have, and a name that is not that of its kind or its file."""
    document, metadata = node.document, metadata_of(node.document)
    claims = ["claims"] if "claims" in (document.data or {}) else []
    for path in (*((each,) for each in claims), *(("metadata", k) for k in _OF_ONE if k in metadata)):
        message = f"a list has no {path[-1]!r}"
        hint = "write it in a document of one of its items"
        yield Problem("TRN101", message, document.place(path, key=True), hint, path)
    spec: Any = (document.data or {}).get("spec")
    lists = ((key, value) for key, value in spec.items() if isinstance(value, list))
    rows: list[tuple[Path, dict[str, Any]]] = [
        (("spec", key, i), row) for key, value in lists for i, row in enumerate(value) if isinstance(row, dict)
    ]
    first: dict[str, Path] = {}
    for at, row in rows:
        if (known := first.setdefault(repr((at[:-1], row)), at)) != at:
            message = f"{dotted(at)} is the same as {dotted(known)}"
            yield Problem("TRN209", message, document.place(at), "remove or correct one of them", at)
    at_name: Path = ("metadata", "name")
    name = metadata.get("name")
    expected = _NAMES[node.kind](node.spec)
    if name is not None and name != expected:
        of: Path = ("spec", "server" if "server" in spec else "chip")
        message, hint = f"the name of this list is {name!r}", f"write {expected}, or correct {dotted(of)}"
        yield Problem("TRN205", message, document.place(at_name), hint, at_name, document.place(of))
    elif name is not None:
        for at, message, hint in misplacements(document.file, node.kind, name):
            yield Problem("TRN205", message, document.place(at), hint, at)


_READERS = {
    "PriceList": documents_in_rows,
    "Platforms": server_documents,
    "CalibrationList": calibration_documents,
}

_NAMES: Mapping[str, Callable[[Any], str]] = {
    "PriceList": lambda spec: f"{spec.server}-prices",
    "Platforms": lambda spec: f"{spec.chip}-platforms",
    "CalibrationList": lambda spec: list_name(spec.chip.name, spec.framework),
}

_OF_ONE = ("aliases", "allow", "overrides")
