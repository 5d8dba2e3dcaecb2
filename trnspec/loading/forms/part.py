"""A document that a part of a list is read as: the keys of any document, at the positions of that part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from trnspec.model.document import API_VERSION
from trnspec.yaml import Document, Path, Problem


def metadata_of(document: Document) -> dict[str, Any]:
    """The metadata of a document, which may lack them."""
    data: Any = document.data
    metadata = data.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def part(
    document: Document,
    kind: str,
    parts: dict[str, Any],
    places: Iterable[tuple[Path, Path]],
    problems: Iterable[Problem] = (),
) -> Document:
    """A part of a list as a document.

    Args:
        document: The list.
        kind: The kind of the new document.
        parts: Its metadata, spec and claims.
        places: Pairs of its paths and those of the list.
        problems: What is wrong with it.
    """
    data: Any = document.data
    return evolve(
        document,
        data={"api_version": data.get("api_version", API_VERSION), "kind": kind, **parts},
        places=document.places.renamed(places),
        problems=tuple(problems),
        rejected=frozenset(),
    )
