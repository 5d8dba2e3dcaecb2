"""Documents that are added: what is told of those with errors, and when one of a plugin may bear the name of another.

The latter is refused, unless it says what it changes, and changes no more.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from trnspec.graph.graph import NodeProblem, at
from trnspec.model.reflection import FigureShape, ObjectShape, dotted, leaves, spread
from trnspec.plugins.selection import TELL
from trnspec.yaml import Path, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trnspec.diagnostics import Diagnostic
    from trnspec.model.document import Node
    from trnspec.plugins.api import Registry

BUILTIN = "trnspec"
"""The plugin that trnspec itself is; only its documents can be replaced."""


MOST = 3
"""How many documents with errors are warned of; the others are counted."""


class CatalogWarning(UserWarning):
    """A document of a catalog has errors, so that it, or a part of it, is not there."""


def tell(faults: Sequence[tuple[Diagnostic, bool]], known: Registry, giver: Callable[[str], str]) -> None:
    """Warn of documents with errors, in a line each.

    Args:
        faults: The errors, and whether the document of each is left out.
        known: Tells the folders of the kinds.
        giver: Who brings the document in a file; an empty text where it is no plugin.
    """
    first: dict[str, tuple[Diagnostic, bool]] = {}
    for found, lost in faults:
        first.setdefault(found.where.file, (found, lost))
    folders = {file: _catalog_of(file, known) for file in first}
    for number, (file, (found, lost)) in enumerate(first.items()):
        if number == MOST:
            roots = dict.fromkeys(folders[f] for f in list(first)[MOST:])
            _warn(f"and {len(first) - MOST} more: trnspec validate {' '.join(map(str, roots))}")
            break
        of = giver(file) or f"the catalog {folders[file]}"
        used = "the document is left out" if lost else "the rest of the document is used"
        _warn(f"{found.where}: {found.code} {found.name}: {found.message.rstrip('.')}; {used} ({of})")


def _catalog_of(file: str, known: Registry) -> FilePath:
    parent = FilePath(file).parent
    return parent.parent if parent.name in {k.folder for k in known.kinds.values()} else parent


def _warn(text: str) -> None:
    made = " ".join(text.split())
    teller = TELL.get()
    if teller is not None:
        teller(made)
        return
    import warnings

    warnings.warn(made, CatalogWarning, stacklevel=4)


def replaces(node: Node[Any], other: Node[Any], owner: str) -> Iterator[NodeProblem]:
    """Why a document of a plugin may not stand in for another; nothing when it may.

    It may when it has the kind and the name of the other, keeps its aliases, and lists every difference in
    ``metadata.overrides``.

    Args:
        node: The document of the plugin.
        other: The one that has the name.
        owner: The plugin that the other belongs to.
    """
    path: Path = ("metadata", "name")
    see = (at(other, path, text=f"{other.kind} {other.name} of {owner}"),)

    def problem(message: str, hint: str, where: Path) -> NodeProblem:
        return NodeProblem(node, Problem("TRN204", message, node.document.place(where), hint, where), see)

    if owner != BUILTIN or not node.metadata.overrides or (node.name, node.kind) != (other.name, other.kind):
        shared = node.name if node.name in (other.name, *other.metadata.aliases) else ""
        names = (other.name, *other.metadata.aliases)
        shared = shared or next(a for a in node.metadata.aliases if a in names)
        if shared != node.name:
            path = ("metadata", "aliases", node.metadata.aliases.index(shared))
        hint = "choose another name"
        if owner == BUILTIN:
            hint += ", or list in metadata.overrides what this document changes of the other"
        yield problem(f"the name {shared!r} is taken by a document of {owner}", hint, path)
        return
    for alias in other.metadata.aliases:
        if alias not in node.metadata.aliases:
            message = f"{other.name} of {owner} is also called {alias!r}, and this document, which replaces it, is not"
            yield problem(message, f"add {alias} to metadata.aliases", path)
    allowed = [p for text in node.metadata.overrides for p in _spread(text)]
    own, theirs = _said(node), _said(other)
    for where in dict.fromkeys((*own, *theirs)):
        if own.get(where) != theirs.get(where) and not any(where[: len(p)] == p for p in allowed):
            message = (
                f"{dotted(where)} is {own.get(where, 'left out')} here and {theirs.get(where, 'left out')} in "
                f"{other.name} of {owner}, and metadata.overrides does not list it"
            )
            yield problem(message, f"say the same, or add {dotted(where)} to metadata.overrides", where)


def _spread(text: str) -> list[Path]:
    try:
        return spread(text)
    except ValueError:
        return []


def _said(node: Node[Any]) -> dict[Path, Any]:
    """What a document says, by path; of a figure only what is printed, for its source may be another."""
    found = leaves(node.spec, ObjectShape(type(node.spec)), ("spec",))
    return {path: value.value.text if isinstance(shape, FigureShape) else value for path, shape, value in found}
