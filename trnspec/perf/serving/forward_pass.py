"""A model's deployment in serving, and one forward pass through it, which prefill, decoding and speculation sum up.

Formulas take floats or float64 arrays that broadcast.  Times are in s, sizes in B, work in FLOP.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from trnspec.perf.experts import Exchange, byte_time, copies, exchange, reach
from trnspec.perf.lowering.machine import GroupCost, Machine, group, same_links, towards
from trnspec.perf.ops import MOST, Number, ceil, larger, power, smaller, where
from trnspec.perf.work.transformer import STATE_BYTES, Transformer, whole_heads


@frozen(kw_only=True)
class Serving:
    """Achieved over published performance in serving.  The defaults are ideal: times are lower bounds.

    Attributes:
        matmul: Share of the peak rate that matrix multiplications achieve.
        attention: Share of the peak rate that attention scores and values achieve.
        weights: Share of the memory bandwidth that reading weights achieves.
        cache: Share of the memory bandwidth that reading the KV cache achieves.
        single_core: The part of ``cache`` that a rank of one physical core achieves, where two are a rank by default.
        matmul_passes: Passes over inputs and results of matrix multiplications, without weights.
        score_passes: Passes over the scores in device memory, 4 bytes each; 0 where they stay on chip.
        link: Share of the link rate that collectives achieve.
        additive: Share of the shorter of compute and memory time that is not overlapped with the longer.
        call: Fixed time of one collective [s].
        launch: Fixed time of a layer [s].
        step: Fixed time of a pass [s].
        sample: Time to sample a token, per sequence [s].
        request: Fixed time of a prefill [s].
        padding: Share of the allocated but unused KV cache that is read as well.
        queue: Share of the other requests in flight whose prompts are ahead of a new one.
        response: Time of a first token that takes no device time: client, tokenizer, scheduler [s].
        causal: 1.0 where prefill computes only the causal half of the scores, 0.0 where it computes all.
    """

    matmul: Number = 1.0
    attention: Number = 1.0
    weights: Number = 1.0
    cache: Number = 1.0
    single_core: Number = 1.0
    matmul_passes: Number = 0.0
    score_passes: Number = 0.0
    link: Number = 1.0
    additive: Number = 0.0
    call: Number = 0.0
    launch: Number = 0.0
    step: Number = 0.0
    sample: Number = 0.0
    request: Number = 0.0
    padding: Number = 0.0
    queue: Number = 0.0
    response: Number = 0.0
    causal: Number = 1.0


IDEAL = Serving()
"""No losses."""


@frozen(kw_only=True)
class Deployment:
    """Deployment of a model, and its workload.  Ranks are numbered tensor first, then data, then pipeline.

    Attributes:
        tp: Tensor-parallel degree.
        pp: Pipeline-parallel degree; the sequences of a replica are split into as many groups.
        dp: Data-parallel degree: replicas.
        ep: Expert-parallel degree: replicas that share the experts.
        per_node: 1.0 where a token is sent once to each unit with some of its experts, 0.0 where once for each expert.
        sent: Bytes of all-to-alls over those of 16 bit, see :data:`trnspec.perf.experts.SENT`.
        node_limit: Nodes that the experts of a token are on, at most; 0.0 for no limit.
        expert_overlap: 1.0 where the all-to-all of one half of the tokens overlaps with the rest of a layer of the other
            half, if that is faster.
        batch: Sequences that a replica decodes together.
        prompt: Tokens of a prompt.
        output: Output tokens of a request, the first included.
        passes: Passes in which a prompt is computed: 1.0, or the number of its chunks.
        prompts: Prompts that are prefilled in one pass.
        rounds: Passes, or groups of chunks, one after the other, that prefill all prompts of a static batch.
        cached: Tokens of a prompt whose keys and values are cached already: a common prefix.
        all_experts_from: Tokens, of all ep replicas, from which on a pass computes and reads all experts; with fewer it reads
            what each token selects, an expert of several tokens as often.  0.0 where every pass reads distinct experts.
        flash: 1.0 where prefill keeps scores on chip and computes their causal half, whatever the calibration.
        materialized: 1.0 where prefill writes scores and probabilities to device memory and reads them, all of them.
        single_core: 1.0 where a rank is one of two physical cores that share a memory stack.
        compiled_batch: Sequences of the compiled decode graph; 0.0 for those in flight.
        compiled_tokens: Tokens of a prompt in the compiled prefill graph; 0.0 for those of the chunk.
        compiled_prompt: Keys that it attends to where some are cached: of a prefix, or of earlier chunks.
        compiled_context: Longest context of a sequence in the compiled decode graph; 0.0 for that of the request.
        compiled_keys: Tokens whose keys the compiled decode graph reads in a layer without a window, averaged over the
            output; 0.0 for those of the context.
        compiled_window: The same in a layer with a window.
        compiled_chosen: The same in a layer with an indexer's choice.
        compiled_first: The same as ``compiled_keys`` for the second token.
        compiled_last: The same for the last token.
        narrow_whole: Further time of the matrices in ``whole``, relative to theirs, in shards narrower than tiles.
        narrow_routed: The same of routed experts.
        weight_bytes: Bytes of a stored weight.
        whole_bytes: The same of the matrices in ``whole``, where only routed experts are narrower; 0.0 for ``weight_bytes``.
        head_bytes: The same of the output matrix; 0.0 for ``weight_bytes``.
        cache_bytes: Bytes of a KV-cache element.
        activation_bytes: Bytes of an activation.
    """

    tp: Number = 1.0
    pp: Number = 1.0
    dp: Number = 1.0
    ep: Number = 1.0
    per_node: Number = 1.0
    sent: Number = 1.0
    node_limit: Number = 0.0
    expert_overlap: Number = 0.0
    batch: Number = 1.0
    prompt: Number = 1024.0
    output: Number = 1024.0
    passes: Number = 1.0
    prompts: Number = 1.0
    rounds: Number = 1.0
    cached: Number = 0.0
    all_experts_from: Number = 0.0
    flash: Number = 0.0
    materialized: Number = 0.0
    single_core: Number = 0.0
    compiled_batch: Number = 0.0
    compiled_tokens: Number = 0.0
    compiled_prompt: Number = 0.0
    compiled_context: Number = 0.0
    compiled_keys: Number = 0.0
    compiled_window: Number = 0.0
    compiled_chosen: Number = 0.0
    compiled_first: Number = 0.0
    compiled_last: Number = 0.0
    narrow_whole: Number = 0.0
    narrow_routed: Number = 0.0
    weight_bytes: Number = 2.0
    whole_bytes: Number = 0.0
    head_bytes: Number = 0.0
    cache_bytes: Number = 2.0
    activation_bytes: Number = 2.0


@frozen
class Load:
    """The work of one pass in an average layer.

    Attributes:
        tokens: Tokens, over all sequences.
        scores: Elements of queries and values that are multiplied with keys and weights, over all pairs and heads of a rank.
        spilled: Bytes of scores that pass through device memory, over all pairs and heads of a rank.
        cached: Elements of keys and values of a rank that are read or written, over all sequences.
        states: Sequences whose states are read and written, in layers with a recurrence.
        logits: Tokens that get logits.
    """

    tokens: Number
    scores: Number
    spilled: Number
    cached: Number
    states: Number
    logits: Number

    def __add__(self, other: Load) -> Load:
        """Both loads in one pass."""
        return Load(
            self.tokens + other.tokens,
            self.scores + other.scores,
            self.spilled + other.spilled,
            self.cached + other.cached,
            self.states + other.states,
            self.logits + other.logits,
        )

    def half(self) -> Load:
        """Half of the tokens of each kind."""
        return Load(*(0.5 * x for x in (self.tokens, self.scores, self.spilled, self.cached, self.states, self.logits)))


PARTS = ("matrices", "attention", "head", "tensor", "expert", "pipeline", "launch", "fixed")
"""The parts of a pass."""


@frozen
class PassTime:
    """The time of one pass through all layers [s]; ``total`` is the sum of the parts, see :func:`summed`.

    Attributes:
        total: The sum of the parts.
        matrices: Matrix multiplications of the layers, or reading their weights.
        attention: Scores and values, or reading the KV cache.
        head: Output matrix and sampling.
        tensor: Tensor-parallel collectives.
        expert: All-to-all of tokens between experts.
        pipeline: Messages between pipeline stages.
        launch: Fixed time of the layers.
        fixed: Fixed time of the pass.
        reading: Time to read weights and KV cache at the achieved bandwidth: part of ``matrices``, ``attention`` and
            ``head`` where they are memory-bound.
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


def selected(model: Transformer) -> Number:
    """Share of a layer's routed experts that a token selects: ``k/E``, the ratio of active to all routed weights."""
    routed = model.routed > 0.0
    return smaller(where(routed, (model.weights - model.whole) / where(routed, model.routed, 1.0), 0.0), 1.0)


def touched(model: Transformer, tokens: Number) -> Number:
    """Expected share of a layer's routed experts that some tokens are sent to: ``1 - (1 - k/E)^T``.

    Tokens choose their ``k`` of ``E`` experts uniformly and independently of each other.

    Args:
        model: The transformer.
        tokens: An integer ``T``.
    """
    return 1.0 - power(1.0 - selected(model), smaller(tokens, MOST))


@frozen
class Context:
    """Tokens whose keys a query attends to, by the reach of a layer: see :class:`trnspec.perf.work.transformer.Reach`.

    Attributes:
        full: In layers that attend to all keys.
        window: In layers with a window.
        chosen: In layers with an indexer's choice.
    """

    full: Number
    window: Number
    chosen: Number


def context_at(model: Transformer, tokens: Number) -> Context:
    """The tokens whose keys a query attends to at a context of ``tokens``."""
    return Context(tokens, within(model.window, tokens), within(model.chosen, tokens))


def within(limit: Number, tokens: Number) -> Number:
    """The tokens within a limit; all where it is 0."""
    return where(limit > 0.0, smaller(limit, tokens), tokens)


def score_elements(model: Transformer, keys: Context, tp: Number) -> Number:
    """Elements of queries and values that a rank multiplies for one token in an average layer: its heads, all pairs."""
    parts = model.score_full, model.score_window, model.score_chosen
    return _weighted(keys, parts, whole_heads(model.heads, tp), model.local_heads, tp)


def score_rows(model: Transformer, keys: Context, tp: Number) -> Number:
    """Scores of one token in an average layer, of the heads of a rank."""
    parts = model.rows_full, model.rows_window, model.rows_chosen
    return _weighted(keys, parts, whole_heads(model.heads, tp), model.local_heads, tp)


def cache_elements(model: Transformer, keys: Context, tp: Number) -> Number:
    """Elements of keys and values of an average layer that a rank reads for one sequence."""
    parts = model.read_full, model.read_window, model.read_chosen
    return _weighted(keys, parts, whole_heads(model.kv_heads, tp), model.local_kv_heads, tp)


def _weighted(
    keys: Context, parts: tuple[Number, Number, Number], share: Number, local_heads: Number, tp: Number
) -> Number:
    """Contexts weighted with what their layers have of a token, of which a rank has a share; windowed layers by their heads."""
    full, window, chosen = parts
    # Contexts are the largest arrays of a sweep: numbers that they are multiplied by are multiplied first.
    total = keys.full * (full * share) + keys.window * (window * whole_heads(local_heads, tp))
    return total + keys.chosen * (chosen * share)


def cache_bytes(model: Transformer, cache_element: Number) -> Number:
    """Bytes of the KV cache per token: ``2 L g d`` elements, or those of the latent vectors (DeepSeek-V2, section 2.1)."""
    return model.layers * (model.kept_full + model.kept_window) * cache_element


def kept_bytes(model: Transformer, tokens: Number, cache_element: Number, tp: Number = 1.0) -> Number:
    """Bytes of the KV cache of a sequence of ``tokens`` on one of ``tp`` ranks, all layers; windowed ones keep their window."""
    local = whole_heads(model.local_kv_heads, tp)
    elements = model.kept_full * whole_heads(model.kv_heads, tp) * tokens
    elements = elements + model.kept_window * local * within(model.window, tokens)
    return model.layers * elements * cache_element


# The parts of a pass, in the order of docs/explanation/performance/serving.md; times are of an average layer where not noted.


def weight_matrices(
    model: Transformer, plan: Deployment, machine: Machine, serving: Serving, tokens: Number
) -> tuple[Number, Number]:
    """Matrix multiplications of a layer, and the part of it that is reading weights [s].

    A matrix of ``w`` elements costs ``2 w`` FLOP per token and is read once; its inputs and results, of experts one for each
    of a token's, pass device memory ``matmul_passes`` times (Ivanov et al. 2021, section 4).  The experts on a rank serve the
    tokens of all ``ep`` replicas, and each rank has ``1/ep`` of the experts.
    """
    tp, share = plan.tp, 1.0 / plan.tp
    compiled = plan.all_experts_from > 0.0
    met = ceil(tokens) * plan.ep
    every = compiled & (met >= plan.all_experts_from)
    used = where(every, 1.0, where(compiled, smaller(met * selected(model), 1.0), touched(model, met)))
    routed = model.routed * share / plan.ep * used
    # Every rank has whole heads: query heads are padded, KV heads are replicated where there are fewer than ranks.
    padding = (model.scores - model.local_scores) * (whole_heads(model.heads, tp) * tp - 1.0)
    padding = padding + (model.projected - model.local_projected) * (whole_heads(model.kv_heads, tp) * tp - 1.0)
    padding = padding + model.local_scores * (whole_heads(model.local_heads, tp) * tp - 1.0)
    padding = model.hidden * (padding + model.local_projected * (whole_heads(model.local_kv_heads, tp) * tp - 1.0))
    expert = where(every, model.routed, model.weights - model.whole)
    multiplied = where(every, model.whole + model.routed, model.weights)
    narrow = model.whole * plan.narrow_whole + expert * plan.narrow_routed
    flops = 2.0 * tokens * (multiplied + narrow + padding) * share
    whole_bytes = where(plan.whole_bytes > 0.0, plan.whole_bytes, plan.weight_bytes)
    weights = (model.whole + padding) * share * whole_bytes + routed * plan.weight_bytes
    reading = weights * machine.seconds_per_byte / serving.weights
    # Elements of a token that the matrices read and write; each expert of a token has its own input.
    blocks = model.results + model.shared + model.inner * model.active * model.moe
    streamed = model.split / tp + 2.0 * model.hidden * blocks
    streamed = tokens * streamed * plan.activation_bytes * serving.matmul_passes * machine.seconds_per_byte
    return _overlapped(flops * machine.seconds_per_flop / serving.matmul, reading, serving) + streamed, reading


def attention(
    model: Transformer, plan: Deployment, machine: Machine, serving: Serving, load: Load
) -> tuple[Number, Number]:
    """Scores and values of a layer, and the part of it that is reading the KV cache [s].

    Scores and values cost ``2 c (q + v)`` FLOP per token that attends to ``c`` keys, which are read once per sequence; in decoding with
    latent attention, whose up-projections are absorbed into queries and outputs, ``q`` is ``rank + rope`` and ``v`` is ``rank``
    (DeepSeek-V2, section 2.1).
    """
    # Loads are the largest arrays of a sweep: numbers that they are multiplied by are multiplied first.
    score_time = load.scores * (2.0 * machine.score / serving.attention)
    cache_byte = machine.seconds_per_byte / (serving.cache * where(plan.single_core > 0.0, serving.single_core, 1.0))
    reading = load.cached * (plan.cache_bytes * cache_byte)
    reading = reading + load.states * (2.0 * model.state * STATE_BYTES * (1.0 / plan.tp) * cache_byte)
    return _overlapped(score_time, reading, serving) + load.spilled * machine.seconds_per_byte, reading


def _overlapped(compute: Number, memory: Number, serving: Serving) -> Number:
    """The longer of compute and memory time (the roofline, Williams et al. 2009), plus the share ``additive`` of the shorter."""
    return larger(compute, memory) + serving.additive * smaller(compute, memory)


def output_and_sampling(
    model: Transformer, plan: Deployment, machine: Machine, serving: Serving, logits: Number
) -> tuple[Number, Number]:
    """Output matrix and sampling of a pass with some logits, and the part of it that is reading weights [s]."""
    share, has_logits = 1.0 / plan.tp, logits > 0.0
    head_bytes = where(plan.head_bytes > 0.0, plan.head_bytes, plan.weight_bytes)
    reading = model.output * share * head_bytes * machine.seconds_per_byte / serving.weights
    flops = 2.0 * (logits * model.vocabulary * share) * model.hidden
    head = _overlapped(flops * machine.seconds_per_flop / serving.matmul, reading, serving)
    return where(has_logits, head + logits * serving.sample, 0.0), where(has_logits, reading, 0.0)


def tensor_parallel_all_reduce(
    model: Transformer, plan: Deployment, ranks: GroupCost, links: Exchange, serving: Serving, tokens: Number
) -> Number:
    """All-reduces of a layer's results [s]; ranks reduce each copy of a token that their experts received.

    One all-reduce carries each result of a layer on the residual stream, of a dense layer two (Shoeybi et al. 2019, section
    3).  Where every rank has all experts and receives a token once, shared and routed ones have one sum.
    """
    several = smaller(plan.ep - 1.0, 1.0)
    results = model.results + model.shared * (1.0 - plan.per_node * (1.0 - several))
    received = copies(plan.ep, model.active, plan.per_node, reach(links, plan.node_limit))
    sums = results + model.moe * received
    message = tokens * model.hidden * plan.activation_bytes
    latency = (results + model.moe) * (serving.call + 2.0 * ranks.latency)
    return where(plan.tp > 1.0, latency + sums * (ranks.allreduce_s_per_byte * message / serving.link), 0.0)


def gathered_logits(model: Transformer, plan: Deployment, ranks: GroupCost, serving: Serving, logits: Number) -> Number:
    """All-gather of the logits of a pass, 4 bytes each [s]."""
    transfer = ranks.allgather_s_per_byte * logits * model.vocabulary * 4.0 / serving.link
    gathered = serving.call + ranks.latency + transfer
    return where(plan.tp > 1.0, where(logits > 0.0, gathered, 0.0), 0.0)


def expert_all_to_all(
    model: Transformer, plan: Deployment, links: Exchange, serving: Serving, tokens: Number
) -> Number:
    """All-to-all of a layer's tokens to their experts and back [s]; see :mod:`trnspec.perf.experts`."""
    byte = byte_time(links, model.active, plan.per_node, reach(links, plan.node_limit))
    message = tokens * model.hidden * plan.activation_bytes * (1.0 / plan.tp)
    carried = model.moe * model.inner * byte * (plan.sent * message) / serving.link
    return where(_dispatched(model, plan), 2.0 * (serving.call + links.hop + carried), 0.0)


def _dispatched(model: Transformer, plan: Deployment) -> Number:
    """Whether tokens are sent to experts of other ranks."""
    return (model.dispatched > 0.0) & (plan.ep > 1.0)


def pipeline_messages(
    model: Transformer, plan: Deployment, machine: Machine, serving: Serving, tokens: Number
) -> tuple[Number, Number]:
    """Messages between all stages over the widest link that any of them takes: time [s], and use of unknown links."""
    message = tokens * model.hidden * plan.activation_bytes
    stride = plan.tp * plan.dp
    span = stride * plan.pp
    *inner, last = machine.levels
    byte, hop, unknown = last.seconds_per_byte, last.hop, last.unknown
    for level in reversed(inner):
        within = span * level.share <= 1.0
        byte = where(within, level.seconds_per_byte / towards(level, stride), byte)
        hop, unknown = where(within, level.hop, hop), where(within, level.unknown, unknown)
    time = (plan.pp - 1.0) * (serving.call + hop + message / plan.tp * byte / serving.link)
    return time, where(plan.pp > 1.0, unknown, 0.0)


def run_forward(model: Transformer, plan: Deployment, machine: Machine, serving: Serving, load: Load) -> PassTime:
    """The time of one pass of a load through all layers, one stage after the other: the sum of the parts above."""
    ranks, links = group(machine, plan.tp, 1.0), exchange(machine, plan.ep, plan.tp)

    def layer(of: Load) -> _Layer:
        matrices, reading_weights = weight_matrices(model, plan, machine, serving, of.tokens)
        attending, reading_cache = attention(model, plan, machine, serving, of)
        return _Layer(
            matrices,
            attending,
            tensor_parallel_all_reduce(model, plan, ranks, links, serving, of.tokens),
            expert_all_to_all(model, plan, links, serving, of.tokens),
            serving.launch,
            reading_weights + reading_cache,
        )

    one = layer(load)
    if np.any(plan.expert_overlap > 0.0):
        half = load.half()
        # Latencies leave the links free.
        moved = tensor_parallel_all_reduce(
            model, plan, evolve(ranks, latency=0.0), links, evolve(serving, call=0.0), half.tokens
        )
        one = _overlapping(one, layer(half), moved * same_links(machine, plan.tp, plan.ep, plan.tp), plan, load)
    head, reading_output = output_and_sampling(model, plan, machine, serving, load.logits)
    pipeline, pipeline_unknown = pipeline_messages(model, plan, machine, serving, load.tokens)
    layers = model.layers
    parts = (
        layers * one.matrices,
        layers * one.attention,
        head,
        layers * one.tensor + gathered_logits(model, plan, ranks, serving, load.logits),
        layers * one.expert,
        pipeline,
        layers * one.launch,
        serving.step + 0.0 * load.tokens,
    )
    unknown = ranks.unknown + where(_dispatched(model, plan), links.unknown, 0.0) + pipeline_unknown
    return PassTime(summed(parts), *parts, layers * one.reading + reading_output, unknown)


@frozen
class _Layer:
    """The time of an average layer [s]; attributes are those of :class:`PassTime`."""

    matrices: Number
    attention: Number
    tensor: Number
    expert: Number
    launch: Number
    reading: Number


def _overlapping(whole: _Layer, half: _Layer, moved: Number, plan: Deployment, load: Load) -> _Layer:
    """A layer in which the all-to-all of each half of the tokens overlaps with the rest of the layer of the other half.

    Two-batch overlap (DeepSeek-V3, arXiv 2412.19437, section 3.4; ``--enable-two-batch-overlap`` of sgl-project/sglang).  Both halves
    read the weights, so decoding of few tokens takes longer than without; then the tokens are not split. Bytes of
    tensor-parallel collectives on the same links add to those of the all-to-all.

    Args:
        whole: The layer for all tokens.
        half: The layer for half of them.
        moved: The time for which its tensor-parallel collectives occupy the links of its all-to-all [s].
        plan: The deployment.
        load: The work of the pass.
    """
    rest = 2.0 * (half.matrices + half.attention + half.tensor + half.launch)
    exposed = larger(2.0 * (half.expert + moved) - rest, 0.0)
    before = whole.matrices + whole.attention + whole.tensor + whole.launch + whole.expert
    # Graphs that compute all experts from some tokens on are compiled for the whole batch.
    able = (plan.expert_overlap > 0.0) & ((plan.all_experts_from == 0.0) & (whole.expert > 0.0))
    split = able & ((load.tokens > 1.0) & (rest + exposed < before))
    halves = (half.matrices, half.attention, half.tensor, 0.5 * exposed, half.launch, half.reading)
    wholes = (whole.matrices, whole.attention, whole.tensor, whole.expert, whole.launch, whole.reading)
    return _Layer(*(where(split, 2.0 * one, other) for one, other in zip(halves, wholes, strict=True)))


def summed(parts: Sequence[Number]) -> Number:
    """The sum of the parts of a pass; attention comes last, the only one that depends on the context."""
    matrices, attention, *others = parts
    return sum(others, matrices) + attention
