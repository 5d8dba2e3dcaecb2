"""Citations: the values that come from a source, adopted ones and claims."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from trnspec.graph.facts import facts
from trnspec.graph.graph import Graph
from trnspec.model.calibration import Calibration
from trnspec.model.document import Node
from trnspec.model.measurements import Measurements
from trnspec.model.source import Source


@frozen
class Citation:
    """A value of a document that comes from a source: the adopted one, or a claim about a figure.

    Attributes:
        source: The source.
        of: The document.
        kind: Its kind.
        at: The path in it.
        says: The value as published.
        verdict: ``adopted``, or the verdict on the claim.
        where: The place in the source.
        reason: Why the verdict was given.
        note: A remark for readers.
    """

    source: str
    of: str
    kind: str
    at: str
    says: str
    verdict: str
    where: str = ""
    reason: str = ""
    note: str = ""


def citations(graph: Graph, sources: set[str]) -> list[Citation]:
    """All values that come from some sources, document by document."""
    cited: list[Citation] = []
    for node in sorted(graph, key=lambda n: (n.kind, n.name)):
        # The fields of a source itself have no source. The description of a table is no claim of its source, and what is
        # fitted to measurements is not stated by theirs.
        if isinstance(node.spec, (Source, Measurements, Calibration)):
            continue
        for fact in facts(graph, node):
            place = (node.name, node.kind, fact.at)
            if (
                fact.text is not None
                and (fact.figure is not None or _written(node, fact.at))
                and _own(graph, fact.source) in sources
            ):
                source = _own(graph, fact.source)
                cited.append(Citation(source, *place, fact.text, fact.verdict, fact.where, fact.reason, fact.note))
            cited += [
                Citation(_own(graph, r.source), *place, r.says, r.verdict, r.where, r.reason)
                for r in fact.conflicting
                if _own(graph, r.source) in sources
            ]
    return cited


def _written(node: Node[Any], at: str) -> bool:
    """Whether a document states a value; no source states the default of a field."""
    value: Any = (node.document.data or {}).get("spec")
    for key in at.split("."):
        if isinstance(value, dict):
            if key not in value:
                return False
            value = value[key]
    return True


def _own(graph: Graph, name: str) -> str:
    """The name of a source that may be cited by an alias."""
    return graph.aliases.get(name, name)
