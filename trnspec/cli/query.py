"""``trnspec query``: the documents of a kind that satisfy a condition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from trnspec.catalog.figure_column import figure_column
from trnspec.catalog.query.run import Result
from trnspec.catalog.views import DocumentView
from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.complete import path_list
from trnspec.cli.help import documented, option
from trnspec.cli.render import emit, format_option, width
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated, figures
from trnspec.graph.values import PathValue
from trnspec.model.parts import CountRange
from trnspec.quantities.amount import Amount
from trnspec.quantities.display import Displayed
from trnspec.text_table import Block, Cell, Column, TextTable, table, wrapped


@documented(
    "query",
    ("trnspec query 'chip where memory.capacity > 90 GiB'", "Chips with more than 90 GiB:"),
    (
        "trnspec query server --columns name,peak.dense.bf16,memory.bandwidth --sort -peak.dense.bf16",
        "Servers by their bf16 rate:",
    ),
    (
        "trnspec query chip --columns 'name, peak.dense.bf16 / memory.bandwidth'",
        "The arithmetic intensity at which each chip becomes compute-bound:",
    ),
    ("trnspec query 'server where chips.count = 16' --format csv", "Servers with 16 chips, as CSV in base units:"),
)
@click.argument("expression", metavar="QUERY")
@option("--columns PATH,...", "Output", "Columns to print: paths, or one path / another.", shell_complete=path_list)
@option("--sort PATH,...", "Output", "Sort by these paths; -PATH descending.", shell_complete=path_list)
@format_option
@catalog_options
def command(expression: str, columns: str | None, sort: str | None, format_: str, **options: Any) -> None:
    """Print the documents of a kind that satisfy a condition.

    QUERY is KIND [where CONDITION], such as 'server where peak.dense.bf16 >= 3 PFLOPS and memory.capacity > 1 TiB'. An
    unknown figure satisfies no comparison; its document is listed below the table. Paths of a chip give the totals of
    servers and UltraServers. JSON and CSV give numbers in base units. The language is described in
    docs/reference/query.md.
    """
    catalog = load_catalog(**options)
    result = catalog.query(expression, columns=_split(columns), sort=_split(sort))
    emit(
        format_,
        lambda: _page(result),
        lambda: _data(result, format_),
        lambda: _about(expression, result, catalog.graph),
    )


def _about(expression: str, result: Result[DocumentView], graph: Graph) -> dict[str, Any]:
    return {
        "query": expression,
        "units": dict(result.units),
        "undecided": [b.name for b in result.undecided],
        "hints": list(result.hints),
        "figures": list(_figures(result, graph)),
    }


def _figures(result: Result[DocumentView], graph: Graph) -> Iterator[dict[str, Any]]:
    """Interval, text, source and date of every figure of the result; of a total those of the figure of one part."""
    for view, cells in zip(result, result.cells, strict=True):
        for column, cell in zip(result.columns, cells, strict=True):
            if cell is None or not isinstance(cell.value, Amount):
                continue
            amount = cell.value
            printed = _stated(cell, graph)
            yield {
                "name": view.name,
                "column": column,
                "says": cell.text,
                "low": amount.interval.low,
                "high": amount.interval.high,
                "unit": amount.dimension.base,
                "of": printed.of if printed else None,
                "source": printed.source_name if printed else None,
                "date": printed.as_of if printed else None,
                "formula": printed.derived if printed else None,
            }


def _stated(cell: PathValue, graph: Graph) -> Stated | None:
    """The figure that a cell shows or is computed from, with its provenance; ``None`` for a quotient."""
    if cell.part is None or cell.figure is None:
        return None
    return next((s for s in figures(graph, cell.part).values() if s.value is cell.figure.value), None)


def _split(text: str | None) -> list[str]:
    return [] if text is None else text.split(",")


def _page(result: Result[DocumentView]) -> list[Block]:
    blocks: list[Block] = [_printed(result)] if result else ["No document satisfies the condition."]
    if result.undecided:
        names = ", ".join(b.name for b in result.undecided)
        blocks.append(wrapped("unknown for: ", names, width()))
    return [*blocks, *(wrapped("note: ", hint, width()) for hint in result.hints)]


def _printed(result: Result[DocumentView]) -> TextTable:
    """The result for people, each column in one unit."""
    columns: list[Column] = []
    cells: list[list[Cell]] = []
    for i, name in enumerate(result.columns):
        column, values, _ = figure_column(name, [_displayed(row[i]) for row in result.cells])
        wrap = i > 0 and not column.right
        columns.append(Column(column.name, right=column.right, wrap=wrap, key=name))
        cells.append(values)
    return table(columns, list(zip(*cells, strict=True)), "--columns")


def _displayed(value: PathValue | None) -> Displayed | Cell:
    if value is None:
        return None
    amount = value.value
    if not isinstance(amount, Amount) or value.is_bound:
        return amount if isinstance(amount, int) and not isinstance(amount, bool) else value.text
    # What precedes the number, such as "~", is in the text alone.
    prefix = re.match(r"(?:~|[<>]=?|up to )?", value.text)
    return Displayed(amount.value, amount.unit, amount.digits, prefix[0] if prefix else "", amount.table)


def _data(result: Result[DocumentView], format_: str) -> TextTable:
    if format_ == "markdown":
        return _printed(result)
    # JSON has the units next to the rows, CSV only in the headings.
    units = result.units if format_ == "csv" else {}
    names = [f"{c} [{units[c]}]" if c in units else c for c in result.columns]
    return table(names, [[_value(c) for c in row] for row in result.cells])


def _value(value: PathValue | None) -> Cell:
    if value is None:
        return None
    if isinstance(value.value, CountRange) or value.is_bound:
        return value.text
    return value.value.value if isinstance(value.value, Amount) else value.value
