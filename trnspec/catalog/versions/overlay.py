"""Overlays: a YAML file that changes figures of a catalog and adds documents.

See ``docs/reference/overlay.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, field, frozen

from trnspec.catalog.versions.changes import attempt, steps
from trnspec.checks.codes import CODES
from trnspec.diagnostics import Severity, did_you_mean
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph, build
from trnspec.loading.pipeline import load_document
from trnspec.model.document import Node
from trnspec.plugins.api import API, Kind, Plugin, Registry
from trnspec.plugins.builtin_kinds import KINDS
from trnspec.yaml import Document, Path, Place, Problem

KEYS = ("change", "add")
"""The parts of an overlay."""


def apply_overlay(graph: Graph, document: Document) -> Graph:
    """The graph with an overlay applied: its additions first, then its changes.

    Raises:
        UsageError: The overlay is invalid; the message has one line for each error, with file, line and column.
    """
    overlay = _Overlay(graph, document)
    result = overlay.apply()
    if overlay.errors:
        raise UsageError("\n".join(overlay.lines()))
    return result


@frozen
class _Overlay:
    graph: Graph
    document: Document
    errors: list[tuple[Place | None, str]] = field(factory=list)

    def lines(self) -> Iterator[str]:
        for place, message in sorted(self.errors, key=lambda e: e[0] or Place(0, 0)):
            where = f":{place.line}:{place.column}" if place is not None else ""
            yield f"{self.document.file}{where}: {message}"

    def apply(self) -> Graph:
        for problem in _serious(self.document.problems):
            self._error(problem.place, f"{problem.code} {problem.message}", problem.hint)
        data = self.document.data
        if data is None:
            return self.graph
        for key in data:
            if key not in KEYS:
                hint = did_you_mean(key, KEYS) or "an overlay has the keys change and add"
                self._error(self.document.place((key,), key=True), f"{key!r} is not a key of an overlay", hint)
        nodes = dict(self.graph.nodes)
        added = self._added(data.get("add", []))
        nodes |= {node.name: node for node in added}
        changed = self._changed(data.get("change", {}), Graph(nodes, self.graph.broken))
        nodes |= changed
        result, problems = build(nodes.values(), self.graph.broken)
        for node_problem in problems:
            problem = node_problem.problem
            if node_problem.node.document.file == self.document.file:
                self._error(problem.place, f"{problem.code} {problem.message}", problem.hint)
            elif node_problem.node.name in changed:
                self._error(self._place(data, node_problem.node, problem.path), problem.message, problem.hint)
        return result

    def _error(self, place: Place | None, message: str, hint: str = "") -> None:
        # The messages of the YAML reader end with a full stop, those of later stages do not.
        self.errors.append((place, f"{message.removesuffix('.')}; {hint}" if hint else message))

    def _added(self, items: Any) -> list[Node[Any]]:
        if not isinstance(items, list):
            self._error(self.document.place(("add",)), "add is a list of documents", "start each document with '- '")
            return []
        known = _registry(self.graph)
        added: dict[str, Node[Any]] = {}
        for index, item in enumerate(items):
            path: Path = ("add", index)
            if path in self.document.rejected:
                continue
            if not isinstance(item, dict):
                self._error(
                    self.document.place(path), "a document is a mapping", "give it api_version, kind, metadata and spec"
                )
                continue
            reading = load_document(_part(self.document, path, item), known)
            for problem in _serious(p for each in (reading, *reading.parts) for p in each.problems):
                self._error(problem.place, f"{problem.code} {problem.message}", problem.hint)
            for node in [part.node for part in reading.parts or (reading,) if part.node is not None]:
                for name in (node.name, *node.metadata.aliases):
                    if name in self.graph or name in added:
                        hint = "change the document under change:" if name in self.graph else "remove one of them"
                        place = self.document.place((*path, "metadata", "name"))
                        self._error(place, f"the name {name!r} is taken already", hint)
                        break
                else:
                    added[node.name] = node
        return list(added.values())

    def _changed(self, changes: Any, graph: Graph) -> dict[str, Node[Any]]:
        if not isinstance(changes, dict):
            hint = "write NAME: {memory.capacity: 128 GiB}"
            self._error(self.document.place(("change",)), "change is a mapping from names to changes", hint)
            return {}
        changed: dict[str, Node[Any]] = {}
        for name, values in changes.items():
            path: Path = ("change", name)
            if name not in graph:
                hint = did_you_mean(name, graph.aliases) or "new documents belong under add:"
                self._error(self.document.place(path, key=True), f"no document is named {name!r}", hint)
                continue
            if not isinstance(values, dict):
                hint = "write {memory.capacity: 128 GiB}"
                self._error(
                    self.document.place(path), f"the changes of {name} are a mapping from paths to values", hint
                )
                continue
            node = graph.named(name)
            if node.name in changed:
                message = f"{name} is {node.name}, which is changed above"
                self._error(self.document.place(path, key=True), message, "write one mapping for it")
                continue
            changed[node.name], errors = attempt(node, values)
            for error in errors:
                self._error(self.document.place((*path, error.at), key=error.key), error.message)
        return changed

    def _place(self, data: Mapping[str, Any], node: Node[Any], path: Path) -> Place:
        """The position of the change that causes a problem of a changed document."""
        changes, spec = data.get("change"), type(node.spec)
        for alias, values in changes.items() if isinstance(changes, dict) else ():
            if self.graph.aliases.get(alias, alias) == node.name:
                paths = [at for at in values if steps(at, spec) == path[: len(steps(at, spec))]]
                return self.document.place(("change", alias, *paths[:1]))
        return self.document.place(("change",))


def _serious(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems of a text that are errors or warnings, not those such as a missing newline at its end."""
    informational = {c.id for c in CODES if c.severity is Severity.INFO}
    return (p for p in problems if p.code not in informational)


def _part(document: Document, path: Path, data: dict[str, Any]) -> Document:
    """A document inside another text, with its own paths and the positions in that text."""
    size = len(path)
    places = document.places.renamed((at[size:], at) for at in document.places if at[:size] == path)
    refused = frozenset(at[size:] for at in document.rejected if at[:size] == path)
    return evolve(document, data=data, places=places, problems=(), rejected=refused)


def _registry(graph: Graph) -> Registry:
    """The built-in kinds, and the kinds of the documents of a catalog, which plugins may have added."""
    kinds = {k.name: k for k in KINDS}
    for node in graph:
        kinds.setdefault(node.kind, Kind(node.kind, "", type(node.spec)))
    return Registry.of([Plugin(name="overlay", api=API, kinds=tuple(kinds.values()))])
