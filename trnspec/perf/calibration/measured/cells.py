"""Tables of published measurements: their rows, which of them a calibration was fitted to, and what the cells of a row name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os.path import realpath
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from trnspec.errors import TrnspecError, UsageError
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.loading.measured import DTYPES, UNSTATED, MeasuredRow, is_stated, number, read_table, table_of, used_rows
from trnspec.model.calibration import Calibration, FittedTable
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.measurements import Measurements
from trnspec.model.server import Server
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.model.ultraserver import UltraServer
from trnspec.perf.collectives.schedules import Kind
from trnspec.perf.lowering.lower import lower, model_like
from trnspec.perf.lowering.machine import LoweredSystem

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
    same, lines = known.get(fitted.hash), fitted.numbers
    for spec, table in known.values() if same is None else (same,):
        yield from ((spec, row) for row in used_rows(spec, table) if same is None or row.line in lines)


def measured_rows(graph: Graph, of: str) -> Iterator[MeasuredRow]:
    """The rows of the tables of a kind of measurements, such as ``train``; a table with errors has none."""
    for node in graph.of(Measurements):
        if node.spec.of == of:
            with suppress(TrnspecError):
                yield from used_rows(node.spec, table_of(node.spec, node.document.file))


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


Value = TypeVar("Value")

HARDWARE = (
    (r"8/node, 800", ("a100-800gbps",)),
    (r"8x b200 sxm", ("hgx-b200", "p6-b200.48xlarge")),
    (r"8x h100 sxm", ("hgx-h100", "p5.48xlarge")),
    (r"selene|dgx[- ]?a100|a100.*80 ?gb|a100_80", ("dgx-a100-80gb",)),
    (r"a100.*40 ?gb|a100_40", ("dgx-a100-40gb",)),
    (r"p4de", ("p4de.24xlarge",)),
    (r"p4d", ("p4d.24xlarge",)),
    (r"a100", ("dgx-a100-80gb",)),
    (r"96 ?gb.*hbm2e|grand teton", ("grand-teton-h100",)),
    (r"gb300", ("gb300-nvl72",)),
    (r"gb200", ("gb200-nvl72",)),
    (r"b300", ("dgx-b300", "p6-b300.48xlarge")),
    (r"p6-b200", ("p6-b200.48xlarge",)),
    (r"b200", ("dgx-b200", "p6-b200.48xlarge")),
    (r"gh200", ("gh200",)),
    (r"h200", ("dgx-h200", "p5en.48xlarge")),
    (r"p5\.", ("p5.48xlarge",)),
    (r"h100", ("dgx-h100", "p5.48xlarge")),
    (r"trn1\.32xlarge */ *trn1n", ("trn1.32xlarge",)),  # its network is the slower of the two
    (r"trn3[a-z0-9-]*\.3xlarge", ("trainium3",)),
    (r"trn3[a-z-]*[0-9]*[a-z-]*\.48xlarge", ("trn3-gen2-ultraserver",)),
    (r"trn3.*gen ?1|trn3e", ("trn3-gen1-ultraserver",)),
    (r"trn3[a-z0-9-]*-ultraserver", ()),
    (r"trn3.*ultra|trn3.*gen ?2|trn3p", ("trn3-gen2-ultraserver",)),
    (r"trn3|trainium ?3", ("trainium3",)),
    (r"trn2[a-z0-9-]*-ultraserver", ()),
    (r"(?:trn[123]|inf[12])[a-z]*\.[0-9]*xlarge", ()),
)
"""Hardware as tables and drivers name it: a pattern, and the documents it names; the matched text if none."""

KINDS: Mapping[str, Kind] = {
    "all_reduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "all_gather": "all-gather",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
}
"""Collectives by the names that tools print."""


_MODEL = ("model", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq")
"""Columns of a model and its dimensions."""


@frozen(eq=False)
class RowCells:
    """The cells of a row, with the catalog in which names are looked up.

    Attributes:
        graph: The catalog.
        row: The row.
        name: Its name.
    """

    graph: Graph
    row: Record
    name: str = ""

    def get(self, column: str) -> str:
        """The text in a cell; empty where the table has no such column."""
        return self.row.get(column) or ""

    def texts(self, *columns: str) -> str:
        """The texts in several cells."""
        return " ".join(map(self.get, columns))

    def cell(self, column: str) -> str:
        """The text in a cell.

        Raises:
            UsageError: It is empty.
        """
        if not (text := self.get(column)).strip():
            raise UsageError(f"the row states no {column}")
        return text

    def number(self, column: str) -> float:
        """The number in a cell; 0 where none is stated.

        Raises:
            UsageError: It is not a number, or not a plausible measurement.
        """
        text = self.get(column).strip()
        if text.lower() in UNSTATED:
            return 0.0
        try:
            value = number(text)
        except ValueError:
            raise UsageError(f"{column} is {text!r}; expected a number") from None
        if not (value == 0.0 or 1e-12 < value < 1e15):
            raise UsageError(f"{column} is {text}; expected 0, or a number between 1e-12 and 1e15")
        return value

    def integer(self, column: str, *, needed: bool = False) -> int:
        """The integer in a cell; 0 where none is stated.

        Raises:
            UsageError: It is not an integer, or it is needed and not stated.
        """
        value = self.number(column)
        if needed and not value:
            raise UsageError(f"the row states no {column}")
        if value != int(value):
            raise UsageError(f"{column} is {self.row[column]}; expected an integer")
        return int(value)

    def sizes(self, column: str) -> tuple[int, ...]:
        """The integers in a cell, in increasing order: one, or a list such as ``512/4096``; none where none is stated.

        Raises:
            UsageError: One of them is not an integer.
        """
        parts = [part for part in re.split(r"[\s,;/|]+", self.get(column).strip(" []")) if part]
        if len(parts) < 2:
            return tuple(filter(None, (self.integer(column),)))
        if not all(part.isdigit() for part in parts):
            raise UsageError(f"{column} is {self.get(column)!r}; expected an integer, or a list such as 512/4096")
        return tuple(sorted({int(part) for part in parts}))

    def flag(self, column: str, default: object) -> bool:
        """The yes or no in a cell; ``default`` where none is stated.

        Raises:
            UsageError: It is neither yes nor no.
        """
        text = self.get(column).strip().lower()
        if text in UNSTATED:
            return bool(default)
        if text not in ("yes", "no"):
            raise UsageError(f"{column} is {self.row[column]!r}; expected yes or no")
        return text == "yes"

    def hardware(self, chips: int, *, lnc: int | None = None, of: str = "") -> LoweredSystem:
        """The system that the column ``hardware`` and a number of chips name.

        Args:
            chips: Number of chips.
            lnc: Physical cores of a logical core; the chip's default if not stated.
            of: The kind of rows whose tables name the hardware; empty to read the description alone.

        Raises:
            UsageError: Unknown hardware, or the catalog has no document of it.
            RefusalError: The chips cannot be taken evenly from whole servers.
        """
        return _hardware(self.graph, self.cell("hardware"), chips, lnc, of)

    def model(self, name: str = "") -> tuple[str, Dimensions]:
        """The name and dimensions of the catalog's model that the row names, or else the dimensions that the row states.

        Args:
            name: The model, in place of the column ``model``.

        Raises:
            UsageError: The catalog has no such model, and the row lacks dimensions.
        """
        key = (("model", name or self.cell("model")), *((column, self.get(column)) for column in _MODEL[1:]))
        return _model(self.graph, key)


def first(table: Sequence[tuple[str, Value]], text: str) -> Value | None:
    """The value of the first pattern that occurs in a text, in lower case."""
    return next((value for pattern, value in table if re.search(pattern, text.lower())), None)


def is_system(graph: Graph, name: str) -> bool:
    """Whether a text is the name or an alias of hardware that a row may name."""
    return any(graph.lookup(name, kind) is not None for kind in (Chip, Server, UltraServer, Cluster))


def document_name(graph: Graph, text: str) -> str | None:
    """The document that a description of hardware names by :data:`HARDWARE`; ``None`` if no pattern matches.

    Raises:
        UsageError: The catalog has none of the documents.
    """
    for pattern, documents in HARDWARE:
        match = re.search(pattern, text.lower())
        if match is None:
            continue
        names = documents or (match.group(0),)
        known = next((n for n in names if is_system(graph, n)), None)
        if known is None:
            raise UsageError(f"the catalog has no document named {' or '.join(names)}, which {text!r} needs")
        return known
    return None


def stated_name(graph: Graph, text: str, of: str) -> str:
    """The document that the tables of a kind of rows name by a description of hardware; empty if they name none."""
    stated = (node.spec.hardware.get(text) for node in graph.of(Measurements) if node.spec.of == of)
    return next((name for name in stated if name and is_system(graph, name)), "")


def chip_of(graph: Graph, text: str, of: str) -> str:
    """The chip that a description of hardware names: as the tables of a kind of rows state it, or by :data:`HARDWARE`.

    Raises:
        UsageError: The catalog has no such hardware.
    """
    name = stated_name(graph, text, of) or document_name(graph, text) or text.strip()
    if not is_system(graph, name) and not is_system(graph, name := name.lower()):
        raise UsageError(f"unknown hardware {text!r}")
    return lower(graph, name).chip


@cached_by_graph
def _hardware(graph: Graph, text: str, chips: int, lnc: int | None, of: str) -> LoweredSystem:
    """See :meth:`RowCells.hardware`."""
    name = stated_name(graph, text, of) or document_name(graph, text)
    if name is None and is_system(graph, text):
        name = text
    if name is None:
        raise UsageError(f"unknown hardware {text!r}")
    unit = lower(graph, name)
    lnc = lnc if unit.ranks_per_chip >= 4.0 else None
    size = int(unit.chips)
    # Racks may be used in part, the same part of each: 64 of 72 chips.
    part = next((n for n in range(size, size // 2, -1) if chips % n == 0), size) if chips > size else size
    return lower(graph, f"{name}*{-(-chips // part)}", lnc=lnc, chips=chips)


@cached_by_graph
def _model(graph: Graph, key: tuple[tuple[str, str], ...]) -> tuple[str, Dimensions]:
    """See :meth:`RowCells.model`."""
    row = RowCells(graph, dict(key))
    text = row.get("model")
    if (node := model_like(graph, text)) is not None:
        return node.name, dimensions(node.spec)
    layers, hidden, heads = (float(row.integer(n)) for n in ("layers", "hidden", "heads"))
    if not (layers and hidden and heads):
        raise UsageError(f"the catalog has no model like {text!r}, and the row lacks its dimensions")
    vocabulary, width = float(row.integer("vocab")) or 51200.0, float(row.integer("ffn"))
    # A dense decoder: the Llama form with a gate, the GPT form without.
    gated = bool(width) and width != 4.0 * hidden and "gpt" not in text.lower()
    kv_heads, width, context = (
        float(row.integer("kv_heads")) or heads,
        width or 4.0 * hidden,
        float(row.integer("seq", needed=True)),
    )
    size, matrices = hidden / heads, 3.0 if gated else 2.0
    return text, Dimensions(
        layers=layers, hidden=hidden, vocabulary=vocabulary, context=context, heads=heads, kv_heads=kv_heads,
        qk_size=size, v_size=size, kv_elements=2.0 * kv_heads * size,
        attention_weights=2.0 * hidden * hidden + 2.0 * hidden * kv_heads * size,
        attention_small=2.0 * hidden if gated else 8.0 * hidden,
        matrices=matrices, width=width, mlp_weights=matrices * hidden * width,
        mlp_small=0.0 if gated else width + hidden,
        embedding=vocabulary * hidden, positions=0.0 if gated else context * hidden, head=vocabulary * hidden,
        tied=0.0 if gated else 1.0, outer_small=hidden if gated else 2.0 * hidden,
    )  # fmt: skip


def dtype_of(text: str, system: LoweredSystem) -> str:
    """The dtype of a precision for which a system has a peak rate.

    Raises:
        UsageError: The precision is not stated or unknown.
        RefusalError: ``unknown-figure``: the chip has no peak rate for it.
    """
    if text.strip().lower() in UNSTATED:
        raise UsageError("the row states no precision")
    for pattern, names in DTYPES:
        if re.search(pattern, text.lower()):
            for name in names:
                if name in system.rates:
                    return name
            system.rate(names[0])
    raise UsageError(f"unknown precision {text!r}")
