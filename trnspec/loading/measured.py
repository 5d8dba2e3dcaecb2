"""Tables of measurements: rows of a CSV file with the line of each, and the place of a cell."""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from trnspec.errors import UsageError
from trnspec.model.measurements import Measurements
from trnspec.short_repr import ShortRepr
from trnspec.yaml import Place
from trnspec.yaml.text import UNSAFE, name_of


@frozen
class MeasuredRow:
    """One row.

    Attributes:
        line: The line on which it ends, from 1.
        cells: Text of each cell by column; empty where nothing is stated.
        id: Its name: the column ``id``, or its line.
    """

    line: int
    cells: Mapping[str, str]
    id: str


@frozen(repr=False)
class MeasuredTable(ShortRepr):
    """The rows of one file.

    Attributes:
        file: The file, as named by the caller.
        columns: The names of the columns.
        rows: The rows.
    """

    file: str
    columns: tuple[str, ...]
    rows: tuple[MeasuredRow, ...] = field(repr=False)
    _lines: tuple[str, ...] = field(repr=False)

    @functools.cached_property
    def hash(self) -> str:
        """The first digits of the SHA-256 of its lines, however they end."""
        return hashlib.sha256("\n".join(self._lines).encode()).hexdigest()[:12]

    def place(self, row: MeasuredRow | None, column: str) -> Place:
        """The place of a cell, or of the name of a column; the start of the line where there is no such column."""
        line = 1 if row is None else row.line
        if column not in self.columns or line > len(self._lines):
            return Place(line, 1)
        return Place(line, _offset(self._lines[line - 1], self.columns.index(column)))


def _offset(line: str, index: int) -> int:
    """The column of a cell of a line, from 1: commas between quotes do not separate."""
    quoted = False
    for offset, character in enumerate(line, 1):
        if index == 0:
            return offset
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            index -= 1
    return len(line) + 1


class TableError(UsageError):
    """A table that cannot be read.

    Attributes:
        fault: What is wrong, without the place.
        line: The line, or ``None`` for the file as a whole.
    """

    def __init__(self, file: str | Path, fault: str, line: int | None = None) -> None:
        super().__init__(f"{file}: {fault}" if line is None else f"{file}:{line}: {fault}")
        self.fault = fault
        self.line = line


MOST_BYTES = 50_000_000
"""The size of the largest table that is read."""


def read_table(path: Path, name: str = "") -> MeasuredTable:
    """Reads a table of measurements.

    Args:
        path: The CSV file.
        name: The file as messages name it; the path itself by default.

    Raises:
        TableError: The file cannot be read, is too large, is not UTF-8, holds a control character, a column occurs twice, or a row
            has more or fewer cells than there are columns.
    """
    try:
        with path.open("rb") as file:
            contents = file.read(MOST_BYTES + 1)
        if len(contents) > MOST_BYTES:
            raise TableError(name or path, f"it has more than {MOST_BYTES:,} bytes")
        # Spreadsheets write a byte order mark.
        text = contents.decode("utf-8-sig")
    except OSError as error:
        raise TableError(name or path, f"cannot be read: {_reason(error)}") from error
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise TableError(name or path, "cannot be read: it is not UTF-8 text", line) from error
    if found := UNSAFE.search(text.replace("\r\n", "\n")):
        line = text.count("\n", 0, text.index(found.group())) + 1
        raise TableError(name or path, f"a control character, {name_of(found.group())}", line)
    lines = tuple(text.splitlines())
    try:
        reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
        columns = tuple(reader.fieldnames or ())
        if fault := _header_fault(columns):
            raise TableError(name or path, fault, 1)
        rows = []
        for cells in reader:
            if None in cells or None in cells.values():
                fault = "more cells than columns; is a comma not quoted?"
                if None not in cells:
                    fault = "fewer cells than columns; end the row with commas"
                raise TableError(name or path, fault, reader.line_num)
            stated, line = {column: text or "" for column, text in cells.items()}, reader.line_num
            rows.append(MeasuredRow(line, stated, stated.get("id") or f"line {line}"))
    except csv.Error as error:
        fault, line = f"cannot be read: {error}", reader.reader.line_num
        if "end of data" in fault:
            fault, line = "a quote is not closed", text.count("\n", 0, text.replace('""', "  ").rindex('"')) + 1
        raise TableError(name or path, fault, line) from error
    return MeasuredTable(name or str(path), columns, tuple(rows), lines)


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """Rows as CSV, with some of their columns."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _header_fault(columns: Sequence[str]) -> str:
    """Why the first line does not name columns; empty if it does."""
    if not any(columns):
        return "the first line has no names of columns"
    first, *others = columns
    if not others and (separator := next((c for c in ";\t|" if c in first), "")):
        return f"the cells are separated by {separator!r}; write commas"
    if spaced := next((column for column in columns if column != column.strip()), ""):
        return f"the column {spaced!r} begins or ends with a space"
    repeated = next((column for index, column in enumerate(columns) if column in columns[:index]), None)
    return "" if repeated is None else f"the column {repeated!r} occurs twice"


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a folder; name a file in it"
    return str(error.strerror)


UNSTATED = ("", "n/a", "nan", "-")
"""Texts of cells without a value."""

DTYPES = (
    (r"nvfp4|mxfp4|fp4", ("fp4", "mxfp4")),
    (r"mxfp8|fp8|float8", ("fp8", "mxfp8")),
    (r"bf16|bfloat16", ("bf16",)),
    (r"fp16|float16", ("fp16", "bf16")),
    (r"tf32", ("tf32",)),
    (r"fp32|float32", ("fp32",)),
)
"""Precisions as tables name them: a pattern, and the dtypes whose peak rate is used for it, in order of preference."""


def number(text: str) -> float:
    """The number in a cell.

    Raises:
        ValueError: It is not a number. ``float`` alone would also read 1_000, and digits of other scripts.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return float(text)


def is_stated(text: str) -> bool:
    """Whether a cell has a value."""
    return text.strip().lower() not in UNSTATED


def table_of(spec: Measurements, document: str) -> MeasuredTable:
    """The table of a document, as published.

    Args:
        spec: The document.
        document: The file of the document; the table is in its folder.

    Raises:
        TableError: As :func:`read_table`.
    """
    path = Path(document).parent / spec.data
    try:
        state = path.stat()
    except OSError:
        return read_table(path)
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        raise TableError(path, "cannot be read: it is not a regular file")
    return _unchanged(path.absolute(), str(path), state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=64)
def _unchanged(path: Path, name: str, _mtime: int, _size: int) -> MeasuredTable:
    """The table of a file in one state: the rules of a run read it once."""
    return read_table(path, name)


def used_rows(spec: Measurements, table: MeasuredTable) -> tuple[MeasuredRow, ...]:
    """The rows of a table without rejected rows; rejected cells are empty."""
    if not spec.rejected:
        return table.rows
    rejected = {(r.row, r.column) for r in spec.rejected}
    return tuple(
        evolve(row, cells={c: "" if (row.id, c) in rejected else text for c, text in row.cells.items()})
        for row in table.rows
        if (row.id, None) not in rejected
    )
