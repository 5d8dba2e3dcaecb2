"""Parallelism: degrees, pipeline schedules, the layers of a stage, and microbatches in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.ops import Number, ceil, floor, larger, smaller, where

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions

SCHEDULES = {
    "1f1b": (1.0, 0.0),
    "interleaved": (1.0, 0.0),
    "gpipe": (float("inf"), 0.0),
    "zb1p": (1.0, 0.0),
    "zb2p": (2.0, 0.0),
    "zbv": (1.0, 1.0),
    "v-half": (0.5, 1.0),
    "v-min": (1.0 / 3.0, 1.0),
}
"""By schedule: its activations relative to 1F1B, and 1.0 where a rank holds a chunk from either end of the model.

Zero bubble: sail-sg/zero-bubble-pipeline-parallelism, README.md. GPipe stores every microbatch.
"""


@frozen(kw_only=True)
class Split:
    """How a model is split over ranks; every degree is a float or an array.

    Attributes:
        tp: Tensor-parallel degree.
        pp: Pipeline-parallel degree.
        dp: Data-parallel degree.
        cp: Context-parallel degree.
        ep: Expert-parallel degree; it divides ``dp cp tp/expert_tp``.
        expert_tp: Tensor-parallel degree of one expert; ``tp`` by default.
        interleave: Model chunks per stage (virtual pipeline stages); 1.0 without interleaving.
        held: Activations of the schedule relative to 1F1B, see :data:`SCHEDULES`; ignored by interleaved schedules.
        folded: 1.0 where stage ``k`` holds a chunk from either end of the model, as in V-shaped schedules.
    """

    tp: Number = 1.0
    pp: Number = 1.0
    dp: Number = 1.0
    cp: Number = 1.0
    ep: Number = 1.0
    expert_tp: Number | None = None
    interleave: Number = 1.0
    held: Number = 1.0
    folded: Number = 0.0

    @property
    def ranks(self) -> Number:
        """All ranks."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def expert_split(self) -> Number:
        """Ranks that split the matrices of one expert."""
        return self.tp if self.expert_tp is None else self.expert_tp

    @property
    def copies(self) -> Number:
        """Ranks that hold the same weights, over which ZeRO shards: ``dp cp``."""
        return self.dp * self.cp

    @property
    def expert_copies(self) -> Number:
        """Ranks that hold the same experts: ``dp cp tp/(ep expert_tp)``."""
        return self.dp * self.cp * self.tp / (self.ep * self.expert_split)

    def first(self, stage: Number) -> Number:
        """1.0 where a stage has the embedding."""
        return where(stage == 0.0, 1.0, 0.0)

    def last(self, stage: Number) -> Number:
        """1.0 where a stage has the output: the last one, or the first in a V-shaped schedule."""
        return where(stage == where(self.folded > 0.0, 0.0, self.pp - 1.0), 1.0, 0.0)


def in_flight(split: Split, microbatches: Number, stage: Number = 0.0) -> Number:
    """Microbatches whose activations a stage stores at the peak, in units of all its layers.

    - 1F1B: ``min(m, p - k)`` (Narayanan et al. 2021, section 2.2);
    - interleaved: a stage has started ``(v - 1) p + 2 (p - k - 1) + 1`` chunks of ``1/v`` of its layers, on stage 0
      ``p (1 + (p - 1)/(p v))`` (Korthikanti et al. 2022, section 4.2.3);
    - GPipe: all ``m``;
    - zero bubble: the factor of its authors times 1F1B; in a V-shaped schedule all stages store as much as the first.

    Args:
        split: Degrees of parallelism.
        microbatches: Microbatches per step and replica.
        stage: The pipeline stage, from 0.
    """
    v = split.interleave
    depth = where(split.folded > 0.0, split.pp, split.pp - stage)
    non_interleaved = smaller(microbatches, larger(1.0, split.held * depth))
    interleaved = smaller(microbatches, ((v - 1.0) * split.pp + 2.0 * (split.pp - stage) - 1.0) / v)
    return where(v > 1.0, interleaved, non_interleaved)


def stage_layers(d: Dimensions, split: Split, stage: Number) -> tuple[Number, Number]:
    """The dense and the MoE layers of a stage; dense layers are the first of the model.

    Layers are distributed evenly in chunks of ``L/(p v)``; interleaved, chunk ``j`` of stage ``k`` is the ``(j p + k)``-th.
    """
    dense = d.layers - d.expert_layers
    layers = d.layers / split.pp
    half = layers / 2.0
    mirrored = 2.0 * split.pp - 1.0 - stage
    folded = _within(dense, stage * half, half) + _within(dense, mirrored * half, half)
    chunk = layers / split.interleave
    rounds = floor(dense / layers / split.pp * split.interleave)
    remainder = dense - rounds * (chunk * split.pp)
    dense_layers = where(split.folded > 0.0, folded, rounds * chunk + _within(remainder, stage * chunk, chunk))
    # Where layers are not distributed evenly, rounding may put the sum above the total.
    dense_layers = smaller(dense_layers, layers)
    return dense_layers, layers - dense_layers


def _within(length: Number, start: Number, size: Number) -> Number:
    """Length of the intersection of ``[0, length)`` and ``[start, start + size)``."""
    return larger(0.0, smaller(length - start, size))


def peak_stages(d: Dimensions, split: Split) -> tuple[Number, ...]:
    """Stages that may need the most memory: the first, the last, and those around the first MoE layer."""
    dense = d.layers - d.expert_layers
    last = split.pp - 1.0
    boundary = dense / (d.layers / (split.pp * split.interleave))
    return (0.0 * last, last, smaller(last, floor(boundary)), smaller(last, ceil(boundary)))
