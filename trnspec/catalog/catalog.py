"""What a program asks: a catalog of typed documents whose figures know where they come from.

Everything here is a value: a catalog never changes, two of them live side by side, nothing is kept per process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.catalog.frames import Tabular
from trnspec.catalog.views import (
    Bound,
    ChipView,
    ClusterView,
    CoreView,
    LinkView,
    ModelView,
    Named,
    ServerView,
    SourceView,
    UltraServerView,
    bind,
)
from trnspec.errors import UnknownNameError
from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer

if TYPE_CHECKING:
    import os

    from trnspec.catalog.query.run import Result
    from trnspec.catalog.versions.diff import Differences
    from trnspec.output.exporters.exported import Export


@frozen(eq=False, repr=False)
class Catalog(Tabular):
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
            self._bound[node.name] = bind(self, node)
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

    def export(self, format: str = "json") -> Export:
        """The whole catalog in another format.

        Raises:
            UsageError: There is no such format, or it exports one document at a time.
        """
        from trnspec.output.exporters import export_all

        return export_all(format, self.graph)

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
        from trnspec.catalog.query.run import query

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
        from trnspec.catalog.versions.changes import changed

        node = self.graph.named(name)
        return evolve(self, graph=self.graph.replace(node.name, changed(node, changes)))

    def overlay(self, path: str | os.PathLike[str]) -> Catalog:
        """A catalog with the changes and the additions that a YAML file tells; see ``docs/reference/overlay.md``.

        Raises:
            UsageError: The file is wrong; every mistake is one line of the message, with its place.
        """
        from trnspec.catalog.versions.overlay import apply_overlay
        from trnspec.yaml import read_file

        return evolve(self, graph=apply_overlay(self.graph, read_file(path)))

    def then(self, date: str) -> Catalog:
        """The catalog with what was published by the end of a day, month or year, less what is then ``unknown``.

        Raises:
            UsageError: The date is not one.
        """
        from trnspec.catalog.versions.as_of import as_of

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
        from trnspec.catalog.versions.diff import differences

        told = called if called is not None else (self._told(), other._told())
        return differences(self.graph, other.graph, names, called=told, unknown=(self.unknown, other.unknown))

    def _told(self) -> str:
        told = f"edition {self.edition}" if self.edition else "the working edition"
        return f"{told} as of {self.as_of}" if self.as_of else told
