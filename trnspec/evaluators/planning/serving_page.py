"""The answers about plans of a serving fleet, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.amounts import suffixed
from trnspec.evaluation.measures import measure
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Suggestion, Table, Value
from trnspec.evaluators.planning import comparison
from trnspec.evaluators.planning.comparison import Columns
from trnspec.evaluators.planning.deployments import Deployed
from trnspec.evaluators.planning.distribution import NORMAL_90
from trnspec.evaluators.planning.fleets import NOTABLE, FleetPlan, RequestLimits, with_nearest_row
from trnspec.evaluators.planning.launch import launch, next_replica, serving_framework, status_note
from trnspec.evaluators.planning.requests import Lengths
from trnspec.evaluators.planning.sizes import chips_interval, resized, sized
from trnspec.evaluators.prices import HOUR
from trnspec.evidence import UsedFigure
from trnspec.model.transformers.counting import active_parameters
from trnspec.perf.calibration.published_runs import nearest_fleet
from trnspec.perf.frameworks import SERVING
from trnspec.perf.serving.load import MOST_UTILIZED

if TYPE_CHECKING:  # serving imports this module
    from trnspec.evaluators.planning.serving import FleetProblem, PlanServingQuestion


def _published(problem: FleetProblem, best: FleetPlan, planned: Answer) -> comparison.NearestPublished | None:
    """The published fleet that is nearest to a plan; ``None`` if no table has fleets."""
    q, limits, lengths, setup = problem.question, problem.limits, problem.lengths, best.decode.setup
    load = (lengths.isl, lengths.osl, limits.ttft, limits.tpot)
    fleet = nearest_fleet(problem.catalog.graph, q.model, setup.dims, best.chip, load)
    if fleet is None:
        return None
    of_load = [
        (max(value / theirs, theirs / value), f"{name} {measure(theirs, unit)}, here {measure(value, unit)}")
        for name, unit, value, theirs in zip(
            ("prompts of", "outputs of", "TTFT", "TPOT"), ("", "", "s", "s"), load, fleet.load, strict=True
        )
    ]  # fmt: skip
    found = [text for by, text in sorted(of_load, reverse=True) if by >= _OTHER_LOAD]
    system, dtype = setup.pool.system, setup.question.dtype
    found += [f"in {fleet.precision}, the plan in {dtype}"] if fleet.precision != dtype else []
    found += [f"on {fleet.hardware}"] if fleet.chip != best.chip else []
    found += [] if fleet.is_of(q.model) else [f"{suffixed(float(f'{fleet.active:.3g}'))} active parameters"]
    tokens = lengths.rate * (lengths.isl * (1.0 - q.prefix_hit) + lengths.osl)
    work = 2.0 * float(active_parameters(setup.dims)) * tokens
    chips = fleet.scaled(work, float(system.peak(dtype) / system.chips))
    low, high = planned.low or best.chips, planned.high
    each = best.chips / sum(count for _, count in best.pools)
    outside = ceil(chips / each) * each < low or (high is not None and chips > high)
    return comparison.NearestPublished(fleet, chips, (*found, *filter(None, [fleet.note])), outside)


_OTHER_LOAD = 2.0
"""Factor of a length or a limit from which on it is stated as a difference."""

OF_KINDS = ("kind", "system", "tp", "ttft", "tpot", "million_tokens", "probability")
"""The columns of the table with the best plan of each kind of evidence."""


def page(problem: FleetProblem, ranked: Sequence[FleetPlan], rejected: Sequence[tuple[str, str]]) -> Evaluation:
    """The evaluation with some plans, the best first."""
    catalog, q, limits, lengths = problem.catalog, problem.question, problem.limits, problem.lengths
    best = ranked[0]
    kinds, columns = comparison.best_of_kinds(ranked), _columns(ranked, limits, lengths)
    chips = _chips(problem, ranked)
    published = _published(problem, best, chips)
    costs = {"million_tokens": lambda plan, hourly: plan.per_million_tokens(hourly / HOUR, lengths.osl)}
    tables = [
        _table("Plans", columns, comparison.listed(ranked, q.top)),
        _table("Best plan of each kind of evidence", {n: columns[n] for n in OF_KINDS}, kinds)
        if len(kinds) > 1
        else None,
        comparison.by_price("Cost by price", catalog, ranked, q.region, costs) if q.price is None else None,
        _curve(best, limits),
    ]
    return Evaluation(
        evaluator="plan-serve",
        title=f"{q.model} at {measure(lengths.rate, digits=4)} requests/s on {best.systems}: {comparison.best_of(len(ranked))}",
        inputs=q.values(),
        answers=tuple(_answers(problem, ranked, chips, published)),
        assumptions=tuple(_assumptions(best, q, lengths, rejected, published)),
        figures_used=_figures_used(best),
        tables=tuple(one for one in tables if one is not None),
        suggestions=(
            Suggestion("inference", _inference_inputs(q, best), "one replica at its mean batch, without load"),
        ),
        evidence=with_nearest_row(catalog, best),
        edition=catalog.edition or "",
    )


def _table(title: str, columns: Columns[FleetPlan], plans: Sequence[FleetPlan]) -> Table:
    """A table of plans; degrees that differ follow that of tensor parallelism, so that a narrow page shows them."""
    degrees = {name: one for name, one in _DEGREES.items() if len({one[1](plan) for plan in plans}) > 1}
    names = list(columns)
    at = names.index("tp") + 1
    ordered = {**{name: columns[name] for name in names[:at]}, **degrees, **columns}
    return comparison.table(title, ordered, plans, first_rows=4)


def _interval(
    plan: FleetPlan, which: int, percentile: float, lengths: Lengths
) -> tuple[float, float | None, float | None]:
    """A percentile of TTFT (0) or TPOT (1) in the simulation, with the ends of an 80 % interval [s].

    An end is ``None`` where the fleet is saturated; a bound is its own low end.
    """
    value, fast, slow = (plan.percentiles(percentile, lengths, z) for z in (None, -NORMAL_90, NORMAL_90))
    assert value is not None
    if plan.spread is None:
        return value[which], value[which], None
    low = None if fast is None else min(value[which], fast[which])
    return value[which], low, None if slow is None else max(value[which], slow[which])


_DEGREES: Columns[FleetPlan] = {
    "pp": ("", lambda plan: plan.inputs.pp),
    "ep": ("", lambda plan: plan.inputs.ep),
}
"""The columns of degrees that are often 1."""


def _columns(plans: Sequence[FleetPlan], limits: RequestLimits, lengths: Lengths) -> Columns[FleetPlan]:
    """The columns of the table of plans."""
    which, osl = limits.percentile, lengths.osl

    def time(which_time: int, end: int) -> Callable[[FleetPlan], float | None]:
        return lambda plan: _interval(plan, which_time, which, lengths)[end]

    def at_front(plan: FleetPlan) -> bool:
        compared = [one for one in plans if plan.rents or one.chip == plan.chip]
        return comparison.pareto(plan, compared, lambda one: one.costs(which, osl))

    return {
        "system": ("", lambda plan: plan.systems),
        "tp": ("", lambda plan: plan.inputs.tp),
        "pools": ("", _pools),
        "ttft": ("s", time(0, 0)),
        "tpot": ("s", time(1, 0)),
        "million_tokens": ("USD", lambda plan: plan.million_tokens(osl)),
        "kind": ("", lambda plan: plan.evidence.kind),
        "probability": ("%", lambda plan: comparison.percent(plan.probability(limits, lengths))),
        "dtype": ("", lambda plan: plan.inputs.dtype),
        "replicas": ("", lambda plan: plan.fleet.replicas),
        "chips": ("", lambda plan: int(plan.chips)),
        "ttft_low": ("s", time(0, 1)),
        "ttft_high": ("s", time(0, 2)),
        "tpot_low": ("s", time(1, 1)),
        "tpot_high": ("s", time(1, 2)),
        "pareto": ("", at_front),
        "million_tokens_energy": ("J", lambda plan: plan.million_tokens_energy(osl)),
        "hourly": ("USD", lambda plan: plan.hourly),
        "power": ("W", lambda plan: plan.watts),
        "weight_dtype": ("", lambda plan: plan.inputs.weight_dtype or plan.inputs.dtype),
        "kv_dtype": ("", lambda plan: plan.inputs.kv_dtype or plan.inputs.dtype),
        **_DEGREES,
        "chunk": ("", lambda plan: plan.inputs.chunk),
        "prefill_tp": ("", lambda plan: None if plan.before is None else plan.before.setup.question.tp),
        "prefill_replicas": ("", lambda plan: plan.fleet.prefills or None),
        "transfer": ("s", lambda plan: plan.fleet.transfer or None),
        "rate_per_replica": ("", lambda plan: plan.state.rate / plan.fleet.replicas),
        "saturation": ("", lambda plan: plan.fleet.saturation),
        "utilization": ("%", lambda plan: 100.0 * plan.state.utilization),
        "running": ("", lambda plan: plan.state.running),
        "price": ("", lambda plan: " + ".join(map(str, plan.rents))),
    }


def _pools(plan: FleetPlan) -> str:
    """Text such as ``6P:10D``, the replicas that prefill and that decode."""
    return f"{plan.fleet.prefills}P:{plan.fleet.replicas}D" if plan.before is not None else "aggregated"


def _answers(
    problem: FleetProblem, ranked: Sequence[FleetPlan], chips: Answer, published: comparison.NearestPublished | None
) -> Iterator[Answer]:
    catalog, q, limits, lengths = problem.catalog, problem.question, problem.limits, problem.lengths
    best = ranked[0]
    state, kind = best.state, best.evidence.kind
    of = "of the trace" if lengths.trace is not None else "of random requests"
    which = f"{limits.percentile:g}th percentile in a simulation {of}"
    for at, (name, short) in enumerate((("time_to_first_token", "TTFT"), ("time_per_output_token", "TPOT"))):
        value, low, high = _interval(best, at, limits.percentile, lengths)
        note = f"{short}, {which}"
        if best.spread is not None and high is None:
            note = f"{note}; saturated at the slow end of the interval"
        elif low is not None and high is not None and high > comparison.WIDEST * low:
            note = f"{note}; no upper end: {measure(high, 's')} at the slow end, {high / low:.2g} times the fast one"
            high = None
        yield Answer(name, value, "s", low, high, note, kind)
    cost = best.million_tokens(lengths.osl)
    if cost is not None:
        prices = " + ".join(map(str, best.rents))
        yield Answer("million_tokens", cost, "USD", note=f"per million output tokens; {prices}")
        yield Answer("hourly", best.hourly or 0.0, "USD", note="all systems, per hour")
    energy = best.million_tokens_energy(lengths.osl)
    if energy is not None:
        note = " + ".join(map(str, best.powers))
        yield Answer("million_tokens_energy", energy, "J", note=f"per million output tokens; {note}")
        yield Answer("power", best.watts or 0.0, "W", note="all chips")
    chance = best.probability(limits, lengths)
    if chance is not None:
        yield Answer(
            "probability", comparison.percent(chance) or 0, "%", note="that both limits are met, from the intervals"
        )
    yield from _errors(problem, best)
    yield Answer("system", best.systems, note=f"{best.chips:,.0f} chips")
    yield chips
    yield Answer("replicas", best.fleet.replicas, note=_deployment(best.decode))
    if best.before is not None:
        yield Answer("prefill_replicas", best.fleet.prefills, note=_deployment(best.before))
        yield Answer(
            "transfer_time", best.fleet.transfer, "s", note="KV cache of one prompt, over the network", kind=kind
        )
    yield Answer("requests_in_flight", state.running, note="running per replica, mean")
    yield Answer("utilization", 100.0 * state.utilization, "%", note="of the rate at saturation")
    yield from _limited(best, limits, lengths)
    yield Answer("saturation", best.fleet.saturation, note="requests/s of the fleet")
    median = best.percentiles(50.0, lengths)
    for name, value in zip(("median_ttft", "median_tpot"), median or (), strict=False):
        yield Answer(name, value, "s", kind=kind)
    if published is not None:
        theirs = f"{float(f'{published.amount:.2g}'):,.15g} chips at its MFU, here {best.chips:,.0f}"
        yield Answer(
            "published_fleet",
            f"{theirs}: {published}",
            note="at the MFU of that fleet by 2 FLOP per parameter and token",
        )
    yield from comparison.best_supported(ranked, best, lambda plan: _objective_text(plan, q, lengths))
    yield from _commands(catalog, q.model, best, lengths)


def _commands(catalog: Catalog, model: str, best: FleetPlan, lengths: Lengths) -> Iterator[Answer]:
    """The command that starts a replica of each pool, where the framework has one."""
    pools = [("launch_prefill", best.before, "prefill")] if best.before is not None else []
    for name, one, pool in (*pools, ("launch", best.decode, "decode" if pools else "")):
        command = launch(
            catalog, model, one, longest=lengths.longest, running=best.fleet.replica.most, pool=pool
        )  # fmt: skip
        if command is None:
            continue
        what = (
            "prefill replica" if pool == "prefill" else "replica" if one.setup.question.ep == 1 else "group of replicas"
        )
        status = status_note(catalog, serving_framework(one), one.setup.pool.system.chip)
        unnamed = "; MODEL is the name or folder of the weights" if " MODEL " in command else ""
        yield Answer(name, command, "sh", note=f"one {what}{unnamed}{next_replica(one)}{status}")


def _chips(problem: FleetProblem, ranked: Sequence[FleetPlan]) -> Answer:
    """The number of chips, with what the limits need at the ends of the interval of the times; of a wide one only the bound."""
    chips, ends = int(ranked[0].chips), chips_interval(problem, ranked)
    if ends is None:
        return Answer("chips", chips)
    low, high = ends
    note = "from the intervals of the times"
    if high is None:
        note = "at the fast end of the times; at the slow end no number meets the limits"
    elif high > comparison.WIDEST * low:
        note = f"no estimate: the slow end of the times needs {high:,.0f}, {high / low:,.0f} times as many"
        high = None
    return Answer("chips", chips, low=low, high=high, note=note)


def _limited(best: FleetPlan, limits: RequestLimits, lengths: Lengths) -> Iterator[Answer]:
    """The limit that keeps several systems far below saturation, and the time of a request without others."""
    times = best.percentiles(limits.percentile, lengths)
    if best.state.utilization >= _FAR_BELOW or all(count == 1 for _, count in best.pools) or times is None:
        return
    replica, before = best.fleet.replica, best.fleet.prefill or best.fleet.replica
    limited = (
        ("TTFT", times[0], limits.ttft, before.first + before.prompt + before.fixed),
        ("TPOT", times[1], limits.tpot, float(replica.steps[0])),
    )
    name, _, limit, alone = max(limited, key=lambda one: one[1] / one[2])
    text = f"{name} {measure(limit, 's')}: without other requests it is {measure(alone, 's')}"
    yield Answer("limited_by", text, note="it keeps the fleet far below saturation")


_FAR_BELOW = 0.25
"""The utilization below which a limit is stated."""


def _errors(problem: FleetProblem, best: FleetPlan) -> Iterator[Answer]:
    """The times at the median of their errors where that is longer, and what computed times would need."""
    if best.spread is None:
        return
    lengths, which = problem.lengths, problem.limits.percentile
    prompts, steps = best.spread.factors(0.0)
    median = best.percentiles(which, lengths, 0.0)
    if max(prompts, steps) < NOTABLE or median is None:
        return
    longer = (("ttft", median[0], "prompts", prompts), ("tpot", median[1], "decode steps", steps))
    for name, value, what, factor in longer:
        if factor >= NOTABLE:
            note = f"{which:g}th percentile; half of the measured {what} took more than {factor:.2g} times the computed time"
            yield Answer(f"likely_{name}", value, "s", note=note, kind=best.evidence.kind)
    first = resized(problem, best)
    computed = None if first is None else sized(problem, first)
    if computed is None or computed.chips >= best.chips:
        return
    cost = computed.million_tokens(lengths.osl)
    price = "" if cost is None else f", {measure(cost, 'USD')} per million tokens"
    yield Answer(
        "by_computed_times",
        f"{computed.systems}{price}",
        note="what the limits need if times are as computed; not planned",
    )


def _objective_text(plan: FleetPlan, q: PlanServingQuestion, lengths: Lengths) -> str:
    """The measure that is smallest in the best plan; the chips without a price or power."""
    cost, energy = (plan.million_tokens(lengths.osl), "USD"), (plan.million_tokens_energy(lengths.osl), "J")
    value, unit = {"cost": cost, "energy": energy}.get(q.objective, (None, ""))
    return f"{plan.chips:,.0f} chips" if value is None else f"{measure(value, unit)} per million tokens"


def _deployment(one: Deployed) -> str:
    """Text such as ``tp 8 pp 2, bf16 with fp8 weights, chunks of 512 tokens``, or ``tp 2 ep 8, attention dp 8, bf16``."""
    q = one.setup.question
    degrees = " ".join(f"{n} {getattr(q, n)}" for n in ("tp", "pp", "ep") if n == "tp" or getattr(q, n) > 1)
    degrees += f", attention dp {q.ep}" if q.ep > 1 else ""
    narrow = {"weights": q.weight_dtype, "KV cache": q.kv_dtype}
    stored = " and ".join(f"{dtype} {name}" for name, dtype in narrow.items() if dtype not in (None, q.dtype))
    weights = f" with {stored}" if stored else ""
    chunks = f", chunks of {q.chunk:,} tokens" if q.chunk else ""
    draft = f", draft {q.draft}" if q.draft else ""
    return f"{degrees}, {q.dtype}{weights}{chunks}{draft}"


def _curve(plan: FleetPlan, limits: RequestLimits) -> Table:
    """Percentiles against the request rate of the fleet, up to the highest that is used."""
    rows: list[tuple[Value | None, ...]] = []
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, MOST_UTILIZED):
        state = plan.fleet.at(share * plan.fleet.saturation)
        if state is None:
            continue
        times = [f(p) for p in (50.0, limits.percentile) for f in (state.ttft, state.tpot)]
        rows.append((state.rate, 100.0 * share, times[0], times[2], times[1], times[3], limits.met(state)))
    names = ("rate", "utilization", "median_ttft", "ttft", "median_tpot", "tpot", "within_limits")
    return Table(
        "Percentiles by request rate of the fleet", names, tuple(rows), ("", "%", "s", "s", "s", "s", ""), first_rows=3
    )


def _assumptions(
    best: FleetPlan,
    q: PlanServingQuestion,
    lengths: Lengths,
    rejected: Sequence[tuple[str, str]],
    published: comparison.NearestPublished | None,
) -> Iterator[Assumption]:
    if published is not None and published.differences:
        texts = ["outside the interval of the plan"] if published.outside else []
        yield Assumption("published_fleet", "; ".join((*texts, *published.differences)), first=True)
    if lengths.trace is None:
        yield Assumption("arrivals", "Poisson", "independent requests at a constant mean rate, spread over replicas")
    else:
        scaled = "" if q.rate is None else ", scaled to the input rate"
        yield Assumption("arrivals", f"{len(lengths.trace):,} requests of the trace", f"spread over replicas{scaled}")
    what = f"{lengths.isl:,} and {lengths.osl:,} tokens"
    yield Assumption(
        "lengths", what, "means of the file lengths" if q.lengths else "prompt and output; prompts of equal length"
    )
    context = best.decode.setup.dims.context
    if lengths.longest > context:
        why = f"requests have up to {lengths.longest:,} tokens: software may reject them, and answers may be worse"
        yield Assumption("context", f"the model has {context:,.0f} tokens", why, first=True)
    schedule = "chunks of prompts in decode steps" if best.fleet.replica.shared else "prompts first"
    if best.before is not None:
        schedule = "prompts and decoding in separate pools"
    yield Assumption("schedule", schedule, "continuous batching; prompts are computed one after another")
    yield Assumption("calibration", best.evidence.calibration or "none", best.evidence.reason)
    if q.draft is not None:
        yield Assumption("acceptance", f"{q.acceptance:g}", "probability that a draft token is accepted")
    if not best.powers:
        yield Assumption("energy", "unknown", "no power of the chip is published", first=True)
    if not best.rents:
        yield Assumption("cost", "unknown", "the catalog has no price of this server; give price", first=True)
    yield Assumption("excluded", "not counted", "load balancers, idle time, start-up, data transfer, taxes, failures")
    for on, why in rejected:
        yield Assumption("no_plan", on, why, first=True)


def _figures_used(plan: FleetPlan) -> tuple[UsedFigure, ...]:
    systems = [one.setup.pool.system for one in (plan.decode, plan.before) if one is not None]
    read = [figure for system in systems for figure in system.figures_with(plan.inputs.dtype)]
    bought = [f for rent in plan.rents for f in rent.figures_used]
    return tuple(dict.fromkeys((*read, *bought, *(f for power in plan.powers for f in power.figures_used))))


def _inference_inputs(question: PlanServingQuestion, plan: FleetPlan) -> dict[str, Any]:
    """One replica with its mean number of running requests."""
    q = plan.decode.setup.question
    framework = None if q.framework is None else SERVING[q.framework]
    batch = max(1, round(plan.state.running))
    given = evolve(q, model=question.model, batch=batch, dp=q.ep, prefill_on=None)
    names = ("model", "on", "tp", "pp", "ep", "dp", "batch", "prompt", "output", "dtype", "weight_dtype", "framework",
             "kv_dtype", "lnc", "prefix_hit", "chunk", "context_buckets", "draft", "acceptance", "speculate", "calibration")  # fmt: skip
    inputs = {name: value for name, value in given.given(always=("tp", "dp")).items() if name in names}
    if framework is not None:
        # What the framework sets is not repeated.
        inputs = {name: value for name, value in inputs.items() if name not in framework.settings}
    return inputs
