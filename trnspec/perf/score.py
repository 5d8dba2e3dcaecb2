"""Measurements beside what is computed for them: what accuracy is told from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import frozen

if TYPE_CHECKING:
    from trnspec.graph import Graph
    from trnspec.perf.measured import Record, Skipped


@frozen(kw_only=True)
class Scored:
    """One measurement, and what is computed for it.  All times are in s.

    Attributes:
        dataset: The table it is from.
        id: What its row is called.
        what: What was measured: a training step, the memory of a rank (in B, not s), the time per output token, the time to first token, a collective, or a
            matrix multiplication.
        measured: The measured time.
        ideal: The time computed from published figures alone.
        calibrated: The time computed with the fit to all rows of its kind; none where too few rows are of its kind.
        held: The time computed with a fit that had not seen the row; none where too few others are left.
        low: The lower end of the interval of the calibrated answer; none without one.
        high: Its upper end.
    """

    dataset: str
    id: str
    what: Literal["step", "memory", "tpot", "ttft", "collective", "matmul"]
    measured: float
    ideal: float
    calibrated: float | None = None
    held: float | None = None
    low: float | None = None
    high: float | None = None


def score_inference(graph: Graph, rows: list[Record], dataset: str) -> list[Scored | Skipped]:
    """Every row of inference: its time per output token and, where it has one, its time to first token."""
    from trnspec.perf.fit_inference import scored

    return scored(graph, rows, dataset)


def score_collectives(graph: Graph, rows: list[Record], dataset: str) -> list[Scored | Skipped]:
    """Every row of a collective."""
    from trnspec.perf.measured_collectives import scored_collectives

    return scored_collectives(graph, rows, dataset)


def score_matmul(graph: Graph, rows: list[Record], dataset: str) -> list[Scored | Skipped]:
    """Every row of a matrix multiplication."""
    from trnspec.perf.measured_collectives import scored_matmul

    return scored_matmul(graph, rows, dataset)
