"""The power of a chip or a system as a table, for ``trnspec show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.graph.composition import chips
from trnspec.graph.provenance import Stated
from trnspec.model.document import Node
from trnspec.text_table import Cell, Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trnspec.graph.graph import Graph


@frozen
class PowerRow:
    """A power of a chip or a system, or a claim about it.

    Attributes:
        document: The document that has it.
        label: Its type and load, or the verdict on the claim.
        text: The value as printed; ``unknown`` where no source is believed.
        source: The name of the source.
        date: The date of the source.
        figure: The adopted figure; ``None`` for a claim.
        reason: The reason for the verdict on a claim.
    """

    document: Node[Any]
    label: str
    text: str
    source: str = ""
    date: str = ""
    figure: Stated | None = None
    reason: str = ""


def power_rows(graph: Graph, node: Node[Any]) -> tuple[PowerRow, ...]:
    """The power of a chip or a system by type, each followed by the claims that are not adopted."""
    return tuple(_rows(graph, node)) if chips(graph, node) is not None else ()


def _rows(graph: Graph, node: Node[Any]) -> Iterator[PowerRow]:
    # Other documents have no power, so that their pages do not import its class.
    from trnspec.graph.power import power_documents
    from trnspec.graph.provenance import conflicting, figures

    for document in power_documents(graph, node):
        spec = document.spec
        label = f"{spec.type}, {spec.load}" if spec.load else spec.type
        figure = figures(graph, document).get("power")
        if figure is None:
            yield PowerRow(document, label, "unknown")
        else:
            yield PowerRow(document, label, figure.value.text, figure.source_name, figure.as_of, figure)
        for claim in conflicting(graph, document).get(("spec", "power"), ()):
            if claim.verdict != "agrees":
                yield PowerRow(document, claim.verdict, claim.says, claim.source, claim.as_of, reason=claim.reason)


def power_table(rows: tuple[PowerRow, ...], numbers: Mapping[str, int]) -> Table | None:
    """The rows as a table, with scope, source and date; ``None`` without any.

    Args:
        rows: The power of one chip or system.
        numbers: The numbers of sources in the legend.
    """
    columns = [
        Column("power", wrap=True),
        Column("value", keep=True),
        Column("scope"),
        Column("source", right=True, keep=True),
        Column("date", keep=True),
    ]
    cells: list[tuple[Cell, ...] | str] = []
    for row in rows:
        is_claim = row.figure is None and bool(row.source)
        label = f"  {row.label}" if is_claim else row.label
        cells.append(
            (label, row.text, None if is_claim else row.document.spec.scope, numbers.get(row.source), row.date)
        )
    return table(columns, cells) if cells else None
