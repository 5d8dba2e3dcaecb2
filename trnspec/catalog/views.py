"""Typed views of the documents of a catalog, whose figures have provenance.

Views are immutable, as catalogs are: several catalogs may be used at the same time, and none is global.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
from attrs import field, frozen

from trnspec.catalog.query.run import Result
from trnspec.diagnostics import unknown_name
from trnspec.errors import UsageError
from trnspec.graph.composition import chip_count, chips, members
from trnspec.graph.facts import facts
from trnspec.graph.provenance import ConflictingValue, Stated, conflicting, figures, with_provenance
from trnspec.graph.quotes import Draw, Quote, draws, quotes
from trnspec.graph.totals import sums, total
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.parts import PartCount
from trnspec.model.quotes import Power, PowerType, Price, PriceType
from trnspec.model.reflection import dotted
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.output.exporters import export
from trnspec.output.exporters.exported import Export
from trnspec.quantities.amount import Amount
from trnspec.short_repr import abbreviated
from trnspec.text_table import Block, Column, InNotebook, table
from trnspec.topology.shapes import Shape as Topology

if TYPE_CHECKING:  # catalog imports this module
    from trnspec.catalog.catalog import Catalog


@frozen(kw_only=True, eq=False, slots=False)
class DocumentView(InNotebook):
    """A document of a catalog: its metadata, its figures with provenance, and totals over its parts.

    The view of a chip also has the attributes of :class:`~trnspec.model.chip.Chip`, and so on for each kind.

    Attributes:
        node: The document.
        catalog: The catalog it belongs to.
    """

    node: Node[Any] = field(repr=False)
    catalog: Catalog = field(repr=False)

    def __repr__(self) -> str:
        return abbreviated(f"<{self.kind} {self.name}: {self.title}>")

    def _sections(self) -> Iterator[tuple[str, Block]]:
        graph = self.catalog.graph
        value, interval = Column("value", right=True), Column("interval", right=True)
        rows = [
            (
                fact.label,
                fact.text,
                fact.interval_text,
                fact.cited or fact.reason,
                fact.as_of,
                "; ".join(f"{c.says}, {c.verdict} ({c.source})" for c in fact.conflicting),
            )
            for fact in facts(graph, self.node)
        ]
        title = f"{self.kind} {self.name}: {self.title}"
        yield title, table(["figure", value, interval, "source", "date", "conflicting values"], rows)
        totals = [(each.at, each.text, each.interval_text, each.parts) for each in sums(graph, self.node)]
        if totals:
            yield "Totals, computed from the parts", table(["total", value, interval, "sum"], totals)

    @property
    def name(self) -> str:
        """The name that other documents refer to."""
        return self.node.name

    @property
    def title(self) -> str:
        """The title."""
        return self.node.metadata.title

    @property
    def kind(self) -> str:
        """The name of its kind: ``Chip``."""
        return self.node.kind

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names."""
        return self.node.metadata.aliases

    @property
    def claims(self) -> Mapping[str, tuple[ConflictingValue, ...]]:
        """The values that other sources give, by dotted path, including paths without an adopted value."""
        return {dotted(path[1:]): values for path, values in conflicting(self.catalog.graph, self.node).items()}

    @property
    def figures(self) -> Mapping[str, Stated]:
        """Figures by their dotted paths, in the order of the fields of the class."""
        return figures(self.catalog.graph, self.node)

    def figure(self, path: str) -> Stated:
        """The figure at a dotted path such as ``memory.bandwidth``.

        Raises:
            UnknownNameError: The document states none; the message lists the nearest paths.
        """
        stated = self.figures
        if path not in stated:
            raise unknown_name(f"{self.name} states no {path}", path, stated)
        return stated[path]

    def total(self, path: str) -> Amount:
        """A figure of the chip times the number of chips of this system, computed from the parts.

        Args:
            path: A path of a chip, such as ``peak.dense.bf16`` or ``memory.capacity``.

        Raises:
            UnknownNameError: The chip states no such figure.
            UsageError: This document has no chips.
        """
        whole = total(self.catalog.graph, self.node, ("spec", *path.split(".")))
        if whole is None:
            raise self._no_total(path)
        return whole.amount

    def _no_total(self, path: str) -> UsageError:
        graph = self.catalog.graph
        counted = members(graph, self.node, Chip)
        if counted is None:
            return UsageError(f"the parts of {self.kind} {self.name}, or their number, are not known")
        if not counted:
            return UsageError(f"{self.kind} {self.name} has no chips to add up")
        for _, chip in counted:
            DocumentView.figure(self.catalog[chip.name], path)  # raises if there is no such figure
        return UsageError(f"{path} of {', '.join(chip.name for _, chip in counted)} does not add up")

    def export(self, format: str, *, use: Mapping[str, str] | None = None) -> Export:
        """The document in another format: ``cat["trn2-ultraserver"].export("svg").text``.

        Args:
            format: A format of ``trnspec export``, such as ``json``, ``svg`` or ``infragraph``, or that of a plugin.
            use: The figures to use in place of unknown ones, by field of the export: ``{"vector.tflops":
                "peak.dense.fp32"}``. Each becomes an assumption.

        Raises:
            UsageError: There is no such format, it exports whole catalogs only, or a figure of ``use`` is not known or
                not needed.
            ExportError: The format needs a figure that this document does not have; the message names it.
        """
        return export(format, self.node, self.catalog.graph, use=use)

    @property
    def chip_view(self) -> ChipView:
        """The chip it is built of; ``UsageError`` if it is built of none."""
        parts = chips(self.catalog.graph, self.node)
        if parts is None:
            raise UsageError(f"{self.kind} {self.name} has no chips")
        return self.catalog.chips[parts[1].name]

    @property
    def chip_count(self) -> PartCount:
        """The number of chips of all its parts; 0 for a document without parts, a range where only a bound is known.

        Raises:
            UsageError: The number is not known.
        """
        count = chip_count(self.catalog.graph, self.node)
        if count is None:
            raise UsageError(f"the number of chips of {self.kind} {self.name} is not known")
        return count

    def draws(self, type: PowerType | None = None) -> tuple[Draw, ...]:
        """The known powers of a chip or a system, by type.

        Args:
            type: Only powers of this type, such as ``tdp``.
        """
        return draws(self.catalog.graph, self.node, type)

    @property
    def topology(self) -> Topology:
        """The fabric among its chips as a graph with measures: ``.diameter``, ``.bisection()``.

        Raises:
            UsageError: None is declared.
        """
        from trnspec.graph.fabrics import fabric

        declared = fabric(self.catalog.graph, self.node)
        if declared is None:
            raise UsageError(f"{self.kind} {self.name} declares no topology")
        return declared


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class CoreView(DocumentView, Core):
    """A core of a catalog."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class _ExactlyCounted(DocumentView):
    """A document of a kind whose number of chips is always exact."""

    @property
    def chip_count(self) -> int:
        """The number of chips of all its parts.

        Raises:
            UsageError: The number is not known.
        """
        count = super().chip_count
        if not isinstance(count, int):
            raise UsageError(f"the number of chips of {self.kind} {self.name} is not known exactly: {count}")
        return count


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class ChipView(_ExactlyCounted, Chip):
    """A chip of a catalog."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class LinkView(DocumentView, Link):
    """A link of a catalog."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class ServerView(_ExactlyCounted, Server):
    """A server of a catalog."""

    def prices(self, type: PriceType | None = None, region: str | None = None) -> tuple[Quote, ...]:
        """The known prices, by type; within a type first the one that evaluators use.

        Args:
            type: Only prices of this type, such as ``on-demand``.
            region: Only prices of this region or availability zone, such as ``us-east-2``.
        """
        return quotes(self.catalog.graph, self.node, type, region)


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class UltraServerView(_ExactlyCounted, UltraServer):
    """An UltraServer of a catalog."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class ClusterView(DocumentView, Cluster):
    """A cluster of a catalog."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class PriceView(DocumentView, Price):
    """The prices of a server for one type of purchase."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class PowerView(DocumentView, Power):
    """The power of a chip or a system, of one type."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class ModelView(DocumentView, Model):
    """A model of a catalog."""


@frozen(kw_only=True, eq=False, slots=False, repr=False)
class SourceView(DocumentView, Source):
    """A source of a catalog."""


V_co = TypeVar("V_co", covariant=True)


class Documents(Mapping[str, V_co], Generic[V_co]):
    """The documents of one kind by name; an alias finds its document, an unknown name lists the nearest."""

    def __init__(self, catalog: Catalog, spec: type, label: str) -> None:
        self._catalog = catalog
        self._label = label
        self._spec = spec
        self._nodes: tuple[Node[Any], ...] = catalog.graph.of(spec)
        self._names = {alias: n.name for n in self._nodes for alias in (n.name, *n.metadata.aliases)}

    def __getitem__(self, name: str) -> V_co:
        # A name that is unknown as of the date of the catalog raises there, with the reason.
        if name in self._names or name in self._catalog.unknown:
            view: Any = self._catalog[name]
            return view  # type: ignore[no-any-return]  # the view has the fields of the spec
        raise unknown_name(f"no {self._label} is named {name!r}", name, self._names)

    def where(self, condition: str, *, columns: Iterable[str] = (), sort: str | Iterable[str] = ()) -> Result[V_co]:
        """The documents of this kind that fulfil a condition: ``cat.chips.where("memory.capacity > 90 GiB")``.

        Like :meth:`Catalog.query <trnspec.catalog.catalog.Catalog.query>`, with rows of a known type.

        Raises:
            QueryError: The condition, a column or a sort key is invalid; the message marks the position.
        """
        kind = next((n.kind for n in self._nodes if type(n.spec) is self._spec), self._spec.__name__)
        result: Any = self._catalog.query(f"{kind} where {condition}", columns=columns, sort=sort)
        return result  # type: ignore[no-any-return]  # the views have the fields of the spec

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return (n.name for n in self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return abbreviated(f"<{len(self)} {self._label}s: {', '.join(self)}>")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._names)


VIEWS: dict[type, type[DocumentView]] = {
    view.__bases__[1]: view
    for view in (
        CoreView,
        ChipView,
        LinkView,
        ServerView,
        UltraServerView,
        ClusterView,
        PriceView,
        PowerView,
        ModelView,
        SourceView,
    )
}


@functools.cache
def _view_of(spec: Any) -> type[DocumentView]:
    """The view class of a spec; a class that a plugin derives from a built-in one gets a view with its fields."""
    if spec in VIEWS:
        return VIEWS[spec]
    base = next((VIEWS[c] for c in spec.__mro__ if c in VIEWS), DocumentView)
    view: type[DocumentView] = attrs.make_class(
        f"{spec.__name__}View", [], bases=(base, spec), frozen=True, kw_only=True, eq=False, slots=False, repr=False
    )
    return view


def bind(catalog: Catalog, node: Node[Any]) -> DocumentView:
    """The view of a document of a catalog."""
    spec: Any = type(node.spec)
    return _view_of(spec)(**with_provenance(catalog.graph, node), node=node, catalog=catalog)
