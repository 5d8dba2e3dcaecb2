"""The efficiency on a chip, from the calibrations of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from attrs import frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError, UsageError
from trnspec.model.calibration import Calibration
from trnspec.model.chip import Chip
from trnspec.perf.lowering.efficiency import IDEAL, Efficiency
from trnspec.perf.serving.forward_pass import IDEAL as IDEAL_SERVING
from trnspec.perf.serving.forward_pass import Serving

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


_BOUND = "no calibration: ideal (no losses), so times are lower bounds"


@frozen
class Calibrated:
    """The efficiency, and the interval of the times that are computed with it.

    Attributes:
        name: The name of the calibration; empty where there is none, and the answer is a bound.
        efficiency: Achieved over published rates.
        low: Measured over computed at the lower end of the interval; 1 without a calibration.
        high: The same at the upper end.
        coverage: Share of the measurements that the interval is to contain; 0 without a calibration.
        told: The measurements that it was fitted on, in one sentence.
        serving: The parameters of serving that ``efficiency`` does not have.
        first: Measured over computed time to the first token, low and high; as of every other time where it was not
            fitted apart.
    """

    name: str = ""
    efficiency: Efficiency = IDEAL
    low: float = 1.0
    high: float = 1.0
    coverage: float = 0.0
    told: str = _BOUND
    serving: Serving = IDEAL_SERVING
    first: tuple[float, float] | None = None


def calibrated(graph: Graph, chip: str, of: str, wanted: str = "auto") -> Calibrated:
    """The calibration to use.

    Args:
        graph: The catalog.
        chip: The name of the chip.
        of: ``training`` or ``inference``.
        wanted: A name, ``auto`` for the chip's own with the most rows, or ``none``.

    Raises:
        UnknownNameError: There is none of that name; the message lists the nearest.
        UsageError: It is of something else, or a share in it is 0. One of another chip is allowed, and reported.
    """
    if wanted == "none":
        return Calibrated()
    nodes = graph.of(Calibration)
    if wanted == "auto":
        own = [n for n in nodes if n.spec.chip.name == chip and n.spec.of == of]
        if not own:
            return Calibrated(told=_BOUND + _others(graph, chip, [n for n in nodes if n.spec.of == of]))
        return _read(max(own, key=lambda n: (n.spec.spread.rows, n.name)), chip)
    for node in nodes:
        if wanted in (node.name, *node.metadata.aliases):
            if node.spec.of != of:
                raise UsageError(f"the calibration {wanted} is of {node.spec.of}, not of {of}")
            return _read(node, chip)
    hint = did_you_mean(wanted, [n.name for n in nodes])
    raise UnknownNameError(f"no calibration is named {wanted!r}" + (f"; {hint}" if hint else ""))


def _others(graph: Graph, chip: str, nodes: list[Node[Calibration]]) -> str:
    """The calibrations that could be named instead: those of chips of the same publisher."""
    sources = {n.name: n.metadata.source for n in graph.of(Chip)}
    publisher = {name: graph[source].publisher for name, source in sources.items() if source is not None}
    alike = sorted(n.name for n in nodes if publisher.get(n.spec.chip.name, "") == publisher.get(chip))
    return f"; fitted on other chips of the publisher: {', '.join(alike)}" if alike else ""


def serving_of(known: Calibrated) -> Serving:
    """The serving parameters of a calibration; rates and shares of links are in the numbers of a rank."""
    e = known.efficiency
    return attrs.evolve(known.serving, score_passes=e.score_passes, call=e.call, step=e.step, causal=e.causal)


_RATES = ("matmul", "attention", "memory", "chip", "server", "ultraserver", "network")
"""The fields that rates are multiplied by."""

_SERVING = ("weights", "cache", "link", "additive", "launch", "sample", "request", "padding")
"""The fields of serving alone."""


def _read(node: Node[Calibration], chip: str) -> Calibrated:
    spec = node.spec
    names = [f.name for f in attrs.fields(Efficiency)]
    found = {name: getattr(spec.achieved, name) for name in names}
    values = {name: float(figure) for name, figure in found.items() if figure is not None}
    served = {name: float(figure) for name in _SERVING if (figure := getattr(spec.achieved, name)) is not None}
    for name in (*_RATES, "weights", "cache", "link"):
        if (values | served).get(name) == 0.0:
            raise UsageError(f"{node.name} spec.achieved.{name} is 0x, which makes every time infinite")
    spread = spec.spread
    first = spec.first
    own = "" if spec.chip.name == chip else f"; fitted on {spec.chip.name}, not on {chip}"
    return Calibrated(
        node.name,
        Efficiency(**values),
        float(spread.low),
        float(spread.high),
        float(spread.coverage),
        f"{spec.software}, {spread.rows} rows, {float(spread.mean):.1%} mean error on rows left out{own}"
        + (f"; {node.metadata.note[0].lower()}{node.metadata.note[1:].rstrip('.')}" if node.metadata.note else ""),
        Serving(**served),
        None if first is None else (float(first.low), float(first.high)),
    )
