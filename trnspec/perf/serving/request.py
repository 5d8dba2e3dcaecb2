"""Serving a request: prefill and decoding combined into latency and throughput of a replica.

``docs/explanation/performance/serving.md`` derives the formulas.  Times are in s, rates in tokens/s.
"""

from __future__ import annotations

from typing import Any, TypeVar

from attrs import evolve, fields, frozen

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number, larger, smaller, where
from trnspec.perf.serving.decode import contexts_of_ends, decode, mean_context, speculate, token_load
from trnspec.perf.serving.forward_pass import Deployment, PassTime, Serving, run_forward
from trnspec.perf.serving.prefill import prefill, prompt_load, repeat
from trnspec.perf.work.transformer import Transformer

SCHEDULES = ("continuous", "static", "separate")
"""Sharing of ranks by prefill and decoding; see :func:`serve`."""


@frozen(kw_only=True)
class Speculation:
    """Speculative decoding with a draft model.

    Attributes:
        model: The draft model.
        drafted: Tokens that it drafts per verification.
        acceptance: Probability that a drafted token is accepted.
    """

    model: Transformer
    drafted: Number
    acceptance: Number


@frozen(kw_only=True)
class Served:
    """Latency of a request and throughput of a replica.

    Attributes:
        prefill: Prefill up to the first token, by parts [s].
        token: A decoding step averaged over the output, by parts [s]; without draft and prefill interference.
        draft: Time that the draft model adds per token [s].
        prefill_interference: Time that prefill of other requests adds per token [s].
        time_per_token: Time per output token, all included [s].
        token_time_at_start: Time of the second token, without prefill interference [s].
        token_time_at_end: Time of the last token, without prefill interference [s].
        waiting: Time before the own prompt, for chunks of others that join none of its decoding steps [s].
        latency: Time from prompt to last token [s], without waiting.
        throughput: Output rate of one replica [tokens/s].
        prefill_rate: Prompts that a replica prefills when it does nothing else, with all stages busy [1/s].
        decode_rate: Requests that a replica decodes when it does nothing else [1/s].
        unknown: Above 0 where a link is used whose rate is not published.
    """

    prefill: PassTime
    token: PassTime
    draft: Number
    prefill_interference: Number
    time_per_token: Number
    token_time_at_start: Number
    token_time_at_end: Number
    waiting: Number
    latency: Number
    throughput: Number
    prefill_rate: Number
    decode_rate: Number
    unknown: Number


def serve(
    model: Transformer,
    plan: Deployment,
    machine: Machine,
    serving: Serving,
    *,
    schedule: str = "continuous",
    speculation: Speculation | None = None,
    bound: bool = False,
) -> Served:
    """Latency and throughput in the steady state.

    ``static``: a batch is prefilled together, then decoded together.  ``continuous``: a new request replaces a finished
    one; while one request is decoded all others are replaced once, so ``B - 1`` prefills interrupt it.  The chunks of a
    prompt run together with decoding steps, each of which they prolong (Agrawal et al. 2023); a request waits for those beyond
    its steps.  ``separate``: prefill runs on other ranks.

    A bound holds for every order in which prompts and tokens are computed.  TPOT has no prefill interference, as prompts
    may be computed before decoding.  For the throughput the prompts of a batch are packed into the passes of one
    decoding step, or into all steps in equal parts, whichever takes less.

    Args:
        model: The transformer.
        plan: The deployment.
        machine: Compute and communication of a rank.
        serving: Achieved efficiency.
        schedule: One of :data:`SCHEDULES`.
        speculation: The draft model, if any.
        bound: Whether the times are to be bounds.
    """
    prefilled = prefill(model, plan, machine, serving)
    decoded = plan.output - 1.0
    has_decode = decoded > 0.0
    steps = where(has_decode, decoded, 1.0)
    context = mean_context(model, plan)
    step, token, draft, unknown = decoded_token(model, plan, machine, serving, speculation, context)
    extremes = [decoded_token(model, plan, machine, serving, speculation, end) for end in contexts_of_ends(model, plan)]
    own_time = token.total + draft
    interruption, waiting = prefilled.total, 0.0 * prefilled.total
    new_tokens = 1.0 if speculation is None else speculation.drafted + 1.0
    tokens = token_load(model, plan, serving, context, new_tokens)

    def joined(prompts: Number) -> PassTime:
        """A pass with the decoded tokens, and a chunk of some prompts."""
        load = prompt_load(model, evolve(plan, prompts=prompts), serving) + tokens
        return run_forward(model, plan, machine, serving, load)

    if schedule == "continuous" and not bound:
        # A prompt in one pass stops decoding; chunks and decoded tokens share passes.
        mixed = joined(plan.prompts)
        added = plan.passes * larger(mixed.total - step.total, 0.0) + serving.request
        chunked = plan.passes > 1.0
        # A step takes one chunk: the chunks of other prompts beyond the steps of a request are passes before its own prompt.
        joining = where(chunked, smaller(steps * plan.pp / larger((plan.batch - 1.0) * plan.passes, 1.0), 1.0), 1.0)
        waiting = (1.0 - joining) * (plan.batch - 1.0) * prefilled.total / plan.pp
        interruption = where(chunked, joining * added, interruption)
        prefilled = chosen(chunked & (plan.batch > 1.0), repeat(mixed, plan.passes, serving.request), prefilled)
    # A prompt occupies one stage at a time; the others continue.
    interruptions = where(has_decode, (plan.batch - 1.0) / (plan.pp * steps), 0.0)
    interference = interruption * interruptions if schedule == "continuous" and not bound else 0.0 * own_time
    per_token = own_time + interference
    latency = prefilled.total + decoded * per_token
    busy, output_tokens = latency, plan.output
    if schedule == "separate":
        busy, output_tokens = where(has_decode, decoded * per_token, 1.0), decoded
    if schedule == "continuous" and not bound:
        # Without decoding prompts follow each other.
        busy = where(has_decode, latency + waiting, plan.batch * prefilled.total / plan.pp)
    elif schedule == "continuous":
        at_once = plan.passes * larger(joined(plan.batch).total - step.total, 0.0)
        evenly = steps * larger(joined(plan.batch * plan.passes / steps).total - step.total, 0.0)
        packed = run_forward(
            model, plan, machine, serving, prompt_load(model, evolve(plan, prompts=plan.batch), serving)
        )
        prompts = where(has_decode, smaller(at_once, evenly), plan.passes * packed.total)
        # A single request does not decode while its prompt is computed.
        busy = where(plan.batch > 1.0, decoded * own_time + prompts / plan.pp, latency)
    throughput = plan.batch * output_tokens / busy
    return Served(
        prefill=prefilled,
        token=token,
        draft=draft,
        prefill_interference=interference,
        time_per_token=per_token,
        token_time_at_start=extremes[0][1].total + extremes[0][2],
        token_time_at_end=extremes[1][1].total + extremes[1][2],
        waiting=waiting,
        latency=latency,
        throughput=throughput,
        prefill_rate=plan.pp * plan.prompts * plan.rounds / prefilled.total,
        decode_rate=plan.batch / (steps * own_time),
        unknown=prefilled.unknown + unknown,
    )


R = TypeVar("R", PassTime, Served)


def chosen(condition: Number, then: R, otherwise: R) -> R:
    """``then`` where a condition holds, else ``otherwise``, number by number."""
    if condition is True or condition is False:
        return then if condition else otherwise
    numbers: dict[str, Any] = {}
    for one in fields(type(then)):
        a, b = getattr(then, one.name), getattr(otherwise, one.name)
        numbers[one.name] = chosen(condition, a, b) if isinstance(a, PassTime) else where(condition, a, b)
    return type(then)(**numbers)


def decoded_token(
    model: Transformer,
    plan: Deployment,
    machine: Machine,
    serving: Serving,
    speculation: Speculation | None,
    context: Number,
) -> tuple[PassTime, PassTime, Number, Number]:
    """A step of the model; the time of a token by parts, and of the draft [s]; and the use of unknown links."""
    if speculation is None:
        step = decode(model, plan, machine, serving, context)
        return step, step, 0.0 * step.total, step.unknown
    verification = decode(model, plan, machine, serving, context, speculation.drafted + 1.0)
    # The excess of narrow shards is that of the model; the draft's is not counted.
    drafting = evolve(plan, narrow_whole=0.0, narrow_routed=0.0)
    draft_step = decode(speculation.model, drafting, machine, serving, context)
    token, draft = speculate(verification, draft_step, speculation.drafted, speculation.acceptance)
    return verification, token, draft, verification.unknown + draft_step.unknown


def transfer_time(size: Number, sending: Number, receiving: Number, latency: Number) -> Number:
    """The time to transfer the KV cache of one prompt from prefill to decode ranks [s].

    Args:
        size: Bytes of the KV cache.
        sending: Rate of all prefill ranks together [B/s].
        receiving: Rate of all decode ranks together [B/s].
        latency: Network latency [s].
    """
    return latency + size / smaller(sending, receiving)
