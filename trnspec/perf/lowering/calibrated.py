"""Achieved efficiency of a chip, from the calibrations of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log
from typing import TYPE_CHECKING

import attrs
from attrs import field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluation.evidence import IDEAL as NO_LOSSES
from trnspec.evaluation.evidence import Evidence, Kind, Outside
from trnspec.model.calibration import Calibration
from trnspec.model.chip import Chip
from trnspec.perf.calibration.fit_range import EXPONENT, within
from trnspec.perf.lowering.efficiency import IDEAL, Efficiency
from trnspec.perf.serving.forward_pass import IDEAL as IDEAL_SERVING
from trnspec.perf.serving.forward_pass import Serving

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.calibration import Spread
    from trnspec.model.document import Node


_UNCALIBRATED = "no calibration: no losses, so that times are lower bounds"

TOLERANCE = 1.25
"""How far outside the range of a fit an input may be and count as inside."""


@frozen(kw_only=True)
class Interval:
    """Measured over computed times, and how far they spread elsewhere.

    Attributes:
        low: The lower end of the interval of rows held out of the fit.
        high: Its upper end.
        transfer: Both ends of the interval of rows on other chips and of other software.
        exponent: The power of the distance from the range of the fit by which the interval widens.
    """

    low: float
    high: float
    transfer: tuple[float, float]
    exponent: float

    def at(self, evidence: Evidence) -> tuple[float, float]:
        """Both ends for an evidence: those of the fit, or wider.

        Beyond the fit they are ``min(low, transfer low) / r^exponent`` and ``max(high, transfer high) * r^exponent``, where
        ``r`` is the factor of the input that is furthest outside.
        """
        if evidence.kind not in ("extrapolated", "transferred"):
            return self.low, self.high
        wider = max((o.factor for o in evidence.outside), default=1.0) ** self.exponent
        return min(self.low, self.transfer[0]) / wider, max(self.high, self.transfer[1]) * wider


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
        evidence: The kind of evidence, before the inputs are known.
        ranges: The range of each input of the fit.
        dtypes: The compute dtypes of the fit; empty if unknown.
        interval: The spread of step times or times per output token; ``None`` to keep ``low`` and ``high``.
        ttft: That of times to first token; ``None`` to keep ``ttft_interval``.
    """

    name: str = ""
    efficiency: Efficiency = IDEAL
    low: float = 1.0
    high: float = 1.0
    coverage: float = 0.0
    description: str = _UNCALIBRATED
    serving: Serving = IDEAL_SERVING
    ttft_interval: tuple[float, float] | None = None
    evidence: Evidence = field()
    ranges: Mapping[str, tuple[float, float]] = field(factory=dict, repr=False)
    dtypes: tuple[str, ...] = ()
    interval: Interval | None = field(default=None, repr=False)
    ttft: Interval | None = field(default=None, repr=False)

    @evidence.default
    def _own(self) -> Evidence:
        return Evidence(kind="estimate", reason=self.name, calibration=self.name) if self.name else NO_LOSSES

    def at(self, inputs: Mapping[str, float], dtype: str = "") -> Calibrated:
        """The calibration for some inputs: the kind of evidence, and intervals as wide as it demands.

        Args:
            inputs: By the names of :class:`trnspec.model.calibration.FittedOn`, as
                :func:`~trnspec.perf.calibration.fit_range.training_inputs` returns them.
            dtype: The compute dtype.
        """
        if not self.name:
            return self
        outside = sorted(self._outside(inputs, dtype), key=lambda o: -o.factor)
        if not outside:
            return self._with(self.evidence)
        kind: Kind = "transferred" if self.evidence.kind == "transferred" else "extrapolated"
        far = "; ".join(map(str, outside))
        reason = f"{far}; {self.evidence.reason}" if kind == "extrapolated" else f"{self.evidence.reason}; {far}"
        return self._with(attrs.evolve(self.evidence, kind=kind, reason=reason, outside=tuple(outside)))

    def _outside(self, inputs: Mapping[str, float], dtype: str) -> Iterator[Outside]:
        for name, (low, high) in self.ranges.items():
            value = inputs.get(name)
            if value is not None and (far := max(value / high, low / value)) > TOLERANCE:
                yield Outside(input=name, value=value, low=low, high=high, factor=far)
        if dtype and self.dtypes and dtype not in self.dtypes:
            yield Outside(input="dtype", value=dtype, low=", ".join(self.dtypes))

    def _with(self, evidence: Evidence) -> Calibrated:
        low, high = (self.low, self.high) if self.interval is None else self.interval.at(evidence)
        ttft = self.ttft_interval if self.ttft is None else self.ttft.at(evidence)
        return attrs.evolve(self, low=low, high=high, ttft_interval=ttft, evidence=evidence)


def calibrated(graph: Graph, chip: str, of: str, name: str = "auto", framework: str = "") -> Calibrated:
    """The calibration to use.

    Args:
        graph: The catalog.
        chip: Name of the chip.
        of: ``training`` or ``inference``.
        name: A name, or ``none``; ``auto`` for the chip's calibration with the most rows, or where it has none for that of
            the nearest chip of the same publisher.
        framework: The framework that runs, such as ``megatron``; calibrations of it are preferred. Empty for any.

    Raises:
        UnknownNameError: No calibration of that name; the message suggests the nearest.
        UsageError: It is of another kind than ``of``, or a share in it is 0. A calibration of another chip or framework is
            allowed; its evidence is ``transferred``.
    """
    if name == "none":
        return Calibrated()
    nodes = graph.of(Calibration)
    if name == "auto":
        own = [n for n in nodes if n.spec.of == of]
        chips = nearest(graph, chip, {n.spec.chip.name for n in own})
        if not chips:
            reason = f"no calibration of {chip} for {of}: no losses, so that times are lower bounds"
            return Calibrated(evidence=attrs.evolve(NO_LOSSES, reason=reason))
        own = [n for n in own if n.spec.chip.name == chips[0]]
        own = [n for n in own if framework and _runs(n.spec, framework)] or own
        return _read(max(own, key=lambda n: (n.spec.spread.rows, n.name)), chip, framework)
    for node in nodes:
        if name in (node.name, *node.metadata.aliases):
            if node.spec.of != of:
                raise UsageError(f"the calibration {name} is for {node.spec.of}, not for {of}")
            return _read(node, chip, framework)
    fitting = [n.name for n in nodes if n.spec.of == of]
    hint = did_you_mean(name, [n.name for n in nodes]) or f"available: auto, none, {', '.join(fitting)}"
    raise UnknownNameError(f"no calibration is named {name!r}; {hint}")


def nearest(graph: Graph, chip: str, among: Collection[str]) -> list[str]:
    """Chips of the same publisher, the chip itself first, then by generation, then by peak rate.

    Args:
        graph: The catalog.
        chip: Name of the chip.
        among: The chips to order.
    """
    nodes = {n.name: n for n in graph.of(Chip)}
    if chip not in nodes:
        return []

    def publisher(name: str) -> str:
        source = nodes[name].metadata.source if name in nodes else None
        return "" if source is None else graph[source].publisher

    def distance(name: str) -> tuple[float, ...]:
        ours, theirs = nodes[chip].spec, nodes[name].spec
        numbers = [None if c.generation is None else c.generation.accelerator for c in (ours, theirs)]
        apart = inf if None in numbers else abs(numbers[0] - numbers[1])  # type: ignore[operator]  # neither is None
        rates = [None if c.peak.dense is None else c.peak.dense.bf16 for c in (ours, theirs)]
        ratio = inf if None in rates else abs(log(float(rates[0]) / float(rates[1])))  # type: ignore[arg-type]  # as above
        return name != chip, apart, ratio

    own = publisher(chip)
    same = [n for n in among if n == chip or (own and n in nodes and publisher(n) == own)]
    return sorted(same, key=lambda name: (distance(name), name))


_FRAMEWORKS = {"nxd": "neuron", "deepspeed": "deepspeed", "llm-foundry": "llm foundry"}
"""What the software of a calibration is called, where it is not the name of the framework."""


def _runs(spec: Calibration, framework: str) -> bool:
    """Whether the software of a calibration is a framework."""
    return _FRAMEWORKS.get(framework, framework) in spec.software.lower()


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


def _read(node: Node[Calibration], chip: str, framework: str) -> Calibrated:
    spec = node.spec
    names = [f.name for f in attrs.fields(Efficiency)]
    figures = {name: getattr(spec.achieved, name) for name in names}
    values = {name: float(figure) for name, figure in figures.items() if figure is not None}
    serving = {name: float(figure) for name in _SERVING if (figure := getattr(spec.achieved, name)) is not None}
    for name in (*_RATES, "weights", "cache", "link"):
        if (values | serving).get(name) == 0.0:
            raise UsageError(f"{node.name} spec.achieved.{name} is 0x; expected more than 0, since times divide by it")
    spread = spec.spread
    other_chip = "" if spec.chip.name == chip else f"; fitted on {spec.chip.name}, not on {chip}"
    result = Calibrated(
        node.name,
        Efficiency(**values),
        coverage=float(spread.coverage),
        description=f"{spec.software}, {spread.rows} rows, {float(spread.mean):.1%} mean error on held-out rows{other_chip}"
        + (f"; {node.metadata.note[0].lower()}{node.metadata.note[1:].rstrip('.')}" if node.metadata.note else ""),
        serving=Serving(**serving),
        evidence=_evidence(node, chip, framework),
        ranges={} if spec.fitted_on is None else within(spec.fitted_on),
        dtypes=() if spec.fitted_on is None else spec.fitted_on.dtypes,
        interval=_interval(spread),
        ttft=None if spec.first is None else _interval(spec.first),
    )
    return result.at({})


def _interval(spread: Spread) -> Interval:
    low, high, transfer = float(spread.low), float(spread.high), spread.transfer
    return Interval(
        low=low,
        high=high,
        transfer=(low, high) if transfer is None else (float(transfer.low), float(transfer.high)),
        exponent=EXPONENT if spread.extrapolation is None else float(spread.extrapolation),
    )


def _evidence(node: Node[Calibration], chip: str, framework: str) -> Evidence:
    spec = node.spec
    chips = (spec.chip.name,) if spec.fitted_on is None else spec.fitted_on.chips
    fit = f"{spec.software}, {spec.spread.rows} rows"
    kind: Kind = "estimate"
    reason = f"{node.name} ({fit})"
    if chip not in chips:
        kind, reason = "transferred", f"{node.name} has no rows of {chip}, only of {', '.join(chips)} ({fit})"
    elif framework and not _runs(spec, framework):
        kind, reason = "transferred", f"{node.name} has no rows of {framework} ({fit})"
    return Evidence(
        kind=kind,
        reason=reason,
        calibration=node.name,
        chip=", ".join(chips),
        software=spec.software,
        rows=int(spec.spread.rows),
    )
