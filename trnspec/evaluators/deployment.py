"""A model deployed for serving: the ranks of each pool, the layout on them, and the memory that a rank needs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, field, frozen

from trnspec.errors import RefusalError
from trnspec.evaluation import questions
from trnspec.evaluation.questions import axis, like
from trnspec.evaluation.result import Assumption
from trnspec.evaluators.software import ServingSoftware, resolve_serving
from trnspec.graph.graph import Graph
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf import frameworks
from trnspec.perf.calibration.fit_range import near_ranks
from trnspec.perf.experts import SENT
from trnspec.perf.frameworks import SERVING
from trnspec.perf.lowering.calibrated import Calibrated, calibrated
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.lowering.machine import Level, LoweredSystem, Machine, machine
from trnspec.perf.ops import Number, ceil, floor, larger, smaller, where
from trnspec.perf.roofline import ELEMENT_BYTES, element_bytes
from trnspec.perf.serving.forward_pass import Deployment
from trnspec.perf.serving.memory import capacity, held, invalid_layouts
from trnspec.perf.serving.request import Speculation
from trnspec.perf.serving.static_graphs import all_experts_from, compiled, narrow_shards
from trnspec.perf.work.memory import RankMemory
from trnspec.perf.work.transformer import Transformer, common_heads, transformer
from trnspec.perf.work.validity import check_context


@frozen(kw_only=True, slots=False)
class InferenceQuestion(
    questions.ServingWorkload,
    questions.CalibratedSystem,
    questions.Reserve,
    questions.Degrees,
    questions.ServingPrecision,
    questions.ServingSchedule,
    questions.TokenDispatch,
    questions.SpeculativeDecoding,
):
    """The inputs of the evaluator inference; see :mod:`trnspec.evaluation.questions`."""

    tp: int | None = like(
        questions.Parallelism, "tp", unset="the largest that divides the heads without crossing a network"
    )
    prefill_on: str | None = axis(
        "Disaggregated prefill: another system, which computes the prompts and sends the KV cache.",
        "SYSTEM",
        group="System",
        unset="the same system",
    )


@frozen
class Pool:
    """A pool of ranks with the same role, and the layout of the model on them.

    Attributes:
        system: The system.
        plan: The layout.
        numbers: The numbers of one rank.
        ends: The same at the slow and at the fast end of the published figures.
        known: The calibration.
        network: The network level between servers: nominal, slow end, fast end; empty if nothing is sent to another pool.
        tile: Columns of a tile of the tensor engine; ``None`` if narrow shards are not counted.
    """

    system: LoweredSystem = field(repr=False)
    plan: Deployment
    numbers: Machine = field(repr=False)
    ends: tuple[Machine, Machine] = field(repr=False)
    known: Calibrated
    network: tuple[Level, ...]
    tile: int | None

    def at(self, end: int) -> Pool:
        """The pool at the slow (0) or the fast end (1) of the published figures."""
        return evolve(self, numbers=self.ends[end], network=self.network[end + 1 : end + 2])

    @property
    def ranks(self) -> Number:
        """Ranks of one replica."""
        return self.plan.tp * self.plan.pp

    @property
    def capacity(self) -> Number:
        """Device memory that a rank reaches [B]."""
        return capacity(self.system, self.ranks * self.plan.dp)

    @property
    def chips(self) -> Number:
        """Chips used by the replicas."""
        return self.ranks * self.plan.dp / self.system.ranks_per_chip


@frozen
class Setup:
    """A deployment with all that the answers are computed from.

    Attributes:
        question: The inputs, defaults resolved.
        name: The name of the model.
        dims: Its dimensions.
        model: The averages over its layers.
        pool: The pool that decodes, and prefills unless another pool does.
        before: The pool that prefills, if it is another.
        speculation: The draft model, if there is one.
        draft: Its dimensions.
        software: What the framework sets, and the buckets of its graphs.
    """

    question: InferenceQuestion
    name: str
    dims: Dimensions = field(repr=False)
    model: Transformer = field(repr=False)
    pool: Pool
    before: Pool | None = None
    speculation: Speculation | None = field(default=None, repr=False)
    draft: Dimensions | None = field(default=None, repr=False)
    software: ServingSoftware = field(factory=ServingSoftware, repr=False)

    @property
    def in_flight(self) -> Number:
        """Whether times are those of a server on GPUs that a client keeps a number of requests in flight with.

        Calibrations of GPUs are fitted to such times.  Ideal times are those of :func:`~trnspec.perf.serving.request.serve`.
        """
        q, plan = self.question, self.pool.plan
        alone = self.before is None and self.draft is None
        if not (alone and q.batching == "continuous" and on_gpu(q) and self.pool.known.name):
            return False
        return (plan.pp == 1.0) & (plan.output > 1.0)

    def at(self, end: int) -> Setup:
        """The deployment at the slow (0) or the fast end (1) of the published figures."""
        return evolve(self, pool=self.pool.at(end), before=None if self.before is None else self.before.at(end))

    def with_batch(self, batch: int) -> Setup:
        """The same deployment with another batch size, which a compiled graph must hold."""
        plan = self._batched(self.pool.plan, float(batch))
        return evolve(self, question=evolve(self.question, batch=batch), pool=evolve(self.pool, plan=plan))

    def _batched(self, plan: Deployment, batch: Number) -> Deployment:
        q = self.question
        if q.batching == "static":
            together = smaller(float(q.prefill_batch), batch) if q.prefill_batch else batch
            plan = evolve(plan, batch=batch, prompts=together, rounds=ceil(batch / together))
        else:
            plan = evolve(plan, batch=batch, prompts=1.0, rounds=1.0)
        return compiled(self.model, plan, q.context_buckets or (), self.software.batches)

    def of(self, numbers: Mapping[str, Number]) -> Setup:
        """The deployment with other numbers in place of inputs; they may be arrays.

        Args:
            numbers: Any of ``tp``, ``pp``, ``dp``, ``ep``, ``batch``, ``prompt``, ``output``, ``chunk`` (0 for whole
                prompts), ``weight_bytes`` and ``cache_bytes``; ``before_tp`` and ``before_dp`` of the pool that prefills.
        """
        q, pool, before = self.question, self.pool, self.before
        own = {name: number for name, number in numbers.items() if not name.startswith("before_")}
        plan = _plan(q, self.dims, self.model, pool.system, pool.tile, {"tp": pool.plan.tp, "dp": pool.plan.dp} | own)
        pool = evolve(pool, plan=self._batched(plan, numbers.get("batch", pool.plan.batch)))
        if before is not None:
            other = {"tp": before.plan.tp, "dp": before.plan.dp}
            other |= {name: numbers[f"before_{name}"] for name in other if f"before_{name}" in numbers}
            plan = _plan(q, self.dims, self.model, before.system, before.tile, own | other | {"ep": 1.0})
            before = evolve(before, plan=compiled(self.model, plan, q.context_buckets or ()))
        return evolve(self, pool=pool, before=before)


def prepare(graph: Graph, question: InferenceQuestion, known: Calibrated, elsewhere: Calibrated | None = None) -> Setup:
    """Deploys a model.

    Args:
        graph: The catalog.
        question: The inputs.
        known: The calibration of the pool that decodes.
        elsewhere: The calibration of the pool that prefills; the same if left out.

    Raises:
        UsageError: A name is of the wrong kind.
        UnknownNameError: There is no document of a name.
        RefusalError: The layout is invalid, or a figure is not published.
    """
    for name in ("dtype", "weight_dtype", "kv_dtype"):
        element_bytes(getattr(question, name) or question.dtype, name)
    system = lower(graph, question.on, lnc=question.lnc, chips=question.chips)
    framework = SERVING.get(known.framework)
    if question.framework is None and framework is not None and not framework.neuron:
        # A calibration of GPUs is fitted to servers with the settings of its framework and requests in flight.
        given: dict[str, Any] = {"framework": known.framework}
        question = evolve(question, **given)
    question, software = resolve_serving(question, neuron=bool(system.lnc))
    if question.prefill_on is not None and question.batching == "static":
        raise RefusalError(
            "batching",
            "static batches prefill on the system that decodes",
            place="batching",
            hint="batching continuous, or no prefill_on",
        )
    node = model_named(graph, question.model)
    dims = dimensions(node.spec)
    if not dims.causal:
        raise RefusalError("not-a-decoder", f"{node.name} is not a decoder: it generates no tokens", place="model")
    check_context(question.prompt, dims, "prompt")
    check_context(question.prompt + question.output, dims, "output")
    tp, dp = default_degrees(dims, system, question.pp, question.tp)
    dp = question.dp or dp
    # What calibrations were fitted to does not overlap; without one a time must not include what software can avoid.
    overlap = not known.name if question.expert_overlap is None else question.expert_overlap
    reserve = frameworks.RESERVE if question.reserve is None else question.reserve
    resolved = evolve(question, model=node.name, on=system.name, tp=tp, dp=dp, expert_overlap=overlap, reserve=reserve)
    check(resolved, dims, int(system.ranks))
    model = transformer(dims)
    resolved = evolve(resolved, tile=software.tile(graph, system.chip))

    def pool_of(system: LoweredSystem, on: str, known: Calibrated, tile: int | None, **degrees: float) -> Pool:
        assert system.ends is not None
        network = () if question.prefill_on is None else _network(graph, system, on)
        numbers, *ends = (machine(s, known.efficiency, question.dtype) for s in (system, *system.ends))
        plan = _plan(resolved, dims, model, system, tile, degrees)
        return Pool(system, plan, numbers, (ends[0], ends[1]), known, network, tile)

    pool = pool_of(system, question.on, known, resolved.tile, tp=float(tp), dp=float(dp))
    before = None
    if question.prefill_on is not None:
        other = lower(graph, question.prefill_on)
        wide, copies = default_degrees(dims, other, resolved.pp)
        check(evolve(resolved, tp=wide, dp=copies, ep=1), dims, int(other.ranks), "prefill_on")
        degrees = {"tp": float(wide), "dp": float(copies), "ep": 1.0}
        tile = software.tile(graph, other.chip)
        before = pool_of(other, question.prefill_on, elsewhere or known, tile, **degrees)
        before = evolve(before, plan=compiled(model, before.plan, resolved.context_buckets or ()))
    speculation = small = None
    if question.draft is not None:
        small = dimensions(model_named(graph, question.draft).spec)
        if small.vocabulary != dims.vocabulary:
            sizes = f"{question.draft} has {small.vocabulary:,.0f} tokens, {node.name} {dims.vocabulary:,.0f}"
            raise RefusalError(
                "vocabulary",
                f"vocabularies differ: {sizes}",
                place="draft",
                hint="a draft model with the same vocabulary",
            )
        check_context(question.prompt + question.output, small, "draft")
        speculation = Speculation(
            model=transformer(small), drafted=float(question.speculate), acceptance=question.acceptance
        )
    setup = Setup(resolved, node.name, dims, model, pool, before, speculation, small, software)
    return setup.with_batch(question.batch)


def calibration_of(graph: Graph, question: Any, chip: str) -> Calibrated:
    """The calibration of serving a model on a chip that a question gives, or means."""
    q, experts = question, model_named(graph, question.model).spec.experts is not None
    return calibrated(graph, chip, "inference", q.calibration, q.framework or "", q.era or "", experts=experts)


def idle(setup: Setup) -> Iterator[Assumption]:
    """Ranks of each pool that no replica uses, as assumptions."""
    for name, pool in (("idle_ranks", setup.pool), ("prefill_idle_ranks", setup.before)):
        if pool is None:
            continue
        plan, ranks = pool.plan, int(pool.system.ranks)
        rest = ranks - int(pool.ranks * plan.dp)
        if rest:
            replicas = "replica" if plan.dp == 1.0 else "replicas"
            text = f"{plan.dp:,.0f} {replicas} of tp {plan.tp:g} x pp {plan.pp:g}; not counted in throughput_per_chip"
            yield Assumption(name, f"{rest:,} of {ranks:,}", text)


def default_degrees(d: Dimensions, system: LoweredSystem, pp: int, tp: int | None = None) -> tuple[int, int]:
    """The tensor-parallel degree, and the replicas on the ranks of a system.

    The degree is by default the largest that divides the heads and the ranks of a scale-up domain: those connected without the
    network between servers.
    """
    ranks, heads = int(system.ranks), int(common_heads(d))
    if tp is None:
        domain = int(near_ranks(system))
        most = max(1, min(domain, heads, ranks // pp))
        tp = max(t for t in range(1, most + 1) if heads % t == 0 and domain % t == 0)
    return tp, max(1, ranks // (tp * pp))


def check(question: InferenceQuestion, d: Dimensions, ranks: int, where_: str = "") -> None:
    """Checks a layout for a model and a number of ranks.

    Args:
        question: The inputs, with tp and dp resolved.
        d: The model.
        ranks: Ranks of the system.
        where_: The input at fault, if it is not the degree itself.

    Raises:
        RefusalError: The layout is invalid, with the reason and the input at fault.
    """
    tp, dp = question.tp or 1, question.dp or 1
    pp, ep = question.pp, question.ep
    for reason, name, invalid in invalid_layouts(d, ranks, *(float(n) for n in (tp, pp, dp, ep))):
        if not invalid:
            continue
        if reason == "rank-count":
            # The first degree with which there are too many ranks.
            first, before = ("tp", 1) if tp > ranks else ("pp", tp) if tp * pp > ranks else ("dp", tp * pp)
            text = f"tp {tp} x pp {pp} x dp {dp} is {tp * pp * dp:,} ranks; the system has {ranks:,}"
            raise RefusalError(reason, text, place=where_ or first, hint=f"{first} up to {ranks // before}")
        text = {
            "tp": f"tp {tp} is more than the {d.heads:g} heads",
            "pp": f"{d.layers:g} layers are not divisible by pp {pp}",
            "ep": f"{d.experts:g} experts are not divisible by ep {ep}" if d.experts else "the model has no experts",
            "dp": f"dp {dp} is not divisible by ep {ep}",
        }[name]
        raise RefusalError(reason, text, place=(where_ or name) if name in ("tp", "pp") else "ep")


def on_gpu(question: InferenceQuestion) -> bool:
    """Whether the framework of a question runs on GPUs."""
    return question.framework is not None and not SERVING[question.framework].neuron


def _plan(  # what a layout is computed from
    question: InferenceQuestion,
    d: Dimensions,
    model: Transformer,
    system: LoweredSystem,
    tile: int | None,
    numbers: Mapping[str, Number],
) -> Deployment:
    """The layout on the ranks of a system; for the numbers see :meth:`Setup.of`."""
    q = question
    given: dict[str, Number] = {
        name: float(getattr(q, name) or 0) for name in ("pp", "ep", "prompt", "output", "chunk")
    }
    given["weight_bytes"] = ELEMENT_BYTES[q.weight_dtype or q.dtype]
    given["cache_bytes"] = ELEMENT_BYTES[q.kv_dtype or q.dtype]
    given |= numbers
    # At least one token of a prompt is computed: the first token of the output follows from it.
    cached = smaller(floor(given["prompt"] * q.prefix_hit), given["prompt"] - 1.0)
    computed = given["prompt"] - cached
    chunk = where(given["chunk"] > 0.0, smaller(given["chunk"], computed), computed)
    # Checkpoints for GPUs have the output matrix in 16 bit, and with experts in 4 bit all else.
    weight, gpu = given["weight_bytes"], on_gpu(q)
    narrow = (gpu and d.experts > 0) & (weight < 1.0)
    plan = Deployment(
        **{name: given[name] for name in ("tp", "pp", "dp", "ep", "prompt", "output", "weight_bytes", "cache_bytes")},
        per_node=float(q.dispatch != "per-copy"),
        sent=SENT[q.dispatch_dtype],
        node_limit=float(q.node_limit),
        expert_overlap=float(bool(q.expert_overlap)),
        passes=ceil(computed / where(chunk > 0.0, chunk, 1.0)),
        cached=cached,
        all_experts_from=all_experts_from(q.experts, d),
        flash=float(q.prefill_attention == "flash"),
        materialized=float(q.prefill_attention == "materialized"),
        single_core=float(system.sharing > 1.0),
        whole_bytes=where(narrow, 2.0, 0.0),
        head_bytes=larger(weight, 2.0) if gpu else 0.0,
        # Activations are in 16 bit if weights are narrower.
        activation_bytes=max(ELEMENT_BYTES[q.dtype], 2.0),
    )
    if tile is not None:
        plan = narrow_shards(d, model, plan, float(tile))
    if narrow is False:
        return plan
    return evolve(plan, narrow_whole=where(narrow, system.rate(q.dtype) / system.rate("bf16") - 1.0, plan.narrow_whole))


def _network(graph: Graph, system: LoweredSystem, on: str) -> tuple[Level, ...]:
    """The network level between servers: nominal, slow end, fast end. For one server, that of two such servers."""
    if all(level.name != "network" for level in system.levels):
        system = lower(graph, re.sub(r"\s*\*\s*1\Z", "", on.strip()) + "*2", lnc=int(system.lnc) or None)
    assert system.ends is not None
    levels = tuple(level for s in (system, *system.ends) for level in s.levels if level.name == "network")
    if not levels[0].rate:
        raise RefusalError(
            "unknown-figure", f"the rate between servers of {system.name} is not published", place=levels[0].place
        )
    return levels


def memory(setup: Setup, pool: Pool) -> RankMemory:
    """The memory of the rank of a pool that needs most; weights and KV cache of a draft model are included."""
    plan = pool.plan
    decodes = pool is setup.pool
    drafted = setup.speculation.drafted if decodes and setup.speculation is not None else 0.0
    computed = where(plan.compiled_tokens > 0.0, plan.compiled_tokens, (plan.prompt - plan.cached) / plan.passes)
    chunk = plan.prompts * computed if not decodes or setup.before is None else 0.0
    tokens = where(plan.compiled_batch > 0.0, plan.compiled_batch, plan.batch) * (drafted + 1.0) if decodes else 0.0
    at_once = larger(tokens, chunk)
    if decodes:
        # Whole prompts and decode steps take turns; chunks share a step with decoded tokens.
        at_once = where(plan.passes > 1.0, tokens + chunk, at_once)
        context = where(plan.compiled_context > 0.0, plan.compiled_context, plan.prompt + plan.output)
    else:
        context = where(plan.compiled_prompt > 0.0, plan.compiled_prompt, plan.prompt)
    total = evolve(
        held(setup.dims, plan, context, at_once),
        reserve=frameworks.runtime(pool.capacity, reserve=setup.question.reserve).reserve,
    )
    if decodes and setup.draft is not None:
        draft = held(setup.draft, evolve(plan, ep=1.0), context, tokens)
        total = evolve(total, weights=total.weights + draft.weights, cache=total.cache + draft.cache)
    return total


def max_batch(setup: Setup, available: float, most: float = math.inf) -> int:
    """The largest batch size per replica, up to ``most``, that fits in a number of bytes per rank; 0 if not even one does."""

    def fits(batch: int) -> bool:
        if setup.software.batches and batch > setup.software.batches[-1]:
            return False
        one = setup.with_batch(batch)
        return float(memory(one, one.pool).total) <= available

    low, high = 0, 1
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = int(min(high, most + 1))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
