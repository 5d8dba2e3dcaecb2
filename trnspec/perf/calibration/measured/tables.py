"""Tables of published measurements: their rows, the hashes of the content of a row, and which rows a calibration was fitted to."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from trnspec.errors import TrnspecError, UsageError
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.loading.measured import is_stated, read_table, table_of, used_rows
from trnspec.model.calibration import Calibration, FittedTable
from trnspec.model.measurements import Measurements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from trnspec.loading.measured import MeasuredRow

Record = dict[str, str]


def records(path: Path, graph: Graph | None = None) -> list[Record]:
    """The rows of a table.

    Args:
        path: A CSV file.
        graph: The catalog; rows and cells that the document of the table rejects are left out.

    Raises:
        UsageError: The file cannot be read, is not a table, or has no measurements.
    """
    table = read_table(path)
    kind = "" if "kind" in table.columns else _kind_of(table.columns)
    if not table.rows or kind is None:
        raise UsageError(f"{path}: no measurements; expected a CSV table with a column named kind")
    rows = table.rows
    for node in () if graph is None else graph.of(Measurements):
        if realpath(path) == realpath(Path(node.document.file).parent / node.spec.data):
            rows = used_rows(node.spec, table)
    found = [dict(row.cells) for row in rows]
    for line, cells in enumerate(found, 2):
        cells["kind"] = kind or cells["kind"]
        cells["id"] = cells.get("id") or f"line {line}"
    return found


_KINDS = (
    ("train", {"global_batch"}),
    ("infer", {"isl", "osl"}),
    ("collective", {"collective", "size_bytes"}),
    ("attention", {"kv_len"}),
    ("moe", {"topk", "experts"}),
    ("matmul", {"m", "n", "k"}),
    ("op", {"op"}),
)
"""Kinds of rows with the columns that no other kind has."""


def _kind_of(columns: Iterable[str]) -> str | None:
    """The kind of all rows of a table without a column ``kind``; ``None`` where its columns do not determine one."""
    kinds = [kind for kind, needed in _KINDS if needed <= {*columns}]
    return kinds[0] if len(kinds) == 1 else None


MEASURED = (
    ("step_time_s", "tokens_per_s_per_chip", "time_us", "exec_s_printed", "tflops_per_chip", "busbw_GBps", "achieved"),
    ("tpot_ms",),
    ("ttft_ms",),
)
"""Columns whose cells were measured; of each group the first that is stated identifies a row."""

CONDITIONS = frozenset(
    {
        *("kind", "model", "n_chips", "tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "isl", "osl", "batch_conc"),
        *("m", "n", "k", "batch", "q_len", "kv_len", "heads", "tokens", "experts", "collective", "size_bytes", "ranks"),
    }
)
"""Columns of the conditions of a measurement."""


def row_hashes(row: Mapping[str, str]) -> tuple[str, ...]:
    """The hashes of the content of a row, one for each quantity that was measured, with its conditions.

    Two rows with a hash in common are of the same run.  Neither the name of the row nor that of its file counts, nor do
    columns such as source and note, their order, or how a number is written.
    """
    conditions = [
        f"{name}={_normalized(row[name])}" for name in sorted(CONDITIONS & row.keys()) if is_stated(row[name])
    ]
    stated = (next((name for name in names if is_stated(row.get(name) or "")), None) for names in MEASURED)
    texts = ("\n".join([*conditions, f"{name}={_normalized(row[name])}"]) for name in stated if name is not None)
    return tuple(hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts)


def _normalized(text: str) -> str:
    """A number to six digits; the letters and digits of a text."""
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return re.sub(r"[^a-z0-9.]", "", text.lower())


def fitted_rows(graph: Graph, fitted: FittedTable) -> Iterator[tuple[Measurements, MeasuredRow]]:
    """The rows of a fit in one table, with the document of the table; none without the table.

    All rows count of a table that has changed since: which of them were fitted is not known.
    """
    known = {}
    for node in graph.of(Measurements):
        if node.spec.data == fitted.table:
            # A catalog may lack the table of a document; validation reports that.
            with suppress(TrnspecError):
                table = table_of(node.spec, node.document.file)
                known[table.hash] = node.spec, table
    same = known.get(fitted.hash)
    for spec, table in known.values() if same is None else (same,):
        yield from ((spec, row) for row in used_rows(spec, table) if same is None or fitted.has(row.line))


@cached_by_graph
def fitted_hashes(graph: Graph) -> Mapping[str, frozenset[str]]:
    """The hashes of the rows that each calibration was fitted to, by its name."""
    known = {
        each: frozenset(h for _, row in fitted_rows(graph, each) for h in row_hashes(row.cells))
        for node in graph.of(Calibration)
        for each in node.spec.tables
    }
    return {
        node.name: frozenset((node.spec.rows or "").split()).union(*(known[each] for each in node.spec.tables))
        for node in graph.of(Calibration)
    }


def fitted_tables(
    graph: Graph, files: Sequence[str], hashes: Collection[str]
) -> tuple[list[FittedTable], list[str], list[str]]:
    """The rows of a fit as a document states them.

    Args:
        graph: The catalog.
        files: The files of the rows.
        hashes: The hashes of the rows.

    Returns:
        The tables of the catalog, with the lines of the rows; the names of other files; the hashes of the rows in these.
    """
    paths = {realpath(Path(n.document.file).parent / n.spec.data): n.spec.data for n in graph.of(Measurements)}
    tables, others, left = [], [], set(hashes)
    for file in files:
        name = paths.get(realpath(file))
        table = read_table(Path(file))
        of_row = {row.line: {*row_hashes(row.cells)} for row in table.rows}
        lines = [line for line, own in of_row.items() if not own.isdisjoint(hashes)]
        if name is None:
            others.append(Path(file).name)
        elif lines:
            tables.append(FittedTable(table=name, hash=table.hash, lines=_ranges(lines)))
            left -= set().union(*(of_row[line] for line in lines))
    return tables, others, sorted(left)


def _ranges(lines: Sequence[int]) -> str:
    """Lines in ascending order as ranges: ``2-67 70``."""
    starts = [line for line in lines if line - 1 not in lines]
    ends = [line for line in lines if line + 1 not in lines]
    return " ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in zip(starts, ends, strict=True))
