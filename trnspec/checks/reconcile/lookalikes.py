"""Figures that may have been printed in place of the right one: another row's, another source's, a neighbour's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.checks.reconcile.relations import claimed_paths
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.graph import Graph, figure_at
from trnspec.model.figure import Figure
from trnspec.model.reflection import dotted
from trnspec.quantities.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from trnspec.yaml import Path

RATES = ("peak", "tensor_peak")
KINDS = ("dense", "sparse")


@frozen
class Lookalike:
    """A figure that could stand where another belongs.

    Attributes:
        id: The explanation it would be: ``swapped-row``, ``dense-sparse``, ``tensor-engine``, ``neighbour`` or
            ``older-claim``.
        words: Whose figure it is, for the reader.
        quantity: What it says.
    """

    id: str
    words: str
    quantity: Quantity


def lookalikes(site: Site, suspect: Site, graph: Graph) -> Iterator[Lookalike]:
    """What could stand at ``site`` by mistake; what the suspect says of itself explains nothing and is left out."""
    yield from _rows(site, graph)
    yield from _claims(site, suspect)
    yield from _neighbours(site, graph)


def _shared(cause: str, found: list[tuple[str, Quantity]]) -> Iterator[Lookalike]:
    """Rows of one table and sizes of one family often share a figure: they are told together."""
    names: dict[Fraction, list[str]] = {}
    quantities: dict[Fraction, Quantity] = {}
    for name, quantity in found:
        names.setdefault(quantity.value, []).append(name)
        quantities.setdefault(quantity.value, quantity)
    for value, alike in names.items():
        more = len(alike) - 1
        others = f" and {more} other{'' if more == 1 else 's'}" if more else ""
        yield Lookalike(cause, f"the figure of {alike[0]}{others} stands here", quantities[value])


def _rows(site: Site, graph: Graph) -> Iterator[Lookalike]:
    """The other figures of the same document that measure the same."""
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
            yield Lookalike("dense-sparse", f"the {here} rate of {path[-1]} stands here", quantity)
        elif here in RATES and there in RATES:
            words = "the tensor engines alone" if here == "tensor_peak" else "all engines together"
            yield Lookalike("tensor-engine", f"the rate of {words} stands here", quantity)
        else:
            alike.append((str(path[-1]) if path[:-1] == site.path[:-1] else dotted(path[1:]), quantity))
    yield from _shared("swapped-row", alike)


def _rate(path: Path) -> bool:
    return any(step in KINDS for step in path)


def _neighbours(site: Site, graph: Graph) -> Iterator[Lookalike]:
    """The same figure of other documents of the kind: another generation, another size."""
    others = [(n.name, figure_at(n, site.path)) for n in graph.of(type(site.node.spec)) if n.name != site.node.name]
    yield from _shared("neighbour", [(name, found.value) for name, found in others if isinstance(found, Figure)])


def _claims(site: Site, suspect: Site) -> Iterator[Lookalike]:
    """What others say of the figure; sources that print the same and were judged alike are told together."""
    told: dict[tuple[str, str], list[str]] = {}
    quantities: dict[str, Quantity] = {}
    for index, claim in enumerate(site.node.claims):
        there = Site(site.node, site.path, index)
        said = there.value
        if there.key != suspect.key and isinstance(said, Quantity) and site.path in claimed_paths(claim.at):
            told.setdefault((said.text, claim.verdict or "agrees"), []).append(claim.source.name)
            quantities[said.text] = said
    for (text, verdict), sources in told.items():
        more = len(sources) - 1
        others = f" and {more} other{'' if more == 1 else 's'} say" if more else " says"
        words = f"what {sources[0]}{others} of {dotted(site.path[1:])} ({verdict})"
        yield Lookalike("older-claim", words, quantities[text])
