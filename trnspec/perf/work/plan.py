"""How a training run is laid out over ranks, as the numbers that formulas take."""

from __future__ import annotations

from attrs import frozen

from trnspec.perf.ops import Number, where


@frozen(kw_only=True)
class Plan:
    """How a step of training is laid out.  Ranks are numbered tensor first, then context, data, pipeline.

    Attributes:
        tp: Ranks that split each matrix.
        pp: Stages of the pipeline.
        dp: Replicas of the data, experts' included.
        cp: Ranks that split each sequence.
        ep: Ranks, among those of dp and cp, that split the experts.
        seq: Tokens of a sequence.
        microbatch: Sequences that go through the pipeline together.
        microbatches: How many of them one replica computes in a step.
        bubble: The bubble over that of 1F1B.
        sends: Messages between stages over those of 1F1B.
        sharded: 1 where the optimizer's states are sharded over the replicas: ZeRO 1, 2 and 3.
        gathered: 1 where the weights are too, and are gathered for every use: ZeRO 3, which FSDP also does.
        full: The share of a layer that is computed again in the backward pass: 1 for all; see :func:`computed_again`.
        selective: 1 where only attention's scores are.
        sequence: 1 where norms and residuals are split over the tensor-parallel ranks.
        overlap: 1 where tensor-parallel collectives may hide behind computation.
        weight_bytes: Bytes of a weight as it is communicated and read.
        gradient_bytes: Bytes of a gradient as it is communicated.
        state_bytes: Bytes of master weight and optimizer states per parameter, as read and written.
        activation_bytes: Bytes of an element of an activation.
    """

    tp: Number = 1.0
    pp: Number = 1.0
    dp: Number = 1.0
    cp: Number = 1.0
    ep: Number = 1.0
    seq: Number = 2048.0
    microbatch: Number = 1.0
    microbatches: Number = 1.0
    bubble: Number = 1.0
    sends: Number = 1.0
    sharded: Number = 0.0
    gathered: Number = 0.0
    full: Number = 0.0
    selective: Number = 0.0
    sequence: Number = 0.0
    overlap: Number = 0.0
    weight_bytes: Number = 2.0
    gradient_bytes: Number = 2.0
    state_bytes: Number = 12.0
    activation_bytes: Number = 2.0


def computed_again(recompute: Number) -> tuple[Number, Number]:
    """How much of a layer's forward pass is computed again, and how much of attention's scores alone.

    With ``operators`` it is half of the layer: every second multiplication and, as an approximation, half of the rest.
    What lies between the multiplications is computed again all of it, attention's scores not at all.  The same half is
    taken of its communication, of which reduce-scatters are kept and all-gathers are not.

    Args:
        recompute: 0.0 none, 1.0 selective, 1.5 operators, 2.0 full; see :data:`trnspec.perf.work.activations.RECOMPUTE`.
    """
    full = where(recompute >= 2.0, 1.0, where(recompute >= 1.5, 0.5, 0.0))
    return full, where(recompute == 1.0, 1.0, 0.0)
