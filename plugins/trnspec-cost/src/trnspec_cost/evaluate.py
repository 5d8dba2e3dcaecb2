"""The evaluator cost: price x servers x time; a price is a catalog figure with type, region, source and date."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec import Answer, Assumption, Evaluation, UsageError
from trnspec.evaluation.questions import Prices, System, axis, like, system_and_count
from trnspec.evaluators.prices import hourly_price
from trnspec.graph.composition import servers

if TYPE_CHECKING:
    from fractions import Fraction

    from trnspec import Catalog, DocumentView, Interval

_HOUR = 3600.0
_MILLION = 1e6


@frozen(kw_only=True, slots=False)
class CostQuestion(Prices):
    """The inputs of the evaluator."""

    on: str = like(System, "on")
    hours: float | None = axis("Rental time; or step time and steps.", "HOURS", group="Workload", default=None)
    step_time: float | None = axis("Time per step.", "SECONDS", group="Workload", default=None)
    steps: int | None = axis("Number of steps.", "STEPS", group="Workload", default=None)
    tokens: float | None = axis(
        "Tokens processed in the run, for the cost per million tokens.", "TOKENS", group="Workload", default=None
    )


def cost(catalog: Catalog, question: CostQuestion) -> Evaluation:
    """Compute the cost of the servers of a run.

    The price is that of the catalog for a type and a region, with source and date, or the one given. Storage, data
    transfer and taxes are not included. Without a price there is no answer.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        UsageError: The time is missing or given twice, or an input is out of range.
        RefusalError: ``unknown-figure``: no price of this type and region is known or given.

    Examples:
        Four Trn1 servers for ten hours:

            trnspec eval cost --on 'trn1.32xlarge*4' --hours 10

        Spot instances in a region, and the cost per million tokens:

            trnspec eval cost --on trn2.48xlarge --hours 10 --price-type spot --region us-east-2 --tokens 2e9

        At a given price:

            trnspec eval cost --on 'trn1.32xlarge*4' --hours 10 --price '21.50 USD/h'

    Source:
        Cost = price x servers x time.
    """
    q = question
    server, number, chips = _servers(catalog, q.on)
    time, assumed_time = _hours(q.hours, q.step_time, q.steps)
    tokens = q.tokens
    if tokens is not None and tokens <= 0:
        raise UsageError(f"tokens: more than 0 is expected, not {tokens:g}")
    price = hourly_price(catalog.graph, server.node, q)
    value, interval = price.value, price.interval
    rented = number * time
    answers = [
        _answer("cost", value, interval, rented, "USD", "interval: rounding of the price"),
        _answer("hourly", value, interval, float(number), "USD/h", "all servers"),
        _answer("chip_hour", value, interval, number / chips, "USD/h", "per chip and hour"),
        Answer("server_hours", rented, "h"),
    ]
    if tokens is not None:
        answers.append(
            _answer("million_tokens", value, interval, rented * _MILLION / tokens, "USD", "per million tokens")
        )
    assumptions = [
        assumed_time,
        price.assumption,
        Assumption("excluded", "not counted", "storage, data transfer, taxes, idle and start-up time"),
    ]
    return Evaluation(
        evaluator="cost",
        title=f"{number:,} x {server.name} for {time:,.6g} h, {q.price_type if q.price is None else 'given price'}",
        inputs=q.values(),
        answers=tuple(answers),
        assumptions=tuple(a for a in assumptions if a is not None),
        figures_used=price.figures_used,
    )


def _servers(catalog: Catalog, on: str) -> tuple[DocumentView, int, int]:
    """The server, the number of servers, and the number of chips."""
    name, count = system_and_count(on)
    system: DocumentView = catalog[name]
    rented = servers(catalog.graph, system.node)
    chips = system.chip_count
    if rented is None or not isinstance(chips, int):
        raise UsageError(f"on: {system.kind} {system.name} has no price; give a server or an UltraServer")
    number, server = rented
    return catalog[server.name], number * count, chips * count


def _hours(hours: float | None, step_time: float | None, steps: int | None) -> tuple[float, Assumption | None]:
    """The hours of the run, and the assumption made."""
    if (hours is None) == (step_time is None):
        raise UsageError("give either hours, or step_time and steps")
    if (step_time is None) != (steps is None):
        raise UsageError("step_time and steps must be given together: their product is the time of the run")
    if hours is not None:
        if hours <= 0:
            raise UsageError(f"hours: more than 0 is expected, not {hours:g}")
        return hours, None
    assert step_time is not None
    assert steps is not None
    if step_time <= 0 or steps <= 0:
        raise UsageError(f"step_time and steps must be above 0, not {step_time:g} and {steps}")
    time = step_time * steps / _HOUR
    if not math.isfinite(time):
        raise UsageError("step_time x steps is out of range")
    return time, Assumption("time", f"{steps:,} steps of {step_time:g} s", "no time between steps")


def _answer(name: str, value: Fraction, price: Interval, factor: float, unit: str, note: str) -> Answer:
    """An answer: the price times an exact factor; the interval is scaled by the same factor."""
    high = None if price.high is None else float(price.high) * factor
    return Answer(name, float(value) * factor, unit, float(price.low) * factor, high, note)
