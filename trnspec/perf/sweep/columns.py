"""Many layouts at once as columns of numbers, and the reason why each is invalid as a code.

A column is a float, or an array that broadcasts with the others.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.perf.experts import SENT
from trnspec.perf.ops import Number, where
from trnspec.perf.work import legality
from trnspec.perf.work.activations import RECOMPUTE, Storing
from trnspec.perf.work.layout import BUBBLES, DEFERRED, V_SHAPED
from trnspec.perf.work.memory import OPTIMIZERS, Optimizer, peak_memory
from trnspec.perf.work.plan import Plan, computed_again
from trnspec.perf.work.stages import SCHEDULES as STAGES
from trnspec.perf.work.stages import Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.work.frameworks import Runtime

REASONS = legality.REASONS
"""By code: why a configuration has no time; 0 if it has one. If there are several reasons, it is the first."""

SCHEDULES = tuple(BUBBLES)
"""The pipeline schedules, by their number in a column."""
RECOMPUTES = tuple(RECOMPUTE)
"""The kinds of recompute, by their number in a column; formulas take another number, see :func:`recomputed`."""
OPTIMIZER_NAMES = tuple(OPTIMIZERS)
"""The optimizers, by their number in a column."""

DISPATCHES: tuple[str, ...] = ("per-copy", "per-node")
"""Dispatch of tokens to experts, by the number in a column."""

WORDS = {
    "schedule": SCHEDULES,
    "recompute": RECOMPUTES,
    "optimizer": OPTIMIZER_NAMES,
    "dispatch": DISPATCHES,
    "dispatch_dtype": tuple(SENT),
}
"""The columns of names, with the names."""
COUNTS = ("tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "microbatch", "interleave", "expert_tp")
"""The columns of positive numbers."""
FLAGS = ("uneven", "sequence_parallel", "overlap", "flash", "fused_loss", "expert_overlap")
"""The columns of flags."""
LEVELS = {"zero": 3, "node_limit": 63}
"""The other columns that count from 0, with their highest value."""
RATIOS = ("imbalance", "capacity_factor")
"""The columns of numbers from 1 on that need not be whole; formulas take the load that follows, see :func:`load_of`."""
OPTIONAL = ("expert_tp", "capacity_factor")
"""The columns that may be ``None``, which is 0 as a number."""


@frozen(kw_only=True)
class Choices:
    """Layouts as columns of numbers; see :class:`~trnspec.perf.work.layout.Layout`.

    Attributes:
        tp: Tensor-parallel degree.
        pp: Pipeline-parallel degree.
        dp: Data-parallel degree.
        cp: Context-parallel degree.
        ep: Expert-parallel degree.
        seq: Sequence length in tokens.
        global_batch: Sequences per step.
        microbatch: Sequences per microbatch.
        interleave: Model chunks per stage.
        bubble: The least pipeline bubble relative to 1F1B.
        deferred: Weight-gradient passes that fill the bubble, relative to ``pp - 1``.
        sends: Messages between stages relative to 1F1B.
        held: Activations relative to 1F1B.
        folded: 1 if a stage has a chunk from either end of the model.
        v_shape: Number of the V-shaped schedule, from 1; 0 for others.
        chunked: 1 for the interleaved schedule.
        forward_first: 1 for GPipe.
        zero: ZeRO stage.
        recompute: 0 none, 1 selective, 1.5 operators, 2 full.
        sequence: 1 with sequence parallelism.
        overlap: 1 if tensor-parallel collectives overlap with computation.
        flash: 1 with flash attention.
        fused_loss: 1 if the loss keeps 4 bytes per logit.
        weight_bytes: Bytes per weight as it is stored.
        compute_bytes: Bytes per weight as it is multiplied and gathered.
        gradient_bytes: Bytes per gradient.
        state_bytes: Bytes of optimizer states per parameter.
        update_bytes: Bytes per parameter that the optimizer reads and writes.
        expert_split: Ranks that split the matrices of one expert.
        dispatch: 1 if tokens are sent to experts per node, 0 per copy.
        sent: Bytes of all-to-alls over those of 16 bit.
        node_limit: Nodes that the experts of a token are on, at most; 0 for no limit.
        expert_overlap: 1 if the all-to-all overlaps with the rest of a layer.
        load: Tokens of the busiest rank's experts over the mean.
        uneven: 1 if stages may have different numbers of layers.
    """

    tp: Number
    pp: Number
    dp: Number
    cp: Number
    ep: Number
    seq: Number
    global_batch: Number
    microbatch: Number
    interleave: Number
    bubble: Number
    deferred: Number
    sends: Number
    held: Number
    folded: Number
    v_shape: Number
    chunked: Number
    forward_first: Number
    zero: Number
    recompute: Number
    sequence: Number
    overlap: Number
    flash: Number
    fused_loss: Number
    weight_bytes: Number
    compute_bytes: Number
    gradient_bytes: Number
    state_bytes: Number
    update_bytes: Number
    expert_split: Number
    dispatch: Number
    sent: Number
    node_limit: Number
    expert_overlap: Number
    load: Number
    uneven: Number

    def replicas(self) -> Number:
        """Microbatches per replica, whole only if the batch is divisible."""
        return self.global_batch / (self.microbatch * self.dp)

    def plan(self, microbatches: Number) -> Plan:
        """The numbers from which times are computed."""
        full, selective = computed_again(self.recompute)
        return Plan(
            tp=self.tp,
            pp=self.pp,
            dp=self.dp,
            cp=self.cp,
            ep=self.ep,
            seq=self.seq,
            microbatch=self.microbatch,
            microbatches=microbatches,
            bubble=self.bubble,
            deferred=self.deferred,
            folded=self.folded,
            v_shape=self.v_shape,
            chunks=self.interleave,
            chunked=self.chunked,
            forward_first=self.forward_first,
            sends=self.sends,
            sharded=_one(self.zero >= 1.0),
            scattered=_one(self.zero >= 2.0),
            gathered=_one(self.zero >= 3.0),
            full=full,
            selective=selective,
            flash=self.flash,
            sequence=self.sequence,
            overlap=self.overlap,
            weight_bytes=self.compute_bytes,
            gradient_bytes=self.gradient_bytes,
            update_bytes=self.update_bytes,
            activation_bytes=2.0,
            expert_split=self.expert_split,
            per_node=self.dispatch,
            sent=self.sent,
            node_limit=self.node_limit,
            expert_overlap=self.expert_overlap,
            load=self.load,
        )

    def split(self) -> Split:
        """The numbers from which memory is computed."""
        return Split(
            tp=self.tp,
            pp=self.pp,
            dp=self.dp,
            cp=self.cp,
            ep=self.ep,
            expert_tp=self.expert_split,
            interleave=self.interleave,
            held=self.held,
            folded=self.folded,
        )

    def storing(self) -> Storing:
        """What is stored for the backward pass."""
        return Storing(
            recompute=self.recompute, sequence_parallel=self.sequence, flash=self.flash, fused_loss=self.fused_loss,
            load=self.load,
        )  # fmt: skip

    def sizes(self) -> Optimizer:
        """Bytes per parameter of weights, gradients and states."""
        return Optimizer(
            weight_bytes=self.weight_bytes,
            compute_bytes=self.compute_bytes,
            grad_bytes=self.gradient_bytes,
            state_bytes=self.state_bytes,
        )

    def memory(self, d: Dimensions, microbatches: Number, runtime: Runtime) -> Number:
        """Bytes on the rank that needs most, for one model and what software needs besides."""
        return peak_memory(
            d,
            self.split(),
            self.storing(),
            self.sizes(),
            seq=self.seq,
            microbatch=self.microbatch,
            microbatches=microbatches,
            zero=self.zero,
            runtime=runtime,
        )


def _one(condition: Number) -> Number:
    """1.0 if a condition holds, else 0.0."""
    return float(condition) if type(condition) is bool else condition.astype(np.float64)


def scheduled(schedule: Number, interleave: Number) -> dict[str, Number]:
    """The columns of a schedule, by its number, and its model chunks: arrays of whole numbers, or two numbers."""
    if not isinstance(schedule, np.ndarray) and not isinstance(interleave, np.ndarray):
        name, chunks = SCHEDULES[int(schedule)], float(interleave)
        held, folded = STAGES[name]
        return {
            "interleave": chunks,
            "bubble": BUBBLES[name] / chunks,
            "deferred": DEFERRED.get(name, 0.0),
            "sends": 1.0 + folded if chunks == 1.0 else chunks,
            "held": held,
            "folded": folded,
            "v_shape": float(_V_SHAPE[int(schedule)]),
            "chunked": float(name == "interleaved"),
            "forward_first": float(name == "gpipe"),
        }
    numbers = as_float(interleave)
    twice = _at(_FOLDED, schedule)
    return {
        "interleave": numbers,
        "bubble": _at(_BUBBLE, schedule) / numbers,
        "deferred": _at(_DEFERRED, schedule),
        "sends": where(numbers == 1.0, 1.0 + twice, numbers),
        "held": _at(_HELD, schedule),
        "folded": twice,
        "v_shape": _at(_V_SHAPE, schedule),
        "chunked": _at(_CHUNKED, schedule),
        "forward_first": _at(_FORWARD_FIRST, schedule),
    }


def _at(table: NDArray[Any], positions: Any) -> Number:
    """The elements of a table at a position, or at a column of positions."""
    return table.take(positions) if isinstance(positions, np.ndarray) else float(table[int(positions)])


def as_float(column: Any) -> Number:
    """Integers as floats."""
    return column.astype(np.float64) if isinstance(column, np.ndarray) else float(column)


_BUBBLE = np.array([BUBBLES[name] for name in SCHEDULES])
_DEFERRED = np.array([DEFERRED.get(name, 0.0) for name in SCHEDULES])
_HELD = np.array([STAGES[name][0] for name in SCHEDULES])
_FOLDED = np.array([STAGES[name][1] for name in SCHEDULES])
_V_SHAPE = np.array([float(V_SHAPED.index(name) + 1) if name in V_SHAPED else 0.0 for name in SCHEDULES])
_CHUNKED = np.array([float(name == "interleaved") for name in SCHEDULES])
_FORWARD_FIRST = np.array([float(name == "gpipe") for name in SCHEDULES])
_RECOMPUTED = np.array(list(RECOMPUTE.values()))
_BYTES = {
    "weight_bytes": np.array([float(o.weight_bytes) for o in OPTIMIZERS.values()]),
    "compute_bytes": np.array([float(o.compute_bytes) for o in OPTIMIZERS.values()]),
    "gradient_bytes": np.array([float(o.grad_bytes) for o in OPTIMIZERS.values()]),
    "state_bytes": np.array([float(o.state_bytes) for o in OPTIMIZERS.values()]),
    "update_bytes": np.array([float(o.update_bytes) for o in OPTIMIZERS.values()]),
}


def optimized(optimizer: Number) -> dict[str, Number]:
    """The columns of an optimizer, by its number: a number, or an array of whole numbers."""
    return {name: _at(values, optimizer) for name, values in _BYTES.items()}


_SENT = np.array(list(SENT.values()))


def sent(dispatch_dtype: Number) -> Number:
    """Bytes of all-to-alls over those of 16 bit, by the number of a dtype: a number, or an array of whole numbers."""
    return _at(_SENT, dispatch_dtype)


def recomputed(recompute: Number) -> Number:
    """The number that formulas take for a kind of recompute, by its place in :data:`RECOMPUTES`: a number, or an array."""
    return _at(_RECOMPUTED, recompute)


def split_of(expert_tp: Number, tp: Number) -> Number:
    """Ranks that split an expert: those of ``expert_tp``, or those of ``tp`` where that is 0."""
    return where(expert_tp == 0.0, tp, expert_tp)


def load_of(imbalance: Number, capacity_factor: Number) -> Number:
    """The load of experts: the capacity factor, or the imbalance where that is 0."""
    return where(capacity_factor > 0.0, capacity_factor, imbalance)


def reason_codes(conditions: Mapping[str, Number]) -> Number:
    """The codes of :data:`REASONS`: of several reasons whose conditions hold the first, and 0 where none holds.

    Args:
        conditions: Where layouts are invalid, by reason: truth values, or arrays that broadcast.
    """
    # 256 minus a code is larger for an earlier reason.
    causes = [condition * _CAUSES[reason] for reason, condition in conditions.items() if condition is not False]
    return np.negative(reduce(np.maximum, causes)) if causes else np.uint8(0)


_CAUSES = {reason: np.uint8(256 - code) for code, reason in enumerate(REASONS) if reason}
