"""The layouts of a search for training, and the evaluation of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.evaluators import training
from trnspec.evaluators.layouts import pieces_of
from trnspec.evaluators.planning.system_cost import chip_watts, rent
from trnspec.evaluators.training import TrainingQuestion
from trnspec.perf.work.transformer import model_flops_per_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluators.searching.question import SearchQuestion
    from trnspec.perf.sweep.pieces import TrainingPiece
    from trnspec.perf.work.layout import Layout

LAYOUT = (
    *("tp", "pp", "dp", "cp", "ep", "expert_tp", "microbatch"),
    *("schedule", "interleave", "uneven", "zero", "recompute", "sequence_parallel"),
)
"""Inputs that describe a layout; each has the name of an input of the evaluator training."""


def training_pieces(catalog: Catalog, q: SearchQuestion) -> Iterator[TrainingPiece]:
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
            estimator = training.estimator_of(catalog, q, on=on, dtype=dtype)
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
                    yield evolve(piece, offload=what, rate=rate)
                    offset += piece.size


def layout_inputs(piece: TrainingPiece, number: int) -> dict[str, Any]:
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
