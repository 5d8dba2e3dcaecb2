"""``trnspec query``: the documents of a kind that fulfil a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.render import Block, Cell, Column, Table, emit, format_option, table, wrapped
from trnspec.model.parts import CountRange
from trnspec.quantities.amount import Amount

if TYPE_CHECKING:
    from trnspec.catalog.query.run import Result
    from trnspec.catalog.views import DocumentView
    from trnspec.graph.values import PathValue


@click.command("query")
@click.argument("expression", metavar="QUERY")
@click.option("--columns", metavar="PATH,...", help="What to print of each: paths, or one path / another.")
@click.option("--sort", metavar="PATH,...", help="What to sort by; with - before it, the most first.")
@format_option
@catalog_options
def command(expression: str, columns: str | None, sort: str | None, format_: str, **options: Any) -> None:
    """Print the documents of a kind that fulfil a condition.

    QUERY is KIND [where CONDITION], such as 'server where peak.dense.bf16 >= 3 PFLOPS and memory.capacity > 1 TiB'.
    What is not known is neither more nor less than anything. Paths of a chip give, for servers and UltraServers, the
    totals over their chips. JSON and CSV give numbers in base units. docs/reference/query.md tells the language.
    """
    found = load_catalog(**options).query(expression, columns=_split(columns), sort=_split(sort))
    emit(format_, lambda: _page(found), lambda: _data(found, format_), lambda: _about(expression, found))


def _about(expression: str, found: Result[DocumentView]) -> dict[str, Any]:
    return {"query": expression, "units": dict(found.units), "undecided": [b.name for b in found.undecided]}


def _split(text: str | None) -> list[str]:
    return [] if text is None else text.split(",")


def _page(found: Result[DocumentView]) -> list[Block]:
    blocks: list[Block] = [_printed(found)] if found else ["No document fulfils it."]
    if found.undecided:
        names = ", ".join(b.name for b in found.undecided)
        blocks.append(wrapped("Not known of: ", f"{names}."))
    return blocks


def _printed(found: Result[DocumentView]) -> Table:
    columns = [Column(c, right=_right(found, i), fold=i > 0, keep=i == 0) for i, c in enumerate(found.columns)]
    return table(columns, [[None if c is None else c.text for c in row] for row in found.cells])


def _right(found: Result[DocumentView], index: int) -> bool:
    return any(row[index] is not None and not isinstance(_value(row[index]), str) for row in found.cells)


def _data(found: Result[DocumentView], format_: str) -> Table:
    if format_ == "markdown":
        return _printed(found)
    # JSON tells the units beside the rows, CSV has no other place for them than the heading.
    units = found.units if format_ == "csv" else {}
    names = [f"{c} [{units[c]}]" if c in units else c for c in found.columns]
    return table(names, [[_value(c) for c in row] for row in found.cells])


def _value(found: PathValue | None) -> Cell:
    if found is None:
        return None
    if isinstance(found.value, CountRange) or found.is_bound:
        return found.text
    return found.value.value if isinstance(found.value, Amount) else found.value
