"""Achieved efficiency of a chip, from the calibrations of a catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf, log
from typing import get_args

import attrs
from attrs import field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evidence import IDEAL as NO_LOSSES
from trnspec.evidence import PAGE, Evidence, GroupError, Kind, Outside
from trnspec.graph.graph import Graph
from trnspec.model.calibration import Calibration, ErrorGroup, Spread
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.perf.calibration.fit_range import EXPONENT, within
from trnspec.perf.collectives.library import Library, LibraryProtocol
from trnspec.perf.collectives.schedules import Kind as Collective
from trnspec.perf.lowering.machine import IDEAL, Efficiency
from trnspec.perf.serving.forward_pass import IDEAL as IDEAL_SERVING
from trnspec.perf.serving.forward_pass import Serving

_UNCALIBRATED = "no calibration: no losses, so that times are lower bounds"

TOLERANCE = 1.25
"""Factor outside the range of a fit up to which an input counts as inside."""


@frozen(kw_only=True)
class ErrorInterval:
    """Measured over computed times, and how far they spread elsewhere.

    Attributes:
        low: The lower end of the interval of rows held out of the fit.
        high: Its upper end.
        transfer: Both ends of the interval of rows on other chips and of other software.
        other_chips: Those on other chips with the same software; ``None`` where they are not known.
        exponent: The power of the distance from the range of the fit by which the interval widens.
        groups: The groups of rows with an interval of their own.
        error: The errors of the rows.
    """

    low: float
    high: float
    transfer: tuple[float, float]
    exponent: float
    groups: tuple[ErrorGroup, ...]
    error: GroupError | None
    other_chips: tuple[float, float] | None

    def of(self, scale: str, *, experts: bool | None = None, size: float = 0.0) -> ErrorInterval:
        """The interval of the nearest group of rows; the pooled one without such a group.

        Of groups for a scale and for models with or without experts, that which states both comes before one that states one
        of them; of groups of collectives the one of the nearest size counts.  A group is wider or narrower than all rows; the
        interval elsewhere stays.

        Args:
            scale: The scale; empty if unknown.
            experts: Whether the model has experts; ``None`` if unknown.
            size: The size of a collective [B]; 0 for steps.
        """
        models = None if experts is None else "experts" if experts else "dense"
        matching = {
            g: max(size / float(g.size.high), float(g.size.low) / size, 1.0) if size and g.size is not None else 1.0
            for g in self.groups
            if (g.size is not None) == (size > 0.0) and g.scale in (None, scale or None) and g.models in (None, models)
        }
        if not matching:
            return self
        nearest = min(
            matching, key=lambda g: (matching[g], 0 if size else -(g.scale is not None) - (g.models is not None))
        )
        error = GroupError(
            phase=nearest.phase, rows=int(nearest.rows), clusters=int(nearest.clusters), mean=float(nearest.mean),
            median=float(nearest.median), scale=nearest.scale or "", models=nearest.models or "",
        )  # fmt: skip
        return attrs.evolve(self, low=float(nearest.low), high=float(nearest.high), groups=(), error=error)

    def at(self, evidence: Evidence) -> tuple[float, float]:
        """Both ends for an evidence: those of the fit, or wider.

        Beyond the range of the fit they are ``low / r^exponent`` and ``high * r^exponent``, where ``r`` is the factor of the
        input that is furthest outside.  On another chip, with another framework, and where something differs that is not a
        number, such as the dtype or the attention path, they are at least those of ``transfer``.  The computed time is always
        inside, also where all rows of a fit are off in one direction: it is not corrected for them.
        """
        low, high = min(self.low, 1.0), max(self.high, 1.0)
        if evidence.is_elsewhere:
            low, high = min(low, self.transfer[0]), max(high, self.transfer[1])
        wider = max((o.factor for o in evidence.outside), default=1.0) ** self.exponent
        return low / wider, high * wider


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
        framework: The framework of its rows; empty if it is not stated.
        serving: Efficiency that only serving has, in addition to ``efficiency``.
        ttft_interval: Measured over computed time to first token, low and high; ``None`` to use ``low`` and ``high``.
        evidence: The kind of evidence, before the inputs are known.
        ranges: The range of each input of the fit.
        dtypes: The compute dtypes of the fit; empty if unknown.
        interval: The spread of step times or times per output token; ``None`` to keep ``low`` and ``high``.
        ttft: That of times to first token; ``None`` to keep ``ttft_interval``.
        library: The protocols of collectives; ``None`` where the calibration has none.
        collectives: The collectives of the fit; empty if unknown.
        writes_scores: Whether the fit has rows of training that write attention scores to memory.
    """

    name: str = ""
    efficiency: Efficiency = IDEAL
    low: float = 1.0
    high: float = 1.0
    coverage: float = 0.0
    description: str = _UNCALIBRATED
    framework: str = ""
    serving: Serving = IDEAL_SERVING
    ttft_interval: tuple[float, float] | None = None
    evidence: Evidence = NO_LOSSES
    ranges: Mapping[str, tuple[float, float]] = field(factory=dict, repr=False)
    dtypes: tuple[str, ...] = ()
    interval: ErrorInterval | None = field(default=None, repr=False)
    ttft: ErrorInterval | None = field(default=None, repr=False)
    library: Library | None = field(default=None, repr=False)
    collectives: tuple[str, ...] = ()
    writes_scores: bool = True

    def on_another_chip(self) -> Calibrated:
        """The calibration with the intervals on another chip with the same software."""
        interval, ttft = (
            i if i is None or i.other_chips is None else attrs.evolve(i, transfer=i.other_chips)
            for i in (self.interval, self.ttft)
        )
        return attrs.evolve(self, interval=interval, ttft=ttft)

    def at(
        self,
        inputs: Mapping[str, float],
        dtype: str = "",
        *,
        scale: str = "",
        experts: bool | None = None,
        flash: bool = True,
        collective: str = "",
        pools: bool = False,
    ) -> Calibrated:
        """The calibration for some inputs: the kind of evidence, and intervals as wide as it demands.

        Args:
            inputs: By the names of :class:`trnspec.model.calibration.FittedOn`, as
                :func:`~trnspec.perf.calibration.fit_range.training_inputs` returns them; of a collective ``size``,
                ``ranks`` and ``servers``.
            dtype: The compute dtype.
            scale: See :func:`~trnspec.perf.calibration.fit_range.scale_of`; empty if unknown.
            experts: Whether the model has experts; ``None`` if unknown.
            flash: Whether attention scores stay on chip.
            collective: The collective; empty for a step or a pass.
            pools: Whether prefill and decoding have separate pools, of which the fit has no rows.
        """
        if not self.name:
            return self
        scale = scale if not collective else "cluster" if inputs["servers"] > 1.0 else "server"
        size = inputs["size"] if collective else 0.0
        interval, ttft = (
            None if i is None else i.of(scale, experts=experts, size=size) for i in (self.interval, self.ttft)
        )
        factors = {n: max(inputs[n] / high, low / inputs[n]) for n, (low, high) in self.ranges.items() if n in inputs}
        outside = [
            Outside(input=name, value=inputs[name], low=self.ranges[name][0], high=self.ranges[name][1], factor=factor)
            for name, factor in factors.items()
            if factor > TOLERANCE
        ]
        if dtype and self.dtypes and dtype not in self.dtypes:
            outside.append(Outside(input="dtype", value=dtype, low=", ".join(self.dtypes)))
        outside.sort(key=lambda o: -o.factor)
        if not (flash or self.writes_scores):
            outside.append(Outside(input="attention", value="without flash attention", low="flash attention"))
        if pools:
            outside.append(Outside(input="pools", value="disaggregated", low="aggregated"))
        if collective and self.collectives and collective not in self.collectives:
            outside.append(Outside(input="kind", value=collective, low=", ".join(self.collectives)))
        evidence = self.evidence
        if outside:
            kind: Kind = "transferred" if evidence.kind == "transferred" else "extrapolated"
            far = "; ".join(map(str, outside))
            reason = f"{far}; {evidence.reason}" if kind == "extrapolated" else f"{evidence.reason}; {far}"
            evidence = attrs.evolve(evidence, kind=kind, reason=reason, outside=tuple(outside))
        low, high = (self.low, self.high) if interval is None else interval.at(evidence)
        errors = tuple(i.error for i in (interval, ttft) if i is not None and i.error is not None)
        return attrs.evolve(
            self, low=low, high=high, ttft_interval=self.ttft_interval if ttft is None else ttft.at(evidence),
            evidence=attrs.evolve(evidence, errors=errors), interval=interval, ttft=ttft,
        )  # fmt: skip


def calibrated(  # what a calibration is chosen by
    graph: Graph,
    chip: str,
    of: str,
    name: str = "auto",
    framework: str = "",
    era: str = "",
    *,
    experts: bool | None = None,
    without: Collection[str] = (),
) -> Calibrated:
    """The calibration to use.

    ``auto`` chooses among the calibrations of chips of the same publisher: for inference one of models with or without
    experts, as needed; of a chip of the same generation; of the framework, else of any; of the nearest chip, that itself
    first; of such models, else of both, else of the other; of the era, which begins with a release, else of the newest that
    begins before it, or of the oldest; then the one with the most rows.

    Args:
        graph: The catalog.
        chip: Name of the chip.
        of: ``training``, ``inference``, ``collectives`` or ``kernels``.
        name: A name, or ``none``, or ``auto``.
        framework: The framework that runs, such as ``megatron``; empty for any.
        era: The era of its release; empty for the newest.
        experts: Whether the model has experts; ``None`` for any.
        without: Calibrations that ``auto`` does not choose.

    Raises:
        UnknownNameError: No calibration of that name; the message suggests the nearest.
        UsageError: It is of another kind than ``of``, or a share in it is 0. A calibration of another chip, framework, era or
            kind of models is allowed; its evidence is ``transferred``.
    """
    if name == "none":
        return Calibrated()
    wanted = _Wanted(chip, framework, era, "" if experts is None else "experts" if experts else "dense")
    nodes = graph.of(Calibration)
    if name == "auto":
        own = [n for n in nodes if n.spec.of == of and n.name not in without]
        chips = distances(graph, chip, {n.spec.chip.name for n in own})
        if not chips:
            reason = f"no calibration of {chip} for {of}: no losses, so that times are lower bounds"
            return Calibrated(evidence=attrs.evolve(NO_LOSSES, reason=reason))
        known = [n for n in own if n.spec.chip.name in chips]
        return _read(max(known, key=lambda n: wanted.rank(n, chips)), wanted)
    for node in nodes:
        if name in (node.name, *node.metadata.aliases):
            if node.spec.of != of:
                raise UsageError(f"the calibration {name} is for {node.spec.of}, not for {of}")
            return _read(node, wanted)
    fitting = [n.name for n in nodes if n.spec.of == of]
    hint = did_you_mean(name, [n.name for n in nodes]) or f"available: auto, none, {', '.join(fitting)}"
    raise UnknownNameError(f"no calibration is named {name!r}; {hint}")


@frozen
class _Wanted:
    """Criteria of the choice of a calibration; see :func:`calibrated`."""

    chip: str
    framework: str
    era: str
    models: str

    def rank(self, node: Node[Calibration], chips: Mapping[str, tuple[bool, float, float]]) -> tuple[object, ...]:
        """The larger, the better it fits.

        Args:
            node: The calibration.
            chips: The distance of each chip, the nearest first.
        """
        spec, era = node.spec, node.spec.era or ""
        other, apart, ratio = chips[spec.chip.name]
        # Of one generation: of its number, or, where one has none, of about its peak rate.
        is_alike = not other or apart == 0 or (apart == inf and ratio <= log(TOLERANCE))
        had_begun = not self.era or era <= self.era
        return (
            # Of rows of other models times on Trainium are off by 1.4 instead of 1.1; those of another chip by less.
            spec.of == "inference" and (not self.models or spec.models in (None, self.models)),
            # Within a generation software differs more than chips, whose published rates are known.
            is_alike,
            bool(self.framework) and _framework(spec) == self.framework,
            (-other, -apart, -ratio),
            (spec.models is None) + 2 * (spec.models == self.models) if self.models else spec.models is None,
            # Eras that had begun come first, the newest of them; else the oldest that had not.
            had_begun,
            era if had_begun else tuple(-ord(c) for c in era),
            spec.spread.rows,
            -list(chips).index(spec.chip.name),
            node.name,
        )

    def near(self, era: str) -> bool:
        """Whether an era had begun, and not long before."""
        years = [int(text[:4]) if text[:4].isdigit() else 0 for text in (self.era, era)]
        return era == self.era or (years[1] > 0 and era <= self.era and years[0] - years[1] <= _RECENT)


_RECENT = 3
"""Years within which releases of a software count as the same era, where there is no newer one."""


def _framework(spec: Calibration) -> str:
    return spec.framework or spec.software.lower()


def nearest(graph: Graph, chip: str, among: Collection[str]) -> list[str]:
    """Chips of the same publisher, the chip itself first, then by generation, then by peak rate."""
    return [*distances(graph, chip, among)]


def distances(graph: Graph, chip: str, among: Collection[str]) -> dict[str, tuple[bool, float, float]]:
    """The chips of :func:`nearest` in their order: whether it is another one, generations apart, logarithm of the ratio of rates.

    Rates are compared in whole percent: 989.4 and 989.5 TFLOPS are equally near.
    """
    nodes = {n.name: n for n in graph.of(Chip)}
    if chip not in nodes:
        return {}
    sources = {name: nodes[name].metadata.source for name in {chip, *among} & nodes.keys()}
    publishers = {name: "" if source is None else graph.node(source).spec.publisher for name, source in sources.items()}
    ours = nodes[chip].spec
    same: dict[str, tuple[bool, float, float]] = {}
    for name in among:
        if name == chip or (publishers[chip] and publishers.get(name) == publishers[chip]):
            theirs = nodes[name].spec
            numbers = [None if c.generation is None else c.generation.accelerator for c in (ours, theirs)]
            apart = inf if None in numbers else abs(numbers[0] - numbers[1])  # type: ignore[operator]  # neither is None
            rates = [None if c.peak.dense is None else c.peak.dense.bf16 for c in (ours, theirs)]
            ratio = inf if None in rates else round(abs(log(float(rates[0]) / float(rates[1]))), 2)  # type: ignore[arg-type]  # as above
            same[name] = name != chip, apart, ratio
    return dict(sorted(same.items(), key=lambda one: (one[1], one[0])))


def serving_of(calibration: Calibrated) -> Serving:
    """Efficiency in serving; shares of rates and links are already in :class:`~trnspec.perf.lowering.machine.Machine`."""
    efficiency = calibration.efficiency
    return attrs.evolve(
        calibration.serving,
        matmul_passes=efficiency.matmul_passes,
        score_passes=efficiency.score_passes,
        call=efficiency.call,
        step=efficiency.step,
        causal=efficiency.causal,
    )


_RATES = (
    *("matmul", "matmul_fp8", "matmul_fp4", "attention", "memory"),
    *("chip", "server", "ultraserver", "network", "exchange"),
)
"""Figures that scale a published rate."""

_SERVING = {f.name for f in attrs.fields(Serving)} - {f.name for f in attrs.fields(Efficiency)}
"""Figures that only serving has."""

SCORE_PASSES = 4.0
"""Passes over written scores where the rows of a calibration of training write none; others have 4.1 to 4.7."""


def stated(figures: object, names: Iterable[str]) -> dict[str, float]:
    """The numbers among some figures of an object that it states."""
    return {name: float(figure) for name in names if (figure := getattr(figures, name)) is not None}


def _read(node: Node[Calibration], wanted: _Wanted) -> Calibrated:
    spec = node.spec
    values = stated(spec.achieved, (f.name for f in attrs.fields(Efficiency)))
    serving = stated(spec.achieved, _SERVING)
    for name in (*_RATES, "weights", "cache", "single_core", "link"):
        if (values | serving).get(name) == 0.0:
            raise UsageError(f"{node.name} spec.achieved.{name} is 0x; expected more than 0, since times divide by it")
    writes_scores = spec.of != "training" or spec.achieved.score_passes is not None
    if not writes_scores:
        values["score_passes"] = SCORE_PASSES
    spread, differences = spec.spread, _differences(spec, wanted)
    other_chip = "" if spec.chip.name == wanted.chip else f"; fitted on {spec.chip.name}, not on {wanted.chip}"
    result = Calibrated(
        node.name,
        Efficiency(**values),
        coverage=float(spread.coverage),
        description=f"{spec.software}, {spread.rows} rows, {float(spread.mean):.1%} mean error on held-out rows{other_chip}"
        + (f"; {node.metadata.note[0].lower()}{node.metadata.note[1:].rstrip('.')}" if node.metadata.note else ""),
        framework=spec.framework or "",
        serving=Serving(**serving),
        evidence=_evidence(node, differences),
        ranges={} if spec.fitted_on is None else within(spec.fitted_on),
        dtypes=() if spec.fitted_on is None else spec.fitted_on.dtypes,
        interval=_interval(spread, _PHASES.get(spec.of, spec.of), spec.groups),
        ttft=None if spec.first is None else _interval(spec.first, "ttft", spec.groups),
        library=_library(node) if spec.of == "collectives" else None,
        collectives=() if spec.fitted_on is None else spec.fitted_on.collectives,
        writes_scores=writes_scores,
    )
    return (result.on_another_chip() if [*differences] == ["chip"] else result).at({})


def _library(node: Node[Calibration]) -> Library:
    """The protocols of a calibration of collectives; without any, one with its achieved times and shares.

    Raises:
        UsageError: A share is 0.
    """
    numbers = [f.name for f in attrs.fields(LibraryProtocol) if f.name not in {"name", "algorithm", "kinds"}]
    protocols = []
    for i, one in enumerate(node.spec.protocols):
        values = stated(one, numbers)
        for name in ("link", "network"):
            if not values[name]:
                place = f"{node.name} spec.protocols[{i}].{name}"
                raise UsageError(f"{place} is 0x; expected more than 0, since times divide by it")
        protocols.append(LibraryProtocol(name=one.name, algorithm=one.algorithm, kinds=one.kinds, **values))
    achieved = node.spec.achieved
    if not protocols:
        times = {name: float(getattr(achieved, name) or 0.0) for name in ("call", "hop", "network_hop")}
        links = {"link": float(achieved.link or 1.0) * float(achieved.server or 1.0)}
        links["network"] = float(achieved.link or 1.0) * float(achieved.network or 1.0)
        protocols.append(
            LibraryProtocol(name="achieved", algorithm="direct", kinds=get_args(Collective), **times, **links)
        )
    return Library(protocols=tuple(protocols), **stated(achieved, ("host", "wait", "copies")))


_PHASES = {"training": "step", "inference": "tpot", "collectives": "collective"}
"""Quantities whose errors ``spread`` states."""


def _interval(spread: Spread, phase: str, groups: Sequence[ErrorGroup]) -> ErrorInterval:
    low, high, transfer, chips = float(spread.low), float(spread.high), spread.transfer, spread.other_chips
    return ErrorInterval(
        low=low,
        high=high,
        transfer=(low, high) if transfer is None else (float(transfer.low), float(transfer.high)),
        other_chips=None if chips is None else (float(chips.low), float(chips.high)),
        exponent=EXPONENT if spread.extrapolation is None else float(spread.extrapolation),
        groups=tuple(g for g in groups if g.phase == phase),
        error=GroupError(phase=phase, rows=int(spread.rows), mean=float(spread.mean), median=float(spread.median)),
    )


def _chips(spec: Calibration) -> tuple[str, ...]:
    return (spec.chip.name,) if spec.fitted_on is None else spec.fitted_on.chips


def _differences(spec: Calibration, wanted: _Wanted) -> dict[str, str]:
    """Differences between the wanted conditions and the rows of a calibration, by condition."""
    lacks: dict[str, str] = {}
    if wanted.chip not in (chips := _chips(spec)):
        lacks["chip"] = f"no rows of {wanted.chip}, only of {', '.join(chips)}"
    if wanted.framework and (stated := _framework(spec)) != wanted.framework:
        lacks["framework"] = f"no rows of {wanted.framework}" + (f", only of {stated}" if stated else "")
    if wanted.era and not wanted.near(spec.era or ""):
        lacks["era"] = f"no rows of {wanted.era}" + (f", only of {spec.era}" if spec.era else "")
    if wanted.models and spec.models not in (None, wanted.models):
        lacks["models"] = f"no rows of models {'with' if wanted.models == 'experts' else 'without'} experts"
    return lacks


def _evidence(node: Node[Calibration], lacks: Mapping[str, str]) -> Evidence:
    """The evidence of a calibration, of which some differences are known."""
    spec = node.spec
    fit = f"{spec.software}, {spec.spread.rows} rows"
    differences = "; ".join(lacks.values())
    return Evidence(
        kind="transferred" if differences else "estimate",
        reason=f"{node.name} has {differences} ({fit})" if differences else f"{node.name} ({fit})",
        calibration=node.name,
        chip=", ".join(_chips(spec)),
        software=spec.software,
        rows=int(spec.spread.rows),
        framework=spec.framework or "",
        era=spec.era or "",
        page=PAGE,
    )
