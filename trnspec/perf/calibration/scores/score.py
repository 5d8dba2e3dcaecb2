"""The score of a measured row: its measured value next to ideal, calibrated and held-out computed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from trnspec.evidence import Kind
from trnspec.perf.calibration.measured.tables import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Record, Skipped


@frozen(kw_only=True)
class Scored:
    """One measurement with its computed values.  Times are in s, memory in B.

    Attributes:
        dataset: Name of the table.
        id: Name of the row.
        part: What was measured.
        measured: Measured value.
        ideal: Computed from published figures only.
        calibrated: Computed with a calibration; ``None`` without one.
        held_out: Computed with a fit to other models; ``None`` where none was made.
        low: Lower end of the interval of the calibrated value; ``None`` without a calibration.
        high: Upper end of that interval.
        kind: The kind of evidence of the calibrated value.
        calibration: Name of the calibration; empty without one.
        seen: Whether the calibration was fitted to this row.
        chip: The chip.
        framework: The framework of the row; empty if unknown.
        models: ``dense`` or ``experts``; empty where no model was run.
        scale: How many chips the model ran on, see :func:`trnspec.perf.calibration.fit_range.scale_of`; empty for a kernel.
    """

    dataset: str
    id: str
    part: Part
    measured: float
    ideal: float
    calibrated: float | None = None
    held_out: float | None = None
    low: float | None = None
    high: float | None = None
    kind: Kind = "ideal"
    calibration: str = ""
    seen: bool = False
    chip: str = ""
    framework: str = ""
    models: str = ""
    scale: str = ""

    @property
    def computed(self) -> float:
        """The calibrated value, or else the ideal one."""
        return self.ideal if self.calibrated is None else self.calibrated

    @property
    def unseen(self) -> float | None:
        """The value that no fit to this row computed: by a calibration of other rows, or held out; ``None`` if none was."""
        return self.held_out if self.seen else self.calibrated

    @property
    def inside(self) -> bool | None:
        """Whether the measured value is in the interval; ``None`` without one.

        Of a held-out value it is as wide about that as about the calibrated one: intervals are for rows that no fit has seen.
        """
        if self.low is None or self.high is None or self.calibrated is None:
            return None
        moved = 1.0 if self.held_out is None else self.held_out / self.calibrated
        return self.low * moved <= self.measured <= self.high * moved


class Scorer(Protocol):
    """Scores the rows of one kind of a table: each as one or several scores, or as skipped."""

    def __call__(
        self, graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
    ) -> Iterable[Scored | Skipped]:
        """Scores rows.

        Args:
            graph: The catalog.
            rows: The rows of a table; those of other kinds are ignored.
            dataset: Name of the table, as scores name it.
            calibration: Name of a calibration for all rows, ``none``, or ``auto`` for that of each row's chip, framework,
                era and kind of models.

        ``seen`` and ``held_out`` are left to :func:`trnspec.perf.calibration.scores.scorers.score`.

        Raises:
            UsageError: The calibration is of another kind than the rows.
            UnknownNameError: No calibration of that name.
        """
        ...  # pragma: no cover


class Refit(Protocol):
    """Computes the rows of one fit again, each by a fit to the rows of other models or of other chips."""

    def __call__(
        self, graph: Graph, rows: list[Record], holdout: Holdout = "model"
    ) -> Mapping[tuple[str, Part], float]:
        """The held-out value of each row that has one, by its name and what was measured.

        Args:
            graph: The catalog.
            rows: The rows that a calibration was fitted to, of all tables.
            holdout: What is held out together: all rows of a model (of kernels a shape, of collectives a size), or of a chip.
        """
        ...  # pragma: no cover
