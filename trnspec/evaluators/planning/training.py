"""Plans of a training run: which system, how many, how long, at what cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.evaluation.questions import (
    CalibratedSystem,
    Confidence,
    Listed,
    Prices,
    System,
    TrainingWorkload,
    Workload,
    axis,
    like,
)
from trnspec.evaluation.result import Answer, Assumption, Evaluation, RefusalError, Suggestion, Table
from trnspec.evaluators import training
from trnspec.evaluators.layouts import LayoutChoices, fastest
from trnspec.evaluators.planning.amounts import amount, duration
from trnspec.evaluators.planning.run import HOUR, Goals, Objective, Plan
from trnspec.evaluators.planning.system_cost import chip_power, rent
from trnspec.evaluators.search import LAYOUT, training_question
from trnspec.model.price import PriceType
from trnspec.model.transformers.counting import active_parameters, parameters
from trnspec.perf.goodput import CHIP_HOURS_PER_FAILURE, goodput
from trnspec.perf.work import frameworks
from trnspec.perf.work.memory import OPTIMIZERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Value
    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.work.layout import Layout

TOKENS_PER_STEP = 4 * 2**20
"""Tokens per step where no global batch is given; that of Llama 3 8B and 70B (arXiv 2407.21783, section 3.4.1)."""
LONGEST_SEQUENCE = 8192
"""The sequence length where none is given, unless the model's context is shorter."""
MOST_CHIPS = 65536
"""The most chips that are evaluated where no count is given."""
LEAST_SCALING = 0.5
"""Counts are doubled until a chip does less than this share of what it does on the smallest system."""
RESTART = "10min"
"""Time from a failure to the first repeated work, where none is given."""


COLUMNS = {
    "system": "",
    "chips": "",
    "run_time": "s",
    "in_time": "%",
    "run_cost": "USD",
    "kind": "",
    "time_low": "s",
    "time_high": "s",
    "cost_low": "USD",
    "cost_high": "USD",
    "chip_hours": "",
    "energy": "J",
    "goodput": "%",
    "step_time": "s",
    "mfu": "%",
    "global_batch": "",
    "layout": "",
    "price": "",
    "pareto": "",
}
"""The columns of the table, with their units."""


@frozen(kw_only=True, slots=False)
class PlanTrainingQuestion(LayoutChoices, Confidence, Listed):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    model: str = field(metadata=like(Workload, "model"))
    tokens: str = field(metadata=axis("Tokens of the run, such as 10T or 300B.", "TOKENS", group="Workload"))
    on: tuple[str, ...] = field(metadata=like(System, "on"))
    seq: int | None = field(
        default=None,
        metadata=like(Workload, "seq", unset=f"the model's context, at most {LONGEST_SEQUENCE:,}"),
    )
    global_batch: int | None = field(
        default=None,
        metadata=like(
            TrainingWorkload,
            "global_batch",
            unset=f"about {TOKENS_PER_STEP:,} tokens per step, a multiple that the layout needs",
        ),
    )
    deadline: str | None = field(
        default=None, metadata=axis("Time that the run may take, such as 60d.", "TIME", group="Goal", unset="none")
    )
    budget: str | None = field(
        default=None, metadata=axis("Cost that the run may have, such as 3M.", "USD", group="Goal", unset="none")
    )
    objective: Objective = field(
        default="cost", metadata=axis("What is smallest in the best plan that meets the goals.", group="Goal")
    )
    count: tuple[int, ...] | None = field(
        default=None,
        metadata=axis(
            "How many of each system.",
            "COUNT",
            group="System",
            unset="doubled while it pays and the deadline is missed",
            minimum=1,
        ),
    )
    price: str | None = field(default=None, metadata=like(Prices, "price"))
    region: str | None = field(default=None, metadata=like(Prices, "region"))
    price_type: PriceType | None = field(
        default=None, metadata=like(Prices, "price_type", unset="the first known of on-demand, capacity-block, spot")
    )
    calibration: str = field(default="auto", metadata=like(CalibratedSystem, "calibration"))
    era: str | None = field(default=None, metadata=like(CalibratedSystem, "era"))
    mtbf: str | None = field(
        default=None,
        metadata=axis(
            "Mean time between failures of one chip, such as 50000h.",
            "TIME",
            group="Reliability",
            unset="that of Llama 3 405B on H100, 50,676 h",
        ),
    )
    checkpoint_rate: str | None = field(
        default=None,
        metadata=axis(
            'Rate at which all servers together write a checkpoint, such as "20 GB/s".',
            "GB/s",
            group="Reliability",
            unset="the block storage of the servers, if published; else writing takes no time",
        ),
    )
    restart: str = field(
        default=RESTART,
        metadata=axis("Time from a failure to the first repeated step.", "TIME", group="Reliability"),
    )
    spares: float = field(
        default=0.0,
        metadata=axis("Servers rented in addition, as a share.", "SHARE", group="Reliability", minimum=0, maximum=1),
    )


def run(catalog: Catalog, question: PlanTrainingQuestion) -> Evaluation:
    """Plan a training run: systems, counts and layouts, with time, cost and energy.

    Every system is evaluated with its fastest layout at several counts, from the smallest that fits, until the deadline is
    met or more chips no longer pay. Time includes checkpoints at the optimal interval, failures and restarts. Bounds are
    listed after predictions. Estimates, extrapolated and transferred times are ranked together; each states its kind.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        UsageError: An input is not a number, a duration or a rate.
        RefusalError: ``no-plan``: no system has a feasible layout; ``unknown-figure``: a figure is not published.

    Examples:
        Llama 3.1 8B on 1 T tokens within 60 days, on Trainium1 or Trainium2:

            trnspec plan train --model llama-3.1-8b --tokens 1T --deadline 60d
            --on trn1.32xlarge,trn2.48xlarge
    """
    goals = goals_of(question)
    plans, refused = [], []
    for on in question.on:
        try:
            plans += list(_plans(catalog, question, on, goals))
        except RefusalError as error:
            refused.append((on, error))
    if not plans:
        reasons = "; ".join(f"{on}: {error}" for on, error in refused)
        raise RefusalError(
            "no-plan", f"no system has a plan: {reasons}", place="on", hint=refused[0][1].hint,
            suggestions=refused[0][1].suggestions,
        )  # fmt: skip
    ranked = sorted(plans, key=lambda plan: _rank(plan, question.objective, goals))
    best = ranked[0]
    rows = tuple(_row(plan, plans, goals) for plan in ranked[: question.top])
    return Evaluation(
        evaluator="plan-train",
        title=f"{question.tokens} tokens of {question.model} on {best.on}: the best of {len(plans)} plans",
        inputs=question.values(),
        answers=tuple(_answers(best, question, goals)),
        bottleneck="" if goals.met(best) else goals.missed(best),
        assumptions=tuple(_assumptions(best, question, refused)),
        figures_used=best.figures_used,
        tables=(Table("Plans", tuple(COLUMNS), tuple(tuple(r.values()) for r in rows), tuple(COLUMNS.values())),),
        suggestions=(_suggestion(best, question),),
        evidence=best.evidence,
        edition=catalog.edition or "",
    )


def goals_of(q: PlanTrainingQuestion) -> Goals:
    """The goals of a question.

    Raises:
        UsageError: A text is not a number, a duration or a rate.
    """
    return Goals(
        tokens=amount(q.tokens, "tokens", "tokens"),
        deadline=None if q.deadline is None else duration(q.deadline, "deadline"),
        confidence=q.confidence,
        budget=None if q.budget is None else amount(q.budget, "budget", "USD"),
        mtbf=CHIP_HOURS_PER_FAILURE * HOUR if q.mtbf is None else duration(q.mtbf, "mtbf"),
        restart=duration(q.restart, "restart"),
        checkpoint_rate=None
        if q.checkpoint_rate is None
        else training.exact_rate(q.checkpoint_rate, "checkpoint_rate"),
    )


# Plans of one system.


def _plans(catalog: Catalog, q: PlanTrainingQuestion, on: str, goals: Goals) -> Iterator[Plan]:
    """The plans of one system, by count.

    Raises:
        RefusalError: No count has a feasible layout.
    """
    name, _, fixed = on.partition("*")
    if fixed or q.count:
        counts = [int(fixed)] if fixed.isdigit() else list(q.count or ())
        if fixed and not fixed.isdigit():
            raise UsageError(f"on: a system and a count are expected, such as trn2.48xlarge*64, not {on!r}")
        refusal: RefusalError | None = None
        found = False
        for count in counts:
            try:
                yield _plan(catalog, q, f"{name}*{count}", goals)
                found = True
            except RefusalError as error:
                refusal = error
        if refusal is not None and not found:
            raise refusal
        return
    count, smallest = _least_count(catalog, q, name, goals), None
    while True:
        try:
            plan = _plan(catalog, q, f"{name}*{count}", goals)
        except RefusalError as error:
            if smallest is None and error.reason == "no-layout" and count < MOST_CHIPS:
                count *= 2
                continue
            if smallest is None:
                raise
            return
        yield plan
        smallest = smallest or plan
        work, least = plan.time[0] * plan.chips, smallest.time[0] * smallest.chips
        certain = goals.deadline is not None and (plan.time[2] or plan.time[0]) <= goals.deadline
        if certain or plan.chips * 2 > MOST_CHIPS or work * LEAST_SCALING > least:
            return
        count *= 2


def _least_count(catalog: Catalog, question: PlanTrainingQuestion, name: str, goals: Goals) -> int:
    """The power of two from which on a system may meet the deadline: fewer cannot, even at the peak rate."""
    if goals.deadline is None:
        return 1
    q = frameworks.resolved(question)
    estimator = q.estimator(catalog, q.model, name, calibration="none")
    work = 6.0 * float(active_parameters(estimator.dims)) * goals.tokens
    peak = estimator.system.ranks * estimator.system.rate(q.dtype)
    return 1 << max(0, math.floor(math.log2(work / peak / goals.deadline)))


def _plan(catalog: Catalog, question: PlanTrainingQuestion, on: str, goals: Goals) -> Plan:
    """The run on one system with its fastest layout.

    Raises:
        RefusalError: ``no-layout``, or a figure is not published.
    """
    q = frameworks.resolved(question)
    estimator = q.estimator(catalog, q.model, on, calibration=q.calibration, era=q.era)
    seq = q.seq or min(int(estimator.dims.context), LONGEST_SEQUENCE)
    layout = _layout(q, estimator, seq)
    single = training.run(catalog, _step_question(question, layout, on))
    step = single.answer("step_time")
    work = goals.tokens / layout.tokens * float(single.number("step_time"))
    price = rent(catalog, on, type=q.price_type, region=q.region, price=q.price)
    power = chip_power(catalog, on)
    rate = goals.checkpoint_rate or _storage(catalog, on)
    interrupted = goodput(
        work,
        mtbf=goals.mtbf / estimator.system.chips,
        checkpoint=checkpoint_bytes(estimator, layout) / rate if rate else 0.0,
        restart=goals.restart,
    )
    return Plan(
        on=on,
        chips=float(estimator.system.chips),
        layout=layout,
        step=(single.number("step_time"), step.low or single.number("step_time"), step.high),
        run=interrupted,
        steps=goals.tokens / layout.tokens,
        mfu=single.number("mfu"),
        evidence=single.evidence,  # type: ignore[arg-type]  # training always has evidence
        rent=price,
        power=power,
        spares=q.spares,
        figures_used=(*single.figures_used, *(f for known in (price, power) if known for f in known.figures_used)),
    )


def _step_question(question: PlanTrainingQuestion, layout: Layout, on: str) -> training.TrainingQuestion:
    """The question of the evaluator training about a step of a plan."""
    return training_question(question, layout, on=on, seq=layout.seq, global_batch=layout.global_batch)


def _layout(q: PlanTrainingQuestion, estimator: Estimator, seq: int) -> Layout:
    """The fastest feasible layout; without a global batch at the nearest one to the usual tokens per step.

    Raises:
        RefusalError: ``no-layout``: none is feasible.
    """
    batches = [q.global_batch] if q.global_batch else _batches(seq, int(estimator.system.ranks))
    rejected = ""
    for batch in batches:
        found = fastest(estimator, q, seq=seq, global_batch=batch)
        if found.layouts:
            return found.layouts[0][2]
        rejected = rejected or found.reasons()
    raise RefusalError(
        "no-layout",
        f"no layout of {estimator.name} on {estimator.system.name} is feasible: {rejected}",
        place="on",
        hint="more chips, another global_batch, or fewer fixed degrees",
    )


def _batches(seq: int, ranks: int) -> list[int]:
    """Global batches to try: the usual one, and that of one sequence per rank and fewer ranks."""
    usual = max(1, TOKENS_PER_STEP // seq)
    odd = ranks // (ranks & -ranks)
    return list(dict.fromkeys(max(1, round(usual / unit)) * unit for unit in (1, odd)))


def checkpoint_bytes(estimator: Estimator, layout: Layout) -> float:
    """Size of a checkpoint of the whole model [B]: weights and optimizer states, as the optimizer stores them."""
    sizes = OPTIMIZERS[layout.optimizer]
    return float(parameters(estimator.dims)) * float(sizes.weight_bytes + sizes.state_bytes)


def _storage(catalog: Catalog, on: str) -> float | None:
    """The rate of the block storage of all servers of a system [B/s]; ``None`` if it is not published."""
    from trnspec.evaluators.planning.system_cost import rented

    servers = rented(catalog, on)
    if servers is None:
        return None
    number, server = servers
    figures = catalog[server.name].figures
    stated = figures.get("network.storage_baseline") or figures.get("network.storage")
    return None if stated is None else number * float(stated.value.value)


# What is shown.


def _rank(plan: Plan, objective: Objective, goals: Goals) -> tuple[Any, ...]:
    """The order of plans: those that meet the goals, evidence before bounds, the objective where it is known."""
    value = plan.measure(objective)
    order = 0 if goals.met(plan) else 1
    late = max(0.0, plan.time[0] - (goals.deadline or math.inf)) if order else 0.0
    return (order, plan.evidence.kind == "ideal", value is None, late, value if value is not None else plan.chip_hours)


def pareto(plan: Plan, plans: list[Plan]) -> bool:
    """Whether no other plan of the same kind of evidence is both faster and cheaper (in USD, else in chip hours)."""

    def costs(one: Plan) -> tuple[float, float]:
        return one.time[0], one.chip_hours if plan.cost is None or one.cost is None else one.cost

    mine = costs(plan)
    others = (costs(p) for p in plans if p is not plan and p.evidence.kind == plan.evidence.kind)
    return not any(o[0] <= mine[0] and o[1] <= mine[1] and o != mine for o in others)


def _row(plan: Plan, plans: list[Plan], goals: Goals) -> dict[str, Value | None]:
    chance = None if goals.deadline is None else plan.probability(goals.deadline)
    value, low, high = plan.time
    row: dict[str, Value | None] = {
        "system": plan.on,
        "chips": int(plan.chips),
        "run_time": value,
        "time_low": low,
        "time_high": high,
        "kind": plan.evidence.kind,
        "in_time": None if chance is None else 100.0 * chance,
        "run_cost": plan.cost,
        "cost_low": plan.cost_ends[0],
        "cost_high": plan.cost_ends[1],
        "chip_hours": plan.chip_hours,
        "energy": plan.energy,
        "goodput": 100.0 * plan.run.share,
        "step_time": plan.step[0],
        "mfu": plan.mfu,
        "global_batch": plan.layout.global_batch,
        "layout": _layout_text(plan.layout),
        "price": "" if plan.rent is None else str(plan.rent),
        "pareto": pareto(plan, plans),
    }
    return {name: row[name] for name in COLUMNS}


def _layout_text(layout: Layout) -> str:
    """Such as ``tp 8 x pp 4 x dp 64, zero 1``."""
    names = ("tp", "pp", "cp", "ep", "dp")
    text = " x ".join(f"{n} {getattr(layout, n)}" for n in names if getattr(layout, n) > 1) or "1 rank"
    more = [f"zero {layout.zero}"] if layout.zero else []
    more += [f"{layout.interleave} chunks"] if layout.interleave > 1 else []
    more += [f"{layout.recompute} recompute"] if layout.recompute != "none" else []
    return ", ".join([text, f"microbatch {layout.microbatch}", *more])


def _answers(best: Plan, q: PlanTrainingQuestion, goals: Goals) -> Iterator[Answer]:
    value, low, high = best.time
    kind = best.evidence.kind
    ends = best.cost_ends
    yield Answer("run_time", value, "s", low, high, "of the run, with checkpoints, failures and restarts", kind)
    yield Answer("system", best.on, note=f"{best.chips:,.0f} chips")
    if best.cost is not None and best.rent is not None:
        yield Answer("run_cost", best.cost, "USD", ends[0], ends[1], str(best.rent), kind)
    if best.energy is not None:
        yield Answer("energy", best.energy, "J", note=str(best.power))
    hours = best.chips / HOUR
    yield Answer("chip_hours", value * hours, "", low * hours, None if high is None else high * hours, kind=kind)
    yield Answer("step_time", best.step[0], "s", best.step[1], best.step[2], kind=kind)
    yield Answer("steps", math.ceil(best.steps), note=f"of {best.layout.tokens:,} tokens")
    yield Answer("mfu", best.mfu, "%", kind=kind)
    yield Answer(
        "goodput",
        100.0 * best.run.share,
        "%",
        note="of the time is work without repeated steps, checkpoints and restarts",
    )
    yield Answer("failures", best.run.failures, note="expected number")
    if best.run.interval:
        yield Answer("checkpoint_interval", best.run.interval, "s", note="optimal, Daly 2006")
        yield Answer("checkpoint_time", best.run.checkpoint, "s", note="to write weights and optimizer states")
    yield Answer("layout", _layout_text(best.layout))
    if goals.deadline is not None:
        chance = best.probability(goals.deadline)
        yield Answer("meets_deadline", goals.in_time(best))
        if chance is not None:
            yield Answer("in_time", 100.0 * chance, "%", note=f"probability of at most {q.deadline}, from the interval")
    if goals.budget is not None:
        yield Answer("meets_budget", best.cost is not None and best.cost <= goals.budget)


def _assumptions(best: Plan, q: PlanTrainingQuestion, refused: list[tuple[str, RefusalError]]) -> Iterator[Assumption]:
    layout = best.layout
    if q.global_batch is None:
        yield Assumption("global_batch", f"{layout.global_batch:,} sequences", f"{layout.tokens:,} tokens per step")
    if q.seq is None:
        yield Assumption("seq", f"{layout.seq:,} tokens", "no input seq")
    per_chip = best.run.mtbf * best.chips / HOUR
    why = (
        "the input mtbf"
        if q.mtbf
        else "419 interruptions of 16,384 H100 in 54 days, arXiv 2407.21783; of other chips unknown"
    )
    yield Assumption("mtbf", f"{per_chip:,.0f} h per chip", why)
    yield Assumption("restart", q.restart, "from a failure to the first repeated step")
    if not best.run.checkpoint:
        yield Assumption("checkpoints", "take no time", "no rate of storage is published; give checkpoint_rate")
    elif q.checkpoint_rate is None:
        yield Assumption("checkpoint_rate", "block storage of all servers", "published; work stops meanwhile")
    yield Assumption("scaling", "a step takes the same time all along", "no stragglers, no warm-up, no evaluation")
    if best.rent is None:
        yield Assumption("cost", "unknown", "the catalog has no price of this server; give price")
    yield Assumption("excluded", "not counted", "storage, data transfer, taxes, idle and start-up time")
    for on, error in refused:
        yield Assumption("no_plan", on, str(error))


def _suggestion(best: Plan, q: PlanTrainingQuestion) -> Suggestion:
    """The training step of the best plan."""
    chosen = _step_question(q, best.layout, best.on)
    given = chosen.given(always=tuple(n for n in LAYOUT if getattr(chosen, n) is not None))
    return Suggestion("training", given, "the step of this plan")


__all__ = ["Goals", "Plan", "PlanTrainingQuestion", "checkpoint_bytes", "pareto", "run"]
