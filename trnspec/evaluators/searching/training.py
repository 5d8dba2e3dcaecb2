"""The layouts of a search for training, and the evaluation of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.evaluation.result import RefusalError
from trnspec.evaluators import training
from trnspec.evaluators.fit import Demand
from trnspec.evaluators.layouts import pieces_of
from trnspec.evaluators.planning.system_cost import chip_watts, rent
from trnspec.evaluators.training import TrainingQuestion
from trnspec.perf.searching.selection import BOUND, EXCESS, UNFIT, Candidates
from trnspec.perf.searching.training import TrainingPiece, timed
from trnspec.perf.training.estimator import prepare
from trnspec.perf.work.flops import model_flops_per_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluators.searching.question import SearchQuestion
    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.work.layout import Layout

LAYOUT = (
    *("tp", "pp", "dp", "cp", "ep", "expert_tp", "microbatch"),
    *("schedule", "interleave", "uneven", "zero", "recompute", "sequence_parallel"),
)
"""What describes a layout; each has the name of an input of the evaluator training."""


def training_pieces(catalog: Catalog, q: SearchQuestion) -> Iterator[Any]:
    """The layouts on all systems.

    Raises:
        RefusalError: A figure is not published.
    """
    assert q.seq is not None
    assert q.global_batch is not None
    rate = training.host_rate(q.host_link) if q.host_link is not None or set(q.offload) - {"none"} else 0.0
    offset = 0
    for on in q.on:
        price = rent(catalog, on, type=q.price_type, region=q.region, price=q.price)
        for dtype in q.dtype:
            choices = q.choices(dtype)
            estimator = estimator_of(catalog, q, on, dtype)
            about = {
                "on": on,
                "work": model_flops_per_token(
                    estimator.dims, float(q.seq), "megatron" if q.attention == "causal" else "matmul-full"
                ),
                "hourly": None if price is None else price.hourly,
                "watts": chip_watts(catalog, on),
            }
            for what in dict.fromkeys(q.offload):
                for piece in pieces_of(
                    estimator, choices, seq=q.seq, global_batch=q.global_batch, offset=offset, overlap=q.overlap, **about
                ):  # fmt: skip
                    yield piece if what == "none" else OffloadPiece(piece, what, rate)
                    offset += piece.size


def estimator_of(catalog: Catalog, q: SearchQuestion, on: str, dtype: str, **changed: Any) -> Estimator:
    """The estimator of the model of a search on a system."""
    names = ("framework", "reserve", "gathered_inputs", "bucket", "calibration", "era", "lnc", "chips")
    given = {name: getattr(q, name) for name in names}
    return prepare(catalog.graph, q.model, on, dtype=dtype, **given | changed)


@frozen
class OffloadPiece:
    """Layouts that keep something in host memory, evaluated one by one.

    Attributes:
        plain: The same layouts without it.
        what: What is kept in host memory.
        rate: Rate of a rank's link to the host, per direction [B/s].
    """

    plain: TrainingPiece
    what: Any
    rate: float

    offset: int = field(init=False)
    size: int = field(init=False)

    @offset.default
    def _offset(self) -> int:
        return self.plain.offset

    @size.default
    def _size(self) -> int:
        return self.plain.size

    @property
    def estimator(self) -> Estimator:
        """The model on the system."""
        return self.plain.estimator

    def layout(self, number: int) -> Layout:
        """The layout of a number of the search."""
        return evolve(self.plain.layout(number), offload=self.what)

    def search(self, first: int, last: int, take: Callable[[Candidates], None]) -> None:
        """Evaluate the layouts with some numbers of the search."""
        for low in range(first, last, _STEP):
            high = min(low + _STEP, last)
            rows = [self._evaluated(number) for number in range(low, high)]
            take(Candidates.of(low, [reason for reason, _ in rows], [measures for _, measures in rows]))

    def _evaluated(self, number: int) -> tuple[str, dict[str, Any]]:
        """Why a layout is invalid, and its measures."""
        estimator, layout = self.estimator, self.layout(number)
        if layout.zero != self.plain.grid.axes["zero"][0] and layout.dp * layout.cp == 1 and not layout.expert_tp:
            return "duplicate", {}
        try:
            step = estimator.step(layout)
        except RefusalError as refusal:
            return refusal.reason, {}
        demand = Demand(mode="training", layout=layout, microbatches=layout.microbatches, runtime=estimator.runtime)
        _, memory, _ = demand.worst(estimator.dims)
        total, capacity = float(memory.total), estimator.system.capacity
        if total > capacity:
            return UNFIT, {EXCESS: total / capacity}
        moved = training.offload_time(estimator, layout, estimator.memory(layout), step, self.rate)
        time, tokens = float(step.total) + moved, float(layout.tokens)
        names = ("step_time", "mfu", "tokens_per_s", "tokens_per_s_per_chip", "usd", "energy")
        measures = {name: timed(name, self.plain, time, tokens) for name in names}
        degrees = {name: getattr(layout, name) for name in (*LAYOUT, "overlap", "offload") if name != "expert_tp"}
        system = estimator.system
        about = {"memory": total, "capacity": capacity, "fits": True, "chips": float(system.chips), "system": self.plain.on,
                 "dtype": estimator.dtype, BOUND: self.plain.bound, "expert_tp": layout.expert_split}  # fmt: skip
        return "", measures | degrees | about


_STEP = 256
"""Layouts between two reports of progress."""


def layout_inputs(piece: TrainingPiece | OffloadPiece, number: int) -> dict[str, Any]:
    """The inputs of the evaluator training that describe a configuration."""
    layout = piece.layout(number)
    return {name: getattr(layout, name) for name in (*LAYOUT, "overlap", "offload")}


def training_question(question: Any, layout: Layout, **values: Any) -> TrainingQuestion:
    """The question of the evaluator training about one layout.

    Args:
        question: The inputs of a search.
        layout: The layout.
        values: Inputs that the search has not.
    """
    return TrainingQuestion(
        **question.common(TrainingQuestion) | values | {name: getattr(layout, name) for name in LAYOUT}
    )
