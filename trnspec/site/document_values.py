"""The values of a document as its page shows them: the figures, totals and prices of ``trnspec show``, with their lines."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from attrs import asdict, evolve, field, frozen

from trnspec.graph.facts import Fact, facts
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated, claims_at
from trnspec.graph.quotes import quoted_facts
from trnspec.graph.totals import Sum, Total, sums
from trnspec.model.document import Node
from trnspec.model.figure import ConflictingValue
from trnspec.model.reflection import dotted, steps_of
from trnspec.quantities.display import interval_text


@frozen(kw_only=True)
class Other(ConflictingValue):
    """The value of another source, with the line of the claim in the file."""

    line: int


@frozen(kw_only=True)
class DocumentValue:
    """One value of a document.

    Attributes:
        at: The path, as in ``trnspec show --format json``.
        label: The path, or the terms of a printed ratio.
        text: As printed; empty where only other sources have a value.
        numbers: Value, lower and upper end in base units; ``None`` for text, and an end ``None`` where there is none.
        unit: The symbol of the unit of ``interval``; empty for counts and text.
        base: The symbol of the base unit of ``numbers``.
        interval: The interval in ``unit``; empty for text.
        verdict: ``adopted``, ``derived``, ``total``, ``-``, or the verdict on a printed ratio.
        formula: The formula of a derived figure, or the summands of a total.
        scope: What the figure applies to.
        source: The name of the source; empty where there is none.
        cited: The same, marked where the source has no address.
        as_of: The date of the source.
        where: The place in the source.
        reason: The reason for the verdict on a ratio.
        note: A remark for readers.
        document: The document whose file has the line.
        line: The line in that file; 0 for a total.
        others: The values of other sources.
    """

    at: str
    label: str
    text: str
    numbers: tuple[Fraction | int, Fraction | int, Fraction | int | None] | None = None
    unit: str = ""
    base: str = ""
    interval: str = ""
    verdict: str
    formula: str = ""
    scope: str = ""
    source: str = ""
    cited: str = ""
    as_of: str = ""
    where: str = ""
    reason: str = ""
    note: str = ""
    document: str = ""
    line: int = 0
    others: tuple[Other, ...] = ()

    @property
    def verdicts(self) -> dict[str, int]:
        """Number of values of other sources by verdict."""
        return Counter(other.verdict for other in self.others)


@frozen
class Entry:
    """A document with its values.

    Attributes:
        node: The document.
        file: Its file below the catalog: ``chips/trainium2.yaml``.
        stated: Its figures, counts and words, in the order of the classes, then paths that only other sources have.
        totals: The totals over its parts, with the values of other sources where no figure is adopted.
        prices: The prices of a server, by type and place.
        power: The powers of a chip or a system that documents of the kind Power state, by type.
        chosen: Of each type of price the one that evaluators use, under ``prices.TYPE``.
    """

    node: Node[Any]
    file: str
    stated: tuple[DocumentValue, ...]
    totals: tuple[DocumentValue, ...]
    prices: tuple[DocumentValue, ...]
    power: tuple[DocumentValue, ...]
    chosen: tuple[DocumentValue, ...] = field(repr=False)

    @property
    def values(self) -> tuple[DocumentValue, ...]:
        """All values, in the order of ``trnspec show``."""
        return (*self.stated, *self.prices, *self.power, *self.totals)


def entry(graph: Graph, node: Node[Any]) -> Entry:
    """The values of a document, with the lines of its file."""
    lines = _claim_lines(node)
    stated = tuple(_of_fact(node, fact, lines) for fact in facts(graph, node))
    totals = tuple(_of_sum(node, each) for each in sums(graph, node))
    # The values of other sources for a path without an adopted value belong to its total.
    unadopted = {v.at: v for v in stated if not v.text}
    totals = tuple(evolve(t, others=unadopted[t.at].others) if t.at in unadopted else t for t in totals)
    summed = {t.at for t in totals}
    stated = tuple(v for v in stated if v.text or v.at not in summed)
    quoted = [_of_quoted(graph, fact) for fact in quoted_facts(graph, node) if fact.figure is not None]
    prices = tuple(value for value in quoted if value.at.startswith("prices."))
    power = tuple(value for value in quoted if value.at.startswith("power."))
    chosen: dict[str, DocumentValue] = {}
    for value in prices:
        at = value.at.rpartition(".")[0]
        chosen.setdefault(at, evolve(value, at=at, label=at))
    return Entry(node, file_of(node), stated, totals, prices, power, tuple(chosen.values()))


def file_of(node: Node[Any]) -> str:
    """The file of a document without the folder of the catalog: ``chips/trainium2.yaml``."""
    return "/".join(PurePath(node.document.file).parts[-2:])


def line_of(node: Node[Any], path: tuple[str | int, ...]) -> int:
    """The line of a path in the file of a document."""
    return node.document.place(path).line


def _claim_lines(node: Node[Any]) -> dict[str, list[int]]:
    """The lines of the claims about each path, in the order of the file."""
    return {
        dotted(path[1:]): [line_of(node, node.claim_path(index)) for index in indices]
        for path, indices in claims_at(node).items()
    }


def _of_figure(figure: Stated) -> dict[str, Any]:
    """The fields of a value that is a figure."""
    value = figure.value
    return {
        "numbers": (value.value, figure.interval.low, figure.interval.high),
        "unit": value.unit.symbol,
        "base": value.dimension.base,
        "interval": interval_text(figure.interval, value.unit, value.digits + 3),
        "scope": figure.scope,
    }


def _of_fact(node: Node[Any], fact: Fact, lines: dict[str, list[int]]) -> DocumentValue:
    fields: dict[str, Any] = {"interval": fact.interval_text}
    if fact.figure is not None:
        fields |= _of_figure(fact.figure)
    elif isinstance(fact.value, int) and not isinstance(fact.value, bool):
        fields["numbers"] = (fact.value, fact.value, fact.value)
    fields["formula" if fact.verdict == "derived" else "reason"] = fact.reason
    places = lines.get(fact.at, ())
    others = zip(fact.conflicting, places, strict=True)
    fields["others"] = tuple(Other(**asdict(claim), line=line) for claim, line in others)
    line = 0 if fact.value is None else line_of(node, _path_of(node, fact.at))
    return _value(fact, label=fact.label, document=node.name, line=line, **fields)


def _value(fact: Fact, **more: Any) -> DocumentValue:
    """A fact as a value, with what depends on the kind of fact."""
    return DocumentValue(
        at=fact.at, text=fact.text or "", verdict=fact.verdict, source=fact.source, cited=fact.cited, as_of=fact.as_of,
        where=fact.where, note=fact.note, **more,
    )  # fmt: skip


def _path_of(node: Node[Any], at: str) -> tuple[str | int, ...]:
    if not at.startswith("features."):
        return ("spec", *steps_of(at))
    names = [feature.name for feature in node.spec.features]
    return ("spec", "features", names.index(at.removeprefix("features.")))


def _of_sum(node: Node[Any], total: Sum) -> DocumentValue:
    unit = total.value.unit.symbol if isinstance(total.value, Total) else ""
    base = total.value.figures[0].value.dimension.base if isinstance(total.value, Total) else ""
    return DocumentValue(
        at=total.at,
        label=total.at,
        text=total.text,
        numbers=total.bounds,
        unit=unit,
        base=base,
        interval=total.interval_text,
        verdict="total",
        formula=total.parts,
        scope=f"per {node.kind}",
    )


def _of_quoted(graph: Graph, fact: Fact) -> DocumentValue:
    """A price or a power, which another document states, as a value of the one that it is about."""
    document, place = graph.named(fact.of), fact.at.split(".", 2)[2:]
    assert fact.figure is not None
    fields = _of_figure(fact.figure)
    fields["scope"] = ", ".join([fields["scope"], fact.label, *place])
    line = line_of(document, ("spec", "hourly", *place) if place else ("spec", "power"))
    return _value(fact, label=fact.at, document=fact.of, line=line, **fields)
