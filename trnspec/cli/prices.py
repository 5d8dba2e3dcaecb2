"""The prices of a server as a table, for ``trnspec show`` and ``trnspec list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.quantities.display import Displayed
from trnspec.quantities.quantity import render
from trnspec.text_table import Cell, Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.graph.graph import Graph
    from trnspec.graph.prices import Quote
    from trnspec.model.document import Node


def prices_of(graph: Graph, node: Node[Any]) -> tuple[Quote, ...]:
    """The known prices of a server; none of any other document."""
    if node.kind != "Server":
        return ()
    # A chip needs no prices, so that its page does not import their class.
    from trnspec.graph.prices import quotes

    return quotes(graph, node)


def unlisted(graph: Graph, node: Node[Any]) -> tuple[tuple[str, str, str], ...]:
    """The types of prices that a source states not to exist for a server: type, source and date."""
    if node.kind != "Server":
        return ()
    from trnspec.graph.prices import price_documents

    documents = [n for n in price_documents(graph, node) if n.spec.status == "unlisted"]
    sources = [None if n.metadata.source is None else graph.find(n.metadata.source) for n in documents]
    return tuple(
        (n.spec.type, "" if s is None else s.name, "" if s is None else s.spec.as_of)
        for n, s in zip(documents, sources, strict=True)
    )


def price_table(graph: Graph, node: Node[Any], numbers: Mapping[str, int]) -> Table | None:
    """The prices of a server by type and region, with the price of one chip, source and date; ``None`` without any.

    Args:
        graph: The catalog.
        node: The document.
        numbers: The numbers of sources in the legend.
    """
    quotes = prices_of(graph, node)
    absent = unlisted(graph, node)
    if not quotes and not absent:
        return None
    columns = [
        Column("price", wrap=True),
        Column("value", keep=True),
        Column("per chip"),
        Column("source", right=True, keep=True),
        Column("date", keep=True),
    ]
    rows: list[tuple[Cell, ...] | str] = []
    for type_, name, date in absent:
        rows.append((type_, "unlisted", None, numbers.get(name, ""), date))
    for quote in quotes:
        term = quote.document.spec.term
        head = f"{quote.type}, {term}" if term else quote.type
        if head not in rows:
            rows.append(head)
        value = quote.figure.value
        chip = render(value.value / node.spec.chips.count, value.unit, value.digits)
        source = numbers.get(quote.figure.source_name, "")
        rows.append((f"  {quote.place}", value.text, chip, source, quote.figure.as_of))
    return table(columns, rows)


def listed(graph: Graph, node: Node[Any]) -> dict[str, Displayed | Cell]:
    """What a list shows of a document of prices: server, type, the price that evaluators use, and its region and date."""
    from trnspec.graph.prices import quotes

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
