"""Texts to a checked graph, told once: read, structure, link, check.

Every stage reports and passes on what is sound, so one run shows everything.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.diagnostics import Diagnostic, Location, Severity, did_you_mean
from trnspec.graph.graph import Graph, NodeProblem, build
from trnspec.loading.renamed import upgrade
from trnspec.loading.structure import StructureError, structure
from trnspec.model.document import API_VERSION, Node
from trnspec.model.kinds import BUILTIN
from trnspec.model.reflection import dotted
from trnspec.yaml import Document, Path, Place, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trnspec.plugins.api import Kind, Registry
    from trnspec.quantities.units import UnitTable


@frozen
class Reading:
    """What one text gave.

    Attributes:
        document: The text with its places.
        node: The document, when it is sound enough to use.
        problems: What is wrong with the text or with its form.
        name: Its name, or that of its file when not even that can be read.
        target: True for a text that the caller asked to check, sound or not.
        plugin: The plugin whose catalog it lies in; empty for a file of the user, and where no plugin has a catalog.
        layer: Which catalog it is of, the nearest to the user first; a document stands in for those of later layers.
    """

    document: Document
    node: Node[Any] | None
    problems: tuple[Problem, ...]
    name: str
    target: bool = True
    plugin: str = ""
    layer: int = 0


def read(document: Document, registry: Registry, *, target: bool = True, plugin: str = "", layer: int = 0) -> Reading:
    """The node in a text, and what is wrong with it."""
    found = _read(document, registry, target=target)
    return evolve(found, plugin=plugin, layer=layer) if plugin or layer else found


def _read(document: Document, registry: Registry, *, target: bool) -> Reading:
    problems = list(document.problems)
    data = document.data
    name = _name(document)
    if data is None:
        return Reading(document, None, tuple(problems), name, target)
    kind, problem = _kind(document, data, registry)
    if kind is None:
        return Reading(document, None, (*problems, *([problem] if problem else [])), name, target)
    node: Node[Any] | None
    document = upgrade(document, kind.spec)
    data = document.data or {}
    problems = list(document.problems)
    try:
        node = structure(kind.name, kind.spec, document, data, registry.units)
    except StructureError as refused:
        node, found = _mend(kind, document, data, refused, registry.units)
        problems += found
    folder = "" if kind.name in BUILTIN else kind.folder
    if node is not None and (folder or not target):
        node = evolve(node, target=target, folder=folder)
    return Reading(document, node, tuple(problems), name, target)


def _name(document: Document) -> str:
    """What others call a document, sound or not: a reference to it is not "dangling"."""
    metadata = (document.data or {}).get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else os.path.splitext(os.path.basename(document.file))[0]  # noqa: PTH119, PTH122  # many files


def _kind(document: Document, data: Mapping[str, Any], registry: Registry) -> tuple[Kind | None, Problem | None]:
    """The kind of a document, or what is wrong with its first two lines."""
    for key, known in (("api_version", [API_VERSION]), ("kind", list(registry.kinds))):
        value = data.get(key)
        if value in known:
            continue
        if (key,) in document.refused:
            return None, None
        expected = " or ".join(known) if len(known) < 3 else "one of " + ", ".join(known)
        if key not in data:
            place = document.place(())
            return None, Problem("TRN102", f"the document has no {key!r}", place, f"add {key}: {expected}", ())
        hint = (did_you_mean(value, known) if isinstance(value, str) else "") or f"known: {', '.join(known)}"
        return None, Problem("TRN107", f"{value!r} at {key} is not {expected}", document.place((key,)), hint, (key,))
    return registry.kinds[str(data["kind"])], None


def _mend(
    kind: Kind, document: Document, data: Mapping[str, Any], refused: StructureError, units: UnitTable
) -> tuple[Node[Any] | None, list[Problem]]:
    """What the schema says of a document that the classes refused, and the node of its sound rest."""
    # Imported here: a sound file never pays for jsonschema.
    from trnspec.loading.schema.check import check
    from trnspec.loading.schema.prune import prune

    unsound = check(kind.name, kind.spec, document, data, units)
    if not unsound and not document.refused:
        return None, [
            Problem("TRN190", f"{r.message} (at {dotted(r.path) or 'the top'})", document.place(r.path), "", r.path)
            for r in refused.refusals
        ]
    rest, positions = prune(kind.spec, data, [*(u.drop for u in unsound), *_lost(document)])
    problems = [u.problem for u in unsound]
    if rest is None:
        return None, problems
    try:
        node: Node[Any] = structure(kind.name, kind.spec, document, rest, units)
    except StructureError:
        return None, problems
    return evolve(node, positions=positions), problems


def _lost(document: Document) -> Iterable[Path]:
    """What the reader refused: its place stands empty, and a merge key leaves a whole mapping in doubt."""
    return (path[:-1] if path[-1] == "<<" else path for path in document.refused if path)


def settle(readings: Iterable[Reading]) -> tuple[list[Reading], list[NodeProblem]]:
    """The readings that count: a document of a plugin takes the place of another only where it says so.

    Returns:
        The readings without those that are replaced and those that are refused, and why the latter are.
    """
    readings = list(readings)
    if not any(r.plugin for r in readings):
        return readings, []
    from trnspec.loading.precedence import BUILTIN, replaces

    house = [r for r in readings if r.plugin == BUILTIN and r.node is not None]
    taken = {n: r for r in house if r.node is not None for n in (r.node.name, *r.node.metadata.aliases)}
    gone: set[int] = set()
    problems: list[NodeProblem] = []
    # In the order of the plugins, which is that of their names, whichever of them is checked.
    for reading in sorted((r for r in readings if r.plugin not in ("", BUILTIN)), key=lambda r: r.plugin):
        node = reading.node
        if node is None:
            continue
        names = (node.name, *node.metadata.aliases)
        other = next((taken[n] for n in names if n in taken), None)
        if other is not None and other.node is not None and (other.plugin != reading.plugin):
            found = list(replaces(node, other.node, other.plugin))
            problems += found
            gone.add(id(reading) if found else id(other))
            if found:
                continue
        for name in names:
            taken[name] = reading
    return [r for r in readings if id(r) not in gone], problems


def link(readings: Iterable[Reading], *, hides: bool = True) -> tuple[Graph, list[Diagnostic]]:
    """The graph of some readings, and all that is wrong so far, unfiltered.

    A document of the context that has the name of an earlier one is what that one stands in for; so is every document
    that has the name of a sound one of an earlier layer.

    Args:
        readings: Targets first, and in the order of their layers.
        hides: Whether a document that is too unsound to use hides those of the context that have its name, so that
            whoever refers to it is told.
    """
    every = list(readings)
    readings, refused = settle(every)
    nodes: list[Node[Any]] = []
    targets = {r.node.name for r in readings if r.node is not None and r.target}
    broken: dict[str, str] = {}
    nearest: dict[str, int] = {}
    for reading in readings:
        node = reading.node
        if node is None:
            broken.setdefault(reading.name, reading.document.file)
        elif nearest.setdefault(node.name, reading.layer) == reading.layer and (
            reading.target or not ((hides and node.name in broken) or targets & {node.name, *node.metadata.aliases})
        ):
            nodes.append(node)
    if not hides:
        broken = {name: file for name, file in broken.items() if name not in nearest}
    graph, problems = build(nodes, broken)
    found = [_diagnostic(p, r.document) for r in every for p in r.problems]
    found += [
        evolve(_diagnostic(p.problem, p.node.document), see=p.see)
        for p in (*refused, *problems)
        # Whoever mends a broken document need not read of all the others that refer to it.
        if p.node.target or p.problem.code != "TRN203"
    ]
    return graph, found


def _diagnostic(problem: Problem, document: Document) -> Diagnostic:
    text = text_at(document, problem)
    where = Location(document.file, problem.place, problem.path, text)
    see = (Location(document.file, problem.see, problem.path, "the first one"),) if problem.see else ()
    return Diagnostic(problem.code, Severity.ERROR, problem.message, where, problem.hint, see)


def text_at(document: Document, problem: Problem) -> str:
    """The text that stands at a problem, when it is one line: what a caret underlines."""
    span = document.places.get(problem.path)
    if span is None or problem.place is None or not document.text:
        return ""
    if span.key == problem.place and problem.path:
        return _key_text(document, problem.place) or str(problem.path[-1])
    if span.value == problem.place and span.end.line == span.value.line:
        lines = document.text.splitlines()
        if span.value.line <= len(lines):
            return lines[span.value.line - 1][span.value.column - 1 : span.end.column - 1]
    return ""


def _key_text(document: Document, place: Place) -> str:
    """The key at a place as it is written: that of a renamed attribute differs from the last step of its path."""
    lines = document.text.splitlines()
    match = re.match(r"[\w.-]+", lines[place.line - 1][place.column - 1 :]) if place.line <= len(lines) else None
    return match[0] if match else ""
