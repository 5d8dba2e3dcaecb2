"""The layout of a training step: the inputs of a question, the numbers that formulas take, and the layers of each pipeline stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import attrs
import numpy as np
from attrs import Factory, astuple, field, frozen, has
from numpy.typing import NDArray

from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.experts import SENT
from trnspec.perf.ops import Number, ceil, collapsed, floor, larger, smaller, where


@frozen(kw_only=True)
class Schedule:
    """A pipeline schedule.

    Attributes:
        bubble: Least pipeline bubble relative to 1F1B, with many microbatches; that of the interleaved schedule is divided by the chunks per stage.
        in_flight_ratio: Activations relative to 1F1B.
        v_shape: Number of a V-shaped schedule, whose stages have a chunk from either end of the model; 0 for others.
        deferred: Weight-gradient passes that fill the bubble of the first stage, relative to ``pp - 1``: all but one of the
            microbatches that the schedule has in flight. V-shaped schedules defer all; the others do not split the backward
            pass.
        interleaved: 1 for the interleaved schedule.
        gpipe: 1 where all forward passes come before all backward passes.
    """

    bubble: Number
    in_flight_ratio: Number = 1.0
    v_shape: Number = 0.0
    deferred: Number = 0.0
    interleaved: Number = 0.0
    gpipe: Number = 0.0


SCHEDULES = {
    "1f1b": Schedule(bubble=1.0),
    "interleaved": Schedule(bubble=1.0, interleaved=1.0),
    "zb1p": Schedule(bubble=0.0, deferred=1.0),
    "zb2p": Schedule(bubble=0.0, in_flight_ratio=2.0, deferred=2.0),
    "zbv": Schedule(bubble=0.0, v_shape=1.0),
    "v-half": Schedule(bubble=0.5, in_flight_ratio=0.5, v_shape=2.0),
    "v-min": Schedule(bubble=2.0 / 3.0, in_flight_ratio=1.0 / 3.0, v_shape=3.0),
    "gpipe": Schedule(bubble=1.0, in_flight_ratio=float("inf"), gpipe=1.0),
}
"""Pipeline schedules by name; arrays of schedules have their positions.

1F1B and interleaved: Narayanan et al. 2021, section 2.2. GPipe, which stores every microbatch: Huang et al. 2019, section 2.3.
Zero bubble: Qi et al. 2023, section 3. ``v-half`` and ``v-min``: Qi et al. 2024, and the table of
github.com/sail-sg/zero-bubble-pipeline-parallelism. The bubble of schedules with a split backward pass is that of their passes,
see :func:`trnspec.perf.training.bubble.equal_bubble`.
"""
V_SHAPED = tuple(name for name, schedule in SCHEDULES.items() if schedule.v_shape)
"""The V-shaped schedules, by their number from 1."""


@frozen(kw_only=True)
class Recomputation:
    """A kind of activation recomputation.

    Attributes:
        level: 0 nothing is recomputed, 1 scores (selective), 1.5 all but the results of some operators, 2 all but a layer's input.
        share: Share of a layer's forward pass that is recomputed in the backward pass. With ``operators`` it is half of the layer:
            every second matrix multiplication and, as an approximation, half of the rest, although what is between the
            multiplications is recomputed in full and attention scores not at all.  The same half applies to communication, of
            which reduce-scatters are stored and all-gathers are not.
        scores: 1 where only attention scores are recomputed.
    """

    level: Number
    share: Number = 0.0
    scores: Number = 0.0


RECOMPUTE = {
    "none": Recomputation(level=0.0),
    "selective": Recomputation(level=1.0, scores=1.0),
    "full": Recomputation(level=2.0, share=1.0),
    "operators": Recomputation(level=1.5, share=0.5),
}
"""The kinds of recompute; arrays of them have their positions.

``selective`` is that of Korthikanti et al. 2022; ``operators`` is PyTorch's selective activation checkpointing, see
:func:`trnspec.perf.work.memory.kept_operators`.  Append new kinds at the end.
"""
DISPATCHES = ("per-copy", "per-node")
"""Ways to send tokens to experts, see :mod:`trnspec.perf.experts`; arrays of them have their positions."""


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

ACTIVATION_BYTES = 2.0
"""Bytes of an activation in training."""


@frozen(kw_only=True)
class Sharding:
    """States that a ZeRO stage shards over the replicas, each 1 or 0.

    Attributes:
        optimizer: The optimizer states.
        gradients: Gradients too, which are reduced after every microbatch.
        weights: Weights too, which are gathered for every use, as in FSDP.
    """

    optimizer: Number = 0.0
    gradients: Number = 0.0
    weights: Number = 0.0


ZERO = {
    "0": Sharding(),
    "1": Sharding(optimizer=1.0),
    "2": Sharding(optimizer=1.0, gradients=1.0),
    "3": Sharding(optimizer=1.0, gradients=1.0, weights=1.0),
}
"""The ZeRO stages (Rajbhandari et al. 2020, figure 1)."""


@frozen(kw_only=True)
class Layout:
    """The layout of a training step, or of many: a field is a value, or an array that broadcasts with the others.

    Ranks are numbered tensor first, then context, data, pipeline.  In arrays names are positions in their table, ``None`` is 0,
    and flags are 0 and 1.

    Attributes:
        tp: Tensor-parallel degree.
        pp: Pipeline-parallel degree.
        dp: Data-parallel degree.
        cp: Context-parallel degree.
        ep: Expert-parallel degree: ranks, among those of dp, cp and ``tp / expert_tp``, that hold different experts.
        seq: Sequence length in tokens.
        global_batch: Sequences per step, over all replicas.
        microbatch: Sequences per microbatch.
        schedule: Pipeline schedule, of :data:`SCHEDULES`.
        interleave: Model chunks per stage.
        zero: ZeRO stage; 3 is the sharding of FSDP.
        recompute: Activation recomputation, of :data:`RECOMPUTE`.
        sequence_parallel: Whether norms and residuals are split over the tensor-parallel ranks.
        overlap: Whether tensor-parallel collectives overlap with computation.
        flash: Flash attention: scores are not written to memory.
        fused_loss: Whether the loss keeps 4 bytes per logit instead of 14.
        optimizer: The optimizer, with the precision of its states, of :data:`OPTIMIZERS`.
        offload: What is kept in host memory.
        uneven: Whether stages may have different numbers of layers, see :func:`trnspec.perf.work.layout.dealt`.
        expert_tp: Tensor-parallel degree of one expert, a divisor of tp; ``None`` for tp.
        dispatch: How tokens are sent to experts, of :data:`DISPATCHES`; the default is that with the least traffic.
        dispatch_dtype: Dtype of tokens on their way to experts, of :data:`trnspec.perf.experts.SENT`.
        node_limit: Nodes that the experts of a token are on, at most; 0 for no limit.
        expert_overlap: Whether the all-to-all overlaps with the rest of a layer.
        imbalance: Tokens of the busiest rank's experts over the mean.
        capacity_factor: Tokens that every expert computes, padding included, over the mean; ``None`` without a limit.
    """

    tp: Number = 1
    pp: Number = 1
    dp: Number = 1
    cp: Number = 1
    ep: Number = 1
    seq: Number
    global_batch: Number
    microbatch: Number = 1
    schedule: Any = "1f1b"
    interleave: Number = 1
    zero: Number = 0
    recompute: Any = "none"
    sequence_parallel: Number = False
    overlap: Number = False
    flash: Number = True
    fused_loss: Number = True
    optimizer: Any = "adam"
    offload: str = "none"
    uneven: Number = False
    expert_tp: Number | None = None
    dispatch: Any = "per-node"
    dispatch_dtype: Any = "bf16"
    node_limit: Number = 0
    expert_overlap: Number = True
    imbalance: Number = 1.0
    capacity_factor: Number | None = None

    @property
    def ranks(self) -> Number:
        """All ranks."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def microbatches(self) -> Number:
        """Microbatches per step and replica."""
        return self.global_batch // (self.microbatch * self.dp)

    @property
    def tokens(self) -> Number:
        """Tokens per step."""
        return self.global_batch * self.seq

    @property
    def expert_copies(self) -> Number:
        """Ranks that hold the same experts: ``dp cp tp/(ep expert_tp)``."""
        return self.dp * self.cp * self.tp / (self.ep * self.expert_split)

    @property
    def expert_split(self) -> Number:
        """Ranks that split the matrices of one expert."""
        if self.expert_tp is None:
            return self.tp
        return where(self.expert_tp == 0, self.tp, self.expert_tp)

    @property
    def expert_load(self) -> Number:
        """Tokens that the busiest rank's experts compute and receive, over the mean.

        With a capacity every expert computes as many: tokens beyond are dropped, and padding fills up.
        """
        if self.capacity_factor is None:
            return self.imbalance
        return where(self.capacity_factor > 0.0, self.capacity_factor, self.imbalance)

    @property
    def per_node(self) -> Number:
        """1 where a token is sent once to each unit with some of its experts, 0 where once for each expert."""
        return float(self.dispatch == "per-node") if isinstance(self.dispatch, str) else self.dispatch * 1.0

    @property
    def dispatch_ratio(self) -> Number:
        """Bytes of all-to-alls over those of 16 bit."""
        return _row(SENT, self.dispatch_dtype)

    @cached_property
    def pipeline(self) -> Schedule:
        """The numbers of the pipeline schedule."""
        row: Schedule = _row(SCHEDULES, self.schedule)
        return row

    @cached_property
    def precision(self) -> Optimizer:
        """Bytes per parameter of the optimizer."""
        row: Optimizer = _row(OPTIMIZERS, self.optimizer)
        return row

    @property
    def splits_backward(self) -> Number:
        """1 where gradients of weights are a pass of their own, which several stages may compute later."""
        return smaller(self.pp - 1.0, 1.0) * smaller(self.pipeline.deferred + self.pipeline.v_shape, 1.0)

    @cached_property
    def sharding(self) -> Sharding:
        """The states that are sharded over the replicas."""
        row: Sharding = _row(ZERO, self.zero)
        return row

    @cached_property
    def recomputation(self) -> Recomputation:
        """The shares of a forward pass that are recomputed."""
        row: Recomputation = _row(RECOMPUTE, self.recompute)
        return row

    @property
    def sequence_split(self) -> Number:
        """Ranks that split tensors which tensor parallelism leaves whole: along the sequence."""
        return where(self.sequence_parallel > 0, self.tp, 1)

    def last(self, stage: Number) -> Number:
        """1.0 where a stage has the output: the last one, or the first in a V-shaped schedule."""
        return where(stage == where(self.pipeline.v_shape > 0.0, 0.0, self.pp - 1.0), 1.0, 0.0)


TABLES: dict[str, Sequence[str]] = {
    "schedule": tuple(SCHEDULES),
    "recompute": tuple(RECOMPUTE),
    "optimizer": tuple(OPTIMIZERS),
    "dispatch": DISPATCHES,
    "dispatch_dtype": tuple(SENT),
}
"""The fields of a layout that are names, with the names in the order of their positions."""


def _row(table: Mapping[str, Any], key: Any) -> Any:
    """A row of a table by its name or its position; of an array of positions a number, or a class of arrays."""
    if isinstance(key, str):
        return table[key]
    rows = list(table.values())
    if not isinstance(key, np.ndarray):
        return rows[int(key)]
    key = key.astype(np.intp)
    if isinstance(rows[0], float):
        return collapsed(np.array(rows)[key])
    numbers = {f.name: [getattr(row, f.name) for row in rows] for f in attrs.fields(type(rows[0])) if f.name != "note"}
    return attrs.evolve(rows[0], **{name: collapsed(np.array(column)[key]) for name, column in numbers.items()})


def stacked(layouts: Sequence[Layout]) -> Layout:
    """Layouts as one of arrays."""
    columns: dict[str, Any] = {}
    for one in attrs.fields(Layout):
        values = [getattr(layout, one.name) for layout in layouts]
        if one.name in TABLES:
            columns[one.name] = np.array([TABLES[one.name].index(value) for value in values])
        elif one.name != "offload":
            columns[one.name] = np.array([0.0 if value is None else value for value in values], float)
    return Layout(**columns)


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

    def start(self, chunk: Number) -> Number:
        """Layers before a chunk."""
        return self.short * chunk + larger(0.0, smaller(chunk, self.end) - self.begin)

    def chunk(self, layers: Number) -> Number:
        """The chunk that the layer after the first ``layers`` is in."""
        # Where there are fewer layers than chunks, short chunks have none.
        short = larger(1.0, self.short)
        before, within = self.start(self.begin), self.start(self.end)
        long = self.begin + floor((layers - before) / (self.short + 1.0))
        after = smaller(self.chunks, self.end + floor((layers - within) / short))
        return where(layers < before, floor(layers / short), where(layers < within, long, after))


def dealt(layers: Number, pp: Number, interleave: Number, is_v_shaped: Number, mtp: Number) -> tuple[Deal, Number]:
    """Assignment of layers to stages and chunks, and the layers that modules of multi-token prediction count as.

    Where their number is not a multiple of the chunks, the chunk with the output has a layer less than the longest; if at
    least two have, so does the chunk with the embedding.  With two layers fewer than a multiple this counts embedding and
    output as a layer each, as ``--account-for-embedding-in-pipeline-split`` and ``--account-for-loss-in-pipeline-split`` of
    NVIDIA/Megatron-LM do.

    A module of multi-token prediction is a layer and an output.  With the output of the model one module counts as three layers
    of the last chunk, at most as many as it has, as in the pipeline layouts for DeepSeek-V3 of NVIDIA-NeMo/Megatron-Bridge
    (``Et*4|(t*4|)*14tmL``).  V-shaped schedules have the output on the first stage, and do not count it.

    Args:
        layers: Layers of the model.
        pp: Pipeline-parallel degree.
        interleave: Model chunks per stage.
        is_v_shaped: 1.0 for V-shaped schedules, which have two.
        mtp: Modules of multi-token prediction.
    """
    most = floor(layers / (pp * interleave))
    counted = where(is_v_shaped > 0.0, 0.0, smaller(2.0 * mtp + smaller(mtp, 1.0), most))
    layers, chunks = layers + counted, pp * where(is_v_shaped > 0.0, 2.0, interleave)
    short = floor(layers / chunks)
    long = layers - short * chunks
    begin = where(chunks - long >= 2.0, 1.0, 0.0)
    return Deal(chunks, short, begin, begin + long), counted


def stage_layers(d: Dimensions, layout: Layout, stage: Number) -> Layers:
    """The dense and the MoE layers of a stage; dense layers are the first of the model.

    Interleaved, chunk ``j`` of stage ``k`` is the ``(j p + k)``-th; in a V-shaped schedule a stage has the ``k``-th and the
    ``(2 p - 1 - k)``-th.  See :func:`dealt` for their layers.  Modules of multi-token prediction count as layers of the
    stage with the output, of the kind of the last layer.
    """
    deal, counted = dealt(d.layers, layout.pp, layout.interleave, layout.pipeline.v_shape, d.mtp_layers)
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
    deal, counted = dealt(layers, pp, interleave, is_v_shaped, mtp)
    even = deal.short * where(is_v_shaped > 0.0, 2.0, interleave)
    long = deal.end - deal.begin
    # In a V-shaped schedule the last stage has the two chunks in the middle, and the first one the outermost, of which the
    # last is short.
    most = where(is_v_shaped > 0.0, where(deal.end > pp, 2.0, smaller(1.0, long)), ceil(long / pp))
    last = pp - 1.0
    interleaved = larger(0.0, ceil((deal.end - last) / pp) - ceil((deal.begin - last) / pp))
    first = where((deal.begin == 0.0) & (deal.end > 0.0), 1.0, 0.0)
    last = even + where(is_v_shaped > 0.0, first, interleaved) - counted
    # Of two stages the last one has the odd long chunk where the first chunk is short.
    odd = (pp == 2.0) & (deal.begin == 1.0) & ((counted > 0.0) & (long > 2.0 * floor(0.5 * long)))
    most = most - where(odd, 1.0, 0.0)
    # One stage has all.
    return where(pp > 1.0, even + most, last), last, long


def peak_stages(d: Dimensions, layout: Layout) -> tuple[Number, ...]:
    """Stages that may need the most memory: the first, the last, and those around the first MoE layer.

    Where layers are not divisible, also the first stages with the most layers.  Of stages with the same layers the first one
    stores the most.
    """
    last = layout.pp - 1.0
    deal, _ = dealt(d.layers, layout.pp, layout.interleave, layout.pipeline.v_shape, d.mtp_layers)
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
    if not np.any(deal.end > deal.begin):
        return stages
    second = smaller(last, 1.0)
    if not np.any(is_v_shaped):
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
