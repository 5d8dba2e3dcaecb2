"""The conditions under which a layout is invalid, for one layout and for arrays of layouts, and the description of an invalid one.

A condition is a bool, or an array of them: the formulas take numbers or arrays (see :mod:`trnspec.perf.ops`).  :func:`check`
describes the first condition that holds; :func:`reason_codes` turns them into codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import attrgetter

import numpy as np

from trnspec.errors import RefusalError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.ops import Number, larger, where
from trnspec.perf.work.layout import OPTIMIZERS, Layout
from trnspec.perf.work.transformer import common_heads

REASONS = (
    *("", "not-positive", "rank-count", "batch-not-divisible", "heads-not-divisible", "schedule"),
    *("layers-not-divisible", "microbatches-not-divisible", "experts-not-divisible", "sequence-not-divisible"),
    *("context", "unknown-figure", "does-not-fit", "slower"),
)
"""The reasons by code; 0 is a valid layout. If several conditions hold, the reason is the first.

``slower`` is that of searches for the fastest layout only: a lower bound of its time is more than the time of another one.
"""


MOST_V_STAGES = 64
"""The most stages for which the passes of V-shaped schedules are executed; models have no layers for more."""


def conditions(layout: Layout, d: Dimensions, ranks: Number) -> dict[str, Number]:
    """Masks of invalid layouts, by reason."""
    tp, pp, cp, dp, ep = layout.tp, layout.pp, layout.cp, layout.dp, layout.ep
    of_replicas, split = layout.microbatch * dp, layout.expert_split
    chunks = pp * layout.interleave * where(layout.pipeline.v_shape > 0.0, 2.0, 1.0)
    # Of all schedules only 1F1B and GPipe have a relative bubble of 1.
    needs_stages = (pp == 1) & ((layout.pipeline.bubble / layout.interleave != 1.0) | (layout.pipeline.gpipe > 0.0))
    too_many_stages = (layout.pipeline.v_shape > 0.0) & (pp > MOST_V_STAGES)
    indivisible = (d.layers % chunks != 0) & ((d.layers + 2.0) % chunks != 0)
    return {
        "rank-count": tp * pp * dp * cp != ranks,
        "batch-not-divisible": layout.global_batch % of_replicas != 0,
        "heads-not-divisible": common_heads(d) % tp != 0,
        "schedule": ((layout.interleave > 1) != (layout.pipeline.interleaved > 0.0)) | (needs_stages | too_many_stages),
        # Embedding and output may count as one layer each.
        "layers-not-divisible": (layout.uneven == 0) & (pp > 1) & indivisible,
        "microbatches-not-divisible": layout.global_batch % (of_replicas * where(layout.interleave > 1, pp, 1)) != 0,
        "experts-not-divisible": (larger(1.0, d.experts) % ep != 0)
        | (dp * cp * tp % (ep * split) != 0)
        | (tp % split != 0),
        "sequence-not-divisible": layout.seq % (cp * layout.sequence_split) != 0,
        "context": (d.positions > 0.0) & (layout.seq > d.context),
    }


def reason_codes(conditions: Mapping[str, Number]) -> Number:
    """The codes of :data:`REASONS`: of several reasons whose conditions hold the first, and 0 where none holds.

    Args:
        conditions: Where layouts are invalid, by reason: truth values, or arrays that broadcast.
    """
    # 256 minus a code is larger for an earlier reason.
    causes = [condition * _CAUSES[reason] for reason, condition in conditions.items() if condition is not False]
    return np.negative(reduce(np.maximum, causes)) if causes else np.uint8(0)


_CAUSES = {reason: np.uint8(256 - code) for code, reason in enumerate(REASONS) if reason}


def check(layout: Layout, d: Dimensions, ranks: int | None = None) -> None:
    """Checks a layout for a model and a number of ranks.

    Args:
        layout: The layout.
        d: The model.
        ranks: Ranks of the system; not checked if left out.

    Raises:
        RefusalError: It is invalid, with the reason and the input at fault.
    """
    if min(counts := _COUNTS(layout)) < 1:
        name, count = next(pair for pair in zip(_COUNTED, counts, strict=True) if pair[1] < 1)
        raise RefusalError("not-positive", f"{name} is {count}; it must be at least 1", place=name)
    expert_tp, capacity = layout.expert_tp, layout.capacity_factor
    for name, value in (("expert_tp", expert_tp), ("imbalance", layout.imbalance), ("capacity_factor", capacity)):
        if value is not None and value < 1:
            raise RefusalError("not-positive", f"{name} is {value:g}; it must be at least 1", place=name)
    if layout.optimizer not in OPTIMIZERS:
        raise RefusalError(
            "unknown-optimizer",
            f"there is no optimizer {layout.optimizer}",
            place="optimizer",
            hint=", ".join(OPTIMIZERS),
        )
    total = layout.ranks if ranks is None else ranks
    invalid = {reason for reason, holds in conditions(layout, d, total).items() if holds}
    if invalid:
        raise _DESCRIBED[next(reason for reason in REASONS if reason in invalid)](layout, d, total)


_COUNTED = ("tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "microbatch", "interleave")
_COUNTS = attrgetter(*_COUNTED)


def _rank_count(layout: Layout, d: Dimensions, ranks: int) -> RefusalError:
    """At fault is dp if it could be another, else the first degree with which no dp is right."""
    for name, product in (
        ("tp", layout.tp),
        ("pp", layout.tp * layout.pp),
        ("cp", layout.tp * layout.pp * layout.cp),
    ):
        if ranks % product:
            others = layout.tp * layout.pp * layout.cp // getattr(layout, name)
            able = [n for n in range(1, ranks // others + 1) if ranks % (n * others) == 0]
            if name == "tp":
                able = [n for n in able if int(common_heads(d)) % n == 0]
            return RefusalError(
                "rank-count",
                f"{ranks:,} ranks are not divisible by tp {layout.tp} x pp {layout.pp} x cp {layout.cp}",
                place=name,
                hint=nearest(name, getattr(layout, name), able),
            )
    return RefusalError(
        "rank-count",
        f"tp {layout.tp} x pp {layout.pp} x dp {layout.dp} x cp {layout.cp} is {layout.ranks:,} ranks; "
        f"the system has {ranks:,}",
        place="dp",
        hint=f"dp {ranks // (layout.tp * layout.pp * layout.cp)}",
    )


def _batch(layout: Layout, *_: object) -> RefusalError:
    each, batch = layout.dp * layout.microbatch, layout.global_batch
    near = nearest("global_batch", batch, [n * each for n in (batch // each, batch // each + 1) if n])
    return RefusalError(
        "batch-not-divisible",
        f"a global batch of {batch} is not divisible into microbatches of {layout.microbatch} on each of "
        f"{layout.dp} replicas",
        place="global_batch",
        hint=near if batch > each else f"{near}, or fewer replicas by a larger tp, pp or cp",
    )


def _heads(layout: Layout, d: Dimensions, _: int) -> RefusalError:
    heads = int(common_heads(d))
    text = (
        f"tp {layout.tp} exceeds the {heads} heads"
        if layout.tp > heads
        else f"{heads} heads are not divisible by tp {layout.tp}"
    )
    return RefusalError("heads-not-divisible", text, place="tp")


def _schedule(layout: Layout, *_: object) -> RefusalError:
    if layout.pipeline.v_shape and layout.pp > MOST_V_STAGES:
        return RefusalError(
            "schedule",
            f"the schedule {layout.schedule} is computed for at most {MOST_V_STAGES} stages; pp is {layout.pp}",
            place="pp",
            hint=f"pp {MOST_V_STAGES} or less",
        )
    if (layout.interleave > 1) != (layout.schedule == "interleaved"):
        return RefusalError(
            "schedule",
            f"the schedule {layout.schedule} cannot have interleave {layout.interleave}",
            place="interleave",
            hint="schedule interleaved with interleave 2 or more, or interleave 1",
        )
    return RefusalError(
        "schedule",
        f"the schedule {layout.schedule} needs more than one stage; pp is 1",
        place="interleave" if layout.interleave > 1 else "schedule",
        hint="pp 2 or more, or neither schedule nor interleave",
    )


def _layers(layout: Layout, d: Dimensions, _: int) -> RefusalError:
    layers, parts = int(d.layers), layout.pp * layout.interleave * (2 if layout.pipeline.v_shape else 1)
    return RefusalError(
        "layers-not-divisible",
        f"{layers} layers, or {layers + 2} with embedding and output, are not divisible into {parts} parts of the pipeline",
        place="pp",
        hint="" if layout.uneven or parts > layers else "uneven=True allows stages with different numbers of layers",
    )


def _microbatches(layout: Layout, *_: object) -> RefusalError:
    return RefusalError(
        "microbatches-not-divisible",
        f"the interleaved schedule needs a multiple of pp {layout.pp} microbatches, not {layout.microbatches}",
        place="global_batch",
    )


def _experts(layout: Layout, d: Dimensions, _: int) -> RefusalError:
    experts = int(d.experts)
    if layout.ep > 1 and not experts:
        text = "the model has no experts"
    elif experts % layout.ep:
        text = f"{experts} experts are not divisible by ep {layout.ep}"
    elif layout.expert_split < 1 or layout.tp % layout.expert_split:
        text = f"tp {layout.tp} is not divisible by expert_tp {layout.expert_split}"
        able = [n for n in range(1, layout.tp + 1) if layout.tp % n == 0]
        hint = nearest("expert_tp", layout.expert_split, able)
        return RefusalError("experts-not-divisible", text, place="expert_tp", hint=hint)
    elif layout.expert_split < layout.tp:
        whole = layout.dp * layout.cp * layout.tp // layout.expert_split
        text = f"dp x cp x tp / expert_tp, which is {whole}, is not divisible by ep {layout.ep}"
    else:
        text = f"dp x cp, which is {layout.dp * layout.cp}, is not divisible by ep {layout.ep}"
        # Whole experts leave the tensor-parallel ranks to expert parallelism.
        if layout.tp > 1 and layout.dp * layout.cp * layout.tp % layout.ep == 0:
            return RefusalError("experts-not-divisible", text, place="ep", hint="expert_tp 1")
    return RefusalError("experts-not-divisible", text, place="ep")


def _sequence(layout: Layout, *_: object) -> RefusalError:
    if layout.seq % layout.cp:
        return RefusalError(
            "sequence-not-divisible", f"{layout.seq} tokens are not divisible by cp {layout.cp}", place="cp"
        )
    return RefusalError(
        "sequence-not-divisible",
        f"{layout.seq // layout.cp} tokens are not divisible by tp {layout.tp}",
        place="sequence_parallel",
    )


def _context(layout: Layout, d: Dimensions, _: int) -> RefusalError:
    return _too_long(layout.seq, d, "seq")


_DESCRIBED: dict[str, Callable[[Layout, Dimensions, int], RefusalError]] = {
    "rank-count": _rank_count,
    "batch-not-divisible": _batch,
    "heads-not-divisible": _heads,
    "schedule": _schedule,
    "layers-not-divisible": _layers,
    "microbatches-not-divisible": _microbatches,
    "experts-not-divisible": _experts,
    "sequence-not-divisible": _sequence,
    "context": _context,
}
"""The description of an invalid layout, by reason."""


def nearest(name: str, now: int, able: Sequence[int]) -> str:
    """A hint: the nearest smaller and larger degree of the valid ones, which are sorted; empty if there are none."""
    degrees = [*[n for n in able if n < now][-1:], *[n for n in able if n > now][:1]]
    return " or ".join(f"{name} {n}" for n in degrees)


def check_context(tokens: int, d: Dimensions, place: str) -> None:
    """Checks the length of a sequence; a model without learned positions takes any.

    Raises:
        RefusalError: ``context``: some tokens would have no position.
    """
    if d.positions and tokens > d.context:
        raise _too_long(tokens, d, place)


def _too_long(tokens: int, d: Dimensions, place: str) -> RefusalError:
    return RefusalError(
        "context",
        f"a sequence of {tokens:,} tokens exceeds the {d.context:,.0f} learned positions of the model",
        place=place,
        hint=f"up to {d.context:,.0f} tokens",
    )
