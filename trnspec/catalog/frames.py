"""The tables of a catalog as data frames, Parquet, CSV and SQL; ``trnspec[tables]`` installs the libraries."""

from __future__ import annotations

import json
import os
from pathlib import Path as FilePath
from threading import Timer
from typing import TYPE_CHECKING, Any

from trnspec._version import __version__
from trnspec.atomic_write import write
from trnspec.catalog.tables import CatalogColumn, CatalogTable, csv_files, json_text, tables
from trnspec.errors import UsageError, library
from trnspec.graph.graph import Graph

if TYPE_CHECKING:  # extras
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Tabular:
    """The tables of a catalog: one for each kind (``chips``, ``servers``, ...), ``figures`` and ``claims``.

    Columns of figures are in base units (B, B/s, FLOPS, s); the metadata of a column has unit, description and sources.
    """

    __slots__ = ()
    graph: Graph
    edition: str | None
    as_of: str | None
    _arrow_tables: dict[str, pa.Table]

    def _tables(self) -> dict[str, CatalogTable]:
        return tables(self.graph)

    def _about(self) -> dict[str, str | None]:
        return {"trnspec": __version__, "edition": self.edition, "as_of": self.as_of}

    def to_arrow(self) -> dict[str, pa.Table]:
        """The Arrow tables by name; the metadata of a field has unit, dimension, description and sources.

        Raises:
            UsageError: pyarrow is not installed.
        """
        if not self._arrow_tables:
            self._arrow_tables.update({name: _arrow(table, self._about()) for name, table in self._tables().items()})
        return dict(self._arrow_tables)

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """The data frames of pandas by name; ``frame.attrs["columns"]["memory.capacity"]["unit"]`` is a unit.

        Raises:
            UsageError: pandas or pyarrow is not installed.
        """
        pandas = library("pandas")
        # Counts with missing values stay integers.
        types = {library("pyarrow").int64(): pandas.Int64Dtype()}
        frames: dict[str, pd.DataFrame] = {}
        for name, table in self.to_arrow().items():
            frames[name] = table.to_pandas(types_mapper=types.get)
            frames[name].attrs |= {
                **_plain(table.schema.metadata),
                "columns": {f.name: _plain(f.metadata) for f in table.schema if f.metadata},
            }
        return frames

    def to_polars(self) -> dict[str, pl.DataFrame]:
        """The data frames of polars by name. They have no metadata; units are in ``figures`` and in ``to_arrow``.

        Raises:
            UsageError: polars or pyarrow is not installed.
        """
        polars = library("polars")
        return {name: polars.from_arrow(table) for name, table in self.to_arrow().items()}

    def sql(self, text: str) -> pa.Table:
        """The result of one SQL query over the tables, in an embedded DuckDB: ``SELECT name FROM chips``.

        Only the tables can be read, and nothing can be written. A path is a name in double quotes:
        ``"memory.capacity"``. Time and memory are limited: :data:`SQL_SECONDS`, :data:`SQL_MEMORY`, :data:`SQL_RESULT`.

        Raises:
            UsageError: The query is invalid, not a SELECT or beyond a limit, or duckdb or pyarrow is not installed.
        """
        return _select(self.to_arrow(), text)

    def write_parquet(self, folder: str | os.PathLike[str]) -> None:
        """Writes one file per table, ``chips.parquet`` and so on, with the metadata of ``to_arrow``.

        Raises:
            UsageError: pyarrow is not installed.
            OSError: A file cannot be written; then none is changed.
        """
        parquet, arrow = library("pyarrow.parquet"), library("pyarrow")
        files: dict[FilePath, bytes] = {}
        for name, table in self.to_arrow().items():
            sink = arrow.BufferOutputStream()
            parquet.write_table(table, sink)
            files[FilePath(folder) / f"{name}.parquet"] = sink.getvalue().to_pybytes()
        write(files)

    def write_csv(self, folder: str | os.PathLike[str]) -> None:
        """Writes one file per table, ``chips.csv`` and so on, and ``tables.json`` with units and sources.

        Raises:
            OSError: A file cannot be written; then none is changed.
        """
        texts = csv_files(self._tables(), self._about())
        write({FilePath(folder) / name: text.encode() for name, text in texts.items()})

    def write_json(self, file: str | os.PathLike[str]) -> None:
        """Writes all tables to one file, with units and sources.

        Raises:
            OSError: The file cannot be written.
        """
        write({FilePath(file): json_text(self._tables(), self._about()).encode()})


def _plain(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """The metadata of Arrow as texts, and the sources as a mapping."""
    texts = {key.decode(): value.decode() for key, value in (metadata or {}).items()}
    return {key: json.loads(text) if key == "sources" else text for key, text in texts.items()}


def _arrow(table: CatalogTable, about: dict[str, str | None]) -> pa.Table:
    arrow = library("pyarrow")
    types = {
        "number": arrow.float64(),
        "integer": arrow.int64(),
        "string": arrow.string(),
        # The name that Parquet gives to items, so that a table read from a file is equal to the one written.
        "integers": arrow.list_(arrow.field("element", arrow.int64())),
        "strings": arrow.list_(arrow.field("element", arrow.string())),
    }
    fields = [arrow.field(c.name, types[c.type], metadata=_metadata(c)) for c in table.columns]
    known = {k: v for k, v in about.items() if v is not None}
    schema = arrow.schema(fields, metadata={"table": table.name, "description": table.description, **known})
    arrays = [arrow.array([row[i] for row in table.rows], type=f.type) for i, f in enumerate(fields)]
    arrow_table: pa.Table = arrow.Table.from_arrays(arrays, schema=schema)
    return arrow_table


def _metadata(column: CatalogColumn) -> dict[str, str]:
    metadata = {"unit": column.unit, "dimension": column.dimension, "description": column.description}
    if column.sources:
        metadata["sources"] = json.dumps(dict(column.sources), ensure_ascii=False)
    return {key: value for key, value in metadata.items() if value}


# SQL.

SQL_SECONDS = 30.0
"""Time limit of a query, in seconds."""

SQL_MEMORY = 512
"""The memory of a query, in MB."""

SQL_RESULT = 64
"""The size of a result, in MB."""

_LOCKED = (
    f"SET memory_limit = '{SQL_MEMORY}MB'",
    "SET temp_directory = ''",
    "SET python_enable_replacements = false",  # a query could read the variables of the program
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def _select(tables: dict[str, pa.Table], text: str) -> pa.Table:
    duckdb = library("duckdb")
    connection = duckdb.connect(":memory:")
    try:
        for name, table in tables.items():
            connection.register("incoming", table)
            connection.table("incoming").create(name)
            connection.unregister("incoming")
        for setting in _LOCKED:
            connection.execute(setting)
        try:
            _require_select(connection.extract_statements(text), duckdb)
            # A SELECT can contain a DELETE.
            connection.execute("BEGIN TRANSACTION READ ONLY")
            result = _limited(connection, text)
        except duckdb.InterruptException as error:
            raise UsageError(f"the query took longer than {SQL_SECONDS:g} s") from error
        except duckdb.OutOfMemoryException as error:
            raise UsageError(f"the query needs more than {SQL_MEMORY} MB of memory") from error
        except duckdb.Error as error:
            raise UsageError(_with_hint(str(error))) from error
    finally:
        connection.close()
    return result


def _limited(connection: Any, text: str) -> pa.Table:
    """The result of a query, if it takes not too long and is not too large."""
    arrow = library("pyarrow")
    timer = Timer(SQL_SECONDS, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        reader = connection.sql(text).to_arrow_reader(_BATCH)
        batches: list[Any] = []
        size = 0
        for batch in reader:
            size += batch.nbytes
            if size > SQL_RESULT * 1_000_000:
                raise UsageError(f"the result has more than {SQL_RESULT} MB; add LIMIT 1000, for instance")
            batches.append(batch)
        result: pa.Table = arrow.Table.from_batches(batches, reader.schema)
        return result
    finally:
        timer.cancel()


_BATCH = 10_000


def _require_select(statements: list[Any], duckdb: Any) -> None:
    if len(statements) != 1:
        raise UsageError(f"one SQL query is expected, not {len(statements)}")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError("the tables are read-only: write a SELECT")


def _with_hint(message: str) -> str:
    """The message of DuckDB, with a hint for a path without quotes."""
    text = message.strip()
    if "Referenced table" in text or "Referenced column" in text:
        text += '\n\na path is one name, in double quotes: SELECT name, "peak.dense.bf16" FROM chips'
    return text
