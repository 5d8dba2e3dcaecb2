"""What a program asks: a catalog of typed documents whose figures know where they come from.

Everything here is a value: a catalog never changes, two of them live side by side, nothing is kept per process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
from attrs import evolve, field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError, UsageError
from trnspec.exporters.asking import AllExport, OneExport
from trnspec.frames import Tabular
from trnspec.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.server import Server
from trnspec.model.shape import dotted
from trnspec.model.source import Source
from trnspec.model.transformer import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.stated import Rival, Stated, figures, rivals, with_places
from trnspec.totals import chips, total

if TYPE_CHECKING:
    import os

    from trnspec.amount import Amount
    from trnspec.differences import Differences
    from trnspec.query import Result
    from trnspec.topology.shapes import Shape as Fabric

T = TypeVar("T")


@frozen(kw_only=True, eq=False, slots=False)
class Bound(OneExport):
    """A document of a catalog: what it says, and what follows from its parts.

    Attributes:
        node: The document itself.
        catalog: The catalog it belongs to.
    """

    node: Node[Any] = field(repr=False)
    catalog: Catalog = field(repr=False)

    @property
    def name(self) -> str:
        """The name others refer to."""
        return self.node.name

    @property
    def title(self) -> str:
        """What people call it."""
        return self.node.metadata.title

    @property
    def kind(self) -> str:
        """The name of its kind."""
        return self.node.kind

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names."""
        return self.node.metadata.aliases

    @property
    def claims(self) -> Mapping[str, tuple[Rival, ...]]:
        """What others say, by the dotted path they speak of, also where nothing is adopted."""
        return {dotted(path[1:]): found for path, found in rivals(self.catalog.graph, self.node).items()}

    @property
    def figures(self) -> Mapping[str, Stated]:
        """Every figure by its dotted path, in the order of the classes."""
        return figures(self.catalog.graph, self.node)

    def figure(self, path: str) -> Stated:
        """The figure at a dotted path such as ``memory.bandwidth``.

        Raises:
            UnknownNameError: There is none; the message lists the nearest. It is never taken from elsewhere.
        """
        found = self.figures
        if path not in found:
            hint = did_you_mean(path, found)
            raise UnknownNameError(f"{self.name} states no {path}" + (f"; {hint}" if hint else ""))
        return found[path]

    def total(self, path: str) -> Amount:
        """The figure of a chip times the chips of this system: computed from the parts, never copied from a page.

        Args:
            path: A path of a chip, such as ``peak.dense.bf16`` or ``memory.capacity``.

        Raises:
            UnknownNameError: The chip states no such figure.
            UsageError: This document has no chips.
        """
        found = chips(self.catalog.graph, self.node)
        if found is None:
            raise UsageError(f"{self.kind} {self.name} has no chips to add up")
        made = total(self.catalog.graph, self.node, ("spec", *path.split(".")))
        if made is None:
            Bound.figure(self.catalog[found[1].name], path)  # names what is missing
            raise UsageError(f"{path} of {found[1].name} is not a figure")
        return made.figure * made.count

    @property
    def chip_view(self) -> ChipView:
        """The chip it is built of; ``UsageError`` where it is built of none."""
        found = chips(self.catalog.graph, self.node)
        if found is None:
            raise UsageError(f"{self.kind} {self.name} has no chips")
        return self.catalog.chips[found[1].name]

    @property
    def chip_count(self) -> int:
        """How many chips it has, all servers together; 0 where it has none."""
        return (chips(self.catalog.graph, self.node) or (0,))[0]

    @property
    def topology(self) -> Fabric:
        """The fabric among its chips as a graph with measures: ``.diameter``, ``.bisection()``.

        Raises:
            UsageError: None is declared.
        """
        from trnspec.fabrics import fabric

        found = fabric(self.catalog.graph, self.node)
        if found is None:
            raise UsageError(f"{self.kind} {self.name} declares no topology")
        return found


@frozen(kw_only=True, eq=False, slots=False)
class CoreView(Bound, Core):
    """A core of a catalog."""


@frozen(kw_only=True, eq=False, slots=False)
class ChipView(Bound, Chip):
    """A chip of a catalog."""


@frozen(kw_only=True, eq=False, slots=False)
class LinkView(Bound, Link):
    """A link of a catalog."""


@frozen(kw_only=True, eq=False, slots=False)
class ServerView(Bound, Server):
    """A server of a catalog."""


@frozen(kw_only=True, eq=False, slots=False)
class UltraServerView(Bound, UltraServer):
    """An UltraServer of a catalog."""


@frozen(kw_only=True, eq=False, slots=False)
class ClusterView(Bound, Cluster):
    """A cluster of a catalog."""


@frozen(kw_only=True, eq=False, slots=False)
class ModelView(Bound, Model):
    """A model of a catalog."""


@frozen(kw_only=True, eq=False, slots=False)
class SourceView(Bound, Source):
    """A source of a catalog."""


V = TypeVar("V", bound=Bound)


class Named(Mapping[str, V], Generic[V]):
    """The documents of one kind by name; an alias finds its document, an unknown name lists the nearest."""

    def __init__(self, catalog: Catalog, spec: type, kind: str) -> None:
        self._catalog = catalog
        self._kind = kind
        self._nodes: tuple[Node[Any], ...] = catalog.graph.of(spec)
        self._names = {a: n.name for n in self._nodes for a in (n.name, *n.metadata.aliases)}

    def __getitem__(self, name: str) -> V:
        if name not in self._names:
            if name in self._catalog.unknown:
                return self._catalog[name]  # type: ignore[no-any-return]  # it raises, and says why
            hint = did_you_mean(name, self._names)
            raise UnknownNameError(f"no {self._kind} is named {name!r}" + (f"; {hint}" if hint else ""))
        return self._catalog[name]  # type: ignore[no-any-return]  # the node is of this kind

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return (n.name for n in self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._kind}s: {', '.join(self)}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._names)


@frozen(eq=False, repr=False)
class Catalog(Tabular, AllExport):
    """All documents, linked.

    Attributes:
        graph: The graph of the documents.
        edition: The name of the edition it was read from; ``None`` for the working edition.
        as_of: The date it answers for; ``None`` for today.
        unknown: Documents, sources apart, that it lacks because not enough was published by that date, with the reason.
    """

    graph: Graph
    edition: str | None = None
    as_of: str | None = None
    unknown: Mapping[str, str] = field(factory=dict)
    _bound: dict[str, Bound] = field(factory=dict, init=False)

    def __getitem__(self, name: str) -> Any:
        """The document of that name or alias, whatever its kind; ``UnknownNameError`` lists the nearest names."""
        if name in self.unknown:
            raise UnknownNameError(f"{name} was not known by {self.as_of}: {self.unknown[name]}")
        node = self.graph.named(name)
        if node.name not in self._bound:
            self._bound[node.name] = _bind(self, node)
        return self._bound[node.name]

    def __iter__(self) -> Iterator[Bound]:
        return (self[n.name] for n in sorted(self.graph, key=lambda n: (n.kind, n.name)))

    def __len__(self) -> int:
        return len(self.graph)

    def __contains__(self, name: object) -> bool:
        return name in self.graph

    def __repr__(self) -> str:
        told = [f"edition {self.edition}" if self.edition else "working edition"]
        told += [f"as of {self.as_of}"] if self.as_of else []
        return f"<Catalog: {', '.join(told)}, {len(self)} documents>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.graph.aliases)

    @property
    def cores(self) -> Named[CoreView]:
        """The cores by name."""
        return Named(self, Core, "core")

    @property
    def chips(self) -> Named[ChipView]:
        """The chips by name."""
        return Named(self, Chip, "chip")

    @property
    def links(self) -> Named[LinkView]:
        """The links by name."""
        return Named(self, Link, "link")

    @property
    def servers(self) -> Named[ServerView]:
        """The servers by name."""
        return Named(self, Server, "server")

    @property
    def ultraservers(self) -> Named[UltraServerView]:
        """The UltraServers by name."""
        return Named(self, UltraServer, "UltraServer")

    @property
    def clusters(self) -> Named[ClusterView]:
        """The clusters by name."""
        return Named(self, Cluster, "cluster")

    @property
    def models(self) -> Named[ModelView]:
        """The models by name."""
        return Named(self, Model, "model")

    @property
    def sources(self) -> Named[SourceView]:
        """The sources by name."""
        return Named(self, Source, "source")

    def query(self, text: str, *, columns: Iterable[str] = (), sort: str | Iterable[str] = ()) -> Result[Bound]:
        """The documents that fulfil a condition: ``cat.query("server where memory.capacity > 1 TiB")``.

        Args:
            text: ``KIND [where CONDITION]``; ``docs/reference/query.md`` tells the language.
            columns: What the result shows of each: ``peak.dense.bf16 / memory.bandwidth``; the name and what is
                compared when left out.
            sort: What to sort by; ``-memory.capacity`` begins with the most.

        Raises:
            QueryError: The query is wrong; the message marks the place.
        """
        from trnspec.query import query

        by = [sort] if isinstance(sort, str) else sort
        return query(self.graph, text, lambda n: self[n.name], columns=columns, sort=by, absent=self.unknown)

    def replace(self, name: str, changes: Mapping[str, Any]) -> Catalog:
        """A catalog in which some figures or counts of one document are others; totals and checks follow.

        Args:
            name: The document.
            changes: Values by dotted path, written as in YAML: ``{"memory.capacity": "128 GiB", "chips.count": 8}``.

        Raises:
            UnknownNameError: There is no such document.
            UsageError: A change does not fit the kind; the message says which.
        """
        from trnspec.whatif import changed

        node = self.graph.named(name)
        return evolve(self, graph=self.graph.replace(node.name, changed(node, changes)))

    def overlay(self, path: str | os.PathLike[str]) -> Catalog:
        """A catalog with the changes and the additions that a YAML file tells; see ``docs/reference/overlay.md``.

        Raises:
            UsageError: The file is wrong; every mistake is one line of the message, with its place.
        """
        from trnspec.overlay import laid_over
        from trnspec.source import read_file

        return evolve(self, graph=laid_over(self.graph, read_file(path)))

    def then(self, date: str) -> Catalog:
        """The catalog with what was published by the end of a day, month or year, less what is then ``unknown``.

        Raises:
            UsageError: The date is not one.
        """
        from trnspec.dated import as_of

        graph, unknown = as_of(self.graph, date)
        return evolve(self, graph=graph, as_of=date, unknown={**self.unknown, **unknown})

    def diff(self, other: Catalog, *names: str, called: tuple[str, str] | None = None) -> Differences:
        """What differs in another catalog: figures with both sources and the reason, counts, words, documents.

        Args:
            other: The newer one, usually.
            *names: Only these documents; all when there are none.
            called: What to call the two.

        Raises:
            UnknownNameError: Neither catalog has a document of a name.
        """
        from trnspec.differences import differences

        told = called if called is not None else (self._told(), other._told())
        return differences(self.graph, other.graph, names, called=told, unknown=(self.unknown, other.unknown))

    def _told(self) -> str:
        told = f"edition {self.edition}" if self.edition else "the working edition"
        return f"{told} as of {self.as_of}" if self.as_of else told


VIEWS: dict[type, type[Bound]] = {
    view.__bases__[1]: view
    for view in (CoreView, ChipView, LinkView, ServerView, UltraServerView, ClusterView, ModelView, SourceView)
}


@functools.cache
def _view_of(spec: Any) -> type[Bound]:
    """The view class of a spec; for a class that a plugin derived from a known one, one that has its fields too."""
    if spec in VIEWS:
        return VIEWS[spec]
    base = next((VIEWS[c] for c in spec.__mro__ if c in VIEWS), Bound)
    made: type[Bound] = attrs.make_class(
        f"{spec.__name__}View", [], bases=(base, spec), frozen=True, kw_only=True, eq=False, slots=False
    )
    return made


def _bind(catalog: Catalog, node: Node[Any]) -> Bound:
    spec: Any = type(node.spec)
    return _view_of(spec)(**with_places(catalog.graph, node), node=node, catalog=catalog)
