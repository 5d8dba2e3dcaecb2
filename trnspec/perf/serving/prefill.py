"""Prefill: the time to compute prompts."""

from __future__ import annotations

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number, larger, smaller, where
from trnspec.perf.serving.forward_pass import (
    PARTS,
    Context,
    Deployment,
    Load,
    PassTime,
    Serving,
    cache_elements,
    run_forward,
    score_elements,
    score_rows,
    summed,
    within,
)
from trnspec.perf.work.transformer import Transformer, whole_heads

MATERIALIZED_PASSES = 4.0
"""Passes over a score matrix in device memory without flash attention: scores and probabilities, each written and read.

Source: Dao et al. 2022, algorithm 0.
"""


def prompt_load(model: Transformer, plan: Deployment, serving: Serving) -> Load:
    """The mean load of a pass when prompts of ``S`` tokens, ``p`` of them cached, are prefilled in ``n`` passes (chunks).

    Passes differ only in their context.  A token attends to ``p + (S - p)/2`` keys on average; where causality is not used
    within a pass, to half a chunk more.  A pass reads the KV cache of the cached tokens, of all earlier chunks and of its own.
    In a windowed layer neither exceeds the window plus the chunk.

    A compiled graph computes its own number of tokens, padding included; with earlier tokens in the cache it multiplies
    and reads the longest prompt that it was compiled for.
    """
    computed = plan.prompt - plan.cached
    chunk = computed / plan.passes
    within_causal = where(plan.flash > 0.0, 1.0, where(plan.materialized > 0.0, 0.0, serving.causal))
    keys = plan.cached + 0.5 * (computed + chunk * (1.0 - within_causal * model.causal))
    keys = where(model.causal > 0.0, keys, plan.prompt)
    read = plan.cached + 0.5 * (computed + chunk)
    compiled = plan.compiled_tokens > 0.0
    earlier = compiled & (plan.cached + computed > chunk)
    padded = where(compiled, plan.compiled_tokens, chunk)

    def limited(limit: Number) -> tuple[Number, Number]:
        """Keys that a token attends to, and those that a pass reads, in layers that reach back ``limit`` tokens."""
        # With a window w a token attends to w keys, but for the first w tokens of the prompt, which attend to w/2 on average.
        attended = (_attended_before(limit, plan.prompt) - _attended_before(limit, plan.cached)) / computed
        reach = within(limit, plan.prompt)
        few = smaller(keys, attended + 0.5 * chunk * (1.0 - within_causal))
        few = where(compiled, smaller(whole, reach + padded), few)
        return few, smaller(all_read, reach + padded)

    whole = where(compiled, padded * (1.0 - 0.5 * within_causal * model.causal), keys)
    whole = where(earlier, plan.compiled_prompt, whole)
    all_read = where(earlier, plan.compiled_prompt, where(compiled, padded, read))
    window, chosen = limited(model.window), limited(model.chosen)
    attended = Context(whole, window[0], chosen[0])
    # An indexer scores every key and reads its own key of each; recurrences cost a token the same whatever its context.
    scores = score_elements(model, attended, plan.tp)
    scores = scores + (model.index * whole + model.recurrence) * whole_heads(model.heads, plan.tp)
    cached = cache_elements(model, Context(all_read, window[1], chosen[1]), plan.tp)
    cached = cached + model.index_cache * whole_heads(model.kv_heads, plan.tp) * all_read
    tokens = plan.prompts * padded
    least = where(plan.materialized > 0.0, MATERIALIZED_PASSES * plan.activation_bytes, 0.0)
    passes = where(plan.flash > 0.0, 0.0, larger(least, serving.score_passes * 4.0))
    spilled = tokens * score_rows(model, attended, plan.tp) * passes
    return Load(
        tokens=tokens,
        scores=tokens * scores,
        spilled=spilled,
        cached=plan.prompts * cached,
        states=plan.prompts,
        logits=plan.prompts / plan.passes,
    )


def _attended_before(limit: Number, tokens: Number) -> Number:
    """Tokens that the first tokens of a sequence attend to in a windowed layer, all together: the integral of ``min(w, c)``."""
    reach = within(limit, tokens)
    return reach * (tokens - 0.5 * reach)


def prefill(model: Transformer, plan: Deployment, machine: Machine, serving: Serving) -> PassTime:
    """The time of the prompts that are prefilled together, from the first pass to the first output tokens.

    Args:
        model: The transformer.
        plan: The deployment: ``prompts`` prompts of ``prompt`` tokens in ``passes`` passes, ``rounds`` times.
        machine: Compute and communication of a rank.
        serving: Achieved efficiency.
    """
    forward = run_forward(model, plan, machine, serving, prompt_load(model, plan, serving))
    return repeat(forward, plan.passes * plan.rounds, serving.request * plan.rounds)


def repeat(forward: PassTime, n: Number, fixed: Number = 0.0) -> PassTime:
    """``n`` equal passes plus a fixed time [s]."""
    parts = {name: n * getattr(forward, name) for name in PARTS}
    parts["fixed"] = parts["fixed"] + fixed
    total = summed([parts[name] for name in PARTS])
    return PassTime(total=total, reading=n * forward.reading, unknown=forward.unknown, **parts)
