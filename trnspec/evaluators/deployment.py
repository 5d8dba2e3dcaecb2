"""A model deployed for serving: the ranks of each pool, the layout on them, and the memory that a rank needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from trnspec.evaluation.questions import (
    CalibratedSystem,
    Degrees,
    Parallelism,
    Reserve,
    ServingPrecision,
    ServingSchedule,
    ServingWorkload,
    TokenDispatch,
    axis,
    like,
)
from trnspec.evaluation.result import Assumption, RefusalError
from trnspec.evaluators.data_types import ELEMENT_BYTES, element_bytes
from trnspec.evaluators.serving_software import Software, narrowed, resolve
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.experts import SENT
from trnspec.perf.lowering.calibrated import Calibrated
from trnspec.perf.lowering.lookup import model_named
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.lowering.system import Level, System
from trnspec.perf.serving.forward_pass import Deployment
from trnspec.perf.serving.frameworks import FRAMEWORKS
from trnspec.perf.serving.memory import capacity, held
from trnspec.perf.serving.request import Speculation
from trnspec.perf.serving.static_graphs import all_experts_from, compiled
from trnspec.perf.work import frameworks
from trnspec.perf.work.layout import check_context
from trnspec.perf.work.transformer import Transformer, transformer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from trnspec.graph.graph import Graph
    from trnspec.perf.work.memory import Memory


@frozen(kw_only=True, slots=False)
class InferenceQuestion(
    ServingWorkload, CalibratedSystem, Reserve, Degrees, ServingPrecision, ServingSchedule, TokenDispatch
):
    """The inputs of the evaluator inference; see :mod:`trnspec.evaluation.questions`."""

    tp: int | None = field(
        default=None,
        metadata=like(Parallelism, "tp", unset="the largest that divides the heads without crossing a network"),
    )
    prefill_on: str | None = field(
        default=None,
        metadata=axis(
            "Disaggregated prefill: another system, which computes the prompts and sends the KV cache.",
            "SYSTEM",
            group="System",
            unset="the same system",
        ),
    )
    draft: str | None = field(
        default=None,
        metadata=axis("Draft model of speculative decoding.", "MODEL", group="Schedule", unset="none"),
    )
    acceptance: float = field(
        default=0.7,
        metadata=axis("Probability that a draft token is accepted.", "SHARE", group="Schedule", minimum=0, maximum=1),
    )
    speculate: int = field(
        default=4, metadata=axis("Draft tokens per decode step.", "TOKENS", group="Schedule", minimum=1)
    )  # fmt: skip

    def used(self) -> dict[str, Any]:
        """The inputs by name; those that only speculative decoding uses have no value without a draft."""
        unused = {} if self.draft is not None else {"acceptance": None, "speculate": None}
        return {**self.values(), **unused}


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
    """

    system: System = field(repr=False)
    plan: Deployment
    numbers: Machine = field(repr=False)
    ends: tuple[Machine, Machine] = field(repr=False)
    known: Calibrated
    network: tuple[Level, ...] = ()

    @property
    def ranks(self) -> float:
        """Ranks of one replica."""
        return float(self.plan.tp * self.plan.pp)

    @property
    def capacity(self) -> float:
        """Device memory that a rank reaches [B]."""
        return capacity(self.system, float(self.ranks * self.plan.dp))

    @property
    def chips(self) -> float:
        """Chips used by the replicas."""
        return float(self.ranks * self.plan.dp / self.system.ranks_per_chip)


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
        drafting: The draft model, and its dimensions.
        software: What the framework sets, and the buckets of its graphs.
    """

    question: InferenceQuestion
    name: str
    dims: Dimensions = field(repr=False)
    model: Transformer = field(repr=False)
    pool: Pool
    before: Pool | None = None
    drafting: tuple[Speculation, Dimensions] | None = field(default=None, repr=False)
    software: Software = field(factory=Software, repr=False)

    @property
    def speculation(self) -> Speculation | None:
        """The draft model, if there is one."""
        return None if self.drafting is None else self.drafting[0]

    @property
    def in_flight(self) -> bool:
        """Whether times are those of a server on GPUs that a client keeps a number of requests in flight with.

        Calibrations of GPUs are fitted to such times.  Ideal times are those of :func:`~trnspec.perf.serving.request.serve`.
        """
        q = self.question
        alone = self.before is None and self.drafting is None and q.pp == 1 and q.output > 1
        return alone and q.batching == "continuous" and on_gpu(q) and bool(self.pool.known.name)

    def with_batch(self, batch: int) -> Setup:
        """The same deployment with another batch size, which a compiled graph must hold."""
        q = self.question
        together = min(q.prefill_batch or batch, batch) if q.batching == "static" else 1
        rounds = -(-batch // together) if q.batching == "static" else 1
        plan = evolve(self.pool.plan, batch=float(batch), prompts=float(together), rounds=float(rounds))
        plan = compiled(self.model, plan, q.context_buckets or (), self.software.batches)
        return evolve(self, question=evolve(q, batch=batch), pool=evolve(self.pool, plan=plan))


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
    question = with_software(question, known)
    question, software = resolve(question, neuron=bool(system.lnc))
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
    tp = question.tp or default_tp(int(dims.heads), domain(system), int(system.ranks) // question.pp)
    dp = question.dp or max(1, int(system.ranks) // (tp * question.pp))
    resolved = evolve(frameworks.resolved(question), model=node.name, on=system.name, tp=tp, dp=dp)
    check(resolved, dims, int(system.ranks))
    network = () if question.prefill_on is None else _network(graph, system, question.on)
    model = transformer(dims)
    tile = software.tile(graph, system.chip)
    resolved = evolve(resolved, tile=tile)
    pool = _pool(system, narrowed(dims, model, _plan(resolved, dims, tp, dp), tile), resolved, known, network)
    before = None
    if question.prefill_on is not None:
        other = lower(graph, question.prefill_on)
        wide = default_tp(int(dims.heads), domain(other), int(other.ranks) // question.pp)
        copies = max(1, int(other.ranks) // (wide * question.pp))
        check(evolve(resolved, tp=wide, dp=copies, ep=1), dims, int(other.ranks), "prefill_on")
        plan = evolve(_plan(resolved, dims, wide, copies), ep=1.0)
        plan = narrowed(dims, model, plan, software.tile(graph, other.chip))
        plan = compiled(model, plan, resolved.context_buckets or ())
        before = _pool(other, plan, resolved, elsewhere or known, _network(graph, other, question.prefill_on))
    drafting = None
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
        drafted = Speculation(
            model=transformer(small), drafted=float(question.speculate), acceptance=question.acceptance
        )
        drafting = (drafted, small)
    setup = Setup(resolved, node.name, dims, model, pool, before, drafting, software)
    return setup.with_batch(question.batch)


def with_software(question: InferenceQuestion, known: Calibrated) -> InferenceQuestion:
    """The question with the framework of its calibration, if it has none and the framework runs on GPUs.

    A calibration of GPUs is fitted to servers with the settings of its framework and requests in flight, and is not of use
    without them.
    """
    framework = FRAMEWORKS.get(known.framework)
    if question.framework is not None or framework is None or framework.neuron:
        return question
    return evolve(question, framework=known.framework)


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


def domain(system: System) -> int:
    """Ranks of a scale-up domain: those connected without the network between servers."""
    return int(max((level.ranks for level in system.levels if level.name != "network"), default=1.0))


def default_tp(heads: int, ranks: int, most: int) -> int:
    """The largest tensor-parallel degree that divides the heads and the ranks of a scale-up domain."""
    return max(t for t in range(1, max(1, min(ranks, heads, most)) + 1) if heads % t == 0 and ranks % t == 0)


def check(question: InferenceQuestion, d: Dimensions, ranks: int, where: str = "") -> None:
    """Checks a layout for a model and a number of ranks.

    Args:
        question: The inputs, with tp and dp resolved.
        d: The model.
        ranks: Ranks of the system.
        where: The input at fault, if it is not the degree itself.

    Raises:
        RefusalError: The layout is invalid, with the reason and the input at fault.
    """
    tp, dp = question.tp or 1, question.dp or 1
    pp, ep = question.pp, question.ep
    if tp * pp * dp > ranks:
        # The first degree with which there are too many ranks.
        name, before = ("tp", 1) if tp > ranks else ("pp", tp) if tp * pp > ranks else ("dp", tp * pp)
        raise RefusalError(
            "rank-count", f"tp {tp} x pp {pp} x dp {dp} is {tp * pp * dp:,} ranks; the system has {ranks:,}",
            place=where or name, hint=f"{name} up to {ranks // before}",
        )  # fmt: skip
    if tp > d.heads:
        raise RefusalError("heads-not-divisible", f"tp {tp} is more than the {d.heads:g} heads", place=where or "tp")
    if d.layers % pp:
        raise RefusalError(
            "layers-not-divisible", f"{d.layers:g} layers are not divisible by pp {pp}", place=where or "pp"
        )
    if ep > 1 and (not d.experts or d.experts % ep):
        text = f"{d.experts:g} experts are not divisible by ep {ep}" if d.experts else "the model has no experts"
        raise RefusalError("experts-not-divisible", text, place="ep")
    if dp % ep:
        raise RefusalError("experts-not-divisible", f"dp {dp} is not divisible by ep {ep}", place="ep")


def on_gpu(question: InferenceQuestion) -> bool:
    """Whether the framework of a question runs on GPUs."""
    return question.framework is not None and not FRAMEWORKS[question.framework].neuron


def _plan(question: InferenceQuestion, d: Dimensions, tp: int, dp: int) -> Deployment:
    # At least one token of a prompt is computed: the first token of the output follows from it.
    cached = min(int(question.prompt * question.prefix_hit), question.prompt - 1)
    computed = question.prompt - cached
    chunk = min(question.chunk or computed, computed)
    weight = ELEMENT_BYTES[question.weight_dtype or question.dtype]
    # Checkpoints for GPUs have the output matrix in 16 bit, and with experts in 4 bit all else.
    head = max(weight, 2.0) if on_gpu(question) else 0.0
    narrow = head > 0.0 and d.experts > 0 and weight < 1.0
    return Deployment(
        tp=float(tp),
        pp=float(question.pp),
        dp=float(dp),
        ep=float(question.ep),
        per_node=float(question.dispatch != "per-copy"),
        sent=SENT[question.dispatch_dtype],
        node_limit=float(question.node_limit),
        prompt=float(question.prompt),
        output=float(question.output),
        passes=float(-(-computed // chunk)),
        cached=float(cached),
        all_experts_from=all_experts_from(question.experts, d),
        flash=float(question.prefill_attention == "flash"),
        materialized=float(question.prefill_attention == "materialized"),
        weight_bytes=weight,
        whole_bytes=2.0 if narrow else 0.0,
        head_bytes=head,
        cache_bytes=ELEMENT_BYTES[question.kv_dtype or question.dtype],
        # Activations are in 16 bit if weights are narrower.
        activation_bytes=max(ELEMENT_BYTES[question.dtype], 2.0),
    )


def _pool(
    system: System, plan: Deployment, question: InferenceQuestion, known: Calibrated, network: tuple[Level, ...]
) -> Pool:
    assert system.ends is not None
    plan = evolve(plan, single_core=float(system.sharing > 1.0))
    if plan.whole_bytes > 0.0:
        plan = evolve(plan, narrow_whole=system.rate(question.dtype) / system.rate("bf16") - 1.0)
    slow, fast = (machine(end, known.efficiency, question.dtype) for end in system.ends)
    return Pool(system, plan, machine(system, known.efficiency, question.dtype), (slow, fast), known, network)


def _network(graph: Graph, system: System, on: str) -> tuple[Level, ...]:
    """The network level between servers: nominal, slow end, fast end. For one server, that of two such servers."""
    if all(level.name != "network" for level in system.levels):
        system = lower(graph, re.sub(r"\s*[*x]\s*1\Z", "", on.strip()) + "*2", lnc=int(system.lnc) or None)
    assert system.ends is not None
    levels = tuple(level for s in (system, *system.ends) for level in s.levels if level.name == "network")
    if not levels[0].rate:
        raise RefusalError(
            "unknown-figure", f"the rate between servers of {system.name} is not published", place=levels[0].place
        )
    return levels


def memory(setup: Setup, pool: Pool) -> Memory:
    """The memory of the rank of a pool that needs most; weights and KV cache of a draft model are included."""
    plan = pool.plan
    decodes = pool is setup.pool
    drafted = setup.speculation.drafted if decodes and setup.speculation is not None else 0.0
    computed = plan.compiled_tokens or (plan.prompt - plan.cached) / plan.passes
    chunk = plan.prompts * computed if not decodes or setup.before is None else 0.0
    tokens = (plan.compiled_batch or plan.batch) * (drafted + 1.0) if decodes else 0.0
    # Whole prompts and decode steps take turns; chunks share a step with decoded tokens.
    at_once = tokens + chunk if plan.passes > 1.0 and decodes else max(tokens, chunk)
    context = plan.compiled_context or plan.prompt + plan.output
    if not decodes:
        context = plan.compiled_prompt or plan.prompt
    total = evolve(
        held(setup.dims, plan, context, at_once),
        reserve=frameworks.runtime(pool.capacity, reserve=setup.question.reserve).reserve,
    )
    if decodes and setup.drafting is not None:
        draft = held(setup.drafting[1], evolve(plan, ep=1.0), context, tokens)
        total = evolve(total, weights=total.weights + draft.weights, cache=total.cache + draft.cache)
    return total


def max_batch(setup: Setup, available: float) -> int:
    """The largest batch size per replica that fits in a number of bytes per rank; 0 if not even one does."""

    def fits(batch: int) -> bool:
        if setup.software.batches and batch > setup.software.batches[-1]:
            return False
        one = setup.with_batch(batch)
        return float(memory(one, one.pool).total) <= available

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
