"""``trnspec sql``: the tables of the catalog, asked in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.render import Cell, Column, Table, emit, format_option, table
from trnspec.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


@click.command("sql")
@click.argument("statement", metavar="SELECT")
@format_option
@catalog_options
def command(statement: str, format_: str, **options: Any) -> None:
    """Ask the tables of the catalog in SQL, by an embedded DuckDB.

    There is a table for each kind (chips, servers, ultraservers, cores, links, clusters, models, sources) with a column
    for each path, and figures and claims. A path is one name in double quotes: SELECT name, "memory.capacity" FROM chips.
    Numbers are in base units (B, B/s, FLOPS, s). 'SHOW TABLES' and 'DESCRIBE chips' tell what there is. Nothing else
    can be read, and nothing can be written. Needs the extra: pip install 'trnspec[tables]'.
    """
    found = load_catalog(**options).sql(statement)
    if format_ == "json" and len(set(found.column_names)) < found.num_columns:
        raise UsageError("two columns have one name; give one of them another with AS")
    emit(format_, lambda: [_table(found)] if found.num_rows else ["No rows."], lambda: _table(found))


def _table(found: pa.Table) -> Table:
    cells = [[_cell(v) for v in column.to_pylist()] for column in found.columns]
    columns = [
        Column(name, right=_numbers(values), fold=i > 0, keep=i == 0)
        for i, (name, values) in enumerate(zip(found.column_names, cells, strict=True))
    ]
    return table(columns, list(zip(*cells, strict=True)))


def _numbers(values: list[Cell]) -> bool:
    return any(v is not None and not isinstance(v, (str, bool)) for v in values)


def _cell(value: Any) -> Cell:
    """A value as a cell: lists, dates and the like as texts."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        # JSON has no word for these.
        return value if value - value == 0 else str(value)
    if isinstance(value, list):
        return ", ".join(str(v) for v in value)
    return str(value)
