"""Suggestions where no configuration is feasible: the nearest to fitting, and the nearest searches that have an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.errors import RefusalError
from trnspec.evaluation.measures import measure
from trnspec.evaluation.result import Suggestion
from trnspec.evaluators.fit import Capacity, Demand, nearest
from trnspec.evaluators.layouts import divisors, fastest
from trnspec.evaluators.searching.measures import unit
from trnspec.evaluators.searching.serving import DEPLOYMENT, ServingPiece
from trnspec.evaluators.searching.training import LAYOUT
from trnspec.evaluators.training import estimator_of
from trnspec.perf.lowering.lower import lower
from trnspec.perf.sweep.reductions import EXCESS, OUTSIDE, UNFIT, ConfigurationSelection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluators.searching.question import SearchQuestion
    from trnspec.evaluators.searching.space import Search
    from trnspec.perf.sweep.reductions import Selected
    from trnspec.perf.training.estimator import Estimator

MOST_ALTERNATIVES = 6
"""The most other batches, and the most multiples of the system, that are searched where no layout is feasible."""
_NOTHING = "no other batch, and no multiple of the system, has one either"


def infeasible(catalog: Catalog, search: Search, kept: Selected) -> RefusalError:
    """The error with the nearest searches that have an answer: another batch, fewer chips, more of the system."""
    q = search.question
    what = "layouts" if q.of == "training" else "deployments"
    none = "no-layout" if q.of == "training" else "no-deployment"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in kept.counts.most_common() if reason and count)
    message = f"none of {kept.evaluated:,} {what} is feasible: {reasons}"
    if kept.counts[OUTSIDE]:
        ends = "; ".join(_range(search, name, *ends) for name, ends in kept.ranges.items())
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
    suggestions = tuple(_training(catalog, search, kept) if q.of == "training" else _serving(catalog, search, kept))
    near = _nearest(search, kept)
    hint = "; ".join(filter(None, (near, *(s.note for s in suggestions)))) or _NOTHING
    if kept.counts["unknown-figure"]:
        links = (lower(catalog.graph, on).unknown_link() for on in q.on)
        hint = "; ".join([*dict.fromkeys(f"{one} ({one.place})" for one in links if one.place), hint])
    return RefusalError(none, message, place="on", hint=hint, suggestions=suggestions)


def _range(search: Search, name: str, low: float, high: float) -> str:
    of = unit(name, search.question.of)
    return f"{name} {measure(low, of)} to {measure(high, of)}"


def _nearest(search: Search, kept: Selected) -> str:
    """The configuration that needs the least memory, and changes with which it would fit."""
    if not len(kept.nearest):
        return ""
    number, excess = int(kept.nearest.index[0]), float(kept.nearest.columns[EXCESS][0])
    piece = search.piece(number)
    if isinstance(piece, ServingPiece):
        inputs = piece.inputs(number)
        text = ", ".join(f"{name} {inputs[name]}" for name in DEPLOYMENT if inputs[name] is not None)
        return f"the nearest to fitting needs {excess:.3g} times the memory: {text}"
    layout, estimator = piece.layout(number), piece.estimator
    text = ", ".join(f"{name} {getattr(layout, name)}" for name in LAYOUT[:7] if getattr(layout, name) is not None)
    demand = Demand(mode="training", layout=layout, microbatches=layout.microbatches, runtime=estimator.runtime)
    system = estimator.system
    host = max(0.0, system.host_memory) * system.servers / system.ranks
    capacity = Capacity(int(system.ranks), system.capacity, host)
    changes = nearest(estimator.dims, demand, capacity)
    fits = f"; with {', '.join(changes[0].changes)} it fits" if changes else ""
    return f"the nearest to fitting needs {excess:.3g} times the memory of a rank: {text}{fits}"


# Searches with one changed input that have an answer.


def _training(catalog: Catalog, search: Search, kept: Selected) -> Iterator[Suggestion]:
    q = search.question
    given, on = _given(q), q.on[0]
    estimator = estimator_of(catalog, q, on=on, dtype=q.dtype[0])
    choices = q.choices(q.dtype[0])
    assert q.seq is not None
    assert q.global_batch is not None
    seq, batch = q.seq, q.global_batch

    def feasible(one: Estimator, sequences: int) -> bool:
        return fastest(one, choices, seq=seq, global_batch=sequences).layout is not None

    if kept.counts["batch-not-divisible"]:
        for other in _batches(batch, int(estimator.system.ranks)):
            if feasible(estimator, other):
                yield Suggestion("search", given | {"global_batch": other}, f"a global batch of {other:,} is feasible")
                break
    if q.chips is None:
        all_chips = int(estimator.system.chips)
        fewer = 1 << (all_chips.bit_length() - 1)
        if fewer < all_chips:
            part = _or_none(catalog, q, on, chips=fewer)
            if part is not None and feasible(part, batch):
                note = f"{fewer:,} of {all_chips:,} chips have a layout"
                yield Suggestion("search", given | {"chips": fewer}, note)
    if kept.counts[UNFIT]:
        for larger in _multiples(on):
            one = _or_none(catalog, q, larger)
            if one is not None and feasible(one, batch):
                yield Suggestion("search", given | {"on": larger}, f"{larger} has a layout that fits")
                break


def _serving(catalog: Catalog, search: Search, kept: Selected) -> Iterator[Suggestion]:
    from trnspec.evaluators.searching.space import search_of

    q = search.question
    if not kept.counts[UNFIT]:
        return
    for larger in _multiples(q.on[0]):
        try:
            other = search_of(catalog, evolve(q, on=(larger,)))
        except RefusalError:
            continue
        if len(other.kept(0, other.size, into=ConfigurationSelection(other.selection.goal, 1).empty()).best):
            yield Suggestion("search", _given(q) | {"on": larger}, f"{larger} has a deployment that fits")
            return


def _given(q: SearchQuestion) -> dict[str, Any]:
    """The inputs that were given; one system as a text."""
    return q.given() | {"on": q.on if len(q.on) > 1 else q.on[0]}


def _multiples(on: str) -> Iterator[str]:
    name, _, count = on.partition("*")
    for power in range(1, MOST_ALTERNATIVES + 1):
        yield f"{name}*{int(count or 1) << power}"


def _or_none(catalog: Catalog, q: SearchQuestion, on: str, **changed: Any) -> Estimator | None:
    """The estimator on another system; ``None`` where it cannot be made."""
    try:
        return estimator_of(catalog, q, **{"on": on, "dtype": q.dtype[0]} | changed)
    except RefusalError:
        return None


def _batches(batch: int, ranks: int) -> list[int]:
    """The nearest batches that are multiples of a divisor of the ranks, the nearest first."""
    near = {
        multiple
        for divisor in divisors(ranks)
        for multiple in (batch // divisor * divisor, -(-batch // divisor) * divisor)
        if 0 < multiple != batch
    }
    return sorted(near, key=lambda other: (abs(other - batch), other))[:MOST_ALTERNATIVES]
