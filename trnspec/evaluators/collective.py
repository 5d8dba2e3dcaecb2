"""What a collective takes on a system: every algorithm on the declared topology, and what none can undercut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import QuantityError
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Table, UsedFigure, Value
from trnspec.perf.collectives import closed_forms
from trnspec.perf.collectives.bounds import Bound, bound
from trnspec.perf.collectives.groups import Group
from trnspec.perf.collectives.link_rates import Rates, fabric_level
from trnspec.perf.collectives.timing import ALIASES, IDEAL, Plan, Timing, fastest, group, plans, stage_of, time_plan
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.system import System
from trnspec.quantities import quantity
from trnspec.quantities.units import Dimension
from trnspec.topology.switched import Switched

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog

Kind = closed_forms.Kind

_FIGURES = {
    "chip": ("memory.bandwidth",),
    "fabric": tuple(
        f"{group}bandwidth.{rate}"
        for group in ("fabric.", "between_servers.", "")
        for rate in ("per_direction", "both")
    ),
    "network": ("network.bandwidth", "network.peak", "latency"),
}
_COVERS = {
    "chip": "between ranks of one chip, through its memory",
    "fabric": "over the links between chips",
    "network": "over the network",
}

_SPREAD = {
    "broadcast": "the first rank scatters the buffer over the ranks around it, and an all-gather joins it everywhere",
    "send": "the first rank scatters the buffer over the ranks around it, and the last gathers it, over all links",
}


@frozen
class _Found:
    """What the answers are made of."""

    system: System
    of: Group
    kind: Kind
    size: float
    plan: Plan
    timing: Timing
    fast: Timing
    bound: Bound


def run(
    catalog: Catalog,
    *,
    kind: Kind,
    size: str,
    on: str,
    ranks: int | None = None,
    stride: int = 1,
    algorithm: str | None = None,
    lnc: int | None = None,
) -> Evaluation:
    """The time of one collective, uncalibrated: links at the rate that is published, latency where one is published.

    Args:
        catalog: The catalog.
        kind: Which collective. A broadcast starts at the first rank; a send goes from the first to the last.
        size: The whole buffer, such as 64 MiB: what every rank holds after an all-gather, before a reduce-scatter, and
            before and after an all-reduce; of an all-to-all what one rank sends, all blocks together.
        on: The system, such as trn1.32xlarge*4.
        ranks: How many ranks take part; all if not given.
        stride: How far apart they are.
        algorithm: Its name, or the name of one of its stages; the fastest if not given. Neuron's mesh, rdh and kangaring
            are understood.
        lnc: Physical cores of a logical core, which is a rank.

    Raises:
        QuantityError: The size is not one.
        RefusalError: ``rank-count``, ``unknown-figure``, ``unknown-topology``, ``unknown-algorithm`` or ``not-exact``.
    """
    whole = _size(size)
    system = lower(catalog.graph, on, lnc=lnc)
    of = group(system, ranks, stride)
    count = len(of.ranks)
    named = {plan.name: plan for plan in plans(system, of, kind)}
    rates = Rates(system)
    timings = [time_plan(plan, rates, whole, IDEAL) for plan in named.values()]
    best = fastest(timings, algorithm)
    plan = named[best.algorithm]
    least = bound(system, of, kind, whole)
    found = _Found(system, of, kind, whole, plan, best, _fast(system, plan, whole), least)
    return Evaluation(
        evaluator="collective",
        title=f"{kind} of {size} among {count} {'rank' if count == 1 else 'ranks'} of {system.name}",
        inputs={
            "kind": kind,
            "size": size,
            "on": on,
            "ranks": count,
            "stride": stride,
            "algorithm": algorithm,
            "lnc": int(system.lnc) or None,
        },
        answers=_answers(found),
        parts=_parts(best),
        bottleneck=_binds(found),
        assumptions=_assumptions(found),
        figures_used=_basis(found),
        tables=(_table(found, timings, named),),
    )


def _size(text: str) -> float:
    """The buffer in B.

    Raises:
        QuantityError: The text is no size.
        RefusalError: ``not-exact``: it is an approximation or a bound, with which the time would be one too.
    """
    try:
        found = quantity.parse(text, Dimension.INFORMATION)
    except QuantityError as error:
        raise QuantityError(error.reason, f"size: {error}; write it such as 64 MiB", error.hint) from error
    if found.qualifier is not quantity.Qualifier.EXACT:
        raise RefusalError(
            "not-exact",
            f"{text} may be many sizes, and the time needs one",
            place="size",
            hint="give one number and its unit, such as 64 MiB",
        )
    return float(found)


def _fast(system: System, plan: Plan, size: float) -> Timing:
    """The same algorithm with every figure at its fast end."""
    _, fast = system.ends or (system, system)
    return time_plan(plan, Rates(fast), size, IDEAL)


def _answers(found: _Found) -> tuple[Answer, ...]:
    timing, fast = found.timing, found.fast
    factor = float(closed_forms.bus_factor(found.kind, float(len(found.of.ranks))))
    answers = [Answer("time", timing.time, "s", fast.time, note="of published rates, of which nothing is lost")]
    # One rank, or nothing to send without latency: no time, so no bandwidth.
    if timing.time:
        rate, high = (found.size / t for t in (timing.time, fast.time))
        answers += [
            Answer("algorithm_bandwidth", rate, "B/s", None, high, "the buffer over the time"),
            Answer("bus_bandwidth", rate * factor, "B/s", None, high * factor, f"times {factor:g}"),
        ]
    answers.append(Answer("bound", found.bound.time, "s", note=f"no algorithm is faster: {found.bound.why}"))
    if timing.time:
        share = 100.0 * found.bound.time / timing.time
        answers.append(Answer("share_of_bound", share, "%", note="the bound over the time"))
    answers.append(Answer("algorithm", timing.algorithm, note="stages from the inside, joined by +"))
    if timing.steps is not None:
        answers.append(Answer("steps", timing.steps))
    return tuple(answers)


def _parts(timing: Timing) -> tuple[Part, ...]:
    return (
        Part("time", "latency", timing.latency, "steps, as far as their latency is published"),
        *(Part("time", f"{stage}_bandwidth", seconds, _COVERS[stage]) for stage, seconds in timing.transfers),
    )


def _binds(found: _Found) -> str:
    timing = found.timing
    if not timing.time:
        return ""
    stage, seconds = max(timing.transfers, key=lambda t: t[1])
    if timing.latency >= seconds:
        return f"the latency of {timing.steps:g} steps" if timing.steps is not None else "the latency of the steps"
    return f"bandwidth {_COVERS[stage]}"


def _table(found: _Found, timings: list[Timing], named: dict[str, Plan]) -> Table:
    rows: list[tuple[Value | None, ...]] = []
    for t in sorted(timings, key=lambda t: t.time):
        transfer = sum((s for _, s in t.transfers), 0.0)
        share = 100.0 * found.bound.time / t.time if t.time else None
        rows.append((t.algorithm, t.time, t.steps, t.latency, transfer, share, _neuron_name(named[t.algorithm])))
    return Table(
        "algorithms",
        ("algorithm", "time", "steps", "latency", "transfer", "share_of_bound", "neuron_name"),
        tuple(rows),
        ("", "s", "", "s", "s", "%", ""),
    )


def _neuron_name(plan: Plan) -> str | None:
    """What Neuron's documents call the algorithms between chips; ``None`` where they have no name for them."""
    neuron = {name: alias for alias, name in ALIASES.items()}
    staged = len({phase.stage for phase in plan.phases}) > 1 and plan.phases[0].stage == "chip"
    names = plan.name.split("+")[1 if staged else 0 :]
    return ", ".join(neuron[name] for name in names if name in neuron) or None


def _stages(plan: Plan) -> set[str]:
    """The stages whose rates the plan depends on, whether it waits for them or not."""
    return {stage_of(name) for phase in plan.phases for name, _ in phase.loads}


def _assumptions(found: _Found) -> tuple[Assumption, ...]:
    system, of = found.system, found.of
    stages = _stages(found.plan)
    made = [
        Assumption("calibration", "none: full rate of links, no latency of a call", "the default"),
        Assumption(
            "groups_at_once",
            str(len(of.siblings)),
            "all groups of the same size and stride that fit one fabric work at the same time and share its links",
        ),
    ]
    if system.lnc:
        made.append(Assumption("lnc", f"{system.lnc:g}", "a rank is a logical core of so many physical cores"))
    level = fabric_level(system)
    if "fabric" in stages and level is not None:
        switched = isinstance(level.shape, Switched)
        way = (
            "switches never block; only what a chip sends and receives limits, since its links to each are not declared"
            if switched
            else "a message spreads evenly over its shortest ways; a link's rate is its share of what a chip sends"
        )
        made.append(Assumption("routing", str(level.shape), way))
    if "chip" in stages:
        made.append(
            Assumption("exchange_in_a_chip", "one write and one read of device memory for each byte", "default")
        )
    if "network" in stages:
        made.append(Assumption("network", "every rank has an equal share, and no other", "all ranks send at once"))
    if found.kind in _SPREAD and found.plan.parts > 1.0:
        made.append(Assumption("spread", f"{found.plan.parts:g} parts", _SPREAD[found.kind]))
    if found.kind == "all-to-all":
        made.append(Assumption("size", "what one rank sends, all blocks together", "as nccom-test counts"))
    return tuple(made)


def _basis(found: _Found) -> tuple[UsedFigure, ...]:
    wanted = {at for stage in _stages(found.plan) for at in _FIGURES[stage]}
    return tuple(b for b in found.system.figures_used if b.at in wanted)
