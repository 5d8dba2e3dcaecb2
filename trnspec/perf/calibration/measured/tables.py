"""Tables of published measurements: their rows, and the hashes of the content of a row."""

from __future__ import annotations

import hashlib
import re
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from trnspec.errors import UsageError
from trnspec.loading.measured import is_stated, read_table, used_rows
from trnspec.model.measurements import Measurements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trnspec.graph.graph import Graph

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
