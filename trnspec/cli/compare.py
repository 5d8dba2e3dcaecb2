"""``trnspec compare``: documents side by side, each figure in one unit, with ratios to a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from trnspec.cli.common import catalog_options
from trnspec.cli.complete import documents
from trnspec.cli.figures import displayed_total
from trnspec.cli.help import GroupedCommand, GroupedOption
from trnspec.cli.names import graph_for
from trnspec.cli.render import emit, format_option, table_options, width
from trnspec.errors import UsageError
from trnspec.graph.facts import facts, group, in_groups, words
from trnspec.graph.provenance import Stated
from trnspec.graph.totals import Total, sums
from trnspec.model.chip import Chip
from trnspec.quantities.amount import Amount
from trnspec.quantities.display import Displayed, common_unit
from trnspec.text_table import Block, Cell, Column, Number, Table, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@frozen
class Value:
    """The value of one document in a row.

    Attributes:
        text: As published.
        amount: What can be divided: an amount, or a count; ``None`` for text.
        figure: The figure to show next to others; ``None`` for a count or text.
        source: The name of its source; empty for a total and for a figure that is derived.
        as_of: The date of the source.
        formula: How it is computed, where it is: ``16 x 96 GiB of trainium2``.
    """

    text: str
    amount: Amount | int | None = None
    figure: Displayed | None = None
    source: str = ""
    as_of: str = ""
    formula: str = ""

    def over(self, other: Value) -> Amount | None:
        """This value divided by another of the same dimension; ``None`` where there is no such ratio."""
        mine, theirs = _amount(self.amount), _amount(other.amount)
        if mine is None or theirs is None or mine.dimension is not theirs.dimension or not theirs.value:
            return None
        return mine / theirs


@frozen
class Row:
    """A path with the value of each document; ``None`` where it has none."""

    at: str
    values: tuple[Value | None, ...]

    @property
    def have(self) -> int:
        """How many documents have a value."""
        return sum(v is not None for v in self.values)


@click.command(
    "compare",
    cls=GroupedCommand,
    examples=(
        ("trnspec compare trainium1 trainium2 trainium3", "Three chips, with ratios to the first:"),
        ("trnspec compare trn1.32xlarge trn2.48xlarge --sort -ratio", "Two servers, the largest difference first:"),
        (
            "trnspec compare trainium2 trainium3 --baseline trainium3 --columns figure,trainium2,trainium3",
            "Values without ratios:",
        ),
    ),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=documents())
@click.option(
    "--baseline",
    cls=GroupedOption,
    group="Output",
    metavar="NAME",
    help="The document that ratios refer to; the first NAME when left out.",
)
@click.option(
    "--all", "all_", is_flag=True, cls=GroupedOption, group="Output", help="Also print rows that only one document has."
)
@table_options
@format_option
@catalog_options
def command(
    names: tuple[str, ...],
    baseline: str | None,
    all_: bool,  # noqa: FBT001  # click passes it by name
    columns: str | None,
    sort: str | None,
    format_: str,
    **options: Any,
) -> None:
    """Print documents side by side: values, and their ratios to the baseline.

    Each row is in one unit. For servers and UltraServers the totals over their chips are compared, computed from the
    parts. A value that a document does not have is shown as -. The columns are figure, the names of the documents, and
    NAME/BASELINE for ratios (ratio where there is only one).
    """
    graph = graph_for(*names, **options)
    nodes = list({graph.named(name).name: graph.named(name) for name in names}.values())
    if len(nodes) < 2:  # a comparison
        raise UsageError("name at least two documents to compare")
    first = graph.named(baseline or names[0])
    if first not in nodes:
        raise UsageError(f"the baseline {first.name} is not one of the documents to compare")
    base = nodes.index(first)
    everything = rows(graph, nodes)
    chosen = everything if all_ else [r for r in everything if r.have > 1]
    if format_ in ("text", "markdown"):
        wide = _wide(nodes, base, chosen, grouped=format_ == "text" and sort is None).sorted(sort).selected(columns)
        emit(format_, lambda: _page(wide, len(everything) - len(chosen)), lambda: wide)
    else:
        about = {"baseline": first.name, "documents": [n.name for n in nodes]}
        long = _long(nodes, base, chosen).sorted(sort).selected(columns)
        emit(format_, list, lambda: long, lambda: about)


def rows(graph: Graph, nodes: Sequence[Node[Any]]) -> list[Row]:
    """Every path that one of the documents has, in the order of the classes, grouped."""
    sides = [_values(graph, node) for node in nodes]
    return [Row(at, tuple(side.get(at) for side in sides)) for at in in_groups(at for side in sides for at in side)]


def _values(graph: Graph, node: Node[Any]) -> Mapping[str, Value]:
    values: dict[str, Value] = {}
    if isinstance(node.spec, Chip):
        values["chips"] = Value("1", 1)
    for total in sums(graph, node):
        shown = displayed_total(total.value) if isinstance(total.value, Total) else None
        values[total.at] = Value(total.text, total.amount, shown, formula=total.parts)
    for fact in facts(graph, node):
        # Ratios are comparisons already, notes are prose, and the counts of chips and cores are totals above.
        at = "cores" if fact.at == "cores.count" else fact.at
        if fact.value is None or at.startswith("ratios.") or at.rpartition(".")[2] == "note" or at == "chips.count":
            continue
        shown = Displayed.of(fact.value.value) if isinstance(fact.value, Stated) else None
        formula = fact.reason if fact.verdict == "derived" else ""
        values[at] = Value(words(fact.value), _of(fact.value), shown, fact.source, fact.as_of, formula)
    return values


def _of(value: object) -> Amount | int | None:
    if isinstance(value, Stated):
        return value.amount
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _amount(value: Amount | int | None) -> Amount | None:
    if isinstance(value, int):
        from fractions import Fraction

        from trnspec.quantities.quantity import Interval
        from trnspec.quantities.units import UNITS, Dimension

        return Amount(Fraction(value), Dimension.RATIO, Interval.point(value), UNITS.unit("x"), 4)
    return value


def _page(wide: Table, omitted: int) -> list[Block]:
    blocks: list[Block] = [wide]
    if omitted:
        rows = (
            "1 row that only one document has is" if omitted == 1 else f"{omitted} rows that only one document has are"
        )
        blocks.append(wrapped("", f"{rows} not shown; --all shows all.", width()))
    return blocks


def _wide(nodes: Sequence[Node[Any]], base: int, chosen: Sequence[Row], *, grouped: bool) -> Table:
    """For people: a column for each document and one for its ratio to the baseline, each row in one unit."""
    columns = [Column("figure", wrap=True, identity=True)]
    for i, node in enumerate(nodes):
        columns.append(Column(node.name, right=True, wrap=True, importance=1))
        if i != base:
            key = "ratio" if len(nodes) == 2 else f"{node.name}/{nodes[base].name}"
            columns.append(Column("ratio" if grouped else key, right=True, key=key))
    lines: list[Sequence[Cell] | str] = []
    shown = ""
    for row in chosen:
        if grouped and group(row.at) != shown:
            shown = group(row.at)
            lines.append(shown)
        unit, values = in_one_unit(row)
        label = f"  {row.at.rpartition('.')[2]}" if grouped and shown else row.at
        cells: list[Cell] = [f"{label} [{unit}]" if unit else label]
        for i, value in enumerate(row.values):
            cells.append(values[i])
            if i != base:
                ratio = ratio_of(value, row.values[base])
                # Text has no ratio; that is not a gap.
                is_text = value is not None and value.amount is None
                cells.append(Number(ratio.value, _times(ratio)) if ratio is not None else "" if is_text else None)
        lines.append(cells)
    return table(columns, lines, "--columns")


def in_one_unit(row: Row) -> tuple[str, list[Cell]]:
    """The unit of a row, empty where it has none, and its cells."""
    figures = [v.figure for v in row.values if v is not None and v.figure is not None]
    if not figures or len({f.unit.dimension for f in figures}) > 1:
        return "", [None if v is None else v.amount if isinstance(v.amount, int) else v.text for v in row.values]
    unit = common_unit(figures)
    cells: list[Cell] = []
    for value in row.values:
        if value is None or value.figure is None:
            cells.append(None if value is None else value.text)
        else:
            cells.append(Number(value.figure.value, value.figure.text(unit)))
    return ("" if unit.symbol == "x" else unit.symbol), cells


def _times(ratio: Amount) -> str:
    from trnspec.quantities.quantity import render

    return render(ratio.value, ratio.unit, 3 if ratio.value < 1000 else 6)  # all digits of a whole part


def ratio_of(value: Value | None, base: Value | None) -> Amount | None:
    """The ratio of two values; ``None`` where one of them is missing, or there is none."""
    return None if value is None or base is None else value.over(base)


def _long(nodes: Sequence[Node[Any]], base: int, chosen: Sequence[Row]) -> Table:
    """For programs: a row for each figure and document."""
    numbers = ("value", "low", "high", "unit", "ratio", "ratio_low", "ratio_high")
    names = ("at", "document", "says", *numbers, "source", "date", "formula")
    cells: list[tuple[Cell, ...]] = []
    for row in chosen:
        for node, value in zip(nodes, row.values, strict=True):
            ratio = ratio_of(value, row.values[base])
            bounds = (None, None, None) if ratio is None else (ratio.value, ratio.interval.low, ratio.interval.high)
            origin = ("", "", "") if value is None else (value.source, value.as_of, value.formula)
            cells.append((row.at, node.name, None if value is None else value.text, *_numbers(value), *bounds, *origin))
    return table(names, cells)


def _numbers(value: Value | None) -> tuple[Cell, ...]:
    if value is None or value.amount is None:
        return None, None, None, None
    if isinstance(value.amount, int):
        return value.amount, value.amount, value.amount, None
    amount = value.amount
    return amount.value, amount.interval.low, amount.interval.high, amount.dimension.base
