"""What a program asks: a catalog of typed documents whose figures know where they come from.

Everything here is a value: a catalog never changes, two of them live side by side, nothing is kept per process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
from attrs import field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError, UsageError
from trnspec.graph.provenance import ConflictingValue, Stated, conflicting, figures, with_provenance
from trnspec.graph.totals import chips, total
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.reflection import dotted
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog  # noqa: TC004  # the types of a view are never resolved
    from trnspec.output.exporters.exported import Export
    from trnspec.quantities.amount import Amount
    from trnspec.topology.shapes import Shape as Fabric


T = TypeVar("T")


@frozen(kw_only=True, eq=False, slots=False)
class Bound:
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
    def claims(self) -> Mapping[str, tuple[ConflictingValue, ...]]:
        """What others say, by the dotted path they speak of, also where nothing is adopted."""
        return {dotted(path[1:]): found for path, found in conflicting(self.catalog.graph, self.node).items()}

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

    def export(self, format: str) -> Export:
        """The document in another format: ``cat["trn2-ultraserver"].export("svg").text``.

        Args:
            format: A format of ``trnspec export``: ``json``, ``dot``, ``svg``, ``calculon``, ``astra-sim``,
                ``llm-analysis``, or that of a plugin.

        Raises:
            UsageError: There is no such format, or it exports whole catalogs only.
            ExportError: The format needs a figure that this document does not have; the message names it.
        """
        from trnspec.output.exporters import export

        return export(format, self.node, self.catalog.graph)

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
        from trnspec.graph.fabrics import fabric

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


def bind(catalog: Catalog, node: Node[Any]) -> Bound:
    """The view of a document of a catalog."""
    spec: Any = type(node.spec)
    return _view_of(spec)(**with_provenance(catalog.graph, node), node=node, catalog=catalog)
