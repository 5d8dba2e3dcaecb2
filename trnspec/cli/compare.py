"""``trnspec compare``: documents side by side, values and ratios; a gap is a gap and never 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from trnspec.cli.common import catalog_options
from trnspec.cli.names import completer, graph_for
from trnspec.cli.render import Block, Cell, Column, Table, emit, format_option, table, wrapped
from trnspec.errors import UsageError
from trnspec.graph.facts import facts, group, in_groups, words
from trnspec.graph.provenance import Stated
from trnspec.graph.totals import sums
from trnspec.model.chip import Chip
from trnspec.quantities.amount import Amount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@frozen
class Value:
    """One side of a row.

    Attributes:
        text: As people read it.
        amount: What can be divided: an amount, or a count; ``None`` for a word.
    """

    text: str
    amount: Amount | int | None = None

    def over(self, other: Value) -> Amount | None:
        """This value divided by another of the same dimension; ``None`` where there is no such ratio."""
        mine, theirs = _amount(self.amount), _amount(other.amount)
        if mine is None or theirs is None or mine.dimension is not theirs.dimension or not theirs.value:
            return None
        return mine / theirs


@frozen
class Row:
    """A path with what each document has there; ``None`` where it has nothing."""

    at: str
    values: tuple[Value | None, ...]

    @property
    def have(self) -> int:
        """How many documents have something there."""
        return sum(v is not None for v in self.values)


@click.command("compare")
@click.argument("names", nargs=-1, required=True, metavar="NAME NAME...", shell_complete=completer())
@click.option("--baseline", metavar="NAME", help="What ratios are to; the first NAME when left out.")
@click.option("--all", "all_", is_flag=True, help="Also rows that only one of them has.")
@format_option
@catalog_options
def command(names: tuple[str, ...], baseline: str | None, all_: bool, format_: str, **options: Any) -> None:  # noqa: FBT001  # click passes it by name
    """Print documents side by side: values, and how many times the baseline each is.

    Of a server or an UltraServer the totals over its chips are compared, computed from the parts. What a document does
    not have is shown as -, whatever the others have.
    """
    graph = graph_for(*names, **options)
    nodes = list({graph.named(name).name: graph.named(name) for name in names}.values())
    if len(nodes) < 2:  # a comparison
        raise UsageError("name at least two documents to compare")
    first = graph.named(baseline or names[0])
    if first not in nodes:
        raise UsageError(f"the baseline {first.name} is not among those that are compared")
    base = nodes.index(first)
    found = rows(graph, nodes)
    chosen = found if all_ else [r for r in found if r.have > 1]
    if format_ in ("text", "markdown"):
        wide = _wide(nodes, base, chosen, grouped=format_ == "text")
        emit(format_, lambda: _page(wide, len(found) - len(chosen)), lambda: wide)
    else:
        about = {"baseline": first.name, "documents": [n.name for n in nodes]}
        emit(format_, list, lambda: _long(nodes, base, chosen), lambda: about)


def rows(graph: Graph, nodes: Sequence[Node[Any]]) -> list[Row]:
    """Every path that one of the documents has, in the order of the classes, those of one group together."""
    sides = [_values(graph, node) for node in nodes]
    return [Row(at, tuple(side.get(at) for side in sides)) for at in in_groups(at for side in sides for at in side)]


def _values(graph: Graph, node: Node[Any]) -> Mapping[str, Value]:
    found: dict[str, Value] = {}
    if isinstance(node.spec, Chip):
        found["chips"] = Value("1", 1)
    for total in sums(graph, node):
        found[total.at] = Value(total.text, total.amount)
    for fact in facts(graph, node):
        # Ratios compare already, notes are for reading, and how many chips or cores there are is told above.
        at = "cores" if fact.at == "cores.count" else fact.at
        if fact.value is None or at.startswith("ratios.") or at.rpartition(".")[2] == "note" or at == "chips.count":
            continue
        found[at] = Value(words(fact.value), _of(fact.value))
    return found


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


def _page(wide: Table, hidden: int) -> list[Block]:
    blocks: list[Block] = [wide]
    if hidden:
        rows = "1 row that only one of them has is" if hidden == 1 else f"{hidden} rows that only one of them has are"
        blocks.append(wrapped("", f"{rows} left out; --all shows all."))
    return blocks


def _wide(nodes: Sequence[Node[Any]], base: int, found: Sequence[Row], *, grouped: bool) -> Table:
    """For people: a column for each document and one for its ratio to the baseline."""
    columns = [Column("" if grouped else "figure", fold=True)]
    for i, node in enumerate(nodes):
        columns.append(Column(node.name, right=True, fold=True))
        if i != base:
            columns.append(Column("ratio" if grouped else f"{node.name} / {nodes[base].name}", right=True))
    made: list[Sequence[Cell] | str] = []
    shown = ""
    for row in found:
        if grouped and group(row.at) != shown:
            shown = group(row.at)
            made.append(shown)
        cells: list[Cell] = [f"  {row.at.rpartition('.')[2]}" if grouped and shown else row.at]
        for i, value in enumerate(row.values):
            cells.append(None if value is None else value.text)
            if i != base:
                ratio = _ratio(value, row.values[base])
                # Between words there is no ratio, which is nothing that is lacking.
                words_ = value is not None and value.amount is None
                cells.append("" if ratio is None and words_ else None if ratio is None else _times(ratio))
        made.append(cells)
    return table(columns, made)


def _times(ratio: Amount) -> str:
    from trnspec.quantities.quantity import render

    return render(ratio.value, ratio.unit, 3 if ratio.value < 1000 else 6)  # all digits of a whole part


def _ratio(value: Value | None, base: Value | None) -> Amount | None:
    return None if value is None or base is None else value.over(base)


def _long(nodes: Sequence[Node[Any]], base: int, found: Sequence[Row]) -> Table:
    """For programs: a line for each figure and document."""
    names = ("at", "document", "says", "value", "low", "high", "unit", "ratio", "ratio_low", "ratio_high")
    made: list[tuple[Cell, ...]] = []
    for row in found:
        for node, value in zip(nodes, row.values, strict=True):
            ratio = _ratio(value, row.values[base])
            bounds = (None, None, None) if ratio is None else (ratio.value, ratio.interval.low, ratio.interval.high)
            made.append((row.at, node.name, None if value is None else value.text, *_numbers(value), *bounds))
    return table(names, made)


def _numbers(value: Value | None) -> tuple[Cell, ...]:
    if value is None or value.amount is None:
        return None, None, None, None
    if isinstance(value.amount, int):
        return value.amount, value.amount, value.amount, None
    amount = value.amount
    return amount.value, amount.interval.low, amount.interval.high, amount.dimension.base
