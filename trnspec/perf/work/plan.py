"""The layout of a training run as the numbers that formulas take."""

from __future__ import annotations

from attrs import define

from trnspec.perf.ops import Number, remembered, where


# Single calls create many of these; frozen classes take three times as long.
@define(kw_only=True)
class Plan:
    """The layout of a training step.  Ranks are numbered tensor first, then context, data, pipeline.

    Attributes:
        tp: Tensor-parallel degree.
        pp: Pipeline-parallel degree.
        dp: Data-parallel degree; expert parallelism is within it.
        cp: Context-parallel degree.
        ep: Expert-parallel degree, over ranks of dp and cp, and of tp where ``expert_split`` is less than that.
        seq: Tokens of a sequence.
        microbatch: Sequences of a microbatch.
        microbatches: Microbatches per step and replica.
        bubble: Least pipeline bubble relative to 1F1B, with many microbatches.
        deferred: Weight-gradient passes that fill the bubble, relative to ``pp - 1``; 0 where V-shaped, or not split.
        folded: 1 where a stage has a chunk from either end of the model.
        v_shape: Number of the V-shaped schedule in :data:`trnspec.perf.work.layout.V_SHAPED`, from 1; 0 for others.
        chunks: Model chunks per stage.
        chunked: 1 for the interleaved schedule.
        forward_first: 1 where all forward passes come before all backward passes: GPipe.
        sends: Messages between stages relative to 1F1B.
        sharded: 1 where the optimizer states are sharded over the replicas: ZeRO 1, 2 and 3.
        scattered: 1 where gradients are sharded too, and reduced after every microbatch: ZeRO 2 and 3.
        gathered: 1 where weights are sharded too, and gathered for every use: ZeRO 3, as in FSDP.
        full: Share of a layer that is recomputed in the backward pass, 1 for all; see :func:`computed_again`.
        selective: 1 where only attention scores are recomputed.
        flash: 1 for flash attention, 0 where scores are written to memory.
        sequence: 1 for sequence parallelism: norms and residuals are split over the tensor-parallel ranks.
        overlap: 1 where tensor-parallel collectives can overlap with computation.
        weight_bytes: Bytes of a weight as it is communicated and read.
        gradient_bytes: Bytes of a gradient as it is communicated.
        update_bytes: Bytes per parameter that the optimizer reads and writes.
        activation_bytes: Bytes of an activation.
        expert_split: Tensor-parallel degree of one expert; a divisor of ``tp``.
        per_node: 1 where a token is sent once to each unit with some of its experts, 0 where once for each expert.
        sent: Bytes of all-to-alls over those of 16 bit, see :data:`trnspec.perf.experts.SENT`.
        node_limit: Nodes that the experts of a token are on, at most; 0 for no limit.
        expert_overlap: 1 where the all-to-all can overlap with the rest of a layer.
        load: Tokens that the busiest rank computes and exchanges, over their mean.
    """

    tp: Number
    pp: Number
    dp: Number
    cp: Number
    ep: Number
    seq: Number
    microbatch: Number
    microbatches: Number
    bubble: Number
    deferred: Number
    folded: Number
    v_shape: Number
    chunks: Number
    chunked: Number
    forward_first: Number
    sends: Number
    sharded: Number
    scattered: Number
    gathered: Number
    full: Number
    selective: Number
    flash: Number
    sequence: Number
    overlap: Number
    weight_bytes: Number
    gradient_bytes: Number
    update_bytes: Number
    activation_bytes: Number
    expert_split: Number
    per_node: Number
    sent: Number
    node_limit: Number
    expert_overlap: Number
    load: Number

    @property
    def interleave(self) -> Number:
        """Model chunks per stage, as layouts call them."""
        return self.chunks


@remembered
def computed_again(recompute: Number) -> tuple[Number, Number]:
    """Share of a layer's forward pass that is recomputed, and 1.0 where attention scores alone are.

    With ``operators`` it is half of the layer: every second matrix multiplication and, as an approximation, half of the
    rest, although what is between the multiplications is recomputed in full and attention scores not at all.  The same half
    applies to communication, of which reduce-scatters are stored and all-gathers are not.

    Args:
        recompute: 0.0 none, 1.0 selective, 1.5 operators, 2.0 full; see :data:`trnspec.perf.work.activations.RECOMPUTE`.
    """
    full = where(recompute >= 2.0, 1.0, where(recompute >= 1.5, 0.5, 0.0))
    return full, where(recompute == 1.0, 1.0, 0.0)
