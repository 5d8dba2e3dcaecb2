"""The calibration of each measured row: that of its chip, framework, era and kind of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from trnspec.perf.calibration.fit_range import inputs_of
from trnspec.perf.calibration.groups import label
from trnspec.perf.frameworks import named_in
from trnspec.perf.lowering.calibrated import Calibrated, calibrated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured.inference import InferenceCase
    from trnspec.perf.calibration.measured.training import Case

AnyCase = TypeVar("AnyCase", bound="Case | InferenceCase")


class Chosen:
    """The calibrations of the rows of a table."""

    def __init__(self, graph: Graph, of: str, name: str = "auto") -> None:
        """Args: the catalog, ``training`` or ``inference``, and a name as in :func:`calibrated`."""
        self._graph = graph
        self._of = of
        self._name = name
        self._known: dict[tuple[str, str, str, bool], Calibrated] = {}

    def groups(self, cases: Sequence[AnyCase]) -> Iterator[tuple[Calibrated, list[tuple[AnyCase, Calibrated]]]]:
        """The rows of each calibration, each with the calibration at its inputs."""
        groups: dict[str, list[tuple[AnyCase, Calibrated]]] = {}
        chosen: dict[str, Calibrated] = {}
        for case in cases:
            known = self._for(case)
            chosen.setdefault(known.name, known)
            about = label(case)
            at = known.at(inputs_of(case), case.dtype, scale=about.scale, experts=about.models == "experts")
            groups.setdefault(known.name, []).append((case, at))
        return ((chosen[name], some) for name, some in groups.items())

    def about(self, case: Case | InferenceCase, dataset: str) -> dict[str, Any]:
        """The fields of a score that name a row and its group."""
        known = label(case)
        return {
            "dataset": dataset, "id": case.id, "chip": case.system.chip, "framework": framework_of(case),
            "models": known.models, "scale": known.scale,
        }  # fmt: skip

    def _for(self, case: Case | InferenceCase) -> Calibrated:
        key = case.system.chip, framework_of(case), getattr(case, "era", ""), case.dims.experts > 0
        if key not in self._known:
            chip, framework, era, experts = key
            self._known[key] = calibrated(self._graph, chip, self._of, self._name, framework, era, experts=experts)
        return self._known[key]


def framework_of(case: Case | InferenceCase) -> str:
    """The framework of a row; empty if unknown."""
    return str(getattr(case, "framework", "")) or named_in(case.source_text)
