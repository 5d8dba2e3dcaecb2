"""Comparison of measured rows with the published figures of the chip, and with the calibration in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from attrs import frozen

from trnspec.errors import TrnspecError
from trnspec.graph.graph import Graph
from trnspec.measure.kernels import Cells
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import chip_of, dtype_of
from trnspec.perf.calibration.score import AccuracyRow, score
from trnspec.perf.lowering.lower import lower

AGAINST = {"matmul": "peak", "attention": "peak or bandwidth", "op": "bandwidth", "collective": "lower bound"}
"""Origin of the ideal time of a kind of rows."""


@frozen(kw_only=True)
class ComparedRows:
    """The rows of one kind, precision and phase.

    Attributes:
        what: The quantity.
        against: What a share is of.
        precision: The precision; empty for collectives.
        rows: Rows that could be compared.
        best: The largest share of the ideal: ideal over measured time.
        median: The median share.
        calibration: The calibration in use; empty without one.
        error: Median absolute error of the calibration; ``None`` without one.
        bias: Median of computed over measured time by the calibration minus 1.
        inside: Share of the rows inside its interval.
    """

    what: str
    against: str
    precision: str
    rows: int
    best: float
    median: float
    calibration: str = ""
    error: float | None = None
    bias: float | None = None
    inside: float | None = None


def compare(
    graph: Graph, tables: Mapping[str, Sequence[Cells]], calibration: str = "auto"
) -> tuple[list[ComparedRows], list[Skipped]]:
    """Each group of rows against the catalog, and the rows that it cannot compute."""
    groups: dict[tuple[str, str, str], list[AccuracyRow]] = {}
    skipped: list[Skipped] = []
    layers: list[Cells] = []
    for kind, rows in tables.items():
        # A layer is several kernels, whose time no formula of one kernel gives: its rate is compared with the peak rate.
        alone = {row["id"]: row for row in rows if not row.get("op", "").startswith("layer")}
        layers += [row for row in rows if row["id"] not in alone]
        for each in score(graph, {kind: [*map(dict, alone.values())]}, calibration=calibration):
            if each.skipped:
                skipped.append(Skipped(each.id, each.skipped))
            else:
                row = alone[each.id]
                what = row.get("op") or row.get("collective") or each.part or ""
                groups.setdefault((kind, what, row.get("precision", "")), []).append(each)
    of_layers, unknown = _layers(graph, layers)
    return [*(_compared(key, some) for key, some in groups.items()), *of_layers], [*skipped, *unknown]


def _layers(graph: Graph, rows: Sequence[Cells]) -> tuple[list[ComparedRows], list[Skipped]]:
    """The rates of layers against the peak rate of the chip."""
    shares: dict[tuple[str, str], list[float]] = {}
    skipped: list[Skipped] = []
    for row in rows:
        try:
            system = lower(graph, chip_of(graph, row["hardware"], "matmul"))
            peak = system.rate(dtype_of(row["precision"], system)) * system.ranks_per_chip
        except TrnspecError as error:
            skipped.append(Skipped(row["id"], str(error)))
        else:
            shares.setdefault((row["op"], row["precision"]), []).append(float(row["tflops_per_chip"]) * 1e12 / peak)
    return [
        ComparedRows(
            what=what, against="peak", precision=precision, rows=len(some), best=max(some), median=median(some)
        )
        for (what, precision), some in shares.items()
    ], skipped


def _compared(key: tuple[str, str, str], some: Sequence[AccuracyRow]) -> ComparedRows:
    kind, what, precision = key
    shares = [1.0 + s.error(s.ideal) for s in some]
    known = [s for s in some if s.calibration]
    own: dict[str, Any] = {}
    if known:
        errors = [s.error(s.computed) for s in known]
        own = {
            "calibration": known[0].calibration, "error": median(map(abs, errors)), "bias": median(errors),
            "inside": sum(bool(s.inside) for s in known) / len(known),
        }  # fmt: skip
    return ComparedRows(
        what=what, against=AGAINST[kind], precision=precision, rows=len(some), best=max(shares), median=median(shares),
        **own,
    )  # fmt: skip
