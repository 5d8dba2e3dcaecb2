"""Documents as JSON: references replaced by the documents, totals computed, each figure with interval and provenance.

A figure is an object: ``value`` and ``interval`` in the base unit ``unit``, ``printed``, and its provenance: ``source``
and ``as_of``, or ``derived`` with the formula.  ``sources`` describes the sources that occur.
"""

from __future__ import annotations

import json
from typing import Any

from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated, figures, scope
from trnspec.graph.totals import Total, sums
from trnspec.model.document import Node
from trnspec.model.parts import CountRange, PartCount
from trnspec.model.reflection import (
    EitherShape,
    FigureShape,
    ListShape,
    MapShape,
    ObjectShape,
    RefShape,
    Shape,
    steps_of,
)
from trnspec.model.source import Source
from trnspec.output.exporters.export_log import number
from trnspec.output.exporters.exported import Export
from trnspec.quantities.quantity import Interval
from trnspec.yaml import Path

FORM = "trnspec-resolved/v1"
"""The format identifier at the top of such a file."""


def export(node: Node[Any], graph: Graph) -> Export:
    """One document with the documents that it refers to."""
    return _export(graph, [node])


def export_all(graph: Graph) -> Export:
    """Every document except the sources, which are under ``sources`` if they occur."""
    nodes = sorted((n for n in graph if not isinstance(n.spec, Source)), key=lambda n: (n.kind, n.name))
    return _export(graph, nodes)


def _export(graph: Graph, nodes: list[Node[Any]]) -> Export:
    reader = _Resolver(graph)
    documents = [reader.document(node, ()) for node in nodes]
    found = {name: graph.lookup(name, Source) for name in sorted(reader.cited)}
    cited = {name: _source(node) for name, node in found.items() if node is not None}
    text = json.dumps({"form": FORM, "documents": documents, "sources": cited}, indent=2)
    return Export(text + "\n")


def _source(node: Node[Source]) -> dict[str, Any]:
    spec = node.spec
    about = {"title": node.metadata.title, "publisher": spec.publisher, "as_of": spec.as_of, "dating": spec.dating}
    more = {"rank": spec.rank, "address": spec.address, "version": spec.version, "note": spec.note}
    return {**about, **{k: v for k, v in more.items() if v is not None}}


class _Resolver:
    """Converts documents to plain data, and collects the sources that they name."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.cited: set[str] = set()

    def document(self, node: Node[Any], path: tuple[str, ...]) -> dict[str, Any]:
        """A document; ``path`` has the names of the documents that contain it."""
        stated = {("spec", *steps_of(at)): figure for at, figure in figures(self.graph, node).items()}
        for figure in stated.values():
            self.cited |= {self._own(r.source) for r in figure.conflicting}
        head = node.metadata
        fields: dict[str, Any] = {"kind": node.kind, "name": node.name, "title": head.title}
        if head.aliases:
            fields["aliases"] = list(head.aliases)
        if head.note:
            fields["note"] = head.note
        inside = (*path, node.name)
        fields["spec"] = self._value(node.spec, ObjectShape(type(node.spec)), ("spec",), (node, stated, inside))
        totals = {s.at: self._total(node, s.value) for s in sums(self.graph, node)}
        if totals:
            fields["totals"] = totals
        return fields

    def _value(
        self, value: Any, shape: Shape, path: Path, of: tuple[Node[Any], dict[Path, Stated], tuple[str, ...]]
    ) -> Any:
        if isinstance(shape, FigureShape):
            return self._figure(of[1][path])
        if isinstance(shape, RefShape):
            return self._reference(value.name, shape, of)
        if isinstance(shape, ObjectShape):
            members = {n: (getattr(value, n), f.shape) for n, f in shape.fields.items()}
            return {n: self._value(v, s, (*path, n), of) for n, (v, s) in members.items() if v not in (None, (), {})}
        if isinstance(shape, ListShape):
            return [self._value(v, shape.item, (*path, i), of) for i, v in enumerate(value)]
        if isinstance(shape, MapShape):
            return {k: self._value(v, shape.value, (*path, k), of) for k, v in value.items()}
        assert not isinstance(shape, EitherShape) or isinstance(value, (str, int, float, bool))
        return value

    def _reference(self, name: str, shape: RefShape, of: tuple[Node[Any], dict[Path, Stated], tuple[str, ...]]) -> Any:
        own = self._own(name)
        target: Node[Any] | None = self.graph.lookup(own, shape.target)
        if target is None:
            return name
        if isinstance(target.spec, Source):
            self.cited.add(own)
            return own
        # A reference to the document's own kind is a comparison and not a part; following it would not terminate.
        if isinstance(of[0].spec, shape.target) or own in of[2]:
            return own
        return self.document(target, of[2])

    def _figure(self, figure: Stated) -> dict[str, Any]:
        quantity = figure.value
        fields: dict[str, Any] = {
            "value": number(quantity.value),
            "unit": quantity.dimension.base,
            "printed": quantity.text,
        }
        fields["interval"] = _ends(figure.interval)
        fields["scope"] = figure.scope
        if figure.source_name:
            source = self._own(figure.source_name)
            self.cited.add(source)
            fields |= {"source": source, "as_of": figure.as_of}
        else:
            fields |= {"source": None, "as_of": None}
        more = {"where": figure.where, "derived": figure.derived, "note": figure.note}
        fields |= {k: v for k, v in more.items() if v is not None}
        if figure.conflicting:
            fields["conflicting"] = [
                {"says": r.says, "source": self._own(r.source), "as_of": r.as_of, "verdict": r.verdict}
                for r in figure.conflicting
            ]
        return fields

    def _total(self, node: Node[Any], value: Total | PartCount) -> dict[str, Any] | int:
        if isinstance(value, int):
            return value
        if isinstance(value, CountRange):
            return {"value": value.bound, "printed": str(value), "interval": _ends(value.interval)}
        total: dict[str, Any] = {
            "value": number(value.value),
            "unit": value.figures[0].value.dimension.base,
            "printed": str(value),
        }
        derived = " + ".join(f"{t} of {t.part.name}" for t in value.terms)
        return {
            **total,
            "interval": _ends(value.interval),
            "scope": scope(node.kind, value.terms[0].path),
            "derived": derived,
        }

    def _own(self, name: str) -> str:
        return self.graph.aliases.get(name, name)


def _ends(interval: Interval) -> list[Any]:
    return [number(interval.low), None if interval.high is None else number(interval.high)]
