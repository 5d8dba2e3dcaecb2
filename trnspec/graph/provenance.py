"""Figures that know where they stand: what they are figures of, on whose word, and what others say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import FigureShape, ListShape, MapShape, ObjectShape, Shape, dotted, spread, value_at
from trnspec.quantities.quantity import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.yaml import Path


@frozen
class ConflictingValue:
    """What another source says of a figure.

    Attributes:
        says: As printed.
        source: The name of the source.
        as_of: Its date.
        where: The place in it.
        verdict: What was decided about it.
        reason: Why.
    """

    says: str
    source: str
    as_of: str
    where: str = ""
    verdict: str = "agrees"
    reason: str = ""


@frozen(kw_only=True)
class Stated(Figure):
    """A figure of a catalog: it prints value, unit, interval, scope, source and date.

    Attributes:
        of: The document it belongs to.
        at: Where in it: ``peak.dense.bf16``.
        scope: What it is a figure of: ``per chip, dense, all engines``.
        source_name: Who says so; empty for a derived figure and for one that nobody answers for.
        source_title: What the source is called.
        as_of: The date of the source.
        rivals: What others say of it.
    """

    of: str
    at: str
    scope: str
    source_name: str = ""
    source_title: str = ""
    as_of: str = ""
    conflicting: tuple[ConflictingValue, ...] = ()

    def __str__(self) -> str:
        quantity = self.value
        low = render(self.interval.low, quantity.unit, quantity.digits + 2).removesuffix(quantity.unit.symbol).strip()
        high = self.interval.high
        top = "and more" if high is None else render(high, quantity.unit, quantity.digits + 2)
        lines = [
            f"{quantity.text}  ({self.at} of {self.of})",
            f"  interval  [{low}, {top})",
            f"  scope     {self.scope}",
            f"  source    {self._source()}",
        ]
        lines += [f"  rival     {r.says}, {r.verdict} ({r.source}, {r.as_of})" for r in self.conflicting]
        return "\n".join(lines)

    __repr__ = __str__

    def _source(self) -> str:
        if self.derived is not None:
            return f"derived: {self.derived}"
        where = f", {self.where}" if self.where else ""
        return f"{self.source_title}, {self.as_of} ({self.source_name}{where})" if self.source_name else "none"


_SCOPES = {"Core": "per core", "Chip": "per chip", "Link": "per link", "Server": "per server"}


def scope(kind: str, path: Path) -> str:
    """What the figure at a path is a figure of, in the words of the design."""
    words = [_SCOPES.get(kind, f"per {kind}")]
    if "fabric" in path or "between_servers" in path:
        words = ["per chip"]
    if path[-1:] == ("per_direction",):
        words.append("one direction")
    elif path[-1:] == ("both",):
        words.append("both directions added")
    for part, told in _PARTS:
        if part in path:
            words.append(told)
    return ", ".join(words)


_PARTS = (
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
    others = conflicting(graph, node)
    return {
        dotted(path[1:]): _stated(graph, node, path, figure, others.get(path, ()))
        for path, figure in graph.figures(node).items()
    }


def _stated(
    graph: Graph, node: Node[Any], path: Path, figure: Figure, conflicting: tuple[ConflictingValue, ...]
) -> Stated:
    # A printed ratio keeps its source beside the figure, not in it.
    beside = value_at(node.spec, (*path[1:-1], "source"))
    own = figure.source or (beside if isinstance(beside, Ref) else None)
    ref = own or (node.metadata.source if figure.derived is None else None)
    source = None if ref is None else graph.find(ref)
    return Stated(
        value=figure.value,
        source=ref,
        where=figure.where,
        derived=figure.derived,
        note=figure.note,
        of=node.name,
        at=dotted(path[1:]),
        scope=scope(node.kind, path),
        source_name="" if ref is None else ref.name,
        source_title="" if source is None else source.metadata.title,
        as_of="" if source is None else source.spec.as_of,
        conflicting=conflicting,
    )


def conflicting(graph: Graph, node: Node[Any]) -> Mapping[Path, tuple[ConflictingValue, ...]]:
    """Every claim of a document by the path it speaks of, also where nothing is adopted."""
    found: dict[Path, tuple[ConflictingValue, ...]] = {}
    for claim in node.claims:
        source = graph.find(claim.source)
        rival = ConflictingValue(
            str(claim.says),
            claim.source.name,
            "" if source is None else source.spec.as_of,
            claim.where or "",
            claim.verdict or "agrees",
            claim.reason or "",
        )
        for path in spread(claim.at):
            found[path] = (*found.get(path, ()), rival)
    return found


def with_provenance(graph: Graph, node: Node[Any]) -> dict[str, Any]:
    """The fields of a spec, with every figure exchanged for the one that knows where it stands."""
    stated = {("spec", *_path(at)): figure for at, figure in figures(graph, node).items()}
    fields = ObjectShape(type(node.spec)).fields
    return {name: _bound(getattr(node.spec, name), f.shape, ("spec", name), stated) for name, f in fields.items()}


def _path(at: str) -> Path:
    return tuple(int(s) if s.isdigit() else s for s in at.split("."))


def _bound(value: Any, shape: Shape, path: Path, figures: Mapping[Path, Stated]) -> Any:
    if value is None:
        return None
    if isinstance(shape, FigureShape):
        return figures[path]
    if isinstance(shape, ObjectShape):
        parts = {n: _bound(getattr(value, n), f.shape, (*path, n), figures) for n, f in shape.fields.items()}
        return evolve(value, **parts)
    if isinstance(shape, ListShape):
        return tuple(_bound(v, shape.item, (*path, i), figures) for i, v in enumerate(value))
    if isinstance(shape, MapShape):
        return {k: _bound(v, shape.value, (*path, k), figures) for k, v in value.items()}
    return value
