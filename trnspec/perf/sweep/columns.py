"""Many layouts at once as numbers: what each choice means to the formulas, and why a layout cannot be.

A column is a float, or an array that broadcasts with the others.  The conditions are those of
:func:`trnspec.perf.work.layout.check`, in the same order; :data:`REASONS` names them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from trnspec.perf.ops import Number, floor, where
from trnspec.perf.training.step import UNUSED
from trnspec.perf.work.activations import RECOMPUTE, Storing
from trnspec.perf.work.layout import BUBBLES
from trnspec.perf.work.memory import OPTIMIZERS, Optimizer, peak_memory
from trnspec.perf.work.plan import Plan, computed_again
from trnspec.perf.work.stages import SCHEDULES as STAGES
from trnspec.perf.work.stages import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trnspec.model.transformers.dimensions import Dimensions

REASONS = (
    *("", "not-positive", "rank-count", "batch-not-divisible", "heads-not-divisible", "schedule"),
    *("layers-not-divisible", "microbatches-not-divisible", "experts-not-divisible", "sequence-not-divisible"),
    *("context", "unknown-figure", "does-not-fit"),
)
"""By code: why a configuration has no time.  0 is that it has; of several reasons it is the first."""

SCHEDULES = tuple(BUBBLES)
"""The pipeline's schedules, by the number that stands for each in a column."""
RECOMPUTES = tuple(RECOMPUTE)
"""What is computed again, by the number that stands for each in a column; formulas take another, see :func:`recomputed`."""
OPTIMIZER_NAMES = tuple(OPTIMIZERS)
"""The optimizers, by the number that stands for each in a column."""

WORDS = {"schedule": SCHEDULES, "recompute": RECOMPUTES, "optimizer": OPTIMIZER_NAMES}
"""The columns that hold words, with the words."""
COUNTS = ("tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "microbatch", "interleave")
"""The columns that count from 1."""
FLAGS = ("sequence_parallel", "overlap", "flash", "fused_loss")
"""The columns that hold yes or no."""


@frozen(kw_only=True)
class Choices:
    """Layouts as columns of numbers; see :class:`~trnspec.perf.work.layout.Layout` for what they mean.

    Attributes:
        tp: Ranks that split each matrix.
        pp: Stages of the pipeline.
        dp: Replicas of the data.
        cp: Ranks that split each sequence.
        ep: Ranks that split the experts.
        seq: Tokens of a sequence.
        global_batch: Sequences of a step.
        microbatch: Sequences of a microbatch.
        interleave: Chunks of a stage.
        bubble: The bubble over that of 1F1B.
        sends: Messages between stages over those of 1F1B.
        held: Activations over those of 1F1B.
        folded: 1 where a stage has a chunk from either end of the model.
        chunked: 1 where the schedule is the interleaved one.
        zero: Stage of ZeRO.
        recompute: 0 nothing, 1 the scores, 1.5 all but some operators, 2 all is computed again.
        sequence: 1 where norms and residuals are split.
        overlap: 1 where tensor-parallel collectives may hide.
        flash: 1 where scores are never written.
        fused_loss: 1 where the loss keeps 4 bytes of a logit.
        weight_bytes: Bytes of a weight.
        gradient_bytes: Bytes of a gradient.
        state_bytes: Bytes of the optimizer's states.
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
    sends: Number
    held: Number
    folded: Number
    chunked: Number
    zero: Number
    recompute: Number
    sequence: Number
    overlap: Number
    flash: Number
    fused_loss: Number
    weight_bytes: Number
    gradient_bytes: Number
    state_bytes: Number

    def replicas(self) -> Number:
        """Microbatches of one replica, whole only where the batch is divisible."""
        return self.global_batch / (self.microbatch * self.dp)

    def plan(self, microbatches: Number) -> Plan:
        """The numbers that times are computed from."""
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
            sends=self.sends,
            sharded=_one(self.zero >= 1.0),
            gathered=_one(self.zero >= 3.0),
            full=full,
            selective=selective,
            sequence=self.sequence,
            overlap=self.overlap,
            weight_bytes=self.weight_bytes,
            gradient_bytes=self.gradient_bytes,
            state_bytes=self.state_bytes,
        )

    def memory(self, d: Dimensions, microbatches: Number) -> Number:
        """Bytes on the rank that needs the most, for one model."""
        split = Split(
            tp=self.tp,
            pp=self.pp,
            dp=self.dp,
            cp=self.cp,
            ep=self.ep,
            interleave=self.interleave,
            held=self.held,
            folded=self.folded,
        )
        storing = Storing(
            recompute=self.recompute, sequence_parallel=self.sequence, flash=self.flash, fused_loss=self.fused_loss
        )
        optimizer = Optimizer(
            weight_bytes=self.weight_bytes, grad_bytes=self.gradient_bytes, state_bytes=self.state_bytes
        )
        return peak_memory(
            d,
            split,
            storing,
            optimizer,
            seq=self.seq,
            microbatch=self.microbatch,
            microbatches=microbatches,
            zero=self.zero,
        )


def _one(condition: Number) -> Number:
    """1.0 where a condition holds, else 0.0."""
    return float(condition) if type(condition) is bool else condition.astype(np.float64)


def scheduled(schedule: Number, interleave: Number) -> dict[str, Number]:
    """What a schedule, as its number, and its chunks mean.  Arrays of whole numbers, or two numbers."""
    if not isinstance(schedule, np.ndarray) and not isinstance(interleave, np.ndarray):
        name, chunks = SCHEDULES[int(schedule)], float(interleave)
        held, folded = STAGES[name]
        return {
            "interleave": chunks,
            "bubble": BUBBLES[name] / chunks,
            "sends": 1.0 + folded if chunks == 1.0 else chunks,
            "held": held,
            "folded": folded,
            "chunked": float(name == "interleaved"),
        }
    codes, numbers = np.asarray(schedule), np.asarray(interleave, dtype=np.float64)
    twice = _FOLDED.take(codes)
    return {
        "interleave": numbers,
        "bubble": _BUBBLE.take(codes) / numbers,
        "sends": np.where(numbers == 1.0, 1.0 + twice, numbers),
        "held": _HELD.take(codes),
        "folded": twice,
        "chunked": _CHUNKED.take(codes),
    }


_BUBBLE = np.array([BUBBLES[name] for name in SCHEDULES])
_HELD = np.array([STAGES[name][0] for name in SCHEDULES])
_FOLDED = np.array([STAGES[name][1] for name in SCHEDULES])
_CHUNKED = np.array([float(name == "interleaved") for name in SCHEDULES])
_RECOMPUTED = np.array(list(RECOMPUTE.values()))
_BYTES = {
    "weight_bytes": np.array([float(o.weight_bytes) for o in OPTIMIZERS.values()]),
    "gradient_bytes": np.array([float(o.grad_bytes) for o in OPTIMIZERS.values()]),
    "state_bytes": np.array([float(o.state_bytes) for o in OPTIMIZERS.values()]),
}


def optimized(optimizer: Number) -> dict[str, Number]:
    """What an optimizer, as its number, means: a number, or an array of whole numbers."""
    if isinstance(optimizer, np.ndarray):
        return {name: values.take(optimizer) for name, values in _BYTES.items()}
    return {name: float(values[int(optimizer)]) for name, values in _BYTES.items()}


def recomputed(recompute: Number) -> Number:
    """The number that formulas take for a word of :data:`RECOMPUTES` by its place: a number, or an array of whole numbers."""
    if isinstance(recompute, np.ndarray):
        return _RECOMPUTED.take(recompute)
    return float(_RECOMPUTED[int(recompute)])


def unfit(c: Choices, ranks: Number, heads: Number, experts: Number, unknown: Number) -> Number:
    """What cannot be because of the degrees of parallelism; see :func:`refused`.

    Args:
        c: The layouts.
        ranks: Ranks of the system.
        heads: Query heads of the model.
        experts: Its experts, 1 for none.
        unknown: Above 0 where a link is needed whose rate is not published.
    """
    return _first({
        "rank-count": c.tp * c.pp * c.dp * c.cp != ranks,
        "heads-not-divisible": _broken(heads / c.tp),
        "experts-not-divisible": _any(_broken(experts / c.ep), _broken(c.dp * c.cp / c.ep)),
        "unknown-figure": unknown > UNUSED,
    })  # fmt: skip


def undealt(c: Choices, layers: Number) -> Number:
    """What cannot be because of the stages of the pipeline; see :func:`refused`."""
    parts = c.pp * c.interleave * (1.0 + c.folded)
    uneven = _all(_broken(layers / parts), _broken((layers + 2.0) / parts))
    # 1F1B alone has as large a bubble as itself.
    staged = _all(c.pp == 1.0, c.bubble != 1.0)
    return _first({
        "schedule": _any((c.interleave > 1.0) != (c.chunked > 0.0), staged),
        "layers-not-divisible": _all(c.pp > 1.0, uneven),
    })  # fmt: skip


def unsplit(c: Choices) -> Number:
    """What cannot be because of the sequence; see :func:`refused`."""
    # What tensor parallelism splits along the sequence divides what context parallelism leaves of it.
    return _first({"sequence-not-divisible": _broken(c.seq / (c.cp * (1.0 + c.sequence * (c.tp - 1.0))))})


def unlearned(c: Choices, longest: Number) -> Number:
    """What cannot be because of positions that are learned; see :func:`refused`.

    Args:
        c: The layouts.
        longest: The most tokens of a sequence, see :func:`trnspec.perf.work.layout.longest`.
    """
    return _first({"context": c.seq > longest})


def turns(c: Choices) -> Number:
    """What microbatches come in a multiple of: the stages where the schedule is the interleaved one, else 1."""
    return where(c.interleave > 1.0, c.pp, 1.0)


def unbatched(microbatches: Number, multiple: Number) -> Number:
    """What cannot be because of the batch; see :func:`refused`."""
    return _first({
        "batch-not-divisible": _broken(microbatches),
        "microbatches-not-divisible": _broken(microbatches / multiple),
    })  # fmt: skip


def refused(*causes: Number) -> NDArray[np.uint8]:
    """The codes of :data:`REASONS`, in the shape that all causes broadcast to.

    A cause is 256 less the code of a reason where it holds, else 0: of several reasons the first is the largest.
    """
    return np.negative(np.asarray(reduce(np.maximum, causes), dtype=np.uint8))


def _first(conditions: dict[str, Number]) -> Number:
    """A cause from the conditions of some reasons."""
    flags = [
        np.asarray(condition, dtype=np.bool_).view(np.uint8) * np.uint8(256 - REASONS.index(reason))
        for reason, condition in conditions.items()
    ]
    return reduce(np.maximum, flags)


def caused(condition: Number, reason: str) -> Number:
    """A cause from the condition of one reason."""
    return _first({reason: condition})


def _broken(number: Number) -> Number:
    """Whether a number is not whole."""
    return number != floor(number)


def _all(a: Number, b: Number) -> Number:
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else np.logical_and(a, b)


def _any(a: Number, b: Number) -> Number:
    return b if a is False else a if b is False else np.logical_or(a, b)
