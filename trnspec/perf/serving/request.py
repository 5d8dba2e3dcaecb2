"""What a served request takes, and what a replica gives: prefill and decoding put together.

``docs/explanation/the-performance-model.md`` derives the formulas.  Times are in s, rates in tokens/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.ops import Number, larger, smaller, where
from trnspec.perf.serving.decode import decode, mean_seen, speculate, token_load
from trnspec.perf.serving.forward_pass import PARTS, Deployment, Pass, Serving, run_forward, seen
from trnspec.perf.serving.prefill import prefill, prompt_load, times
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine

SCHEDULES = ("continuous", "static", "separate")
"""How prefill and decoding share ranks."""


@frozen(kw_only=True)
class Speculation:
    """A draft model, and how it is used.

    Attributes:
        model: The draft.
        drafted: Tokens that it drafts.
        acceptance: The chance that one of them is accepted.
    """

    model: Transformer
    drafted: Number
    acceptance: Number


@frozen(kw_only=True)
class Served:
    """What a request takes and a replica gives.

    Attributes:
        prefill: Prefill, until the first token, by parts.
        token: A decoding step, averaged over the output, by parts; without draft and interruptions.
        draft: What the draft adds to the time of a token.
        prefill_interference: What the prefill of others adds to the time of a token.
        time_per_token: All of a token, in s.
        token_time_at_start: The same with the context of the second token; without interruptions.
        token_time_at_end: The same with that of the last.
        latency: From prompt to last token.
        throughput: Output tokens/s of one replica.
        prefill_rate: Prompts/s that a replica computes when it does nothing else, each stage one of them.
        decode_rate: Requests/s that a replica decodes when it does nothing else.
        unknown: Above 0 where a link is used whose rate is not published.
    """

    prefill: Pass
    token: Pass
    draft: Number
    prefill_interference: Number
    time_per_token: Number
    token_time_at_start: Number
    token_time_at_end: Number
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
) -> Served:
    """What serving takes in the steady state.

    ``static``: a batch is computed together, prompts first.  ``continuous``: a request takes the place of one that is
    finished; while one makes its output all others are renewed once, so ``B - 1`` prefills interrupt it. A prompt in
    several passes goes along with decoding steps, of which each pass makes one longer (Agrawal et al. 2023).
    ``separate``: prefill is done elsewhere.

    Args:
        model: The transformer.
        plan: How it is laid out.
        machine: What a rank computes and communicates with.
        serving: What is achieved of it.
        schedule: One of :data:`SCHEDULES`.
        speculation: A draft, if there is one.
    """
    first = prefill(model, plan, machine, serving)
    after = plan.output - 1.0
    many = after > 0.0
    steps = where(many, after, 1.0)
    token, draft, unknown = _token(model, plan, machine, serving, speculation, mean_seen(model, plan))
    ends = [
        _token(model, plan, machine, serving, speculation, seen(model, context))
        for context in (plan.prompt, plan.prompt + plan.output - 1.0)
    ]
    bare = token.total + draft
    interruption = first.total
    each = 1.0 if speculation is None else speculation.drafted + 1.0
    if schedule == "continuous":
        # Where the prompt comes in one pass decoding stops; else both go through the layers together.
        both = run_forward(
            model,
            plan,
            machine,
            serving,
            prompt_load(model, plan, serving) + token_load(model, plan, serving, mean_seen(model, plan), each),
        )
        alone = decode(model, plan, machine, serving, mean_seen(model, plan), each)
        longer = plan.passes * larger(both.total - alone.total, 0.0) + serving.request
        together = plan.passes > 1.0
        interruption = where(together, longer, interruption)
        first = _either(together, plan.batch > 1.0, times(both, plan.passes, serving.request), first)
    # A prompt keeps one stage at a time; the others go on.
    held = (plan.batch - 1.0) * interruption / plan.pp
    waiting = where(many, held / steps, 0.0) if schedule == "continuous" else 0.0 * bare
    per_token = bare + waiting
    latency = first.total + after * per_token
    busy = latency if schedule != "separate" else after * per_token
    given = plan.output if schedule != "separate" else after
    throughput = plan.batch * given / where(busy > 0.0, busy, 1.0)
    return Served(
        prefill=first,
        token=token,
        draft=draft,
        prefill_interference=waiting,
        time_per_token=per_token,
        token_time_at_start=ends[0][0].total + ends[0][1],
        token_time_at_end=ends[1][0].total + ends[1][1],
        latency=latency,
        throughput=throughput,
        prefill_rate=plan.pp * plan.prompts / first.total,
        decode_rate=plan.batch / (steps * bare),
        unknown=first.unknown + unknown,
    )


def _either(one: Number, other: Number, then: Pass, otherwise: Pass) -> Pass:
    """One of two passes, part by part, where both conditions hold."""
    names = ("total", *PARTS, "reading", "unknown")
    chosen = {n: where(other, getattr(then, n), getattr(otherwise, n)) for n in names}
    return Pass(**{n: where(one, chosen[n], getattr(otherwise, n)) for n in names})


def _token(
    model: Transformer,
    plan: Deployment,
    machine: Machine,
    serving: Serving,
    speculation: Speculation | None,
    met: Number,
) -> tuple[Pass, Number, Number]:
    """The time of a token by parts, that of the draft, and the use of unknown links."""
    if speculation is None:
        step = decode(model, plan, machine, serving, met)
        return step, 0.0 * step.total, step.unknown
    check = decode(model, plan, machine, serving, met, speculation.drafted + 1.0)
    guess = decode(speculation.model, plan, machine, serving, met)
    token, draft = speculate(check, guess, speculation.drafted, speculation.acceptance)
    return token, draft, check.unknown + guess.unknown


def transfer_time(size: Number, sending: Number, receiving: Number, latency: Number) -> Number:
    """The time in which the cache of one prompt goes from the ranks that computed it to those that decode, in s.

    Args:
        size: Bytes of the cache.
        sending: What the ranks that computed it send together, in B/s.
        receiving: What the ranks that decode receive together, in B/s.
        latency: Of the network, in s.
    """
    return latency + size / smaller(sending, receiving)
