"""Serving: time to first token (TTFT), time per output token (TPOT), throughput and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import asdict, evolve, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table, Value
from trnspec.evaluators import deployment
from trnspec.evaluators.collective_model import tensor_all_reduce
from trnspec.evaluators.software import system_assumptions
from trnspec.evidence import Kind, weakest
from trnspec.perf.calibration.fit_range import far_inputs, nearest_row, of_deployment, scale_of, serving_inputs
from trnspec.perf.frameworks import SERVING
from trnspec.perf.lowering.calibrated import Calibrated, serving_of
from trnspec.perf.lowering.lower import lower
from trnspec.perf.ops import Number, smaller, where
from trnspec.perf.serving.forward_pass import PARTS, Serving, cache_bytes, kept_bytes
from trnspec.perf.serving.in_flight import in_flight, most_running
from trnspec.perf.serving.request import Served, chosen, serve, transfer_time
from trnspec.perf.training.step import UNUSED
from trnspec.perf.work.memory import RankMemory
from trnspec.perf.work.transformer import whole_heads

NOTES = {
    "matrices": "weight matrices of the layers: compute, or reading them",
    "attention": "scores and values: compute, or reading the KV cache",
    "head": "output matrix and sampling",
    "tensor": "tensor-parallel all-reduces, two per layer, and gathering logits",
    "expert": "all-to-all of tokens between experts",
    "pipeline": "messages between stages",
    "launch": "fixed time per layer",
    "fixed": "fixed time per pass, independent of the model",
    "draft": "decode steps of the draft model",
    "prefill_interference": "prefill of other requests",
    "transfer": "KV cache from the prefill to the decode pool",
    "queueing": "steps that the prompt joins, prompts ahead of it, and requests beyond those that fit",
    "response": "client, tokenizer and scheduler",
}
"""The parts of TTFT and TPOT."""


@frozen
class ServingNumbers:
    """The numbers of one case: nominal figures, or one end of their intervals.

    Attributes:
        first: TTFT by parts, the KV-cache transfer included.
        token: TPOT by parts.
        values: The answers that are numbers.
        unknown: For each pool a number above 0 where a link is used whose rate is not published.
    """

    first: dict[str, Number]
    token: dict[str, Number]
    values: dict[str, Number]
    unknown: tuple[tuple[Number, deployment.Pool], ...] = ()


def run(catalog: Catalog, question: deployment.InferenceQuestion) -> Evaluation:
    """Estimate time to first token (TTFT), time per output token (TPOT), throughput, and memory per rank.

    Raises:
        RefusalError: The layout is invalid or does not fit, or a figure is not published.

    Examples:
        Llama 3.1 70B on one Trn2 server, 16 sequences per replica:

            trnspec eval inference --model llama-3.1-70b --on trn2.48xlarge --batch 16

        Chunked prefill with an FP8 KV cache, for several batch sizes:

            trnspec eval inference --model llama-3.1-8b --on trn2.48xlarge --tp 8
            --batch 8,16,32 --prompt 4096 --output 512 --chunk 512 --kv-dtype fp8

        Experts and padding as NxD Inference compiles them:

            trnspec eval inference --model qwen3-30b-a3b --on trn2.48xlarge --tp 32 --batch 8
            --framework nxd-inference
    """
    question.check_draft()
    graph, q = catalog.graph, question
    known = deployment.calibration_of(graph, q, lower(graph, q.on, lnc=q.lnc, chips=q.chips).chip)
    elsewhere = None if q.prefill_on is None else deployment.calibration_of(graph, q, lower(graph, q.prefill_on).chip)
    setup = deployment.prepare(graph, question, known, elsewhere)
    dims, experts = setup.dims, setup.dims.experts > 0

    def at(pool: deployment.Pool, known: Calibrated) -> Calibrated:
        scale, inputs = scale_of(pool.system, float(pool.plan.tp * pool.plan.pp)), serving_inputs(dims, pool.plan)
        found = known.at(inputs, question.dtype, scale=scale, experts=experts)
        far = far_inputs(graph, known.name, of_deployment(inputs, dims, pool.plan), experts=experts)
        return evolve(found, evidence=found.evidence.without_row(far))

    known, inputs = at(setup.pool, known), serving_inputs(dims, setup.pool.plan)
    row = nearest_row(
        graph, known.name, inputs, setup.name,
        chip=setup.pool.system.chip, dtype=question.dtype, experts=experts,
    )  # fmt: skip
    known = evolve(known, evidence=evolve(known.evidence, nearest=row))
    if (before := setup.before) is not None:
        setup = evolve(setup, before=evolve(before, known=at(before, before.known)))
    achieved = serving_of(known)
    held = deployment.memory(setup, setup.pool)
    most = deployment.max_batch(setup, setup.pool.capacity)
    for pool in filter(None, (setup.pool, setup.before)):
        _fits(setup, pool, most)
    slow, nominal, fast = (_case(one, achieved) for one in (setup.at(0), setup, setup.at(1)))
    q, pool = setup.question, setup.pool
    unused = dict.fromkeys(("acceptance", "speculate") if q.draft is None else ())
    plan = pool.plan
    buffer = float(plan.batch / plan.pp * float(setup.model.hidden) * plan.activation_bytes)
    evidence = weakest([known.evidence] if setup.before is None else [known.evidence, setup.before.known.evidence])
    answers = tuple(_answers(setup, known, (slow, nominal, fast), held, most))
    if evidence.kind in ("extrapolated", "transferred"):
        ideal = _ideal(catalog, question)
        least = {a.name.removeprefix("ideal_"): a.low or 0.0 for a in ideal}
        # No losses is a bound; the spread of other chips and software may be wider.
        answers = (
            *(
                evolve(a, low=min(max(a.low or 0.0, least[a.name]), float(a.value))) if a.name in least else a
                for a in answers
            ),
            *ideal,
        )
    return Evaluation(
        evaluator="inference",
        title=f"{setup.name} on {setup.pool.system.name}: tp {q.tp}, {q.dp} replica{'' if q.dp == 1 else 's'}, batch {q.batch}, "
        f"prompt {q.prompt:,}, output {q.output:,} tokens",
        inputs={**q.values(), **unused, "calibration": known.name or "none"},
        answers=answers,
        evidence=evidence,
        parts=tuple(_parts(nominal, held)),
        bottleneck=_bottleneck(setup, achieved, nominal),
        assumptions=(
            *_assumptions(setup, known),
            *(
                tensor_all_reduce(graph, pool.system, pool.numbers, int(plan.tp), buffer, achieved, q.framework or "")
                if achieved.call
                else ()
            ),
        ),
        figures_used=tuple(
            dict.fromkeys(
                figure
                for pool in (setup.pool, setup.before)
                for figure in (() if pool is None else pool.system.figures_with(q.dtype))
                if figure.at != "host.memory"
            )
        ),
        tables=(_table(setup, achieved, most),),
    )


def _ideal(catalog: Catalog, question: deployment.InferenceQuestion) -> tuple[Answer, ...]:
    """Times without losses, as bounds next to estimates that are not of this chip, software or range."""
    setup = deployment.prepare(catalog.graph, question, Calibrated(), Calibrated())
    nominal, fast = (_case(one, serving_of(Calibrated())).values for one in (setup, setup.at(1)))
    note = "no losses: lower bound on time"
    return tuple(
        Answer(f"ideal_{name}", nominal[name], "s", min(nominal[name], fast[name]), note=note, kind="ideal")
        for name in ("time_to_first_token", "time_per_output_token")
    )


def _fits(setup: deployment.Setup, pool: deployment.Pool, most: int) -> None:
    held = deployment.memory(setup, pool)
    capacity = pool.capacity
    if held.total <= capacity:
        return
    sizes = {name.replace("_", " "): f"{size / 2**30:,.2f}" for name, size in asdict(held).items()}
    parts = ", ".join(f"{n} {size}" for n, size in sizes.items() if size != "0.00")
    one = pool is not setup.pool or not most
    raise RefusalError(
        "does-not-fit",
        f"a rank of {pool.system.name} needs {held.total / 2**30:,.2f} GiB and has {capacity / 2**30:,.2f} GiB ({parts})",
        place=("tp" if pool is setup.pool else "prefill_on") if one else "batch",
        hint="a larger tp or pp, or a narrower weight_dtype" if one else f"batch {most} fits",
    )


def _case(setup: deployment.Setup, serving: Serving) -> ServingNumbers:
    """The numbers of a case.

    Raises:
        RefusalError: The layout needs a link whose rate is not published.
    """
    case = case_of(setup, serving)
    for unknown, pool in case.unknown:
        if unknown > UNUSED:
            raise pool.system.unknown_link()
    first, token, values = (
        {name: float(number) for name, number in numbers.items()} for numbers in (case.first, case.token, case.values)
    )
    return ServingNumbers(first, token, values)


def case_of(setup: deployment.Setup, serving: Serving) -> ServingNumbers:
    """The numbers of a deployment of floats or arrays; see :meth:`~trnspec.evaluators.deployment.Setup.of`."""
    pool, before = setup.pool, setup.before
    q = setup.question
    served = serve(
        setup.model, pool.plan, pool.numbers, serving,
        schedule="separate" if before is not None else q.batching or "continuous", speculation=setup.speculation,
        bound=not pool.known.name,
    )  # fmt: skip
    waits: dict[str, Number] = {"queueing": served.waiting}
    flying = setup.in_flight
    if flying is not False:
        alone, others = _in_flight(setup, serving)
        served = chosen(flying, alone, served)
        waits = {name: where(flying, wait, waits.get(name, 0.0)) for name, wait in others.items()}
    unknown = [(served.unknown, pool)]
    given, replicas = served.throughput, pool.plan.dp
    first, sent, chips, rate = served.prefill, 0.0, pool.chips, given * replicas
    per_chip = given * (replicas / chips)
    extra: dict[str, Number] = {}
    if before is not None:
        other = serve(setup.model, before.plan, before.numbers, serving_of(before.known), schedule="static")
        unknown.append((other.unknown, before))
        first, sent = other.prefill, transfer(setup, before)
        chips = chips + before.chips
        prompts = other.prefill_rate * before.plan.dp
        finished = served.decode_rate * replicas
        rate = smaller(prompts, finished) * pool.plan.output
        per_chip = rate / chips
        extra = {"transfer_time": sent, "prefill_decode_ratio": finished / prompts}
    parts = {name: getattr(first, name) for name in PARTS} | {"transfer": sent} | waits
    token = {name: getattr(served.token, name) for name in PARTS}
    token |= {"draft": served.draft, "prefill_interference": served.prefill_interference}
    until = first.total + sent + sum(waits.values(), 0.0)
    values = {
        "time_to_first_token": until,
        "time_per_output_token": served.time_per_token,
        "latency": until + (pool.plan.output - 1.0) * served.time_per_token,
        "throughput": rate,
        "throughput_per_chip": per_chip,
        "step_at_first": served.token_time_at_start,
        "step_at_last": served.token_time_at_end,
        **extra,
    }
    return ServingNumbers(parts, token, values, tuple(unknown))


def _in_flight(setup: deployment.Setup, serving: Serving) -> tuple[Served, dict[str, Number]]:
    """A server whose clients keep ``batch`` requests in flight, and the other parts of TTFT than prefill [s]."""
    plan, numbers, q = setup.pool.plan, setup.pool.numbers, setup.question
    assert q.framework is not None
    most = most_running(setup.model, plan, numbers)
    flight = in_flight(
        setup.model, plan, numbers, serving, requests=plan.batch, most=most, mixed=float(SERVING[q.framework].mixed)
    )
    alone = serve(setup.model, evolve(plan, batch=flight.running), numbers, serving, schedule="static")
    served = evolve(
        alone,
        prefill_interference=flight.tpot - flight.step,
        time_per_token=flight.tpot,
        throughput=flight.throughput,
    )
    response = serving.response
    return served, {"queueing": flight.ttft - alone.prefill.total - response, "response": response}


def transfer(setup: deployment.Setup, before: deployment.Pool) -> Number:
    """The time to send the KV cache of one prompt from a pool that prefills [s]."""
    size = kept_bytes(setup.model, before.plan.prompt, before.plan.cache_bytes)
    sending, receiving = (pool.network[0].rate * pool.ranks for pool in (before, setup.pool))
    return transfer_time(size, sending, receiving, max(pool.network[0].latency for pool in (before, setup.pool)))


_ANSWERS = {
    "time_to_first_token": ("s", "prefill", "TTFT"),
    "time_per_output_token": ("s", "decode", "TPOT"),
    "latency": ("s", "both", "end to end, of one request"),
    "throughput": ("tokens/s", "both", "output tokens, all replicas"),
    "throughput_per_chip": ("tokens/s", "both", ""),
    "step_at_first": ("s", "decode", "decode step of the second token, without prefill interference"),
    "step_at_last": ("s", "decode", "decode step of the last token, without prefill interference"),
    "transfer_time": ("s", "network", "KV cache of one prompt"),
    "prefill_decode_ratio": ("", "both", "prefill : decode replicas at balance"),
}
"""Unit, phase that it is the time of, and note of each answer."""
_COVERED = ("time_to_first_token", "time_per_output_token", "throughput")
"""The answers whose note states what the interval covers."""


def _answers(
    setup: deployment.Setup,
    known: Calibrated,
    cases: tuple[ServingNumbers, ServingNumbers, ServingNumbers],
    held: RankMemory,
    most: int,
) -> Iterator[Answer]:
    slow, nominal, fast = (case.values for case in cases)
    prompts = known if setup.before is None else setup.before.known
    for name, value in nominal.items():
        unit, phase, note = _ANSWERS[name]
        used = {"prefill": [prompts], "decode": [known]}.get(phase, [prompts, known])
        bound = not all(u.coverage for u in used)
        low, *_, high = sorted((slow[name], value, fast[name]))
        # The spread of a calibration is that of measured over computed times, of prefill and of decode. Without one the
        # losses, and so the other end of the interval, are unknown.
        of = name if unit == "s" and phase != "network" else "latency"
        (least, _), (_, largest) = (_shares(prompts, known, case, of) for case in (fast, slow))
        if phase == "network":
            ends = low, None
        elif unit == "s":
            ends = low * least, None if bound else high * largest
        elif unit == "tokens/s":
            ends = None if bound else low / largest, high / least
        else:
            ends = low, high
        ideal = "upper bound on throughput" if unit == "tokens/s" else "lower bound on time"
        cover = f"ideal (no losses): {ideal}" if bound else f"{min(u.coverage for u in used):.0%} of measurements"
        note = "; ".join(filter(None, (note, cover if name in _COVERED else "")))
        kind: Kind = "ideal" if phase == "network" else weakest(u.evidence for u in used).kind
        yield Answer(name, value, unit, *ends, note, kind)
    yield Answer("memory", float(held.total), "B", note="of the rank that needs most")
    yield Answer("capacity", setup.pool.capacity, "B", note="per rank")
    size = float(cache_bytes(setup.model, setup.pool.plan.cache_bytes))
    yield Answer("kv_per_token", size, "B", note="KV cache of one token, all layers and ranks, without replication")
    yield Answer("max_batch", most, note="sequences per replica that fit")


def _shares(prompts: Calibrated, known: Calibrated, values: Mapping[str, float], name: str) -> tuple[float, float]:
    """Measured over computed time at both ends: of prefill, of decode, or of both together."""
    first = prompts.ttft_interval or (prompts.low, prompts.high)
    part = 0.0 if _ANSWERS[name][1] == "decode" else values["time_to_first_token"] / values[name]
    low, high = (end * part + other * (1.0 - part) for end, other in zip(first, (known.low, known.high), strict=True))
    return low, high


def _parts(case: ServingNumbers, held: RankMemory) -> Iterator[Part]:
    for of, parts in (("time_per_output_token", case.token), ("time_to_first_token", case.first)):
        for name, value in parts.items():
            if value:
                yield Part(of, name, value, NOTES[name])
    yield from (Part("memory", name, float(size)) for name, size in asdict(held).items() if size)


def _bottleneck(setup: deployment.Setup, serving: Serving, case: ServingNumbers) -> str:
    name, value = max(case.token.items(), key=lambda item: item[1])
    share = f"{value / case.values['time_per_output_token']:.0%} of TPOT"
    if name not in ("matrices", "attention", "head"):
        kind = "network-bound: " if name in ("tensor", "expert", "pipeline") else ""
        return f"{kind}{NOTES[name]} ({share})"
    # If the part takes as long with free compute, reading is the bottleneck.
    free = evolve(setup.pool, numbers=evolve(setup.pool.numbers, seconds_per_flop=0.0, score=0.0))
    read = _case(evolve(setup, pool=free), serving).token[name]
    what = {"matrices": "weights", "attention": "the KV cache", "head": "the output matrix"}[name]
    kind = f"HBM-bound: reading {what}" if read > 0.5 * value else f"compute-bound: multiplying with {what}"
    return f"{kind} ({share})"


def _assumptions(setup: deployment.Setup, known: Calibrated) -> Iterator[Assumption]:
    pool, q, model = setup.pool, setup.question, setup.model
    plan = pool.plan
    rank, *links = system_assumptions(pool.system)
    yield rank
    yield from deployment.idle(setup)
    yield from setup.software.assumptions(q)
    if plan.compiled_batch > plan.batch:
        yield Assumption("compiled_batch", f"{plan.compiled_batch:g} sequences", "the batch is padded to its bucket")
    if plan.cached:
        yield Assumption(
            "prefix", f"{plan.cached:,.0f} of {plan.prompt:,.0f} tokens", "cached; not computed in prefill"
        )
    yield Assumption("calibration", known.name or "none", known.description)
    yield Assumption("weights", f"{plan.weight_bytes:g} B per element", q.weight_dtype or f"compute dtype {q.dtype}")
    yield from _on_gpus(setup)
    yield Assumption("cache", f"{plan.cache_bytes:g} B per element", q.kv_dtype or f"compute dtype {q.dtype}")
    yield Assumption("activations", f"{plan.activation_bytes:g} B per element", "at least 16 bit")
    yield Assumption("reserve", q.reserve or "", "memory of a rank that the model cannot use; included in memory")
    yield Assumption("roofline", "maximum of compute and read time", "of matrices, attention and output, each")
    kv_heads = [model.kv_heads] if not model.local_scores else sorted({model.kv_heads, model.local_kv_heads})
    if any(heads % plan.tp for heads in kv_heads):
        counts = " and ".join(f"{heads:g}" for heads in kv_heads)
        yield Assumption(
            "kv_heads", f"{counts} over tp {plan.tp:g}", "a rank stores whole heads: replicated, or padded"
        )
    if setup.dims.rank:
        yield Assumption(
            "latent_attention",
            f"{model.absorbed / model.heads:g} elements per pair and head in decoding",
            f"absorbed up-projections; {model.scores / model.heads:g} in prefill, which expands keys and values",
        )
    if whole_heads(model.heads, plan.tp) * plan.tp > 1.0:
        yield Assumption("heads", "padded", f"{model.heads:g} heads are not divisible by tp {plan.tp:g}")
    if model.routed:
        yield from _of_experts(setup)
    if setup.speculation is not None:
        yield Assumption("acceptance", f"{q.acceptance:g}", "the same for each draft token")
    if setup.dims.context < q.prompt + q.output:
        yield Assumption(
            "context",
            f"{setup.dims.context:,.0f} tokens",
            "the model was trained for fewer tokens than prompt + output",
        )
    yield from links
    if setup.before is not None:
        before = setup.before
        yield Assumption("prefill_calibration", before.known.name or "none", before.known.description)
        yield Assumption(
            "prefill_layout",
            f"tp {before.plan.tp:g} x pp {before.plan.pp:g} x dp {before.plan.dp:g}",
            "default of the prefill system",
        )


def _of_experts(setup: deployment.Setup) -> Iterator[Assumption]:
    """Routing and dispatch of tokens to experts."""
    plan, q = setup.pool.plan, setup.question
    read = "of E experts 1 - (1 - k/E)^T are read"
    if plan.all_experts_from:
        read = f"all are read and computed from {plan.all_experts_from:g} tokens on; with fewer those of each token"
    yield Assumption("routing", "balanced, independent", read)
    if plan.ep > 1.0:
        overlap = "overlapped between halves of a batch where faster" if plan.expert_overlap else "exposed"
        value = f"{q.dispatch or 'per-node'}, {overlap}, in {q.dispatch_dtype}"
        value += f", at most {q.node_limit} nodes" if q.node_limit else ""
        why = "the input dispatch" if q.dispatch else "one copy per node is the least that software can send"
        yield Assumption("dispatch", value, f"{why}; results return in 16 bit")


def _on_gpus(setup: deployment.Setup) -> Iterator[Assumption]:
    """Assumptions about servers on GPUs; none on Neuron devices."""
    plan = setup.pool.plan
    if plan.head_bytes > plan.weight_bytes:
        which = "output matrix, and all but routed experts" if plan.whole_bytes else "output matrix"
        yield Assumption("wide_weights", f"{plan.head_bytes:g} B per element", f"{which}: in 16 bit in checkpoints")
    if setup.in_flight:
        yield Assumption("framework", str(setup.question.framework), "as given, or that of the calibration")
        why = "a client replaces each finished request; TTFT includes queueing and the response of the server"
        yield Assumption("in_flight", f"{plan.batch:,.0f} requests per replica", why)


def _table(setup: deployment.Setup, serving: Serving, most: int) -> Table:
    """Latency against throughput: batch sizes up to the largest that fits."""
    names = ("time_to_first_token", "time_per_output_token", "throughput", "throughput_per_chip")
    batches = sorted({1 << i for i in range(most.bit_length())} | {most})
    rows: list[tuple[Value | None, ...]] = []
    for batch in batches:
        one = setup.with_batch(batch)
        values = _case(one, serving).values
        rows.append((batch, *(values[n] for n in names), float(deployment.memory(one, one.pool).total)))
    return Table(
        "Latency and throughput by batch size",
        ("batch", *names, "memory"),
        tuple(rows),
        ("", "s", "s", "tokens/s", "tokens/s", "B"),
        first_rows=0,
    )
