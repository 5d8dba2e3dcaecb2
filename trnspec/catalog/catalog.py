"""The catalog: typed documents by name, queries, and other versions of it.

A catalog is immutable: changes give another one, and several may be used at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from attrs import evolve, field, frozen, has

from trnspec.catalog.frames import Tabular
from trnspec.catalog.query.run import Result, query
from trnspec.catalog.versions.changes import changed
from trnspec.catalog.versions.diff import Differences, differences
from trnspec.catalog.views import (
    ChipView,
    ClusterView,
    CoreView,
    Documents,
    DocumentView,
    LinkView,
    ModelView,
    PowerView,
    PriceView,
    ServerView,
    SourceView,
    UltraServerView,
    bind,
)
from trnspec.errors import UnknownNameError, UsageError
from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.quotes import Power, Price
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.output.exporters import export_all
from trnspec.output.exporters.exported import Export
from trnspec.text_table import Block, Column, InNotebook, table
from trnspec.yaml import read_file

S = TypeVar("S")


@frozen(eq=False, repr=False)
class Catalog(Tabular, InNotebook):
    """All documents, with their references resolved.

    Attributes:
        graph: The graph of the documents.
        edition: The name of its edition; ``None`` for the working edition.
        as_of: Its date; ``None`` for today.
        unknown: The documents, except sources, for which not enough was published by that date, with the reason.
    """

    graph: Graph
    edition: str | None = None
    as_of: str | None = None
    unknown: Mapping[str, str] = field(factory=dict)
    _views: dict[str, DocumentView] = field(factory=dict, init=False)
    _arrow_tables: dict[str, Any] = field(factory=dict, init=False)

    def __getitem__(self, name: str) -> DocumentView:
        """The document of that name or alias, of any kind; ``UnknownNameError`` lists the nearest names."""
        if name in self.unknown:
            raise UnknownNameError(f"{name} was not known by {self.as_of}: {self.unknown[name]}")
        node = self.graph.named(name)
        if node.name not in self._views:
            self._views[node.name] = bind(self, node)
        return self._views[node.name]

    def __iter__(self) -> Iterator[DocumentView]:
        return (self[n.name] for n in sorted(self.graph, key=lambda n: (n.kind, n.name)))

    def __len__(self) -> int:
        return len(self.graph)

    def __contains__(self, name: object) -> bool:
        return name in self.graph

    def _sections(self) -> Iterator[tuple[str, Block]]:
        names: dict[str, list[str]] = {}
        for node in self.graph:
            names.setdefault(node.kind, []).append(node.name)
        rows = [
            (kind, len(found), ", ".join(sorted(found)[:8]) + (", ..." if len(found) > 8 else ""))
            for kind, found in sorted(names.items())
        ]
        yield repr(self)[1:-1], table(["kind", Column("documents", right=True), "names"], rows)

    def __repr__(self) -> str:
        version = f"edition {self.edition}" if self.edition else "working edition"
        date = f", as of {self.as_of}" if self.as_of else ""
        return f"<Catalog: {version}{date}, {len(self)} documents>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.graph.aliases)

    def export(self, format: str = "json") -> Export:
        """The whole catalog in another format.

        Raises:
            UsageError: There is no such format, or it exports one document at a time.
        """
        return export_all(format, self.graph)

    @property
    def cores(self) -> Documents[CoreView]:
        """The cores by name."""
        return Documents(self, Core, "core")

    @property
    def chips(self) -> Documents[ChipView]:
        """The chips by name."""
        return Documents(self, Chip, "chip")

    @property
    def links(self) -> Documents[LinkView]:
        """The links by name."""
        return Documents(self, Link, "link")

    @property
    def servers(self) -> Documents[ServerView]:
        """The servers by name."""
        return Documents(self, Server, "server")

    @property
    def ultraservers(self) -> Documents[UltraServerView]:
        """The UltraServers by name."""
        return Documents(self, UltraServer, "UltraServer")

    @property
    def clusters(self) -> Documents[ClusterView]:
        """The clusters by name."""
        return Documents(self, Cluster, "cluster")

    @property
    def prices(self) -> Documents[PriceView]:
        """The prices by name; ``cat.servers["trn1.32xlarge"].prices()`` are those of a server."""
        return Documents(self, Price, "price")

    @property
    def power(self) -> Documents[PowerView]:
        """The documents of power by name; ``cat.chips["h100-sxm"].draws()`` are those of a chip."""
        return Documents(self, Power, "power")

    @property
    def models(self) -> Documents[ModelView]:
        """The models by name."""
        return Documents(self, Model, "model")

    @property
    def sources(self) -> Documents[SourceView]:
        """The sources by name."""
        return Documents(self, Source, "source")

    def of(self, spec: type[S]) -> Documents[S]:
        """The documents of a kind by name, typed by the class of the kind: ``cat.of(Storage)["s3"].capacity``.

        Args:
            spec: The class of a kind, such as one that a plugin registers; documents of derived kinds are included.

        Raises:
            UsageError: It is not the class of a kind.
        """
        if not (isinstance(spec, type) and has(spec)):
            raise UsageError(
                f"{spec!r} is not the class of a kind", hint="pass a class, such as trnspec.model.chip.Chip"
            )
        return Documents(self, spec, spec.__name__)

    def query(self, text: str, *, columns: Iterable[str] = (), sort: str | Iterable[str] = ()) -> Result[DocumentView]:
        """The documents that fulfil a condition: ``cat.query("server where memory.capacity > 1 TiB")``.

        ``cat.servers.where("memory.capacity > 1 TiB")`` gives the same documents, typed as views of servers.

        Args:
            text: ``KIND [where CONDITION]``; the language is documented in ``docs/reference/query.md``.
            columns: The columns of the result, such as ``peak.dense.bf16 / memory.bandwidth``; by default the name and
                the compared paths.
            sort: The sort keys; ``-memory.capacity`` sorts in descending order.

        Raises:
            QueryError: The query, a column or a sort key is invalid; the message marks the position.
        """
        by = [sort] if isinstance(sort, str) else sort
        return query(self.graph, text, lambda n: self[n.name], columns=columns, sort=by, absent=self.unknown)

    def replace(self, name: str, changes: Mapping[str, Any]) -> Catalog:
        """A catalog with other values in one document; totals and checks use the new values.

        Args:
            name: The document.
            changes: Values by dotted path, written as in YAML: ``{"memory.capacity": "128 GiB", "chips.count": 8}``.

        Raises:
            UnknownNameError: There is no such document.
            UsageError: A change is not valid for the kind; the message names it.
        """
        node = self.graph.named(name)
        return evolve(self, graph=self.graph.replace(node.name, changed(node, changes)))

    def overlay(self, path: str | os.PathLike[str]) -> Catalog:
        """A catalog with the changes and additions of a YAML file applied; see ``docs/reference/overlay.md``.

        Raises:
            UsageError: The file is invalid; the message has one line for each error, with its position.
        """
        from trnspec.catalog.versions.overlay import apply_overlay

        return evolve(self, graph=apply_overlay(self.graph, read_file(path)))

    def then(self, date: str) -> Catalog:
        """The catalog as of a date: what was published by the end of a day, month or year.

        Documents for which not enough was published by then are in ``unknown``. See ``docs/reference/dates.md``.

        Raises:
            UsageError: ``date`` is not a date.
        """
        from trnspec.catalog.versions.as_of import as_of

        graph, unknown = as_of(self.graph, date)
        return evolve(self, graph=graph, as_of=date, unknown={**self.unknown, **unknown})

    def diff(self, other: Catalog, *names: str, called: tuple[str, str] | None = None) -> Differences:
        """The differences to another catalog: figures with both sources and the reason, counts, texts, documents.

        Args:
            other: The other catalog, usually the newer one.
            *names: The documents to compare; all if omitted.
            called: Labels for the two catalogs.

        Raises:
            UsageError: ``other`` is not a catalog.
            UnknownNameError: Neither catalog has a document of a name.
        """
        if not isinstance(other, Catalog):
            raise UsageError(f"{other!r} is not a catalog", hint="pass the result of trnspec.load(edition=...)")
        labels = called if called is not None else (self._label(), other._label())
        return differences(self.graph, other.graph, names, called=labels, unknown=(self.unknown, other.unknown))

    def _label(self) -> str:
        version = f"edition {self.edition}" if self.edition else "the working edition"
        return f"{version} as of {self.as_of}" if self.as_of else version
