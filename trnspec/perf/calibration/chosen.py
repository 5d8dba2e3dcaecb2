"""The calibration of each measured row, that of its chip, framework, era and kind of models; and the scores of rows with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from trnspec.perf.calibration.fit_range import inputs_of
from trnspec.perf.calibration.groups import label
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.frameworks import named_in
from trnspec.perf.lowering.calibrated import Calibrated, calibrated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured.inference import InferenceCase
    from trnspec.perf.calibration.measured.tables import Part
    from trnspec.perf.calibration.measured.training import Case

    Predicted = Mapping[Part, tuple[Any, Any, Any, Any]]

AnyCase = TypeVar("AnyCase", bound="Case | InferenceCase")

_MEASURED: Mapping[Part, str] = {"step": "seconds", "tpot": "tpot", "ttft": "ttft", "encoder": "encoded"}
"""The attribute of a case with the measured time [s], 0 where there is none."""


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

    def scores(
        self, cases: Sequence[AnyCase], dataset: str, predict: Callable[[Sequence[AnyCase], Calibrated], Predicted]
    ) -> Iterator[tuple[AnyCase, Scored]]:
        """Each row with the score of each time that it has.

        Args:
            cases: The rows.
            dataset: Name of the table.
            predict: Function from rows and their calibration to the ideal, the calibrated, the least and the largest times [s]
                by what was measured, arrays over the rows.  Least and largest are over what figures and rows leave open.
        """
        for applied, some in self.groups(cases):
            predicted = predict([case for case, _ in some], applied)
            for i, (case, known) in enumerate(some):
                for part, (ideal, value, least, largest) in predicted.items():
                    if not (measured := getattr(case, _MEASURED[part])):
                        continue
                    score = Scored(**self.about(case, dataset), part=part, measured=measured, ideal=float(ideal[i]))
                    if known.name:
                        own = None if part in {"step", "tpot"} else known.ttft_interval
                        low, high = own or (known.low, known.high)
                        score = evolve(
                            score, calibrated=float(value[i]), low=float(least[i]) * low, high=float(largest[i]) * high,
                            kind="transferred" if part == "encoder" else known.evidence.kind, calibration=known.name,
                        )  # fmt: skip
                    yield case, score

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


def at_end(case: AnyCase, end: int) -> AnyCase:
    """A row on the system with the figures of one end of their intervals."""
    return evolve(case, system=(case.system.ends or (case.system,) * 2)[end])


def framework_of(case: Case | InferenceCase) -> str:
    """The framework of a row; empty if unknown."""
    return str(getattr(case, "framework", "")) or named_in(case.source_text)
