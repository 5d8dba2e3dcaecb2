"""How a transformer is split over ranks: the degrees of parallelism, the layers of a stage, the microbatches in flight."""

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
"""By schedule: its activations over those of 1F1B, and 1.0 where a rank holds a chunk from either end of the model.

Zero bubble: sail-sg/zero-bubble-pipeline-parallelism, README.md. GPipe holds every microbatch, however many there are.
"""


@frozen(kw_only=True)
class Split:
    """How a model is split; every degree a float or an array.

    Attributes:
        tp: Tensor parallelism: ranks that share every matrix.
        pp: Stages of the pipeline.
        dp: Data parallelism: copies that see other sequences.
        cp: Context parallelism: ranks that share every sequence.
        ep: Expert parallelism: ranks that share the experts of a layer; it divides ``dp cp tp/expert_tp``.
        expert_tp: Ranks that share the matrices of one expert; ``tp`` when left out.
        interleave: Chunks of layers that a stage holds (virtual stages); 1.0 for one.
        held: Activations of the schedule over those of 1F1B, see :data:`SCHEDULES`; nothing to interleaved ones.
        folded: 1.0 where stage ``k`` holds a chunk from either end of the model, as schedules in the shape of a V do.
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
        """Ranks that share the matrices of one expert."""
        return self.tp if self.expert_tp is None else self.expert_tp

    @property
    def copies(self) -> Number:
        """Ranks that hold the same weights, which ZeRO spreads the state over: ``dp cp``."""
        return self.dp * self.cp

    @property
    def expert_copies(self) -> Number:
        """Ranks that hold the same experts: ``dp cp tp/(ep expert_tp)``."""
        return self.dp * self.cp * self.tp / (self.ep * self.expert_split)

    def first(self, stage: Number) -> Number:
        """1.0 where a stage holds the embedding."""
        return where(stage == 0.0, 1.0, 0.0)

    def last(self, stage: Number) -> Number:
        """1.0 where a stage holds the output: the last one, and in a V the first."""
        return where(stage == where(self.folded > 0.0, 0.0, self.pp - 1.0), 1.0, 0.0)


def in_flight(split: Split, microbatches: Number, stage: Number = 0.0) -> Number:
    """Microbatches whose activations a stage holds at the peak, in units of all its layers.

    - 1F1B: ``min(m, p - k)`` (Narayanan et al. 2021, section 2.2);
    - interleaved: a stage has let in ``(v - 1) p + 2 (p - k - 1) + 1`` chunks of ``1/v`` of its layers, for stage 0
      ``p (1 + (p - 1)/(p v))`` (Korthikanti et al. 2022, section 4.2.3);
    - GPipe: all ``m``;
    - zero bubble: the factor of its authors times 1F1B; a V holds as much on every stage as on the first.

    Args:
        split: The split.
        microbatches: Microbatches of a step and pipeline.
        stage: The stage, from 0.
    """
    v = split.interleave
    deep = where(split.folded > 0.0, split.pp, split.pp - stage)
    one = smaller(microbatches, larger(1.0, split.held * deep))
    many = smaller(microbatches, ((v - 1.0) * split.pp + 2.0 * (split.pp - stage) - 1.0) / v)
    return where(v > 1.0, many, one)


def stage_layers(d: Dimensions, split: Split, stage: Number) -> tuple[Number, Number]:
    """The dense layers and those with experts that a stage holds; the dense ones are the first of the model.

    Layers are dealt evenly in chunks of ``L/(p v)``; interleaved, chunk ``j`` of stage ``k`` is the ``(j p + k)``-th.
    """
    dense = d.layers - d.expert_layers
    whole = d.layers / split.pp
    half = whole / 2.0
    mirrored = 2.0 * split.pp - 1.0 - stage
    folded = _within(dense, stage * half, half) + _within(dense, mirrored * half, half)
    chunk = whole / split.interleave
    rounds = floor(dense / whole / split.pp * split.interleave)
    rest = dense - rounds * (chunk * split.pp)
    here = where(split.folded > 0.0, folded, rounds * chunk + _within(rest, stage * chunk, chunk))
    # Where layers are not dealt evenly, the last bit of the sum may be above the whole.
    here = smaller(here, whole)
    return here, whole - here


def _within(length: Number, start: Number, size: Number) -> Number:
    """How much of ``[0, length)`` lies in ``[start, start + size)``."""
    return larger(0.0, smaller(length - start, size))


def peak_stages(d: Dimensions, split: Split) -> tuple[Number, ...]:
    """The stages one of which needs the most memory: the first, the last, and where the experts begin."""
    dense = d.layers - d.expert_layers
    last = split.pp - 1.0
    begins = dense / (d.layers / (split.pp * split.interleave))
    return (0.0 * last, last, smaller(last, floor(begins)), smaller(last, ceil(begins)))
