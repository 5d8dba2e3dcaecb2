"""Charts of the catalog: the values of a figure by source and date, and documents side by side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.diagnostics import unknown_name
from trnspec.errors import UsageError
from trnspec.graph.facts import Fact, facts
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated
from trnspec.model.document import Node
from trnspec.plots.chart import UNKNOWN, Chart, ChartAxis, Ends, LimitLine, Mark, Panel, Points
from trnspec.quantities.display import Displayed, common_unit
from trnspec.quantities.quantity import Quantity, parse_or_none


@frozen
class _Statement:
    """The value of a figure according to one source: a quantity or a count, ``None`` for a text."""

    source: str
    as_of: str
    verdict: str
    says: str
    value: Quantity | float | None


def _statements(graph: Graph, node: Node[Any], at: str) -> list[_Statement]:
    """All statements on a figure, the oldest first."""
    known = {fact.at: fact for fact in facts(graph, node)}
    if at not in known:
        raise unknown_name(f"{node.name} states no {at}", at, known)
    fact = known[at]
    result = [_Statement(c.source, c.as_of, c.verdict, str(c.says), _read(str(c.says), fact)) for c in fact.conflicting]
    if fact.value is not None:
        value = fact.value.value if isinstance(fact.value, Stated) else _count(fact.value)
        result.append(_Statement(fact.source, fact.as_of, fact.verdict, fact.text or "", value))
    return sorted(result, key=lambda s: (s.as_of, s.source))


def _count(value: object) -> float | None:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _read(text: str, fact: Fact) -> Quantity | float | None:
    if isinstance(fact.value, int):
        digits = text.replace(",", "")
        return float(digits) if digits.isdecimal() else None
    quantity = parse_or_none(text)
    return (
        quantity
        if fact.figure is None or quantity is None or quantity.dimension is fact.figure.value.dimension
        else None
    )


_VERDICTS = ("adopted", "derived", "agrees", "rounded", "other-scope", "superseded", "unresolved", "rejected")


def history(graph: Graph, node: Node[Any], at: str) -> Chart:
    """The values of a figure by date, a marker for each verdict, with the interval of each printed value.

    Statements of the same value, date and verdict are one point. The caption lists them by number.

    Raises:
        UnknownNameError: The document has no such figure.
        UsageError: It has no dated value that is a number.
    """
    every = _statements(graph, node, at)
    drawn = [s for s in every if s.value is not None and s.as_of]
    # The adopted value comes first: its unit is preferred.
    first = sorted(drawn, key=lambda s: s.verdict not in ("adopted", "derived"))
    quantities = [s.value for s in first if isinstance(s.value, Quantity)]
    if not drawn or len({q.dimension for q in quantities}) > 1 or (quantities and len(quantities) < len(drawn)):
        raise UsageError(f"{node.name} {at} has no dated values of one dimension to draw")
    unit = common_unit([Displayed.of(q) for q in quantities]) if quantities else None
    factor = float(unit.factor) if unit is not None else 1.0
    groups: dict[tuple[str, str, float], list[int]] = {}
    for number, statement in enumerate(drawn, 1):
        groups.setdefault((statement.verdict, statement.as_of, _number(statement.value) / factor), []).append(number)
    marks: list[Mark] = []
    for verdict in (*_VERDICTS, *dict.fromkeys(s.verdict for s in drawn if s.verdict not in _VERDICTS)):
        keys = [key for key in groups if key[0] == verdict]
        if keys:
            marks.append(
                Points(
                    verdict,
                    tuple(year(as_of)[0] for _, as_of, _ in keys),
                    tuple(value for *_, value in keys),
                    tuple(year(as_of)[1] for _, as_of, _ in keys),
                    tuple(_ends(drawn[groups[key][0] - 1].value, factor) for key in keys),
                    tuple(_numbers(groups[key]) for key in keys),
                )
            )
    adopted = [s for s in drawn if s.verdict in ("adopted", "derived")]
    if adopted:
        marks.insert(0, LimitLine(_number(adopted[0].value) / factor))
    listed = [
        f"{number} {s.source or 'derived'} ({s.as_of}): {s.says}, {s.verdict}" for number, s in enumerate(drawn, 1)
    ]
    rest = [f"{s.source or 'derived'} ({s.as_of or 'no date'}): {s.says}, {s.verdict}" for s in every if s not in drawn]
    caption = (
        "Whiskers: what the printed digits leave open, and the span of a date that is a month or a year.",
        *listed,
        *([f"Not drawn: {'; '.join(rest)}."] if rest else []),
    )
    symbol = f" [{unit.symbol}]" if unit is not None and unit.symbol != "x" else ""
    panel = Panel(ChartAxis("date of the source", dates=True), ChartAxis(f"{at}{symbol}"), tuple(marks))
    return Chart("history", f"{node.name} {at}: what sources state", (panel,), caption)


def _number(value: Quantity | float | None) -> float:
    assert value is not None
    return float(value.value) if isinstance(value, Quantity) else value


def _ends(value: Quantity | float | None, factor: float) -> Ends:
    if not isinstance(value, Quantity):
        return UNKNOWN
    high = value.interval.high
    return float(value.interval.low) / factor, None if high is None else float(high) / factor


def _numbers(numbers: Sequence[int]) -> str:
    """``1, 2, 3, 7`` as ``1-3, 7``."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def year(as_of: str) -> tuple[float, Ends]:
    """A date as a year with its fraction, and its span: of ``2024-07`` the month; nothing for a day."""
    steps = [int(part) for part in as_of.split("-")]
    if len(steps) == 3:
        return _fraction(date(*steps)), UNKNOWN
    first = date(steps[0], steps[1] if len(steps) > 1 else 1, 1)
    months = 1 if len(steps) > 1 else 12
    after = (first.year * 12 + first.month - 1) + months
    low, high = _fraction(first), _fraction(date(after // 12, after % 12 + 1, 1))
    return (low + high) / 2.0, (low, high)


def _fraction(day: date) -> float:
    first = date(day.year, 1, 1)
    return day.year + (day - first).days / (date(day.year + 1, 1, 1) - first).days


ComparisonRow = tuple[str, str, Sequence[tuple[Fraction, Ends] | None]]
"""A path, the values of the documents there as text, and their ratios to the baseline, each with its interval."""

_APART = 0.6
"""The share of a row over which the points of the documents are spread."""


def comparison(
    names: Sequence[str], base: int, rows: Sequence[ComparisonRow], sources: Sequence[str], most: int | None = None
) -> Chart:
    """The ratios of documents to a baseline, one row for each figure in which they differ.

    Args:
        names: The documents.
        base: The index of the baseline.
        rows: The figures, the most important first.
        sources: The sources of the documents, with dates.
        most: The number of figures to draw; the caption counts the others. All by default.

    Raises:
        UsageError: The documents have no figure with a ratio other than 1.
    """
    having = [r for r in rows if any(ratio is not None for i, ratio in enumerate(r[2]) if i != base)]
    differing = [r for r in having if any(ratio is not None and ratio[0] != 1 for ratio in r[2])]
    if not differing:
        raise UsageError(f"{', '.join(names)} differ in no figure that has a ratio")
    equal, hidden = len(having) - len(differing), len(differing[most:]) if most is not None else 0
    differing = differing[:most]
    marks: list[Mark] = [LimitLine(1.0, f"{names[base]} = 1", vertical=True)]
    others = [i for i in range(len(names)) if i != base]
    for i, name in enumerate(names):
        some = [(float(row), ratios[i]) for row, (*_, ratios) in enumerate(differing)]
        drawn = [(row, ratio) for row, ratio in some if ratio is not None and ratio[0] > 0 and i != base]
        if drawn:
            x = tuple(float(ratio) for _, (ratio, _) in drawn)
            # Apart, so that equal ratios do not cover each other.
            shift = (others.index(i) - (len(others) - 1) / 2) * _APART / len(others)
            y = tuple(row + shift for row, _ in drawn)
            marks.append(Points(name, x, y, tuple(ends for _, (_, ends) in drawn)))
    caption = (
        f"Values next to each figure: {' | '.join(names)}. Whiskers: intervals of the ratios.",
        f"{equal} figures are equal in all of them." + (f" {hidden} more differ; --full draws them." if hidden else ""),
        f"Sources: {', '.join(sources)}.",
    )
    categories = tuple(f"{at}  {text}" for at, text, _ in differing)
    axis = ChartAxis(f"ratio to {names[base]}", log=True)
    return Chart(
        "compare",
        f"{', '.join(names)}: ratios to {names[base]}",
        (Panel(axis, ChartAxis(categories=categories), tuple(marks)),),
        caption,
    )
