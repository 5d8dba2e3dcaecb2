"""The catalog as tables: one for each kind with a column for each path, and ``figures`` and ``claims``.

Numbers are floats in base units (B, B/s, FLOPS, s, ...); what is not known is a gap. The unit, what a column means
and the source of each of its figures travel with the column. CSV and JSON need nothing but this; ``frames`` makes
data frames, Parquet and SQL of the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from trnspec.errors import QuantityError
from trnspec.graph.paths import paths, place
from trnspec.graph.provenance import Stated, conflicting, figures
from trnspec.graph.values import PathField, PathValue, Sort
from trnspec.model.chip import Chip
from trnspec.model.reflection import ListShape, NumberShape, ObjectShape, dotted, shape_at, value_at
from trnspec.model.server import Server
from trnspec.plugins.builtin_kinds import KINDS
from trnspec.quantities.amount import Amount
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path as FilePath

    from trnspec.graph.graph import Graph
    from trnspec.graph.provenance import ConflictingValue
    from trnspec.model.document import Node
    from trnspec.quantities.units import UnitTable
    from trnspec.yaml import Path

Type = Literal["number", "integer", "string", "integers", "strings"]
Cell = float | int | str | tuple[int, ...] | tuple[str, ...] | None


@frozen
class Column:
    """A column of a table.

    Attributes:
        name: Its name: a path, ``peak.dense.bf16``.
        type: What its values are; every column may have gaps.
        description: What it means.
        unit: The base unit of its numbers; empty for what has none.
        dimension: What its numbers measure, in words.
        sources: Who answers for the figure of each document, by the names of both; ``derived`` for a computed one.
    """

    name: str
    type: Type
    description: str = ""
    unit: str = ""
    dimension: str = ""
    sources: Mapping[str, str] = field(factory=dict)


@frozen
class Table:
    """A table of a catalog.

    Attributes:
        name: Its name: ``chips``.
        description: What its rows are.
        columns: The columns.
        rows: A value for each column; ``None`` where it is not known.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)


def tables(graph: Graph) -> dict[str, Table]:
    """The tables of a graph by name: those of the kinds, then ``figures`` and ``claims``.

    A kind has a column for each path that it may have, whether or not any document has a figure there, so that the
    catalogs of two dates have the same columns; of mappings such as ``other`` the keys in use.
    """
    known = {k.name: (k.folder, k.spec) for k in KINDS}
    known |= {n.kind: (n.folder or f"{n.kind.lower()}s", type(n.spec)) for n in graph if n.kind not in known}
    made = {folder: _kind(graph, name, folder, spec) for name, (folder, spec) in known.items()}
    return made | {"figures": _figures(graph), "claims": _claims(graph)}


# One table for each kind.


def _kind(graph: Graph, kind: str, folder: str, spec: type[Any]) -> Table:
    nodes = [n for n in graph.of(spec) if n.kind == kind]
    columns: list[Column] = []
    cells: list[list[Cell]] = []
    for path in dict.fromkeys(paths(graph, spec, parts=False)):
        found = place(graph, spec, path)
        if found is None:
            continue
        read = [found.read(n) for n in nodes]
        columns.append(_column(spec, found, nodes, read))
        cells.append([_cell(columns[-1], found, n, each) for n, each in zip(nodes, read, strict=True)])
        if path == "title":
            columns.append(Column("aliases", "strings", "Its other names."))
            cells.append([n.metadata.aliases for n in nodes])
    return Table(folder, f"The documents of the kind {kind}.", tuple(columns), tuple(zip(*cells, strict=True)))


_ABOUT = {
    "name": "The name others refer to.",
    "title": "What people call it.",
    "source": "The source of every figure that names none of its own.",
    "chips.count": "Chips of all servers.",
}


def _column(spec: type[Any], found: PathField, nodes: list[Node[Any]], read: list[PathValue | None]) -> Column:
    type_, unit, dimension = _type(spec, found), "", ""
    if isinstance(found.holds, Dimension):
        unit, dimension = found.holds.base, found.holds.word
    sources = {n.name: _source(f) for n, f in zip(nodes, read, strict=True) if f is not None and f.figure is not None}
    notes = (f.figure.note for f in read if f is not None and f.figure is not None and f.figure.note)
    told = _description(spec, found) or next(notes, "")
    return Column(found.path, type_, told, unit, dimension, sources)


def _type(spec: type[Any], found: PathField) -> Type:
    if isinstance(found.holds, Dimension):
        return "number"
    if found.holds is Sort.GROUP:
        shape = shape_at(spec, _steps(found))
        return "integers" if isinstance(shape, ListShape) and isinstance(shape.item, NumberShape) else "strings"
    return "integer" if found.holds is Sort.COUNT else "string"


def _steps(found: PathField) -> Path:
    return tuple(found.path.split("."))


def _description(spec: type[Any], found: PathField) -> str:
    from trnspec.model.json_schema import field_docs

    steps = _steps(found)
    for owner in (spec, Chip, Server) if found.total else (spec,):
        outer = ObjectShape(owner) if len(steps) == 1 else shape_at(owner, steps[:-1])
        told = field_docs(outer.cls).get(str(steps[-1]), ("",))[0] if isinstance(outer, ObjectShape) else ""
        if told and found.total:
            return f"{told} The total over all parts, computed."
        if told:
            return told
    return _ABOUT.get(found.path, "")


def _source(found: PathValue) -> str:
    """Who answers for a figure, or for the figure of the part that a total is computed from."""
    assert found.figure is not None
    if found.figure.derived is not None:
        return "derived"
    own = found.figure.source or (None if found.part is None else found.part.metadata.source)
    return "" if own is None else own.name


def _cell(column: Column, at: PathField, node: Node[Any], found: PathValue | None) -> Cell:
    if found is None:
        return None
    if column.type in ("integers", "strings"):
        value = value_at(node.spec, _steps(at))
        return tuple(v if isinstance(v, int) else str(v) for v in value)  # type: ignore[return-value]  # all are alike
    if column.type == "number":
        return float(found.value.value) if isinstance(found.value, Amount) else None
    if column.type == "integer" and isinstance(found.value, (int, Fraction)):
        return int(found.value)
    return found.text


# Figures and claims, one below the other.

_DOCUMENT = (
    Column("document", "string", "The document."),
    Column("kind", "string", "Its kind."),
    Column("path", "string", "The place in it."),
)
_FIGURES = (
    *_DOCUMENT,
    Column("scope", "string", "What it is a figure of."),
    Column("value", "number", "The value in the unit of the column unit, which is a base unit."),
    Column("unit", "string", "The base unit."),
    Column("printed", "string", "As printed."),
    Column("printed_unit", "string", "The unit as printed."),
    Column("low", "number", "The least value that rounding leaves possible; it is possible itself."),
    Column("high", "number", "The value that rounding keeps it below; a gap where nothing does."),
    Column("digits", "integer", "Significant digits as printed."),
    Column("qualifier", "string", "What stands before the number: ~, <=, up to; empty where nothing does."),
    Column("source", "string", "Who says so; a gap for a derived figure."),
    Column("as_of", "string", "The date of the source."),
    Column("where", "string", "The place in the source."),
    Column("derived", "string", "The formula of a figure that nobody printed."),
    Column("note", "string", "What a reader should know."),
)
_CLAIMS = (
    *_DOCUMENT,
    Column("says", "string", "What the source says, as printed."),
    Column("value", "number", "The same in the unit of the column unit; a count has none; a gap for words."),
    Column("unit", "string", "The base unit."),
    Column("low", "number", "The least value that rounding leaves possible; it is possible itself."),
    Column("high", "number", "The value that rounding keeps it below; a gap where nothing does."),
    Column("verdict", "string", "What was decided about it."),
    Column("reason", "string", "Why."),
    Column("source", "string", "Who says so."),
    Column("as_of", "string", "The date of the source."),
    Column("where", "string", "The place in the source."),
    Column("adopted", "string", "The figure, count or word that is adopted there, as printed; a gap where none is."),
    Column("adopted_value", "number", "The adopted figure or count in base units."),
)


def _ordered(graph: Graph) -> list[Node[Any]]:
    return sorted(graph, key=lambda n: (n.kind, n.name))


def _figures(graph: Graph) -> Table:
    rows = tuple(_figure(n, f) for n in _ordered(graph) for f in figures(graph, n).values())
    return Table("figures", "Every figure of every document.", _FIGURES, rows)


def _figure(node: Node[Any], figure: Stated) -> tuple[Cell, ...]:
    quantity = figure.value
    value, low, high = _bounds(quantity)
    return (
        node.name, node.kind, figure.at, figure.scope, value, quantity.dimension.base, quantity.text,
        quantity.unit.symbol, low, high, quantity.digits, quantity.qualifier.value, figure.source_name or None,
        figure.as_of or None, figure.where, figure.derived, figure.note,
    )  # fmt: skip


def _bounds(quantity: Quantity) -> tuple[float, float, float | None]:
    interval = quantity.interval
    return float(quantity.value), float(interval.low), None if interval.high is None else float(interval.high)


def _claims(graph: Graph) -> Table:
    rows = tuple(
        _claim(n, path, r) for n in _ordered(graph) for path, found in conflicting(graph, n).items() for r in found
    )
    return Table("claims", "What others say of the figures, and what was decided about it.", _CLAIMS, rows)


def _claim(node: Node[Any], path: Path, rival: ConflictingValue) -> tuple[Cell, ...]:
    value, unit, low, high = _said(rival.says, node.units)
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
        node.name, node.kind, dotted(path[1:]), rival.says, value, unit, low, high, rival.verdict,
        rival.reason or None, rival.source, rival.as_of or None, rival.where or None, adopted, number,
    )  # fmt: skip


def _said(text: str, units: UnitTable) -> tuple[float | None, str | None, float | None, float | None]:
    """What a claim says as numbers, where it says a figure or a count."""
    if text.isascii() and text.isdigit():
        return float(text), None, float(text), float(text)
    try:
        quantity = parse(text, None, units)
    except QuantityError:
        return None, None, None, None
    value, low, high = _bounds(quantity)
    return value, quantity.dimension.base, low, high


# As files.


def json_text(made: Mapping[str, Table], about: Mapping[str, str | None]) -> str:
    """All tables as one JSON document: of each the columns with units and sources, and the rows."""
    import json

    data = {
        "version": 1,
        **about,
        "tables": {
            t.name: {
                "description": t.description,
                "columns": [_described(c) for c in t.columns],
                "rows": [dict(zip((c.name for c in t.columns), row, strict=True)) for row in t.rows],
            }
            for t in made.values()
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def csv_files(made: Mapping[str, Table], about: Mapping[str, str | None]) -> dict[str, str]:
    """A CSV file for each table by file name, and ``tables.json``, which tells units and sources of their columns."""
    import json

    files = {f"{t.name}.csv": _csv(t) for t in made.values()}
    told = {
        t.name: {"file": f"{t.name}.csv", "description": t.description, "columns": [_described(c) for c in t.columns]}
        for t in made.values()
    }
    return files | {
        "tables.json": json.dumps({"version": 1, **about, "tables": told}, indent=1, ensure_ascii=False) + "\n"
    }


def _described(column: Column) -> dict[str, Any]:
    told: dict[str, Any] = {"name": column.name, "type": column.type}
    more = {
        "unit": column.unit,
        "dimension": column.dimension,
        "description": column.description,
        "sources": dict(column.sources),
    }
    return told | {key: value for key, value in more.items() if value}


def _csv(table: Table) -> str:
    import csv
    import io
    import json

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(c.name for c in table.columns)
    for row in table.rows:
        writer.writerow("" if v is None else json.dumps(v) if isinstance(v, tuple) else v for v in row)
    return buffer.getvalue()


def encoded(texts: Mapping[str, str], folder: FilePath) -> Iterator[tuple[FilePath, bytes]]:
    """Texts by file name, as the contents of files in a folder."""
    return ((folder / name, text.encode()) for name, text in texts.items())
