"""The price of a server for an evaluator: that of the question, or the one of the catalog that it means."""

from __future__ import annotations

from fractions import Fraction  # read at run time
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import QuantityError, RefusalError, UsageError
from trnspec.evaluation.amounts import spaced
from trnspec.evaluation.result import Assumption
from trnspec.evidence import UsedFigure
from trnspec.graph.quotes import chosen, price_documents, quotes
from trnspec.model.quotes import UNSTATED
from trnspec.quantities.quantity import Interval, parse
from trnspec.quantities.units import Dimension
from trnspec.short_repr import short_repr

if TYPE_CHECKING:
    from trnspec.evaluation.questions import Prices
    from trnspec.graph.graph import Graph
    from trnspec.graph.quotes import Quote
    from trnspec.model.document import Node
    from trnspec.model.server import Server


@frozen
class HourlyPrice:
    """The price of one server per hour.

    Attributes:
        value: In USD/h.
        interval: The values that are printed the same way.
        figures_used: The catalog figure, if it is one.
        assumption: The type, region and date of the price, or that it was given.
    """

    value: Fraction
    interval: Interval
    figures_used: tuple[UsedFigure, ...]
    assumption: Assumption

    __repr__ = short_repr


def hourly_price(graph: Graph, server: Node[Server], question: Prices) -> HourlyPrice:
    """The price of a server that a question gives, or means.

    Of several prices of a type it is that of us-east-1, else of another region; then the newest, then the lowest.

    Args:
        graph: The catalog.
        server: The server.
        question: The price, or its type and region.

    Raises:
        UsageError: The given price is not one.
        RefusalError: ``unknown-figure``: no price of this type and region is known.
    """
    if question.price is not None:
        try:
            quantity = parse(spaced(question.price), Dimension.PRICE)
        except QuantityError as error:
            raise UsageError(f"price: {error}" + (f"; {error.hint}" if error.hint else "")) from error
        assumption = Assumption("price", f"{question.price} per server", "the caller")
        return HourlyPrice(quantity.value, quantity.interval, (), assumption)
    quote = chosen(graph, server, question.price_type, question.region)
    if quote is None:
        raise _unknown(graph, server, question)
    figure = quote.figure
    return HourlyPrice(figure.value.value, figure.interval, (figure.used,), Assumption("price", *_words(quote)))


def _words(quote: Quote) -> tuple[str, str]:
    place = "no region stated" if quote.place == UNSTATED else quote.place
    term = f", {quote.document.spec.term}" if quote.document.spec.term else ""
    return f"{quote.figure.value} per server", f"{quote.type}{term}, {place}, {quote.figure.as_of}"


def _unknown(graph: Graph, server: Node[Server], question: Prices) -> RefusalError:
    """The refusal, with the source that says so where there is one, and the prices that are known."""
    type_, region = question.price_type, question.region
    message = f"the catalog has no {type_} price of {server.name}" + (f" in {region}" if region else "")
    unlisted = [n for n in price_documents(graph, server) if n.spec.type == type_ and n.spec.status == "unlisted"]
    for node in unlisted:
        source = None if node.metadata.source is None else graph.find(node.metadata.source)
        if source is not None:
            message += f"; none is listed ({source.name}, {source.spec.as_of})"
    known = quotes(graph, server)
    if known:
        # One price of each type, and all regions of the type in question.
        shown = [q for n, q in enumerate(known) if q.type == type_ or q.type not in [k.type for k in known[:n]]]
        message += f"; known: {', '.join(map(str, shown[:_SHOWN]))}"
        if len(shown) > _SHOWN:
            message += f" and {len(shown) - _SHOWN} more"
    hint = (
        'give price_type or region, or price, such as "21.50 USD/h"' if known else 'give price, such as "21.50 USD/h"'
    )
    return RefusalError("unknown-figure", message, place=f"{server.name} {type_}", hint=hint)


_SHOWN = 6
"""Known prices that a refusal lists."""
