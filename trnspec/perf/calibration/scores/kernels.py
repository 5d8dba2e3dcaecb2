"""Scores of kernels on one chip: matrix multiplications, attention, and expert layers."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, fields

from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fits.kernels import FOLDS, held_out, solved
from trnspec.perf.calibration.measured.kernels import KernelCase, kernel_cases, times
from trnspec.perf.calibration.measured.tables import Skipped
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.kernels.times import Roof
from trnspec.perf.lowering.calibrated import calibrated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.model.calibration import KernelRoof
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record
    from trnspec.perf.lowering.calibrated import Calibrated


def score_kernels(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto", kind: str
) -> list[Scored | Skipped]:
    """Scores of every row of a kind of kernel: ``matmul``, ``attention`` or ``moe``."""
    read = kernel_cases(graph, rows, kind)
    scored: list[Scored | Skipped] = [c for c in read if isinstance(c, Skipped)]
    groups: dict[tuple[str, str, str, Part], list[KernelCase]] = {}
    for case in read:
        if isinstance(case, KernelCase):
            groups.setdefault((case.chip, case.framework, case.precision, case.part), []).append(case)
    specs = {n.name: n.spec for n in graph.of(Calibration)}
    for (chip, framework, precision, part), some in groups.items():
        ideal = times(part, some)
        scores = [
            Scored(
                dataset=dataset, id=case.id, part=part, measured=case.measured, ideal=float(value), chip=chip,
                framework=framework,
            )
            for case, value in zip(some, ideal, strict=True)
        ]  # fmt: skip
        known = calibrated(graph, chip, "kernels", calibration, framework)
        roof = _roof(specs[known.name].roofs, part, precision) if known.name else None
        if roof is not None:
            values = times(part, some, roof_of(roof))
            low, high = _ends(specs[known.name], known, part)
            kind_of = known.evidence.kind if roof.precision == precision else "transferred"
            scores = [
                evolve(
                    score, calibrated=float(value), low=float(value) * low, high=float(value) * high, kind=kind_of,
                    calibration=known.name,
                )
                for score, value in zip(scores, values, strict=True)
            ]  # fmt: skip
        scored += scores
    return scored


def roof_of(roof: KernelRoof) -> Roof:
    """A roof of a document as numbers."""
    names = (field.name for field in fields(Roof))
    return Roof(**{name: float(value) for name in names if (value := getattr(roof, name)) is not None})


def _roof(roofs: Sequence[KernelRoof], part: str, precision: str) -> KernelRoof | None:
    """The roof of a kernel in a precision; without one, that of the precision with the longest common beginning."""
    own = [r for r in roofs if r.kernel == part]
    return max(
        own, key=lambda r: (r.precision == precision, _common(r.precision, precision), int(r.rows)), default=None
    )


def _common(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _ends(spec: Calibration, known: Calibrated, part: str) -> tuple[float, float]:
    """The interval of a kernel; elsewhere than on the chip and framework of the rows also that of other chips."""
    group = next((g for g in spec.groups if g.phase == part), None)
    low, high = (known.low, known.high) if group is None else (float(group.low), float(group.high))
    if known.evidence.kind == "transferred":
        return min(low, known.low), max(high, known.high)
    return low, high


def refit_kernels(graph: Graph, rows: list[Record], holdout: Holdout = "model") -> dict[tuple[str, Part], float]:
    """Times by fits to other shapes, or to other chips."""
    result: dict[tuple[str, Part], float] = {}
    groups: dict[Part, list[KernelCase]] = {}
    for case in _cases(graph, rows):
        groups.setdefault(case.part, []).append(case)
    for part, some in groups.items():
        folds = [c.chip if holdout == "chip" else str(zlib.crc32(c.family.encode()) % FOLDS) for c in some]
        values = held_out(part, some, folds, solved(part, some))
        result |= {(c.id, part): float(v) for c, v in zip(some, values, strict=True) if not np.isnan(v)}
    return result


def _cases(graph: Graph, rows: list[Record]) -> Iterator[KernelCase]:
    for kind in sorted({row["kind"] for row in rows}):
        yield from (c for c in kernel_cases(graph, rows, kind) if isinstance(c, KernelCase))
