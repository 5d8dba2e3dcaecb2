"""Products of a model's and a machine's numbers, from which every training step of one on the other is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.ops import Number, smaller

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.transformer import Transformer


@frozen(kw_only=True)
class Terms:
    """Times of a layer forward, elements of weights, and efficiencies, for one model on one machine.

    Attributes:
        layers: Number of layers.
        hidden: Hidden size.
        matmul: Time of a layer's matrix multiplications per token [s].
        repeated: Time of the key and value projections per token [s]; replicated where there are fewer heads than ranks.
        local_repeated: The same of windowed layers, which may have heads of their own.
        score: Time of attention per token and token of context [s].
        wide: Time of reading and writing the residual stream, without routed experts, per token and byte of an element
            [s].
        split: The same of tensors that tensor parallelism splits.
        weight: Time of reading a layer's weights once, without routed experts, per byte of an element [s].
        expert_weight: The same of routed experts.
        read: Time of reading a layer's weights once at the rate of device memory, without routed experts, per byte of an
            element [s].
        routed_read: The same of the routed experts that one token is sent to.
        stream: Time of norms and residuals per token and byte of an element [s].
        score_byte: Time of scores in memory per pair of tokens and byte of an element, where they are written [s].
        head: Time of the output matrix and the loss, forward and backward, per token [s]; multi-token prediction has one
            more for each module, and a matrix that joins two inputs.
        keys: Elements of keys and values over the hidden size.
        kv_heads: KV heads.
        local_keys: The same as ``keys`` of windowed layers.
        local_kv_heads: KV heads of windowed layers.
        causal_half: 0.5 for causal attention, else 0: the share of the scores that flash attention leaves out.
        written_half: The same where scores are written to memory.
        window: Attention window in tokens.
        chosen: Tokens whose keys an indexer chooses.
        full: Share of the scores in layers that attend to all keys.
        windowed: Share of the scores in layers that have a window.
        picked: Share of the scores in layers that have an indexer's choice.
        index: FLOP of indexers per query-key pair, over those of scores and values.
        recurrence: Keys whose scores and values cost a token as much as the recurrence of an average layer.
        kept: Elements of a layer that every rank of an expert-parallel group holds.
        routed: Elements of the routed experts of a layer.
        outer: Elements outside the layers with a single stage.
        last_extra: Elements outside the layers on the last of several stages, minus ``outer``.
        state: Time of the optimizer per byte that it reads or writes [s].
        forward: Least time of a layer forward [s].
        backward: Least time of a layer backward [s].
        overlap: Share of the computation that gradient communication can overlap with.
        exposed: Share of that communication that is exposed in any case.
        tensor_overlap: Share of a layer's computation that tensor-parallel collectives can overlap with.
        pipeline_overlap: Share of the messages between stages that the interleaved schedule overlaps with computation.
        dispatch: Fixed time of an all-to-all between experts besides that of a collective [s].
        exchange: Time of an all-to-all between experts over that at the rate of other collectives.
        expert_overlap: Share of the rest of a layer that the all-to-all can overlap with.
        step: Fixed time of a step [s].
        mtp: Modules of multi-token prediction.
        joined: Elements of the matrices that join their inputs.
        active: Experts per token; 0 for a dense model.
        moe: Share of the layers with experts.
        shared: Share of the layers with shared experts.
        results: Results of a layer on the residual stream, without experts: of attention, and of dense layers.
        routed_matmul: The part of ``matmul`` in routed experts [s].
        routed_wide: Time of reading and writing the residual stream in routed experts per token and byte of an element [s].
        routed_split: The part of ``split`` in routed experts [s].
    """

    layers: Number
    hidden: Number
    matmul: Number
    repeated: Number
    local_repeated: Number
    score: Number
    wide: Number
    split: Number
    weight: Number
    expert_weight: Number
    read: Number
    routed_read: Number
    stream: Number
    score_byte: Number
    head: Number
    keys: Number
    kv_heads: Number
    local_keys: Number
    local_kv_heads: Number
    causal_half: Number
    written_half: Number
    window: Number
    chosen: Number
    full: Number
    windowed: Number
    picked: Number
    index: Number
    recurrence: Number
    kept: Number
    routed: Number
    outer: Number
    last_extra: Number
    state: Number
    forward: Number
    backward: Number
    overlap: Number
    exposed: Number
    tensor_overlap: Number
    pipeline_overlap: Number
    exchange: Number
    dispatch: Number
    expert_overlap: Number
    step: Number
    mtp: Number
    joined: Number
    active: Number
    moe: Number
    shared: Number
    results: Number
    routed_matmul: Number
    routed_wide: Number
    routed_split: Number


def terms(model: Transformer, machine: Machine) -> Terms:
    """The products of a model and a machine.

    A matrix multiplication of ``w`` elements costs ``2 w`` FLOP per token forward; scores and values cost ``2 c (q + v)`` per
    token with a context of ``c`` (Narayanan et al. 2021, appendix).
    """
    pass_time = machine.matmul_passes * machine.byte
    outer = model.embedding + model.output * (1.0 - model.tied) + model.outer
    head_time = 6.0 * model.hidden * machine.head + machine.head_passes * 4.0 * machine.byte
    return Terms(
        layers=model.layers,
        hidden=model.hidden,
        matmul=2.0 * model.weights * machine.flop,
        repeated=2.0 * model.hidden * (model.projected - model.local_projected) * machine.flop,
        local_repeated=2.0 * model.hidden * model.local_projected * machine.flop,
        score=2.0 * model.scores * machine.score,
        # Each of a layer's matrices, or pairs of them, reads the residual stream and writes a result to it.
        wide=2.0 * model.hidden * (model.results + model.shared) * pass_time,
        split=model.split * pass_time,
        weight=model.whole * pass_time,
        expert_weight=model.routed * pass_time,
        read=model.whole * machine.byte,
        routed_read=(model.weights - model.whole) * machine.byte,
        stream=model.hidden * machine.hidden_passes * machine.byte,
        score_byte=(model.rows_full + model.rows_window + model.rows_chosen) * machine.score_passes * machine.byte,
        head=(1.0 + model.mtp) * model.vocabulary * head_time + 6.0 * model.mtp * model.joined * machine.flop,
        keys=(model.kv_elements - model.local_kv) / model.hidden,
        kv_heads=model.kv_heads,
        local_keys=model.local_kv / model.hidden,
        local_kv_heads=model.local_kv_heads,
        causal_half=0.5 * model.causal,
        written_half=0.5 * machine.causal * model.causal,
        window=model.window,
        chosen=model.chosen,
        full=model.score_full / model.scores,
        windowed=model.score_window / model.scores,
        picked=model.score_chosen / model.scores,
        index=model.index / model.scores,
        recurrence=model.recurrence / model.scores,
        kept=model.whole + model.small,
        routed=model.routed,
        outer=outer,
        # The last stage has an output matrix of its own even where it is tied to the embedding, and the final norm.
        last_extra=model.output + model.outer - outer,
        state=(1.0 + machine.optimizer_passes) * machine.byte,
        forward=machine.forward,
        backward=machine.backward,
        overlap=machine.overlap,
        exposed=machine.exposed,
        tensor_overlap=machine.tensor_overlap,
        pipeline_overlap=machine.pipeline_overlap,
        # Experts that process smaller vectors exchange those.
        exchange=model.inner / machine.exchange,
        dispatch=machine.dispatch,
        expert_overlap=machine.expert_overlap,
        step=machine.step,
        mtp=model.mtp,
        joined=model.mtp * model.joined,
        active=model.active,
        moe=model.moe,
        shared=model.shared,
        results=model.results,
        routed_matmul=2.0 * (model.weights - model.whole) * machine.flop,
        routed_wide=2.0 * model.hidden * model.inner * model.dispatched * pass_time,
        routed_split=model.routed_split * pass_time,
    )


def context(terms: Terms, seq: Number, flash: Number = 1.0) -> Number:
    """Keys that a query attends to in an average layer with attention, forward, over a sequence of ``seq`` tokens.

    Indexers and recurrences count as the keys that cost as much.

    Flash attention leaves out the blocks beyond the causal half; whether software that writes its scores does is calibrated.
    """
    causal_half = flash * terms.causal_half + (1.0 - flash) * terms.written_half
    unwindowed = seq * (1.0 - causal_half)
    keys = terms.full * unwindowed
    for share, limit in ((terms.windowed, terms.window), (terms.picked, terms.chosen)):
        window = smaller(limit, seq)
        # With a window w each token attends to w keys, but for the first w tokens, which attend to w/2 on average.
        keys = keys + share * (window - causal_half * window * window / seq)
    return keys + (terms.index * unwindowed + terms.recurrence)
