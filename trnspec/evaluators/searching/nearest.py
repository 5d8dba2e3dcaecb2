"""Suggestions where no configuration is feasible: the nearest to fitting, and the nearest searches that have an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.measures import measure
from trnspec.evaluation.result import Suggestion
from trnspec.evaluators.deployment_grid import DeploymentGrid
from trnspec.evaluators.fit import Capacity, Demand, nearest
from trnspec.evaluators.layouts import divisors, reasons
from trnspec.evaluators.searching.measures import unit
from trnspec.evaluators.searching.question import SearchQuestion
from trnspec.evaluators.searching.space import DEPLOYMENT, LAYOUT, Search, search_of
from trnspec.perf.lowering.lower import lower
from trnspec.perf.sweep.reductions import EXCESS, OUTSIDE, UNFIT, Selected

MOST_ALTERNATIVES = 6
"""The most other batches, and the most multiples of the system, that are searched where no layout is feasible."""
_NOTHING = "no other batch, and no multiple of the system, has one either"


def infeasible(catalog: Catalog, search: Search, kept: Selected) -> RefusalError:
    """The error with the nearest searches that have an answer: another batch, fewer chips, more of the system."""
    q = search.question
    none = "no-layout" if q.of == "training" else "no-deployment"
    message = f"none of {kept.evaluated:,} {search.noun} is feasible: {reasons(kept.counts)}"
    if kept.counts[OUTSIDE]:
        ends = "; ".join(
            f"{name} {' to '.join(measure(end, unit(name, q.of)) for end in ends)}"
            for name, ends in kept.ranges.items()
        )
        hint = f"without the condition {kept.counts[OUTSIDE]:,} are feasible" + (f": {ends}" if ends else "")
        given = {name: value for name, value in _given(q).items() if name != "where"}
        return RefusalError(
            none, message, place="where", hint=hint, suggestions=(Suggestion("search", given, "without where"),)
        )
    unknown = [reason for reason in kept.counts if reason.startswith("unknown-") and reason != "unknown-figure"]
    if unknown:
        name = unknown[0].removeprefix("unknown-")
        fix = {
            "usd": "give price, such as '21.50 USD/h'",
            "energy": "the power is not published; --set CHIP.power=500W assumes it",
        }
        return RefusalError(
            "unknown-figure", f"{name} is not known of {', '.join(q.on)}", place="objective", hint=fix.get(name, "")
        )
    suggestions = tuple(_suggested(catalog, search, kept))
    near = _nearest(search, kept)
    hint = "; ".join(filter(None, (near, *(s.note for s in suggestions)))) or _NOTHING
    if kept.counts["unknown-figure"]:
        links = (lower(catalog.graph, on).unknown_link() for on in q.on)
        hint = "; ".join([*dict.fromkeys(f"{one} ({one.place})" for one in links if one.place), hint])
    return RefusalError(none, message, place="on", hint=hint, suggestions=suggestions)


def _nearest(search: Search, kept: Selected) -> str:
    """The configuration that needs the least memory, and changes with which it would fit."""
    if not len(kept.nearest):
        return ""
    number, excess = int(kept.nearest.index[0]), float(kept.nearest.columns[EXCESS][0])
    piece = search.piece(number)
    if isinstance(piece, DeploymentGrid):
        given = {name: getattr(piece.question(number), name) for name in DEPLOYMENT}
        text = ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
        return f"the nearest to fitting needs {excess:.3g} times the memory: {text}"
    layout, estimator = piece.layout(number), piece.estimator
    text = ", ".join(f"{name} {getattr(layout, name)}" for name in LAYOUT[:7] if getattr(layout, name) is not None)
    demand = Demand(mode="training", layout=layout, runtime=estimator.runtime)
    system = estimator.system
    host = max(0.0, system.host_memory) * system.servers / system.ranks
    capacity = Capacity(int(system.ranks), system.capacity, host)
    changes = nearest(estimator.dims, demand, capacity)
    fits = f"; with {', '.join(changes[0].changes)} it fits" if changes else ""
    return f"the nearest to fitting needs {excess:.3g} times the memory of a rank: {text}{fits}"


# Searches with one changed input that have an answer.


def _suggested(catalog: Catalog, search: Search, kept: Selected) -> Iterator[Suggestion]:
    """Searches with another batch, fewer chips, and more of the first system that have an answer."""
    q, given = search.question, _given(search.question)
    inputs: dict[str, Any] = {"top": 1, "where": None, "pareto": None}

    def feasible(**changed: Any) -> bool:
        try:
            other = search_of(catalog, evolve(q, **inputs | changed))
        except RefusalError:
            return False
        return len(other.kept(0, other.size).best) > 0

    if kept.counts["batch-not-divisible"]:
        assert q.global_batch is not None
        batches = _batches(q.global_batch, int(search.piece(0).estimator.system.ranks))
        if (batch := next((one for one in batches if feasible(global_batch=one)), None)) is not None:
            yield Suggestion("search", given | {"global_batch": batch}, f"a global batch of {batch:,} is feasible")
    if q.of == "training" and q.chips is None:
        every = int(search.piece(0).estimator.system.chips)
        fewer = 1 << (every.bit_length() - 1)
        if fewer < every and feasible(chips=fewer):
            yield Suggestion("search", given | {"chips": fewer}, f"{fewer:,} of {every:,} chips have a layout")
    if kept.counts[UNFIT]:
        larger = next((one for one in _multiples(q.on[0]) if feasible(on=(one,))), None)
        if larger is not None:
            yield Suggestion("search", given | {"on": larger}, f"{larger} has a {search.noun[:-1]} that fits")


def _given(q: SearchQuestion) -> dict[str, Any]:
    """The inputs that were given; one system as a text."""
    return q.given() | {"on": q.on if len(q.on) > 1 else q.on[0]}


def _multiples(on: str) -> Iterator[str]:
    name, _, count = on.partition("*")
    for power in range(1, MOST_ALTERNATIVES + 1):
        yield f"{name}*{int(count or 1) << power}"


def _batches(batch: int, ranks: int) -> list[int]:
    """The nearest batches that are multiples of a divisor of the ranks, the nearest first."""
    near = {
        multiple
        for divisor in divisors(ranks)
        for multiple in (batch // divisor * divisor, -(-batch // divisor) * divisor)
        if 0 < multiple != batch
    }
    return sorted(near, key=lambda other: (abs(other - batch), other))[:MOST_ALTERNATIVES]
