"""The catalog as tables: one for each kind with a column for each path, and ``figures`` and ``claims``.

Figures are floats in base units (B, B/s, FLOPS, s, ...); unknown values are ``None``. A column has its unit, its
description and the source of each of its figures. CSV and JSON are written here; ``frames`` converts the same tables to
data frames, Parquet and SQL.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from attrs import field, frozen

from trnspec.graph.composition import part_kinds
from trnspec.graph.graph import Graph
from trnspec.graph.paths import paths, place
from trnspec.graph.provenance import ConflictingValue, Stated, conflicting, figures
from trnspec.graph.values import PathField, PathValue, Sort
from trnspec.model.document import Node
from trnspec.model.measurements import Measurements
from trnspec.model.reflection import ListShape, NumberShape, ObjectShape, dotted, shape_at, value_at
from trnspec.plugins.builtin_kinds import IN_GRAPH
from trnspec.quantities.amount import Amount
from trnspec.quantities.quantity import Interval, Quantity, parse_or_none
from trnspec.quantities.units import Dimension, UnitTable
from trnspec.yaml import Path

Type = Literal["number", "integer", "string", "integers", "strings"]
Cell = float | int | str | tuple[int, ...] | tuple[str, ...] | None


@frozen
class CatalogColumn:
    """A column of a table.

    Attributes:
        name: Its name: a path, ``peak.dense.bf16``.
        type: The type of its values; every column may have missing values.
        description: Its meaning.
        unit: The base unit of its figures; empty for other columns.
        dimension: The dimension of its figures, in words.
        sources: The source of the figure of each document, both by name; ``derived`` for a computed figure.
    """

    name: str
    type: Type
    description: str
    unit: str = ""
    dimension: str = ""
    sources: Mapping[str, str] = field(factory=dict)


@frozen
class CatalogTable:
    """A table of a catalog.

    Attributes:
        name: Its name: ``chips``.
        description: The meaning of its rows.
        columns: The columns.
        rows: One value per column; ``None`` if it is unknown.
    """

    name: str
    description: str
    columns: tuple[CatalogColumn, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)


def tables(graph: Graph) -> dict[str, CatalogTable]:
    """The tables of a graph by name: those of the kinds, then ``figures`` and ``claims``.

    The table of a kind has a column for each path of the kind, whether or not any document has a value there, so that
    the catalogs of two dates have the same columns. Mappings such as ``other`` have columns for the keys in use.
    """
    # Tables of measurements are CSV files themselves; their documents hold no figures.
    known = {k.name: (k.folder, k.spec) for k in IN_GRAPH if k.spec is not Measurements}
    known |= {
        n.kind: (n.folder or f"{n.kind.lower()}s", type(n.spec))
        for n in graph
        if n.kind not in known and not isinstance(n.spec, Measurements)
    }
    kinds = {folder: _kind(graph, name, folder, spec) for name, (folder, spec) in known.items()}
    return kinds | {"figures": _figures(graph), "claims": _claims(graph)}


# One table for each kind.


def _kind(graph: Graph, kind: str, folder: str, spec: type[Any]) -> CatalogTable:
    nodes = [n for n in graph.of(spec) if n.kind == kind]
    columns: list[CatalogColumn] = []
    cells: list[list[Cell]] = []
    for path in dict.fromkeys(paths(graph, spec, parts=False)):
        at = place(graph, spec, path)
        assert at is not None  # as of every path that is offered
        values = [at.read(n) for n in nodes]
        columns.append(_column(graph, spec, at, nodes, values))
        cells.append([_cell(columns[-1], at, n, value) for n, value in zip(nodes, values, strict=True)])
        if path == "title":
            columns.append(CatalogColumn("aliases", "strings", "Its other names."))
            cells.append([n.metadata.aliases for n in nodes])
    return CatalogTable(folder, f"The documents of the kind {kind}.", tuple(columns), tuple(zip(*cells, strict=True)))


_ABOUT = {
    "name": "The name that other documents refer to.",
    "title": "The title.",
    "source": "The source of every figure without a source of its own.",
    "chips.count": "Chips of all servers.",
}


def _column(
    graph: Graph, spec: type[Any], at: PathField, nodes: list[Node[Any]], values: list[PathValue | None]
) -> CatalogColumn:
    type_, unit, dimension = _type(spec, at), "", ""
    if isinstance(at.holds, Dimension):
        unit, dimension = at.holds.base, at.holds.word
    sources = {n.name: _source(v) for n, v in zip(nodes, values, strict=True) if v is not None and v.figure is not None}
    notes = (v.figure.note for v in values if v is not None and v.figure is not None and v.figure.note)
    description = _description(graph, spec, at) or next(notes, "")
    return CatalogColumn(at.path, type_, description, unit, dimension, sources)


def _type(spec: type[Any], at: PathField) -> Type:
    if isinstance(at.holds, Dimension):
        return "number"
    if at.holds is Sort.GROUP:
        shape = shape_at(spec, _steps(at))
        return "integers" if isinstance(shape, ListShape) and isinstance(shape.item, NumberShape) else "strings"
    return "integer" if at.holds is Sort.COUNT else "string"


def _steps(at: PathField) -> Path:
    return tuple(at.path.split("."))


def _description(graph: Graph, spec: type[Any], at: PathField) -> str:
    steps = _steps(at)
    for owner in (spec, *part_kinds(graph, spec)) if at.total else (spec,):
        outer = shape_at(owner, steps[:-1])
        member = outer.fields.get(str(steps[-1])) if isinstance(outer, ObjectShape) else None
        text = "" if member is None else member.description
        if text:
            return f"{text} The total over all parts, computed." if at.total else text
    return _ABOUT.get(at.path, "")


def _source(value: PathValue) -> str:
    """The source of a figure, or of the figure of the part from which a total is computed."""
    assert value.figure is not None
    if value.figure.derived is not None:
        return "derived"
    source = value.figure.source or (None if value.part is None else value.part.metadata.source)
    return "" if source is None else source.name


def _cell(column: CatalogColumn, at: PathField, node: Node[Any], value: PathValue | None) -> Cell:
    if value is None or (value.is_bound and column.type != "string"):
        return None
    if column.type in ("integers", "strings"):
        items = value_at(node.spec, _steps(at))
        return tuple(v if isinstance(v, int) else str(v) for v in items)  # type: ignore[return-value]  # all are alike
    if column.type == "number":
        return float(value.value.value) if isinstance(value.value, Amount) else None
    if column.type == "integer" and isinstance(value.value, (int, Fraction)):
        return int(value.value)
    return value.text


# The tables of figures and claims.

_DOCUMENT = (
    CatalogColumn("document", "string", "The document."),
    CatalogColumn("kind", "string", "Its kind."),
    CatalogColumn("path", "string", "The path in it."),
)
_FIGURES = (
    *_DOCUMENT,
    CatalogColumn("scope", "string", "The unit of hardware and the conditions it applies to."),
    CatalogColumn("value", "number", "The value in base units, which the column unit names."),
    CatalogColumn("unit", "string", "The base unit."),
    CatalogColumn("printed", "string", "As printed."),
    CatalogColumn("printed_unit", "string", "The unit as printed."),
    CatalogColumn("low", "number", "The lower end of the interval of rounding, included."),
    CatalogColumn("high", "number", "The upper end of the interval of rounding, excluded; missing if there is none."),
    CatalogColumn("digits", "integer", "Significant digits as printed."),
    CatalogColumn("qualifier", "string", "The qualifier of the number: ~, <=, up to; or empty."),
    CatalogColumn("source", "string", "The name of the source; missing for a derived figure."),
    CatalogColumn("as_of", "string", "The date of the source."),
    CatalogColumn("where", "string", "The location in the source."),
    CatalogColumn("derived", "string", "The formula of a figure that no source prints."),
    CatalogColumn("note", "string", "A remark for readers."),
)
_CLAIMS = (
    *_DOCUMENT,
    CatalogColumn("says", "string", "The value of the source, as printed."),
    CatalogColumn(
        "value",
        "number",
        "The same in base units, which the column unit names; a count has no unit; missing for texts.",
    ),
    CatalogColumn("unit", "string", "The base unit."),
    CatalogColumn("low", "number", "The lower end of the interval of rounding, included."),
    CatalogColumn("high", "number", "The upper end of the interval of rounding, excluded; missing if there is none."),
    CatalogColumn("verdict", "string", "The verdict on it."),
    CatalogColumn("reason", "string", "The reason for the verdict."),
    CatalogColumn("source", "string", "The name of the source."),
    CatalogColumn("as_of", "string", "The date of the source."),
    CatalogColumn("where", "string", "The location in the source."),
    CatalogColumn("adopted", "string", "The adopted figure, count or text, as printed; missing if there is none."),
    CatalogColumn("adopted_value", "number", "The adopted figure or count in base units."),
)


def _ordered(graph: Graph) -> list[Node[Any]]:
    return sorted(graph, key=lambda n: (n.kind, n.name))


def _figures(graph: Graph) -> CatalogTable:
    rows = tuple(_figure(n, f) for n in _ordered(graph) for f in figures(graph, n).values())
    return CatalogTable("figures", "Every figure of every document.", _FIGURES, rows)


def _figure(node: Node[Any], figure: Stated) -> tuple[Cell, ...]:
    quantity = figure.value
    value, low, high = _bounds(quantity, figure.interval)
    return (
        node.name, node.kind, figure.at, figure.scope, value, quantity.dimension.base, quantity.text,
        quantity.unit.symbol, low, high, quantity.digits, quantity.qualifier.value, figure.source_name or None,
        figure.as_of or None, figure.where, figure.derived, figure.note,
    )  # fmt: skip


def _bounds(quantity: Quantity, interval: Interval) -> tuple[float, float, float | None]:
    return float(quantity.value), float(interval.low), None if interval.high is None else float(interval.high)


def _claims(graph: Graph) -> CatalogTable:
    rows = tuple(
        _claim(n, path, c) for n in _ordered(graph) for path, values in conflicting(graph, n).items() for c in values
    )
    return CatalogTable("claims", "The values that other sources give, with verdicts.", _CLAIMS, rows)


def _claim(node: Node[Any], path: Path, claim: ConflictingValue) -> tuple[Cell, ...]:
    value, unit, low, high = _numbers(claim.says, node.units)
    at = value_at(node.spec, path[1:])
    adopted: str | None = None
    number: float | None = None
    if at is not None:
        quantity = getattr(at, "value", None)
        if isinstance(quantity, Quantity):
            adopted, number = quantity.text, float(quantity.value)
        elif isinstance(at, (int, str)):
            adopted, number = str(at), float(at) if isinstance(at, int) else None
    return (
        node.name, node.kind, dotted(path[1:]), claim.says, value, unit, low, high, claim.verdict,
        claim.reason or None, claim.source, claim.as_of or None, claim.where or None, adopted, number,
    )  # fmt: skip


def _numbers(text: str, units: UnitTable) -> tuple[float | None, str | None, float | None, float | None]:
    """Value, unit and interval of a claimed figure or count; ``None`` for a text."""
    if text.isascii() and text.isdigit():
        return float(text), None, float(text), float(text)
    quantity = parse_or_none(text, units)
    if quantity is None:
        return None, None, None, None
    value, low, high = _bounds(quantity, quantity.interval)
    return value, quantity.dimension.base, low, high


# Files.


def json_text(tables: Mapping[str, CatalogTable], about: Mapping[str, str | None]) -> str:
    """All tables as one JSON document, each with its rows and its columns with units and sources."""
    names = {t.name: [c.name for c in t.columns] for t in tables.values()}
    rows = {t.name: {"rows": [dict(zip(names[t.name], row, strict=True)) for row in t.rows]} for t in tables.values()}
    return _json(about, {t.name: _described(t) | rows[t.name] for t in tables.values()})


def csv_files(tables: Mapping[str, CatalogTable], about: Mapping[str, str | None]) -> dict[str, str]:
    """One CSV file per table by file name, and ``tables.json`` with the units and sources of their columns."""
    described = {t.name: {"file": f"{t.name}.csv"} | _described(t) for t in tables.values()}
    return {f"{t.name}.csv": _csv(t) for t in tables.values()} | {"tables.json": _json(about, described)}


def _json(about: Mapping[str, str | None], tables: Mapping[str, Any]) -> str:
    return json.dumps({"version": 1, **about, "tables": tables}, indent=1, ensure_ascii=False) + "\n"


def _described(table: CatalogTable) -> dict[str, Any]:
    columns = []
    for c in table.columns:
        about = {"unit": c.unit, "dimension": c.dimension, "description": c.description, "sources": dict(c.sources)}
        columns.append({"name": c.name, "type": c.type, **{key: value for key, value in about.items() if value}})
    return {"description": table.description, "columns": columns}


def _csv(table: CatalogTable) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(c.name for c in table.columns)
    for row in table.rows:
        writer.writerow("" if v is None else json.dumps(v) if isinstance(v, tuple) else v for v in row)
    return buffer.getvalue()
