"""The conditions under which a layout is invalid, for one layout and for columns of layouts alike.

A condition is a bool, or an array of them: the formulas take numbers or arrays (see :mod:`trnspec.perf.ops`).
:func:`trnspec.perf.work.layout.check` describes the first condition that holds; :mod:`trnspec.perf.sweep.columns` turns
them into codes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from trnspec.perf.ops import Number, floor, remembered, where

REASONS = (
    *("", "not-positive", "rank-count", "batch-not-divisible", "heads-not-divisible", "schedule"),
    *("layers-not-divisible", "microbatches-not-divisible", "experts-not-divisible", "sequence-not-divisible"),
    *("context", "unknown-figure", "does-not-fit"),
)
"""The reasons by code; 0 is a valid layout. If several conditions hold, the reason is the first."""


MOST_V_STAGES = 64
"""The most stages for which the passes of V-shaped schedules are executed; models have no layers for more."""


class Layouts(Protocol):
    """One layout, or columns of layouts; see :class:`trnspec.perf.work.layout.Layout`."""

    @property
    def tp(self) -> Number:
        """Tensor-parallel degree."""

    @property
    def pp(self) -> Number:
        """Pipeline-parallel degree."""

    @property
    def dp(self) -> Number:
        """Data-parallel degree."""

    @property
    def cp(self) -> Number:
        """Context-parallel degree."""

    @property
    def ep(self) -> Number:
        """Expert-parallel degree."""

    @property
    def expert_split(self) -> Number:
        """Ranks that split the matrices of one expert."""

    @property
    def seq(self) -> Number:
        """Sequence length."""

    @property
    def interleave(self) -> Number:
        """Model chunks per stage."""

    @property
    def bubble(self) -> Number:
        """The pipeline bubble relative to 1F1B."""

    @property
    def folded(self) -> Number:
        """1 if a stage has a chunk from either end of the model."""

    @property
    def chunked(self) -> Number:
        """1 for the interleaved schedule."""

    @property
    def forward_first(self) -> Number:
        """1 for GPipe."""

    @property
    def sequence(self) -> Number:
        """1 with sequence parallelism."""


Conditions = dict[str, Number]
"""Conditions under which a layout is invalid, by reason."""


def degrees(c: Layouts, ranks: Number, heads: Number, experts: Number) -> Conditions:
    """Conditions on the parallel degrees.

    Args:
        c: The layouts.
        ranks: Ranks of the system.
        heads: Query heads of the model.
        experts: Its experts, 1 for none.
    """
    # Ranks of a tensor-parallel group that hold different experts, or the same ones.
    whole = c.tp / c.expert_split
    return {
        "rank-count": c.tp * c.pp * c.dp * c.cp != ranks,
        "heads-not-divisible": fractional(heads / c.tp),
        "experts-not-divisible": either(
            either(fractional(experts / c.ep), fractional(c.dp * c.cp * whole / c.ep)), fractional(whole)
        ),
    }


def stages(c: Layouts, layers: Number, *, uneven: Number = False) -> Conditions:
    """Conditions on the pipeline; embedding and output may count as one layer each.

    Args:
        c: The layouts.
        layers: Layers of the model.
        uneven: Whether stages may have different numbers of layers: a bool, or 1.0 and 0.0.
    """
    schedule, indivisible = _stages(c.pp, c.interleave, c.folded, c.chunked, c.bubble, c.forward_first, layers)
    return {"schedule": schedule, "layers-not-divisible": both(uneven == 0.0, indivisible)}


@remembered
def _stages(  # noqa: PLR0917  # of columns
    pp: Number,
    interleave: Number,
    folded: Number,
    chunked: Number,
    bubble: Number,
    forward_first: Number,
    layers: Number,
) -> tuple[Number, Number]:
    """Whether the schedule is wrong, and whether layers are not divisible."""
    parts = pp * interleave * (1.0 + folded)
    # Of all schedules only 1F1B and GPipe have a relative bubble of 1.
    other_schedule = either(both(pp == 1.0, either(bubble != 1.0, forward_first > 0.0)), folded * pp > MOST_V_STAGES)
    return (
        either((interleave > 1.0) != (chunked > 0.0), other_schedule),
        both(pp > 1.0, both(fractional(layers / parts), fractional((layers + 2.0) / parts))),
    )


def sequence(c: Layouts) -> Conditions:
    """Conditions on the sequence: tensor parallelism splits what context parallelism leaves."""
    return {"sequence-not-divisible": fractional(c.seq / (c.cp * (1.0 + c.sequence * (c.tp - 1.0))))}


def positions(c: Layouts, longest: Number) -> Conditions:
    """Conditions on learned positions.

    Args:
        c: The layouts.
        longest: The longest sequence, see :func:`trnspec.perf.work.layout.longest`.
    """
    return {"context": c.seq > longest}


def multiple(c: Layouts) -> Number:
    """What the number of microbatches must be a multiple of: the stages of the interleaved schedule, else 1."""
    return where(c.interleave > 1.0, c.pp, 1.0)


def batch(microbatches: Number, of: Number) -> Conditions:
    """Conditions on the global batch.

    Args:
        microbatches: Microbatches per replica, not rounded.
        of: What their number must be a multiple of, see :func:`multiple`.
    """
    return {
        "batch-not-divisible": fractional(microbatches),
        "microbatches-not-divisible": fractional(microbatches / of),
    }


def fractional(number: Number) -> Number:
    """Whether a number is not whole."""
    return not number.is_integer() if type(number) is float else number != floor(number)


def both(a: Number, b: Number) -> Number:
    """Whether both conditions hold; a constant one costs no array."""
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else np.logical_and(a, b)


def either(a: Number, b: Number) -> Number:
    """Whether one of two conditions holds; a constant one costs no array."""
    return b if a is False else a if b is False else np.logical_or(a, b)
