"""What serving a model takes: time to the first token, time of a token, throughput and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs
from attrs import evolve, frozen

from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Table, UsedFigure, Value
from trnspec.evaluators.inference_setup import Pool, Question, Setup, idle, max_batch, memory, prepare
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of
from trnspec.perf.lowering.lower import lower
from trnspec.perf.serving.forward_pass import PARTS, Serving, attended, cache_bytes, cache_share, head_share
from trnspec.perf.serving.request import Served, serve, transfer_time
from trnspec.perf.training.step import UNUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.memory import Memory

NOTES = {
    "matrices": "the layers' matrices: computing with them, or reading them",
    "attention": "scores and values: computing them, or reading the cache",
    "head": "output matrix, and picking tokens",
    "tensor": "two all-reduces a layer, and the gathering of logits",
    "expert": "tokens to experts and back",
    "pipeline": "messages between stages",
    "launch": "what a layer takes in any case",
    "fixed": "a fixed time of every pass, whatever the model",
    "draft": "the draft's steps",
    "waiting": "prefill of other requests",
    "transfer": "the cache, from where it was computed to where tokens are made",
}
"""What each part of a time is."""


@frozen
class _Found:
    """The numbers of one case.

    Attributes:
        served: What a request takes and a replica gives.
        first: Time to the first token by parts, that of sending the cache included.
        token: Time of a token by parts.
        values: The answers that are numbers.
    """

    served: Served
    first: dict[str, float]
    token: dict[str, float]
    values: dict[str, float]


def run(  # noqa: PLR0913  # each is an axis of the question
    catalog: Catalog,
    *,
    model: str,
    on: str,
    tp: int | None = None,
    pp: int = 1,
    ep: int = 1,
    dp: int | None = None,
    batch: int = 1,
    prompt: int = 1024,
    output: int = 1024,
    schedule: Literal["continuous", "static"] = "continuous",
    chunk: int | None = None,
    dtype: str = "bf16",
    weights: str | None = None,
    kv: str | None = None,
    draft: str | None = None,
    acceptance: float = 0.7,
    speculate: int = 4,
    prefill_on: str | None = None,
    lnc: int | None = None,
    calibration: str = "auto",
) -> Evaluation:
    """The time to the first token and of every other, throughput, and the memory of a rank.

    Args:
        catalog: The catalog.
        model: The name of a model, such as llama-3.1-70b.
        on: A server, an UltraServer or a chip, and how many, such as trn2.48xlarge*2.
        tp: Tensor parallelism; when not given, as many ranks without a network between them as divide the heads.
        pp: Stages of the pipeline.
        ep: Expert parallelism: replicas that split the experts among themselves.
        dp: Replicas; all that the other degrees leave when not given.
        batch: Sequences that a replica decodes together.
        prompt: Tokens of a prompt.
        output: Tokens that are made of it.
        schedule: A request takes the place of one that is finished, or a batch begins and ends together.
        chunk: Tokens of a prompt that go along with a decoding step; all at once, and alone, when not given.
        dtype: What matrices are multiplied in.
        weights: What weights are stored in; as dtype when not given.
        kv: What the cache is stored in; as dtype when not given.
        draft: The name of a model that drafts tokens.
        acceptance: The chance that a drafted token is accepted.
        speculate: Tokens that are drafted at a time.
        prefill_on: Another system that computes the prompts and sends the cache.
        lnc: Physical cores of a logical core, which is a rank; 2 from Trainium2 on.
        calibration: The name of a calibration, auto for the chip's own, none for a bound.
    """
    question = Question(
        model=model, on=on, tp=tp, pp=pp, ep=ep, dp=dp, batch=batch, prompt=prompt, output=output, schedule=schedule,
        chunk=chunk, dtype=dtype, weights=weights, kv=kv, draft=draft, acceptance=acceptance, speculate=speculate,
        prefill_on=prefill_on, lnc=lnc,
    )  # fmt: skip
    graph = catalog.graph
    known = calibrated(graph, lower(graph, on, lnc=lnc).chip, "inference", calibration)
    elsewhere = None
    if prefill_on is not None:
        elsewhere = calibrated(graph, lower(graph, prefill_on).chip, "inference", calibration)
    return answered(catalog, question, known, elsewhere=elsewhere)


def answered(
    catalog: Catalog,
    question: Question,
    known: Calibrated,
    serving: Serving | None = None,
    elsewhere: Calibrated | None = None,
) -> Evaluation:
    """The answer to a question with what is achieved.

    Args:
        catalog: The catalog.
        question: The question.
        known: What is achieved of rates and links, and how sure that is.
        serving: What is achieved beside that; what the calibration says when left out.
        elsewhere: What is achieved where prompts are computed, if that is another system.
    """
    setup = prepare(catalog.graph, question, known, elsewhere)
    achieved = serving_of(known) if serving is None else serving
    held = memory(setup, setup.pool)
    most = max_batch(setup, setup.pool.system.capacity)
    for pool in filter(None, (setup.pool, setup.before)):
        _fits(setup, pool, most)
    slow, found, fast = (_found(setup, achieved, end) for end in (0, None, 1))
    q = setup.question
    return Evaluation(
        evaluator="inference",
        title=f"{setup.name} on {setup.pool.system.name}: tp {q.tp}, {q.dp} replica{'' if q.dp == 1 else 's'}, batch {q.batch}, "
        f"{q.prompt:,} tokens in, {q.output:,} out",
        inputs={**q.told(), "calibration": known.name or "none"},
        answers=tuple(_answers(setup, known, (slow, found, fast), held, most)),
        parts=tuple(_parts(found, held)),
        bottleneck=_binds(setup, achieved, found),
        assumptions=tuple(_assumptions(setup, known)),
        figures_used=_basis(setup),
        tables=(_table(setup, achieved, most),),
        edition=catalog.edition or "",
    )


def _fits(setup: Setup, pool: Pool, most: int) -> None:
    held = memory(setup, pool)
    capacity = pool.system.capacity
    if held.total <= capacity:
        return
    names = [n for n in _fields(held) if getattr(held, n)]
    told = ", ".join(f"{n} {getattr(held, n) / 2**30:,.2f}" for n in names)
    one = pool is not setup.pool or not most
    raise RefusalError(
        "does-not-fit",
        f"a rank of {pool.system.name} needs {held.total / 2**30:,.2f} GiB and has {capacity / 2**30:,.2f} ({told})",
        place=("tp" if pool is setup.pool else "prefill_on") if one else "batch",
        hint="more tp or pp, or narrower weights, would help" if one else f"a batch of {most} fits",
    )


def _fields(held: Memory) -> list[str]:
    return [f.name for f in attrs.fields(type(held))]


def _found(setup: Setup, serving: Serving, end: int | None = None) -> _Found:
    """The numbers of a case, at one end of the published figures or as they are printed."""
    pool, before = setup.pool, setup.before
    q = setup.question
    served = serve(
        setup.model, pool.plan, _numbers(pool, end), serving,
        schedule="separate" if before is not None else q.schedule, speculation=setup.speculation,
    )  # fmt: skip
    _known(served, pool)
    given, replicas = served.throughput, float(pool.plan.dp)
    first, sent, chips, rate = served.prefill, 0.0, pool.chips, float(given * replicas)
    extra: dict[str, float] = {}
    if before is not None:
        other = serve(setup.model, before.plan, _numbers(before, end), serving_of(before.known), schedule="static")
        _known(other, before)
        first, sent = other.prefill, _sent(setup, before, end)
        chips += before.chips
        prompts = other.prefill_rate * before.plan.dp
        finished = served.decode_rate * replicas
        rate = min(prompts, finished) * q.output
        extra = {"transfer_time": sent, "prefill_share": finished / (finished + prompts)}
    parts = {name: float(getattr(first, name)) for name in PARTS} | {"transfer": sent}
    token = {name: float(getattr(served.token, name)) for name in PARTS}
    token |= {"draft": float(served.draft), "waiting": float(served.prefill_interference)}
    until = float(first.total) + sent
    latency = until + (q.output - 1.0) * float(served.time_per_token)
    return _Found(
        served,
        parts,
        token,
        {
            "time_to_first_token": until,
            "time_per_output_token": float(served.time_per_token),
            "latency": latency,
            "throughput": rate,
            "throughput_per_chip": rate / chips,
            "step_at_first": float(served.token_time_at_start),
            "step_at_last": float(served.token_time_at_end),
            **extra,
        },
    )


def _numbers(pool: Pool, end: int | None) -> Machine:
    return pool.numbers if end is None else pool.ends[end]


def _known(served: Served, pool: Pool) -> None:
    if served.unknown > UNUSED:
        missing = next((level for level in pool.system.levels if not level.rate), None)
        link = "a link between servers" if missing is None else f"the links of the level {missing.name}"
        raise RefusalError(
            "unknown-figure",
            f"the layout needs {link} of {pool.system.name}, whose rate is not published",
            place="" if missing is None else missing.place,
        )


def _sent(setup: Setup, before: Pool, end: int | None) -> float:
    size = (
        setup.model.layers
        * setup.model.kv_elements
        * before.plan.cache_bytes
        * attended(setup.model, before.plan.prompt)
    )
    which = 0 if end is None else end + 1
    levels = [pool.network[which] for pool in (before, setup.pool)]
    sending, receiving = (level.rate * pool.ranks for level, pool in zip(levels, (before, setup.pool), strict=True))
    return float(transfer_time(size, sending, receiving, max(level.latency for level in levels)))


_TOLD = {
    "latency": "from prompt to last token",
    "throughput": "output tokens, all replicas",
    "step_at_first": "of the second token, undisturbed",
    "step_at_last": "of the last token, undisturbed",
    "transfer_time": "of the cache of one prompt",
    "prefill_share": "of equal replicas, how many compute prompts when neither pool waits",
}
_OF_TOKENS = ("time_per_output_token", "step_at_first", "step_at_last")
"""What does not wait for a prompt of its own."""

_TIMED = ("time_to_first_token", "time_per_output_token", "throughput")
"""What tells how sure it is; the others are as sure."""

_UNITS = {"throughput": "tokens/s", "throughput_per_chip": "tokens/s", "prefill_share": ""}


def _answers(
    setup: Setup, known: Calibrated, cases: tuple[_Found, _Found, _Found], held: Memory, most: int
) -> Iterator[Answer]:
    slow, found, fast = (case.values for case in cases)
    prompts = known if setup.before is None else setup.before.known
    for name, value in found.items():
        unit = _UNITS.get(name, "s")
        ends = sorted((slow[name], value, fast[name]))
        low: float | None = ends[0]
        high: float | None = ends[-1]
        used = [prompts] if name == "time_to_first_token" else [known] if name in _OF_TOKENS else [prompts, known]
        bound = not all(each.coverage for each in used)
        # The spread of a calibration is measured over computed time, that of prompts apart from that of tokens.
        if name == "transfer_time":
            high = None
        elif unit == "s":
            shares = [_shares(prompts, known, case, name) for case in (fast, slow)]
            # Without a calibration nobody knows how much longer it takes.
            low, high = ends[0] * shares[0][0], None if bound else ends[-1] * shares[1][1]
        elif unit == "tokens/s":
            shares = [_shares(prompts, known, case, "latency") for case in (fast, slow)]
            low, high = None if bound else ends[0] / shares[1][1], ends[-1] / shares[0][0]
        sure = "a bound: nothing is lost" if bound else f"{min(each.coverage for each in used):.0%} of measurements"
        told = "; ".join(filter(None, (_TOLD.get(name, ""), sure if name in _TIMED else "")))
        yield Answer(name, value, unit, low, high, told)
    yield Answer("memory", float(held.total), "B", note="of the rank that needs the most")
    yield Answer("capacity", setup.pool.system.capacity, "B", note="of a rank")
    each = float(cache_bytes(setup.model, setup.pool.plan.cache_bytes))
    yield Answer("kv_per_token", each, "B", note="of one sequence, all layers and ranks, no head twice")
    yield Answer("max_batch", most, note="sequences of a replica that fit")


def _shares(prompts: Calibrated, known: Calibrated, values: dict[str, float], name: str) -> tuple[float, float]:
    """Measured over computed at both ends: of a time of prompts, of tokens, or of both together."""
    first = prompts.ttft_interval or (prompts.low, prompts.high)
    if name in _OF_TOKENS:
        return known.low, known.high
    part = values["time_to_first_token"] / values[name]
    return (
        first[0] * part + known.low * (1.0 - part),
        first[1] * part + known.high * (1.0 - part),
    )


def _parts(found: _Found, held: Memory) -> Iterator[Part]:
    for of, parts in (("time_per_output_token", found.token), ("time_to_first_token", found.first)):
        for name, value in parts.items():
            if value:
                yield Part(of, name, value, NOTES[name])
    for name in _fields(held):
        if getattr(held, name):
            yield Part("memory", name, float(getattr(held, name)))


def _binds(setup: Setup, serving: Serving, found: _Found) -> str:
    name, value = max(found.token.items(), key=lambda item: item[1])
    share = f"{value / found.values['time_per_output_token']:.0%} of the time of a token"
    if name not in ("matrices", "attention", "head"):
        return f"{NOTES[name]} ({share})"
    # Where computing took no time and the part is as long as before, reading binds.
    free = evolve(setup.pool, numbers=evolve(setup.pool.numbers, flop=0.0, score=0.0))
    read = _found(evolve(setup, pool=free), serving).token[name]
    what = {"matrices": "weights", "attention": "the cache", "head": "the output matrix"}[name]
    doing = f"reading {what} from device memory" if read > 0.5 * value else f"computing with {what}"
    return f"{doing} ({share})"


def _assumptions(setup: Setup, known: Calibrated) -> Iterator[Assumption]:
    pool, q, model = setup.pool, setup.question, setup.model
    system, plan = pool.system, pool.plan
    ranks = f"a logical core of {int(system.lnc)} physical cores" if system.lnc else "a chip"
    yield Assumption("rank", f"{ranks}, {int(system.ranks_per_chip)} a chip", "the question, or the chip's default")
    yield from idle(setup)
    yield Assumption("calibration", known.name or "none", known.description)
    yield Assumption("weights", f"{plan.weight_bytes:g} B", q.weights or f"as dtype, {q.dtype}")
    yield Assumption("cache", f"{plan.cache_bytes:g} B an element", q.kv or f"as dtype, {q.dtype}")
    yield Assumption("activations", f"{plan.activation_bytes:g} B", "16 bit where weights are narrower")
    yield Assumption("roofline", "the longer of computing and reading", "matrices, attention and output, each alone")
    if cache_share(model, plan.tp) * plan.tp > 1.0:
        yield Assumption(
            "kv_heads", f"{model.kv_heads:g} over tp {plan.tp:g}", "a rank keeps whole heads: repeated, or padded"
        )
    if model.kv_elements != model.kv_heads * (setup.dims.qk_size + setup.dims.v_size):
        yield Assumption("latent_attention", "scores as for whole keys", "multiplying latent vectors takes more FLOP")
    if head_share(model, plan.tp) * plan.tp > 1.0:
        yield Assumption("heads", "padded", f"{model.heads:g} heads do not divide by tp {plan.tp:g}")
    if model.routed:
        yield Assumption("experts", "chosen evenly and independently", "of E experts 1 - (1 - k/E)^T are read")
    if setup.speculation is not None:
        yield Assumption("acceptance", f"{q.acceptance:g}", "the same for each drafted token")
    if setup.dims.context < q.prompt + q.output:
        yield Assumption("context", f"{setup.dims.context:,.0f} tokens", "made for fewer than are asked for")
    for level in system.levels:
        rate = f"{level.rate / 1e9:,.4g} GB/s a rank and direction" if level.rate else "not published"
        yield Assumption(f"link_{level.name}", rate, f"{level.link}, {level.place}")
    if setup.before is not None:
        told = setup.before
        yield Assumption("prefill_calibration", told.known.name or "none", told.known.description)
        yield Assumption(
            "prefill_layout",
            f"tp {told.plan.tp:g} x pp {told.plan.pp:g} x dp {told.plan.dp:g}",
            "default of that system",
        )


def _basis(setup: Setup) -> tuple[UsedFigure, ...]:
    """The figures it rests on; of the rates only that of the type."""
    read = [*setup.pool.system.figures_used, *(setup.before.system.figures_used if setup.before is not None else ())]
    wanted = f".{setup.question.dtype}"
    return tuple(
        dict.fromkeys(b for b in read if b.at != "host.memory" and (".dense." not in b.at or b.at.endswith(wanted)))
    )


def _table(setup: Setup, serving: Serving, most: int) -> Table:
    """The trade between the time of a token and throughput: batches up to the largest that fits."""
    names = ("time_to_first_token", "time_per_output_token", "throughput", "throughput_per_chip")
    batches = sorted({1 << i for i in range(most.bit_length())} | {most})
    rows: list[tuple[Value | None, ...]] = []
    for batch in batches:
        one = setup.with_batch(batch)
        values = _found(one, serving).values
        rows.append((batch, *(values[n] for n in names), float(memory(one, one.pool).total)))
    return Table("By batch", ("batch", *names, "memory"), tuple(rows), ("", "s", "s", "tokens/s", "tokens/s", "B"))
