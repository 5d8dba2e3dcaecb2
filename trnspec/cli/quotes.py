"""Prices and power of a document as rows of ``trnspec show``, and prices as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from trnspec.graph.composition import chips
from trnspec.graph.provenance import Stated
from trnspec.quantities.display import Displayed
from trnspec.quantities.quantity import render
from trnspec.text_table import Cell, Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@frozen(kw_only=True)
class Quoted:
    """A price or a power of a document, or a claim about it.

    Attributes:
        kind: What it is; the document of a price is a server.
        type: Its type with what it holds for: ``on-demand``, ``tdp``.
        text: The value as printed; ``unlisted`` for a price that does not exist, ``unknown`` for a power without source.
        place: The region of a price.
        detail: The price of one chip, or the scope of a power.
        source: The name of the source.
        date: The date of the source.
        figure: The adopted figure; ``None`` for a claim.
        verdict: ``adopted``, or the verdict on the claim.
        condition: The term of a price, the load of a power.
        reason: The reason for the verdict on a claim.
    """

    kind: Literal["price", "power"]
    type: str
    text: str
    place: str = ""
    detail: str = ""
    source: str = ""
    date: str = ""
    figure: Stated | None = None
    verdict: str = "adopted"
    condition: str = ""
    reason: str = ""

    @classmethod
    def of(cls, figure: Stated | None, **fields: Any) -> Quoted:
        """The row of an adopted figure, or of one that has no source."""
        if figure is None:
            return cls(text="unknown", **fields)
        return cls(text=figure.value.text, source=figure.source_name, date=figure.as_of, figure=figure, **fields)

    @property
    def heading(self) -> str:
        """Type and condition: ``capacity-block, up to 182 days``."""
        return f"{self.type}, {self.condition}" if self.condition else self.type


def quoted(graph: Graph, node: Node[Any]) -> tuple[Quoted, ...]:
    """The prices and the power of a document; of each type first what evaluators use.

    Classes of prices and power are imported only where a document can have them.
    """
    prices = _prices(graph, node) if node.kind == "Server" else ()
    return (*prices, *(_power(graph, node) if chips(graph, node) is not None else ()))


def _prices(graph: Graph, node: Node[Any]) -> Iterator[Quoted]:
    from trnspec.graph.quotes import price_documents, quotes

    for document in price_documents(graph, node):
        if document.spec.status == "unlisted":
            ref = document.metadata.source
            source = None if ref is None else graph.find(ref)
            name, date = ("", "") if source is None else (source.name, source.spec.as_of)
            yield Quoted(kind="price", type=document.spec.type, text="unlisted", source=name, date=date)
    for quote in quotes(graph, node):
        value = quote.figure.value
        per_chip = render(value.value / node.spec.chips.count, value.unit, value.digits)
        term = quote.document.spec.term or ""
        yield Quoted.of(quote.figure, kind="price", type=quote.type, place=quote.place, detail=per_chip, condition=term)


def _power(graph: Graph, node: Node[Any]) -> Iterator[Quoted]:
    from trnspec.graph.provenance import conflicting, figures
    from trnspec.graph.quotes import power_documents

    for document in power_documents(graph, node):
        spec = document.spec
        figure = figures(graph, document).get("power")
        yield Quoted.of(figure, kind="power", type=spec.type, detail=spec.scope or "", condition=spec.load or "")
        for claim in conflicting(graph, document).get(("spec", "power"), ()):
            if claim.verdict != "agrees":
                given: dict[str, Any] = {"text": claim.says, "source": claim.source, "date": claim.as_of}
                yield Quoted(kind="power", type=spec.type, verdict=claim.verdict, reason=claim.reason, **given)


def quoted_tables(rows: Sequence[Quoted], numbers: Mapping[str, int]) -> list[Table]:
    """The prices and the power as tables.

    Args:
        rows: The rows of one document.
        numbers: The numbers of sources in the legend.
    """
    tables: list[Table] = []
    for kind, detail in (("price", "per chip"), ("power", "scope")):
        cells: list[tuple[Cell, ...] | str] = []
        for row in (r for r in rows if r.kind == kind):
            if row.place and row.heading not in cells:
                cells.append(row.heading)
            label = row.place or (row.heading if row.verdict == "adopted" else row.verdict)
            indent = "" if label == row.heading else "  "
            cells.append((indent + label, row.text, row.detail or None, numbers.get(row.source), row.date))
        columns = [
            Column(kind, wrap=True),
            Column("value", keep=True),
            Column(detail),
            Column("source", right=True, keep=True),
            Column("date", keep=True),
        ]
        tables += [table(columns, cells)] if cells else []
    return tables


def listed_price(graph: Graph, node: Node[Any]) -> dict[str, Displayed | Cell]:
    """Columns of a document of prices in a list: server, type, the price that evaluators use, and its region and date."""
    from trnspec.graph.quotes import quotes

    server = graph.find(node.spec.server)
    known = () if server is None else quotes(graph, server, node.spec.type)
    quote = next((q for q in known if q.document is node), None)
    return {
        "server": node.spec.server.name,
        "type": node.spec.type,
        "price": None if quote is None else Displayed.of(quote.figure.value),
        "region": quote.place if quote is not None else "unlisted" if node.spec.status == "unlisted" else None,
        "date": None if quote is None else quote.figure.as_of,
        "regions": len(node.spec.hourly),
    }
