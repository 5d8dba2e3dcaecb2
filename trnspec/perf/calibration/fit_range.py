"""The range of a fit: the inputs of measured rows, and how far an input lies outside the range of them."""

from __future__ import annotations

import re
from math import ceil
from typing import TYPE_CHECKING, Any

import attrs

from trnspec.model.calibration import Range
from trnspec.model.transformers.counting import parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trnspec.model.calibration import FittedOn, Scale
    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.calibration.measured.case import ModelCase
    from trnspec.perf.lowering.system import LoweredSystem
    from trnspec.perf.serving.forward_pass import Deployment
    from trnspec.perf.work.layout import Layout

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
