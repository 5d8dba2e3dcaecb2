"""A question about training in words, checked and turned into the numbers of the formulas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from trnspec.evaluation.result import RefusalError
from trnspec.perf.work.activations import RECOMPUTE, Storing
from trnspec.perf.work.memory import OPTIMIZERS
from trnspec.perf.work.plan import Plan, computed_again
from trnspec.perf.work.stages import SCHEDULES, Split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.work.memory import Optimizer

Schedule = Literal["1f1b", "interleaved", "zb1p", "zb2p", "zbv", "v-half", "v-min"]
Recompute = Literal["none", "selective", "operators", "full"]

BUBBLES = {
    "1f1b": 1.0,
    "interleaved": 1.0,
    "zb1p": 1.0 / 3.0,
    "zb2p": 0.0,
    "zbv": 0.0,
    "v-half": 0.5,
    "v-min": 2.0 / 3.0,
}
"""The bubble of each schedule over that of 1F1B; that of the interleaved one is divided by the chunks of a stage.

1F1B and interleaved: Narayanan et al. 2021, section 2.2. The others: Qi et al. 2023 and 2024, and the table of
github.com/sail-sg/zero-bubble-pipeline-parallelism.
"""


@frozen(kw_only=True)
class Layout:
    """How a training run is laid out, in whole numbers and words.

    Attributes:
        tp: Ranks that split each matrix.
        pp: Stages of the pipeline.
        dp: Replicas of the data.
        cp: Ranks that split each sequence.
        ep: Ranks, among those of dp and cp, that split the experts.
        seq: Tokens of a sequence.
        global_batch: Sequences of a step, all replicas together.
        microbatch: Sequences that go through the pipeline together.
        schedule: The pipeline's schedule.
        interleave: Chunks of layers that a stage holds.
        zero: Stage of ZeRO; 3 is also what FSDP does.
        recompute: What is computed again in the backward pass.
        sequence_parallel: Whether norms and residuals are split over the tensor-parallel ranks.
        overlap: Whether tensor-parallel collectives may hide behind computation.
        flash: Whether attention's scores are never written to memory.
        fused_loss: Whether the loss keeps 4 bytes of a logit, not the 14 of operators one after the other.
        optimizer: The optimizer, with the precision of its states.
        offload: What is kept on the host.
        uneven: Whether stages may hold different numbers of layers; times then are those of their mean.
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
    offload: Literal["none", "optimizer", "activations", "weights"] = "none"
    uneven: bool = False

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def microbatches(self) -> int:
        """Microbatches of one replica in a step."""
        return self.global_batch // (self.microbatch * self.dp)

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.global_batch * self.seq

    @property
    def bytes(self) -> Optimizer:
        """Bytes of a parameter, by what they are for."""
        return OPTIMIZERS[self.optimizer]

    def plan(self) -> Plan:
        """The numbers that times are computed from."""
        full, selective = computed_again(RECOMPUTE[self.recompute])
        folded = SCHEDULES[self.schedule][1]
        sizes = self.bytes
        return Plan(
            tp=float(self.tp),
            pp=float(self.pp),
            dp=float(self.dp),
            cp=float(self.cp),
            ep=float(self.ep),
            seq=float(self.seq),
            microbatch=float(self.microbatch),
            microbatches=float(self.microbatches),
            bubble=BUBBLES[self.schedule] / self.interleave,
            # A schedule in the shape of a V passes every stage twice; chunks pass each stage once each.
            sends=1.0 + folded if self.interleave == 1 else float(self.interleave),
            sharded=float(self.zero >= 1),
            gathered=float(self.zero >= 3),
            full=full,
            selective=selective,
            sequence=float(self.sequence_parallel),
            overlap=float(self.overlap),
            weight_bytes=float(sizes.weight_bytes),
            gradient_bytes=float(sizes.grad_bytes),
            state_bytes=float(sizes.state_bytes),
        )

    def split(self) -> Split:
        """The numbers that memory is computed from."""
        held, folded = SCHEDULES[self.schedule]
        return Split(
            tp=float(self.tp),
            pp=float(self.pp),
            dp=float(self.dp),
            cp=float(self.cp),
            ep=float(self.ep),
            interleave=float(self.interleave),
            held=held,
            folded=folded,
        )

    def storing(self) -> Storing:
        """What is kept for the backward pass."""
        return Storing(
            recompute=RECOMPUTE[self.recompute],
            sequence_parallel=float(self.sequence_parallel),
            flash=float(self.flash),
            fused_loss=float(self.fused_loss),
        )


def splits_sequence(seq: int, tp: int, cp: int, *, wanted: bool | None) -> bool:
    """Whether norms and residuals are split over the tensor-parallel ranks: as wanted, else where they can be."""
    if wanted is not None:
        return wanted
    return tp > 1 and cp > 0 and seq % cp == 0 and seq // cp % tp == 0


def check(layout: Layout, d: Dimensions, ranks: int | None = None) -> None:
    """Whether a layout can be, for a model and so many ranks.

    Args:
        layout: The layout.
        d: The model.
        ranks: Ranks of the system; not checked when left out.

    Raises:
        RefusalError: It cannot; the reason and the input at fault are named.
    """
    for name in ("tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "microbatch", "interleave"):
        if getattr(layout, name) < 1:
            raise RefusalError("not-positive", f"{name} is {getattr(layout, name)}, and counts from 1", place=name)
    if layout.optimizer not in OPTIMIZERS:
        raise RefusalError(
            "unknown-optimizer",
            f"there is no optimizer {layout.optimizer}",
            place="optimizer",
            hint=", ".join(OPTIMIZERS),
        )
    if ranks is not None and layout.ranks != ranks:
        raise _miscounted(layout, int(d.heads), ranks)
    if layout.global_batch % (layout.microbatch * layout.dp):
        raise RefusalError(
            "batch-not-divisible",
            f"a global batch of {layout.global_batch} is no whole number of microbatches of {layout.microbatch} on each "
            f"of {layout.dp} replicas",
            place="global_batch",
        )
    heads = int(d.heads)
    if heads % layout.tp and layout.tp % heads:
        raise RefusalError("heads-not-divisible", f"{heads} heads are not split over tp {layout.tp}", place="tp")
    if layout.tp > heads:
        raise RefusalError("heads-not-divisible", f"tp {layout.tp} is more than the {heads} heads", place="tp")
    _check_pipeline(layout, int(d.layers))
    experts = int(d.experts)
    if layout.ep > 1 and (not experts or experts % layout.ep):
        told = f"{experts} experts are not split over ep {layout.ep}" if experts else "the model has no experts"
        raise RefusalError("experts-not-divisible", told, place="ep")
    if (layout.dp * layout.cp) % layout.ep:
        raise RefusalError(
            "experts-not-divisible",
            f"ep {layout.ep} does not divide dp x cp, which is {layout.dp * layout.cp}",
            place="ep",
        )
    if layout.seq % layout.cp:
        raise RefusalError(
            "sequence-not-divisible", f"{layout.seq} tokens are not split over cp {layout.cp}", place="cp"
        )
    if layout.sequence_parallel and layout.seq // layout.cp % layout.tp:
        raise RefusalError(
            "sequence-not-divisible",
            f"{layout.seq // layout.cp} tokens are not split over tp {layout.tp}",
            place="sequence_parallel",
        )
    check_context(layout.seq, d, "seq")


def _miscounted(layout: Layout, heads: int, ranks: int) -> RefusalError:
    """The wrong count of ranks: of dp where it could be another, else of the first degree with which none is right."""
    for name, product in (
        ("tp", layout.tp),
        ("pp", layout.tp * layout.pp),
        ("cp", layout.tp * layout.pp * layout.cp),
    ):
        if ranks % product:
            told = f"tp {layout.tp} x pp {layout.pp} x cp {layout.cp}"
            others = layout.tp * layout.pp * layout.cp // getattr(layout, name)
            able = [n for n in range(1, ranks // others + 1) if ranks % (n * others) == 0]
            if name == "tp":
                able = [n for n in able if heads % n == 0]
            return RefusalError(
                "rank-count",
                f"{told} does not divide the {ranks:,} ranks",
                place=name,
                hint=nearest(name, getattr(layout, name), able),
            )
    return RefusalError(
        "rank-count",
        f"tp {layout.tp} x pp {layout.pp} x dp {layout.dp} x cp {layout.cp} are {layout.ranks} ranks, "
        f"and the system has {ranks}",
        place="dp",
        hint=f"dp {ranks // (layout.tp * layout.pp * layout.cp)}",
    )


def nearest(name: str, now: int, able: Sequence[int]) -> str:
    """A hint: the nearest degrees of the able ones, which rise, on both sides; empty where there are none."""
    found = [*[n for n in able if n < now][-1:], *[n for n in able if n > now][:1]]
    return " or ".join(f"{name} {n}" for n in found)


def longest(d: Dimensions) -> float:
    """The most tokens of a sequence that a model can be given: what it has learned positions for, else any number."""
    return d.context if d.positions else math.inf


def check_context(tokens: int, d: Dimensions, place: str) -> None:
    """Whether a model can be given so many tokens; one that does not learn its positions can be given any number.

    Args:
        tokens: Tokens of a sequence.
        d: The model.
        place: The input that asks for them.

    Raises:
        RefusalError: ``context``: some of them would have no position.
    """
    if tokens > longest(d):
        raise RefusalError(
            "context",
            f"{tokens:,} tokens of a sequence are more than the {d.context:,.0f} positions that the model has learned",
            place=place,
            hint=f"up to {d.context:,.0f} tokens",
        )


def _check_pipeline(layout: Layout, layers: int) -> None:
    """Layers are dealt evenly; that embedding and output take the place of a layer each is common, and allowed."""
    if (layout.interleave > 1) != (layout.schedule == "interleaved"):
        raise RefusalError(
            "schedule",
            f"the schedule {layout.schedule} does not go with {layout.interleave} chunks of a stage",
            place="interleave",
            hint="schedule interleaved with interleave 2 or more, or interleave 1",
        )
    if layout.pp == 1 and layout.schedule != "1f1b":
        raise RefusalError(
            "schedule",
            f"pp 1 is one stage, and {layout.schedule} is a schedule of several",
            place="interleave" if layout.interleave > 1 else "schedule",
            hint="pp 2 or more, or neither schedule nor interleave",
        )
    parts = layout.pp * layout.interleave * (2 if SCHEDULES[layout.schedule][1] else 1)
    if layout.pp > 1 and not layout.uneven and layers % parts and (layers + 2) % parts:
        raise RefusalError(
            "layers-not-divisible",
            f"{layers} layers, or {layers + 2} with embedding and output, are not dealt evenly to {parts} parts of the "
            "pipeline",
            place="pp",
        )
    if layout.interleave > 1 and layout.microbatches % layout.pp:
        raise RefusalError(
            "microbatches-not-divisible",
            f"the interleaved schedule needs a multiple of pp {layout.pp} microbatches, not {layout.microbatches}",
            place="global_batch",
        )
