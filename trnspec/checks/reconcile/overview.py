"""Summary of an audit: numbers of figures by outcome, and the most important differences."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from attrs import frozen

from trnspec.checks.reconcile.audit import Disagreement
from trnspec.graph.facts import Fact, facts
from trnspec.graph.graph import Graph
from trnspec.model.reflection import dotted, spread
from trnspec.model.source import RANKS, Source

_SETTLED = frozenset({"agrees", "rounded"})


@frozen(kw_only=True)
class Overview:
    """Comparison of the figures of some documents with statements of other sources.

    Attributes:
        documents: Documents with at least one such figure.
        figures: Figures, counts and words that a second source states too.
        values: The values of these sources.
        sources: The sources, those of the adopted values included.
        agreeing: Figures for which every value agrees, also after rounding.
        resolved: Figures with a value that differs for a recorded reason: superseded, rejected or of another scope.
        unresolved: Figures for which it is not known which value is right.
        found: Figures with a disagreement that no document records.
        important: The disagreements that matter most, the most important first.
    """

    documents: int
    figures: int
    values: int
    sources: int
    agreeing: int
    resolved: int
    unresolved: int
    found: int
    important: tuple[Disagreement, ...]


def paths_of(disagreement: Disagreement) -> tuple[str, ...]:
    """The paths of a disagreement below ``spec``, with the alternatives of a claim written out."""
    parts = re.split(r",\s+", disagreement.at)
    return tuple(dotted(path).removeprefix("spec.") for part in parts for path in spread(part))


def is_at(path: str, wanted: Iterable[str]) -> bool:
    """Whether a path is one of some paths or below one of them; every path is for none."""
    chosen = tuple(wanted)
    return not chosen or any(path == w or path.startswith(f"{w}.") for w in chosen)


def overview(
    graph: Graph, disagreements: Iterable[Disagreement], names: frozenset[str] = frozenset(), paths: Iterable[str] = ()
) -> Overview:
    """Comparison of the figures of a graph, and the most important of its disagreements."""
    listed = tuple(disagreements)
    outcomes: Counter[str] = Counter()
    documents: set[str] = set()
    sources: set[str] = set()
    values = 0
    chosen = tuple(paths)
    unrecorded = {(d.name, path) for d in listed if d.verdict == "found" for path in paths_of(d)}
    for node in graph:
        if names and node.name not in names:
            continue
        for fact in facts(graph, node):
            if not is_at(fact.at, chosen) or not (fact.conflicting or (node.name, fact.at) in unrecorded):
                continue
            outcomes[_outcome(fact, found=(node.name, fact.at) in unrecorded)] += 1
            documents.add(node.name)
            sources |= {c.source for c in fact.conflicting} | ({fact.source} - {""})
            values += len(fact.conflicting) + (fact.value is not None)
    return Overview(
        documents=len(documents),
        figures=outcomes.total(),
        values=values,
        sources=len(sources),
        agreeing=outcomes["agrees"],
        resolved=outcomes["resolved"],
        unresolved=outcomes["unresolved"],
        found=outcomes["found"],
        important=tuple(sorted(listed, key=lambda d: _importance(graph, d))),
    )


def _outcome(fact: Fact, *, found: bool) -> str:
    verdicts = {c.verdict for c in fact.conflicting}
    if found or "unresolved" in verdicts:
        return "found" if found else "unresolved"
    return "agrees" if verdicts <= _SETTLED else "resolved"


def _importance(graph: Graph, each: Disagreement) -> tuple[int, bool, int, float]:
    """Sorts what is not recorded first, then what is not resolved; vendors before third parties, large gaps first."""
    settled = {"found": 0, "unresolved": 1, "coarse": 3, "word": 4, "rounded": 5}.get(each.verdict, 2)
    nodes = [graph.nodes.get(c.source) for c in each.conflicting]
    ranks = [RANKS.index(n.spec.rank) for n in nodes if n is not None and isinstance(n.spec, Source)]
    ratio = 0.0 if each.gap is None or each.gap <= -1 else abs(math.log1p(each.gap))
    return settled, each.gap is None, min(ranks, default=len(RANKS)), -ratio
