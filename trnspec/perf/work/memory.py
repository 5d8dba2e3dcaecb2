"""Memory of one rank by purpose: weights, gradients, optimizer states, activations, KV cache and buffers.

All functions take floats or float64 arrays that broadcast, and return the broadcast shape.  Sizes are in B.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Literal, NamedTuple

from attrs import Factory, evolve, field, frozen

from trnspec.perf.ops import Number, ceil, larger, smaller, somewhere, where
from trnspec.perf.work.activations import Activations, Storing, activations, expands, recompute_code, stage_activations
from trnspec.perf.work.frameworks import ALLOCATED
from trnspec.perf.work.reach import heads_of, mean, reaches
from trnspec.perf.work.stages import Layers, Split, in_flight, layers_of_stages, peak_stages, stage_layers
from trnspec.perf.work.transformer import STATE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

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
    return _sharded(parameters, _shards(copies, zero), optimizer)


def _shards(copies: Number, zero: Number) -> State:
    """Over how many ranks ZeRO shards each part of the model state."""
    return State(
        weights=where(zero >= 3.0, copies, 1.0),
        gradients=where(zero >= 2.0, copies, 1.0),
        optimizer=where(zero >= 1.0, copies, 1.0),
    )


def _sharded(parameters: Number, shards: State, optimizer: Optimizer) -> State:
    """The model state of some parameters, each part over a number of ranks [B]."""
    return State(
        weights=optimizer.weight_bytes * parameters / shards.weights,
        gradients=optimizer.grad_bytes * parameters / shards.gradients,
        optimizer=optimizer.state_bytes * parameters / shards.optimizer,
    )


def held_parameters(
    d: Dimensions, split: Split, stage: Number = 0.0, shares: Literal["stage", "even"] = "stage"
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
    """
    return stage_parameters(d, split, shares)(stage, stage_layers(d, split, stage))


def stage_parameters(
    d: Dimensions, split: Split, shares: Literal["stage", "even"] = "stage"
) -> Callable[[Number, Layers], RankParameters]:
    """Parameters as a function of a stage and of its dense and MoE layers; see :func:`held_parameters`.

    What is the same on all stages is computed once.
    """
    tp = split.tp
    kv_weights = d.hidden * mean(d, lambda own: own.projected)
    # Query heads are padded where they do not divide, which only serving allows.
    padding = mean(d, lambda own: own.width * (own.head_share(tp) * tp)) / mean(d, lambda own: own.width)
    attention = (d.attention_weights - kv_weights) / tp * padding + d.attention_small
    attention = attention + d.hidden * mean(d, lambda own: own.projected * own.kv_share(tp))
    mlp = d.mlp_weights / tp + _biases(d.mlp_small, d.hidden, tp)
    shared = d.shared_weights / tp + _biases(d.shared_small, d.hidden, tp)
    expert_weights = d.expert_weights / split.expert_split + _biases(d.expert_small, d.hidden, split.expert_split)
    outermost = d.outer_small + d.outer_weights / tp

    def of_stage(stage: Number, layers: Layers) -> RankParameters:
        dense, expert = layers
        first, last = split.first(stage), split.last(stage)
        head, outer = last * _own_head(d, first) / tp, last * outermost
        if shares == "even":
            head, outer = where(split.pp == 1.0, head, 0.0), outermost / split.pp
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

    return of_stage


def _biases(elements: Number, hidden: Number, tp: Number) -> Number:
    """Biases on a rank: inner ones are split with their matrix, those of width ``h`` on the result are replicated."""
    replicated = smaller(elements, hidden)
    return replicated + (elements - replicated) / tp


def model_state(
    d: Dimensions,
    split: Split,
    optimizer: Optimizer,
    zero: Number = 0.0,
    stage: Number = 0.0,
    shares: Literal["stage", "even"] = "stage",
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
    """
    return _states(d, split, optimizer, zero)(held_parameters(d, split, stage, shares))


def _states(d: Dimensions, split: Split, optimizer: Optimizer, zero: Number) -> Callable[[RankParameters], State]:
    """The model state as a function of the parameters of a rank [B]."""
    shards, routed = _shards(split.copies, zero), somewhere(d.expert_layers > 0.0)
    of_experts = _shards(split.expert_copies, zero) if routed else shards

    def state(parameters: RankParameters) -> State:
        dense = _sharded(parameters.dense, shards, optimizer)
        if not routed:
            return dense
        experts = _sharded(parameters.experts, of_experts, optimizer)
        return State(*(a + b for a, b in zip(dense, experts, strict=True)))

    return state


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
    of_stages = _of_stages(
        d,
        split,
        storing,
        optimizer,
        seq=seq,
        microbatch=microbatch,
        microbatches=microbatches,
        zero=zero,
        runtime=runtime,
    )
    return of_stages(stage)


def _of_stages(  # noqa: PLR0913  # those of training_memory
    d: Dimensions,
    split: Split,
    storing: Storing,
    optimizer: Optimizer,
    *,
    seq: Number,
    microbatch: Number,
    microbatches: Number,
    zero: Number,
    runtime: Runtime,
) -> Callable[[Number], Memory]:
    """Memory as a function of a stage; see :func:`training_memory`.  What is the same on all stages is computed once."""
    if runtime.gathered_inputs:
        storing = evolve(storing, gathered_inputs=runtime.gathered_inputs)
    layers_of, parameters, state_of = (
        layers_of_stages(d, split), stage_parameters(d, split), _states(d, split, optimizer, zero)
    )  # fmt: skip
    activations_ = stage_activations(d, split, storing, seq=seq, microbatch=microbatch, microbatches=microbatches)
    transient = _stage_gradients(d, split, storing)
    buffers = _pipeline_buffers(d, split, storing, seq, microbatch) + _gathered_weights(d, split, optimizer, zero)

    def of_stage(stage: Number) -> Memory:
        layers = layers_of(stage)
        state = state_of(parameters(stage, layers))
        stored = activations_(stage, layers)
        bucket = smaller(runtime.bucket, state.gradients) if runtime.bucket else 0.0
        return Memory(
            weights=state.weights,
            gradients=state.gradients,
            optimizer=state.optimizer,
            activations=stored.layers,
            embeddings_and_logits=stored.embedding + stored.output,
            recomputed=stored.recomputed,
            transient=transient(stage, layers),
            buffers=buffers + where(split.copies > 1.0, bucket, 0.0) if runtime.bucket else buffers,
            reserve=runtime.reserve,
        )

    return of_stage


def transient_gradients(d: Dimensions, split: Split, storing: Storing, stage: Number = 0.0) -> Number:
    """Gradients that the backward pass has computed and not yet accumulated, on a rank of a stage [B].

    They are as wide as activations.  At the peak there are those of the widest matrix of a layer, gate and up together, and
    of the embedding or the output.  With a loss that is not fused, the logits are larger and are freed before.

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        storing: What is stored for the backward pass.
        stage: The pipeline stage, from 0.
    """
    return _stage_gradients(d, split, storing)(stage, stage_layers(d, split, stage))


def _stage_gradients(d: Dimensions, split: Split, storing: Storing) -> Callable[[Number, Layers], Number]:
    """The same as a function of a stage and of its dense and MoE layers."""
    fused = where(storing.fused_loss > 0.0, 1.0, 0.0)
    routed = where(d.experts > 0.0, d.expert_width / split.expert_split, 0.0)
    projected = 0.0
    for own in heads_of(d):
        projected = larger(projected, (own.heads * own.qk_size + own.projected) / split.tp)
    projected = where(expands(d), 0.0, projected)

    def of_stage(stage: Number, layers: Layers) -> Number:
        first, last = split.first(stage), split.last(stage)
        vocabulary = larger(first * (1.0 - last), last * fused) * d.embedding / split.tp
        network = d.width / split.tp
        if somewhere(d.expert_layers > 0.0):
            network = larger(where(layers[0] > 0.0, d.width, 0.0), d.shared_width) / split.tp
        widest = larger((d.matrices - 1.0) * larger(network, routed), projected)
        return storing.element_bytes * (vocabulary + d.hidden * widest)

    return of_stage


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
    of_stages = _of_stages(
        d,
        split,
        storing,
        optimizer,
        seq=seq,
        microbatch=microbatch,
        microbatches=microbatches,
        zero=zero,
        runtime=runtime,
    )
    return reduce(larger, (of_stages(stage).total for stage in stages))


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
