"""The published training run that is nearest to a plan."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.graph.graph import cached_by_graph
from trnspec.loading.measured import is_stated
from trnspec.model.transformers.counting import parameters
from trnspec.model.transformers.names import name_key
from trnspec.perf.calibration.fit_range import chip_named
from trnspec.perf.calibration.measured.cells import measured_rows

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.loading.measured import MeasuredRow
    from trnspec.model.transformers.dimensions import Dimensions


@frozen
class PublishedRun:
    """A published training run.

    Attributes:
        id: The name of the row.
        model: Its model, as the source names it.
        experts: Whether that has experts.
        parameters: All parameters.
        active: Those that a token uses.
        tokens: Tokens of the run.
        seq: Tokens of a sequence.
        hardware: Its hardware, as the source names it.
        chip: The name of the chip; empty if the catalog has no such hardware.
        chips: Chips; 0 if not stated.
        chip_hours: Chip hours of the run.
        mfu: MFU by 6 FLOP per active parameter and token, and the dense 16-bit peak rate [%].
        precision: The arithmetic; empty if not stated.
        note: What is special, as the table states it.
    """

    id: str
    model: str
    experts: bool
    parameters: float
    active: float
    tokens: float
    seq: float
    hardware: str
    chip: str
    chips: float
    chip_hours: float
    mfu: float
    precision: str
    note: str

    def is_of(self, model: str) -> bool:
        """Whether it trained a model of that name."""
        return name_key(self.model) == name_key(model)

    def scaled(self, active: float, tokens: float, peak: float) -> float:
        """Chip hours of another run at the same MFU.

        Args:
            active: Parameters that a token uses.
            tokens: Tokens of the run.
            peak: Dense 16-bit peak rate of a chip [FLOP/s].
        """
        return 6.0 * active * tokens / (peak * self.mfu / 100.0) / 3600.0


def nearest_run(graph: Graph, model: str, d: Dimensions, chip: str) -> PublishedRun | None:
    """The published run of the same model, else of a model with or without experts as it is, on the same chip, of the nearest size.

    Args:
        graph: The catalog.
        model: The name of the model.
        d: Its dimensions.
        chip: The name of the chip.

    Returns:
        The run; ``None`` if no table has runs of such models.
    """
    experts, size = d.experts > 0, float(parameters(d))
    alike = [run for run in _runs(graph) if run.experts == experts]

    def distance(run: PublishedRun) -> tuple[object, ...]:
        return not run.is_of(model), run.chip != chip, abs(log(run.parameters / size)), run.id

    return min(alike, key=distance, default=None)


@cached_by_graph
def _runs(graph: Graph) -> tuple[PublishedRun, ...]:
    """The rows of the tables of runs that state tokens and chip hours; none of a stage of a run."""
    whole = (row for row in measured_rows(graph, "train_run") if row.cells["kind"] == "train_run")
    return tuple(_run(graph, row) for row in whole if all(is_stated(row.cells[name]) for name in _NEEDED))


_NEEDED = ("params_b", "active_params_b", "tokens_t", "seq_len", "chip_hours", "implied_mfu_6nd_pct")
"""Columns that a comparison needs."""


def _run(graph: Graph, row: MeasuredRow) -> PublishedRun:
    cells = row.cells
    total, active, tokens, seq, hours, mfu = (float(cells[name]) for name in _NEEDED)
    return PublishedRun(
        id=row.id, model=cells["model"], experts=cells["arch"] == "moe", parameters=1e9 * total, active=1e9 * active,
        tokens=1e12 * tokens, seq=seq, hardware=cells["hardware"], chip=chip_named(graph, cells["hardware"], "train_run"),
        chips=float(cells["n_chips"] or 0.0), chip_hours=hours, mfu=mfu, precision=cells["precision"], note=cells["note"],
    )  # fmt: skip
