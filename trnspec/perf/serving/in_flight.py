"""Serving with a constant number of requests in flight: a client replaces each finished request by a new one.

Prompts join decoding steps and prolong them; a replica runs as many requests as its KV cache holds, and the others queue.
All functions take floats or float64 arrays that broadcast.  Times are in s.
"""

from __future__ import annotations

from attrs import evolve, frozen

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number, ceil, floor, larger, smaller, where
from trnspec.perf.serving.decode import decode, mean_context, token_load
from trnspec.perf.serving.forward_pass import (
    Deployment,
    Serving,
    kept_bytes,
    run_forward,
)
from trnspec.perf.serving.prefill import prompt_load
from trnspec.perf.work.transformer import Transformer

CACHE_MEMORY = 0.9
"""Share of device memory that servers use for weights and KV cache (vLLM: gpu_memory_utilization)."""
MOST_SEQUENCES = 1024.0
"""Sequences that servers run at most: max_num_seqs of vLLM on GPUs of 70 GiB or more; max_batch_size of TensorRT-LLM is 2,048."""


@frozen(kw_only=True)
class InFlight:
    """Latency and throughput of one replica with some requests in flight.

    Attributes:
        running: Requests that run at the same time; the others queue.
        ttft: Time to first token, queueing included [s].
        tpot: Time per output token after the first [s].
        step: A decoding step without prompts [s].
        prompt: Time by which one prompt prolongs the steps that it joins [s].
        throughput: Output rate of the replica [tokens/s].
        unknown: Above 0 where a link is used whose rate is not published.
    """

    running: Number
    ttft: Number
    tpot: Number
    step: Number
    prompt: Number
    throughput: Number
    unknown: Number


def most_running(model: Transformer, plan: Deployment, machine: Machine) -> Number:
    """Requests whose KV cache fits next to the weights of a rank, at the mean context of a request; 1 to 1,024."""
    share = 1.0 / (plan.tp * plan.pp)
    whole_bytes = where(plan.whole_bytes > 0.0, plan.whole_bytes, plan.weight_bytes)
    head_bytes = where(plan.head_bytes > 0.0, plan.head_bytes, plan.weight_bytes)
    weights = model.layers * (model.whole * whole_bytes + model.routed / plan.ep * plan.weight_bytes)
    weights = weights + (model.output + model.embedding * (1.0 - model.tied)) * head_bytes
    free = CACHE_MEMORY * machine.capacity - weights * share
    request = kept_bytes(model, plan.prompt + 0.5 * plan.output, plan.cache_bytes, plan.tp) / plan.pp
    return smaller(larger(floor(free / request), 1.0), MOST_SEQUENCES)


def in_flight(
    model: Transformer,
    plan: Deployment,
    machine: Machine,
    serving: Serving,
    *,
    requests: Number,
    most: Number,
    mixed: Number = 1.0,
    separate: Number = 0.0,
) -> InFlight:
    """Latency and throughput in the steady state of a closed loop (Denning and Buzen 1978, section 5).

    A prompt prolongs the steps that it joins by ``a``: by its pass together with a decoding step, less that step, or by
    a pass of its own where prefill stops decoding.  While a request is decoded, the others in flight are replaced, each with
    a prompt, in so far as they are not in prefill themselves.  A step takes one chunk: a request waits for those of other
    prompts that are more than its steps.

    Args:
        model: The transformer.
        plan: The deployment; ``passes`` are the chunks of a prompt, and ``batch`` is not used.
        machine: Compute and communication of a rank.
        serving: Achieved efficiency: ``queue`` is the share of the other requests whose prompts are ahead of a new one.
        requests: Requests in flight of a replica ``N``.
        most: Requests that can run at the same time.
        mixed: 1.0 where prompts and decoded tokens share passes, 0.0 where prefill stops decoding.
        separate: 1.0 where prefill runs on other ranks.
    """
    running = larger(ceil(smaller(requests, most)), 1.0)
    plan = evolve(plan, batch=running, prompts=1.0)
    context = mean_context(model, plan)
    token = decode(model, plan, machine, serving, context)
    step = token.total
    prompts = prompt_load(model, plan, serving)
    alone = run_forward(model, plan, machine, serving, prompts).total
    together = run_forward(model, plan, machine, serving, prompts + token_load(model, plan, serving, context)).total
    joined = where(running > 1.0, larger(together - step, 0.0), alone)
    prompt = plan.passes * where(mixed > 0.0, joined, alone) + serving.request
    decoded = larger(plan.output - 1.0, 1.0)
    interrupted = where(separate > 0.0, 0.0, running - 1.0)
    # A step takes one chunk: the chunks of other prompts beyond the steps of a request are passes before its own prompt.
    chunks = where(mixed * (plan.passes - 1.0) > 0.0, interrupted * plan.passes, 0.0)
    joining = smaller(decoded / larger(chunks, 1.0), 1.0)
    waiting = (1.0 - joining) * interrupted * (plan.passes * alone + serving.request)
    # The own prompt, the steps that its passes share, half of the step that runs when it arrives.
    shared = where(running > 1.0, where(separate > 0.0, 0.0, plan.passes * mixed * step + 0.5 * step), 0.0)
    own = prompt + shared + waiting + serving.queue * (running - 1.0) * prompt
    decoding = decoded * step + joining * interrupted * prompt
    # Requests in prefill are not replaced in that time.
    decoding = decoded * step + joining * interrupted * prompt * decoding / (decoding + own)
    cycle = decoding + own + serving.response
    ttft = own + serving.response + cycle * larger(requests / running - 1.0, 0.0)
    return InFlight(
        running=running,
        ttft=ttft,
        tpot=decoding / decoded,
        step=step,
        prompt=prompt,
        throughput=running * plan.output / cycle,
        unknown=token.unknown,
    )
