"""What is achieved on a chip, from the calibrations of a catalog."""

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


_BOUND = "no calibration: nothing is lost, so that times are bounds"


@frozen
class Calibrated:
    """What is achieved, and how sure that is.

    Attributes:
        name: The name of the calibration; empty where there is none, and the answer is a bound.
        efficiency: What is achieved.
        low: Measured over computed at the lower end of the interval; 1 without a calibration.
        high: The same at the upper end.
        coverage: Share of the measurements that the interval is to contain; 0 without a calibration.
        description: What it was fitted on, in one sentence.
        serving: What is achieved in serving beside ``efficiency``, which has what both know.
        ttft_interval: Measured over computed time to the first token, low and high; as of every other time where it was not
            fitted apart.
    """

    name: str = ""
    efficiency: Efficiency = IDEAL
    low: float = 1.0
    high: float = 1.0
    coverage: float = 0.0
    description: str = _BOUND
    serving: Serving = IDEAL_SERVING
    ttft_interval: tuple[float, float] | None = None


def calibrated(graph: Graph, chip: str, of: str, wanted: str = "auto") -> Calibrated:
    """The calibration to use.

    Args:
        graph: The catalog.
        chip: The name of the chip.
        of: ``training`` or ``inference``.
        wanted: A name, ``auto`` for the chip's own with the most rows, or ``none``.

    Raises:
        UnknownNameError: There is none of that name; the message lists the nearest.
        UsageError: It is of something else, or a share in it is 0. That it is of another chip is allowed, and told.
    """
    if wanted == "none":
        return Calibrated()
    nodes = graph.of(Calibration)
    if wanted == "auto":
        own = [n for n in nodes if n.spec.chip.name == chip and n.spec.of == of]
        if not own:
            return Calibrated(description=_BOUND + _others(graph, chip, [n for n in nodes if n.spec.of == of]))
        return _read(max(own, key=lambda n: (n.spec.spread.rows, n.name)), chip)
    for node in nodes:
        if wanted in (node.name, *node.metadata.aliases):
            if node.spec.of != of:
                raise UsageError(f"the calibration {wanted} is of {node.spec.of}, not of {of}")
            return _read(node, chip)
    hint = did_you_mean(wanted, [n.name for n in nodes])
    raise UnknownNameError(f"no calibration is named {wanted!r}" + (f"; {hint}" if hint else ""))


def _others(graph: Graph, chip: str, nodes: list[Node[Calibration]]) -> str:
    """What could be named instead: calibrations of chips of the same publisher."""
    sources = {n.name: n.metadata.source for n in graph.of(Chip)}
    publisher = {name: graph[source].publisher for name, source in sources.items() if source is not None}
    alike = sorted(n.name for n in nodes if publisher.get(n.spec.chip.name, "") == publisher.get(chip))
    return f"; {' or '.join(alike)} can be named, for what it is worth on another chip" if alike else ""


def serving_of(known: Calibrated) -> Serving:
    """What a calibration says of serving; rates and shares of links are in the numbers of a rank already."""
    e = known.efficiency
    return attrs.evolve(known.serving, score_passes=e.score_passes, call=e.call, step=e.step, causal=e.causal)


_RATES = ("matmul", "attention", "memory", "chip", "server", "ultraserver", "network")
"""What rates are multiplied by."""

_SERVING = ("weights", "cache", "link", "additive", "launch", "sample", "request", "padding")
"""What only serving knows."""


def _read(node: Node[Calibration], chip: str) -> Calibrated:
    spec = node.spec
    names = [f.name for f in attrs.fields(Efficiency)]
    found = {name: getattr(spec.achieved, name) for name in names}
    values = {name: float(figure) for name, figure in found.items() if figure is not None}
    served = {name: float(figure) for name in _SERVING if (figure := getattr(spec.achieved, name)) is not None}
    for name in (*_RATES, "weights", "cache", "link"):
        if (values | served).get(name) == 0.0:
            raise UsageError(f"{node.name} spec.achieved.{name} is 0x, with which nothing ever ends")
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
