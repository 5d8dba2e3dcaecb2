"""How a model is served, and one pass through it: the sum that prefill, decoding and speculation are made of.

Every formula takes floats or arrays that broadcast.  Times are in s, sizes in bytes, work in FLOP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.lowering.machine import group
from trnspec.perf.ops import Number, ceil, floor, larger, smaller, where

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.transformer import Transformer


@frozen(kw_only=True)
class Serving:
    """What is achieved of what is published when serving.  The defaults are ideal: what is computed is a bound.

    Attributes:
        matmul: Share of the peak rate that matrix multiplications reach.
        attention: Share of the peak rate that scores and values reach.
        weights: Share of the peak rate of device memory that reading weights reaches.
        cache: Share of the peak rate of device memory that reading the cache reaches.
        score_passes: Passes over the scores in device memory, 4 bytes each; 0 where they stay on chip.
        link: Share of the peak rate of links that collectives reach.
        additive: Share of the shorter of computing and reading that does not hide behind the longer.
        call: Time of one collective that does not depend on its size, in s.
        launch: Time of a layer that depends on nothing, in s.
        step: Time of a pass that depends on nothing, in s.
        sample: Time to pick a token, for each sequence, in s.
        request: Time of a prefill that depends on nothing, in s.
        padding: Share of what the cache has room for, and does not hold, that is read all the same.
        causal: 1.0 where prefill computes only the half of the scores that causality leaves, 0.0 where it computes all.
    """

    matmul: Number = 1.0
    attention: Number = 1.0
    weights: Number = 1.0
    cache: Number = 1.0
    score_passes: Number = 0.0
    link: Number = 1.0
    additive: Number = 0.0
    call: Number = 0.0
    launch: Number = 0.0
    step: Number = 0.0
    sample: Number = 0.0
    request: Number = 0.0
    padding: Number = 0.0
    causal: Number = 1.0


IDEAL = Serving()
"""Nothing is lost."""


@frozen(kw_only=True)
class Deployment:
    """How a model is laid out and what is asked of it.  Ranks are numbered tensor first, then data, then pipeline.

    Attributes:
        tp: Ranks that split each matrix.
        pp: Stages; the sequences of a replica go through them in so many groups.
        dp: Replicas.
        ep: Replicas that split the experts among themselves.
        batch: Sequences that a replica decodes together.
        prompt: Tokens of a prompt.
        output: Tokens that are made of it, the first included.
        passes: Passes in which a prompt is computed: 1.0, or its chunks.
        prompts: Prompts that are computed together.
        weight_bytes: Bytes of a stored weight.
        cache_bytes: Bytes of an element of the cache.
        activation_bytes: Bytes of an activation.
    """

    tp: Number = 1.0
    pp: Number = 1.0
    dp: Number = 1.0
    ep: Number = 1.0
    batch: Number = 1.0
    prompt: Number = 1024.0
    output: Number = 1024.0
    passes: Number = 1.0
    prompts: Number = 1.0
    weight_bytes: Number = 2.0
    cache_bytes: Number = 2.0
    activation_bytes: Number = 2.0


@frozen
class Load:
    """What one pass computes in an average layer.

    Attributes:
        tokens: Tokens, of all sequences.
        pairs: Keys that they meet, all tokens together.
        cached: Tokens whose keys and values are read or written, of all sequences.
        logits: Tokens whose logits are wanted.
    """

    tokens: Number
    pairs: Number
    cached: Number
    logits: Number

    def __add__(self, other: Load) -> Load:
        """Both in one pass."""
        return Load(
            self.tokens + other.tokens,
            self.pairs + other.pairs,
            self.cached + other.cached,
            self.logits + other.logits,
        )


PARTS = ("matrices", "attention", "head", "tensor", "expert", "pipeline", "launch", "fixed")
"""The parts of a pass, in the order in which they are summed."""


@frozen
class Pass:
    """The time of one pass through all layers; ``total`` is the sum of the parts, in their order.

    Attributes:
        total: All of it, in s.
        matrices: The layers' matrix multiplications, or the reading of their weights.
        attention: Scores and values, or the reading of the cache.
        head: The output matrix, and picking tokens.
        tensor: Collectives of tensor parallelism.
        expert: All-to-all of tokens between experts.
        pipeline: Messages between stages.
        launch: What a layer takes in any case.
        fixed: What the pass takes in any case.
        reading: Time to read weights and cache at the rate reached: a part of ``matrices``, ``attention`` and ``head``
            where that binds.
        unknown: Above 0 where a link is used whose rate is not published.
    """

    total: Number
    matrices: Number
    attention: Number
    head: Number
    tensor: Number
    expert: Number
    pipeline: Number
    launch: Number
    fixed: Number
    reading: Number
    unknown: Number


MOST = 16777215.0
"""The largest power, ``2^24 - 1``; so many tokens touch every expert."""


def power(base: Number, n: Number) -> Number:
    """``base`` to a whole power of at most :data:`MOST`, by squaring: the same multiplications for a float and for an array.

    The bits of ``pow`` differ between one call and a vector of them, those of a product do not.

    Args:
        base: Any number of at most 1.
        n: A whole number, not negative.
    """
    result = base * 0.0 + 1.0
    for _ in range(24):
        half = floor(n * 0.5)
        result = where(n - 2.0 * half > 0.5, result * base, result)
        base = base * base
        n = half
    return result


def touched(model: Transformer, tokens: Number) -> Number:
    """The share of a layer's routed weights that some tokens visit, expected: ``1 - (1 - k/E)^T``.

    Tokens choose their ``k`` of ``E`` experts evenly and independently of each other. ``k/E`` is the ratio of the
    weights a token meets to all that are routed.

    Args:
        model: The transformer.
        tokens: A whole number.
    """
    routed = model.routed > 0.0
    chosen = where(routed, (model.weights - model.whole) / where(routed, model.routed, 1.0), 0.0)
    return 1.0 - power(1.0 - smaller(chosen, 1.0), smaller(tokens, MOST))


def seen(model: Transformer, tokens: Number) -> Number:
    """Tokens that a query meets in an average layer after so many: some layers look back no further than a window."""
    reach = where(model.window > 0.0, smaller(model.window, tokens), tokens)
    return tokens + model.windowed * (reach - tokens)


def cache_share(model: Transformer, tp: Number) -> Number:
    """The share of the cache that one of ``tp`` ranks keeps: whole heads, so they are padded, or kept several times."""
    return ceil(model.kv_heads / tp) / model.kv_heads


def head_share(model: Transformer, tp: Number) -> Number:
    """The share of the query heads that one of ``tp`` ranks computes: whole heads, padded where they do not divide."""
    return ceil(model.heads / tp) / model.heads


def cache_bytes(model: Transformer, cache_element: Number) -> Number:
    """Bytes of the cache for one token: ``2 L g d`` elements, or those of the latent vectors (DeepSeek-V2, section 2.1)."""
    return model.layers * model.kv_elements * cache_element


def bound(weight_bytes: Number, cache: Number, ranks: Number, byte: Number) -> Number:
    """The least time of a decoding step: weights and cache of the batch are read once, by all ranks together.

    Source: jax-ml/scaling-book, inference.md (theoretical minimum step time).

    Args:
        weight_bytes: Bytes of all weights.
        cache: Bytes of the cache of the batch.
        ranks: Ranks.
        byte: Time of a byte of device memory for one rank, in s.
    """
    return (weight_bytes + cache) / ranks * byte


def run_forward(model: Transformer, plan: Deployment, machine: Machine, serving: Serving, load: Load) -> Pass:
    """One pass of a load through all layers, one stage after the other.

    A matrix of ``w`` elements costs ``2 w`` FLOP a token and is read once; scores and values cost ``2 c (q + v)`` a
    token that meets ``c`` keys, which are read once a sequence. Each takes the longer of computing and reading (the
    roofline, Williams et al. 2009), and of the shorter what the calibration says is not hidden. Two all-reduces a layer
    carry the residual stream (Shoeybi et al. 2019, section 3).

    Args:
        model: The transformer.
        plan: How it is laid out.
        machine: What a rank computes and communicates with.
        serving: What is achieved of it.
        load: What is computed.
    """
    share = 1.0 / plan.tp
    tokens = load.tokens
    # An expert serves the tokens of all replicas that share the experts, and a replica has 1/ep of them.
    routed = model.routed * share / plan.ep * touched(model, ceil(tokens) * plan.ep)
    heads = head_share(model, plan.tp)
    # Whole heads on every rank: those of queries padded, those of keys and values repeated where they are too few.
    more = model.scores * (heads * plan.tp - 1.0) + model.kv_elements * (cache_share(model, plan.tp) * plan.tp - 1.0)
    more = model.hidden * more
    flops = 2.0 * tokens * (model.weights + more) * share
    compute = flops * machine.flop / serving.matmul
    read = ((model.whole + more) * share + routed) * plan.weight_bytes * machine.byte / serving.weights
    matrices = _longer(compute, read, serving)

    scored = 2.0 * load.pairs * model.scores * heads * machine.score / serving.attention
    cached = load.cached * model.kv_elements * cache_share(model, plan.tp) * plan.cache_bytes
    looked = cached * machine.byte / serving.cache
    spilled = load.pairs * model.heads * heads * serving.score_passes * 4.0 * machine.byte
    attention = _longer(scored, looked, serving) + spilled

    message = tokens * model.hidden * plan.activation_bytes
    ranks = group(machine, plan.tp, 1.0)
    reduce = 2.0 * (serving.call + 2.0 * ranks.latency + 2.0 * ranks.gather * message / serving.link)
    reduce = where(plan.tp > 1.0, reduce, 0.0)
    exchanged, exchange = _exchange(model, plan, machine, serving, message * share)
    sent, sending = _send(plan, machine, serving, message)

    logits = load.logits * model.vocabulary * share
    headed = _longer(
        2.0 * logits * model.hidden * machine.flop / serving.matmul,
        model.output * share * plan.weight_bytes * machine.byte / serving.weights,
        serving,
    )
    wanted = load.logits > 0.0
    gathered = serving.call + ranks.latency + ranks.gather * load.logits * model.vocabulary * 4.0 / serving.link
    headed = where(wanted, headed + load.logits * serving.sample, 0.0)
    gathered = where(plan.tp > 1.0, where(wanted, gathered, 0.0), 0.0)
    output = model.output * share * plan.weight_bytes * machine.byte / serving.weights

    layers = model.layers
    parts = (
        layers * matrices,
        layers * attention,
        headed,
        layers * reduce + gathered,
        layers * exchanged,
        sent,
        layers * serving.launch,
        serving.step + 0.0 * tokens,
    )
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    reading = layers * (read + looked) + where(wanted, output, 0.0)
    unknown = ranks.unknown + exchange + sending
    return Pass(total, *parts, reading, unknown)


def _longer(one: Number, other: Number, serving: Serving) -> Number:
    return larger(one, other) + serving.additive * smaller(one, other)


def _exchange(
    model: Transformer, plan: Deployment, machine: Machine, serving: Serving, message: Number
) -> tuple[Number, Number]:
    """Tokens of a layer go to their experts and back: of the ``n`` ranks those within each level, and what is beyond."""
    inverse = 1.0 / plan.ep
    one = larger(inverse, smaller(1.0, plan.tp * machine.inverse_1))
    two = larger(inverse, smaller(1.0, plan.tp * machine.inverse_2))
    three = larger(inverse, smaller(1.0, plan.tp * machine.inverse_3))
    # Of the n ranks w_i lie within a unit of level i; what goes over it is the share (w_i - w_(i-1)) / n.
    in_1, in_2, in_3 = (where(level > inverse, 1.0 / level, plan.ep) for level in (one, two, three))
    on_1, on_2, on_3, on_4 = (inverse * count for count in (in_1 - 1.0, in_2 - in_1, in_3 - in_2, plan.ep - in_3))
    each = on_1 * machine.byte_1 + on_2 * machine.byte_2 + on_3 * machine.byte_3 + on_4 * machine.byte_4
    # All messages leave at once, so the farthest decides.
    hop = where(
        on_4 > 0.0, machine.hop_4, where(on_3 > 0.0, machine.hop_3, where(on_2 > 0.0, machine.hop_2, machine.hop_1))
    )
    unknown = on_1 * machine.unknown_1 + on_2 * machine.unknown_2 + on_3 * machine.unknown_3 + on_4 * machine.unknown_4
    time = 2.0 * (serving.call + hop + each * message * model.dispatched / serving.link)
    used = where(model.dispatched > 0.0, where(plan.ep > 1.0, 1.0, 0.0), 0.0)
    return used * time, used * unknown


def _send(plan: Deployment, machine: Machine, serving: Serving, message: Number) -> tuple[Number, Number]:
    """The messages between all stages, over the widest link that any of them takes; each rank sends its share."""
    span = plan.tp * plan.dp * plan.pp
    on_1, on_2, on_3 = (span * i <= 1.0 for i in (machine.inverse_1, machine.inverse_2, machine.inverse_3))
    byte = where(on_1, machine.byte_1, where(on_2, machine.byte_2, where(on_3, machine.byte_3, machine.byte_4)))
    hop = where(on_1, machine.hop_1, where(on_2, machine.hop_2, where(on_3, machine.hop_3, machine.hop_4)))
    unknown = where(
        on_1, machine.unknown_1, where(on_2, machine.unknown_2, where(on_3, machine.unknown_3, machine.unknown_4))
    )
    time = (plan.pp - 1.0) * (serving.call + hop + message / plan.tp * byte / serving.link)
    return time, where(plan.pp > 1.0, unknown, 0.0)
