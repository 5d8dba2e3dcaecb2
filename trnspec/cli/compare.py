"""``trnspec compare``: documents side by side, each figure in one unit, with ratios to a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import click
from attrs import evolve, frozen

from trnspec.catalog.figure_column import displayed_total
from trnspec.cli.common import catalog_options, graph_for
from trnspec.cli.complete import documents
from trnspec.cli.help import documented, option
from trnspec.cli.render import emit, fitted, format_option, full_option, numbers, table_options, width
from trnspec.cli.show import importance
from trnspec.errors import UsageError
from trnspec.graph.facts import facts, group, in_groups, words
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated
from trnspec.graph.quotes import quotes
from trnspec.graph.totals import Total, chips, sums
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.reflection import dotted, is_extensive, spread
from trnspec.quantities.amount import Amount
from trnspec.quantities.display import Displayed, common_unit
from trnspec.quantities.quantity import Interval, render
from trnspec.quantities.units import UNITS, Dimension, Unit
from trnspec.text_table import Block, Cell, Column, Number, TextTable, table, wrapped


@frozen
class ComparedValue:
    """The value of one document in a row.

    Attributes:
        text: As published.
        amount: What can be divided: an amount, or a count; ``None`` for text.
        figure: The figure to show next to others; ``None`` for a count or text.
        source: The name of its source; empty for a total and for a figure that is derived.
        as_of: The date of the source.
        formula: How it is computed, where it is: ``16 x 96 GiB of trainium2``.
        adds_up: True for a value that adds up over the parts of a system.
        format: The number format, in a row that aligns several of one width.
    """

    text: str
    amount: Amount | int | None = None
    figure: Displayed | None = None
    source: str = ""
    as_of: str = ""
    formula: str = ""
    adds_up: bool = False
    format: str = ""

    def over(self, other: ComparedValue) -> Amount | None:
        """Ratio to another value of the same dimension; ``None`` where there is no such ratio."""
        mine, theirs = _amount(self.amount), _amount(other.amount)
        if mine is None or theirs is None or mine.dimension is not theirs.dimension or not theirs.value:
            return None
        return mine / theirs


_DISPUTED = "disputed"
_WIDTHS = {"8-bit float": ("fp8", "mxfp8", "cfp8"), "4-bit float": ("fp4", "mxfp4")}
"""Number formats that are compared with each other, the plain one first."""
_PER = {"chip": "per chip", "usd": "per USD/h"}


@frozen
class ComparedPath:
    """A path with the value of each document; ``None`` where it has none.

    Attributes:
        at: The path; ``8-bit float`` in place of a format where the row aligns several of one width.
        values: The value of each document.
        aligns: The paths of the rows that it aligns, of which the page shows none.
        adds_up: True for a value that adds up over the parts of a system.
    """

    at: str
    values: tuple[ComparedValue | None, ...]
    aligns: tuple[str, ...] = ()
    adds_up: bool = False

    @property
    def have(self) -> int:
        """Number of documents with a value."""
        return sum(v is not None for v in self.values)


@documented(
    "compare",
    ("trnspec compare trainium1 trainium2 trainium3", "Three chips, with ratios to the first:"),
    ("trnspec compare trn1.32xlarge trn2.48xlarge --sort -ratio", "Two servers, the largest difference first:"),
    ("trnspec compare trn3-gen2-ultraserver trn2.48xlarge --per chip", "Systems of different size:"),
    (
        "trnspec compare trainium2 trainium3 --baseline trainium3 --columns figure,trainium2,trainium3",
        "Values without ratios:",
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=documents())
@option("--baseline NAME", "Output", "The document that ratios refer to; the first NAME when left out.")
@option(
    "--per",
    "Output",
    "Divide what adds up by the number of chips, or by the price of an hour of the same type for all.",
    type=click.Choice(list(_PER)),
)
@full_option("--all")
@table_options
@format_option
@catalog_options
def command(
    names: tuple[str, ...],
    baseline: str | None,
    per: str | None,
    columns: str | None,
    sort: str | None,
    format_: str,
    *,
    full: bool,
    **options: Any,
) -> None:
    """Print documents side by side: values, and their ratios to the baseline.

    Each row is in one unit. For servers and UltraServers the totals over their chips are compared, computed from the
    parts. Formats of one width, such as fp8 and mxfp8, share a row, with the format in the cell. A value that a document
    does not have is shown as -, one that is unresolved as disputed. The columns are figure, the names of the documents,
    and NAME/BASELINE for ratios (ratio where there is only one).
    """
    graph = graph_for(*names, **options)
    nodes, base = compared(graph, names, baseline)
    everything = rows(graph, nodes)
    heading = ""
    if per is not None:
        divisors, heading = _divisors(graph, nodes, per)
        everything = [_divided(row, divisors) for row in everything if row.adds_up and row.at != "chips"]
    aligned = {at for row in everything for at in row.aligns}
    common = [r for r in everything if r.have > 1 and r.at not in aligned]
    if format_ in ("text", "markdown"):
        chosen = everything if full else common
        alone = len(everything) - len(chosen) - sum(r.at in aligned for r in everything if not full)

        def wide(shown: int) -> TextTable:
            most = sorted(chosen, key=lambda r: importance(r.at))[:shown]
            kept = [row for row in chosen if row in most]
            grouped = format_ == "text" and sort is None
            return _wide(nodes, base, kept, grouped=grouped).sorted(sort).selected(columns)

        def page(shown: int) -> list[Block]:
            return _page(wide(shown), heading, len(chosen) - shown, alone)

        emit(format_, lambda: fitted(page, len(chosen), full=full), lambda: wide(len(chosen)))
    else:
        about = {"baseline": nodes[base].name, "documents": [n.name for n in nodes], "per": per}
        long = _long(nodes, base, everything if full else [r for r in everything if r.have > 1])
        emit(format_, list, lambda: long.sorted(sort).selected(columns), lambda: about)


def compared(graph: Graph, names: Sequence[str], baseline: str | None) -> tuple[list[Node[Any]], int]:
    """The documents to compare, each once, and the index of the baseline, by default the first.

    Raises:
        UsageError: There are less than two, or the baseline is not one of them.
    """
    nodes = list({graph.named(name).name: graph.named(name) for name in names}.values())
    if len(nodes) < 2:  # a comparison
        raise UsageError("name at least two documents to compare")
    first = graph.named(baseline or names[0])
    if first not in nodes:
        raise UsageError(f"the baseline {first.name} is not one of the documents to compare")
    return nodes, nodes.index(first)


def _divisors(graph: Graph, nodes: Sequence[Node[Any]], per: str) -> tuple[list[Fraction], str]:
    """Divisors of the values of each document, and a sentence that states them.

    Raises:
        UsageError: The number of chips, or the price of the same type, is not known for one of them.
    """
    if per == "chip":
        counts = [chips(graph, node) for node in nodes]
        for node, count in zip(nodes, counts, strict=True):
            if count is None or not isinstance(count[0], int):
                raise UsageError(f"--per chip: the number of chips of {node.name} is not known")
        numbers = [Fraction(c[0]) for c in counts if c is not None]
        text = ", ".join(f"{n} of {node.name}" for n, node in zip(numbers, nodes, strict=True))
        return numbers, f"Per chip: divided by the number of chips, {text}."
    quoted = [{q.type: q for q in reversed(quotes(graph, n) if n.kind == "Server" else ())} for n in nodes]
    types = [type_ for type_ in ("on-demand", "capacity-block", "spot") if all(type_ in each for each in quoted)]
    if not types:
        known = "; ".join(f"{n.name}: {', '.join(q) or 'none'}" for n, q in zip(nodes, quoted, strict=True))
        raise UsageError(f"--per usd: no type of price is known for all documents ({known})")
    chosen = [each[types[0]] for each in quoted]  # type: ignore[index]  # a literal of the types
    text = "; ".join(f"{n.name} {q}" for n, q in zip(nodes, chosen, strict=True))
    return [q.figure.value.value for q in chosen], f"Per USD/h: divided by the price of an hour. {text}."


def _divided(row: ComparedPath, divisors: Sequence[Fraction]) -> ComparedPath:
    """The row with each value divided; the interval is that of the value."""
    values: list[ComparedValue | None] = []
    for value, by in zip(row.values, divisors, strict=True):
        amount = None if value is None else _amount(value.amount)
        if value is None or amount is None:
            values.append(value)
            continue
        ends = amount.interval
        interval = Interval(ends.low / by, None if ends.high is None else ends.high / by)
        quotient = evolve(amount, value=amount.value / by, interval=interval)
        shown = None if value.figure is None else evolve(value.figure, value=value.figure.value / by)
        text = f"{float(quotient.value):,.4g}" if shown is None else str(quotient)
        values.append(evolve(value, text=text, amount=quotient, figure=shown))
    return evolve(row, values=tuple(values))


def rows(graph: Graph, nodes: Sequence[Node[Any]]) -> list[ComparedPath]:
    """Every path that one of the documents has, in the order of the classes, grouped."""
    sides = [_values(graph, node) for node in nodes]
    found = {
        at: ComparedPath(at, values, adds_up=any(v is not None and v.adds_up for v in values))
        for at in in_groups(at for side in sides for at in side)
        for values in [tuple(side.get(at) for side in sides)]
    }
    result: list[ComparedPath] = []
    for at, row in found.items():
        result += _aligned(found, at)
        result.append(row)
    return result


def _aligned(found: Mapping[str, ComparedPath], at: str) -> list[ComparedPath]:
    """Before the first row of a width, the row that aligns the formats of that width, where documents have different ones."""
    before = group(at)
    for name, formats in _WIDTHS.items():
        same = [path for f in formats if (path := f"{before}.{f}") in found]
        if len(same) < 2 or at != next(path for path in found if path in same):
            continue
        best = [_best(found, same, i) for i in range(len(found[at].values))]
        if sum(v is not None for v in best) > max(found[path].have for path in same):
            return [ComparedPath(f"{before}.{name}", tuple(best), tuple(same), adds_up=True)]
    return []


def _best(found: Mapping[str, ComparedPath], paths: Sequence[str], index: int) -> ComparedValue | None:
    """The highest rate of a document among formats of one width, the plain format at equal rates."""
    known = [(path, v) for path in paths if (v := found[path].values[index]) is not None and v.figure is not None]
    if not known:
        return next((v for path in paths if (v := found[path].values[index]) is not None), None)
    path, value = max(known, key=lambda item: item[1].figure.value if item[1].figure is not None else Fraction(0))
    return evolve(value, format=path.rpartition(".")[2])


def _values(graph: Graph, node: Node[Any]) -> Mapping[str, ComparedValue]:
    values: dict[str, ComparedValue] = {}
    if isinstance(node.spec, Chip):
        values["chips"] = ComparedValue("1", 1, adds_up=True)
    for total in sums(graph, node):
        shown = displayed_total(total.value) if isinstance(total.value, Total) else None
        values[total.at] = ComparedValue(total.text, total.amount, shown, formula=total.parts, adds_up=True)
    for fact in facts(graph, node):
        # Ratios are comparisons already, notes are prose, and the counts of chips and cores are totals above.
        at = "cores" if fact.at == "cores.count" else fact.at
        if fact.value is None and any(c.verdict == "unresolved" for c in fact.conflicting):
            values[at] = ComparedValue(_DISPUTED)
        if fact.value is None or at.startswith("ratios.") or at.rpartition(".")[2] == "note" or at == "chips.count":
            continue
        shown = Displayed.of(fact.value.value) if isinstance(fact.value, Stated) else None
        formula = fact.reason if fact.verdict == "derived" else ""
        adds_up = is_extensive(type(node.spec), tuple(fact.at.split(".")))
        number: Any = fact.value.amount if isinstance(fact.value, Stated) else fact.value
        amount = number if isinstance(number, (Amount, int)) and not isinstance(number, bool) else None
        values[at] = ComparedValue(words(fact.value), amount, shown, fact.source, fact.as_of, formula, adds_up)
    # Of an announced chip a ratio stands for the figure that is not published.
    for ratio in node.spec.ratios if isinstance(node.spec, Chip) and node.spec.status is not None else ():
        for at in (dotted(path[1:]) for path in spread(ratio.of)):
            values.setdefault(at, ComparedValue(f"{ratio.says} of {ratio.over}", source=ratio.source.name))
    return values


def _amount(value: Amount | int | None) -> Amount | None:
    if isinstance(value, int):
        return Amount(Fraction(value), Dimension.RATIO, Interval.point(value), UNITS.unit("x"), 4)
    return value


def _page(wide: TextTable, heading: str, hidden: int, alone: int) -> list[Block]:
    counts = [f"{hidden} more" if hidden else "", f"{alone} that only one document has" if alone else ""]
    total = hidden + alone
    text = f"Hidden {'row' if total == 1 else 'rows'}: {', '.join(c for c in counts if c)}; --full prints all."
    blocks: list[Block] = [wrapped("", heading, width())] if heading else []
    return [*blocks, wide, *([wrapped("", text, width())] if total else [])]


def _wide(nodes: Sequence[Node[Any]], base: int, chosen: Sequence[ComparedPath], *, grouped: bool) -> TextTable:
    """For people: a column for each document and one for its ratio to the baseline, each row in one unit."""
    columns = [Column("figure", wrap=True, identity=True)]
    for i, node in enumerate(nodes):
        columns.append(Column(node.name, right=True, wrap=True, importance=1))
        if i != base:
            key = "ratio" if len(nodes) == 2 else f"{node.name}/{nodes[base].name}"
            columns.append(Column("ratio" if grouped else key, right=True, key=key))
    lines: list[Sequence[Cell] | str] = []
    units = _units(chosen)
    shown = ""
    for row in chosen:
        if grouped and group(row.at) != shown:
            shown = group(row.at)
            lines.append(shown)
        unit, values = in_one_unit(row, units.get((_kind(row.at), _dimension(row))))
        label = f"  {row.at.rpartition('.')[2]}" if grouped and shown else row.at
        cells: list[Cell] = [f"{label} [{unit}]" if unit else label]
        for i, value in enumerate(row.values):
            cells.append(values[i])
            if i != base:
                ratio = ratio_of(value, row.values[base])
                # Text has no ratio; that is not a gap.
                is_text = value is not None and value.amount is None
                if ratio is None:
                    cells.append("" if is_text else None)
                else:  # all digits of a whole part
                    text = render(ratio.value, ratio.unit, 3 if ratio.value < 1000 else 6)
                    cells.append(Number(ratio.value, text))
        lines.append(cells)
    return table(columns, lines, "--columns")


def _kind(at: str) -> str:
    """The paths that share a unit on a page: all rates, all sizes of a memory."""
    return "peak" if ".dense." in at or ".sparse." in at else group(at)


def _dimension(row: ComparedPath) -> Dimension | None:
    found = {v.figure.unit.dimension for v in row.values if v is not None and v.figure is not None}
    return found.pop() if len(found) == 1 else None


def _units(chosen: Sequence[ComparedPath]) -> dict[tuple[str, Dimension | None], Unit]:
    """One unit for the figures of a group that have one dimension."""
    figures: dict[tuple[str, Dimension | None], list[Displayed]] = {}
    for row in chosen:
        known = [v.figure for v in row.values if v is not None and v.figure is not None]
        figures.setdefault((_kind(row.at), _dimension(row)), []).extend(known)
    return {key: common_unit(known) for key, known in figures.items() if known and key[1] is not None}


def in_one_unit(row: ComparedPath, unit: Unit | None = None) -> tuple[str, list[Cell]]:
    """The unit of a row, empty where it has none, and its cells; with the formats where it aligns several."""
    figures = [v.figure for v in row.values if v is not None and v.figure is not None]
    if not figures or len({f.unit.dimension for f in figures}) > 1:
        return "", [None if v is None else v.amount if isinstance(v.amount, int) else v.text for v in row.values]
    unit = unit or common_unit(figures)
    cells: list[Cell] = []
    for value in row.values:
        if value is None or value.figure is None:
            cells.append(None if value is None else value.text)
        else:
            number = value.figure.text(unit)
            cells.append(Number(value.figure.value, f"{number} {value.format}" if value.format else number))
    return ("" if unit.symbol == "x" else unit.symbol), cells


def ratio_of(value: ComparedValue | None, base: ComparedValue | None) -> Amount | None:
    """The ratio of two values; ``None`` where one of them is missing, or there is none."""
    return None if value is None or base is None else value.over(base)


def _long(nodes: Sequence[Node[Any]], base: int, chosen: Sequence[ComparedPath]) -> TextTable:
    """For programs: a row for each figure and document."""
    names = ("at", "document", "says", "value", "low", "high", "unit", "ratio", "ratio_low", "ratio_high", "source")
    cells: list[tuple[Cell, ...]] = []
    for row in chosen:
        for node, value in zip(nodes, row.values, strict=True):
            ratio = ratio_of(value, row.values[base])
            bounds = (None, None, None) if ratio is None else (ratio.value, ratio.interval.low, ratio.interval.high)
            origin = ("", "", "") if value is None else (value.source, value.as_of, value.formula)
            says, amount = (None, None) if value is None else (value.text, value.amount)
            cells.append((row.at, node.name, says, *numbers(amount), *bounds, *origin))
    return table((*names, "date", "formula"), cells)
