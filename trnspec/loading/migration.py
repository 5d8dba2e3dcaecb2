"""Documents in an older format, written in the present one: comments and the text of every value are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.loading.renamed import CONFLICT, DEPRECATED, OLDER_VERSION, upgrade
from trnspec.yaml import read_text
from trnspec.yaml.edits import apply
from trnspec.yaml.layout import LayoutError, comments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.plugins.api import Kind
    from trnspec.yaml import Document, Problem

_OF_FORMATS = {DEPRECATED, OLDER_VERSION, CONFLICT}
_ROUNDS = 10


def migrated(text: str, kinds: Mapping[str, Kind]) -> tuple[str, tuple[Problem, ...]]:
    """A document in the present version of the format, and what has to be changed by hand.

    Args:
        text: The document.
        kinds: The kinds by name.

    Returns:
        The text, and the problems of the reader, or those of former paths that no edit can change, such as a group
        that the document has by both names.
    """
    first = document = _read(text, kinds)
    for _ in range(_ROUNDS):
        problems = [p for p in document.problems if p.code in _OF_FORMATS]
        fresh, applied = apply(document.text, [p.edit for p in problems if p.edit is not None])
        if not applied:
            break
        document = _read(fresh, kinds)
    if document is not first and not _is_same(first, document):
        document = first
    left = [p for p in document.problems if p.code in _OF_FORMATS]
    if document.data is None:
        left = list(document.problems)
    return document.text, tuple(left)


def _read(text: str, kinds: Mapping[str, Kind]) -> Document:
    document = read_text(text)
    kind = (document.data or {}).get("kind")
    known = kinds.get(kind) if isinstance(kind, str) else None
    return document if known is None else upgrade(document, known.spec)


def _is_same(one: Document, other: Document) -> bool:
    """Whether two documents, both read as the present version, have equal values and the same comments."""
    versions = ("api_version",)
    first, second = ({k: v for k, v in (d.data or {}).items() if k not in versions} for d in (one, other))
    try:
        return first == second and sorted(comments(one.text)) == sorted(comments(other.text))
    except LayoutError:
        return False
