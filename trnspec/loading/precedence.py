"""Precedence between documents of one name, and warnings for documents of a catalog that have errors.

A document of a plugin may have the name of a built-in one only if it lists every difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

from trnspec.diagnostics import Diagnostic
from trnspec.graph.graph import NodeProblem, at
from trnspec.model.document import Node
from trnspec.model.reflection import FigureShape, dotted, leaves, spread
from trnspec.plugins.api import Registry
from trnspec.plugins.selection import CORE, REPORT
from trnspec.yaml import Path, Problem

MOST = 3
"""The number of documents with errors that are named in warnings; the others are counted."""


class CatalogWarning(UserWarning):
    """A document of a catalog has errors and is not used, or only in part."""


def warn_of_errors(errors: Sequence[tuple[Diagnostic, bool]], known: Registry, owner: Callable[[str], str]) -> None:
    """Warn of documents with errors, one line per document.

    Args:
        errors: The errors, each with whether its document is left out of the graph.
        known: The registry, for the folders of the kinds.
        owner: Maps a file to the name of its plugin, or to an empty text.
    """
    first: dict[str, tuple[Diagnostic, bool]] = {}
    for error, lost in errors:
        first.setdefault(error.where.file, (error, lost))
    folders = {file: _catalog_of(file, known) for file in first}
    for number, (file, (error, lost)) in enumerate(first.items()):
        if number == MOST:
            roots = dict.fromkeys(folders[f] for f in list(first)[MOST:])
            _warn(f"and {len(first) - MOST} more: trnspec validate {' '.join(map(str, roots))}")
            break
        of = owner(file) or f"the catalog {folders[file]}"
        used = "the document is left out" if lost else "the rest of the document is used"
        _warn(f"{error.where}: {error.code} {error.name}: {error.message.rstrip('.')}; {used} ({of})")


def _catalog_of(file: str, known: Registry) -> FilePath:
    parent = FilePath(file).parent
    return parent.parent if parent.name in {k.folder for k in known.kinds.values()} else parent


def _warn(text: str) -> None:
    message = " ".join(text.split())
    report = REPORT.get()
    if report is not None:
        report(message)
        return
    warnings.warn(message, CatalogWarning, stacklevel=4)


def replacement_problems(node: Node[Any], other: Node[Any], owner: str) -> Iterator[NodeProblem]:
    """The reason for which a document of a plugin cannot replace another one; empty if it can.

    It can if it has the kind and the name of the other, keeps its aliases, and lists every difference in
    ``metadata.overrides``.

    Args:
        node: The document of the plugin.
        other: The document that already has the name.
        owner: The plugin of the other document.
    """
    path: Path = ("metadata", "name")
    see = (at(other, path, text=f"{other.kind} {other.name} of {owner}"),)

    def problem(message: str, hint: str, where: Path) -> NodeProblem:
        return NodeProblem(node, Problem("TRN204", message, node.document.place(where), hint, where), see)

    # Only documents of the built-in plugin can be replaced.
    if owner != CORE[0] or not node.metadata.overrides or (node.name, node.kind) != (other.name, other.kind):
        shared = node.name if node.name in (other.name, *other.metadata.aliases) else ""
        names = (other.name, *other.metadata.aliases)
        shared = shared or next(a for a in node.metadata.aliases if a in names)
        if shared != node.name:
            path = ("metadata", "aliases", node.metadata.aliases.index(shared))
        hint = "choose another name"
        if owner == CORE[0]:
            hint += ", or list the changes to the other document in metadata.overrides"
        yield problem(f"the name {shared!r} is taken by a document of {owner}", hint, path)
        return
    for alias in other.metadata.aliases:
        if alias not in node.metadata.aliases:
            message = f"{other.name} of {owner} has the alias {alias!r}, and this document, which replaces it, has not"
            yield problem(message, f"add {alias} to metadata.aliases", path)
    allowed = [p for text in node.metadata.overrides for p in spread(text)]
    own, theirs = _values(node), _values(other)
    for where in dict.fromkeys((*own, *theirs)):
        if own.get(where) != theirs.get(where) and not any(where[: len(p)] == p for p in allowed):
            message = (
                f"{dotted(where)} is {own.get(where, 'left out')} here and {theirs.get(where, 'left out')} in "
                f"{other.name} of {owner}, and metadata.overrides does not list it"
            )
            yield problem(message, f"write the same value, or add {dotted(where)} to metadata.overrides", where)


def _values(node: Node[Any]) -> dict[Path, Any]:
    """The values of a document by path; of a figure only its printed value, because its source may differ."""
    values = leaves(node.spec, ("spec",))
    return {path: value.value.text if isinstance(shape, FigureShape) else value for path, shape, value in values}
