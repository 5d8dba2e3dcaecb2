"""The graph of all documents: names resolve to typed specs, and a changed spec changes all who use it.

A graph is immutable.  ``graph.replace(name, spec)`` returns another one.
"""

from __future__ import annotations

import functools
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Any, Concatenate, ParamSpec, TypeVar

import attrs
from attrs import field, frozen

from trnspec.diagnostics import Location, did_you_mean, in_plugin
from trnspec.errors import UnknownNameError
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.kinds import BUILTIN
from trnspec.model.ref import Ref, indefinite, target_word
from trnspec.model.reflection import FigureShape, RefShape, figures_of, leaves, value_at
from trnspec.model.source import Source
from trnspec.model.sourced import origin_of
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import Path, Place, Problem

T = TypeVar("T")
P = ParamSpec("P")

ONE = Fraction(1)

_OPERANDS = re.compile(r"([a-z0-9][a-z0-9.-]*):spec\.")
"""The names of other documents in formulas; see :mod:`trnspec.graph.formulas`."""


def cached_by_graph(function: Callable[Concatenate[Graph, P], T]) -> Callable[Concatenate[Graph, P], T]:
    """Cache the results of a function of a graph for the lifetime of the graph, by its other arguments, which are hashable."""
    results: weakref.WeakKeyDictionary[Graph, dict[object, T]] = weakref.WeakKeyDictionary()

    @functools.wraps(function)
    def cached(graph: Graph, /, *args: P.args, **named: P.kwargs) -> T:
        known = results.setdefault(graph, {})
        key = (args, tuple(named.items()))
        if key not in known:
            known[key] = function(graph, *args, **named)
        return known[key]

    return cached


class UnresolvedError(UnknownNameError):
    """A reference that does not resolve. TRN201 or TRN202 reports it, so a rule that raises it is skipped."""


@frozen(eq=False, slots=False)  # cached properties
class Graph:
    """All documents of a run by name.

    Attributes:
        nodes: The nodes by their own names.
        broken: Names of documents that exist but are too unsound to use, with the file of each.
        focus: The names of the documents that findings are to point into; ``None``: any. A rule over the whole graph may
            leave out what has nothing to do with them.
    """

    nodes: Mapping[str, Node[Any]] = field(repr=False)
    broken: Mapping[str, str] = field(factory=dict, repr=False)
    focus: AbstractSet[str] | None = field(default=None, repr=False)
    _of: dict[type, tuple[Node[Any], ...]] = field(factory=dict, init=False, repr=False)
    """The results of :meth:`of`."""

    @functools.cached_property
    def aliases(self) -> Mapping[str, str]:
        """Every name and alias with the name of its document."""
        names = {name: name for name in self.nodes}
        for name, node in self.nodes.items():
            for alias in node.aliases:
                names.setdefault(alias, name)
        return names

    @property
    def units(self) -> UnitTable:
        """The units of queries of these documents: those of trnspec and of the plugins."""
        return next((n.units for n in self if n.units is not UNITS), UNITS)

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes):,} documents>"

    def __iter__(self) -> Iterator[Node[Any]]:
        return iter(self.nodes.values())

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return name in self.aliases

    def __getitem__(self, ref: Ref[T]) -> T:
        """The spec that a reference names.

        Raises:
            UnresolvedError: There is none.
        """
        return self.node(ref).spec

    def node(self, ref: Ref[T]) -> Node[T]:
        """The node that a reference names; ``UnresolvedError`` when there is none."""
        node = self.find(ref)
        if node is None:
            kind = target_word(ref.target)
            raise UnresolvedError(f"no {kind} is named {ref.name!r}")
        return node

    def find(self, ref: Ref[T] | None) -> Node[T] | None:
        """The node that a reference names; ``None`` for no reference, and when there is no node or it is of another kind."""
        return None if ref is None else self.lookup(ref.name, ref.target)

    def lookup(self, name: str, target: type[T] | None = None) -> Node[T] | None:
        """The node of a name or an alias; ``None`` when there is none, or its spec is not of the class ``target``."""
        own = self.aliases.get(name)
        node = None if own is None else self.nodes[own]
        return node if node is None or target is None or isinstance(node.spec, target) else None

    def named(self, name: str) -> Node[Any]:
        """The node of that name or alias.

        Raises:
            UnknownNameError: There is none; the message lists the nearest names.
        """
        if name not in self.aliases:
            if name in self.broken:
                raise UnknownNameError(f"{name!r} cannot be used: {self.broken[name]} has errors", hint=_FIRST)
            hint = in_plugin(name)
            nearest = "" if hint else did_you_mean(name, self.aliases)
            hint = hint or ("" if nearest else "trnspec list shows the names")
            raise UnknownNameError(f"no document is named {name!r}" + (f"; {nearest}" if nearest else ""), hint=hint)
        return self.nodes[self.aliases[name]]

    def of(self, spec: type[T]) -> tuple[Node[T], ...]:
        """The nodes whose spec is of a class, or of a class derived from it, by name."""
        if spec not in self._of:
            self._of[spec] = tuple(
                sorted((n for n in self.nodes.values() if isinstance(n.spec, spec)), key=lambda n: n.name)
            )
        return self._of[spec]

    @functools.cached_property
    def users(self) -> Mapping[str, AbstractSet[str]]:
        """The names of the documents that refer to each document."""
        users: dict[str, set[str]] = {}
        for node in self:
            for used in names_used(node):
                if used in self.aliases:
                    users.setdefault(self.aliases[used], set()).add(node.name)
        return users

    @functools.cached_property
    def _readers(self) -> Mapping[str, AbstractSet[str]]:
        """The names of the documents with formulas that name each document."""
        readers: dict[str, set[str]] = {}
        for node in self:
            for name in _OPERANDS.findall(node.document.text) if ":spec." in node.document.text else ():
                if name in self.aliases:
                    readers.setdefault(self.aliases[name], set()).add(node.name)
        return readers

    def using(self, names: Iterable[str]) -> AbstractSet[str]:
        """The documents of some names, and all that refer to one of them or name it in a formula, also through others."""
        found = set(names)
        waiting = list(found)
        while waiting:
            name = waiting.pop()
            new = (self.users.get(name, set()) | self._readers.get(name, set())) - found
            found |= new
            waiting += new
        return found

    def focused_on(self, names: Iterable[str]) -> Graph:
        """The same graph for rules whose findings are to point into the documents of these names."""
        graph = Graph(self.nodes, self.broken, frozenset(names))
        for known in ("aliases", "users", "_readers", "_of"):
            object.__setattr__(graph, known, getattr(self, known))
        return graph

    @functools.cached_property
    def scope(self) -> AbstractSet[str] | None:
        """The documents of the focus and all that refer to one of them; ``None``: all documents."""
        return None if self.focus is None else self.using(self.focus)

    def focused(self, *specs: type) -> tuple[Node[Any], ...]:
        """The nodes of the focus, or all, whose spec is of one of the classes, or of any class if none is given."""
        return tuple(n for n in self._focused if not specs or n.is_of(*specs))

    @functools.cached_property
    def _focused(self) -> tuple[Node[Any], ...]:
        return tuple(n for n in self if self.focus is None or n.name in self.focus)

    def replace(self, name: str, spec: Any) -> Graph:
        """The same graph with another spec under ``name``; every reference to it sees the new one."""
        node = self.named(name)
        return Graph({**self.nodes, node.name: attrs.evolve(node, spec=spec)}, self.broken)

    def figures(self, node: Node[Any]) -> Mapping[Path, Figure]:
        """Every figure of a node by its path from the top of the document, in the order of the classes."""
        return _figures(node)


@functools.lru_cache(maxsize=1024)  # an editor checks the same documents after every change of one
def _figures(node: Node[Any]) -> Mapping[Path, Figure]:
    return figures_of(node.spec, ("spec",))


def at(node: Node[Any], path: Path, *, key: bool = False, text: str = "") -> Location:
    """The location of a path of a node, with a text for the reader."""
    return Location(node.document.file, node.document.place(path, key=key), path, text)


def figure_at(node: Node[Any], path: Path) -> Any:
    """The value at a path that begins with ``spec``: a figure, a count, a word, or ``None``."""
    return value_at(node.spec, path[1:])


def directed(node: Node[Any], path: Path, direction: str = "per_direction") -> tuple[Path, Fraction]:
    """The place of a bandwidth in one or in both directions, and the factor to it.

    A rate that is not stated is derived from that of the other direction: both directions have the same rate.
    """
    other, factor = ("per_direction", Fraction(2)) if direction == "both" else ("both", Fraction(1, 2))
    rates = value_at(node.spec, path[1:])
    if value_at(rates, (direction,)) is None and value_at(rates, (other,)) is not None:
        return (*path, other), factor
    return (*path, direction), ONE


@frozen
class NodeProblem:
    """A problem that the graph has with a node."""

    node: Node[Any]
    problem: Problem
    see: tuple[Location, ...]


def build(
    nodes: Iterable[Node[Any]],
    broken: Mapping[str, str] = {},
    *,
    targets_only: bool = False,
) -> tuple[Graph, list[NodeProblem]]:
    """The graph of some nodes, and what is wrong with their names and references.

    Args:
        nodes: In order of precedence: of two that share a name the first stays.
        broken: Names that exist but could not be structured; a reference to one of them is not "dangling". Nor is one to
            the name of the file of a document with another name, which is then as broken.
        targets_only: Whether to check the references of targets alone, which is quicker in a large catalog.
    """
    kept: dict[str, Node[Any]] = {}
    problems: list[NodeProblem] = []
    taken: dict[str, tuple[Node[Any], Path]] = {}
    for node in nodes:
        name_path: Path = ("metadata", "name")
        if node.name in taken:
            problems.append(_taken(node, name_path, node.name, *taken[node.name]))
            continue
        kept[node.name] = node
        taken[node.name] = (node, name_path)
    # A name is stronger than an alias, and the alias of a document that is not checked is not to blame.
    for node in sorted(kept.values(), key=lambda n: n.target):
        for index, alias in enumerate(node.aliases):
            path: Path = ("metadata", "aliases", index)
            if alias in taken:
                problems.append(_taken(node, path, alias, *taken[alias]))
            else:
                taken[alias] = (node, path)
    files = {name_of_file(n.document.file): n.document.file for n in kept.values() if n.target}
    graph = Graph(kept, {**{name: file for name, file in files.items() if name not in taken}, **broken})
    for node in kept.values():
        if node.target or not targets_only:
            problems += _references(node, graph)
    used = {p.see[0].file for p in problems if p.problem.code == "TRN203"}
    return Graph(kept, {n: f for n, f in graph.broken.items() if n in broken or f in used}), problems


def name_of_file(file: str) -> str:
    """The name that the document of a file has."""
    return os.path.splitext(os.path.basename(file))[0]  # noqa: PTH119, PTH122  # many files


def _taken(node: Node[Any], path: Path, name: str, other: Node[Any], other_path: Path) -> NodeProblem:
    if node is other:
        message, hint = f"the name {name!r} is given twice", "remove one of them"
    else:
        message, hint = f"the name {name!r} is taken by another document", "names and aliases are unique in a catalog"
    problem = Problem("TRN204", message, node.document.place(path), hint, path)
    return NodeProblem(node, problem, (at(other, other_path, text=f"{other.kind} {other.name}"),))


@functools.lru_cache(maxsize=1024)  # as the figures
def references(node: Node[Any]) -> tuple[tuple[Path, type, Ref[Any]], ...]:
    """Every reference of a node: its path, the class it must lead to, the reference."""
    found: list[tuple[Path, type, Ref[Any]]] = []
    parts: list[tuple[Any, Path]] = [(node.metadata, ("metadata",)), (node.spec, ("spec",))]
    parts += [(claim, node.claim_path(i)) for i, claim in enumerate(node.claims)]
    for value, base in parts:
        for path, shape, leaf in leaves(value, base):
            if isinstance(shape, RefShape):
                found.append((path, shape.target, leaf))
            elif isinstance(shape, FigureShape) and leaf.source is not None:
                found.append(((*path, "source"), Source, leaf.source))
            elif (origin := origin_of(leaf)) is not None and origin.source is not None:
                found.append(((*path, "source"), Source, origin.source))
    return tuple(found)


def names_used(node: Node[Any]) -> tuple[str, ...]:
    """The names that a node refers to, each once."""
    return tuple(dict.fromkeys(ref.name for _, _, ref in references(node)))


def _unknown_hint(kind: str, name: str, known: tuple[Node[Any], ...]) -> str:
    """Hint for a reference to an unknown name."""
    folder = BUILTIN[kind][0] if kind in BUILTIN else known[0].folder if known else ""
    hint = f"write {folder}/{name}.yaml, or correct the name" if folder else f"write a document of kind {kind}"
    return f"{hint}; known: {', '.join(n.name for n in known)}" if 0 < len(known) <= MOST_KNOWN else hint


_FIRST = "fix that document first"

MOST_KNOWN = 6
"""The most names that a hint lists."""


def _references(node: Node[Any], graph: Graph) -> Iterator[NodeProblem]:
    reported: set[tuple[Place | None, str]] = set()
    for path, target, ref in references(node):
        target_node: Node[Any] | None = graph.lookup(ref.name)
        if target_node is not None and target_node.is_of(target):
            continue
        place: Place = node.document.place(path)
        unusable = target_node is None and ref.name in graph.broken
        # A name in a row of a list may be that of several values. The errors of another document are its own.
        if (key := (None if unusable else place, ref.name)) in reported:
            continue
        reported.add(key)
        kind = target_word(target)
        named: tuple[Node[Any], ...] = graph.of(target)
        known = [n.name for n in named]
        see: tuple[Location, ...] = ()
        if unusable:
            code, message = "TRN203", f"{kind} {ref.name!r} cannot be used: its own document has errors"
            hint, see = _FIRST, (Location(graph.broken[ref.name]),)
        elif target_node is None:
            code, message = "TRN201", f"no {kind} is named {ref.name!r}"
            hint = in_plugin(ref.name) or did_you_mean(ref.name, [*known, *(a for n in named for a in n.aliases)])
            hint = hint or _unknown_hint(kind, ref.name, named)
        else:
            code, message = (
                "TRN202",
                f"{ref.name!r} is {indefinite(target_node.kind)}; {indefinite(kind)} is expected here",
            )
            hint = f"known: {', '.join(known[:6])}" if known else ""
            see = (at(target_node, ("kind",), text=target_node.kind),)
        yield NodeProblem(node, Problem(code, message, place, hint, path), see)
