"""Prefill: the time to compute prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.perf.ops import Number, smaller, where
from trnspec.perf.serving.forward_pass import PARTS, Deployment, Load, Pass, Serving, run_forward

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.transformer import Transformer


def prompt_load(model: Transformer, plan: Deployment, serving: Serving) -> Load:
    """The mean load of a pass when prompts of ``S`` tokens are prefilled in ``n`` passes (chunks).

    Passes differ only in their context.  A token attends to ``S/2`` keys on average; where causality is not used within a
    pass, to ``(S + S/n)/2``.  A pass reads the KV cache of all earlier chunks and its own, ``(n + 1)/2`` chunks on average.
    In a windowed layer neither exceeds the window plus the chunk.
    """
    chunk = plan.prompt / plan.passes
    keys = 0.5 * (plan.prompt + chunk * (1.0 - serving.causal * model.causal))
    keys = where(model.causal > 0.0, keys, plan.prompt)
    read = 0.5 * (plan.prompt + chunk)
    reach = where(model.window > 0.0, smaller(model.window, plan.prompt), plan.prompt)
    # With a window w a token attends to w keys, but for the first w tokens of the prompt, which attend to w/2 on average.
    windowed_keys = smaller(keys, reach * (1.0 - 0.5 * reach / plan.prompt) + 0.5 * chunk * (1.0 - serving.causal))
    keys = keys + model.windowed * (windowed_keys - keys)
    read = read + model.windowed * (smaller(read, reach + chunk) - read)
    tokens = plan.prompts * chunk
    return Load(tokens, tokens * keys, plan.prompts * read, plan.prompts / plan.passes)


def prefill(model: Transformer, plan: Deployment, machine: Machine, serving: Serving) -> Pass:
    """The time of the prompts that are prefilled together, from the first pass to the first output tokens.

    Args:
        model: The transformer.
        plan: The deployment: ``prompts`` prompts of ``prompt`` tokens in ``passes`` passes.
        machine: Compute and communication of a rank.
        serving: Achieved efficiency.
    """
    forward = run_forward(model, plan, machine, serving, prompt_load(model, plan, serving))
    return repeat(forward, plan.passes, serving.request)


def repeat(forward: Pass, n: Number, fixed: Number = 0.0) -> Pass:
    """``n`` equal passes plus a fixed time [s]."""
    parts = {name: n * getattr(forward, name) for name in PARTS}
    parts["fixed"] = parts["fixed"] + fixed
    total = parts[PARTS[0]]
    for name in PARTS[1:]:
        total = total + parts[name]
    return Pass(total=total, reading=n * forward.reading, unknown=forward.unknown, **parts)
