"""The range of a fit: the inputs of measured rows, how far an input lies outside the range of them, and the row most like a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import ceil, inf, log
from typing import Any

import attrs
from attrs import evolve, frozen

from trnspec.errors import TrnspecError
from trnspec.evidence import Nearest, Outside
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.loading.measured import DTYPES
from trnspec.model.calibration import Calibration, FittedOn, Range, Scale
from trnspec.model.transformers.counting import parameters
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.measured.case import ModelCase
from trnspec.perf.calibration.measured.cells import KINDS, RowCells, chip_of, fitted_rows
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.perf.ops import Number
from trnspec.perf.roofline import ELEMENT_BYTES
from trnspec.perf.serving.forward_pass import Deployment
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.memory import cache, held_parameters

EXPONENT = 0.15
"""The exponent of extrapolation where rows are too few to fit one; those of the shipped fits to steps are smaller."""

CLUSTER = 512
"""Chips from which on a system is larger than a cluster, see :func:`scale_of`."""

Inputs = dict[str, float]
"""Inputs by the names of :class:`trnspec.model.calibration.FittedOn`."""


def training_inputs(d: Dimensions, layout: Layout) -> Inputs:
    """The inputs of a training step."""
    return {
        "parameters": float(parameters(d)),
        "seq": float(layout.seq),
        "tokens_per_rank": layout.microbatch * layout.seq / layout.cp,
        **{name: float(getattr(layout, name)) for name in ("tp", "pp", "cp", "ep", "ranks", "global_batch")},
    }


def collective_inputs(system: LoweredSystem, size: float, ranks: float) -> Inputs:
    """The inputs of a collective, by the names of :class:`trnspec.model.calibration.FittedOn`."""
    return {"size": max(size, 1.0), "ranks": ranks, "servers": float(ceil(ranks / near_ranks(system)))}


def serving_inputs(d: Dimensions, plan: Deployment) -> Inputs:
    """The inputs of a deployment."""
    return {
        "parameters": float(parameters(d)),
        "seq": float(plan.prompt + plan.output),
        "prompt": float(plan.prompt),
        **{name: float(getattr(plan, name)) for name in ("tp", "pp", "ep", "batch")},
        "ranks": float(plan.tp * plan.pp),
    }


def with_memory(
    inputs: Inputs, d: Dimensions, layout: Layout, *, weight_bytes: Number = 2.0, cache_bytes: Number = 2.0
) -> Inputs:
    """The inputs with the bytes of weights on a rank; in serving also those of its KV cache, and the output tokens.

    Args:
        inputs: The inputs of :func:`training_inputs` or :func:`serving_inputs`, or those that a row states.
        d: The model.
        layout: The degrees.
        weight_bytes: Bytes of a weight.
        cache_bytes: Bytes of an element of the KV cache.
    """
    held = held_parameters(d, layout)
    more = {"weights_per_rank": float(weight_bytes * (held.dense + held.experts))}
    if {"prompt", "seq", "batch"} <= inputs.keys():
        replica = evolve(layout, dp=1.0)
        more["output"] = inputs["seq"] - inputs["prompt"]
        more["cache_per_rank"] = float(cache(d, replica, inputs["seq"], inputs["batch"], cache_bytes))
    return inputs | more


def of_deployment(inputs: Inputs, d: Dimensions, plan: Deployment) -> Inputs:
    """The inputs of a deployment as :func:`with_memory`."""
    layout = Layout(tp=plan.tp, pp=plan.pp, dp=plan.dp, ep=plan.ep, seq=plan.prompt, global_batch=plan.batch)
    return with_memory(inputs, d, layout, weight_bytes=plan.weight_bytes, cache_bytes=plan.cache_bytes)


def near_ranks(system: LoweredSystem) -> float:
    """The ranks that are connected without the network."""
    return max((level.ranks for level in system.levels if level.name != "network"), default=system.ranks_per_chip)


def scale_of(system: LoweredSystem, ranks: float) -> Scale:
    """Class of the number of chips of some ranks: those connected without the network, up to 512, or more."""
    if ranks <= near_ranks(system):
        return "server"
    return "cluster" if ranks <= CLUSTER * system.ranks_per_chip else "large"


def ranges(inputs: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """The least and the largest value of each input."""
    return {name: (min(i[name] for i in inputs), max(i[name] for i in inputs)) for name in inputs[0]}


def factor(value: float, low: float, high: float) -> float:
    """Distance of a value from a range: 1 inside, 2 for twice the largest or half of the least value."""
    return max(value / high, low / value, 1.0)


_VERSION = re.compile(r"Neuron (\d+\.\d+(?:\.\d+)?)|\b(\d\d\.\d\d(?:\.\d\d)?) NeMo|ngc(\d\d\.\d\d)", re.IGNORECASE)


def versions(cases: Iterable[ModelCase]) -> list[str]:
    """The versions of the software that rows state."""
    found = {match for case in cases for groups in _VERSION.findall(case.source_text) for match in groups if match}
    return sorted(found, key=lambda text: [int(part) for part in text.split(".")])


def fitted_on(cases: Sequence[ModelCase]) -> dict[str, Any]:
    """The object ``fitted_on`` of a calibration: what the rows have in common, and the range of each input."""
    each = {
        "chips": sorted({c.chip for c in cases}),
        "versions": versions(cases),
        "dtypes": sorted({c.dtype for c in cases}),
    }
    spans = ranges([c.inputs for c in cases]).items()
    return {name: some for name, some in each.items() if some} | {
        name: {"low": max(1, round(low)), "high": max(1, round(high))} for name, (low, high) in spans
    }


def within(stated: FittedOn) -> dict[str, tuple[float, float]]:
    """The ranges that a :class:`~trnspec.model.calibration.FittedOn` states, by input."""
    values = {f.name: getattr(stated, f.name) for f in attrs.fields(type(stated))}
    return {name: (float(v.low), float(v.high)) for name, v in values.items() if isinstance(v, Range)}


FAR = 1.25
"""Least factor by which an input counts as different."""

UNSTATED = log(4.0)
"""The distance of an input that a row does not state."""


@frozen
class FittedRow:
    """A row of a fit, by what questions are compared with."""

    id: str
    set: str
    model: str
    inputs: Mapping[str, float]
    collective: str
    chip: str
    dtypes: tuple[str, ...]
    experts: bool | None
    pools: bool
    """Whether prompts were computed in a pool of their own."""


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
    nearest, closest = None, None
    for row in rows_of(graph, calibration):
        of_chip, of_dtype = bool(chip) and row.chip != chip, bool(dtype) and dtype not in row.dtypes
        kind = experts is not None and row.experts is not experts
        ratios = sum(abs(log(value / row.inputs[n])) if n in row.inputs else UNSTATED for n, value in inputs.items())
        distance = row.collective != collective, kind, of_chip, of_dtype, ratios, row.model != model
        if closest is None or distance < closest:
            nearest, closest = row, distance
    if nearest is None:
        return None
    outside = [
        Outside(input=name, value=value, low=own, high=own, factor=by)
        for name, value in inputs.items()
        if (own := nearest.inputs.get(name)) is not None and (by := factor(value, own, own)) >= FAR
    ]
    measured = nearest.dtypes[0] if nearest.dtypes and dtype not in nearest.dtypes else dtype
    forms = [{True: "with experts", False: "dense", None: ""}[each] for each in (experts, nearest.experts)]
    names = (("model", model, nearest.model), ("models", *forms), ("kind", collective, nearest.collective),
             ("chip", chip, nearest.chip), ("dtype", dtype, measured))  # fmt: skip
    other = [Outside(input=name, value=text, low=known) for name, text, known in names if text and known != text]
    return Nearest(id=nearest.id, set=nearest.set, differences=(*sorted(outside, key=lambda o: -o.factor), *other))


NEAR = 2.0
"""Factor up to which an input counts as that of a row.

Of models that were left out, the times per output token with a row within it were off by 11 %, others by 20 %; steps of dense models
by 3.8 and 7.4 %, times to first token by 32 and 37 %. Within a factor of 4 or more the groups hardly differ."""


def far_inputs(
    graph: Graph, calibration: str, inputs: Mapping[str, float], *, experts: bool | None = None
) -> tuple[Outside, ...]:
    """The inputs that are more than :data:`NEAR` times off those of a row of a fit, the one that is least so; the furthest first.

    Args:
        graph: The catalog.
        calibration: The name of the calibration.
        inputs: By the names of :class:`trnspec.model.calibration.FittedOn`, and of :func:`with_memory`.
        experts: Whether the model has experts: only such rows count, if there are any.

    Returns:
        The inputs; none where no table of the catalog has rows of the fit.
    """
    known: Mapping[str, float] = {}
    factors: dict[str, float] = {}
    least = inf
    for row in _rows_like(graph, calibration, experts=experts):
        here = {n: factor(v, row.inputs[n], row.inputs[n]) for n, v in inputs.items() if v > 0.0 and n in row.inputs}
        if (most := max(here.values(), default=inf)) < least:
            known, factors, least = row.inputs, here, most
    far = {name: by for name, by in factors.items() if by > NEAR}
    return tuple(
        Outside(input=name, value=inputs[name], low=known[name], high=known[name], factor=by)
        for name, by in sorted(far.items(), key=lambda one: -one[1])
    )


def has_pools(graph: Graph, calibration: str, *, experts: bool) -> bool:
    """Whether a fit has rows of separate pools of prefill and decoding, of models with or without experts."""
    return any(row.pools for row in _rows_like(graph, calibration, experts=experts))


def _rows_like(graph: Graph, calibration: str, *, experts: bool | None) -> tuple[FittedRow, ...]:
    """The rows of a fit of models with or without experts, if there are any; else all."""
    rows = rows_of(graph, calibration)
    return tuple(row for row in rows if row.experts is experts) or rows


@cached_by_graph
def rows_of(graph: Graph, calibration: str) -> tuple[FittedRow, ...]:
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
            table, dtypes = document.data.removesuffix(".csv"), _dtypes(cells.get("precision", ""))
            pools = cells.get("mode") == "disagg"
            found.append(FittedRow(row.id, table, name, inputs, collective, chip, dtypes, experts, pools))
    return tuple(found)


@cached_by_graph
def chip_named(graph: Graph, text: str, of: str) -> str:
    """As :func:`~trnspec.perf.calibration.measured.cells.chip_of`; empty if the catalog has no such hardware."""
    try:
        return chip_of(graph, text, of)
    except TrnspecError:
        return ""


def _inputs(row: RowCells) -> tuple[str, dict[str, float], bool | None]:
    """The model of a row, the inputs that its cells state, as those of :func:`nearest_row`, and whether the model has experts."""
    at = dict.fromkeys(_STATED, 0.0)
    for name in _STATED:
        with suppress(TrnspecError):
            at[name] = float(row.integer(name))
    kind = row.row.get("kind")
    if kind == "collective":
        return row.name, {"size": at["size_bytes"], "ranks": at["ranks"] or at["n_chips"]}, None
    tp, pp, cp, dp, ep, microbatch = (at[name] or 1.0 for name in ("tp", "pp", "cp", "dp", "ep", "microbatch"))
    inputs = {"tp": tp, "pp": pp, "ep": ep}
    if kind == "train":
        tokens = microbatch * at["seq"] / cp
        inputs |= {"cp": cp, "seq": at["seq"], "global_batch": at["global_batch"], "tokens_per_rank": tokens}
        inputs["ranks"] = tp * pp * cp * at["dp"]
    else:
        batch = max(at["batch_conc"] / dp, min(at["batch_conc"], 1.0))
        inputs |= {"prompt": at["isl"], "seq": at["isl"] + at["osl"], "batch": batch, "ranks": tp * pp}
    try:
        model, dims = row.model()
    except TrnspecError:
        return row.name, inputs, None
    layout = Layout(tp=tp, pp=pp, cp=cp, dp=dp, ep=ep, seq=inputs["seq"], global_batch=1.0)
    # Stored in a precision such as ``bf16/w:fp8``, of which the second is that of weights.
    texts = (row.row.get(name, "").rpartition("w:")[2] for name in ("precision", "kv_precision"))
    stored, cached = (ELEMENT_BYTES[(_dtypes(text) or ("bf16",))[0]] for text in texts)
    inputs = with_memory(inputs, dims, layout, weight_bytes=stored, cache_bytes=cached)
    return model, inputs | {"parameters": float(parameters(dims))}, bool(dims.experts > 0)


_STATED = (
    *("tp", "pp", "cp", "dp", "ep", "microbatch", "seq", "global_batch", "isl", "osl", "batch_conc"),
    *("size_bytes", "ranks", "n_chips"),
)
"""The columns with integers that rows are compared by."""


def _dtypes(precision: str) -> tuple[str, ...]:
    """The dtypes of a precision as tables name it; none where it is not stated."""
    return next((names for pattern, names in DTYPES if re.search(pattern, precision.lower())), ())
