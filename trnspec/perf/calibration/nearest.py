"""The measured row of a fit that is most like a question."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import TrnspecError
from trnspec.evidence import Nearest, Outside
from trnspec.loading.measured import table_of, used_rows
from trnspec.model.calibration import Calibration
from trnspec.model.measurements import Measurements
from trnspec.model.transformers.counting import parameters
from trnspec.perf.calibration.measured.collectives import KINDS
from trnspec.perf.calibration.measured.tables import integer, model_of, row_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured.tables import Record

FAR = 1.25
"""Least factor by which an input counts as different."""

UNSTATED = log(4.0)
"""The distance of an input that a row does not state."""


@frozen
class _Row:
    id: str
    set: str
    model: str
    inputs: Mapping[str, float]
    collective: str = ""


def nearest_row(
    graph: Graph, calibration: str, inputs: Mapping[str, float], model: str = "", collective: str = ""
) -> Nearest | None:
    """The row of a fit with the least sum of the logarithms of the ratios of inputs; of equals one of the same model.

    Args:
        graph: The catalog.
        calibration: The name of the calibration.
        inputs: By the names of :class:`trnspec.model.calibration.FittedOn`.
        model: The name of the model.
        collective: The collective; rows of another one count only where the fit has none of it.

    Returns:
        The row; ``None`` where no table of the catalog has rows of the fit.
    """
    rows = _rows(graph, calibration)
    if not rows:
        return None
    nearest = min(
        rows, key=lambda row: (row.collective != collective, _distance(inputs, row.inputs), row.model != model)
    )
    outside = [
        Outside(input=name, value=value, low=nearest.inputs[name], high=nearest.inputs[name], factor=factor)
        for name, value in inputs.items()
        if name in nearest.inputs and (factor := _factor(value, nearest.inputs[name])) >= FAR
    ]
    names = (("model", model, nearest.model), ("kind", collective, nearest.collective))
    other = [Outside(input=name, value=text, low=known) for name, text, known in names if text and known != text]
    return Nearest(id=nearest.id, set=nearest.set, differences=(*sorted(outside, key=lambda o: -o.factor), *other))


def _factor(a: float, b: float) -> float:
    return max(a / b, b / a)


def _distance(inputs: Mapping[str, float], row: Mapping[str, float]) -> float:
    return sum(abs(log(value / row[name])) if name in row else UNSTATED for name, value in inputs.items())


@lru_cache(maxsize=32)
def _rows(graph: Graph, calibration: str) -> tuple[_Row, ...]:
    """The rows of a fit, of the tables of the catalog."""
    node = next((n for n in graph.of(Calibration) if n.name == calibration), None)
    if node is None or node.spec.rows is None:
        return ()
    fitted, files = frozenset(node.spec.rows.split()), node.spec.data.split(", ")
    models: dict[str, tuple[str, float] | None] = {}
    found = []
    for document in graph.of(Measurements):
        if document.spec.data not in files:
            continue
        try:
            rows = used_rows(document.spec, table_of(document.spec, document.document.file))
        except TrnspecError:
            # A catalog may lack the table of a document; validation reports that.
            continue
        for row in rows:
            cells = dict(row.cells)
            if not fitted.isdisjoint(row_hashes(cells)):
                key = cells.get("model", "")
                if cells.get("kind") == "collective":
                    models[key] = None
                if key not in models:
                    models[key] = _model(graph, cells)
                known = models[key]
                inputs = {name: value for name, value in _inputs(cells) if value > 0.0}
                if known is not None:
                    inputs["parameters"] = known[1]
                name = key if known is None else known[0]
                collective = KINDS.get(cells.get("collective", ""), "")
                found.append(_Row(row.id, document.spec.data.removesuffix(".csv"), name, inputs, collective))
    return tuple(found)


def _model(graph: Graph, row: Record) -> tuple[str, float] | None:
    try:
        name, dims = model_of(graph, row, [])
    except TrnspecError:
        return None
    return name, float(parameters(dims))


def _inputs(row: Record) -> Iterator[tuple[str, float]]:
    """The inputs that the cells of a row state, by the names of :class:`trnspec.model.calibration.FittedOn`."""

    def at(name: str, default: float = 0.0) -> float:
        try:
            return float(integer(row, name)) or default
        except TrnspecError:
            return default

    if row.get("kind") == "collective":
        yield "size", at("size_bytes")
        yield "ranks", at("ranks") or at("n_chips")
        return
    yield from ((name, at(name, 1.0)) for name in ("tp", "pp", "ep"))
    if row.get("kind") == "train":
        yield "cp", at("cp", 1.0)
        yield "seq", at("seq")
        yield "global_batch", at("global_batch")
        yield "tokens_per_rank", at("microbatch", 1.0) * at("seq") / at("cp", 1.0)
        yield "ranks", at("tp", 1.0) * at("pp", 1.0) * at("cp", 1.0) * at("dp")
    else:
        yield "prompt", at("isl")
        yield "seq", at("isl") + at("osl")
        yield "batch", at("batch_conc") / at("dp", 1.0)
        yield "ranks", at("tp", 1.0) * at("pp", 1.0)
