"""Plans of a training run: which system, how many, how long, at what cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import evolve, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation import questions
from trnspec.evaluation.amounts import amount, duration, exact, until
from trnspec.evaluation.measures import measure
from trnspec.evaluation.questions import axis, like
from trnspec.evaluation.result import Evaluation
from trnspec.evaluators import training
from trnspec.evaluators.layouts import LayoutChoices, fastest, reasons
from trnspec.evaluators.planning import batches
from trnspec.evaluators.planning.comparison import WIDEST, evident, is_bound
from trnspec.evaluators.planning.run import DAY, Goals, Objective, RunPlan
from trnspec.evaluators.planning.training_page import page
from trnspec.evaluators.prices import HOUR, Rent, chip_power, rent, rented
from trnspec.evaluators.searching.space import training_question
from trnspec.evaluators.software import resolve_training
from trnspec.evidence import IDEAL
from trnspec.model.transformers.counting import parameters
from trnspec.perf import goodput
from trnspec.perf.calibration.degrees import measured_degrees
from trnspec.perf.calibration.fit_range import near_ranks
from trnspec.perf.lowering.lower import lower
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.work.layout import Layout
from trnspec.quantities.units import Dimension

LONGEST_SEQUENCE = 8192
"""The sequence length where none is given, unless the model's context is shorter."""
MOST_CHIPS = 65536
"""The most chips that are evaluated where no count is given."""
LONGEST_RUN = 365.0 * DAY
"""The longest run that is listed where neither a deadline nor a count is given, if more of the system shorten it [s]."""
NOTABLE = 1.1
"""The factor from which on a layout that was not measured is stated next to the best plan."""
LEAST_PARAMETERS = 1e9
"""Parameters from which on a model has the MFU of published runs."""
LEAST_SCALING = 0.5
"""Counts grow until a chip does less than this share of what it does on another one."""
_DIVISIBLE = 4
"""Powers of two from this on have a count between them and the next smaller one: 3, 6, 12, ..."""
ALL_UP_TO = 16
"""All counts up to this are considered."""
_PER_OCTAVE = 8
"""Counts considered between a larger power of two and the next: their degrees have small factors."""


@frozen(kw_only=True, slots=False)
class PlanTrainingQuestion(
    LayoutChoices, questions.AnyPrices, questions.MeasuredEfficiency, questions.Confidence, questions.ListLength
):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    model: str = like(questions.Workload, "model")
    tokens: str = axis("Tokens of the run, such as 10T or 300B.", "TOKENS", group="Workload")
    on: tuple[str, ...] = like(questions.System, "on")
    seq: int | None = like(questions.Workload, "seq", unset=f"the model's context, at most {LONGEST_SEQUENCE:,}")
    global_batch: int | None = like(
        questions.TrainingWorkload,
        "global_batch",
        unset=f"about {batches.BATCH_FACTOR} tokens^{batches.BATCH_EXPONENT} tokens per step: 4 M for 1T, 16 M for 10T to 15T",
    )
    deadline: str | None = axis(
        "Time that the run may take, such as 60d, or its last day, such as 2027-03-31, if it begins today.",
        "TIME",
        group="Goal",
        unset="none",
    )
    budget: str | None = axis("Cost that the run may have, such as 3M.", "USD", group="Goal", unset="none")
    objective: Objective = axis("What is smallest in the best plan that meets the goals.", group="Goal", default="cost")
    count: tuple[int, ...] | None = axis(
        "How many of each system.",
        "COUNT",
        group="System",
        unset="powers of two while they pay, and counts between them",
        minimum=1,
    )
    production_factor: float | None = axis(
        "Time of a step of the run over that of a benchmark; 1 for that of a benchmark.",
        "FACTOR",
        group="Reliability",
        unset="that of published runs, with its spread",
        minimum=1,
    )
    mtbf: str | None = axis(
        "Mean time between failures of one chip, such as 50000h.",
        "TIME",
        group="Reliability",
        unset="that of Llama 3 405B on H100, 50,676 h, within 24,000 to 96,000",
    )
    checkpoint_rate: str | None = axis(
        'Rate at which all servers together write a checkpoint, such as "20 GB/s".',
        "GB/s",
        group="Reliability",
        unset="the block storage of the servers, at most 100 GB/s; a minute for each checkpoint where it is not published",
    )
    restart: str | None = axis(
        "Time from a failure to the first repeated step, such as 10min.",
        "TIME",
        group="Reliability",
        unset="10 min, within 4 to 40",
    )
    spares: float | None = axis(
        "Servers rented in addition, as a share.",
        "SHARE",
        group="Reliability",
        unset="those that repair needs, else none",
        minimum=0,
        maximum=1,
    )
    repair: str | None = axis(
        "Time for which a failed server is away: spares replace failed servers with a probability of 95 %.",
        "TIME",
        group="Reliability",
        unset="failed servers are replaced at once",
    )


def run(catalog: Catalog, question: PlanTrainingQuestion) -> Evaluation:
    """Plan a training run: systems, counts and layouts, with time, cost and energy.

    Every system is evaluated with its fastest layout, of degrees that were measured with models like this one, at several
    counts: powers of two while they pay, and three quarters of those that meet the deadline; for the fewest chips, all
    counts up to 16 and steps of 1/8 of a power of two around the fewest that meet it. Without a deadline a run takes up to a
    year. A step takes the production factor of published runs longer than that of a benchmark. Time includes checkpoints at
    the optimal interval, failures and restarts. Plans that meet the goals are first; then plans are ranked by the expected
    value of the objective, whatever their kind of evidence, and bounds are last. An interval of the time wider than a factor
    of 8 is answered with the bound.

    Raises:
        UsageError: An input is not a number, a duration or a rate.
        RefusalError: ``no-plan``: no system has a feasible layout; ``unknown-figure``: a figure is not published.

    Examples:
        Llama 3.1 8B on 1 T tokens within 60 days, on Trainium1 or Trainium2:

            trnspec plan train --model llama-3.1-8b --tokens 1T --deadline 60d
            --on trn1.32xlarge,trn2.48xlarge

        A model of the Hugging Face Hub, with a budget, as fast as possible:

            trnspec plan train --model config.json --tokens 300B --budget 500k --objective time
            --on trn1.32xlarge

        16 servers, with a price of your own:

            trnspec plan train --model llama-3.1-8b --tokens 300B --on 'trn2.48xlarge*16'
            --price '30 USD/h'
    """
    goals = goals_of(question)
    q = resolve_training(question)
    plans: list[RunPlan] = []
    refused: list[tuple[str, RefusalError]] = []
    for on in q.on:
        try:
            plans += _plans(catalog, q, on, goals)
        except RefusalError as error:
            refused.append((on, error))
    if not plans:
        reasons = "; ".join(f"{on}: {error}" for on, error in refused)
        raise RefusalError(
            "no-plan", f"no system has a plan: {reasons}", place="on", hint=refused[0][1].hint,
            suggestions=refused[0][1].suggestions,
        )  # fmt: skip
    ranked = sorted(evident(plans, question.evidence), key=lambda plan: rank(plan, question.objective, goals))
    best = ranked[0]
    return page(catalog, question, goals, ranked, refused, _unmeasured(catalog, q, goals, best))


def _unmeasured(catalog: Catalog, q: PlanTrainingQuestion, goals: Goals, best: RunPlan) -> RunPlan | None:
    """The best plan with the layout of all that is fastest by its estimate, where that differs notably."""
    if is_bound(best):
        # It is that of all layouts.
        return None
    free = _plan(catalog, evolve(q, global_batch=best.layout.global_batch), best.systems, goals, measured=False)
    return free if free.step[0] * NOTABLE < best.step[0] else None


def goals_of(q: PlanTrainingQuestion) -> Goals:
    """The goals of a question.

    Raises:
        UsageError: A text is not a number, a duration or a rate.
    """
    return Goals(
        tokens=amount(q.tokens, "tokens", "tokens"),
        deadline=None if q.deadline is None else until(q.deadline, "deadline"),
        confidence=q.confidence,
        budget=None if q.budget is None else amount(q.budget, "budget", "USD"),
        mtbf=_ends(
            q.mtbf,
            "mtbf",
            "50000h",
            tuple(h * HOUR for h in (goodput.CHIP_HOURS_PER_FAILURE, *goodput.CHIP_HOURS_PER_FAILURE_ENDS)),
        ),
        restart=_ends(q.restart, "restart", "10min", (goodput.RESTART, *goodput.RESTART_ENDS)),
        repair=None if q.repair is None else duration(q.repair, "repair", "24h"),
        checkpoint_rate=None
        if q.checkpoint_rate is None
        else exact(q.checkpoint_rate, "checkpoint_rate", Dimension.BANDWIDTH, "10 GB/s"),
    )


def _ends(text: str | None, name: str, such_as: str, default: tuple[float, ...]) -> tuple[float, float, float]:
    """A duration that is given, without an interval, else the default with its interval [s]."""
    value, low, high = default if text is None else 3 * (duration(text, name, such_as),)
    return value, low, high


# Plans of one system.


def _plans(catalog: Catalog, q: PlanTrainingQuestion, on: str, goals: Goals) -> list[RunPlan]:
    """The plans of one system, by count.

    Raises:
        RefusalError: No count has a feasible layout.
    """
    name, _, fixed = on.partition("*")
    if fixed and not fixed.isdigit():
        raise UsageError(f"on: a system and a count are expected, such as trn2.48xlarge*64, not {on!r}")
    counts = [int(fixed)] if fixed else q.count
    if not counts:
        return _counted(catalog, q, name, goals)
    return _feasible(partial(_plan, catalog, q, f"{name}*{count}", goals) for count in counts)


def _feasible(each: Iterable[Callable[[], RunPlan]]) -> list[RunPlan]:
    """The plans of those functions that find one.

    Raises:
        RefusalError: None has a plan; the last reason.
    """
    found: list[RunPlan] = []
    refused: list[RefusalError] = []
    for plan in each:
        try:
            found.append(plan())
        except RefusalError as error:
            refused.append(error)
    if not found:
        raise refused[-1]
    return found


def _counted(catalog: Catalog, q: PlanTrainingQuestion, name: str, goals: Goals) -> list[RunPlan]:
    """The plans of powers of two while they pay, and of counts between two of which the larger one meets the deadline.

    Counts that are evaluated with a deadline are also evaluated with a later one, whose best plan is therefore at least as good.

    Raises:
        RefusalError: No count has a feasible layout, or a figure is not published.
    """
    plans: dict[int, RunPlan] = {}
    refused: list[RefusalError] = []

    def evaluate(count: int) -> RunPlan | None:
        """The plan of a count; ``None`` if no layout fits."""
        try:
            plans[count] = _plan(catalog, q, f"{name}*{count}", goals)
        except RefusalError as error:
            if error.reason != "no-layout" and not plans:
                raise
            refused.append(error)
        return plans.get(count)

    most = max(1, MOST_CHIPS // int(lower(catalog.graph, name).chips))
    for octave in range(most.bit_length()):
        plan = evaluate(1 << octave)
        if plan is not None and not _pays(plan, plans):
            break
    if not plans:
        raise refused[0]
    limit = goals.deadline or LONGEST_RUN
    for power in [n for n, plan in plans.items() if n >= _DIVISIBLE and goals.in_time(plan) and plan.time[0] <= limit]:
        evaluate(power // _DIVISIBLE * 3)
    if q.objective == "chips":
        high = min((count for count, plan in plans.items() if goals.in_time(plan)), default=1)
        for count in considered(max((count for count in plans if count < high), default=0), high):
            plan = evaluate(count)
            if plan is not None and goals.in_time(plan):
                break
    found = list(plans.values())
    return found if goals.deadline is not None else [one for one in found if one.time[0] <= limit] or found


def considered(low: int, high: int) -> Iterator[int]:
    """The counts between two others, without both: all up to 16, then 18, 20, ... 32, 36, ... 64, 72, ..."""
    count = low
    while True:
        count += (1 << (count.bit_length() - 1)) // _PER_OCTAVE if count >= ALL_UP_TO else 1
        if count >= high:
            return
        yield count


def _pays(plan: RunPlan, plans: dict[int, RunPlan]) -> bool:
    """Whether a chip still does much of what it does on the best power of two; a bound after estimates does not show it."""
    if is_bound(plan) and not all(map(is_bound, plans.values())):
        return False
    work = min(one.time[0] * one.chips for one in plans.values())
    return plan.time[0] * plan.chips * LEAST_SCALING <= work


def _plan(catalog: Catalog, q: PlanTrainingQuestion, on: str, goals: Goals, *, measured: bool = True) -> RunPlan:
    """The run on one system, with the fastest of the global batches that come into question."""
    estimator = training.estimator_of(catalog, q, on=on)
    seq, ranks = q.seq or min(int(estimator.dims.context), LONGEST_SEQUENCE), int(estimator.system.ranks)
    optimal, given = batches.optimal_batch(goals.tokens, seq), q.global_batch
    if given and given > batches.MOST_BATCH * optimal:
        raise UsageError(
            f"global_batch: sequences are expected, such as {optimal:,}, not {given:,}, {given * seq:,} tokens per step"
        )
    candidates = batches.given_batches(given, ranks) if given else batches.default_batches(optimal, ranks)
    planned = partial(_planned, catalog, q, on, goals, estimator, seq=seq, measured=measured)
    return min(_feasible(partial(planned, batch=n) for n in candidates), key=lambda plan: rank(plan, "time", goals))


def _planned(  # the parts of a question
    catalog: Catalog,
    q: PlanTrainingQuestion,
    on: str,
    goals: Goals,
    estimator: Estimator,
    *,
    seq: int,
    batch: int,
    measured: bool,
) -> RunPlan:
    """The run on one system with its fastest layout; its bound if the interval of its time is wider than a factor of 8.

    The estimate of a layout is the less certain the more it differs from measured ones, and the fastest of many would be one
    whose error is favourable. So layouts have degrees that were measured with models like this one, where one of them is
    feasible and not all layouts are to be evaluated.

    Raises:
        RefusalError: ``no-layout``, or a figure is not published.
    """
    # A bound is that of all layouts.
    compared = measured and estimator.calibration.coverage > 0.0
    degrees = _degrees(catalog, estimator) if compared else {}
    layout = _layout(q, estimator, seq, batch, degrees)
    asked = training_question(q, layout, on=on)
    at, _, _, benchmark, _ = training.timed(catalog, asked, estimator, layout)
    bound = not at.calibration.coverage
    factor = _production(q, estimator, bound=bound)
    step = factor.applied(benchmark, training.utilization(estimator, layout, benchmark[0]))
    price = rent(catalog, on, type=q.price_type, region=q.region, price=q.price)
    power = chip_power(catalog, on)
    rate = goals.checkpoint_rate or _storage(catalog, on)
    # The last step is a whole one too.
    steps = math.ceil(goals.tokens / layout.tokens)
    # A checkpoint has weights and optimizer states, as the optimizer stores them.
    stored = float(layout.precision.weight_bytes + layout.precision.state_bytes)
    stall = float(parameters(estimator.dims)) * stored / rate if rate else goodput.CHECKPOINT_STALL
    chips = estimator.system.chips

    def interrupted(mtbf: float, restart: float) -> goodput.Goodput:
        return goodput.goodput(steps * step[0], mtbf=mtbf / chips, checkpoint=stall, restart=restart)

    mtbf, least_mtbf, most_mtbf = goals.mtbf
    restart, least_restart, most_restart = goals.restart
    expected = interrupted(mtbf, restart)
    failures = interrupted(most_mtbf, restart), interrupted(least_mtbf, restart)
    restarts = interrupted(mtbf, least_restart), interrupted(mtbf, most_restart)
    plan = RunPlan(
        systems=on,
        chip=estimator.system.chip,
        chips=float(estimator.system.chips),
        layout=layout,
        step=(step[0], step[1], None if bound else step[2]),
        production=evolve(factor, value=step[0] / benchmark[0]),
        run=expected,
        ends=goodput.total_interval(expected, (failures, restarts)),
        steps=steps,
        mfu=training.utilization(estimator, layout, step[0]),
        evidence=at.calibration.evidence,
        rent=price,
        power=power,
        spares=_spares(q, goals, estimator, price),
        figures_used=(
            *estimator.system.figures_with(estimator.dtype),
            *(f for known in (price, power) if known for f in known.figures_used),
        ),
        notes=tuple(training.overlap_note(at, layout)),
    )
    _, low, high = plan.time
    if high is None or high <= WIDEST * low:
        return plan
    why = f"no estimate: run time spans a factor of {measure(high / low, digits=2)}; no losses: lower bound on time"
    ideal = _plan(catalog, evolve(q, calibration="none", global_batch=batch), on, goals, measured=measured)
    return evolve(ideal, evidence=evolve(IDEAL, reason=why))


def _production(q: PlanTrainingQuestion, estimator: Estimator, *, bound: bool) -> goodput.ProductionFactor:
    """The production factor that is given, else that of published runs; 1 of a bound, which would be none with it.

    One tensor- or pipeline-parallel degree that is given makes the layout that of a run, and not the fastest by estimate.
    """
    if bound:
        return goodput.ProductionFactor(1.0)
    if q.production_factor is not None:
        return goodput.ProductionFactor(q.production_factor)
    given = [degrees for degrees in (q.tp, q.pp) if degrees is not None]
    if not given or any(len(degrees) > 1 for degrees in given):
        return goodput.PRODUCTION
    dims = estimator.dims
    like_runs = estimator.system.chip.startswith(goodput.CHIPS_OF_RUNS) and not dims.experts
    alike = like_runs and parameters(dims) >= LEAST_PARAMETERS
    return goodput.STATED if alike else goodput.ProductionFactor(goodput.STATED.value, goodput.PRODUCTION.deviation)


def _spares(q: PlanTrainingQuestion, goals: Goals, estimator: Estimator, price: Rent | None) -> float:
    """Servers rented in addition, as a share: those given, else those that replace the ones that are repaired."""
    if q.spares is not None or goals.repair is None:
        return q.spares or 0.0
    servers = estimator.system.servers if price is None else float(price.servers)
    return goodput.spare_servers(goals.repair * estimator.system.chips / goals.mtbf[0]) / max(servers, 1.0)


def _degrees(catalog: Catalog, estimator: Estimator) -> dict[str, tuple[int, ...]]:
    """The degrees that were measured with models like one; none if no tensor-parallel one fits on chips that are connected.

    In all measurements tensor parallelism is between chips that are connected without the network.
    """
    degrees, most = measured_degrees(catalog.graph, estimator.system.chip, estimator.dims), near_ranks(estimator.system)
    tp = tuple(ranks for ranks in degrees.get("tp", ()) if ranks <= most)
    return degrees | {"tp": tp} if tp else {}


def _layout(
    q: PlanTrainingQuestion,
    estimator: Estimator,
    seq: int,
    batch: int,
    degrees: Mapping[str, tuple[int, ...]],
) -> Layout:
    """The fastest feasible layout, of some degrees if one of them is feasible.

    Raises:
        RefusalError: ``no-layout``: none is feasible.
    """
    open_: dict[str, Any] = {
        n: v for n, v in degrees.items() if getattr(q, n) is None and (n != "ep" or estimator.dims.experts)
    }
    for choices in (evolve(q, **open_), q) if open_ else (q,):
        layout, counts = fastest(estimator, choices, seq=seq, global_batch=batch)
        if layout is not None:
            return layout
    name, system = estimator.name, estimator.system
    if unfit := counts["does-not-fit"]:
        message = f"none of {unfit:,} layouts of {name} fits in the memory of {system.name}"
        hint = "more chips; without a count the plan finds how many"
    else:
        link = f"; {system.unknown_link()}" if counts["unknown-figure"] else ""
        message = f"no layout of {name} on {system.name} is valid: {reasons(counts)}{link}"
        hint = "another global_batch, or fewer fixed degrees"
    raise RefusalError("no-layout", message, place="on", hint=hint)


def _storage(catalog: Catalog, on: str) -> float | None:
    """The rate at which all servers of a system write a checkpoint [B/s]; ``None`` if that of block storage is not published."""
    servers = rented(catalog, on)
    if servers is None:
        return None
    number, server = servers
    figures = catalog[server.name].figures
    stated = figures.get("network.storage_baseline") or figures.get("network.storage")
    if stated is None:
        return None
    return min(
        max(goodput.CHECKPOINT_RATE, number * goodput.CHECKPOINT_RATE_PER_SERVER), number * float(stated.value.value)
    )


def rank(plan: RunPlan, objective: Objective, goals: Goals) -> tuple[Any, ...]:
    """The order of plans: those that meet the goals, by the expected value of the objective; others by what they exceed.

    Bounds follow estimates, since they do not show that a goal is met. Where the objective is not known chip hours are compared.
    """
    value = plan.expected(objective)
    known = (value is None, plan.chip_hours[0] if value is None else value)
    met = goals.met(plan)
    return (is_bound(plan), not met, *(() if met else goals.excess(plan)), *known)
