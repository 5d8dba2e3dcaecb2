"""The layout of a training step: its numbers for the formulas, and the description of an invalid one."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.evaluation import questions
from trnspec.evaluation.result import RefusalError
from trnspec.perf.experts import SENT
from trnspec.perf.work import legality
from trnspec.perf.work.activations import RECOMPUTE, Storing
from trnspec.perf.work.memory import OPTIMIZERS
from trnspec.perf.work.plan import Plan, computed_again
from trnspec.perf.work.reach import common_heads
from trnspec.perf.work.stages import SCHEDULES, Split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.ops import Number
    from trnspec.perf.work.memory import Optimizer

Schedule = questions.PipelineSchedule
Recompute = questions.Recompute

BUBBLES = {
    "1f1b": 1.0,
    "interleaved": 1.0,
    "zb1p": 0.0,
    "zb2p": 0.0,
    "zbv": 0.0,
    "v-half": 0.5,
    "v-min": 2.0 / 3.0,
    "gpipe": 1.0,
}
"""The least pipeline bubble of each schedule relative to 1F1B; of the interleaved one divided by the chunks per stage.

1F1B and interleaved: Narayanan et al. 2021, section 2.2. GPipe: Huang et al. 2019, section 2.3. ``v-half`` and ``v-min``: Qi et al. 2024, and the table of
github.com/sail-sg/zero-bubble-pipeline-parallelism. Schedules with a split backward pass have that of their passes, see
:func:`trnspec.perf.training.step.bubble`.
"""

DEFERRED = {"zb1p": 1.0, "zb2p": 2.0}
"""Weight-gradient passes that fill the bubble of the first stage, relative to ``pp - 1``: all but one of the microbatches
that the schedule has in flight (Qi et al. 2023, section 3).  V-shaped schedules defer all; the others do not split the
backward pass.
"""


V_SHAPED = tuple(name for name, (_, folded) in SCHEDULES.items() if folded)
"""The V-shaped schedules, by their number from 1."""


@frozen(kw_only=True)
class Layout:
    """The layout of a training step.

    Attributes:
        tp: Tensor-parallel degree.
        pp: Pipeline-parallel degree.
        dp: Data-parallel degree.
        cp: Context-parallel degree.
        ep: Expert-parallel degree: ranks, among those of dp, cp and ``tp / expert_tp``, that hold different experts.
        seq: Sequence length in tokens.
        global_batch: Sequences per step, over all replicas.
        microbatch: Sequences per microbatch.
        schedule: Pipeline schedule.
        interleave: Model chunks per stage.
        zero: ZeRO stage; 3 is the sharding of FSDP.
        recompute: Activation recomputation.
        sequence_parallel: Whether norms and residuals are split over the tensor-parallel ranks.
        overlap: Whether tensor-parallel collectives overlap with computation.
        flash: Flash attention: scores are not written to memory.
        fused_loss: Whether the loss keeps 4 bytes per logit instead of 14.
        optimizer: The optimizer, with the precision of its states.
        offload: What is kept in host memory.
        uneven: Whether stages may have different numbers of layers, see :func:`trnspec.perf.work.stages.dealt`.
        expert_tp: Tensor-parallel degree of one expert, a divisor of tp; ``None`` for tp.
        dispatch: How tokens are sent to experts, see :mod:`trnspec.perf.experts`.
        dispatch_dtype: Dtype of tokens on their way to experts.
        node_limit: Nodes that the experts of a token are on, at most; 0 for no limit.
        expert_overlap: Whether the all-to-all overlaps with the rest of a layer.
        imbalance: Tokens of the busiest rank's experts over the mean.
        capacity_factor: Tokens that every expert computes, padding included, over the mean; ``None`` without a limit.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    seq: int
    global_batch: int
    microbatch: int = 1
    schedule: Schedule = "1f1b"
    interleave: int = 1
    zero: int = 0
    recompute: Recompute = "none"
    sequence_parallel: bool = False
    overlap: bool = False
    flash: bool = True
    fused_loss: bool = True
    optimizer: str = "adam"
    offload: questions.Offload = "none"
    uneven: bool = False
    expert_tp: int | None = None
    dispatch: questions.Dispatch = "per-node"
    dispatch_dtype: questions.DispatchDtype = "bf16"
    node_limit: int = 0
    expert_overlap: bool = True
    imbalance: float = 1.0
    capacity_factor: float | None = None

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def microbatches(self) -> int:
        """Microbatches per step and replica."""
        return self.global_batch // (self.microbatch * self.dp)

    @property
    def tokens(self) -> int:
        """Tokens per step."""
        return self.global_batch * self.seq

    @property
    def bytes(self) -> Optimizer:
        """Bytes per parameter of weights, gradients and states."""
        return OPTIMIZERS[self.optimizer]

    @property
    def folded(self) -> float:
        """1 if a stage has a chunk from either end of the model."""
        return SCHEDULES[self.schedule][1]

    @property
    def v_shape(self) -> float:
        """Number of the V-shaped schedule, from 1; 0 for others."""
        return V_SHAPED.index(self.schedule) + 1.0 if self.schedule in V_SHAPED else 0.0

    @property
    def expert_split(self) -> int:
        """Ranks that split the matrices of one expert."""
        return self.tp if self.expert_tp is None else self.expert_tp

    @property
    def load(self) -> float:
        """Tokens that the busiest rank's experts compute, over the mean.

        With a capacity every expert computes as many: tokens beyond are dropped, and padding fills up.
        """
        return self.imbalance if self.capacity_factor is None else self.capacity_factor

    def plan(self) -> Plan:
        """The numbers from which times are computed."""
        # Attributes of an empty object: a call with 40 arguments takes several times as long.
        plan = Plan.__new__(Plan)
        plan.tp, plan.pp, plan.dp = float(self.tp), float(self.pp), float(self.dp)
        plan.cp, plan.ep, plan.seq = float(self.cp), float(self.ep), float(self.seq)
        plan.expert_split = float(self.expert_split)
        plan.microbatch, plan.microbatches = float(self.microbatch), float(self.microbatches)
        bubble, shape, chunks = _of_schedule(self.schedule, self.interleave)
        plan.bubble, plan.deferred = bubble
        plan.folded, plan.v_shape, plan.forward_first = shape
        plan.chunks, plan.chunked, plan.sends = chunks
        zero = self.zero
        plan.sharded, plan.scattered = 1.0 if zero >= 1 else 0.0, 1.0 if zero >= _SCATTERED else 0.0
        plan.gathered = 1.0 if zero > _SCATTERED else 0.0
        plan.full, plan.selective = computed_again(RECOMPUTE[self.recompute])
        plan.flash = 1.0 if self.flash else 0.0
        plan.sequence = 1.0 if self.sequence_parallel else 0.0
        plan.overlap = 1.0 if self.overlap else 0.0
        plan.weight_bytes, plan.gradient_bytes, plan.update_bytes = _moved_bytes(self.optimizer)
        plan.activation_bytes = 2.0
        plan.per_node = 1.0 if self.dispatch == "per-node" else 0.0
        plan.sent, plan.node_limit = SENT[self.dispatch_dtype], float(self.node_limit)
        plan.expert_overlap = 1.0 if self.expert_overlap else 0.0
        plan.load = float(self.load)
        return plan

    def split(self) -> Split:
        """The numbers from which memory is computed."""
        return Split(
            tp=float(self.tp),
            pp=float(self.pp),
            dp=float(self.dp),
            cp=float(self.cp),
            ep=float(self.ep),
            expert_tp=float(self.expert_split),
            interleave=float(self.interleave),
            held=SCHEDULES[self.schedule][0],
            folded=self.folded,
        )

    def storing(self) -> Storing:
        """What is stored for the backward pass."""
        return Storing(
            recompute=RECOMPUTE[self.recompute],
            sequence_parallel=float(self.sequence_parallel),
            flash=float(self.flash),
            fused_loss=float(self.fused_loss),
            load=float(self.load),
        )


_SCATTERED = 2
"""The ZeRO stage from which on gradients are sharded."""


@lru_cache(maxsize=256)
def _of_schedule(schedule: str, interleave: int) -> tuple[tuple[float, ...], ...]:
    """The numbers of a plan that the schedule decides: of its bubble, its shape, its chunks, and its messages."""
    folded = SCHEDULES[schedule][1]
    v_shape = V_SHAPED.index(schedule) + 1.0 if schedule in V_SHAPED else 0.0
    chunks, chunked = float(interleave), 1.0 if schedule == "interleaved" else 0.0
    # A V-shaped schedule passes every stage twice; each model chunk passes every stage once.
    sends = 1.0 + folded if interleave == 1 else chunks
    bubble = BUBBLES[schedule] / interleave, DEFERRED.get(schedule, 0.0)
    return bubble, (folded, v_shape, 1.0 if schedule == "gpipe" else 0.0), (chunks, chunked, sends)


@cache
def _moved_bytes(optimizer: str) -> tuple[Number, Number, Number]:
    """The bytes of a weight and a gradient as they are communicated, and of a parameter's update."""
    sizes = OPTIMIZERS[optimizer]
    return sizes.compute_bytes, sizes.grad_bytes, sizes.update_bytes


def splits_sequence(seq: int, tp: int, cp: int, *, wanted: bool | None) -> bool:
    """Whether sequence parallelism is used: as given, else if the sequence is divisible."""
    if wanted is not None:
        return wanted
    return tp > 1 and cp > 0 and seq % cp == 0 and seq // cp % tp == 0


def check(layout: Layout, d: Dimensions, ranks: int | None = None) -> Plan:
    """Checks a layout for a model and a number of ranks; the conditions are those of :mod:`trnspec.perf.work.legality`.

    Args:
        layout: The layout.
        d: The model.
        ranks: Ranks of the system; not checked if left out.

    Returns:
        The layout as the numbers from which times are computed.

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
    total, plan = layout.ranks if ranks is None else ranks, layout.plan()
    conditions = (
        legality.degrees(plan, total, common_heads(d), d.experts or 1.0),
        legality.stages(plan, d.layers, uneven=layout.uneven),
        legality.sequence(plan),
        legality.positions(plan, longest(d)),
        legality.batch(layout.global_batch / (layout.microbatch * layout.dp), legality.multiple(plan)),
    )
    for of_kind in conditions:
        if True in of_kind.values():
            break
    else:
        return plan
    invalid = {reason for of_kind in conditions for reason, holds in of_kind.items() if holds}
    raise _DESCRIBED[next(reason for reason in legality.REASONS if reason in invalid)](layout, d, total)


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
    return RefusalError(
        "batch-not-divisible",
        f"a global batch of {layout.global_batch} is not divisible into microbatches of {layout.microbatch} on each of "
        f"{layout.dp} replicas",
        place="global_batch",
        hint=_multiple(layout),
    )


def _multiple(layout: Layout) -> str:
    """The batches next to the one that is not divisible, and another cause: too many replicas."""
    each, batch = layout.dp * layout.microbatch, layout.global_batch
    able = nearest("global_batch", batch, [n * each for n in (batch // each, batch // each + 1) if n])
    return able if batch > each else f"{able}, or fewer replicas by a larger tp, pp or cp"


def _heads(layout: Layout, d: Dimensions, _: int) -> RefusalError:
    heads = int(common_heads(d))
    text = (
        f"tp {layout.tp} exceeds the {heads} heads"
        if layout.tp > heads
        else f"{heads} heads are not divisible by tp {layout.tp}"
    )
    return RefusalError("heads-not-divisible", text, place="tp")


def _schedule(layout: Layout, *_: object) -> RefusalError:
    if layout.v_shape and layout.pp > legality.MOST_V_STAGES:
        return RefusalError(
            "schedule",
            f"the schedule {layout.schedule} is computed for at most {legality.MOST_V_STAGES} stages; pp is {layout.pp}",
            place="pp",
            hint=f"pp {legality.MOST_V_STAGES} or less",
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
    layers, parts = int(d.layers), int(layout.pp * layout.interleave * (1 + layout.folded))
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


def longest(d: Dimensions) -> float:
    """The maximum number of tokens per sequence: the learned positions of the model, else unlimited."""
    return d.context if d.positions else math.inf


def check_context(tokens: int, d: Dimensions, place: str) -> None:
    """Checks the length of a sequence; a model without learned positions takes any.

    Args:
        tokens: Tokens per sequence.
        d: The model.
        place: The input that gives the length.

    Raises:
        RefusalError: ``context``: some tokens would have no position.
    """
    if tokens > longest(d):
        raise _too_long(tokens, d, place)


def _too_long(tokens: int, d: Dimensions, place: str) -> RefusalError:
    return RefusalError(
        "context",
        f"a sequence of {tokens:,} tokens exceeds the {d.context:,.0f} learned positions of the model",
        place=place,
        hint=f"up to {d.context:,.0f} tokens",
    )
