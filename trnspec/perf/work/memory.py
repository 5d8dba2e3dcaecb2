"""Memory of one rank by purpose: weights, gradients, optimizer states, activations, KV cache and buffers.

All functions take floats or float64 arrays that broadcast, and return the broadcast shape.  Sizes are in B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from attrs import Factory, evolve, field, frozen

from trnspec.perf.ops import Number, ceil, larger, smaller, somewhere, where
from trnspec.perf.work.activations import Activations, Storing, activations, expands, recompute_code
from trnspec.perf.work.frameworks import ALLOCATED
from trnspec.perf.work.reach import heads_of, mean, reaches
from trnspec.perf.work.stages import Split, in_flight, peak_stages, stage_layers
from trnspec.perf.work.transformer import STATE_BYTES

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.work.frameworks import Runtime

__all__ = [
    "OPTIMIZERS",
    "Activations",
    "Memory",
    "Optimizer",
    "RankParameters",
    "Split",
    "State",
    "Storing",
    "activations",
    "cache",
    "held_parameters",
    "in_flight",
    "inference_memory",
    "kv_cache",
    "model_state",
    "peak_memory",
    "peak_stages",
    "recompute_code",
    "spread",
    "stage_layers",
    "training_memory",
]  # fmt: skip


@frozen(kw_only=True)
class Optimizer:
    """Bytes per parameter in training.

    Attributes:
        weight_bytes: Weight as it is stored.
        grad_bytes: Gradient.
        state_bytes: Optimizer states: master copy and moments.
        compute_bytes: Weight as it is multiplied and gathered; as it is stored if left out.
        note: Description.
        master: 1.0 where a master copy is among the states, so that the update does not read the weights.
    """

    weight_bytes: Number
    grad_bytes: Number
    state_bytes: Number
    compute_bytes: Number = field(default=Factory(lambda self: self.weight_bytes, takes_self=True))
    note: str = ""
    master: Number = 1.0

    @property
    def update_bytes(self) -> Number:
        """Bytes that the update of a parameter reads and writes: states and weight, and the gradient, which is read."""
        return self.grad_bytes + 2.0 * self.state_bytes + (2.0 - self.master) * self.weight_bytes


OPTIMIZERS = {
    "adam": Optimizer(
        weight_bytes=2.0, grad_bytes=2.0, state_bytes=12.0, note="16 bit; master copy and moments in 32 bit"
    ),
    "adam-fp32-grads": Optimizer(
        weight_bytes=2.0, grad_bytes=4.0, state_bytes=12.0, note="as adam, with gradients in 32 bit (Megatron-LM)"
    ),
    "adam-fp32": Optimizer(weight_bytes=4.0, grad_bytes=4.0, state_bytes=8.0, note="all in 32 bit", master=0.0),
    "adam-fsdp": Optimizer(
        weight_bytes=4.0,
        grad_bytes=4.0,
        state_bytes=8.0,
        compute_bytes=2.0,
        note="all in 32 bit, weights gathered in 16 bit (FSDP with mixed precision)",
        master=0.0,
    ),
    "adam-bf16": Optimizer(
        weight_bytes=2.0,
        grad_bytes=2.0,
        state_bytes=4.0,
        note="all in 16 bit, rounded stochastically, no master copy",
        master=0.0,
    ),
    "adam-8bit": Optimizer(
        weight_bytes=2.0, grad_bytes=2.0, state_bytes=6.0, note="16 bit; master copy in 32 bit, moments in 8 bit"
    ),
    "sgd-momentum": Optimizer(
        weight_bytes=2.0, grad_bytes=2.0, state_bytes=8.0, note="16 bit; master copy and momentum in 32 bit"
    ),
}
"""Optimizers by name; ``adam`` has the K = 12 of Rajbhandari et al. 2020, section 3.1."""


class State(NamedTuple):
    """Bytes of the model state on one rank."""

    weights: Number
    gradients: Number
    optimizer: Number

    @property
    def total(self) -> Number:
        """The sum of all parts."""
        return self.weights + self.gradients + self.optimizer


class RankParameters(NamedTuple):
    """Parameters on one rank, before ZeRO shards anything.

    Attributes:
        dense: All but routed experts.
        experts: Routed experts.
    """

    dense: Number
    experts: Number


def embedding_and_output(d: Dimensions, split: Split, stage: Number = 0.0) -> Number:
    """Parameters of the embedding and the output matrix on a rank of a stage: a part of ``RankParameters.dense``."""
    first, last = split.first(stage), split.last(stage)
    return (first * d.embedding + last * _own_head(d, first)) / split.tp


def _own_head(d: Dimensions, first: Number) -> Number:
    """Parameters of the output on its stage: a tied output is the embedding itself, and on another stage a second copy."""
    return (1.0 - d.tied * first) * d.head


def spread(parameters: Number, copies: Number, optimizer: Optimizer, zero: Number) -> State:
    """The model state of some parameters when ZeRO shards it over the ranks that hold the same ones [B].

    Stage 1 shards the optimizer states, 2 also the gradients, 3 also the weights (Rajbhandari et al. 2020, figure 1).

    Args:
        parameters: Parameters that the ranks have in common.
        copies: Number of ranks that hold them.
        optimizer: Bytes per parameter.
        zero: ZeRO stage, 0.0 to 3.0.
    """
    return State(
        weights=optimizer.weight_bytes * parameters / where(zero >= 3.0, copies, 1.0),
        gradients=optimizer.grad_bytes * parameters / where(zero >= 2.0, copies, 1.0),
        optimizer=optimizer.state_bytes * parameters / where(zero >= 1.0, copies, 1.0),
    )


def held_parameters(
    d: Dimensions,
    split: Split,
    stage: Number = 0.0,
    shares: Literal["stage", "even"] = "stage",
    layers: tuple[Number, Number] | None = None,
) -> RankParameters:
    """Parameters that a rank of a stage holds.

    Tensor parallelism splits matrices, embedding and output; norms, the router and biases of results on the residual
    stream are replicated on every rank, as are KV heads where there are fewer than ranks.

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        stage: The pipeline stage, from 0.
        shares: ``stage``: parameters outside the layers count on the stage that uses them. ``even``: every stage has its
            share of the final norm, and no stage has the output unless there is only one, as in Megatron-LM's estimator.
        layers: The dense and the MoE layers of the stage, where they are known: :func:`stage_layers`.
    """
    tp = split.tp
    dense, expert = stage_layers(d, split, stage) if layers is None else layers
    kv_weights = d.hidden * mean(d, lambda own: own.projected)
    # Query heads are padded where they do not divide, which only serving allows.
    padding = mean(d, lambda own: own.width * (own.head_share(tp) * tp)) / mean(d, lambda own: own.width)
    attention = (d.attention_weights - kv_weights) / tp * padding + d.attention_small
    attention = attention + d.hidden * mean(d, lambda own: own.projected * own.kv_share(tp))
    mlp = d.mlp_weights / tp + _biases(d.mlp_small, d.hidden, tp)
    shared = d.shared_weights / tp + _biases(d.shared_small, d.hidden, tp)
    expert_weights = d.expert_weights / split.expert_split + _biases(d.expert_small, d.hidden, split.expert_split)
    first, last = split.first(stage), split.last(stage)
    head = last * _own_head(d, first) / tp
    outer = last * (d.outer_small + d.outer_weights / tp)
    if shares == "even":
        outer = (d.outer_small + d.outer_weights / tp) / split.pp
        head = where(split.pp == 1.0, head, 0.0)
    return RankParameters(
        dense=(dense + expert) * attention
        + dense * mlp
        + expert * (shared + d.router_weights + d.router_small)
        + first * (d.embedding / tp + d.positions)
        + head
        + outer
        + last * d.mtp_layers * (d.mtp_weights / tp + d.mtp_small),
        experts=expert * (d.experts / split.ep) * expert_weights,
    )


def _biases(elements: Number, hidden: Number, tp: Number) -> Number:
    """Biases on a rank: inner ones are split with their matrix, those of width ``h`` on the result are replicated."""
    replicated = smaller(elements, hidden)
    return replicated + (elements - replicated) / tp


def model_state(  # noqa: PLR0917  # the first six are those of held_parameters
    d: Dimensions,
    split: Split,
    optimizer: Optimizer,
    zero: Number = 0.0,
    stage: Number = 0.0,
    shares: Literal["stage", "even"] = "stage",
    layers: tuple[Number, Number] | None = None,
) -> State:
    """Bytes of weights, gradients and optimizer states on a rank of a stage.

    ZeRO shards over ``dp cp`` ranks, and routed experts over the ranks that hold the same ones.

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        optimizer: Bytes per parameter.
        zero: ZeRO stage, 0.0 to 3.0.
        stage: The pipeline stage, from 0.
        shares: See :func:`held_parameters`.
        layers: The same.
    """
    parameters = held_parameters(d, split, stage, shares, layers)
    dense = spread(parameters.dense, split.copies, optimizer, zero)
    experts = spread(parameters.experts, split.expert_copies, optimizer, zero)
    return State(*(a + b for a, b in zip(dense, experts, strict=True)))


def kv_cache(d: Dimensions, tokens: Number, batch: Number, element_bytes: Number = 2.0, tp: Number = 1.0) -> Number:
    """KV cache on one rank [B], all layers: ``2 L g d`` elements per token, and the states of recurrences.

    Tensor parallelism splits it into at most ``kv_heads`` parts; beyond that heads are replicated.  A latent cache is not
    split.  Windowed layers store at most their window.  Every rank holds the keys of indexers; states are split by heads.

    Args:
        d: The transformer.
        tokens: Tokens of a sequence that are stored.
        batch: Sequences.
        element_bytes: Bytes of an element.
        tp: Tensor-parallel degree.
    """
    keys = d.index_layers * d.index_size * tokens / larger(d.sparse_stride, 1.0)
    for one in reaches(d):
        kept = where(one.kept > 0.0, smaller(one.kept, tokens), tokens) / one.stride
        keys = keys + one.layers * kept * (one.heads.kv_elements * one.heads.kv_share(tp))
    return batch * (keys * element_bytes + d.state * STATE_BYTES / tp)


def cache(d: Dimensions, split: Split, tokens: Number, batch: Number, element_bytes: Number = 2.0) -> Number:
    """KV cache on a rank [B], with layers split over stages, tokens over ``cp`` and sequences over ``dp``."""
    replica_cache = kv_cache(d, tokens, ceil(batch / split.dp), element_bytes, split.tp)
    return replica_cache / split.pp / split.cp


@frozen(kw_only=True)
class Memory:
    """Memory of one rank by purpose [B]; each a float or an array.

    Attributes:
        weights: Weights that the rank holds.
        gradients: Gradients.
        optimizer: Optimizer states: master copies and moments.
        activations: Activations of the layers: stored for the backward pass; in inference, in use.
        embeddings_and_logits: Activations of embedding, final norm and output; logits.
        recomputed: Held temporarily during recompute.
        transient: Gradients before they are accumulated, see :func:`transient_gradients`.
        cache: KV cache.
        buffers: Communication buffers, and weights gathered for the current layer.
        reserve: Memory kept for the runtime, communication and fragmentation.
    """

    weights: Number = 0.0
    gradients: Number = 0.0
    optimizer: Number = 0.0
    activations: Number = 0.0
    embeddings_and_logits: Number = 0.0
    recomputed: Number = 0.0
    transient: Number = 0.0
    cache: Number = 0.0
    buffers: Number = 0.0
    reserve: Number = 0.0

    @property
    def total(self) -> Number:
        """The sum of all parts."""
        # The sum is in an order in which sweeps have few large arrays: what activations depend on comes last, then the cache.
        state = self.weights + self.gradients + self.optimizer
        fixed = state + self.transient + self.buffers + self.reserve
        total = fixed + (self.activations + self.embeddings_and_logits + self.recomputed)
        return total if type(self.cache) is float and self.cache == 0.0 else total + self.cache


def training_memory(  # noqa: PLR0913  # each is an input of the evaluator
    d: Dimensions,
    split: Split,
    storing: Storing,
    optimizer: Optimizer,
    *,
    seq: Number,
    microbatch: Number,
    microbatches: Number,
    zero: Number = 0.0,
    stage: Number = 0.0,
    runtime: Runtime = ALLOCATED,
) -> Memory:
    """Memory of a rank of a stage at the peak of a training step [B].

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        storing: What is stored for the backward pass.
        optimizer: Bytes per parameter.
        seq: Tokens of a sequence.
        microbatch: Sequences of a microbatch.
        microbatches: Microbatches per step and replica.
        zero: ZeRO stage, 0.0 to 3.0.
        stage: The pipeline stage, from 0.
        runtime: What software needs besides; nothing by default.
    """
    if runtime.gathered_inputs:
        storing = evolve(storing, gathered_inputs=runtime.gathered_inputs)
    layers = stage_layers(d, split, stage)
    state = model_state(d, split, optimizer, zero, stage, layers=layers)
    stored = activations(
        d, split, storing, seq=seq, microbatch=microbatch, microbatches=microbatches, stage=stage, layers=layers
    )
    bucket = smaller(runtime.bucket, state.gradients) if runtime.bucket else 0.0
    return Memory(
        weights=state.weights,
        gradients=state.gradients,
        optimizer=state.optimizer,
        activations=stored.layers,
        embeddings_and_logits=stored.embedding + stored.output,
        recomputed=stored.recomputed,
        transient=transient_gradients(d, split, storing, stage, layers),
        buffers=_pipeline_buffers(d, split, storing, seq, microbatch)
        + _gathered_weights(d, split, optimizer, zero)
        + where(split.copies > 1.0, bucket, 0.0),
        reserve=runtime.reserve,
    )


def transient_gradients(
    d: Dimensions,
    split: Split,
    storing: Storing,
    stage: Number = 0.0,
    layers: tuple[Number, Number] | None = None,
) -> Number:
    """Gradients that the backward pass has computed and not yet accumulated, on a rank of a stage [B].

    They are as wide as activations.  At the peak there are those of the widest matrix of a layer, gate and up together, and
    of the embedding or the output.  With a loss that is not fused, the logits are larger and are freed before.

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        storing: What is stored for the backward pass.
        stage: The pipeline stage, from 0.
        layers: The dense and the MoE layers of the stage, where they are known: :func:`stage_layers`.
    """
    first, last = split.first(stage), split.last(stage) * where(storing.fused_loss > 0.0, 1.0, 0.0)
    vocabulary = larger(first * (1.0 - split.last(stage)), last) * d.embedding / split.tp
    inner = d.matrices - 1.0
    network = d.width / split.tp
    if somewhere(d.expert_layers > 0.0):
        dense, _ = stage_layers(d, split, stage) if layers is None else layers
        network = larger(where(dense > 0.0, d.width, 0.0), d.shared_width) / split.tp
    widest = inner * larger(network, where(d.experts > 0.0, d.expert_width / split.expert_split, 0.0))
    projected = 0.0
    for own in heads_of(d):
        projected = larger(projected, (own.heads * own.qk_size + own.projected) / split.tp)
    widest = larger(widest, where(expands(d), 0.0, projected))
    return storing.element_bytes * (vocabulary + d.hidden * widest)


def _pipeline_buffers(d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number) -> Number:
    """Receive buffers between stages: activations of one microbatch forward, gradients of one backward."""
    sequence_split = where(storing.sequence_parallel > 0.0, split.tp, 1.0)
    message = seq / split.cp * microbatch * d.hidden * storing.element_bytes / sequence_split
    return where(split.pp > 1.0, 2.0 * message, 0.0)


def _gathered_weights(d: Dimensions, split: Split, optimizer: Optimizer, zero: Number) -> Number:
    """Weights that ZeRO 3 gathers: of the current layer and the next, of the larger kind."""
    dense = where(d.layers > d.expert_layers, d.mlp_weights, 0.0) / split.tp
    routed = d.experts / split.ep * d.expert_weights / split.expert_split
    expert = where(d.expert_layers > 0.0, routed + d.shared_weights / split.tp + d.router_weights, 0.0)
    layer = d.attention_weights / split.tp + larger(dense, expert)
    single_rank = split.copies * split.expert_copies <= 1.0
    return where(zero >= 3.0, where(single_rank, 0.0, 2.0 * optimizer.compute_bytes * layer), 0.0)


def peak_memory(  # noqa: PLR0913  # those of training_memory
    d: Dimensions,
    split: Split,
    storing: Storing,
    optimizer: Optimizer,
    *,
    seq: Number,
    microbatch: Number,
    microbatches: Number,
    zero: Number = 0.0,
    runtime: Runtime = ALLOCATED,
) -> Number:
    """Memory of the rank that needs the most [B]: the largest total among :func:`peak_stages`.

    Arguments are those of :func:`training_memory`.
    """
    stages = peak_stages(d, split)
    if all(type(stage) is float for stage in stages):
        stages = tuple(dict.fromkeys(stages))
    peak: Number = 0.0
    for stage in stages:
        memory = training_memory(
            d,
            split,
            storing,
            optimizer,
            seq=seq,
            microbatch=microbatch,
            microbatches=microbatches,
            zero=zero,
            stage=stage,
            runtime=runtime,
        )
        peak = larger(peak, memory.total)
    return peak


def inference_memory(  # noqa: PLR0913  # each is an input of the evaluator
    d: Dimensions,
    split: Split,
    *,
    context: Number,
    batch: Number,
    step_tokens: Number,
    weight_bytes: Number = 2.0,
    whole_bytes: Number = 0.0,
    head_bytes: Number = 0.0,
    kv_bytes: Number = 2.0,
    activation_bytes: Number = 2.0,
    stage: Number = 0.0,
    reserve: Number = 0.0,
) -> Memory:
    """Memory of a rank of a stage in inference [B].

    Activations are an estimate: for the tokens of one step, twice the residual stream and the widest inner tensors of a
    layer; on the last stage logits of 4 bytes, one per sequence.

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        context: Tokens of a sequence in the KV cache.
        batch: Sequences, over all of ``dp``.
        step_tokens: Tokens computed at once on a rank: those of a prefill, or one per sequence.
        weight_bytes: Bytes of a weight.
        whole_bytes: The same outside routed experts; 0.0 for ``weight_bytes``.
        head_bytes: The same of the embedding and the output matrix; 0.0 for ``weight_bytes``.
        kv_bytes: Bytes of a KV-cache element.
        activation_bytes: Bytes of an activation.
        stage: The pipeline stage, from 0.
        reserve: Memory kept for the runtime, communication and fragmentation.
    """
    d = evolve(d, mtp_layers=0.0) if somewhere(d.mtp_layers > 0.0) else d
    parameters = held_parameters(d, split, stage)
    weights = weight_bytes * (parameters.dense + parameters.experts)
    if somewhere(whole_bytes > 0.0) or somewhere(head_bytes > 0.0):
        outer = embedding_and_output(d, split, stage)
        weights = weights + where(whole_bytes > 0.0, whole_bytes - weight_bytes, 0.0) * (parameters.dense - outer)
        weights = weights + where(head_bytes > 0.0, head_bytes - weight_bytes, 0.0) * outer
    tp = split.tp
    queries = 0.0
    for own in heads_of(d):
        queries = larger(queries, own.width / tp + own.kv_elements * own.kv_share(tp))
    feed_forward = larger(d.matrices * d.width, d.matrices * (d.active * d.expert_width + d.shared_width)) / tp
    return Memory(
        weights=weights,
        activations=step_tokens * activation_bytes * (2.0 * d.hidden + larger(queries, feed_forward)),
        embeddings_and_logits=split.last(stage) * 4.0 * ceil(batch / split.dp) * d.vocabulary / tp,
        cache=cache(d, split, context, batch, kv_bytes),
        buffers=where(split.pp > 1.0, 2.0 * step_tokens * d.hidden * activation_bytes, 0.0),
        reserve=reserve,
    )
