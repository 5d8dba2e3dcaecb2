"""The measured row of a fit that is most like a question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import TrnspecError
from trnspec.evidence import Nearest, Outside
from trnspec.loading.measured import DTYPES
from trnspec.model.calibration import Calibration
from trnspec.model.transformers.counting import parameters
from trnspec.perf.calibration.measured.cells import RowCells, chip_of
from trnspec.perf.calibration.measured.collectives import KINDS
from trnspec.perf.calibration.measured.tables import fitted_rows

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph

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
    chip: str = ""
    dtypes: tuple[str, ...] = ()
    experts: bool | None = None


def nearest_row(  # what a row is compared by
    graph: Graph,
    calibration: str,
    inputs: Mapping[str, float],
    model: str = "",
    collective: str = "",
    *,
    chip: str = "",
    dtype: str = "",
    experts: bool | None = None,
) -> Nearest | None:
    """The row of a fit with the least sum of the logarithms of the ratios of inputs; of equals one of the same model.

    Rows of models with or without experts, as the model is, come first, then those of the same chip and compute dtype.

    Args:
        graph: The catalog.
        calibration: The name of the calibration.
        inputs: By the names of :class:`trnspec.model.calibration.FittedOn`.
        model: The name of the model.
        collective: The collective; rows of another one count only where the fit has none of it.
        chip: The name of the chip; empty for any.
        dtype: The compute dtype; empty for any.
        experts: Whether the model has experts; ``None`` for any.

    Returns:
        The row; ``None`` where no table of the catalog has rows of the fit.
    """
    rows = _rows(graph, calibration)
    if not rows:
        return None

    def distance(row: _Row) -> tuple[object, ...]:
        other = bool(chip) and row.chip != chip, bool(dtype) and dtype not in row.dtypes
        kind = experts is not None and row.experts is not experts
        return row.collective != collective, kind, *other, _distance(inputs, row.inputs), row.model != model

    nearest = min(rows, key=distance)
    outside = [
        Outside(input=name, value=value, low=nearest.inputs[name], high=nearest.inputs[name], factor=factor)
        for name, value in inputs.items()
        if name in nearest.inputs and (factor := _factor(value, nearest.inputs[name])) >= FAR
    ]
    measured = nearest.dtypes[0] if nearest.dtypes and dtype not in nearest.dtypes else dtype
    forms = [{True: "with experts", False: "dense", None: ""}[each] for each in (experts, nearest.experts)]
    names = (("model", model, nearest.model), ("models", *forms), ("kind", collective, nearest.collective),
             ("chip", chip, nearest.chip), ("dtype", dtype, measured))  # fmt: skip
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
    found = []
    for fitted in node.spec.tables if node else ():
        for document, row in fitted_rows(graph, fitted):
            cells = dict(row.cells)
            name, inputs, experts = _inputs(RowCells(graph, cells, cells.get("model", "")))
            inputs = {name: value for name, value in inputs.items() if value > 0.0}
            collective = KINDS.get(cells.get("collective", ""), "")
            chip = chip_named(graph, cells.get("hardware", ""), document.of)
            table = document.data.removesuffix(".csv")
            precision = _dtypes(cells.get("precision", ""))
            found.append(_Row(row.id, table, name, inputs, collective, chip, precision, experts))
    return tuple(found)


@lru_cache(maxsize=256)
def chip_named(graph: Graph, text: str, of: str) -> str:
    """As :func:`~trnspec.perf.calibration.measured.cells.chip_of`; empty if the catalog has no such hardware."""
    try:
        return chip_of(graph, text, of)
    except TrnspecError:
        return ""


def _dtypes(text: str) -> tuple[str, ...]:
    """The compute dtypes that a precision may name."""
    return next((names for pattern, names in DTYPES if re.search(pattern, text.lower())), ())


def _inputs(row: RowCells) -> tuple[str, dict[str, float], bool | None]:
    """The model of a row, the inputs that its cells state, as those of :func:`nearest_row`, and whether the model has experts."""

    def at(name: str, default: float = 0.0) -> float:
        try:
            return float(row.integer(name)) or default
        except TrnspecError:
            return default

    if row.get("kind") == "collective":
        return row.name, {"size": at("size_bytes"), "ranks": at("ranks") or at("n_chips")}, None
    tp, pp, cp, dp = (at(name, 1.0) for name in ("tp", "pp", "cp", "dp"))
    inputs = {"tp": tp, "pp": pp, "ep": at("ep", 1.0)}
    if row.get("kind") == "train":
        tokens = at("microbatch", 1.0) * at("seq") / cp
        inputs |= {"cp": cp, "seq": at("seq"), "global_batch": at("global_batch"), "tokens_per_rank": tokens}
        inputs["ranks"] = tp * pp * cp * at("dp")
    else:
        inputs |= {"prompt": at("isl"), "seq": at("isl") + at("osl"), "batch": at("batch_conc") / dp, "ranks": tp * pp}
    try:
        model, dims = row.model()
    except TrnspecError:
        return row.name, inputs, None
    return model, inputs | {"parameters": float(parameters(dims))}, bool(dims.experts > 0)
