"""Tables of published measurements: their form, their hardware and models, and values that cannot be right."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import PurePath

from attrs import frozen

from trnspec.diagnostics import Location, did_you_mean, nearest
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.loading.measured import (
    MeasuredRow,
    MeasuredTable,
    TableError,
    is_stated,
    number,
    table_of,
    used_rows,
)
from trnspec.model.annotations import DATE_PATTERN, NAME_PATTERN
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.measurements import Measurements
from trnspec.model.server import Server
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.units import UNITS, Dimension
from trnspec.yaml import Place

_DATA = ("spec", "data")
_UNITLESS = ("1", "%", "tokens", "tokens/s", "sequences/s")
"""Units of cells that figures of a catalog do not have."""

_TIMES = tuple(unit.symbol for unit in UNITS if unit.dimension is Dimension.TIME)
"""Units of durations, which are never 0."""

_FORMS = {"yes-no": ("yes or no", "yes|no"), "date": (DATE_PATTERN.words, DATE_PATTERN.regex)}
"""Description and pattern of the forms of cells that are neither numbers nor free text."""

_COUNTS = ("n_chips", "layers", "hidden", "heads", "kv_heads", "seq", "tp", "pp", "dp", "microbatch", "global_batch")
"""Columns of sizes and degrees, which are whole and never 0."""

_COLLECTIVES = ("all_reduce", "all_gather", "all_gatherv", "reduce_scatter", "all_to_all", "broadcast", "permute")
"""The names of collectives; a row of another is used by no fit."""

_KEYS = ("kind", "id", "source")
"""Columns that every table has."""

_RESULTS = ("step_time_s", "tokens_per_s_per_chip", "ttft_ms", "tpot_ms", "time_us", "seq_per_s", "achieved")
"""The columns of results."""

_NOT_THE_RUN = {"note", "date", "licence", "hardware", "model", "family", *_KEYS}
"""Columns that may differ between two copies of one run."""

_IN_NAMES = {"ns": "ns", "us": "us", "ms": "ms", "s": "s", "h": "h", "tflops": "TFLOPS", "GBps": "GB/s", "pct": "%"}
_SUFFIX = re.compile(rf"(?:^|(?<!_per)_)({'|'.join(_IN_NAMES)})(?:$|_per_chip$)")
"""Units that the names of columns end with."""


@frozen
class MeasuredRows:
    """The table of a document; its rows without the rejected ones."""

    node: Node[Measurements]
    table: MeasuredTable

    @property
    def rows(self) -> tuple[MeasuredRow, ...]:
        """The rows that are used."""
        return used_rows(self.node.spec, self.table)

    def finding(
        self, row: MeasuredRow | None, column: str, message: str, hint: str = "", see: tuple[Location, ...] = ()
    ) -> Finding:
        """The finding of a cell, or of a column if ``row`` is ``None``."""
        text = "" if row is None else row.cells.get(column, "")
        where = Location(self.table.file, self.table.place(row, column), text=text)
        return Finding(_DATA, message, hint, see, self.node, where=where)


def read_rows(node: Node[Measurements]) -> MeasuredRows | None:
    """The table of a document, or ``None`` where it cannot be read, which TRN701 reports."""
    try:
        table = table_of(node.spec, node.document.file)
    except TableError:
        return None
    return MeasuredRows(node, table)


def number_in(row: MeasuredRow, column: str) -> float | None:
    """The finite number in a cell; ``None`` where there is none."""
    text = row.cells.get(column)
    if not text:
        return None
    try:
        value = number(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@rule("TRN701", "unreadable-measurements", over=Measurements, local=True)
def unreadable_measurements(node: Node[Measurements], graph: Graph) -> Iterator[Finding]:
    """A table of measurements that cannot be read, or that does not have the columns of its document.

    Why:
        A column without a description has no unit, and a described column that is missing was renamed or lost.

    Example:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: matmul
          framework: PyTorch
          licence: Apache-2.0
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            time_us: {meaning: time per call, unit: furlong}  #! TRN701
            mfu_pct: {meaning: share of the peak rate, unit: "%"}  #! TRN701
        # file: measured/example.csv
        kind,id,source,time_us,hardware  #! TRN701
        matmul,one,a page,12.5,trn1.32xlarge
        ```

    Instead:
        ```diff
        -    time_us: {meaning: time per call, unit: furlong}
        -    mfu_pct: {meaning: share of the peak rate, unit: "%"}
        +    time_us: {meaning: time per call, unit: us}
        -kind,id,source,time_us,hardware
        -matmul,one,a page,12.5,trn1.32xlarge
        +kind,id,source,time_us
        +matmul,one,a page,12.5
        ```

    Source:
        W3C: Model for Tabular Data and Metadata on the Web (2015): every column is described once, apart from the data.
    """
    spec = node.spec
    try:
        table = table_of(spec, node.document.file)
    except TableError as error:
        if error.line is None:
            yield Finding(_DATA, str(error), "the table is in the folder of its document")
        else:
            where = Location(str(PurePath(node.document.file).parent / spec.data), Place(error.line, 1))
            yield Finding(_DATA, error.fault, where=where)
        return
    of = MeasuredRows(node, table)
    if spec.columns.keys().isdisjoint(table.columns):
        message = "the first line has none of the columns of spec.columns"
        yield of.finding(None, table.columns[0], message, "write the names of the columns in it")
        return
    known = [u.symbol for u in node.units]
    rejects = node.document.rejects
    others = [c for c in table.columns if c not in spec.columns and not rejects(("spec", "columns", c))]
    for name, column in spec.columns.items():
        path = ("spec", "columns", name)
        if name not in table.columns:
            hint = did_you_mean(name, table.columns) or f"columns: {', '.join(table.columns)}"
            others = [each for each in others if each not in nearest(name, others, 1)]
            yield Finding(path, f"{spec.data} has no column {name!r}", hint, key=True)
        if column.unit is not None and column.unit not in _UNITLESS and node.units.get(column.unit) is None:
            yield Finding((*path, "unit"), f"{column.unit!r} is not a unit", did_you_mean(column.unit, known))
        is_known = column.unit in (None, "%") or node.units.get(column.unit or "") is not None
        yield from _named_after(name, column.unit, is_known=is_known and not node.document.damages(path))
    for name in others:
        yield of.finding(None, name, f"the column {name!r} is not described", "add it to spec.columns")
    for name in _KEYS:
        if name not in table.columns and name not in spec.columns:
            yield of.finding(None, name, f"there is no column {name!r}", f"every table has {', '.join(_KEYS)}")
    if not table.rows:
        yield of.finding(None, _KEYS[0], "the table has no rows", "remove the document, or add the rows")
    yield from _wrong_rejections(spec, table)


def _wrong_rejections(spec: Measurements, table: MeasuredTable) -> Iterator[Finding]:
    """The findings of rejected rows and columns that the table does not have."""
    ids = {row.id for row in table.rows}
    for index, rejected in enumerate(spec.rejected):
        if rejected.row not in ids:
            hint = did_you_mean(rejected.row, ids)
            yield Finding(("spec", "rejected", index, "row"), f"{spec.data} has no row {rejected.row!r}", hint)
        if rejected.column is not None and rejected.column not in table.columns:
            hint = did_you_mean(rejected.column, table.columns)
            yield Finding(("spec", "rejected", index, "column"), f"there is no column {rejected.column!r}", hint)


def _named_after(name: str, unit: str | None, *, is_known: bool) -> Iterator[Finding]:
    """The finding of a column whose name ends with another unit than it has."""
    suffix = _SUFFIX.search(name) if is_known else None
    if suffix is not None and unit != (expected := _IN_NAMES[suffix[1]]):
        message = f"the column {name!r} is named after {expected}, but its unit is {unit or 'not stated'}"
        yield Finding(("spec", "columns", name, "unit"), message, f"write {expected}, or rename the column")


@rule("TRN702", "invalid-measurement", over=Measurements, local=True)
def invalid_measurement(node: Node[Measurements], graph: Graph) -> Iterator[Finding]:
    """A cell that is not a number where its column has a unit, degrees that do not fit, or hardware without a name.

    Why:
        A cell that cannot be read would be taken for one that states nothing. The ranks of a run are its chips, or a whole
        number for each, and each replica has a whole number of microbatches.

    Example:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: matmul
          framework: PyTorch
          licence: Apache-2.0
          hardware: {Trn1: trn1.32xlarge}
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            hardware: {meaning: the server}
            time_us: {meaning: time per call, unit: us}
        # file: measured/example.csv
        kind,id,source,hardware,time_us
        matmul,one,a page,Trn1,12.5
        matmul,two,a page,Trn1,12.5 us  #! TRN702
        matmul,three,a page,Trn1,-1  #! TRN702
        matmul,two,a page,Trn1,13.5  #! TRN702
        matmul,four,a page,Trn9,12.5  #! TRN702
        ```

    Instead:
        ```diff
        -matmul,two,a page,Trn1,12.5 us
        -matmul,three,a page,Trn1,-1
        -matmul,two,a page,Trn1,13.5
        -matmul,four,a page,Trn9,12.5
        ```

    Source:
        The design of trnspec: a table is read by its document, and nothing is guessed.
    """
    of = read_rows(node)
    if of is None:
        return
    spec = node.spec
    columns = {n: c for n, c in spec.columns.items() if n in of.table.columns}
    numbers = [n for n, c in columns.items() if c.unit is not None or c.holds == "number"]
    seen: set[str] = set()
    named = {*spec.hardware}
    hardware = [node.name for kind in (Chip, Server, UltraServer) for node in graph.of(kind)]
    yield from _wrong_hardware(spec.hardware, graph)
    yield from _wrong_models(spec.models, graph)
    yield from _wrong_kinds(of)
    for row in of.table.rows:
        identity = row.cells.get("id")  # TRN701 reports a table without ids
        if identity is not None and (identity in seen or not identity.strip()):
            yield of.finding(row, "id", f"the id {identity!r} is empty or taken", "every row has its own id")
        seen.add(identity or "")
        if not row.cells.get("source", "stated").strip():
            yield of.finding(row, "source", "the row has no source", "write where it is published")
        for name in numbers:
            text = row.cells[name]
            value = number_in(row, name)
            unit = spec.columns[name].unit
            is_count = name in _COUNTS
            least = "above 0" if is_count or unit in _TIMES else "0 or more"
            is_part = name == "n_chips" and value is not None and value < 1.0  # a run on one core of a chip
            if is_stated(text) and (
                value is None
                or not 0.0 <= value < 1e18
                or (value == 0.0 and least == "above 0")
                or (is_count and not is_part and value % 1.0)
            ):
                expected = f"a number in {unit}" if unit else "a whole number" if is_count else "a number"
                yield of.finding(row, name, f"{name} is {text!r}; expected {expected}, {least}, without its unit")
        for name, column in columns.items():
            expected, pattern = _FORMS.get(column.holds, ("", ""))
            if expected and is_stated(row.cells[name]) and not re.fullmatch(pattern, row.cells[name]):
                yield of.finding(row, name, f"{name} is {row.cells[name]!r}; expected {expected}")
        tp, pp, dp, cp, n = (number_in(row, c) for c in ("tp", "pp", "dp", "cp", "n_chips"))
        if spec.of == "train" and tp and pp and dp and n and (ranks := tp * pp * dp * (cp or 1.0)) % n and n % ranks:
            message = (
                f"tp {tp:g} x pp {pp:g} x dp {dp:g}{f' x cp {cp:g}' if cp else ''} = {ranks:g} ranks on {n:g} chips"
            )
            yield of.finding(row, "n_chips", message, "the ranks are a multiple of the chips, or a part of them")
        batch, microbatch = number_in(row, "global_batch"), number_in(row, "microbatch")
        if batch and microbatch and dp and batch % (microbatch * dp):
            message = f"{batch:g} sequences are not a multiple of dp {dp:g} x microbatch {microbatch:g}"
            yield of.finding(row, "global_batch", message, "correct one of the three")
        text = row.cells.get("hardware", "")
        if text and text not in named and text not in graph and text not in graph.broken:
            named.add(text)  # reported once
            hint = did_you_mean(text, [*spec.hardware, *hardware]) or "add it to spec.hardware"
            yield of.finding(row, "hardware", f"{text!r} is neither in spec.hardware nor the name of a document", hint)


def _wrong_kinds(of: MeasuredRows) -> Iterator[Finding]:
    """The findings of rows of another kind than the table: of all of them, or of single ones."""
    kind = of.node.spec.of
    rows = [(row, row.cells.get("kind", kind)) for row in of.table.rows]
    if rows and kind not in (kinds := {each for _, each in rows}):
        names = ", ".join(sorted(kinds))
        yield Finding(("spec", "of"), f"it is of {kind}, but its rows are of {names}", f"write {names}")
        return
    # A table of train_run may have rows of train_stage.
    for row, other in rows:
        text = row.cells.get("collective", "")
        if kind == "collective" and is_stated(text) and text not in _COLLECTIVES:
            hint = did_you_mean(text, _COLLECTIVES) or f"known: {', '.join(_COLLECTIVES)}"
            yield of.finding(row, "collective", f"{text!r} is not a collective", hint)
        if other.split("_")[0] != kind.split("_")[0]:
            yield of.finding(row, "kind", f"the kind is {other!r}, but the table is of {kind}", f"write {kind}")


def _wrong_models(models: Mapping[str, str], graph: Graph) -> Iterator[Finding]:
    """The findings of names that are nearly those of models."""
    known = [node.name for node in graph.of(Model)]
    for text, name in models.items():
        if name and graph.lookup(name, Model) is None and (hint := did_you_mean(name, known)):
            yield Finding(("spec", "models", text), f"no model is named {name!r}", hint)


def _wrong_hardware(hardware: Mapping[str, str], graph: Graph) -> Iterator[Finding]:
    """The findings of names that are not those of the hardware that rows name."""
    for text, name in hardware.items():
        if name and name not in graph and name not in graph.broken and (known := of_family(name, graph)):
            hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
            yield Finding(("spec", "hardware", text), f"no chip or server is named {name!r}", hint)
        elif name in graph and not (node := graph.named(name)).is_of(Chip, Server, UltraServer):
            yield Finding(("spec", "hardware", text), f"{name!r} is a {node.kind}", "name a chip or a server")
        elif name and (named := [each for each in text.split("/") if each in graph]) and name not in named:
            yield Finding(("spec", "hardware", text), f"{text!r} is not {name}", f"{named[0]}?")
        elif name and not re.search(NAME_PATTERN.regex, name):
            yield Finding(("spec", "hardware", text), f"{name!r} is not a name", f"write {NAME_PATTERN.words}")


@rule("TRN703", "duplicate-measurement", over=Measurements, local=True)
def duplicate_measurement(node: Node[Measurements], graph: Graph) -> Iterator[Finding]:
    """One run in two rows, of one table or of two.

    Why:
        A run that is counted twice has twice the weight in a fit, and is taken for a measurement that the fit had not seen.

    Example:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: matmul
          framework: PyTorch
          licence: Apache-2.0
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            m: {meaning: tokens, holds: number}
            time_us: {meaning: time per call, unit: us}
        # file: measured/example.csv
        kind,id,source,m,time_us
        matmul,one,a page,4096,12.53
        matmul,two,another page,4096,12.53  #! TRN703
        matmul,three,another page,8192,12.53
        ```

    Instead:
        ```diff
        -matmul,two,another page,4096,12.53
        -matmul,three,another page,8192,12.53
        ```

    Source:
        Kaufman et al.: Leakage in Data Mining, KDD 2011.
    """
    yield from (finding for finding in _duplicates(graph) if finding.node is node)


@cached_by_graph
def _duplicates(graph: Graph) -> list[Finding]:
    return list(_repeated(graph))


def _repeated(graph: Graph) -> Iterator[Finding]:
    """Every row that another row of any table before it repeats."""
    first: dict[tuple[object, ...], list[tuple[MeasuredRows, MeasuredRow]]] = {}
    for node in graph.of(Measurements):
        of = read_rows(node)
        if of is None or any(_wrong_rejections(node.spec, of.table)) or node.document.damages(("spec", "rejected")):
            continue  # the row that one of them means is not known
        for row in of.rows:
            results = tuple((c, v) for c in _RESULTS if (v := number_in(row, c)))
            # A result of one or two digits can be equal by chance.
            if not any(len(f"{v:g}".replace(".", "").strip("0")) > 2 for _, v in results):
                continue
            key = (row.cells.get("kind"), node.spec.hardware.get(row.cells.get("hardware", "")), results)
            before = first.setdefault(key, [])
            same = next(
                (f"{known.id!r} ({o.table.file}:{known.line})" for o, known in before if _same_run(row, known)), ""
            )
            if same:
                yield of.finding(row, "id", f"the same run as {same}", "keep the more complete row")
            else:
                before.append((of, row))


def _same_run(row: MeasuredRow, other: MeasuredRow) -> bool:
    """Whether no column that both state distinguishes two rows, and at least one describes the run."""
    shared = [
        c for c in row.cells if c not in _NOT_THE_RUN and is_stated(row.cells[c]) and is_stated(other.cells.get(c, ""))
    ]
    return any(c not in _RESULTS for c in shared) and all(_equal(row.cells[c], other.cells[c]) for c in shared)


def _equal(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one.strip().lower() == other.strip().lower()


def of_family(name: str, graph: Graph) -> list[str]:
    """The chips and servers with similar names: one of a plugin that is not installed has none."""
    letters = re.match(r"[a-z]+", name)
    known = [node.name for spec in (Chip, Server, UltraServer) for node in graph.of(spec)]
    family = [each for each in known if letters and re.match(rf"{letters[0]}(?![a-z])", each)]
    return family or get_close_matches(name, known, 1, 0.85)
