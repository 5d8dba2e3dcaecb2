"""The time of a collective on a system: each algorithm on the declared topology, and a lower bound."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.amounts import exact, spaced
from trnspec.evaluation.questions import CalibratedSystem, FrameworkName, axis
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table, Value, marked
from trnspec.evaluators.collective_model import counted
from trnspec.evidence import IDEAL as NO_LOSSES
from trnspec.perf import frameworks
from trnspec.perf.calibration.fit_range import collective_inputs, nearest_row
from trnspec.perf.collectives import library
from trnspec.perf.collectives.algorithms import CollectivePlan, plans
from trnspec.perf.collectives.bounds import Bound, bound, bus_factor
from trnspec.perf.collectives.groups import Group, LinkRates, fabric_level, group
from trnspec.perf.collectives.library import Launch, Timed
from trnspec.perf.collectives.schedules import Kind
from trnspec.perf.collectives.timing import ALIASES, NEURON_NAMES, PlanTime, fastest, stage_of, time_plan
from trnspec.perf.experts import byte_time, exchange
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL, collective_time, machine
from trnspec.perf.lowering.machine import LoweredSystem as Hardware
from trnspec.perf.lowering.machine import group as by_level
from trnspec.perf.training.step import UNUSED
from trnspec.quantities.units import Dimension
from trnspec.topology.switched import Switched

_FIGURES = {
    "chip": ("memory.bandwidth",),
    "fabric": (
        *(
            f"{group}bandwidth.{rate}"
            for group in ("fabric.", "between_servers.", "")
            for rate in ("per_direction", "both")
        ),
        "latency",
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
class CollectiveQuestion(CalibratedSystem):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    kind: Kind = axis(
        "Collective. A broadcast starts at the first rank; a send goes from the first to the last.", group="Workload"
    )
    size: str = axis(
        "Buffer size, such as 64 MiB: output of an all-gather, input of a reduce-scatter, both of an all-reduce; of an "
        "all-to-all what one rank sends.",
        "SIZE",
        group="Workload",
    )
    ranks: int | None = axis("Number of ranks in the group.", "RANKS", group="Parallelism", unset="all", minimum=1)
    stride: int = axis("Distance between ranks of the group.", "RANKS", group="Parallelism", minimum=1, default=1)
    algorithm: str | None = axis("Algorithm, or one of its stages, or a protocol of the calibration; Neuron's names mesh, rdh and kangaring, and "
            "nvls and sharp are accepted.", "NAME", group="Schedule", unset="the fastest")  # fmt: skip
    framework: FrameworkName | None = axis("Library: nccl, Neuron's nccom, or the all-reduce kernels of vllm, trtllm or sglang.", "NAME", group="System", unset="that with most measurements on the chip")  # fmt: skip
    launch: Launch = axis(
        "How calls are launched: by the device or queued (graph), one by one by the host (eager), or by a host that waits "
        "for each (synchronous).",
        group="Schedule",
        default="graph",
    )


@frozen
class _CollectiveCase:
    """Inputs of the answers.

    Attributes:
        known: The calibration; without one ``timing`` is that of ``plan``, else that of the first of ``measured``.
        measured: The protocols of the calibration that are used, fastest first.
        ends: The time with every figure at its slow end and at its fast end, including the spread of a calibration.
        least: The lower bound with every figure at its fast end [s].
    """

    system: Hardware
    of: Group
    kind: Kind
    size: float
    stride: int
    known: Calibrated
    measured: tuple[Timed, ...]
    launch: Launch
    plan: CollectivePlan
    timing: PlanTime
    ends: tuple[float, float]
    bound: Bound
    least: float

    @property
    def is_bound(self) -> bool:
        """Whether no algorithm is faster than the one that is timed."""
        return not self.known.name and self.timing.time <= self.bound.time * (1.0 + _CLOSE)

    @property
    def latency_is_missing(self) -> bool:
        """Whether the size is so small that the latencies decide, and not all of them are known."""
        return not self.known.name and self.size < SMALL and bool(_latencies(self)[1])


_CLOSE = 1e-9
"""Relative difference of a time from its bound that is due to rounding."""

SMALL = 2.0**20
"""Sizes [B] below which the time of a collective is that of its latencies, to an order of magnitude."""


def run(catalog: Catalog, question: CollectiveQuestion) -> Evaluation:
    """Compute the time of a collective as measured libraries run it, by every algorithm without losses, and a lower bound.

    A calibration has the protocols of a library, of which the fastest is used. Without one links have their published rate,
    and steps take the published latency of their links.

    Raises:
        UsageError: The size is not a size.
        RefusalError: ``rank-count``, ``unknown-figure``, ``unknown-topology``, ``unknown-algorithm`` or ``not-exact``.

    Examples:
        An all-reduce over four Trn1 servers:

            trnspec eval collective --kind all-reduce --size '64 MiB' --on 'trn1.32xlarge*4'

        Every fourth rank of an UltraServer:

            trnspec eval collective --kind all-gather --size '1 GiB' --on trn2-ultraserver
            --ranks 64 --stride 4

        Several sizes, as a table:

            trnspec eval collective --kind all-reduce --size '1 MiB,64 MiB,1 GiB' --on trn2.48xlarge
    """
    q = question
    kind = q.kind
    size = exact(q.size, "size", Dimension.INFORMATION, "64 MiB", zero=True)
    system = lower(catalog.graph, q.on, lnc=q.lnc, chips=q.chips)
    of = group(system, q.ranks, q.stride)
    count = len(of.ranks)
    named = {plan.name: plan for plan in plans(system, of, kind)}
    rates = LinkRates(system)
    timings = [time_plan(plan, rates, size) for plan in named.values()]
    known, measured = _measured(catalog, q, system, count, size)
    best = fastest(timings, None if measured else q.algorithm)
    plan = named[best.algorithm]
    slow, fast = system.ends or (system, system)
    if measured:
        timing = _launched(known, system, measured[0], q.launch, size)
        ends = tuple(
            _launched(known, at, _protocols(known, at, q, count, size)[0], q.launch, size).time * factor
            for at, factor in ((slow, known.high), (fast, known.low))
        )
    else:
        timing, ends = best, tuple(time_plan(plan, LinkRates(at), size).time for at in (slow, fast))
    case = _CollectiveCase(
        system, of, kind, size, q.stride, known, measured, q.launch, plan, timing, (ends[0], ends[1]),
        bound(system, of, kind, size), bound(fast, of, kind, size).time,
    )  # fmt: skip
    used = {at for stage in _stages(plan) for at in _FIGURES[stage]}
    return Evaluation(
        evaluator="collective",
        title=f"{kind} of {spaced(q.size)} among {count} {'rank' if count == 1 else 'ranks'} of {system.name}",
        inputs={**q.values(), "ranks": count, "lnc": int(system.lnc) or None},
        answers=_answers(case),
        evidence=known.evidence if known.name else NO_LOSSES,
        parts=_parts(timing),
        bottleneck=_bottleneck(case),
        assumptions=(*_assumptions(case), *_in_steps(catalog, case)),
        figures_used=tuple(figure for figure in system.figures_used if figure.at in used),
        tables=(*_protocol_table(case), _table(case, timings, named)),
    )


def _measured(
    catalog: Catalog, q: CollectiveQuestion, system: Hardware, count: int, size: float
) -> tuple[Calibrated, tuple[Timed, ...]]:
    """The calibration, and the time of each of its protocols; none for one rank, or where no protocol is of the algorithm."""
    if q.framework is not None:
        frameworks.check_framework(q.framework, "collectives")
    known = calibrated(catalog.graph, system.chip, "collectives", q.calibration, q.framework or "", q.era or "")
    if known.library is None or count == 1 or not system.rates or not system.bandwidth:
        return Calibrated(), ()
    measured = _protocols(known, system, q, count, size)
    if not measured:
        return Calibrated(), ()
    at = known.at(collective_inputs(system, size, float(count)), collective=q.kind)
    row = nearest_row(catalog.graph, known.name, {"size": max(size, 1.0), "ranks": float(count)}, collective=q.kind)
    return evolve(at, evidence=evolve(at.evidence, nearest=row)), measured


def _protocols(
    known: Calibrated, system: Hardware, q: CollectiveQuestion, count: int, size: float
) -> tuple[Timed, ...]:
    assert known.library is not None
    rank = machine(system, IDEAL, next(iter(system.rates)))
    every = library.timed(known.library, rank, q.kind, float(count), float(q.stride), size)
    if q.algorithm is None:
        return every
    name = q.algorithm.lower()
    return tuple(t for t in every if name == t.protocol.name.lower()) or tuple(
        t for t in every if t.protocol.algorithm in {name, ALIASES.get(name)}
    )


def _launched(known: Calibrated, system: Hardware, fast: Timed, launch: Launch, size: float) -> PlanTime:
    """A measured protocol as a timing: what the launch adds is latency."""
    assert known.library is not None
    total = float(library.launched(known.library, launch, fast.time, size, 1.0 / system.bandwidth))
    inside = "fabric" if fabric_level(system) is not None else "chip"
    links = "network" if fast.network else inside
    return PlanTime(
        fast.protocol.name, total, fast.steps, total - fast.transfer, ((links, fast.transfer),) if fast.transfer else ()
    )


def _answers(case: _CollectiveCase) -> tuple[Answer, ...]:
    timing, known = case.timing, case.known
    slow, fast = case.ends
    factor = bus_factor(case.kind, float(len(case.of.ranks)))
    # Without a calibration only the bound is one: another algorithm may be faster than the fastest that is modelled.
    low, high, note = None, None, "ideal (no losses), by this algorithm"
    if known.name:
        low, high, note = fast, slow, f"{known.coverage:.0%} of measurements"
    elif case.is_bound:
        low, note = fast, "ideal (no losses): lower bound on time"
    if case.latency_is_missing:
        note += "; a bound only: below 1 MiB latency decides, and part of it is not published"
    answers = [Answer("time", timing.time, "s", low, high, note)]
    # One rank, or nothing to send without latency: no time, so no bandwidth.
    if timing.time:
        rate = case.size / timing.time
        slowest, highest = (None if not end else case.size / end for end in (high, low))
        bus_slowest, bus_highest = (None if end is None else end * factor for end in (slowest, highest))
        note = f"algorithm bandwidth x {factor:g}"
        answers += [
            Answer("algorithm_bandwidth", rate, "B/s", slowest, highest, "buffer size over time"),
            Answer("bus_bandwidth", rate * factor, "B/s", bus_slowest, bus_highest, note),
        ]
    # The time of one algorithm is no bound where another one may be faster.
    answers = [*marked(answers, known.evidence.kind if known.name else "ideal" if case.is_bound else "")]
    why = f"no algorithm is faster: {case.bound.why}"
    answers.append(Answer("bound", case.bound.time, "s", min(case.least, case.bound.time), note=why, kind="ideal"))
    if timing.time:
        share = 100.0 * case.bound.time / timing.time
        answers.append(Answer("share_of_bound", share, "%", note="bound over time"))
    note = f"{case.measured[0].protocol.algorithm}, a protocol of {known.name}" if case.measured else _STAGES
    answers.append(Answer("algorithm", timing.algorithm, note=note))
    if timing.steps is not None:
        answers.append(Answer("steps", timing.steps))
    return tuple(answers)


_STAGES = "stages, innermost first, joined by +"


def _parts(timing: PlanTime) -> tuple[Part, ...]:
    hidden = "; ".join(f"{_COVERS[stage]}: {1e3 * seconds:.4g} ms" for stage, seconds in timing.overlapped)
    return (
        Part("time", "latency", timing.latency, "of the call and of all steps, as far as published or calibrated"),
        *(
            Part("time", f"{stage}_bandwidth", seconds, _COVERS[stage] + (f"; overlapped: {hidden}" if hidden else ""))
            for stage, seconds in timing.transfers
        ),
    )


def _bottleneck(case: _CollectiveCase) -> str:
    timing = case.timing
    if not timing.time:
        return ""
    if not timing.transfers:
        return "latency-bound"
    stage, seconds = max(timing.transfers, key=lambda t: t[1])
    if timing.latency >= seconds:
        return f"latency-bound: {timing.steps:g} steps" if timing.steps is not None else "latency-bound"
    if case.latency_is_missing:
        return "latency-bound: below 1 MiB, but the latency of some links is not published"
    kind = "HBM-bound" if stage == "chip" else "network-bound"
    return f"{kind}: bandwidth {_COVERS[stage]}"


def _protocol_table(case: _CollectiveCase) -> tuple[Table, ...]:
    if not case.measured:
        return ()
    rows = tuple((t.protocol.name, t.protocol.algorithm, t.time, t.steps, t.latency, t.transfer) for t in case.measured)
    columns = ("protocol", "algorithm", "time", "steps", "latency", "transfer")
    return (Table("Measured protocols", columns, rows, ("", "", "s", "", "s", "s")),)


def _table(case: _CollectiveCase, timings: list[PlanTime], named: dict[str, CollectivePlan]) -> Table:
    rows: list[tuple[Value | None, ...]] = []
    for t in sorted(timings, key=lambda t: t.time):
        share = 100.0 * case.bound.time / t.time if t.time else None
        rows.append((t.algorithm, t.time, t.steps, t.latency, t.transfer, share, _neuron_name(named[t.algorithm])))
    return Table(
        "Algorithms without losses" if case.measured else "Algorithms",
        ("algorithm", "time", "steps", "latency", "transfer", "share_of_bound", "neuron_name"),
        tuple(rows),
        ("", "s", "", "s", "s", "%", ""),
        kind="ideal",
    )


def _neuron_name(plan: CollectivePlan) -> str | None:
    """The names of the algorithms between chips in the Neuron documentation; ``None`` if it has none."""
    neuron = {name: alias for alias, name in NEURON_NAMES.items()}
    staged = len({phase.stage for phase in plan.phases}) > 1 and plan.phases[0].stage == "chip"
    names = plan.name.split("+")[1 if staged else 0 :]
    return ", ".join(neuron[name] for name in names if name in neuron) or None


def _stages(plan: CollectivePlan) -> set[str]:
    """The stages whose rates the plan depends on, exposed or not."""
    return {stage_of(name) for phase in plan.phases for name, _ in phase.loads}


def _assumptions(case: _CollectiveCase) -> tuple[Assumption, ...]:
    system, of = case.system, case.of
    stages = _stages(case.plan)
    assumptions = [
        Assumption("calibration", case.known.name or "none", case.known.description),
        Assumption(
            "groups_at_once",
            str(len(of.siblings)),
            "all groups of the same size and stride in one fabric run concurrently and share its links",
        ),
    ]
    if case.measured:
        names = ", ".join(t.protocol.name for t in case.measured)
        assumptions += [
            Assumption("protocol", case.timing.algorithm, f"the fastest of {names}, as the library chooses"),
            Assumption("launch", case.launch, _LAUNCHES[case.launch]),
        ]
        stages = set()
    elif len(of.ranks) > 1:
        assumptions += _of_algorithm(case)
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
    if case.kind in _SPREAD and case.plan.parts > 1.0 and not case.measured:
        assumptions.append(Assumption("spread", f"{case.plan.parts:g} parts", _SPREAD[case.kind]))
    if case.kind == "all-to-all":
        assumptions.append(Assumption("size", "what one rank sends, all blocks", "as in nccom-test"))
    return tuple(assumptions)


_LAUNCHES = {
    "graph": "by the device, or queued: no time of the host",
    "eager": "by the host, one by one; the result is copied",
    "synchronous": "by the host, which waits for each",
}


def _latencies(case: _CollectiveCase) -> tuple[dict[str, float], list[str]]:
    """The latency of the links of each stage that is used [s]; and the links whose latency is not published."""
    rates = LinkRates(case.system)
    stages: dict[str, float] = {}
    missing: set[str] = set()
    for name in sorted({name for phase in case.plan.phases for name, _ in phase.loads}):
        stage, latency = stage_of(name), rates.latency(name)
        stages[stage] = max(stages.get(stage, 0.0), latency)
        missing |= set() if latency else {stage}
    places = {level.name: level.latency_place for level in case.system.levels}
    fabric = fabric_level(case.system)
    names = {"chip": "chip", "network": "network", "fabric": "" if fabric is None else fabric.name}
    inside = f"{case.system.chip}, between its ranks"
    return stages, [places.get(names[stage]) or inside for stage in _COVERS if stage in missing]


def _of_algorithm(case: _CollectiveCase) -> Iterator[Assumption]:
    """Assumptions of an algorithm without losses."""
    stages, missing = _latencies(case)
    values = [f"{stage} {1e6 * seconds:g} us" for stage, seconds in stages.items() if seconds]
    why = "published, per step" if values else "no latency is published for these links"
    if missing:
        why += f"; taken as 0, not published: {', '.join(missing)}"
    yield Assumption("latency", ", ".join(values) or "0", why)
    if case.timing.overlapped:
        why = "pieces of the buffer pass the stages as a pipeline; the slowest counts"
        yield Assumption("stages", "overlapped", why)
    if case.kind == "all-reduce":
        reducing = ", ".join(level.link for level in case.system.levels if level.reduces)
        why = "as declared by the links; the bound holds for these switches"
        yield Assumption("in_network_reduction", reducing or "none", why)
    yield from _by_level(case)


_PASSES = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0}


def _by_level(case: _CollectiveCase) -> Iterator[Assumption]:
    """The same collective as training and inference count it."""
    passes = _PASSES.get(case.kind)
    if not case.system.rates or not case.system.bandwidth or (passes is None and case.kind != "all-to-all"):
        return
    numbers = machine(case.system, IDEAL, next(iter(case.system.rates)))
    ranks, stride = float(len(case.of.ranks)), float(case.stride)
    if passes is None:
        # As tokens are sent to experts, one copy of each.
        links = exchange(numbers, ranks, stride)
        unknown, time = links.unknown, float(links.hop + case.size * byte_time(links, 1.0, 0.0))
    else:
        cost = by_level(numbers, ranks, stride)
        unknown, time = cost.unknown, float(collective_time(numbers, cost, case.size, passes))
    if unknown <= _CLOSE:
        text = (
            "in training and inference: one message per level, and the slowest level at its rate, whatever its topology"
        )
        yield Assumption("time_by_level", f"{1e3 * time:.4g} ms", f"{text}; here {1e3 * case.timing.time:.4g} ms")


def _in_steps(catalog: Catalog, case: _CollectiveCase) -> Iterator[Assumption]:
    """A measured collective as training and inference count it, by their calibrations."""
    passes = _PASSES.get(case.kind)
    if passes is None or not case.measured:
        return
    for phase in ("training", "inference"):
        known = calibrated(catalog.graph, case.system.chip, phase)
        numbers = machine(case.system, known.efficiency, next(iter(case.system.rates)))
        of = by_level(numbers, float(len(case.of.ranks)), float(case.stride))
        if known.name and of.unknown <= UNUSED:
            time = counted(numbers, of, passes, case.size, None if phase == "training" else serving_of(known))
            here = f"here {1e6 * case.timing.time:.3g} us by {case.known.name}"
            why = f"by {known.name} ({known.evidence.kind}); {here}"
            yield Assumption(f"time_in_{phase}", f"{1e6 * time:.3g} us", why)
