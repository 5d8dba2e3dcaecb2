"""The answers about plans of a training run, the best first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.amounts import suffixed
from trnspec.evaluation.measures import measure, printed
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Suggestion
from trnspec.evaluators.planning import comparison
from trnspec.evaluators.planning.comparison import Columns
from trnspec.evaluators.planning.run import Goals, Objective, RunPlan
from trnspec.evaluators.prices import HOUR
from trnspec.evaluators.searching.space import LAYOUT, training_question
from trnspec.evaluators.training import estimator_of
from trnspec.model.transformers.counting import active_parameters
from trnspec.perf import goodput
from trnspec.perf.calibration.published_runs import nearest_run
from trnspec.perf.work.layout import Layout

if TYPE_CHECKING:  # training imports this module
    from trnspec.evaluators.planning.training import PlanTrainingQuestion

USUAL_BATCH = "by the tokens of the run, Step Law (Li et al. 2025, arXiv 2503.04715)"
"""Source of the default global batch; other counts may have slightly others."""

EXPECTED: dict[Objective, str] = {"time": "s", "cost": "USD", "energy": "J"}
"""The objectives whose expected values are columns, and their units."""

OF_KINDS = ("kind", "system", "run_time", "time_low", "time_high", "run_cost", "cost_low", "cost_high", "meets_goals")
"""The columns of the table with the best plan of each kind of evidence."""


def _published(
    catalog: Catalog, q: PlanTrainingQuestion, goals: Goals, best: RunPlan
) -> comparison.NearestPublished | None:
    """The nearest published run; ``None`` if no table has runs."""
    estimator = estimator_of(catalog, q, on=best.systems, calibration="none")
    run = nearest_run(catalog.graph, q.model, estimator.dims, best.chip)
    if run is None:
        return None
    peak = float(estimator.system.peak("bf16") / estimator.system.chips)
    hours = run.scaled(6.0 * active_parameters(estimator.dims) * goals.tokens, peak) / HOUR
    found = [] if run.is_of(q.model) else [f"{suffixed(float(f'{run.parameters:.3g}'))} parameters"]
    if run.precision and run.precision != estimator.dtype:
        found.append(f"in {run.precision}, the plan in {estimator.dtype}")
    if run.chip != best.chip:
        found.append(f"on {run.hardware}")
    if run.seq != best.layout.seq:
        found.append(f"sequences of {run.seq:,.0f} tokens, here of {best.layout.seq:,}")
    if run.chips and max(run.chips / best.chips, best.chips / run.chips) >= _OTHER_SIZE:
        found.append(f"{run.chips:,.0f} chips, here {best.chips:,.0f}")
    _, low, high = best.chip_hours
    outside = hours < low or (high is not None and hours > high)
    return comparison.NearestPublished(run, hours, (*found, *filter(None, [run.note])), outside)


_OTHER_SIZE = 2.0
"""Factor of the number of chips from which on it is stated as a difference."""


def page(
    catalog: Catalog,
    question: PlanTrainingQuestion,
    goals: Goals,
    ranked: Sequence[RunPlan],
    rejected: Sequence[tuple[str, RefusalError]],
    unmeasured: RunPlan | None,
) -> Evaluation:
    """The evaluation with some plans.

    Args:
        catalog: The catalog.
        question: The inputs.
        goals: The goals.
        ranked: All plans, the best first.
        rejected: Systems without a plan, and the reason of each.
        unmeasured: The best plan with a layout that was not measured and is faster by its estimate, if any.
    """
    published = _published(catalog, question, goals, ranked[0])
    best, kinds, columns = ranked[0], comparison.best_of_kinds(ranked), _columns(ranked, goals, question.objective)
    of_kinds = {name: columns[name] for name in OF_KINDS}
    tables = [
        comparison.table("Plans", columns, comparison.listed(ranked, question.top), first_rows=4),
        comparison.table("Best plan of each kind of evidence", of_kinds, kinds, first_rows=3)
        if len(kinds) > 1
        else None,
        comparison.by_price("Run cost by price", catalog, ranked, question.region, PURCHASES)
        if question.price is None
        else None,
    ]
    return Evaluation(
        evaluator="plan-train",
        title=f"{suffixed(goals.tokens)} tokens of {question.model} on {best.systems}: {comparison.best_of(len(ranked))}",
        inputs=question.values(),
        answers=(*_answers(best, question, goals), *_comparison(kinds, best, question, goals, unmeasured, published)),
        assumptions=tuple(_assumptions(best, question, goals, ranked, rejected, published)),
        figures_used=best.figures_used,
        tables=tuple(one for one in tables if one is not None),
        suggestions=tuple(_suggestions(best, question, goals)),
        evidence=best.evidence,
        edition=catalog.edition or "",
    )


def _columns(plans: Sequence[RunPlan], goals: Goals, objective: Objective) -> Columns[RunPlan]:
    """The columns of the table of plans; the quantity that ranks them is one of the first."""

    def at_front(plan: RunPlan) -> bool:
        compared = [one for one in plans if plan.rent is not None or one.chip == plan.chip]
        return comparison.pareto(plan, compared, lambda one: one.costs)

    expected: Columns[RunPlan] = {
        f"expected_{name}": (unit, partial(RunPlan.expected, objective=name)) for name, unit in EXPECTED.items()
    }
    return {
        "system": ("", lambda plan: plan.systems),
        "chips": ("", lambda plan: int(plan.chips)),
        "run_time": ("s", lambda plan: plan.time[0]),
        **({goals.met_as: ("%", lambda plan: comparison.percent(goals.probability(plan)))} if goals.met_as else {}),
        **{name: column for name, column in expected.items() if name == f"expected_{objective}"},
        "run_cost": ("USD", lambda plan: plan.cost[0]),
        "kind": ("", lambda plan: plan.evidence.kind),
        "time_low": ("s", lambda plan: plan.time[1]),
        "time_high": ("s", lambda plan: plan.time[2]),
        "cost_low": ("USD", lambda plan: plan.cost[1]),
        "cost_high": ("USD", lambda plan: plan.cost[2]),
        **expected,
        "pareto": ("", at_front),
        "chip_hours": ("", lambda plan: plan.chip_hours[0]),
        "energy": ("J", lambda plan: plan.energy[0]),
        "energy_low": ("J", lambda plan: plan.energy[1]),
        "energy_high": ("J", lambda plan: plan.energy[2]),
        "goodput": ("%", lambda plan: 100.0 * plan.run.share),
        "step_time": ("s", lambda plan: plan.step[0]),
        "mfu": ("%", lambda plan: plan.mfu),
        "global_batch": ("", lambda plan: plan.layout.global_batch),
        "layout": ("", lambda plan: _layout_text(plan.layout)),
        "price": ("", lambda plan: "" if plan.rent is None else str(plan.rent)),
        "meets_goals": ("", goals.met),
    }


def _cost(plan: RunPlan, hourly: float, end: int) -> float | None:
    """The cost at a price of the servers per hour, or an end of its interval [USD]."""
    time = plan.time[end]
    return None if time is None else time / HOUR * hourly * (1.0 + plan.spares)


PURCHASES = {name: partial(_cost, end=at) for at, name in enumerate(("run_cost", "cost_low", "cost_high"))}
"""The costs in the table of prices."""


def _layout_text(layout: Layout) -> str:
    """Text such as ``tp 8 x pp 4 x dp 64, zero 1``."""
    names = ("tp", "pp", "cp", "ep", "dp")
    text = " x ".join(f"{n} {getattr(layout, n)}" for n in names if getattr(layout, n) > 1) or "1 rank"
    more = [f"zero {layout.zero}"] if layout.zero else []
    more += [f"{layout.interleave} chunks"] if layout.interleave > 1 else []
    more += [f"{layout.recompute} recompute"] if layout.recompute != "none" else []
    return ", ".join([text, f"microbatch {layout.microbatch}", *more])


# Answers.


def _answers(best: RunPlan, q: PlanTrainingQuestion, goals: Goals) -> Iterator[Answer]:
    value, low, high = best.time
    kind = best.evidence.kind
    missed = goals.missed(best)
    if missed:
        yield Answer("goals", f"not met: the nearest plan {' and '.join(missed)}")
    yield Answer("run_time", value, "s", low, high, "of the run, with checkpoints, failures and restarts", kind)
    yield Answer("system", best.systems, note=f"{best.chips:,.0f} chips")
    if (cost := best.cost[0]) is not None:
        yield Answer("run_cost", cost, "USD", *best.cost[1:], str(best.rent), kind)
        note = "the mean of its distribution, which is above the median; plans are compared by it"
        if q.objective == "cost" and best.distribution is not None:
            yield Answer("expected_cost", best.expected("cost") or 0.0, "USD", note=note, kind=kind)
    if (energy := best.energy[0]) is not None:
        yield Answer("energy", energy, "J", *best.energy[1:], str(best.power), kind)
    yield Answer("chip_hours", best.chip_hours[0], "", *best.chip_hours[1:], kind=kind)
    yield Answer("step_time", best.step[0], "s", best.step[1], best.step[2], kind=kind)
    yield Answer("steps", best.steps, note=f"of {best.layout.tokens:,} tokens")
    bound = best.step[2] is None
    note = "of published runs on A100 and H100 four of five are {:g} to {:g} %".format(*goodput.PUBLISHED_MFU)
    yield Answer("mfu", best.mfu, "%", high=best.mfu if bound else None, note="" if bound else note, kind=kind)
    few, many = (100.0 * best.run.work / end for end in best.ends)
    note = "share of the time that is work; the rest is checkpoints, repeated work and restarts"
    yield Answer("goodput", 100.0 * best.run.share, "%", many, few, note)
    yield Answer("failures", best.run.failures, note="expected number")
    if best.run.interval:
        yield Answer("checkpoint_interval", best.run.interval, "s", note="optimal, Daly 2006")
        yield Answer("checkpoint_time", best.run.checkpoint, "s", note="to write weights and optimizer states")
    yield Answer("layout", _layout_text(best.layout))
    if goals.deadline is not None:
        yield Answer("meets_deadline", goals.in_time(best))
    chance = goals.probability(best)
    if chance is not None:
        goal = " and ".join(f"the {n} {v}" for n, v in (("deadline", q.deadline), ("budget", q.budget)) if v)
        yield Answer(
            goals.met_as, comparison.percent(chance) or 0, "%", note=f"probability of meeting {goal}, from the interval"
        )
    if goals.budget is not None:
        yield Answer("meets_budget", goals.in_budget(best))


def _comparison(
    kinds: Sequence[RunPlan],
    best: RunPlan,
    q: PlanTrainingQuestion,
    goals: Goals,
    unmeasured: RunPlan | None,
    published: comparison.NearestPublished | None,
) -> Iterator[Answer]:
    """The nearest published run, the best plan of stronger evidence, and the layout that is fastest by its estimate."""
    if published is not None:
        expected, low, _ = best.chip_hours
        ours = f">= {_hours_text(low)}" if comparison.is_bound(best) else _hours_text(expected)
        text = f"{_hours_text(published.amount)} chip hours, here {ours}: {published}"
        note = "at the MFU of that run by 6 FLOP per parameter and token"
        yield Answer(
            "published_run", text, note="; ".join((note, *(() if published.outside else published.differences)))
        )
    meeting = [plan for plan in kinds if goals.met(plan) or not goals.met(best)]
    yield from comparison.best_supported(meeting, best, lambda plan: _objective_text(plan, q))
    if unmeasured is not None:
        text = f"{_layout_text(unmeasured.layout)}: {_objective_text(unmeasured, q)}"
        yield Answer("unmeasured_layout", text, note="faster by its estimate; no measurement has such degrees")


def _hours_text(hours: float) -> str:
    """Text such as ``1.46 M`` or ``619,000``."""
    return f"{hours / 1e6:.3g} M" if hours >= 1e6 else f"{float(f'{hours:.3g}'):,.0f}"


def _objective_text(plan: RunPlan, q: PlanTrainingQuestion) -> str:
    """The measure that is smallest in the best plan; the time where it is not known."""
    if q.objective == "chips":
        return f"{measure(int(plan.chips))} chips"
    name = q.objective if plan.measure(q.objective) is not None else "time"
    values = {"cost": (plan.cost, "USD"), "time": (plan.time, "s"), "energy": (plan.energy, "J")}
    (value, low, high), unit = values[name]
    assert value is not None
    shown = printed(Answer(name, value, unit, low, high, kind=plan.evidence.kind))
    return f"{shown.value} {shown.interval}".rstrip()


def _assumptions(
    best: RunPlan,
    q: PlanTrainingQuestion,
    goals: Goals,
    ranked: Sequence[RunPlan],
    rejected: Sequence[tuple[str, RefusalError]],
    published: comparison.NearestPublished | None,
) -> Iterator[Assumption]:
    layout = best.layout
    if published is not None and published.outside:
        why = "; ".join(published.differences)
        yield Assumption("published_run", "outside the interval of the plan", why, first=True)
    if q.global_batch != layout.global_batch:
        why = (
            USUAL_BATCH if q.global_batch is None else f"few layouts divide the {q.global_batch:,} of the input evenly"
        )
        yield Assumption(
            "global_batch", f"{layout.global_batch:,} sequences", f"{layout.tokens:,} tokens per step; {why}"
        )
    if q.seq is None:
        yield Assumption("seq", f"{layout.seq:,} tokens", "no input seq")
    yield _production(best, q)
    yield from best.notes
    yield from _reliability(best, q)
    if goals.deadline is None and q.count is None and not all("*" in on for on in q.on):
        yield Assumption("counts", "runs of up to a year", "no input deadline or count; longer runs are not listed")
    yield Assumption("scaling", "a step takes the same time all along", "no stragglers, no warm-up, no evaluation")
    if best.rent is None:
        yield Assumption("cost", "unknown", "the catalog has no price of this server; give price", first=True)
    unpowered = dict.fromkeys(plan.chip for plan in (best, *ranked) if plan.power is None)
    if unpowered:
        yield Assumption("energy", f"unknown: {', '.join(unpowered)}", "no power of the chip is published", first=True)
    types = {plan.rent.type for plan in ranked if plan.rent is not None}
    if len(types - {""}) > 1:
        yield Assumption("prices", ", ".join(sorted(types)), "costs of different ways to buy; price_type compares one")
    yield Assumption("excluded", "not counted", "storage, data transfer, taxes, idle and start-up time")
    for on, error in rejected:
        yield Assumption("no_plan", on, str(error), first=True)


def _production(best: RunPlan, q: PlanTrainingQuestion) -> Assumption:
    """The production factor."""
    factor = best.production
    if best.step[2] is None:
        why = "none: the time is a bound"
    elif q.production_factor is not None:
        why = "the input production_factor"
    else:
        why = "published runs on A100 and H100 took as much longer than estimated benchmark steps"
        if factor.weight < 1.0:
            why += (
                f"; geometric mean with an MFU of {factor.mfu:g} %, which predicts runs with stated degrees better and has the "
                f"weight {1.0 - factor.weight:.2g}; production_factor replaces both"
            )
    benchmark = f"a benchmark step takes {best.step[0] / factor.value:.3g} s"
    return Assumption("production_factor", f"{factor.value:.3g}", f"{benchmark}; {why}")


def _reliability(best: RunPlan, q: PlanTrainingQuestion) -> Iterator[Assumption]:
    """Failures, restarts, spares and checkpoints."""
    per_chip = best.run.mtbf * best.chips / HOUR
    source = "419 interruptions of 16,384 H100 in 54 days (Llama 3, arXiv 2407.21783)"
    if q.mtbf is not None:
        why = "the input mtbf"
    elif best.chip.startswith(goodput.MEASURED_CHIP):
        why = source
    else:
        why = f"not published for {best.chip}; that of H100 is used: {source}"
    low, high = goodput.FAILURE_RATES
    within = "" if q.mtbf is not None else f" (interval: {low:g} to {high:g} failures per 1,000 days of 8 chips)"
    yield Assumption("mtbf", f"{per_chip:,.0f} h per chip{within}", why, first="not published" in why)
    yield Assumption("restart", q.restart or "10 min, within 4 to 40", "from a failure to the first repeated step")
    if q.spares is None and q.repair is None:
        yield Assumption("spares", "none rented", "a failed server is replaced at once; give repair or spares")
    elif q.spares is None:
        away = f"with 95 % no more servers are away for {q.repair} each; each failure is that of a server"
        yield Assumption("spares", f"{best.spares:.3g} of the servers", away)
    if q.checkpoint_rate is None and best.run.checkpoint == goodput.CHECKPOINT_STALL:
        why = "no rate of storage is published; give checkpoint_rate"
        yield Assumption("checkpoints", f"stop the work for {goodput.CHECKPOINT_STALL:g} s each", why, first=True)
    elif q.checkpoint_rate is None:
        most = (measure(x, "B/s") for x in (goodput.CHECKPOINT_RATE, goodput.CHECKPOINT_RATE_PER_SERVER))
        rate = "block storage of all servers, at most {}, of more than 100 servers {} each".format(*most)
        why = "published rates of checkpoints are 33 to 200 GB/s; work stops meanwhile"
        yield Assumption("checkpoint_rate", rate, why)


def _suggestions(best: RunPlan, q: PlanTrainingQuestion, goals: Goals) -> Iterator[Suggestion]:
    """The limits that the nearest plan would meet; the training step of the best plan."""
    needed = goals.needed(best)
    if needed:
        changed = " and ".join(f"{name} {value}" for name, value in needed.items())
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in q.given().items()}
        inputs: dict[str, Any] = given | needed
        yield Suggestion("plan-train", inputs, f"{changed} can be met")
    asked = evolve(q, calibration="none") if best.step[2] is None else q
    chosen = training_question(asked, best.layout, on=best.systems)
    given = chosen.given(always=tuple(n for n in LAYOUT if getattr(chosen, n) is not None))
    yield Suggestion("training", given, "the benchmark step of this plan")
