"""The deployments of a model on one kind of system, with the times of a replica."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, field, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.measures import measure
from trnspec.evaluators.deployment import InferenceQuestion, Setup, calibration_of, max_batch, on_gpu, prepare
from trnspec.evaluators.planning.comparison import WIDEST
from trnspec.evaluators.planning.distribution import Distribution
from trnspec.evaluators.planning.requests import Lengths
from trnspec.evidence import IDEAL
from trnspec.perf.calibration.fit_range import far_inputs, has_pools, of_deployment, scale_of, serving_inputs
from trnspec.perf.frameworks import SERVING
from trnspec.perf.lowering.calibrated import Calibrated, ErrorInterval, serving_of
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.serving.decode import mean_context
from trnspec.perf.serving.in_flight import in_flight, most_running
from trnspec.perf.serving.load import Replica
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import decoded_token
from trnspec.perf.serving.static_graphs import powers_of_two
from trnspec.perf.training.step import UNUSED

if TYPE_CHECKING:  # serving imports this module
    from trnspec.evaluators.planning.serving import PlanServingQuestion

Pools = Literal["aggregated", "disaggregated"]
"""Aggregated replicas compute prompts and decode; disaggregated ones either."""
MOST_RUNNING = 256
"""The most requests that a replica of compiled graphs runs where none is given; of GPUs see :func:`most_running`."""
PASS_TOKENS = 8192
"""Prompt tokens that share a pass where no chunk is given: the default of vLLM, TensorRT-LLM and SGLang on large GPUs."""
Reason = tuple[str, str]
"""A deployment that is invalid, and why."""
UNFIT = "does not fit in memory"
"""Why a deployment is invalid that is too large."""
_FEWER = (4, 16)
"""The parts of the largest expert-parallel degree that are evaluated too."""


@frozen
class TimeErrors:
    """The errors of times: distributions of measured over computed times.

    Both errors have the same quantile: a machine that computes prompts slower than computed also decodes slower.

    Attributes:
        prompts: Of prompts.
        steps: Of decode steps.
    """

    prompts: Distribution
    steps: Distribution

    def factors(self, quantile: float) -> tuple[float, float]:
        """The factors of prompts and of steps, at a number of standard deviations above the median."""
        return self.prompts.at(quantile), self.steps.at(quantile)


@frozen(kw_only=True)
class Deployed:
    """A deployment of one replica, with its times.

    Attributes:
        setup: The deployment.
        replica: Its times.
        known: Its calibration at the inputs.
        on: The systems that hold an equal share of the replicas: ``trn2.48xlarge``, or ``trn2.48xlarge*2``.
        ranks: Ranks of one replica; of an expert-parallel group over the replicas in it.
        per_system: Replicas on ``on``.
    """

    setup: Setup = field(repr=False)
    replica: Replica = field(repr=False)
    known: Calibrated = field(repr=False)
    on: str
    ranks: float
    per_system: int

    @property
    def spread(self) -> TimeErrors | None:
        """The errors of its times; ``None`` for bounds."""
        known = self.known
        if not known.coverage:
            return None
        ends = (known.ttft_interval or (known.low, known.high), (known.low, known.high))
        each = zip(ends, (known.ttft, known.interval), strict=True)
        return TimeErrors(*(Distribution.of(low, _median(known, interval), high) for (low, high), interval in each))


def _median(known: Calibrated, interval: ErrorInterval | None) -> float:
    """The median of measured over computed times: 1 as in the fit; elsewhere the middle of the interval of such rows."""
    if interval is None or not known.evidence.is_elsewhere:
        return 1.0
    return math.sqrt(interval.transfer[0] * interval.transfer[1])


def deployed(
    catalog: Catalog,
    q: PlanServingQuestion,
    on: str,
    lengths: Lengths,
    reasons: list[Reason],
    *,
    part: Literal["all", "prefill", "decode"] = "all",
    wide: bool = False,
) -> Iterator[Deployed]:
    """The valid deployments on a system that fit in memory; of wide ones those that need more than half of its ranks."""
    graph = catalog.graph
    spec = model_named(graph, q.model).spec
    system = lower(graph, on, lnc=q.lnc)
    known = calibration_of(graph, q, system.chip)
    ranks, buckets = int(system.ranks), _buckets(q, lengths)
    tps = q.tp or [1 << i for i in range(ranks.bit_length()) if ranks % (1 << i) == 0]
    chunks = q.chunk if q.chunk and part == "all" else (None,)
    experts = int(spec.experts.count) if spec.experts is not None else 0
    combinations = itertools.product(q.dtype, q.weight_dtype or (None,), q.kv_dtype or (None,), chunks, q.pp, tps)
    for dtype, weight_dtype, kv_dtype, chunk, pp, tp, ep in (
        (*one, ep) for one in combinations for ep in q.ep or _expert_degrees(experts, ranks // (one[-1] * one[-2]))
    ):
        if wide and 2 * tp * pp * ep <= ranks:
            continue
        inputs = InferenceQuestion(
            model=q.model, on=on, lnc=q.lnc, tp=tp, pp=pp, dp=ep, ep=ep, dtype=dtype, weight_dtype=weight_dtype,
            kv_dtype=kv_dtype, prompt=lengths.isl, output=lengths.osl, calibration=q.calibration, era=q.era,
            framework=q.framework, reserve=q.reserve, prefix_hit=q.prefix_hit, chunk=chunk, context_buckets=buckets,
            draft=None if part == "prefill" else q.draft, acceptance=q.acceptance, speculate=q.speculate,
            prefill_on=(q.prefill_on or on) if part == "decode" else None,
        )  # fmt: skip
        name = " ".join(f"{n} {v}" for n, v in (("tp", tp), ("pp", pp), ("ep", ep)) if v > 1 or n == "tp")
        try:
            setup = prepare(graph, inputs, known, known)
            most = max_batch(setup, setup.pool.capacity, 1 if part == "prefill" else q.running or _most(setup))
            if not most:
                reasons.append((f"{name} {dtype}", UNFIT))
                continue
            where = setup.pool.system
            own, routed = fit_inputs(setup, most, part), setup.dims.experts > 0
            pools = part != "all" and not has_pools(graph, known.name, experts=routed)
            at = known.at(own, dtype, scale=scale_of(where, setup.pool.ranks), experts=routed, pools=pools)
            far = far_inputs(graph, known.name, of_deployment(own, setup.dims, setup.pool.plan), experts=routed)
            at = evolve(at, evidence=at.evidence.without_row(far))
            if (factor := at.high / at.low) > WIDEST:
                why = f"no estimate: TPOT spans a factor of {measure(factor, digits=2)}; no losses: lower bound on time"
                at = Calibrated(evidence=evolve(IDEAL, reason=why))
                setup = prepare(graph, evolve(inputs, calibration="none"), at, at).with_batch(
                    int(setup.pool.plan.batch)
                )
            replica = _replica(setup, at, most, lengths, part)
        except RefusalError as error:
            reasons.append((name, str(error)))
            continue
        groups = int(where.ranks // (setup.pool.ranks * ep))
        yield Deployed(
            setup=setup, replica=replica, known=at, on=on, ranks=float(setup.pool.ranks), per_system=groups * ep
        )


def _buckets(q: PlanServingQuestion, lengths: Lengths) -> tuple[int, ...] | None:
    """The lengths of compiled graphs: those given; of a file those of the framework up to the longest request, not the mean."""
    framework = None if q.framework is None else SERVING.get(q.framework)
    first = None if framework is None else framework.settings.get("context_buckets")
    if q.context_buckets or first is None or lengths.longest == lengths.isl + lengths.osl:
        return q.context_buckets
    return powers_of_two(int(first.value), lengths.longest)


def _most(setup: Setup) -> int:
    """The most requests that a replica runs where none is given."""
    served = on_gpu(setup.question)
    return int(most_running(setup.model, setup.pool.plan, setup.pool.numbers)) if served else MOST_RUNNING


def fit_inputs(setup: Setup, most: int, part: str = "all") -> dict[str, float]:
    """The inputs of a replica that runs 1 to ``most`` requests: the batch in the middle; without one if it only prefills."""
    inputs = serving_inputs(setup.dims, setup.pool.plan) | {"batch": float(round(math.sqrt(most)))}
    return {name: value for name, value in inputs.items() if name != "batch" or part != "prefill"}


def _expert_degrees(experts: int, replicas: int) -> tuple[int, ...]:
    """The expert-parallel degrees to evaluate: none, over as many replicas of a system as divide the experts, and less."""
    most = math.gcd(experts, replicas) if experts else 1
    return tuple(sorted({1, most, *(most // part for part in _FEWER if most % part == 0)}))


def _replica(setup: Setup, known: Calibrated, most: int, lengths: Lengths, part: str) -> Replica:
    """The times of one replica: of prompts by themselves, and of decode steps with 1 to ``most`` requests."""
    serving, numbers, plan = serving_of(known), setup.pool.numbers, setup.pool.plan
    sizes = sorted({*range(1, min(most, 8)), *(1 << i for i in range(most.bit_length())), most})
    steps = {n: _step(setup.with_batch(n), serving) for n in sizes} if part != "prefill" else {1: 1.0}
    if part == "decode":
        return Replica.of([0.0], steps, first=0.0, output=float(lengths.osl))
    # Chunks, and all prompts of servers on GPUs, share decode steps.
    gpu = on_gpu(setup.question)
    mixes = part == "all" and (
        (setup.in_flight and SERVING[setup.question.framework or "vllm"].mixed) or plan.passes > 1.0
    )
    packed = int(max((setup.question.chunk or PASS_TOKENS) // (plan.prompt - plan.cached), 1.0)) if gpu else 1
    times = [_prompt(setup, prompt, numbers, serving, mixes=mixes, packed=packed) for prompt in lengths.prompts]
    fixed = sum(time for time, _ in times) / len(times)
    # A prompt occupies one pipeline stage at a time; the others continue.
    stages = float(plan.pp)
    through = (fixed + sum(time for _, time in times) / len(times)) * (1.0 - 1.0 / stages)
    return Replica.of(
        [time / stages for _, time in times],
        steps,
        first=float(serving.response) + through,
        output=float(lengths.osl),
        shared=float(plan.passes) if mixes else 0.0,
        packed=packed,
        fixed=fixed / stages,
    )


def _step(setup: Setup, serving: Any) -> float:
    """The time per output token of a decode step of all running requests [s].

    Raises:
        RefusalError: ``unknown-figure``: it uses a link whose rate is not published.
    """
    model, pool = setup.model, setup.pool
    context = mean_context(model, pool.plan)
    _, token, draft, unknown = decoded_token(model, pool.plan, pool.numbers, serving, setup.speculation, context)
    if unknown > UNUSED:
        raise pool.system.unknown_link()
    return float(token.total + draft)


def _prompt(  # a prompt of a replica
    setup: Setup, prompt: int, numbers: Any, serving: Any, *, mixes: bool, packed: int
) -> tuple[float, float]:
    """The time for which a pass with prompts keeps a replica busy, or prolongs the decode step that it shares [s].

    Returns:
        The part that does not depend on how many prompts share the pass, and that of each of them.
    """
    one = evolve(setup, question=evolve(setup.question, prompt=prompt))
    cached = min(float(int(prompt * setup.question.prefix_hit)), prompt - 1.0)
    chunk = setup.question.chunk or prompt
    plan = evolve(one.pool.plan, prompt=float(prompt), cached=cached, passes=float(-(-(prompt - cached) // chunk)))
    one = evolve(one, pool=evolve(one.pool, plan=plan)).with_batch(1)
    plan = one.pool.plan
    if mixes:
        joined = float(in_flight(one.model, plan, numbers, serving, requests=2.0, most=2.0).prompt)
        fixed = float(serving.request) if packed > 1 else 0.0
        return fixed, joined - fixed
    alone = float(prefill(one.model, plan, numbers, serving).total)
    if packed == 1:
        return 0.0, alone
    full = float(prefill(one.model, evolve(plan, prompts=float(packed)), numbers, serving).total)
    each = (full - alone) / (packed - 1)
    return alone - each, each
