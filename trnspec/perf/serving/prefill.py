"""The time to compute prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.perf.ops import Number, smaller, where
from trnspec.perf.serving.forward_pass import PARTS, Deployment, Load, Pass, Serving, run_forward

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.transformer import Transformer


def prompt_load(model: Transformer, plan: Deployment, serving: Serving) -> Load:
    """The mean pass of a prefill in ``n`` passes over prompts of ``S`` tokens.

    Passes differ only in the context they meet. A token meets ``S/2`` keys on average; where causality is not used
    within a pass, ``(S + S/n)/2``. A pass reads the cache of all before it and of itself, ``(n + 1)/2`` chunks on
    average. In a windowed layer that is no more than the window beside the chunk.
    """
    chunk = plan.prompt / plan.passes
    met = 0.5 * (plan.prompt + chunk * (1.0 - serving.causal * model.causal))
    met = where(model.causal > 0.0, met, plan.prompt)
    read = 0.5 * (plan.prompt + chunk)
    near = where(model.window > 0.0, smaller(model.window, plan.prompt), plan.prompt)
    # Of a window w each token meets w but the first w of the prompt, which meet w/2 on average.
    narrow = smaller(met, near * (1.0 - 0.5 * near / plan.prompt) + 0.5 * chunk * (1.0 - serving.causal))
    met = met + model.windowed * (narrow - met)
    read = read + model.windowed * (smaller(read, near + chunk) - read)
    tokens = plan.prompts * chunk
    return Load(tokens, tokens * met, plan.prompts * read, plan.prompts / plan.passes)


def prefill(model: Transformer, plan: Deployment, machine: Machine, serving: Serving) -> Pass:
    """The time of the prompts that are computed together, from the first pass to the first tokens.

    Args:
        model: The transformer.
        plan: How it is laid out; ``prompts`` of ``prompt`` tokens in ``passes``.
        machine: What a rank computes and communicates with.
        serving: What is achieved of it.
    """
    one = run_forward(model, plan, machine, serving, prompt_load(model, plan, serving))
    return times(one, plan.passes, serving.request)


def times(one: Pass, n: Number, fixed: Number = 0.0) -> Pass:
    """So many equal passes, and a time that depends on nothing."""
    parts = {name: n * getattr(one, name) for name in PARTS}
    parts["fixed"] = parts["fixed"] + fixed
    total = parts[PARTS[0]]
    for name in PARTS[1:]:
        total = total + parts[name]
    return Pass(total=total, reading=n * one.reading, unknown=one.unknown, **parts)
