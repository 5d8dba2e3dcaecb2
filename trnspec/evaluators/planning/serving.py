"""Plans of a serving fleet: which system, how many, at what cost, within limits of TTFT and TPOT under load."""

from __future__ import annotations

import itertools
import math
from bisect import insort
from statistics import NormalDist
from typing import Any, Literal

from attrs import frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation import questions
from trnspec.evaluation.amounts import duration
from trnspec.evaluation.measures import measure
from trnspec.evaluation.questions import axis, like
from trnspec.evaluation.result import Evaluation, Suggestion
from trnspec.evaluators.deployment import InferenceQuestion
from trnspec.evaluators.planning.comparison import evident, is_bound
from trnspec.evaluators.planning.deployments import MOST_RUNNING, UNFIT, Pools, Reason, TimeErrors
from trnspec.evaluators.planning.fleets import NOTABLE, TOO_MANY, FleetPlan, Missed, RequestLimits, offers
from trnspec.evaluators.planning.requests import Lengths, equal_lengths, lengths_of
from trnspec.evaluators.planning.serving_page import page
from trnspec.evaluators.planning.sizes import LARGEST, sized
from trnspec.perf import frameworks
from trnspec.perf.serving.load import MOST_UTILIZED

Objective = Literal["cost", "chips", "energy"]
"""Objectives, smallest in the best plan."""


@frozen(kw_only=True, slots=False)
class PlanServingQuestion(
    questions.AnyPrices,
    questions.MeasuredEfficiency,
    questions.SpeculativeDecoding,
    questions.Confidence,
    questions.ListLength,
):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    model: str = like(questions.Workload, "model")
    rate: float | None = axis(
        "Requests per second of the fleet.",
        "REQUESTS/S",
        group="Workload",
        unset="that of the arrivals in lengths",
        minimum=0,
    )
    isl: int = axis("Mean prompt length (input sequence length).", "TOKENS", group="Workload", minimum=1, default=1024)
    osl: int = axis("Mean output length (output sequence length).", "TOKENS", group="Workload", minimum=2, default=1024)
    lengths: str | None = axis(
        "CSV file with the columns isl and osl, one request per line, instead of means; with a column arrival, in "
        "seconds, its requests are simulated.",
        "FILE",
        group="Workload",
        unset="none",
    )
    prefix_hit: float = like(InferenceQuestion, "prefix_hit")
    ttft: str = axis("Limit of the time to first token.", "TIME", group="Goal", default="1s")
    tpot: str = axis("Limit of the time per output token.", "TIME", group="Goal", default="50ms")
    percentile: float = axis(
        "Percentile of requests that both limits are for.",
        "PERCENT",
        group="Goal",
        minimum=1,
        maximum=99.9,
        default=95.0,
    )
    objective: Objective = axis(
        "What is smallest in the best plan: USD per token, chips, or energy per token.", group="Goal", default="cost"
    )
    on: tuple[str, ...] = like(questions.System, "on")
    prefill_on: str | None = like(InferenceQuestion, "prefill_on", unset="the system that decodes")
    lnc: int | None = like(questions.System, "lnc")
    framework: questions.FrameworkName | None = like(questions.ServingSchedule, "framework")
    tp: tuple[int, ...] | None = like(questions.Parallelism, "tp", unset="powers of two within a system")
    pp: tuple[int, ...] = like(questions.Degrees, "pp", default=(1,))
    ep: tuple[int, ...] | None = like(questions.Degrees, "ep", unset="1; with experts also replicas of a system")
    pools: tuple[Pools, ...] = axis(
        "Whether the same replicas compute prompts and decode, or two pools.",
        group="Parallelism",
        default=("aggregated", "disaggregated"),
    )
    running: int | None = axis(
        "Most requests that a replica runs at the same time.",
        "REQUESTS",
        group="Schedule",
        unset=f"those that fit, up to {MOST_RUNNING}",
        minimum=1,
    )
    chunk: tuple[int, ...] | None = like(questions.ServingSchedule, "chunk")
    context_buckets: tuple[int, ...] | None = like(questions.ServingSchedule, "context_buckets")
    dtype: tuple[str, ...] = like(questions.Precision, "dtype", default=("bf16",))
    weight_dtype: tuple[str, ...] | None = like(questions.ServingPrecision, "weight_dtype")
    kv_dtype: tuple[str, ...] | None = like(InferenceQuestion, "kv_dtype")
    reserve: str | None = like(InferenceQuestion, "reserve")


@frozen(eq=False)
class FleetProblem:
    """A fleet to plan.

    Attributes:
        catalog: The catalog.
        question: The inputs.
        limits: The limits.
        lengths: The requests.
        utilized: The share of saturation that each pool has at most by the queueing model.
    """

    catalog: Catalog
    question: PlanServingQuestion
    limits: RequestLimits
    lengths: Lengths
    utilized: float = MOST_UTILIZED

    def factors(self, spread: TimeErrors | None) -> tuple[float, float]:
        """Factors of the times with which limits must be met: those of the confidence, and the computed times in any case."""
        if spread is None:
            return 1.0, 1.0
        prompts, steps = spread.factors(NormalDist().inv_cdf(self.question.confidence))
        return max(1.0, prompts), max(1.0, steps)


def run(catalog: Catalog, question: PlanServingQuestion) -> Evaluation:
    """Plan a serving fleet: the systems and their number that serve a request rate within limits of TTFT and TPOT.

    For each system and deployment (degrees, dtypes, chunk) a queueing model gives the percentiles of TTFT and TPOT against
    the request rate: Poisson arrivals, continuous batching, prompts one after another. The smallest number of systems within
    the limits is a plan, for replicas that do everything and for separate pools of prefill and decoding. Its number of systems
    is then the smallest that meets the limits in a simulation; of a file of lengths with arrivals only that of the best
    plan. Plans are ranked by the objective, whatever their kind of evidence; bounds are last.

    Raises:
        UsageError: An input is not a duration, or a file has no lengths.
        RefusalError: ``no-plan``: no deployment meets the limits; the message has the nearest one.

    Examples:
        20 requests per second with TTFT below 1 s and TPOT below 40 ms:

            trnspec plan serve --model llama-3.1-8b --rate 20 --isl 4096 --osl 512 --ttft 1s
            --tpot 40ms --on trn2.48xlarge

        Two weight dtypes, chunked prefill, and a draft model:

            trnspec plan serve --model llama-3.1-70b --rate 20 --isl 4096 --osl 512 --ttft 2s
            --tpot 60ms --on trn2.48xlarge --weight-dtype bf16,fp8 --chunk 512,2048
            --draft llama-3.2-1b --acceptance 0.7

        A fleet that meets the limits with a probability of 90 %:

            trnspec plan serve --model llama-3.1-8b --rate 20 --ttft 1s --tpot 40ms
            --on trn2.48xlarge --confidence 0.9
    """
    q = question
    if q.framework is not None:
        frameworks.check_framework(q.framework, "inference")
    q.check_draft()
    limits = RequestLimits(
        ttft=duration(q.ttft, "ttft", "1s"), tpot=duration(q.tpot, "tpot", "30ms"), percentile=q.percentile
    )
    lengths = _lengths(q)
    if q.context_buckets and lengths.longest > max(q.context_buckets):
        largest = max(q.context_buckets)
        raise RefusalError(
            "no-bucket",
            f"the longest prompt + output is {lengths.longest:,}; the largest of context_buckets is {largest:,}",
            place="context_buckets",
            hint=f"a bucket of at least {lengths.longest}",
        )
    problem = FleetProblem(catalog, q, limits, lengths)
    plans: list[FleetPlan] = []
    missed: list[Missed] = []
    rejected: list[tuple[str, str]] = []
    for on in q.on:
        try:
            found = offers(problem, on)
        except RefusalError as error:
            rejected.append((on, str(error)))
            continue
        plans += found.plans
        missed += found.missed
        if not found.plans:
            rejected.append((on, _nearest(found.missed, limits) if found.missed else _why(found.reasons)))
    if not plans:
        raise _no_plan(q, limits, missed, rejected)
    ranked = sorted(evident(plans, q.evidence), key=lambda plan: rank(plan, q.objective, limits, lengths))
    return page(problem, _simulated(problem, ranked), rejected)


def _lengths(q: PlanServingQuestion) -> Lengths:
    """The lengths of requests: of the file, else those given.

    Raises:
        UsageError: The rate is missing or 0, or the file has no lengths.
    """
    if q.rate is not None and q.rate <= 0:
        raise UsageError(f"rate: more than 0 requests/s are expected, not {q.rate:g}")
    if q.lengths is not None:
        if also := [name for name in ("isl", "osl") if name in q.given()]:
            raise UsageError(f"{also[0]}: lengths has the prompt and output lengths of the requests; give one of them")
        return lengths_of(q.lengths, q.rate)
    if q.rate is None:
        raise UsageError("rate: requests per second are expected, or lengths with a column arrival")
    return equal_lengths(q.isl, q.osl, q.rate)


def rank(plan: FleetPlan, objective: Objective, limits: RequestLimits, lengths: Lengths) -> tuple[Any, ...]:
    """The order of plans: by the objective where it is known, bounds last; of equal ones the simpler and safer."""
    cost, energy = plan.million_tokens(lengths.osl), plan.million_tokens_energy(lengths.osl)
    by_cost = (cost is None, cost, plan.chips)
    orders = {"cost": by_cost, "chips": (plan.chips, *by_cost), "energy": (energy is None, energy, *by_cost)}
    first = orders[objective]
    return (is_bound(plan), *first, plan.before is not None, plan.risk(limits))


def _simulated(problem: FleetProblem, ranked: list[FleetPlan]) -> list[FleetPlan]:
    """The plans, each with the fewest systems that meet the limits in a simulation; those that never do are left out.

    Of a trace, whose simulation takes longer, only the first plan is.
    """
    q, limits, lengths = problem.question, problem.limits, problem.lengths
    numbers = itertools.count()

    def entry(plan: FleetPlan, *, is_sized: bool) -> tuple[tuple[Any, ...], int, FleetPlan, bool]:
        """A plan with its rank, and its number where ranks are equal."""
        return rank(plan, q.objective, limits, lengths), next(numbers), plan, is_sized

    waiting = [entry(plan, is_sized=False) for plan in ranked]
    first = 1 if lengths.trace is not None else None
    while (at := next((at for at, (*_, is_sized) in enumerate(waiting[:first]) if not is_sized), None)) is not None:
        larger = sized(problem, waiting.pop(at)[2])
        if larger is not None:
            insort(waiting, entry(larger, is_sized=True))
    if not waiting:
        raise RefusalError(
            "no-plan",
            f"no deployment meets the limits in a simulation, with up to {LARGEST} times the systems that the queueing "
            "model computes",
            place="on" if lengths.trace is None else "lengths",
            hint="a higher ttft or tpot, or a lower percentile",
        )
    return [plan for _, _, plan, _ in waiting]


def _why(reasons: list[Reason]) -> str:
    """Reasons for which a system has no deployment, each once; one sentence if none fits in memory."""
    different: dict[str, dict[str, None]] = {}
    for name, why in reasons:
        different.setdefault(why, {})[name] = None
    if list(different) == [UNFIT]:
        return f"none of {len(different[UNFIT])} deployments fits in memory"
    texts = []
    for why, (first, *others) in different.items():
        more = f" and {len(others)} {'other' if len(others) == 1 else 'others'}" if others else ""
        texts.append(f"{first}{more}: {why}")
    return "; ".join(texts) or "no deployment"


def _nearest(missed: list[Missed], limits: RequestLimits) -> str:
    """The deployment that exceeds the limits least, as text."""
    nearest = min(missed, key=lambda one: limits.excess(one.state))
    q, state, which = nearest.deployed.setup.question, nearest.state, limits.percentile
    times = (("TTFT", state.ttft(which), limits.ttft), ("TPOT", state.tpot(which), limits.tpot))
    texts = [
        f"{name} is {measure(value, 's')} ({'within' if value <= limit else 'above'} {measure(limit, 's')})"
        for name, value, limit in times
    ]
    computed = nearest.computed
    if computed.tpot(which) * NOTABLE <= state.tpot(which) or computed.ttft(which) * NOTABLE <= state.ttft(which):
        texts[-1] += (
            f"; as computed TTFT is {measure(computed.ttft(which), 's')} and TPOT {measure(computed.tpot(which), 's')}"
        )
    degrees = f"tp {q.tp}" + (f" pp {q.pp}" if q.pp > 1 else "") + (f" ep {q.ep}" if q.ep > 1 else "")
    return f"the nearest is {degrees} {q.dtype}: without load, {' and '.join(texts)}"


def _no_plan(
    q: PlanServingQuestion, limits: RequestLimits, missed: list[Missed], rejected: list[tuple[str, str]]
) -> RefusalError:
    """The error with the nearest deployment, and limits that it would meet under some load."""
    hint = "another system or more chips of it, other degrees, dtypes or pools, or a smaller model"
    suggestions: tuple[Suggestion, ...] = ()
    large = any(TOO_MANY in why for _, why in rejected)
    if large:
        hint = "a lower rate, or several fleets with a part of it each"
    known = [one for one in missed if one.relaxed is not None]
    if known:
        nearest = min(known, key=lambda one: limits.excess(one.relaxed or one.state))
        state = nearest.relaxed
        assert state is not None
        needed = {
            name: _time(value)
            for name, value, limit in (
                ("ttft", state.ttft(limits.percentile), limits.ttft),
                ("tpot", state.tpot(limits.percentile), limits.tpot),
            )
            if value > limit
        }
        text = " and ".join(f"{name.upper()} {measure(duration(value, name), 's')}" for name, value in needed.items())
        hint = f"{nearest.deployed.on} meets {text}"
        suggestions = (Suggestion("plan-serve", q.given() | needed, f"{text} can be met"),)
    return RefusalError(
        "no-plan",
        f"no deployment meets the limits{' at this rate' if large else ''}: "
        + "; ".join(f"{on}: {why}" for on, why in rejected),
        place="rate" if large else "on",
        hint=hint,
        suggestions=suggestions,
    )


def _time(seconds: float) -> str:
    """A duration as an input, rounded up to two digits, which needs no quotes: ``1.2s`` or ``30ms``."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    up = math.ceil(seconds / step) * step
    return f"{up:.3g}s" if up >= 1.0 else f"{1e3 * up:.3g}ms"
