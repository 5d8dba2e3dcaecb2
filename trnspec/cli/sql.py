"""``trnspec sql``: SQL queries over the tables of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.help import documented
from trnspec.cli.render import emit, format_option
from trnspec.errors import UsageError, library
from trnspec.text_table import Cell, Column, TextTable, table

if TYPE_CHECKING:  # an extra
    import pyarrow as pa


@documented(
    "sql",
    ("trnspec sql 'SHOW TABLES'", "The tables:"),
    ("trnspec sql 'SELECT name, \"memory.capacity\" / 1024**3 AS GiB FROM chips'", "The memory of all chips:"),
    ("trnspec sql 'SELECT * FROM claims' --format csv", "All claims, as CSV:"),
    ("trnspec sql 'DESCRIBE chips'", "The columns of a table:"),
)
@click.argument("statement", metavar="SELECT")
@format_option
@catalog_options
def command(statement: str, format_: str, **options: Any) -> None:
    """Query the tables of the catalog in SQL, with an embedded DuckDB.

    There is a table for each kind, such as chips, with a column for each path, and the tables figures and claims. A path is
    one name in double quotes: SELECT name, "memory.capacity" FROM chips. Numbers are in base units (B, B/s, FLOPS, s).
    'SHOW TABLES' and 'DESCRIBE chips' list tables and columns. Files cannot be read, and nothing can be written. A query
    may take 30 s and 512 MB. Needs the extra: pip install 'trnspec[tables]'.
    """
    catalog = load_catalog(**options)
    library("duckdb")  # before the memory is limited
    library("pyarrow")
    with _limited_memory():
        result = catalog.sql(statement)
    if format_ == "json" and len(set(result.column_names)) < result.num_columns:
        raise UsageError("two columns have the same name; rename one with AS")
    emit(format_, lambda: [_table(result)] if result.num_rows else ["No rows."], lambda: _table(result))


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Limit the address space: DuckDB does not count a single large value, nor interrupt the function that makes it."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # a pseudo file
            present = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        yield  # another system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [present + _SPACE, *(each for each in (soft, hard) if each != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


_SPACE = 2**31
"""The address space of a query: its memory, that of the tables, and the stacks of threads."""


def _table(result: pa.Table) -> TextTable:
    cells = [[_cell(v) for v in column.to_pylist()] for column in result.columns]
    columns = [
        Column(
            name, right=any(v is not None and not isinstance(v, (str, bool)) for v in values), wrap=i > 0, keep=i == 0
        )
        for i, (name, values) in enumerate(zip(result.column_names, cells, strict=True))
    ]
    return table(columns, list(zip(*cells, strict=True)))


def _cell(value: Any) -> Cell:
    """A value as a cell: lists, dates and others as text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        # JSON has no NaN and no infinity.
        return value if value - value == 0 else str(value)
    if isinstance(value, list):
        return ", ".join(str(v) for v in value)
    return str(value)
