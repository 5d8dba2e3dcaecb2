"""Cost is price times servers times hours; a price is a figure like any other, with a source and a date."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal

from trnspec import Answer, Assumption, Dimension, Evaluation, QuantityError, RefusalError, UsageError, UsedFigure
from trnspec.graph.composition import servers
from trnspec.quantities.quantity import parse
from trnspec_cost.price import ServerPrice

if TYPE_CHECKING:
    from fractions import Fraction

    from trnspec import Catalog, DocumentView, Interval, Stated

_ON = re.compile(r"(?P<name>[^*\s]+)\s*(?:\*\s*(?P<count>[1-9]\d{0,8}))?")
_HOUR = 3600.0
_MILLION = 1e6


def cost(  # noqa: PLR0913  # each input is independent of the others
    catalog: Catalog,
    *,
    on: str,
    hours: float | None = None,
    step_time: float | None = None,
    steps: int | None = None,
    price: str | None = None,
    terms: Literal["on-demand", "spot", "reserved", "capacity-block"] = "on-demand",
    region: str | None = None,
    tokens: float | None = None,
) -> Evaluation:
    """What the servers of a run cost.

    The price is that of a document of kind ServerPrice, with its source and date, or the one that is given. Storage,
    traffic and taxes are not in it. Where no price is known and none is given, there is no answer.

    Args:
        catalog: Where servers and prices are looked up.
        on: The servers or UltraServers, and how many of them: ``trn1.32xlarge*4``.
        hours: How long they are rented; this, or step time and steps.
        step_time: Seconds of one step.
        steps: How many steps the run has.
        price: The price of one server, instead of that of the catalog: ``21.50 USD/h``.
        terms: On which terms they are rented.
        region: Where, where prices of several regions are known.
        tokens: How many tokens the run handles, for the cost of a million.

    Raises:
        UsageError: The time is not told, or told twice; or an input is out of its range.
        RefusalError: ``unknown-figure``: no price is known and none is given. ``ambiguous``: several are known.

    Source:
        Cost = price x servers x time.
    """
    server, servers, chips = _servers(catalog, on)
    time, told = _hours(hours, step_time, steps)
    if tokens is not None and tokens <= 0:
        raise UsageError(f"tokens: more than 0 is expected, not {tokens:g}")
    value, interval, figures_used, assumed = _price(catalog, server, price, terms, region)
    rented = servers * time
    answers = [
        _answer("cost", value, interval, rented, "USD", "the digits of the price"),
        _answer("hourly", value, interval, float(servers), "USD/h", "all servers together"),
        _answer("chip_hour", value, interval, servers / chips, "USD/h", "one chip for an hour"),
        Answer("server_hours", rented, "h"),
    ]
    if tokens is not None:
        answers.append(
            _answer("million_tokens", value, interval, rented * _MILLION / tokens, "USD", "1,000,000 tokens")
        )
    assumptions = [told, assumed, Assumption("rest", "not counted", "storage, traffic, taxes, idle and start-up time")]
    return Evaluation(
        evaluator="cost",
        title=f"{servers:,} x {server.name} for {time:,.6g} h, {terms}",
        inputs={
            "on": on, "hours": hours, "step_time": step_time, "steps": steps, "price": price, "terms": terms,
            "region": region, "tokens": tokens,
        },
        answers=tuple(answers),
        assumptions=tuple(a for a in assumptions if a is not None),
        figures_used=figures_used,
    )  # fmt: skip


def _servers(catalog: Catalog, on: str) -> tuple[DocumentView, int, int]:
    """The server that is rented, how many of it, and how many chips all of them have."""
    found = _ON.fullmatch(on.strip())
    if found is None:
        raise UsageError(f"on: servers and how many of them is expected, such as trn1.32xlarge*4, not {on!r}")
    count = int(found["count"] or 1)
    system: DocumentView = catalog[found["name"]]
    rented = servers(catalog.graph, system.node)
    chips = system.chip_count
    if rented is None or not isinstance(chips, int):
        raise UsageError(f"on: {system.kind} {system.name} is not rented; name a server or an UltraServer")
    number, server = rented
    return catalog[server.name], number * count, chips * count


def _hours(hours: float | None, step_time: float | None, steps: int | None) -> tuple[float, Assumption | None]:
    """The hours of the run, and what is taken for granted for that."""
    if (hours is None) == (step_time is None):
        raise UsageError("either hours, or step_time with steps, is expected")
    if (step_time is None) != (steps is None):
        raise UsageError("step_time and steps belong together: the run lasts as long as both multiplied")
    if hours is not None:
        if hours <= 0:
            raise UsageError(f"hours: more than 0 is expected, not {hours:g}")
        return hours, None
    assert step_time is not None
    assert steps is not None
    if step_time <= 0 or steps <= 0:
        raise UsageError(f"step_time and steps are above 0, not {step_time:g} and {steps}")
    time = step_time * steps / _HOUR
    if not math.isfinite(time):
        raise UsageError("step_time times steps is more than a number can hold")
    return time, Assumption("time", f"{steps:,} steps of {step_time:g} s", "nothing between the steps")


def _price(
    catalog: Catalog, server: DocumentView, given: str | None, terms: str, region: str | None
) -> tuple[Fraction, Interval, tuple[UsedFigure, ...], Assumption | None]:
    """The price of one server in USD/h, what its digits leave open, and on whose word."""
    if given is not None:
        try:
            quantity = parse(given, Dimension.PRICE)
        except QuantityError as error:
            raise UsageError(f"price: {error}" + (f"; {error.hint}" if error.hint else "")) from error
        return quantity.value, quantity.interval, (), Assumption("price", f"{given} a server", "the caller")
    found = [
        (catalog[node.name], figure)
        for node in catalog.graph.of(ServerPrice)
        if node.spec.server.name in (server.name, *server.aliases)
        and node.spec.terms == terms
        and region in (None, node.spec.region)
        and (figure := catalog[node.name].figures.get("hourly")) is not None
    ]
    where = f" in {region}" if region else ""
    if not found:
        raise RefusalError(
            "unknown-figure",
            f"no {terms} price of {server.name} is known{where}",
            place=f"{server.name} {terms}",
            hint='give it, such as --price "21.50 USD/h", or write a document of kind ServerPrice',
        )
    if len(found) > 1:
        regions = ", ".join(sorted(p.node.spec.region or "no region" for p, _ in found))
        raise RefusalError(
            "ambiguous",
            f"{len(found)} {terms} prices of {server.name} are known{where}: {regions}",
            place="region",
            hint="choose one with --region",
        )
    (document, figure) = found[0]
    return figure.value.value, figure.interval, (_basis(figure),), _where(document)


def _where(price: DocumentView) -> Assumption:
    region = price.node.spec.region
    return Assumption("region", region or "not told", f"the price {price.name}")


def _basis(figure: Stated) -> UsedFigure:
    conflicting = tuple(f"{r.says}, {r.verdict} ({r.source}, {r.as_of})" for r in figure.conflicting)
    source = figure.source_name or f"derived: {figure.derived}"
    return UsedFigure(figure.of, figure.at, figure.value.text, source, figure.as_of, conflicting)


def _answer(name: str, value: Fraction, price: Interval, factor: float, unit: str, note: str) -> Answer:
    """An answer that is the price times an exact factor; so is its interval."""
    high = None if price.high is None else float(price.high) * factor
    return Answer(name, float(value) * factor, unit, float(price.low) * factor, high, note)
