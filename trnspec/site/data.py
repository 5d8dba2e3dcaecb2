"""The values of the catalog for the script of the pages: a JavaScript file, because pages opened as files cannot fetch JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from trnspec.graph.graph import Graph
from trnspec.graph.provenance import cited
from trnspec.model.calibration import Calibration
from trnspec.model.measurements import Measurements
from trnspec.site.document_values import DocumentValue, Entry

VALUE_FIELDS = (
    "text", "value", "low", "high", "unit", "interval", "verdict", "formula", "scope", "source", "where", "reason",
    "note", "document", "line", "others",
)  # fmt: skip
"""Content of each position of a value; what is empty at the end is left out."""
OTHER_FIELDS = ("says", "verdict", "source", "where", "reason", "line")
"""Content of each position of the value of another source."""


def script(graph: Graph, entries: Sequence[Entry]) -> str:
    """The file ``data.js``.

    Fitted values and tables of measurements are on the pages of their documents only.
    """
    listed = [e for e in entries if not isinstance(e.node.spec, (Calibration, Measurements))]
    names = sorted(
        {s for e in listed for v in (*e.values, *e.chosen) for s in (v.source, *(o.source for o in v.others)) if s}
    )
    index = {name: number for number, name in enumerate(names, 1)}  # 0 is a gap
    data = {
        "fields": VALUE_FIELDS,
        "otherFields": OTHER_FIELDS,
        "units": {u.symbol: [float(u.factor), u.dimension.base] for u in graph.units},
        "sources": [_source(graph, name) for name in names],
        "documents": [
            {
                "name": e.node.name,
                "kind": e.node.kind,
                "title": e.node.metadata.title,
                "values": {v.at: _row(e, v, index) for v in tabled(e)},
            }
            for e in listed
        ],
    }
    # One line per document, so that two sites can be compared line by line.
    text = json.dumps(data, separators=(",", ":"))
    return "window.TRNSPEC = " + text.replace('{"name":', '\n{"name":') + ";\n"


def tabled(entry: Entry) -> Iterable[DocumentValue]:
    """The values of a document by path: totals, figures, and the prices that evaluators use; without printed ratios and notes."""
    values = {v.at: v for v in (*entry.totals, *entry.stated, *entry.power, *entry.chosen)}
    return [v for at, v in values.items() if not at.startswith("ratios.") and at.rpartition(".")[2] != "note"]


def _source(graph: Graph, name: str) -> list[str]:
    node = graph.nodes.get(name)
    # A source that was left out for its errors has a name only.
    return [name, name, ""] if node is None else [node.name, node.metadata.title, cited(node.spec.as_of, node)]


def _row(entry: Entry, value: DocumentValue, index: dict[str, int]) -> list[Any]:
    numbers: tuple[Any, ...] = (None, None, None)
    if value.numbers is not None:
        numbers = tuple(None if n is None else int(n) if n == int(n) else float(n) for n in value.numbers)
    others = [_trimmed([o.says, o.verdict, index[o.source], o.where, o.reason, o.line]) for o in value.others]
    own = value.document in ("", entry.node.name)
    return _trimmed(
        [
            value.text,
            *numbers,
            value.unit,
            value.interval,
            "" if value.verdict == "adopted" else value.verdict,
            value.formula,
            value.scope,
            index.get(value.source),
            value.where,
            value.reason,
            value.note,
            "" if own else value.document,
            value.line,
            others,
        ]
    )


def _trimmed(row: list[Any]) -> list[Any]:
    """A row with 0 for empty texts, without the gaps at its end; a number that is not known remains null."""
    row = [0 if cell in ("", []) else cell for cell in row]
    while row and row[-1] in (0, None):
        row.pop()
    return row
