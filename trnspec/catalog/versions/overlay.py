"""Overlays: a YAML file that changes figures of a catalog and adds documents of one's own.

See ``docs/reference/overlay.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.catalog.versions.changes import attempt, steps
from trnspec.diagnostics import Severity, did_you_mean
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph, build
from trnspec.loading.pipeline import read
from trnspec.plugins.api import API, Kind, Plugin, Registry
from trnspec.plugins.builtin_kinds import KINDS
from trnspec.yaml import Document, Path, Place, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trnspec.model.document import Node

KEYS = ("change", "add")
"""The parts of an overlay."""


def apply_overlay(graph: Graph, document: Document) -> Graph:
    """The graph with the changes of an overlay: what it adds first, then what it changes.

    Args:
        graph: The catalog.
        document: The overlay, as it was read.

    Raises:
        UsageError: The overlay is wrong; each mistake is one line with file, line and column.
    """
    overlay = _Overlay(graph, document)
    made = overlay.apply()
    if overlay.mistakes:
        raise UsageError("\n".join(overlay.lines()))
    return made


@frozen
class _Overlay:
    graph: Graph
    document: Document
    mistakes: list[tuple[Place | None, str]] = field(factory=list)

    def lines(self) -> Iterator[str]:
        for place, message in sorted(self.mistakes, key=lambda m: m[0] or Place(0, 0)):
            where = f":{place.line}:{place.column}" if place is not None else ""
            yield f"{self.document.file}{where}: {message}"

    def apply(self) -> Graph:
        for problem in _serious(self.document.problems):
            self._mistake(problem.place, f"{problem.code} {problem.message}", problem.hint)
        data = self.document.data
        if data is None:
            return self.graph
        for key in data:
            if key not in KEYS:
                hint = did_you_mean(key, KEYS) or "an overlay has the keys change and add"
                self._mistake(self.document.place((key,), key=True), f"{key!r} is not a key of an overlay", hint)
        nodes = dict(self.graph.nodes)
        added = self._added(data.get("add", []))
        nodes |= {node.name: node for node in added}
        changed = self._changed(data.get("change", {}), Graph(nodes, self.graph.broken))
        nodes |= changed
        made, problems = build(nodes.values(), self.graph.broken)
        for each in problems:
            if each.node.document.file == self.document.file:
                self._mistake(each.problem.place, f"{each.problem.code} {each.problem.message}", each.problem.hint)
            elif each.node.name in changed:
                self._mistake(
                    self._place(data, each.node.name, each.problem.path), each.problem.message, each.problem.hint
                )
        return made

    def _mistake(self, place: Place | None, message: str, hint: str = "") -> None:
        # A problem of the reader ends with a full stop, one of a later stage does not.
        self.mistakes.append((place, f"{message.removesuffix('.')}; {hint}" if hint else message))

    def _added(self, items: Any) -> list[Node[Any]]:
        if not isinstance(items, list):
            self._mistake(self.document.place(("add",)), "add is a list of documents", "begin each one with '- '")
            return []
        known = _registry(self.graph)
        found: dict[str, Node[Any]] = {}
        for index, item in enumerate(items):
            path: Path = ("add", index)
            if path in self.document.rejected:
                continue
            if not isinstance(item, dict):
                self._mistake(
                    self.document.place(path), "a document is a mapping", "give it api_version, kind, metadata and spec"
                )
                continue
            reading = read(_part(self.document, path, item), known)
            for problem in reading.problems:
                self._mistake(problem.place, f"{problem.code} {problem.message}", problem.hint)
            node = reading.node
            if node is None:
                continue
            for name in (node.name, *node.metadata.aliases):
                if name in self.graph or name in found:
                    hint = "change what it says under change:" if name in self.graph else "remove one of them"
                    place = self.document.place((*path, "metadata", "name"))
                    self._mistake(place, f"the name {name!r} is taken already", hint)
                    break
            else:
                found[node.name] = node
        return list(found.values())

    def _changed(self, changes: Any, graph: Graph) -> dict[str, Node[Any]]:
        if not isinstance(changes, dict):
            hint = "write NAME: {memory.capacity: 128 GiB}"
            self._mistake(self.document.place(("change",)), "change is a mapping from names to changes", hint)
            return {}
        found: dict[str, Node[Any]] = {}
        for name, wanted in changes.items():
            path: Path = ("change", name)
            if name not in graph:
                hint = did_you_mean(name, graph.aliases) or "add: is for new documents"
                self._mistake(self.document.place(path, key=True), f"no document is named {name!r}", hint)
                continue
            if not isinstance(wanted, dict):
                hint = "write {memory.capacity: 128 GiB}"
                self._mistake(
                    self.document.place(path), f"the changes of {name} are a mapping from paths to values", hint
                )
                continue
            node = graph.named(name)
            made, wrong = attempt(found.get(node.name, node), wanted)
            for each in wrong:
                self._mistake(self.document.place((*path, each.at), key=each.key), each.message)
            found[node.name] = made
        return found

    def _place(self, data: Mapping[str, Any], name: str, path: Path) -> Place:
        """Where the change stands that a problem of a changed document comes from."""
        changes = data.get("change")
        for written, wanted in changes.items() if isinstance(changes, dict) else ():
            if self.graph.aliases.get(written, written) == name:
                ats = [at for at in wanted if steps(at) == path[: len(steps(at))]]
                return self.document.place(("change", written, *ats[:1]))
        return self.document.place(("change",))


def _serious(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems of a text that are more than information, such as that its last line has no end."""
    from trnspec.checks.codes import CODES

    slight = {c.id for c in CODES if c.severity is Severity.INFO}
    return (p for p in problems if p.code not in slight)


def _part(document: Document, path: Path, data: dict[str, Any]) -> Document:
    """A document inside another text, with its own paths and the places of the text."""
    size = len(path)
    places = {at[size:]: span for at, span in document.places.items() if at[:size] == path}
    refused = frozenset(at[size:] for at in document.rejected if at[:size] == path)
    return evolve(document, data=data, places=places, problems=(), rejected=refused)


def _registry(graph: Graph) -> Registry:
    """The kinds that a catalog knows: those of trnspec, and those of the documents in it, whoever brought them."""
    kinds = {k.name: k for k in KINDS}
    for node in graph:
        kinds.setdefault(node.kind, Kind(node.kind, "", type(node.spec)))
    return Registry.of([Plugin(name="overlay", api=API, kinds=tuple(kinds.values()))])
