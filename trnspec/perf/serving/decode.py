"""The time of decoding: one token more for every sequence of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.perf.ops import Number, ceil, smaller, where
from trnspec.perf.serving.forward_pass import Deployment, Load, Pass, Serving, power, run_forward, seen
from trnspec.perf.serving.prefill import times

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.transformer import Transformer


def mean_seen(model: Transformer, plan: Deployment) -> Number:
    """Tokens that a query meets in an average layer, on average over the output: ``S + O/2`` without windows.

    With a window ``w`` it is the mean of ``min(w, c)`` for ``c`` from ``S`` to ``S + O``.
    """
    start, end = plan.prompt, plan.prompt + plan.output
    middle = plan.prompt + 0.5 * plan.output
    low, high = smaller(start, model.window), smaller(end, model.window)
    reach = (0.5 * (high - low) * (high + low) + model.window * (plan.output - (high - low))) / plan.output
    return middle + where(model.window > 0.0, model.windowed * (reach - middle), 0.0)


def token_load(model: Transformer, plan: Deployment, serving: Serving, met: Number, each: Number = 1.0) -> Load:
    """The pass that makes a token for each sequence of one of the groups that go through the stages.

    Args:
        model: The transformer.
        plan: How it is laid out; the cache has room for prompt and output.
        serving: What is achieved: where it says so, room that holds nothing is read all the same.
        met: Tokens that a query meets in an average layer.
        each: Tokens of a sequence that are computed together: more than one when a draft is checked.
    """
    group = ceil(plan.batch / plan.pp)
    room = seen(model, plan.prompt + plan.output)
    read = met + serving.padding * (room - met)
    return Load(group * each, group * each * read, group * (read + each), group * each)


def decode(
    model: Transformer, plan: Deployment, machine: Machine, serving: Serving, met: Number, each: Number = 1.0
) -> Pass:
    """The time of one decoding step: what :func:`token_load` tells goes through all stages."""
    return run_forward(model, plan, machine, serving, token_load(model, plan, serving, met, each))


def decode_time(model: Transformer, plan: Deployment, machine: Machine, serving: Serving) -> Number:
    """The time of a decoding step in s, averaged over the output: what a calibration fits to measured times.

    Shapes: whatever the fields of the arguments broadcast to.
    """
    return decode(model, plan, machine, serving, mean_seen(model, plan)).total


def accepted(acceptance: Number, drafted: Number) -> Number:
    """Tokens that a checked draft gives, expected: ``(1 - a^(k+1)) / (1 - a)``, ``k + 1`` where all are accepted.

    Source: Leviathan et al. 2023, equation 1.

    Args:
        acceptance: The chance ``a`` that a drafted token is accepted, independent of the others.
        drafted: Tokens ``k`` that are drafted.
    """
    some = acceptance < 1.0
    rest = where(some, 1.0 - acceptance, 1.0)
    return where(some, (1.0 - power(acceptance, drafted + 1.0)) / rest, drafted + 1.0)


def speculate(
    check: Pass,
    draft: Pass,
    drafted: Number,
    acceptance: Number,
) -> tuple[Pass, Number]:
    """The time of a token with speculation: ``k`` steps of the draft and one check, over the tokens they give.

    Args:
        check: The pass of the model over ``k + 1`` tokens of each sequence.
        draft: A decoding step of the draft.
        drafted: Tokens ``k`` that are drafted.
        acceptance: The chance that a drafted token is accepted.

    Returns:
        The time of a token by parts, without the draft; and the draft's.
    """
    share = 1.0 / accepted(acceptance, drafted)
    return times(check, share), drafted * draft.total * share
