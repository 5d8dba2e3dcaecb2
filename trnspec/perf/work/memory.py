"""The bytes on one rank: weights, gradients, optimizer, activations, cache and buffers.

All functions take floats or float64 arrays that broadcast; results have the shape that they broadcast to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from attrs import frozen

from trnspec.perf.ops import Number, ceil, larger, smaller, where
from trnspec.perf.work.activations import Activations, Storing, activations, recompute_code, shared_heads
from trnspec.perf.work.stages import Split, in_flight, peak_stages, stage_layers

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions

__all__ = [
    "OPTIMIZERS",
    "Activations",
    "Held",
    "Memory",
    "Optimizer",
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
    """Bytes of a parameter in training.

    Attributes:
        weight_bytes: The weight that is multiplied.
        grad_bytes: Its gradient.
        state_bytes: What the optimizer keeps: a master copy, moments.
        note: What they are.
    """

    weight_bytes: Number
    grad_bytes: Number
    state_bytes: Number
    note: str = ""


OPTIMIZERS = {
    "adam": Optimizer(
        weight_bytes=2.0, grad_bytes=2.0, state_bytes=12.0, note="16 bit; master copy and moments in 32 bit"
    ),
    "adam-fp32-grads": Optimizer(
        weight_bytes=2.0, grad_bytes=4.0, state_bytes=12.0, note="as adam, with gradients in 32 bit (Megatron-LM)"
    ),
    "adam-fp32": Optimizer(weight_bytes=4.0, grad_bytes=4.0, state_bytes=8.0, note="all in 32 bit"),
    "adam-bf16": Optimizer(
        weight_bytes=2.0, grad_bytes=2.0, state_bytes=4.0, note="all in 16 bit, rounded stochastically, no master copy"
    ),
    "adam-8bit": Optimizer(
        weight_bytes=2.0, grad_bytes=2.0, state_bytes=6.0, note="16 bit; master copy in 32 bit, moments in 8 bit"
    ),
    "sgd-momentum": Optimizer(
        weight_bytes=2.0, grad_bytes=2.0, state_bytes=8.0, note="16 bit; master copy and momentum in 32 bit"
    ),
}
"""Bytes of a parameter by the name of the optimizer; ``adam`` is the K = 12 of Rajbhandari et al. 2020, section 3.1."""


class State(NamedTuple):
    """Bytes of the model's state on one rank."""

    weights: Number
    gradients: Number
    optimizer: Number

    @property
    def total(self) -> Number:
        """The sum."""
        return self.weights + self.gradients + self.optimizer


class Held(NamedTuple):
    """Parameters on one rank, before ZeRO spreads anything.

    Attributes:
        dense: All but routed experts.
        experts: Routed experts.
    """

    dense: Number
    experts: Number


def spread(parameters: Number, copies: Number, optimizer: Optimizer, zero: Number) -> State:
    """The state of some parameters when ZeRO spreads it over the ranks that hold the same ones.

    Stage 1 spreads the optimizer, 2 also the gradients, 3 also the weights (Rajbhandari et al. 2020, figure 1).

    Args:
        parameters: Parameters that the ranks hold alike.
        copies: Ranks that hold them.
        optimizer: Bytes of a parameter.
        zero: 0.0 to 3.0.
    """
    return State(
        weights=optimizer.weight_bytes * parameters / where(zero >= 3.0, copies, 1.0),
        gradients=optimizer.grad_bytes * parameters / where(zero >= 2.0, copies, 1.0),
        optimizer=optimizer.state_bytes * parameters / where(zero >= 1.0, copies, 1.0),
    )


def held_parameters(
    d: Dimensions, split: Split, stage: Number = 0.0, shares: Literal["stage", "even"] = "stage"
) -> Held:
    """Parameters that a rank of a stage holds.

    Tensor parallelism splits the matrices, the embedding and the output; norms, the router and biases of what flows back
    into the network are whole on every rank, as are the heads of keys and values that are too few to split.

    Args:
        d: The transformer.
        split: How it is split.
        stage: The stage, from 0.
        shares: ``stage``: what is outside the layers is where it is needed. ``even``: the final norm counts on every
            stage with its share, and the first has no output unless it is the only one, as in Megatron-LM's estimator.
    """
    tp = split.tp
    dense, expert = stage_layers(d, split, stage)
    keys = d.hidden * d.kv_elements
    # Whole query heads too, padded where they do not divide, which only serving allows.
    padded = ceil(d.heads / tp) * tp / d.heads
    attention = (d.attention_weights - keys) / tp * padded + keys * shared_heads(d, tp) + d.attention_small
    mlp = d.mlp_weights / tp + _biases(d.mlp_small, d.hidden, tp)
    shared = d.shared_weights / tp + _biases(d.shared_small, d.hidden, tp)
    one = d.expert_weights / split.expert_split + _biases(d.expert_small, d.hidden, split.expert_split)
    first, last = split.first(stage), split.last(stage)
    # A tied output is the embedding again, and another copy of it only on another stage.
    head = last * (1.0 - d.tied * first) * d.head / tp
    outer = last * (d.outer_small + d.outer_weights / tp)
    if shares == "even":
        outer = (d.outer_small + d.outer_weights / tp) / split.pp
        head = where(split.pp == 1.0, head, 0.0)
    return Held(
        dense=(dense + expert) * attention
        + dense * mlp
        + expert * (shared + d.router_weights)
        + first * (d.embedding / tp + d.positions)
        + head
        + outer,
        experts=expert * (d.experts / split.ep) * one,
    )


def _biases(elements: Number, hidden: Number, tp: Number) -> Number:
    """Biases on a rank: those inside are split with their matrix, those of width ``h`` that leave it are whole."""
    whole = smaller(elements, hidden)
    return whole + (elements - whole) / tp


def model_state(
    d: Dimensions,
    split: Split,
    optimizer: Optimizer,
    zero: Number = 0.0,
    stage: Number = 0.0,
    shares: Literal["stage", "even"] = "stage",
) -> State:
    """Bytes of weights, gradients and optimizer on a rank of a stage.

    ZeRO spreads over ``dp cp`` ranks, of routed experts over those that hold the same ones.

    Args:
        d: The transformer.
        split: How it is split.
        optimizer: Bytes of a parameter.
        zero: The stage of ZeRO, 0.0 to 3.0.
        stage: The stage of the pipeline, from 0.
        shares: See :func:`held_parameters`.
    """
    held = held_parameters(d, split, stage, shares)
    dense = spread(held.dense, split.copies, optimizer, zero)
    experts = spread(held.experts, split.expert_copies, optimizer, zero)
    return State(*(a + b for a, b in zip(dense, experts, strict=True)))


def kv_cache(d: Dimensions, tokens: Number, batch: Number, element_bytes: Number = 2.0, tp: Number = 1.0) -> Number:
    """Bytes of the cache of keys and values on one rank, all layers: ``2 L g d`` elements a token.

    Tensor parallelism splits it into at most ``kv_heads`` parts; beyond, heads are repeated. A latent cache is not split.
    Windowed layers keep no more than their window.

    Args:
        d: The transformer.
        tokens: Tokens of a sequence that are kept.
        batch: Sequences.
        element_bytes: Bytes of an element.
        tp: Ranks of tensor parallelism.
    """
    windowed = where(d.window > 0.0, smaller(d.window, tokens), tokens)
    kept = (d.layers - d.windowed_layers) * tokens + d.windowed_layers * windowed
    return kept * batch * d.kv_elements * element_bytes * shared_heads(d, tp)


def cache(d: Dimensions, split: Split, tokens: Number, batch: Number, element_bytes: Number = 2.0) -> Number:
    """Bytes of the cache on a rank when layers are split over stages, tokens over ``cp``, sequences over ``dp``."""
    each = kv_cache(d, tokens, ceil(batch / split.dp), element_bytes, split.tp)
    return each / split.pp / split.cp


@frozen(kw_only=True)
class Memory:
    """Bytes on one rank, by what they are for; each a float or an array.

    Attributes:
        weights: Weights that the rank holds.
        gradients: Gradients.
        optimizer: Master copies and moments.
        activations: Kept for the backward pass, in the layers; in inference, in use.
        outside: Activations of embedding, final norm and output; logits.
        recomputed: What recomputing holds in passing.
        cache: Keys and values.
        buffers: Buffers of communication, and weights gathered for the layer in work.
    """

    weights: Number = 0.0
    gradients: Number = 0.0
    optimizer: Number = 0.0
    activations: Number = 0.0
    embeddings_and_logits: Number = 0.0
    recomputed: Number = 0.0
    cache: Number = 0.0
    buffers: Number = 0.0

    @property
    def total(self) -> Number:
        """The sum."""
        state = self.weights + self.gradients + self.optimizer
        return state + self.activations + self.embeddings_and_logits + self.recomputed + self.cache + self.buffers


def training_memory(  # noqa: PLR0913  # each is an axis of the question
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
) -> Memory:
    """Bytes on a rank of a stage at the peak of a training step.

    Args:
        d: The transformer.
        split: How it is split.
        storing: What is kept for the backward pass.
        optimizer: Bytes of a parameter.
        seq: Tokens of a sequence.
        microbatch: Sequences of a microbatch.
        microbatches: Microbatches of a step and pipeline.
        zero: The stage of ZeRO, 0.0 to 3.0.
        stage: The stage of the pipeline, from 0.
    """
    state = model_state(d, split, optimizer, zero, stage)
    kept = activations(d, split, storing, seq=seq, microbatch=microbatch, microbatches=microbatches, stage=stage)
    return Memory(
        weights=state.weights,
        gradients=state.gradients,
        optimizer=state.optimizer,
        activations=kept.layers,
        embeddings_and_logits=kept.embedding + kept.output,
        recomputed=kept.recomputed,
        buffers=_exchanged(d, split, storing, seq, microbatch) + _gathered(d, split, optimizer, zero),
    )


def _exchanged(d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number) -> Number:
    """What neighbours in the pipeline send: one microbatch's activations received forward, one backward."""
    along = where(storing.sequence_parallel > 0.0, split.tp, 1.0)
    one = seq / split.cp * microbatch * d.hidden * storing.element_bytes / along
    return where(split.pp > 1.0, 2.0 * one, 0.0)


def _gathered(d: Dimensions, split: Split, optimizer: Optimizer, zero: Number) -> Number:
    """Weights that ZeRO's stage 3 gathers: of the layer in work and of the next, of the larger kind."""
    dense = where(d.layers > d.expert_layers, d.mlp_weights, 0.0) / split.tp
    routed = d.experts / split.ep * d.expert_weights / split.expert_split
    expert = where(d.expert_layers > 0.0, routed + d.shared_weights / split.tp + d.router_weights, 0.0)
    layer = d.attention_weights / split.tp + larger(dense, expert)
    alone = split.copies * split.expert_copies <= 1.0
    return where(zero >= 3.0, where(alone, 0.0, 2.0 * optimizer.weight_bytes * layer), 0.0)


def peak_memory(
    d: Dimensions,
    split: Split,
    storing: Storing,
    optimizer: Optimizer,
    *,
    seq: Number,
    microbatch: Number,
    microbatches: Number,
    zero: Number = 0.0,
) -> Number:
    """Bytes on the rank that needs the most: the largest total among the stages of :func:`peak_stages`.

    Arguments are those of :func:`training_memory`.
    """
    most: Number = 0.0
    for stage in peak_stages(d, split):
        found = training_memory(
            d, split, storing, optimizer,
            seq=seq, microbatch=microbatch, microbatches=microbatches, zero=zero, stage=stage,
        )  # fmt: skip
        most = larger(most, found.total)
    return most


def inference_memory(  # noqa: PLR0913  # each is an axis of the question
    d: Dimensions,
    split: Split,
    *,
    context: Number,
    batch: Number,
    step_tokens: Number,
    weight_bytes: Number = 2.0,
    kv_bytes: Number = 2.0,
    activation_bytes: Number = 2.0,
    stage: Number = 0.0,
) -> Memory:
    """Bytes on a rank of a stage in inference.

    Activations are an estimate: for the tokens of one step twice the residual stream and the widest inner tensors of a
    layer; on the last stage logits of four bytes, one a sequence.

    Args:
        d: The transformer.
        split: How it is split.
        context: Tokens of a sequence that are kept.
        batch: Sequences, over all of ``dp``.
        step_tokens: Tokens computed at once on a rank: those of a prefill, or one a sequence.
        weight_bytes: Bytes of a weight.
        kv_bytes: Bytes of an element of the cache.
        activation_bytes: Bytes of an activation.
        stage: The stage of the pipeline, from 0.
    """
    held = held_parameters(d, split, stage)
    tp = split.tp
    queries = d.heads * (d.qk_size + d.v_size) / tp + d.kv_elements * shared_heads(d, tp)
    inner = larger(d.matrices * d.width, d.matrices * (d.active * d.expert_width + d.shared_width)) / tp
    return Memory(
        weights=weight_bytes * (held.dense + held.experts),
        activations=step_tokens * activation_bytes * (2.0 * d.hidden + larger(queries, inner)),
        embeddings_and_logits=split.last(stage) * 4.0 * ceil(batch / split.dp) * d.vocabulary / tp,
        cache=cache(d, split, context, batch, kv_bytes),
        buffers=where(split.pp > 1.0, 2.0 * step_tokens * d.hidden * activation_bytes, 0.0),
    )
