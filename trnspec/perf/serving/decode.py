"""Decoding: the time of one more token for every sequence of a batch, with and without speculation."""

from __future__ import annotations

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number, ceil, power, smaller, where
from trnspec.perf.serving.forward_pass import (
    Context,
    Deployment,
    Load,
    PassTime,
    Serving,
    cache_elements,
    context_at,
    run_forward,
    score_elements,
    score_rows,
)
from trnspec.perf.serving.prefill import repeat
from trnspec.perf.work.transformer import Transformer, whole_heads


def mean_context(model: Transformer, plan: Deployment) -> Context:
    """Tokens whose keys a query attends to, averaged over the output: ``S + O/2`` without windows.

    With a window ``w`` the mean of ``min(w, c)`` for ``c`` from ``S`` to ``S + O``.  A compiled graph reads whole buckets.
    """
    full = plan.prompt + 0.5 * plan.output
    compiled = plan.compiled_keys > 0.0
    return Context(
        where(compiled, plan.compiled_keys, full),
        where(compiled, plan.compiled_window, _mean_within(model.window, plan, full)),
        where(compiled, plan.compiled_chosen, _mean_within(model.chosen, plan, full)),
    )


def second_context(plan: Deployment) -> Number:
    """Tokens whose keys a query attends to at the second token of the output, ``S + 1``; without one those of the first."""
    return plan.prompt + smaller(plan.output - 1.0, 1.0)


def _mean_within(limit: Number, plan: Deployment, full: Number) -> Number:
    """The mean of ``min(limit, c)`` over the output; ``full`` where the limit is 0."""
    low, high = smaller(plan.prompt, limit), smaller(plan.prompt + plan.output, limit)
    mean = (0.5 * (high - low) * (high + low) + limit * (plan.output - (high - low))) / plan.output
    return where(limit > 0.0, mean, full)


def contexts_of_ends(model: Transformer, plan: Deployment) -> tuple[Context, Context]:
    """Tokens whose keys a query attends to at the second and at the last token of the output.

    The step of token ``j`` has token ``j - 1`` as its input, which attends to itself and all before it: ``S + j - 1`` keys,
    of which ``S + O/2`` is the mean.
    """
    first, last = second_context(plan), plan.prompt + plan.output - 1.0
    return (
        context_at(model, where(plan.compiled_first > 0.0, plan.compiled_first, first)),
        context_at(model, where(plan.compiled_last > 0.0, plan.compiled_last, last)),
    )


def token_load(
    model: Transformer, plan: Deployment, serving: Serving, context: Context, new_tokens: Number = 1.0
) -> Load:
    """The load of a decoding pass of one group of sequences; each pipeline stage works on another group.

    Args:
        model: The transformer.
        plan: The deployment; the KV cache is allocated for prompt and output.
        serving: Achieved efficiency: ``padding`` is the share of the unused allocation that is read as well.
        context: Tokens whose keys a query attends to.
        new_tokens: Tokens of a sequence that are computed together: more than one when a draft is verified.
    """
    sequences = ceil(where(plan.compiled_batch > 0.0, plan.compiled_batch, plan.batch) / plan.pp)
    allocated = context_at(model, plan.prompt + plan.output)
    # A compiled graph reads exactly the keys that it was compiled for.
    padding = where(plan.compiled_context > 0.0, 0.0, serving.padding)
    context = Context(
        context.full + padding * (allocated.full - context.full),
        context.window + padding * (allocated.window - context.window),
        context.chosen + padding * (allocated.chosen - context.chosen),
    )
    tokens = sequences * new_tokens
    scores = score_elements(model, context, plan.tp)
    if model.absorbed is not model.scores:
        # With latent attention each head multiplies compressed vectors.
        scores = scores * (model.absorbed / model.scores)
    # An indexer scores every key, on average over the output, and reads its own key of each.
    keys = where(plan.compiled_keys > 0.0, plan.compiled_keys, plan.prompt + 0.5 * plan.output)
    scores = scores + (keys * model.index + model.recurrence) * whole_heads(model.heads, plan.tp)
    written = Context(context.full + new_tokens, context.window + new_tokens, context.chosen + new_tokens)
    cached = cache_elements(model, written, plan.tp) + model.index_cache * whole_heads(model.kv_heads, plan.tp) * keys
    spilled = tokens * score_rows(model, context, plan.tp) * (serving.score_passes * 4.0)
    return Load(
        tokens=tokens,
        scores=tokens * scores,
        spilled=spilled,
        cached=sequences * cached,
        states=sequences,
        logits=tokens,
    )


def decode(
    model: Transformer, plan: Deployment, machine: Machine, serving: Serving, context: Context, new_tokens: Number = 1.0
) -> PassTime:
    """The time of one decoding step: the load of :func:`token_load` through all stages."""
    return run_forward(model, plan, machine, serving, token_load(model, plan, serving, context, new_tokens))


def decode_time(model: Transformer, plan: Deployment, machine: Machine, serving: Serving) -> Number:
    """The time of a decoding step [s], averaged over the output: what a calibration fits to measured times.

    The result has the shape that the fields of the arguments broadcast to.
    """
    return decode(model, plan, machine, serving, mean_context(model, plan)).total


def accepted(acceptance: Number, drafted: Number) -> Number:
    """Expected tokens per verified draft: ``(1 - a^(k+1)) / (1 - a)``, ``k + 1`` where all are accepted.

    Source: Leviathan et al. 2023, equation 1.

    Args:
        acceptance: The probability ``a`` that a drafted token is accepted, independently of the others.
        drafted: Number of drafted tokens ``k``.
    """
    uncertain = acceptance < 1.0
    rejection = where(uncertain, 1.0 - acceptance, 1.0)
    return where(uncertain, (1.0 - power(acceptance, drafted + 1.0)) / rejection, drafted + 1.0)


def speculate(
    check: PassTime,
    draft: PassTime,
    drafted: Number,
    acceptance: Number,
) -> tuple[PassTime, Number]:
    """The time per token with speculation: ``k`` steps of the draft and one verification, over the expected tokens.

    Args:
        check: The pass of the model over ``k + 1`` tokens of each sequence.
        draft: A decoding step of the draft model.
        drafted: Number of drafted tokens ``k``.
        acceptance: The probability that a drafted token is accepted.

    Returns:
        The time per token by parts, without the draft; and the time of the draft [s].
    """
    share = 1.0 / accepted(acceptance, drafted)
    return repeat(check, share), drafted * draft.total * share
