"""Figures that may have been used by mistake: of another row, another source, or a similar document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.checks.reconcile.relations import is_supported
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.graph import Graph, cached_by_graph, figure_at
from trnspec.graph.provenance import claims_at
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import dotted
from trnspec.quantities.quantity import Qualifier, Quantity
from trnspec.text_table import plural
from trnspec.yaml import Path

RATES = ("peak", "tensor_peak")
KINDS = ("dense", "sparse")

MOST_SHARED = 10
"""From this number of documents or rows on, a value that they share does not explain where a figure comes from."""


@frozen
class Lookalike:
    """A figure that could have been used instead of the right one.

    Attributes:
        id: The id of the explanation: ``swapped-row``, ``dense-sparse``, ``tensor-engine``, ``neighbour``, ``distant``
            (of another family) or ``older-claim``.
        words: Names the figure.
        quantity: Its value.
    """

    id: str
    words: str
    quantity: Quantity


def lookalikes(site: Site, suspect: Site, graph: Graph) -> Iterator[Lookalike]:
    """The figures that could have been used at ``site`` by mistake, without the suspect itself.

    A bound or an approximate figure contains many values, and the present value of a part explains nothing; nor does that
    of the suspect, where another source or a sum agrees with it.
    """
    for other in (*_rows(site, graph), *_claims(site, suspect), *_neighbours(site, graph)):
        if other.quantity.qualifier is not Qualifier.EXACT:
            continue
        is_present = _same(other.quantity, site.value)
        if not is_present or (site.key == suspect.key and not _is_supported(suspect, graph)):
            yield other


def _is_supported(site: Site, graph: Graph) -> bool:
    return site.claim is None and site.node.name in graph and is_supported(graph, site.node.name, site.path)


def _same(quantity: Quantity, own: object) -> bool:
    return isinstance(own, Quantity) and own.dimension is quantity.dimension and own.value == quantity.value


def _grouped(cause: str, figures: list[tuple[str, Quantity]]) -> Iterator[Lookalike]:
    """Groups equal figures, which rows of one table and sizes of one family often have."""
    by_value: dict[Fraction, list[tuple[str, Quantity]]] = {}
    for name, quantity in figures:
        by_value.setdefault(quantity.value, []).append((name, quantity))
    for alike in by_value.values():
        if len(alike) <= MOST_SHARED:
            yield Lookalike(cause, f"this is the figure of {_and_others([name for name, _ in alike])}", alike[0][1])


def _and_others(names: list[str]) -> str:
    """The first of some names, and the number of the others."""
    more = len(names) - 1
    return names[0] + (f" and {plural(more, 'other')}" if more else "")


def _rows(site: Site, graph: Graph) -> Iterator[Lookalike]:
    """The other figures of the same document with the same dimension."""
    own = site.value
    alike: list[tuple[str, Quantity]] = []
    for path, figure in graph.figures(site.node).items():
        quantity = figure.value
        if path == site.path or not isinstance(own, Quantity) or quantity.dimension is not own.dimension:
            continue
        differing = [(a, b) for a, b in zip(path, site.path, strict=False) if a != b]
        if len(path) != len(site.path) or len(differing) != 1:
            if not _rate(path) and not _rate(site.path):
                alike.append((dotted(path[1:]), quantity))
            continue
        here, there = differing[0]
        if here in KINDS and there in KINDS:
            yield Lookalike("dense-sparse", f"this is the {here} rate of {path[-1]}", quantity)
        elif here in RATES and there in RATES:
            words = "the tensor engines alone" if here == "tensor_peak" else "all engines together"
            yield Lookalike("tensor-engine", f"this is the rate of {words}", quantity)
        else:
            alike.append((str(path[-1]) if path[:-1] == site.path[:-1] else dotted(path[1:]), quantity))
    yield from _grouped("swapped-row", alike)


def _rate(path: Path) -> bool:
    return any(step in KINDS for step in path)


def _neighbours(site: Site, graph: Graph) -> Iterator[Lookalike]:
    """The figure at the same path of other documents of the kind: another generation, another size."""
    version = getattr(site.node.spec, "version", None)
    for alike in figures_at(graph, type(site.node.spec), site.path).values():
        if version and any(
            _same(v, site.value) and getattr(graph.nodes[name].spec, "version", None) == version
            for name, v in alike
            if name != site.node.name
        ):
            continue  # two documents of one version that agree support each other
        if len(alike) <= MOST_SHARED + 1:  # one of them may be the document itself
            others = sorted(((n, v) for n, v in alike if n != site.node.name), key=lambda a: not is_related(a[0], site))
            is_near = bool(others) and is_related(others[0][0], site)
            yield from _grouped("neighbour" if is_near else "distant", others)


def relatives_agree(site: Site, graph: Graph) -> bool:
    """Whether another document of the family has the value of a figure or claim, or another derived row of its own."""
    value = site.value
    if not isinstance(value, Quantity):
        return False
    alike = figures_at(graph, type(site.node.spec), site.path).get(value.value, [])
    if any(name != site.node.name and is_related(name, site) for name, _ in alike):
        return True
    rows = graph.figures(site.node).items() if site.claim is None else ()
    return any(p != site.path and p[:-1] == site.path[:-1] and f.derived and _same(f.value, value) for p, f in rows)


def is_related(name: str, site: Site) -> bool:
    """Whether a document is of the family of another: their names are the same up to the first digit."""
    one, other = (re.match(r"[^0-9]*", text) for text in (name, site.node.name))
    return one is not None and other is not None and one[0] == other[0]


@cached_by_graph
def figures_at(graph: Graph, spec: type, path: Path) -> dict[Fraction, list[tuple[str, Quantity]]]:
    """The figures of all documents of a kind at a path, with the names of the documents, by value."""
    by_value: dict[Fraction, list[tuple[str, Quantity]]] = {}
    nodes: tuple[Node[Any], ...] = graph.of(spec)
    for node in nodes:
        figure = figure_at(node, path)
        if isinstance(figure, Figure):
            by_value.setdefault(figure.value.value, []).append((node.name, figure.value))
    return by_value


def _claims(site: Site, suspect: Site) -> Iterator[Lookalike]:
    """The claims on the figure; sources with the same value and verdict are grouped."""
    claims: dict[tuple[Quantity, str], list[str]] = {}
    for index in claims_at(site.node).get(site.path, ()):
        claim, there = site.node.claims[index], Site(site.node, site.path, index)
        value = there.value
        if there.key != suspect.key and isinstance(value, Quantity):
            claims.setdefault((value, claim.verdict or "agrees"), []).append(claim.source.name)
    for (quantity, verdict), sources in claims.items():
        words = f"this is the value of {_and_others(sources)} for {dotted(site.path[1:])} ({verdict})"
        yield Lookalike("older-claim", words, quantity)
