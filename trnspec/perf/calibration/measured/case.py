"""Measured rows as cases: what a row measured, and the group that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, TypeVar, get_args

from attrs import evolve, field, frozen

from trnspec.errors import TrnspecError
from trnspec.graph.graph import Graph
from trnspec.model.calibration import Models, Scale
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.measured.cells import Record, RowCells, row_hashes
from trnspec.perf.frameworks import named_in
from trnspec.perf.lowering.machine import LoweredSystem

Part = Literal[
    "step",
    "memory",
    "tpot",
    "ttft",
    "encoder",
    "collective",
    "gemm",
    "attention_prefill",
    "attention_decode",
    "moe",
    "op",
]
"""Measured quantity: time of a training step, memory of a rank, time per output token, time to first token, or the time of
a pass of an encoder, of a collective, of a matrix multiplication, of attention in prefill or in decoding, of an expert layer, or of another kernel."""

PARTS: tuple[Part, ...] = get_args(Part)


@frozen
class Skipped:
    """A row that cannot be computed.

    Attributes:
        id: Name of the row.
        reason: The reason.
    """

    id: str
    reason: str


@frozen(kw_only=True)
class Case:
    """One measurement that can be computed; each kind of rows adds the inputs of its formula.

    Attributes:
        id: Name of the row.
        framework: The framework or library, as ``--framework`` names it; empty if unknown.
        row: The row.
    """

    PARTS: ClassVar[Mapping[Part, str]] = {}
    """The attribute with the measured value of each part [s, B], 0 where there is none."""

    id: str = ""
    framework: str = ""
    row: Record = field(repr=False, eq=False, factory=dict)

    @property
    def chip(self) -> str:
        """The chip."""
        raise NotImplementedError

    def measured(self, part: Part) -> float:
        """The measured value of a part; 0 where there is none."""
        return float(getattr(self, self.PARTS[part])) if part in self.PARTS else 0.0

    @property
    def software(self) -> str:
        """The framework, or that which the source names; empty if unknown."""
        return self.framework

    @property
    def chosen_by(self) -> tuple[str, str, str, bool | None]:
        """Chip, framework, era, and whether the model has experts, by which a calibration is chosen."""
        return self.chip, self.framework, "", None

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of the content of its row."""
        return row_hashes(self.row)


@frozen(kw_only=True)
class ModelCase(Case):
    """A measurement of a model on a system.

    Attributes:
        model: Name of the model, for grouping.
        dims: Dimensions of the model.
        system: The system it ran on.
        era: Release era: the year of the software, or its year and month; empty if unstated.
        dtype: Compute dtype of matrix multiplications.
        source_text: Source, note and precision of the row.
    """

    model: str
    dims: Dimensions = field(repr=False)
    system: LoweredSystem = field(repr=False)
    era: str = ""
    dtype: str
    source_text: str = ""

    @property
    def chip(self) -> str:
        """The chip."""
        return self.system.chip

    @property
    def models(self) -> Models:
        """Whether the model has experts."""
        return "experts" if self.dims.experts else "dense"

    @property
    def software(self) -> str:
        """The framework, or that which the source names; empty if unknown."""
        return self.framework or named_in(self.source_text)

    @property
    def chosen_by(self) -> tuple[str, str, str, bool | None]:
        """Chip, framework, era, and whether the model has experts; software that is not known is none that was fitted."""
        software = self.software or self.row.get("software", "").strip().lower()
        return self.chip, software, self.era, self.models == "experts"

    @property
    def cluster(self) -> str:
        """Its configuration; rows of one count once in an interval."""
        raise NotImplementedError

    @property
    def ranks(self) -> float:
        """Ranks that run the model; in serving those of a replica."""
        raise NotImplementedError

    @property
    def inputs(self) -> dict[str, float]:
        """The inputs, by the names of :class:`trnspec.model.calibration.FittedOn`."""
        raise NotImplementedError

    @property
    def scale(self) -> Scale:
        """Number of chips that the model runs on."""
        from trnspec.perf.calibration.fit_range import scale_of

        return scale_of(self.system, self.ranks)


AnyCase = TypeVar("AnyCase", bound=Case)


def cases(
    graph: Graph, rows: Sequence[Record], kind: str, read: Callable[[RowCells], AnyCase]
) -> Iterator[AnyCase | Skipped]:
    """Every row of one kind as a case, or as skipped.

    Args:
        graph: The catalog.
        rows: The rows of a table.
        kind: Value of the column ``kind``.
        read: Function from the cells of a row to a case; its errors are the reasons for skipping.
    """
    for line, row in enumerate(rows, 2):
        if row.get("kind") == kind:
            cells = RowCells(graph, row, row.get("id") or f"line {line}")
            try:
                yield evolve(read(cells), id=cells.name, row=row)
            except TrnspecError as error:
                yield Skipped(cells.name, str(error))
