"""Parallelism: degrees, pipeline schedules, the layers of a stage, and microbatches in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from attrs import astuple, has

from trnspec.perf.ops import Number, both, ceil, floor, larger, smaller, somewhere, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.work.layout import Layout

Layers = tuple[Number, Number]
"""The dense and the MoE layers of a stage."""


def in_flight(layout: Layout, stage: Number = 0.0) -> Number:
    """Microbatches whose activations a stage stores at the peak, in units of all its layers.

    - 1F1B: ``min(m, p - k)`` (Narayanan et al. 2021, section 2.2);
    - interleaved: a stage has started ``(v - 1) p + 2 (p - k - 1) + 1`` chunks of ``1/v`` of its layers, on stage 0
      ``p (1 + (p - 1)/(p v))`` (Korthikanti et al. 2022, section 4.2.3);
    - GPipe: all ``m``;
    - zero bubble: the factor of its authors times 1F1B;
    - V-shaped: ``p`` for ``zbv``, ``floor(p/2) + 1`` for ``v-half``, ``floor((p + 4)/3)`` for ``v-min``, on every stage (Qi et
      al. 2024, table 1), which is the factor times ``p - 2``, and 2.

    Args:
        layout: The layout.
        stage: The pipeline stage, from 0.
    """
    v = layout.interleave
    # A third of whole numbers may be rounded.
    v_shaped = floor(smaller(layout.pipeline.in_flight_ratio, 1.0) * (layout.pp - 2.0) + _TWO)
    limit = where(layout.pipeline.v_shape > 0.0, v_shaped, layout.pipeline.in_flight_ratio * (layout.pp - stage))
    non_interleaved = smaller(layout.microbatches, larger(1.0, limit))
    interleaved = smaller(layout.microbatches, ((v - 1.0) * layout.pp + 2.0 * (layout.pp - stage) - 1.0) / v)
    return where(v > 1.0, interleaved, non_interleaved)


_TWO = 2.0 + 2.0**-20


class Deal(NamedTuple):
    """Assignment of layers to the chunks of a pipeline, in order: short chunks, long ones of one layer more, short ones.

    Attributes:
        chunks: Number of chunks: ``p v``, or ``2 p`` in V-shaped schedules.
        short: Layers of a short chunk.
        begin: First long chunk.
        end: Chunk after the last long one; ``begin`` where layers are divisible.
    """

    chunks: Number
    short: Number
    begin: Number
    end: Number

    @property
    def unequal(self) -> bool:
        """Whether any layout has chunks of different length."""
        return somewhere(self.end > self.begin)

    def start(self, chunk: Number) -> Number:
        """Layers before a chunk."""
        before = self.short * chunk
        return before + larger(0.0, smaller(chunk, self.end) - self.begin) if self.unequal else before

    def chunk(self, layers: Number) -> Number:
        """The chunk that the layer after the first ``layers`` is in."""
        # Where there are fewer layers than chunks, short chunks have none.
        short = larger(1.0, self.short)
        if not self.unequal:
            return floor(layers / short)
        before, within = self.start(self.begin), self.start(self.end)
        long = self.begin + floor((layers - before) / (self.short + 1.0))
        after = smaller(self.chunks, self.end + floor((layers - within) / short))
        return where(layers < before, floor(layers / short), where(layers < within, long, after))


def dealt(layers: Number, pp: Number, interleave: Number = 1.0, is_v_shaped: Number = 0.0) -> Deal:
    """Assignment of layers to stages and chunks.

    Where their number is not a multiple of the chunks, the chunk with the output has a layer less than the longest; if at
    least two have, so does the chunk with the embedding.  With two layers fewer than a multiple this counts embedding and
    output as a layer each, as ``--account-for-embedding-in-pipeline-split`` and ``--account-for-loss-in-pipeline-split`` of
    NVIDIA/Megatron-LM do.

    Args:
        layers: Layers of the model.
        pp: Pipeline-parallel degree.
        interleave: Model chunks per stage.
        is_v_shaped: 1.0 for V-shaped schedules, which have two.
    """
    chunks = pp * where(is_v_shaped > 0.0, 2.0, interleave)
    short = floor(layers / chunks)
    long = layers - short * chunks
    begin = where(chunks - long >= 2.0, 1.0, 0.0)
    return Deal(chunks, short, begin, begin + long)


def dealt_with_mtp(
    layers: Number, pp: Number, interleave: Number, is_v_shaped: Number, mtp: Number
) -> tuple[Deal, Number]:
    """Assignment of layers and modules of multi-token prediction, and the layers that the modules count as.

    A module is a layer and an output.  With the output of the model one module counts as three layers of the last chunk, at most
    as many as it has, as in the pipeline layouts for DeepSeek-V3 of NVIDIA-NeMo/Megatron-Bridge (``Et*4|(t*4|)*14tmL``).
    V-shaped schedules have the output on the first stage, and do not count it.
    """
    if type(mtp) is float and not mtp:
        return dealt(layers, pp, interleave, is_v_shaped), 0.0
    most = floor(layers / (pp * interleave))
    counted = where(is_v_shaped > 0.0, 0.0, smaller(2.0 * mtp + smaller(mtp, 1.0), most))
    return dealt(layers + counted, pp, interleave, is_v_shaped), counted


def stage_layers(d: Dimensions, layout: Layout, stage: Number) -> Layers:
    """The dense and the MoE layers of a stage; dense layers are the first of the model.

    Interleaved, chunk ``j`` of stage ``k`` is the ``(j p + k)``-th; in a V-shaped schedule a stage has the ``k``-th and the
    ``(2 p - 1 - k)``-th.  See :func:`dealt` for their layers.  Modules of multi-token prediction count as layers of the
    stage with the output, of the kind of the last layer.
    """
    deal, counted = dealt_with_mtp(d.layers, layout.pp, layout.interleave, layout.pipeline.v_shape, d.mtp_layers)
    is_v_shaped = layout.pipeline.v_shape > 0.0
    mirrored = deal.chunks - 1.0 - stage

    def until(chunk: Number) -> Number:
        """Chunks of the stage before a chunk."""
        interleaved = larger(0.0, ceil((chunk - stage) / layout.pp))
        return where(is_v_shaped, where(chunk > stage, 1.0, 0.0) + where(chunk > mirrored, 1.0, 0.0), interleaved)

    first_long = until(deal.begin)
    layers = deal.short * where(is_v_shaped, 2.0, layout.interleave) + (until(deal.end) - first_long)
    layers = layers - layout.last(stage) * counted
    # Of the chunk in which the first MoE layer is, the layers before it are dense.
    dense = d.layers - d.expert_layers
    boundary = deal.chunk(dense)
    before = until(boundary)
    of_dense = deal.short * before + (until(larger(deal.begin, smaller(boundary, deal.end))) - first_long)
    of_dense = of_dense + (until(boundary + 1.0) - before) * (dense - deal.start(boundary))
    of_dense = where(d.expert_layers > 0.0, of_dense, layers)
    predicting = layout.last(stage) * d.mtp_layers
    has_experts = where(d.expert_layers > 0.0, 1.0, 0.0)
    return of_dense + (1.0 - has_experts) * predicting, layers - of_dense + has_experts * predicting


def extreme_layers(
    layers: Number, pp: Number, interleave: Number, is_v_shaped: Number, mtp: Number = 0.0
) -> tuple[Number, Number, Number]:
    """Layers of the stage with the most and of that with the output, without multi-token prediction; and long chunks.

    Arguments are those of :func:`dealt`, and the modules of multi-token prediction.
    """
    deal, counted = dealt_with_mtp(layers, pp, interleave, is_v_shaped, mtp)
    even = deal.short * where(is_v_shaped > 0.0, 2.0, interleave)
    long = deal.end - deal.begin
    # In a V-shaped schedule the last stage has the two chunks in the middle, and the first one the outermost, of which the
    # last is short.
    most = where(is_v_shaped > 0.0, where(deal.end > pp, 2.0, smaller(1.0, long)), ceil(long / pp))
    last = pp - 1.0
    interleaved = larger(0.0, ceil((deal.end - last) / pp) - ceil((deal.begin - last) / pp))
    first = where(both(deal.begin == 0.0, deal.end > 0.0), 1.0, 0.0)
    last = even + where(is_v_shaped > 0.0, first, interleaved) - counted
    if somewhere(counted > 0.0):
        # Of two stages the last one has the odd long chunk where the first chunk is short.
        odd = both(both(pp == 2.0, deal.begin == 1.0), both(counted > 0.0, long > 2.0 * floor(0.5 * long)))
        most = most - where(odd, 1.0, 0.0)
    # One stage has all.
    return where(pp > 1.0, even + most, last), last, long


def peak_stages(d: Dimensions, layout: Layout) -> tuple[Number, ...]:
    """Stages that may need the most memory: the first, the last, and those around the first MoE layer.

    Where layers are not divisible, also the first stages with the most layers.  Of stages with the same layers the first one
    stores the most.
    """
    last = layout.pp - 1.0
    deal, _ = dealt_with_mtp(d.layers, layout.pp, layout.interleave, layout.pipeline.v_shape, d.mtp_layers)
    is_v_shaped = layout.pipeline.v_shape > 0.0
    stages: tuple[Number, ...] = (0.0, last)
    # Layers of one kind have no first MoE layer within.
    if not (type(d.expert_layers) is float and d.expert_layers in {0.0, d.layers}):
        chunk = deal.chunk(d.layers - d.expert_layers)
        boundary = where(
            is_v_shaped, smaller(chunk, deal.chunks - 1.0 - chunk), chunk - floor(chunk / layout.pp) * layout.pp
        )
        # Without MoE layers the chunk is after the last one.
        stages += (larger(0.0, boundary), smaller(last, larger(0.0, boundary) + 1.0))
    if not deal.unequal:
        return stages
    second = smaller(last, 1.0)
    if not somewhere(is_v_shaped):
        return (*stages, second)
    # In a V-shaped schedule the second chunk is long from some stage on.
    return (*stages, second, where(is_v_shaped, smaller(last, deal.chunks - deal.end), second))


def stage_axis(stages: Sequence[Number], *operands: Any) -> NDArray[np.float64]:
    """Some stages as an array whose first axis they are, and which broadcasts with the operands.

    Args:
        stages: The stages.
        operands: Numbers, and objects whose fields are numbers.
    """
    numbers = [n for one in operands for n in (astuple(one, recurse=False) if has(type(one)) else (one,))]
    axes = max(map(np.ndim, (*numbers, *stages)))
    shape = np.broadcast_shapes((1,) * axes, *map(np.shape, stages))
    return np.stack([np.broadcast_to(stage, shape) for stage in stages])
