"""A question about serving, checked and turned into the numbers of the formulas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from attrs import asdict, evolve, field, frozen

from trnspec.evaluation.result import Assumption, RefusalError
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.lowering.calibrated import Calibrated
from trnspec.perf.lowering.lookup import model_named
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.lowering.system import Level, System
from trnspec.perf.serving.forward_pass import Deployment
from trnspec.perf.serving.request import Speculation
from trnspec.perf.work.layout import check_context
from trnspec.perf.work.memory import Memory, inference_memory
from trnspec.perf.work.stages import Split, peak_stages
from trnspec.perf.work.transformer import Transformer, transformer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph

BYTES = {
    "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "cfp8": 1.0, "int8": 1.0,
    "mxfp8": 33.0 / 32.0, "mxfp4": 17.0 / 32.0, "int4": 0.5, "fp4": 0.5,
}  # fmt: skip
"""Bytes of an element by data type; microscaling types have one byte of scale for 32 elements (OCP MX 1.0, section 5)."""


@frozen(kw_only=True)
class Question:
    """What is asked: the inputs of the evaluator, see :func:`trnspec.evaluators.inference.run`."""

    model: str
    on: str
    tp: int | None = None
    pp: int = 1
    ep: int = 1
    dp: int | None = None
    batch: int = 1
    prompt: int = 1024
    output: int = 1024
    schedule: Literal["continuous", "static"] = "continuous"
    chunk: int | None = None
    dtype: str = "bf16"
    weights: str | None = None
    kv: str | None = None
    draft: str | None = None
    acceptance: float = 0.7
    speculate: int = 4
    prefill_on: str | None = None
    lnc: int | None = None

    def told(self) -> dict[str, str | float | None]:
        """The inputs by name; of those that nothing uses, as where no token is drafted, without a value."""
        unused = {} if self.draft is not None else {"acceptance": None, "speculate": None}
        return {**asdict(self), **unused}


@frozen
class Pool:
    """Ranks that do the same, and how a model is laid out on them.

    Attributes:
        system: The system.
        plan: The layout.
        numbers: The numbers of one rank.
        ends: The same at the slow, and at the fast end of the published figures.
        known: What is achieved on it.
        network: What its servers reach others by, as printed, and at the slow and the fast end; empty where nothing is
            sent to others.
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
    def chips(self) -> float:
        """Chips that the replicas take."""
        return float(self.ranks * self.plan.dp / self.system.ranks_per_chip)


@frozen
class Setup:
    """What the answers are computed from.

    Attributes:
        question: What is asked, defaults filled in.
        name: The name of the model.
        dims: Its dimensions.
        model: The averages over its layers.
        pool: Where tokens are made, and prompts computed unless another pool does.
        before: Where prompts are computed when that is elsewhere.
        drafting: The draft, and its dimensions.
    """

    question: Question
    name: str
    dims: Dimensions = field(repr=False)
    model: Transformer = field(repr=False)
    pool: Pool
    before: Pool | None = None
    drafting: tuple[Speculation, Dimensions] | None = field(default=None, repr=False)

    @property
    def speculation(self) -> Speculation | None:
        """The draft, if there is one."""
        return None if self.drafting is None else self.drafting[0]

    def with_batch(self, batch: int) -> Setup:
        """The same with so many sequences."""
        together = float(batch) if self.question.schedule == "static" else 1.0
        plan = evolve(self.pool.plan, batch=float(batch), prompts=together)
        return evolve(self, question=evolve(self.question, batch=batch), pool=evolve(self.pool, plan=plan))


def prepare(graph: Graph, question: Question, known: Calibrated, elsewhere: Calibrated | None = None) -> Setup:
    """What a question is answered with.

    Args:
        graph: The catalog.
        question: The question.
        known: What is achieved where tokens are made.
        elsewhere: What is achieved where prompts are computed, if that is another system; the same when left out.

    Raises:
        UsageError: A name is of the wrong kind.
        UnknownNameError: There is no document of a name.
        RefusalError: The layout cannot be, or a figure is not published.
    """
    for name in ("pp", "ep", "batch", "prompt", "output", "tp", "dp", "chunk", "speculate"):
        value = getattr(question, name)
        if value is not None and value < 1:
            raise RefusalError("not-positive", f"{name} is {value}, and counts from 1", place=name)
    if not 0.0 <= question.acceptance <= 1.0:
        raise RefusalError("not-a-share", f"acceptance is {question.acceptance:g}, not from 0 to 1", place="acceptance")
    for name in ("dtype", "weights", "kv"):
        wanted = getattr(question, name)
        if wanted is not None and wanted not in BYTES:
            raise RefusalError(
                "unknown-type", f"{name} is {wanted}, whose size is not known", place=name, hint=", ".join(BYTES)
            )
    if question.prefill_on is not None and question.schedule == "static":
        raise RefusalError("schedule", "a static batch is computed where it is decoded", place="schedule")
    node = model_named(graph, question.model)
    dims = dimensions(node.spec)
    if not dims.causal:
        raise RefusalError(
            "not-a-decoder", f"{node.name} sees all of its input at once and makes no tokens", place="model"
        )
    check_context(question.prompt, dims, "prompt")
    check_context(question.prompt + question.output, dims, "output")
    system = lower(graph, question.on, lnc=question.lnc)
    tp = question.tp or default_tp(int(dims.heads), domain(system), int(system.ranks) // question.pp)
    dp = question.dp or max(1, int(system.ranks) // (tp * question.pp))
    asked = evolve(question, model=node.name, on=system.name, tp=tp, dp=dp)
    check(asked, dims, int(system.ranks))
    separate = question.prefill_on is not None
    pool = _pool(system, _plan(asked, tp, dp), asked, known, _network(graph, system, question.on) if separate else ())
    before = None
    if question.prefill_on is not None:
        other = lower(graph, question.prefill_on)
        wide = default_tp(int(dims.heads), domain(other), int(other.ranks) // question.pp)
        copies = max(1, int(other.ranks) // (wide * question.pp))
        check(evolve(asked, tp=wide, dp=copies, ep=1), dims, int(other.ranks), "prefill_on")
        plan = evolve(_plan(asked, wide, copies), ep=1.0, batch=1.0, prompts=1.0)
        before = _pool(other, plan, asked, elsewhere or known, _network(graph, other, question.prefill_on))
    drafting = None
    if question.draft is not None:
        small = dimensions(model_named(graph, question.draft).spec)
        if small.vocabulary != dims.vocabulary:
            told = f"{question.draft} knows {small.vocabulary:,.0f} tokens, and {node.name} {dims.vocabulary:,.0f}"
            raise RefusalError("vocabulary", told, place="draft", hint="a draft has the vocabulary of its model")
        check_context(question.prompt + question.output, small, "draft")
        drafted = Speculation(
            model=transformer(small), drafted=float(question.speculate), acceptance=question.acceptance
        )
        drafting = (drafted, small)
    return Setup(asked, node.name, dims, transformer(dims), pool, before, drafting).with_batch(question.batch)


def idle(setup: Setup) -> Iterator[Assumption]:
    """Ranks that no replica has, told as an assumption: of where tokens are made, and of where prompts are computed."""
    for name, pool in (("idle_ranks", setup.pool), ("prefill_idle_ranks", setup.before)):
        if pool is None:
            continue
        plan, ranks = pool.plan, int(pool.system.ranks)
        rest = ranks - int(pool.ranks * plan.dp)
        if rest:
            replicas = "replica" if plan.dp == 1.0 else "replicas"
            told = f"{plan.dp:,.0f} {replicas} of tp {plan.tp:g} x pp {plan.pp:g}; a chip's throughput is of those"
            yield Assumption(name, f"{rest:,} of {ranks:,}", told)


def domain(system: System) -> int:
    """Ranks that reach each other without the network."""
    return int(max((level.ranks for level in system.levels if level.name != "network"), default=1.0))


def default_tp(heads: int, ranks: int, most: int) -> int:
    """The largest degree that divides the heads and the ranks of a scale-up domain."""
    return max(t for t in range(1, max(1, min(ranks, heads, most)) + 1) if heads % t == 0 and ranks % t == 0)


def check(question: Question, d: Dimensions, ranks: int, where: str = "") -> None:
    """Whether a layout can be, for a model and so many ranks.

    Args:
        question: What is asked, with tp and dp.
        d: The model.
        ranks: Ranks of the system.
        where: The input at fault, where it is not the degree itself.

    Raises:
        RefusalError: It cannot; the reason and the input at fault are named.
    """
    tp, dp = question.tp or 1, question.dp or 1
    pp, ep = question.pp, question.ep
    if tp * pp * dp > ranks:
        # Of several degrees the first with which there are too many, whatever those after it are.
        name, before = ("tp", 1) if tp > ranks else ("pp", tp) if tp * pp > ranks else ("dp", tp * pp)
        raise RefusalError(
            "rank-count", f"tp {tp} x pp {pp} x dp {dp} are {tp * pp * dp:,} ranks, and the system has {ranks:,}",
            place=where or name, hint=f"{name} up to {ranks // before}",
        )  # fmt: skip
    if tp > d.heads:
        raise RefusalError("heads-not-divisible", f"tp {tp} is more than the {d.heads:g} heads", place=where or "tp")
    if d.layers % pp:
        raise RefusalError(
            "layers-not-divisible", f"{d.layers:g} layers are not split over {pp} stages", place=where or "pp"
        )
    if ep > 1 and (not d.experts or d.experts % ep):
        told = f"{d.experts:g} experts are not split over ep {ep}" if d.experts else "the model has no experts"
        raise RefusalError("experts-not-divisible", told, place="ep")
    if dp % ep:
        raise RefusalError("experts-not-divisible", f"ep {ep} does not divide dp, which is {dp}", place="ep")


def _plan(question: Question, tp: int, dp: int) -> Deployment:
    chunk = min(question.chunk or question.prompt, question.prompt)
    return Deployment(
        tp=float(tp),
        pp=float(question.pp),
        dp=float(dp),
        ep=float(question.ep),
        prompt=float(question.prompt),
        output=float(question.output),
        passes=float(-(-question.prompt // chunk)),
        weight_bytes=BYTES[question.weights or question.dtype],
        cache_bytes=BYTES[question.kv or question.dtype],
        # Activations stay in 16 bit when weights are narrower.
        activation_bytes=max(BYTES[question.dtype], 2.0),
    )


def _pool(system: System, plan: Deployment, question: Question, known: Calibrated, network: tuple[Level, ...]) -> Pool:
    assert system.ends is not None
    slow, fast = (machine(end, known.efficiency, question.dtype) for end in system.ends)
    return Pool(system, plan, machine(system, known.efficiency, question.dtype), (slow, fast), known, network)


def _network(graph: Graph, system: System, on: str) -> tuple[Level, ...]:
    """What the servers of a system reach others by, of one server what two of it would: as printed, slow and fast."""
    if all(level.name != "network" for level in system.levels):
        system = lower(graph, re.sub(r"\s*[*x]\s*1\Z", "", on.strip()) + "*2", lnc=int(system.lnc) or None)
    assert system.ends is not None
    found = tuple(level for s in (system, *system.ends) for level in s.levels if level.name == "network")
    if not found[0].rate:
        raise RefusalError(
            "unknown-figure", f"the rate between servers of {system.name} is not published", place=found[0].place
        )
    return found


def memory(setup: Setup, pool: Pool) -> Memory:
    """The bytes on the rank of a pool that needs the most; a draft's weights and cache are counted with the model's."""
    plan = pool.plan
    making = pool is setup.pool
    drafted = setup.speculation.drafted if making and setup.speculation is not None else 0.0
    chunk = plan.prompts * plan.prompt / plan.passes if not making or setup.before is None else 0.0
    tokens = plan.batch * (drafted + 1.0) if making else 0.0
    # Prompts in one pass and tokens take turns; chunks go along with tokens.
    at_once = tokens + chunk if plan.passes > 1.0 and making else max(tokens, chunk)
    room = plan.prompt + plan.output if making else plan.prompt
    found = _held(setup.dims, plan, room, at_once)
    if making and setup.drafting is not None:
        draft = _held(setup.drafting[1], evolve(plan, ep=1.0), room, tokens)
        found = evolve(found, weights=found.weights + draft.weights, cache=found.cache + draft.cache)
    return found


def _held(d: Dimensions, plan: Deployment, room: float, at_once: float) -> Memory:
    split = Split(tp=plan.tp, pp=plan.pp, dp=plan.dp, ep=plan.ep)
    found = [
        inference_memory(
            d, split, context=room, batch=plan.batch * plan.dp, step_tokens=at_once, stage=stage,
            weight_bytes=plan.weight_bytes, kv_bytes=plan.cache_bytes, activation_bytes=plan.activation_bytes,
        )
        for stage in dict.fromkeys(peak_stages(d, split))
    ]  # fmt: skip
    return max(found, key=lambda m: float(m.total))


def max_batch(setup: Setup, capacity: float) -> int:
    """The most sequences of a replica that fit into so many bytes a rank; 0 where not even one does."""

    def fits(batch: int) -> bool:
        one = setup.with_batch(batch)
        return float(memory(one, one.pool).total) <= capacity

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
