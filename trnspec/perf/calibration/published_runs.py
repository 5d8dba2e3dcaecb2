"""The published training run, or serving fleet, that is nearest to a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log
from typing import TypeVar

from attrs import frozen

from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.loading.measured import MeasuredRow, is_stated
from trnspec.model.transformers.counting import active_parameters, parameters
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.model.transformers.names import name_key
from trnspec.perf.calibration.fit_range import chip_named
from trnspec.perf.calibration.measured.cells import measured_rows


@frozen(kw_only=True)
class Published:
    """A published run or fleet.

    Attributes:
        id: The name of the row.
        model: Its model, as the source names it.
        experts: Whether that has experts.
        active: Parameters that a token uses.
        hardware: Its hardware, as the source names it.
        chip: The name of the chip; empty if the catalog has no such hardware.
        chips: Chips; 0 if not stated.
        mfu: MFU by the FLOP of active parameters and tokens, see the columns of the tables [%].
        precision: The arithmetic; empty if not stated.
        note: What is special, as the table states it.
    """

    id: str
    model: str
    experts: bool
    active: float
    hardware: str
    chip: str
    chips: float
    mfu: float
    precision: str
    note: str

    def is_of(self, model: str) -> bool:
        """Whether it is of a model of that name."""
        return name_key(self.model) == name_key(model)

    def scaled(self, work: float, peak: float) -> float:
        """Chip seconds for other work at the same MFU, or chips for work per second.

        Args:
            work: FLOP, or FLOP per second.
            peak: Dense peak rate of a chip [FLOP/s].
        """
        return work / (peak * self.mfu / 100.0)


@frozen(kw_only=True)
class PublishedRun(Published):
    """A published training run; its MFU is by 6 FLOP per active parameter and token, and the dense 16-bit peak rate.

    Attributes:
        parameters: All parameters.
        tokens: Tokens of the run.
        seq: Tokens of a sequence.
        chip_hours: Chip hours of the run.
    """

    parameters: float
    tokens: float
    seq: float
    chip_hours: float


@frozen(kw_only=True)
class PublishedFleet(Published):
    """A published serving fleet; its MFU is by 2 FLOP per active parameter and token, and the dense peak rate of its precision.

    Attributes:
        load: Mean tokens of a prompt and of an output, and the limits of TTFT and TPOT [s].
    """

    load: tuple[float, float, float, float]


def nearest_run(graph: Graph, model: str, d: Dimensions, chip: str) -> PublishedRun | None:
    """The published run of the same model, else of a model with or without experts as it is, on the same chip, of the nearest size.

    Returns:
        The run; ``None`` if no table has runs.
    """
    return _nearest(_runs(graph), model, d, chip, lambda run: (abs(log(run.parameters / parameters(d))),))


def nearest_fleet(graph: Graph, model: str, d: Dimensions, chip: str, load: tuple[float, ...]) -> PublishedFleet | None:
    """The published fleet of the same model, else as :func:`nearest_run`, by active parameters; of those the nearest load.

    Returns:
        The fleet; ``None`` if no table has fleets.
    """

    def further(fleet: PublishedFleet) -> tuple[float, float]:
        apart = sum(abs(log(a / b)) for a, b in zip(fleet.load, load, strict=True))
        return abs(log(fleet.active / active_parameters(d))), apart

    return _nearest(_fleets(graph), model, d, chip, further)


P = TypeVar("P", bound=Published)


def _nearest(
    published: Iterable[P], model: str, d: Dimensions, chip: str, further: Callable[[P], tuple[float, ...]]
) -> P | None:
    """The row of the same model, of one with or without experts as it is, on the same chip, with the least further distances."""

    def distance(one: P) -> tuple[object, ...]:
        return not one.is_of(model), one.experts != (d.experts > 0), one.chip != chip, *further(one), one.id

    return min(published, key=distance, default=None)


def _states(row: MeasuredRow, columns: Iterable[str]) -> bool:
    return all(is_stated(row.cells.get(name, "")) for name in columns)


@cached_by_graph
def _runs(graph: Graph) -> tuple[PublishedRun, ...]:
    """The rows of the tables of runs that state tokens and chip hours; none of a stage of a run."""
    whole = (row for row in measured_rows(graph, "train_run") if row.cells["kind"] == "train_run")
    return tuple(_run(graph, row) for row in whole if _states(row, _OF_RUNS))


_OF_RUNS = ("params_b", "active_params_b", "tokens_t", "seq_len", "chip_hours", "implied_mfu_6nd_pct")
"""Columns of runs that a comparison needs; a row without one of them is left out."""


def _run(graph: Graph, row: MeasuredRow) -> PublishedRun:
    cells = row.cells
    total, active, tokens, seq, hours, mfu = (float(cells[name]) for name in _OF_RUNS)
    return PublishedRun(
        id=row.id, model=cells["model"], experts=cells["arch"] == "moe", parameters=1e9 * total, active=1e9 * active,
        tokens=1e12 * tokens, seq=seq, hardware=cells["hardware"], chip=chip_named(graph, cells["hardware"], "train_run"),
        chips=float(cells["n_chips"] or 0.0), chip_hours=hours, mfu=mfu, precision=cells["precision"], note=cells["note"],
    )  # fmt: skip


@cached_by_graph
def _fleets(graph: Graph) -> tuple[PublishedFleet, ...]:
    """The rows of the tables of fleets."""
    return tuple(_fleet(graph, row) for row in measured_rows(graph, "serve_run") if _states(row, _OF_FLEETS))


def _fleet(graph: Graph, row: MeasuredRow) -> PublishedFleet:
    cells = row.cells
    isl, osl, ttft, tpot, active, chips, mfu = (float(cells[name]) for name in _OF_FLEETS)
    return PublishedFleet(
        id=row.id, model=cells["model"], experts=cells["arch"] == "moe", active=1e9 * active, hardware=cells["hardware"],
        chip=chip_named(graph, cells["hardware"], "serve_run"), chips=chips, mfu=mfu, precision=cells["precision"],
        note=cells["note"], load=(isl, osl, 1e-3 * ttft, 1e-3 * tpot),
    )  # fmt: skip


_OF_FLEETS = ("isl", "osl", "ttft_limit_ms", "tpot_limit_ms", "active_params_b", "n_chips", "implied_mfu_pct")
"""Columns of fleets that a comparison needs; a row without one of them is left out."""
