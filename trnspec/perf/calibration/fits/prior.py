"""Priors of fits: what calibrations know before the rows, how sure of it they are, and what the rows add.

A parameter ``x`` is a logarithm, or the logit of a share.  Before the rows it is normal about the value of the nearest calibration,
with a width that is the standard deviation between calibrations; without a calibration about a typical value.  A row is off by
:data:`~trnspec.perf.calibration.fits.uncertainty.OUTLYING`, so that the residual of a parameter is ``OUTLYING (x - prior) / width``.
See docs/explanation/performance/calibration.md for the formulas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.graph.graph import Graph
from trnspec.model.calibration import Achieved, Calibration
from trnspec.perf.calibration.fits.limits import LIMITS
from trnspec.perf.calibration.fits.search import scale
from trnspec.perf.calibration.fits.uncertainty import OUTLYING
from trnspec.perf.calibration.groups import GroupErrors
from trnspec.perf.calibration.measured.cells import fitted_hashes
from trnspec.perf.collectives.library import Library
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, stated

WIDTH = 1.0
"""Width of a parameter of a prior that fewer than :data:`SEVERAL` fits have: a factor of e, as about a typical value."""

WIDTHS = (0.5, 2.0)
"""The least and the largest width: a parameter that no fit determines is the same in all of them, and not known better."""

SEVERAL = 3
"""Fits from which on their spread is the width."""


@frozen(kw_only=True)
class FitPrior:
    """Prior of a fit.

    Attributes:
        name: The calibration; empty for typical values.
        relation: How its rows differ from the fitted ones; empty if they do not.
        chip: Its chip.
        values: Its parameters.
        widths: The width of each.
        ends: Measured over computed time, both ends of its interval, by phase.
    """

    name: str = ""
    relation: str = ""
    chip: str = ""
    values: Mapping[str, float] = field(factory=dict)
    widths: Mapping[str, float] = field(factory=dict)
    ends: Mapping[str, tuple[float, float]] = field(factory=dict)

    def named(self, free: Collection[str], typical: Mapping[str, float]) -> tuple[str, ...]:
        """The parameters of a fit: those that the rows depend on, and the others of the calibration."""
        return tuple(name for name in dict.fromkeys((*typical, *self.values)) if name in free or name in self.values)

    def centers(self, names: Sequence[str], typical: Mapping[str, float]) -> dict[str, float]:
        """The value of each parameter before the rows."""
        return {name: self.values.get(name, typical.get(name, 1.0)) for name in names}

    def residuals(self, names: Sequence[str], typical: Mapping[str, float], weight: float) -> dict[str, float]:
        """The residual of each parameter that is off by a factor of e.

        Args:
            names: The parameters.
            typical: Those of parameters that differ from ``weight`` without a calibration.
            weight: That of a parameter without a calibration.
        """
        return {n: OUTLYING / self.widths[n] if n in self.values else typical.get(n, weight) for n in names}

    def drawn(self, group: GroupErrors, enough: int) -> GroupErrors:
        """A group of rows whose interval is drawn towards that of the calibration where it has few clusters."""
        ends = self.ends.get(group.phase)
        share = min(group.clusters / enough, 1.0)
        if ends is None or share == 1.0:
            return group
        low, high = (a**share * b ** (1.0 - share) for a, b in zip((group.low, group.high), ends, strict=True))
        return attrs.evolve(group, low=low, high=high)


_ACHIEVED = [f.name for f in attrs.fields(Achieved)]

TYPICAL = FitPrior()
"""No calibration."""


def prior_of(  # what a calibration is chosen by
    graph: Graph,
    chip: str,
    of: str,
    name: str = "auto",
    *,
    framework: str = "",
    era: str = "",
    experts: bool | None = None,
    hashes: Collection[str] = (),
) -> FitPrior:
    """The prior of a fit: the nearest calibration that was not fitted to one of its rows.

    Nearest is what ``--calibration auto`` uses: of the chip, else of the nearest chip of its publisher; of these that of the framework,
    the kind of models and the era.

    Args:
        graph: The catalog.
        chip: The chip of the rows.
        of: ``training`` or ``inference``.
        name: The name of a calibration, ``auto``, or ``none`` for typical values.
        framework: The framework that ran; empty if unknown.
        era: The era of its release; empty if unknown.
        experts: Whether the models have experts; ``None`` for both.
        hashes: The hashes of the rows.

    Returns:
        The prior; typical values without any such calibration.

    Raises:
        UnknownNameError: No calibration of that name.
        UsageError: It is of another kind, or was fitted to one of the rows.
    """
    if name == "none":
        return TYPICAL
    used = _fitted_to(graph, hashes)
    known = calibrated(graph, chip, of, name, framework, era, experts=experts, without=used)
    if not known.name:
        return TYPICAL
    node = next(n for n in graph.of(Calibration) if n.name == known.name)
    # Fits have parameters with limits; whether attention is causal is a property of the rows.
    values = {n: value for n, value in stated(node.spec.achieved, _ACHIEVED).items() if n in LIMITS}
    spread = _spread(graph, of, used)
    phase = "step" if of == "training" else "tpot"
    ends = {phase: (known.low, known.high)} | ({} if known.ttft_interval is None else {"ttft": known.ttft_interval})
    prior = _named(known, node.spec.chip.name)
    return attrs.evolve(prior, values=values, widths={n: spread.get(n, WIDTH) for n in values}, ends=ends)


def library_of(
    graph: Graph, chip: str, name: str = "auto", *, framework: str, era: str = "", hashes: Collection[str] = ()
) -> tuple[FitPrior, Library] | None:
    """The same for collectives: the prior, and the protocols of the library; ``None`` without a calibration of the framework."""
    if name == "none":
        return None
    known = calibrated(graph, chip, "collectives", name, framework, era, without=_fitted_to(graph, hashes))
    if known.library is None or (name == "auto" and known.framework != framework):
        return None
    return attrs.evolve(_named(known, chip), ends={"collective": (known.low, known.high)}), known.library


def _fitted_to(graph: Graph, hashes: Collection[str]) -> set[str]:
    """The calibrations that were fitted to one of some rows."""
    rows = set(hashes)
    return {name for name, fitted in fitted_hashes(graph).items() if not rows.isdisjoint(fitted)}


def _named(known: Calibrated, chip: str) -> FitPrior:
    return FitPrior(
        name=known.name, chip=chip, relation=known.evidence.reason if known.evidence.kind == "transferred" else ""
    )


def _spread(graph: Graph, of: str, without: Collection[str]) -> dict[str, float]:
    """The standard deviation of each parameter between fits, within :data:`WIDTHS`; several documents of one fit count once."""
    fits = {
        n.spec.tables or n.spec.rows or n.name: n
        for n in graph.of(Calibration)
        if n.spec.of == of and n.name not in without
    }
    values: dict[str, list[float]] = {}
    for node in fits.values():
        for name, value in stated(node.spec.achieved, _ACHIEVED).items():
            values.setdefault(name, []).append(scale(name, value))
    return {
        name: float(np.clip(np.std(each, ddof=1), *WIDTHS)) for name, each in values.items() if len(each) >= SEVERAL
    }


def commonest(values: Sequence[str]) -> str:
    """The value that most rows have; of equals the first in alphabetical order."""
    count = Counter(sorted(values))
    return count.most_common(1)[0][0] if count else ""
