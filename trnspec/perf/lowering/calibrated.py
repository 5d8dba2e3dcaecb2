"""Achieved efficiency of a chip, from the calibrations of a catalog."""

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


_UNCALIBRATED = "no calibration: no losses, so that times are lower bounds"


@frozen
class Calibrated:
    """Achieved efficiency and its uncertainty.

    Attributes:
        name: Name of the calibration; empty without one, and times are lower bounds.
        efficiency: Achieved over published performance.
        low: Measured over computed time, lower end of the interval; 1 without a calibration.
        high: The same, upper end.
        coverage: Share of the measurements that the interval should contain; 0 without a calibration.
        description: What it was fitted on, in one sentence.
        serving: Efficiency that only serving has, in addition to ``efficiency``.
        ttft_interval: Measured over computed time to first token, low and high; ``None`` to use ``low`` and ``high``.
    """

    name: str = ""
    efficiency: Efficiency = IDEAL
    low: float = 1.0
    high: float = 1.0
    coverage: float = 0.0
    description: str = _UNCALIBRATED
    serving: Serving = IDEAL_SERVING
    ttft_interval: tuple[float, float] | None = None


def calibrated(graph: Graph, chip: str, of: str, name: str = "auto") -> Calibrated:
    """The calibration to use.

    Args:
        graph: The catalog.
        chip: Name of the chip.
        of: ``training`` or ``inference``.
        name: A name, ``auto`` for the chip's calibration with the most rows, or ``none``.

    Raises:
        UnknownNameError: No calibration of that name; the message suggests the nearest.
        UsageError: It is of another kind than ``of``, or a share in it is 0. A calibration of another chip is allowed, and
            noted in the description.
    """
    if name == "none":
        return Calibrated()
    nodes = graph.of(Calibration)
    if name == "auto":
        own = [n for n in nodes if n.spec.chip.name == chip and n.spec.of == of]
        if not own:
            return Calibrated(description=_UNCALIBRATED + _others(graph, chip, [n for n in nodes if n.spec.of == of]))
        return _read(max(own, key=lambda n: (n.spec.spread.rows, n.name)), chip)
    for node in nodes:
        if name in (node.name, *node.metadata.aliases):
            if node.spec.of != of:
                raise UsageError(f"the calibration {name} is for {node.spec.of}, not for {of}")
            return _read(node, chip)
    fitting = [n.name for n in nodes if n.spec.of == of]
    hint = did_you_mean(name, [n.name for n in nodes]) or f"available: auto, none, {', '.join(fitting)}"
    raise UnknownNameError(f"no calibration is named {name!r}; {hint}")


def _others(graph: Graph, chip: str, nodes: list[Node[Calibration]]) -> str:
    """A hint at calibrations of other chips of the same publisher."""
    sources = {n.name: n.metadata.source for n in graph.of(Chip)}
    publisher = {name: graph[source].publisher for name, source in sources.items() if source is not None}
    names = sorted(n.name for n in nodes if publisher.get(n.spec.chip.name, "") == publisher.get(chip))
    return f"; for a rough estimate name one of another chip: {' or '.join(names)}" if names else ""


def serving_of(calibration: Calibrated) -> Serving:
    """Efficiency in serving; shares of rates and links are already in :class:`~trnspec.perf.lowering.machine.Machine`."""
    efficiency = calibration.efficiency
    return attrs.evolve(
        calibration.serving,
        score_passes=efficiency.score_passes,
        call=efficiency.call,
        step=efficiency.step,
        causal=efficiency.causal,
    )


_RATES = ("matmul", "attention", "memory", "chip", "server", "ultraserver", "network")
"""Figures that scale a published rate."""

_SERVING = ("weights", "cache", "link", "additive", "launch", "sample", "request", "padding")
"""Figures that only serving has."""


def _read(node: Node[Calibration], chip: str) -> Calibrated:
    spec = node.spec
    names = [f.name for f in attrs.fields(Efficiency)]
    figures = {name: getattr(spec.achieved, name) for name in names}
    values = {name: float(figure) for name, figure in figures.items() if figure is not None}
    serving = {name: float(figure) for name in _SERVING if (figure := getattr(spec.achieved, name)) is not None}
    for name in (*_RATES, "weights", "cache", "link"):
        if (values | serving).get(name) == 0.0:
            raise UsageError(f"{node.name} spec.achieved.{name} is 0x; expected more than 0, since times divide by it")
    spread = spec.spread
    ttft = spec.first
    other_chip = "" if spec.chip.name == chip else f"; fitted on {spec.chip.name}, not on {chip}"
    return Calibrated(
        node.name,
        Efficiency(**values),
        float(spread.low),
        float(spread.high),
        float(spread.coverage),
        f"{spec.software}, {spread.rows} rows, {float(spread.mean):.1%} mean error on held-out rows{other_chip}"
        + (f"; {node.metadata.note[0].lower()}{node.metadata.note[1:].rstrip('.')}" if node.metadata.note else ""),
        Serving(**serving),
        None if ttft is None else (float(ttft.low), float(ttft.high)),
    )
