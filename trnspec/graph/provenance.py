"""Figures with provenance: document and path, scope, source and date, and the values that other sources give."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from trnspec.evidence import UsedFigure
from trnspec.graph.graph import Graph, cached_by_graph, figure_at
from trnspec.model.document import Node
from trnspec.model.figure import ConflictingValue, Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import ObjectShape, dotted, spread, value_at, with_value
from trnspec.model.source import Source
from trnspec.model.sourced import origin_of
from trnspec.short_repr import abbreviated
from trnspec.text_table import Block, Column, sections_in_html, sections_in_markdown, table
from trnspec.yaml import Path

__all__ = ["ConflictingValue", "Stated", "conflicting", "figures", "scope", "stated", "with_provenance"]


@frozen(kw_only=True, order=False)
class Stated(Figure):
    """A figure of a catalog: its text shows value, unit, interval, scope, source and date.

    The attributes of views are declared as :class:`Figure`, which has the same members; see
    ``docs/explanation/typed-api.md``.

    Attributes:
        of: The name of the document that states it.
        at: Its path in the document: ``peak.dense.bf16``.
        scope: The unit of hardware and the conditions it applies to: ``per chip, dense, all engines``.
        source_name: The name of its source; empty for a derived figure and for one without source.
        cited: The name of its source, marked if that has no address.
        source_title: The title of its source.
        as_of: The date of its source.
        conflicting: The values that other sources give.
    """

    of: str
    at: str
    scope: str
    source_name: str = ""
    cited: str = ""
    source_title: str = ""
    as_of: str = ""
    conflicting: tuple[ConflictingValue, ...] = ()

    @property
    def used(self) -> UsedFigure:
        """The figure as one that an evaluation uses, with the values of other sources."""
        conflicting = tuple(f"{c.says}, {c.verdict} ({c.source}, {c.as_of})" for c in self.conflicting)
        return UsedFigure(self.of, self.at, self.value.text, self.cited or self._source(), self.as_of, conflicting)

    def _sections(self) -> Iterator[tuple[str, Block]]:
        from trnspec.quantities.display import interval_text

        interval = interval_text(self.interval, self.value.unit, self.value.digits + 2)
        rows = [(self.value.text, interval, "adopted", self._source())]
        rows += [(c.says, "", c.verdict, f"{c.source}, {c.as_of}") for c in self.conflicting]
        value, interval_column = Column("value", right=True), Column("interval", right=True)
        yield f"{self.at} of {self.of}, {self.scope}", table([value, interval_column, "verdict", "source"], rows)

    def _repr_markdown_(self) -> str:
        return sections_in_markdown(self._sections())

    def _repr_html_(self) -> str:
        return sections_in_html(self._sections())

    def __str__(self) -> str:
        from trnspec.quantities.display import interval_text

        value = self.value
        lines = [
            f"{value.text}  ({self.at} of {self.of})",
            f"  interval     {interval_text(self.interval, value.unit, value.digits + 2)} {value.unit.symbol}",
            f"  scope        {self.scope}",
            f"  source       {self._source()}",
        ]
        lines += [f"  {c.verdict:<11}  {c.says} ({c.source}, {c.as_of})" for c in self.conflicting]
        return "\n".join(lines)

    def __repr__(self) -> str:
        source = "derived" if self.derived is not None else f"{self.source_name} {self.as_of}".strip() or "no source"
        return abbreviated(f"<Stated {self.value}: {self.at} of {self.of}, {source}>")

    def _source(self) -> str:
        if self.derived is not None:
            return f"derived: {self.derived}"
        where = f", {self.where}" if self.where else ""
        return f"{self.source_title}, {self.as_of} ({self.cited}{where})" if self.source_name else "none"


_SCOPES = {
    "Core": "per core",
    "Chip": "per chip",
    "Link": "per link",
    "Server": "per server",
    "Price": "per server",
    "Power": "per unit",
}


def scope(kind: str, path: Path) -> str:
    """The unit of hardware and the conditions that a figure of a kind applies to, derived from its path."""
    conditions = [_SCOPES.get(kind, f"per {kind}")]
    if "fabric" in path or "between_servers" in path:
        conditions = ["per chip"]
    if path[-1:] == ("per_direction",):
        conditions.append("one direction")
    elif path[-1:] == ("both",):
        conditions.append("both directions added")
    conditions += [condition for step, condition in _CONDITIONS if step in path]
    return ", ".join(conditions)


_CONDITIONS = (
    ("dense", "dense"),
    ("sparse", "sparse"),
    ("tensor_peak", "tensor engines alone"),
    ("tensor", "tensor engine"),
    ("vector", "vector engine"),
    ("scalar", "scalar engine"),
    ("gpsimd", "GpSimd engine"),
    ("achieved", "achieved, not peak"),
    ("achieved_per_engine", "achieved, not peak"),
    ("stated", "total as printed"),
    ("baseline", "baseline"),
)


def figures(graph: Graph, node: Node[Any]) -> Mapping[str, Stated]:
    """Every figure of a document by its dotted path below ``spec``, in the order of the classes."""
    every = (stated(graph, node, path, figure) for path, figure in graph.figures(node).items())
    return {figure.at: figure for figure in every}


def cited(name: str, source: Node[Source] | None) -> str:
    """The name of a source where a value is credited to it, marked if it has no address to look it up."""
    return name if source is None or source.spec.address else f"{name}, no address"


def stated(graph: Graph, node: Node[Any], path: Path, figure: Figure) -> Stated:
    """A figure of a document with its provenance."""
    ref, where = figure.source, figure.where
    if ref is None and figure.derived is None:
        ref, place = inherited(node, path)
        where = where or place or None
    source = graph.find(ref)
    return Stated(
        value=figure.value,
        source=ref,
        where=where,
        derived=figure.derived,
        check=figure.check,
        note=figure.note,
        of=node.name,
        at=dotted(path[1:]),
        scope=scope(node.kind, path),
        source_name="" if ref is None else ref.name,
        cited="" if ref is None else cited(ref.name, source),
        source_title="" if source is None else source.metadata.title,
        as_of="" if source is None else source.spec.as_of,
        conflicting=conflicting(graph, node).get(path, ()),
    )


@functools.lru_cache(maxsize=512)
def claims_at(node: Node[Any]) -> Mapping[Path, list[int]]:
    """The indices of the claims of a document by the paths that they are about."""
    indices: dict[Path, list[int]] = {}
    for index, claim in enumerate(node.claims):
        for path in dict.fromkeys(spread(claim.at)):
            indices.setdefault(path, []).append(index)
    return indices


@cached_by_graph
def conflicting(graph: Graph, node: Node[Any]) -> Mapping[Path, tuple[ConflictingValue, ...]]:
    """Every claim of a document by the path it is about, including paths without an adopted value."""
    values = []
    for claim in node.claims:
        as_of = "" if (source := graph.find(claim.source)) is None else source.spec.as_of
        verdict, reason = claim.verdict or "agrees", claim.reason or ""
        values.append(ConflictingValue(str(claim.says), claim.source.name, as_of, claim.where or "", verdict, reason))
    return {path: tuple(values[index] for index in indices) for path, indices in claims_at(node).items()}


def with_provenance(graph: Graph, node: Node[Any]) -> dict[str, Any]:
    """The fields of a spec, in which every figure is replaced by one with provenance."""
    spec = node.spec
    for path, figure in graph.figures(node).items():
        spec = with_value(spec, path[1:], stated(graph, node, path, figure))
    return {name: getattr(spec, name) for name in ObjectShape(type(spec)).fields}


def source_of(node: Node[Any], path: Path) -> Ref[Source] | None:
    """The source of the adopted value at a path; ``None`` if there is no value, or if it is derived."""
    value = figure_at(node, path)
    own = value if isinstance(value, Figure) else origin_of(value)
    is_derived = own is not None and own.derived is not None
    return None if value is None or is_derived else credited_source(node, path)


def credited_source(node: Node[Any], path: Path) -> Ref[Source] | None:
    """The source that is named for a path: by the value itself, which may be derived, or else around it."""
    value = figure_at(node, path)
    own = value if isinstance(value, Figure) else origin_of(value)
    return own.source if own is not None and own.source is not None else inherited(node, path)[0]


def inherited(node: Node[Any], path: Path) -> tuple[Ref[Source] | None, str]:
    """The source of a value that names none, and the place in it: of the nearest object around it, or of the document."""
    for depth in range(len(path) - 1, 1, -1):
        around = value_at(node.spec, path[1:depth])
        source = getattr(around, "source", None)
        if isinstance(source, Ref):
            return source, getattr(around, "where", None) or ""
    return node.metadata.source, ""
