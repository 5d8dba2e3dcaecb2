"""The age of a catalog: the newest source that supports each value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.graph.facts import Fact, facts
from trnspec.graph.graph import Graph
from trnspec.model.calibration import Calibration
from trnspec.model.document import Node
from trnspec.model.measurements import Measurements
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model

# Architectures and measurements do not change after their publication, so an old source of them is not out of date.
_UNDATED = (Calibration, Measurements, Model, Source)
_SUPPORT = ("agrees", "rounded")
_MONTHS = 12


@frozen(kw_only=True)
class Age:
    """The newest source of one adopted value.

    Attributes:
        name: The document.
        at: The path below ``spec``: ``memory.bandwidth``.
        value: The value as printed.
        source: The newest source that states it.
        as_of: The date of that source.
        sources: How many sources state it.
        months: Its age in whole months.
    """

    name: str
    at: str
    value: str
    source: str
    as_of: str
    sources: int
    months: int


def months_between(as_of: str, reference: str) -> int:
    """The age of a date in whole calendar months, at least 0.

    Args:
        as_of: A day, a month, or a year, which counts as its December.
        reference: A day or a month; the name of an edition such as ``2026.12`` is one.
    """
    return max(0, _month(reference) - _month(as_of))


def _month(date: str) -> int:
    year, *rest = re.split(r"[-.]", date)
    return _MONTHS * int(year) + (int(rest[0]) if rest else _MONTHS)


def limit(text: str) -> int:
    """The months of a limit such as ``12mo`` or ``2y``.

    Raises:
        UsageError: It is not such a text.
    """
    match = re.fullmatch(r"(\d{1,4}) ?(mo|months?|y|years?)", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age; write months or years, such as 12mo or 2y")
    return int(match[1]) * (_MONTHS if match[2].startswith("y") else 1)


def ages(graph: Graph, reference: str, names: Iterable[str] = ()) -> Iterator[Age]:
    """The age of every adopted value of hardware and prices, in the order of the documents.

    A claim supports a value if it agrees with it or is a rounding of it. Derived values are as old as those that they
    are computed from, and are left out.
    """
    wanted = frozenset(names)
    for node in dated_documents(graph):
        if not wanted or node.name in wanted:
            for fact in facts(graph, node):
                support = _support(fact)
                if support:
                    as_of, source = max(support)
                    yield Age(
                        name=node.name,
                        at=fact.at,
                        value=fact.text or "",
                        source=source,
                        as_of=as_of,
                        sources=len({name for _, name in support}),
                        months=months_between(as_of, reference),
                    )


def dated_documents(graph: Graph) -> Iterator[Node[Any]]:
    """The documents whose values become outdated."""
    return (node for node in graph if not isinstance(node.spec, _UNDATED))


def _support(fact: Fact) -> list[tuple[str, str]]:
    """The date and name of each source that states an adopted value; none for a derived value and for a remark."""
    if fact.verdict == "derived" or not fact.as_of:
        return []
    claims = [(c.as_of, c.source) for c in fact.conflicting if c.verdict in _SUPPORT]
    return [(fact.as_of, fact.source), *claims]
