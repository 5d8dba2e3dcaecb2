"""The parallel degrees with which models like one were trained in measurements."""

from __future__ import annotations

from math import log

from attrs import frozen

from trnspec.errors import TrnspecError
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.loading.measured import is_stated
from trnspec.model.transformers.counting import parameters
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.fit_range import chip_named
from trnspec.perf.calibration.measured.cells import RowCells, measured_rows
from trnspec.perf.lowering.calibrated import nearest

DEGREES = ("tp", "pp", "cp", "ep")
"""The degrees that a row of training states, 1 where a cell is empty."""

SIMILAR, COMPARABLE = log(2.0), log(8.0)
"""Models within the first distance of parameters are of similar size; where there are none, the nearest are, up to the second."""


def measured_degrees(graph: Graph, chip: str, d: Dimensions) -> dict[str, tuple[int, ...]]:
    """The degrees with which models like one were trained in measurements, on chips of the same publisher.

    Args:
        graph: The catalog.
        chip: The name of the chip.
        d: The model: rows of models with or without experts, causal or not, as it is, and of similar size count. Where no
            model with experts was measured, dense ones count, which do not state ``ep``.

    Returns:
        The values of each of :data:`DEGREES`; nothing where no table has a row of a comparable model.
    """
    trained = _trained(graph)
    chips = nearest(graph, chip, {one.chip for one in trained})
    experts, causal = _form(d)
    alike, dense = (
        [one for one in trained if one.chip in chips and one.form == form]
        for form in ((experts, causal), (False, causal))
    )
    names = DEGREES if alike else DEGREES[:-1]
    alike = alike or dense
    if not alike:
        return {}
    apart = [abs(log(one.parameters / float(parameters(d)))) for one in alike]
    within = max(min(apart), SIMILAR)
    if within > COMPARABLE:
        return {}
    near = [one.degrees for one, distance in zip(alike, apart, strict=True) if distance <= within]
    return {name: tuple(sorted({each[at] for each in near})) for at, name in enumerate(names)}


@frozen
class _Trained:
    chip: str
    form: tuple[bool, bool]
    parameters: float
    degrees: tuple[int, ...]


def _form(d: Dimensions) -> tuple[bool, bool]:
    return d.experts > 0, d.causal > 0


@cached_by_graph
def _trained(graph: Graph) -> tuple[_Trained, ...]:
    """The models and degrees of the tables of training steps."""
    found: set[_Trained] = set()
    for row in measured_rows(graph, "train"):
        cells = RowCells(graph, dict(row.cells))
        chip = chip_named(graph, cells.get("hardware"), "train")
        try:
            _, d = cells.model()
        except TrnspecError:
            continue
        if chip and is_stated(cells.get("tp")):
            degrees = tuple(cells.integer(name) or 1 for name in DEGREES)
            found.add(_Trained(chip, _form(d), float(parameters(d)), degrees))
    return tuple(found)
