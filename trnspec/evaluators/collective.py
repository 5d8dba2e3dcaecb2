"""The time of a collective on a system: each algorithm on the declared topology, and a lower bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.errors import QuantityError
from trnspec.evaluation.evidence import IDEAL as NO_LOSSES
from trnspec.evaluation.evidence import marked
from trnspec.evaluation.questions import System, axis
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Table, UsedFigure, Value
from trnspec.perf.collectives import closed_forms
from trnspec.perf.collectives.bounds import Bound, bound
from trnspec.perf.collectives.groups import Group
from trnspec.perf.collectives.link_rates import Rates, fabric_level
from trnspec.perf.collectives.timing import ALIASES, IDEAL, Plan, Timing, fastest, group, plans, stage_of, time_plan
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.system import System as Hardware
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
    "broadcast": "the first rank scatters the buffer over its neighbors; an all-gather completes it",
    "send": "the first rank scatters the buffer over its neighbors; the last gathers it, over all links",
}


@frozen(kw_only=True, slots=False)
class CollectiveQuestion(System):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    kind: Kind = field(
        metadata=axis(
            "Collective. A broadcast starts at the first rank; a send goes from the first to the last.",
            group="Workload",
        )
    )
    size: str = field(
        metadata=axis(
            "Buffer size, such as 64 MiB: output of an all-gather, input of a reduce-scatter, both of an all-reduce; of an "
            "all-to-all what one rank sends.",
            "SIZE",
            group="Workload",
        )
    )
    ranks: int | None = field(
        default=None,
        metadata=axis("Number of ranks in the group.", "RANKS", group="Parallelism", unset="all", minimum=1),
    )
    stride: int = field(
        default=1, metadata=axis("Distance between ranks of the group.", "RANKS", group="Parallelism", minimum=1)
    )
    algorithm: str | None = field(
        default=None,
        metadata=axis(
            "Algorithm, or one of its stages; Neuron's names mesh, rdh and kangaring are accepted.",
            "NAME", group="Schedule", unset="the fastest",
        ),
    )  # fmt: skip


@frozen
class _Case:
    """What the answers are computed from."""

    system: Hardware
    of: Group
    kind: Kind
    size: float
    plan: Plan
    timing: Timing
    fast: Timing
    bound: Bound


def run(catalog: Catalog, question: CollectiveQuestion) -> Evaluation:
    """Compute the time of a collective, uncalibrated: links at their published rate, latency where published.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        QuantityError: The size is not a size.
        RefusalError: ``rank-count``, ``unknown-figure``, ``unknown-topology``, ``unknown-algorithm`` or ``not-exact``.

    Examples:
        An all-reduce over four Trn1 servers:

            trnspec eval collective --kind all-reduce --size '64 MiB' --on 'trn1.32xlarge*4'

        Every fourth rank of an UltraServer:

            trnspec eval collective --kind all-gather --size '1 GiB' --on trn2-ultraserver
            --ranks 64 --stride 4
    """
    q = question
    kind = q.kind
    size = _size(q.size)
    system = lower(catalog.graph, q.on, lnc=q.lnc, chips=q.chips)
    of = group(system, q.ranks, q.stride)
    count = len(of.ranks)
    named = {plan.name: plan for plan in plans(system, of, kind)}
    rates = Rates(system)
    timings = [time_plan(plan, rates, size, IDEAL) for plan in named.values()]
    best = fastest(timings, q.algorithm)
    plan = named[best.algorithm]
    case = _Case(system, of, kind, size, plan, best, _fast(system, plan, size), bound(system, of, kind, size))
    return Evaluation(
        evaluator="collective",
        title=f"{kind} of {q.size} among {count} {'rank' if count == 1 else 'ranks'} of {system.name}",
        inputs={**q.values(), "ranks": count, "lnc": int(system.lnc) or None},
        answers=marked(_answers(case), "ideal"),
        evidence=NO_LOSSES,
        parts=_parts(best),
        bottleneck=_bottleneck(case),
        assumptions=_assumptions(case),
        figures_used=_figures_used(case),
        tables=(_table(case, timings, named),),
    )


def _size(text: str) -> float:
    """The buffer size in B.

    Raises:
        QuantityError: The text is not a size.
        RefusalError: ``not-exact``: it is approximate or a bound, and so would be the time.
    """
    try:
        size = quantity.parse(text, Dimension.INFORMATION)
    except QuantityError as error:
        raise QuantityError(error.reason, f"size: {error}; write it such as 64 MiB", error.hint) from error
    if size.qualifier is not quantity.Qualifier.EXACT:
        raise RefusalError(
            "not-exact",
            f"{text} is not an exact size; the time needs one",
            place="size",
            hint="one number with its unit, such as 64 MiB",
        )
    return float(size)


def _fast(system: Hardware, plan: Plan, size: float) -> Timing:
    """The same algorithm with every figure at its fast end."""
    _, fast = system.ends or (system, system)
    return time_plan(plan, Rates(fast), size, IDEAL)


def _answers(case: _Case) -> tuple[Answer, ...]:
    timing, fast = case.timing, case.fast
    factor = float(closed_forms.bus_factor(case.kind, float(len(case.of.ranks))))
    answers = [Answer("time", timing.time, "s", fast.time, note="ideal (no losses): lower bound on time")]
    # One rank, or nothing to send without latency: no time, so no bandwidth.
    if timing.time:
        rate, high = (case.size / t for t in (timing.time, fast.time))
        answers += [
            Answer("algorithm_bandwidth", rate, "B/s", None, high, "buffer size over time"),
            Answer("bus_bandwidth", rate * factor, "B/s", None, high * factor, f"algorithm bandwidth x {factor:g}"),
        ]
    answers.append(Answer("bound", case.bound.time, "s", note=f"lower bound of all algorithms: {case.bound.why}"))
    if timing.time:
        share = 100.0 * case.bound.time / timing.time
        answers.append(Answer("share_of_bound", share, "%", note="bound over time"))
    answers.append(Answer("algorithm", timing.algorithm, note="stages, innermost first, joined by +"))
    if timing.steps is not None:
        answers.append(Answer("steps", timing.steps))
    return tuple(answers)


def _parts(timing: Timing) -> tuple[Part, ...]:
    return (
        Part("time", "latency", timing.latency, "of all steps, where published"),
        *(Part("time", f"{stage}_bandwidth", seconds, _COVERS[stage]) for stage, seconds in timing.transfers),
    )


def _bottleneck(case: _Case) -> str:
    timing = case.timing
    if not timing.time:
        return ""
    stage, seconds = max(timing.transfers, key=lambda t: t[1])
    if timing.latency >= seconds:
        return f"latency-bound: {timing.steps:g} steps" if timing.steps is not None else "latency-bound"
    kind = "HBM-bound" if stage == "chip" else "network-bound"
    return f"{kind}: bandwidth {_COVERS[stage]}"


def _table(case: _Case, timings: list[Timing], named: dict[str, Plan]) -> Table:
    rows: list[tuple[Value | None, ...]] = []
    for t in sorted(timings, key=lambda t: t.time):
        transfer = sum((s for _, s in t.transfers), 0.0)
        share = 100.0 * case.bound.time / t.time if t.time else None
        rows.append((t.algorithm, t.time, t.steps, t.latency, transfer, share, _neuron_name(named[t.algorithm])))
    return Table(
        "Algorithms",
        ("algorithm", "time", "steps", "latency", "transfer", "share_of_bound", "neuron_name"),
        tuple(rows),
        ("", "s", "", "s", "s", "%", ""),
    )


def _neuron_name(plan: Plan) -> str | None:
    """The names of the algorithms between chips in the Neuron documentation; ``None`` if it has none."""
    neuron = {name: alias for alias, name in ALIASES.items()}
    staged = len({phase.stage for phase in plan.phases}) > 1 and plan.phases[0].stage == "chip"
    names = plan.name.split("+")[1 if staged else 0 :]
    return ", ".join(neuron[name] for name in names if name in neuron) or None


def _stages(plan: Plan) -> set[str]:
    """The stages whose rates the plan depends on, exposed or not."""
    return {stage_of(name) for phase in plan.phases for name, _ in phase.loads}


def _assumptions(case: _Case) -> tuple[Assumption, ...]:
    system, of = case.system, case.of
    stages = _stages(case.plan)
    assumptions = [
        Assumption("calibration", "none: full rate of links, no latency of a call", "the default"),
        Assumption(
            "groups_at_once",
            str(len(of.siblings)),
            "all groups of the same size and stride in one fabric run concurrently and share its links",
        ),
    ]
    if system.lnc:
        assumptions.append(Assumption("lnc", f"{system.lnc:g}", "physical cores per logical core, which is a rank"))
    level = fabric_level(system)
    if "fabric" in stages and level is not None:
        switched = isinstance(level.shape, Switched)
        path = (
            "non-blocking switches; limited by what a chip sends and receives, since links to each switch are not declared"
            if switched
            else "a message is spread evenly over its shortest paths; the rate of a chip is shared by its links"
        )
        assumptions.append(Assumption("routing", str(level.shape), path))
    if "chip" in stages:
        assumptions.append(
            Assumption("exchange_in_a_chip", "each byte is written to and read from device memory once", "default")
        )
    if "network" in stages:
        assumptions.append(Assumption("network", "shared equally by all ranks", "all ranks send at once"))
    if case.kind in _SPREAD and case.plan.parts > 1.0:
        assumptions.append(Assumption("spread", f"{case.plan.parts:g} parts", _SPREAD[case.kind]))
    if case.kind == "all-to-all":
        assumptions.append(Assumption("size", "what one rank sends, all blocks", "as in nccom-test"))
    return tuple(assumptions)


def _figures_used(case: _Case) -> tuple[UsedFigure, ...]:
    wanted = {at for stage in _stages(case.plan) for at in _FIGURES[stage]}
    return tuple(b for b in case.system.figures_used if b.at in wanted)
