"""One fit for all kinds of rows: parameters by a search, errors of the fit and of held-out rows, and their interval."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fits.prior import TYPICAL, FitPrior
from trnspec.perf.calibration.fits.search import SearchResult, Space, search
from trnspec.perf.calibration.fits.uncertainty import Groups, Information
from trnspec.perf.calibration.groups import COVERAGE, ENOUGH, GroupErrors, groups, quantile
from trnspec.perf.calibration.measured.case import Case, ModelCase, Part
from trnspec.perf.calibration.transfer import Beyond
from trnspec.perf.collectives.library import Library

Holdout = Literal["model", "chip", "framework", "parameters", "seq", "ranks"]
"""Rows that are held out together: all of a model, of a chip or of a framework; or those above the middle of the range of an input."""

INPUTS: tuple[Holdout, ...] = ("parameters", "ranks", "seq")
"""Inputs of steps and of requests."""

Solution = TypeVar("Solution")
AnyCase = TypeVar("AnyCase", bound="Case")


class Columns(Protocol):
    """Cases as arrays."""

    def times(self, values: Mapping[str, Any]) -> Mapping[Part, Any]:
        """Computed times [s] by part, the last axis is the rows; ``values`` are parameters, numbers or arrays over the rows."""
        ...  # pragma: no cover


@frozen(kw_only=True)
class FitModel:
    """The fit of one kind of rows.

    Attributes:
        parts: The times that are fitted; of the first every row has one, of others as many as ``least`` are needed.
        least: Least number of rows without a calibration as the prior.
        columns: Function from cases to arrays.
        space: Function from cases and a prior to the parameters.
        groups: Function from a case to the groups whose deviations it has.
        weights: Function from cases and a part to the weight of each, before and after the loss.
        folds: Function from cases to the group that each is held out with.
        whole: Whether groups are held out whole even where there are few of them.
        warm: Whether a fit without a group begins at the fit to all rows.
    """

    parts: tuple[Part, ...]
    least: int
    columns: Callable[[Sequence[Any]], Columns]
    space: Callable[[Sequence[Any], FitPrior], Space]
    groups: Callable[[Any], Groups]
    weights: Callable[[Sequence[Any], Part], tuple[Any, Any]] = lambda cases, _: (np.ones(len(cases)),) * 2
    folds: Callable[[Sequence[Any]], Sequence[str]] = lambda cases: [case.model for case in cases]
    whole: bool = False
    warm: bool = True

    def timed(self, cases: Sequence[Case], prior: FitPrior) -> dict[Part, Any]:
        """The measured times of the parts that are fitted [s], NaN where there is none."""
        times = {part: np.array([case.measured(part) or np.nan for case in cases]) for part in self.parts}
        least = 1 if prior.name else self.least
        return {p: t for p, t in times.items() if p == self.parts[0] or (~np.isnan(t)).sum() >= least}

    def times(self, cases: Sequence[Case], found: SearchResult, *, own: bool = True) -> Mapping[Part, Any]:
        """Computed times of cases [s], with the parameters of their groups, or those that all have in common."""
        return self.columns(cases).times(found.arrays([self.groups(case) if own else {} for case in cases]))

    def solve(
        self, cases: Sequence[Case], prior: FitPrior = TYPICAL, start: SearchResult | None = None
    ) -> SearchResult:
        """The parameters of some cases; those of the prior without any.

        Args:
            cases: The measurements.
            prior: What is known before them.
            start: Where the search begins: the fit to more rows.
        """
        space = self.space(cases, prior)
        if not cases:
            return SearchResult(space, space.centers)
        columns, timed = self.columns(cases), self.timed(cases, prior)
        known = {part: np.flatnonzero(~np.isnan(times)) for part, times in timed.items()}
        weights = [[w[rows] for w in self.weights(cases, part)] for part, rows in known.items()]
        inner, outer = (np.concatenate(each) for each in zip(*weights, strict=True))

        def log_errors(values: dict[str, Any]) -> Any:
            computed = columns.times(values)
            each = [np.log(computed[part][..., rows] / timed[part][rows]) for part, rows in known.items()]
            return np.concatenate(each, axis=-1)

        rows = np.concatenate([*known.values()])
        groups = [self.groups(case) for case in cases]
        begin = start if self.warm else None
        return search(space, groups, log_errors, rows=rows, inner=inner, outer=outer, start=begin)


@frozen(kw_only=True)
class Errors:
    """Errors of one measured time: computed over measured time minus 1.

    Attributes:
        cases: The rows, first those of the fit.
        fit: The error of each by the fit to all rows; rows that were not fitted have none.
        held_out: The error of each by a fit to others.
        elsewhere: The error of each by a fit to other chips; ``None`` where it was not made.
        ends: Measured over computed time at both ends of the interval; ``None`` for those of ``held_out``.
    """

    cases: tuple[Any, ...] = field(repr=False)
    fit: Any
    held_out: Any
    elsewhere: Any = None
    ends: tuple[float, float] | None = None

    def of(self, mask: Any) -> Errors:
        """The errors of some rows."""
        cases = tuple(c for c, kept in zip(self.cases, mask, strict=True) if kept)
        return Errors(cases=cases, fit=self.fit[mask[: len(self.fit)]], held_out=self.held_out[mask], ends=self.ends)

    def with_rows(self, cases: Sequence[Case], errors: Any) -> Errors:
        """The errors, and those of rows that were not part of the fit."""
        return attrs.evolve(self, cases=(*self.cases, *cases), held_out=np.concatenate([self.held_out, errors]))

    def summary(self, *, held_out: bool) -> tuple[float, float, float]:
        """Mean, median and worst absolute error, of the fit to all rows or of held-out rows."""
        absolute = np.abs(self.held_out if held_out else self.fit)
        return float(np.mean(absolute)), float(np.median(absolute)), float(np.max(absolute))

    @property
    def low(self) -> float:
        """Measured over computed time of held-out rows, at the lower end of the interval."""
        return self._end(0)

    @property
    def high(self) -> float:
        """The same, at the upper end."""
        return self._end(1)

    def _end(self, end: int) -> float:
        """Every number of ranks has the same weight, so that many rows of one server do not set the width for large systems."""
        if self.ends is not None:
            return self.ends[end]
        level = 0.5 * (1.0 + (2 * end - 1) * COVERAGE)
        return quantile(1.0 / (1.0 + self.held_out), np.array([c.ranks for c in self.cases]), level)


@frozen(kw_only=True)
class Fitted:
    """The result of a fit: what the document of a chip and its software states.

    Attributes:
        cases: The fitted rows.
        values: The parameters.
        errors: The errors of each measured time.
        chip: The chip.
        framework: The framework, as ``--framework`` names it; empty if unknown.
        era: The era of its release.
        models: ``dense`` or ``experts``; empty for both.
        found: The result of the search, for all chips and eras of the rows; ``None`` for a library of collectives.
        prior: What was known before the rows.
        learned: What the rows add to it, by parameter.
        beyond: How far the fit is off beyond its rows, for each measured time.
        groups: The errors of each group of held-out rows.
        fitted_on: What the rows have in common and their ranges.
        library: The protocols of a collective library.
        roofs: The fields of each :class:`~trnspec.model.calibration.KernelRoof`.
        note: A note for readers, such as that the rows are of other chips.
    """

    cases: tuple[Any, ...] = field(repr=False)
    values: Mapping[str, float]
    errors: Mapping[Part, Errors]
    chip: str = ""
    framework: str = ""
    era: str = ""
    models: str = ""
    found: SearchResult | None = field(default=None, repr=False)
    prior: FitPrior = field(default=TYPICAL, repr=False)
    learned: tuple[Information, ...] = field(default=(), repr=False)
    beyond: tuple[Beyond, ...] = ()
    groups: tuple[GroupErrors, ...] = ()
    fitted_on: Mapping[str, Any] = field(factory=dict)
    library: Library | None = None
    roofs: tuple[Mapping[str, Any], ...] = ()
    note: str = ""

    @property
    def main(self) -> Errors:
        """The errors of the time that every row has."""
        return next(iter(self.errors.values()))

    def of(self, groups: Groups) -> Fitted:
        """The fit with the parameters of a chip and an era."""
        assert self.found is not None
        values, known = self.found.values(groups), self.found.posterior
        learned = () if known is None else tuple(known.learned(values, groups))
        return attrs.evolve(self, values=values, learned=learned)


def fit(
    model: FitModel, cases: Sequence[Case], holdouts: Sequence[Holdout] = ("model",), prior: FitPrior = TYPICAL
) -> dict[Holdout, Fitted]:
    """The fit to cases with errors of held-out rows, by what is held out; the parameters are the same.

    Args:
        model: The fit of this kind of rows.
        cases: The measurements.
        holdouts: What is held out together.
        prior: What is known before the rows.

    Raises:
        UsageError: Too few rows, rows of too few chips, or scipy is not installed.
    """
    least = 1 if prior.name else model.least
    if not cases:
        raise UsageError("there are no rows to fit")
    if len(cases) < least:
        raise UsageError(f"{len(cases)} rows are too few to fit; expected at least {least}")
    found = model.solve(cases, prior)
    seen, timed = model.times(cases, found), model.timed(cases, prior)
    unseen: dict[Holdout, Mapping[Part, Any]] = {}
    for holdout in holdouts:
        masks = [out for _, out in splits(model, cases, (holdout,))]
        if not masks:
            only = model.folds(cases)[0] if holdout == "model" else getattr(cases[0], holdout)
            raise UsageError(f"with rows of {only} only, errors on another {holdout} cannot be estimated")
        unseen[holdout] = held_out(cases, masks, lambda some: model.solve(some, prior, found), model.times)
    fits = {}
    for holdout in holdouts:
        times = (seen, unseen[holdout], unseen.get("chip") if holdout == "model" else None)
        errors = {}
        for part, measured in timed.items():
            if (known := ~np.isnan(measured)).any():
                off = [None if each is None else (each[part] / measured - 1.0)[known] for each in times]
                rows = tuple(c for c in cases if c.measured(part))
                errors[part] = Errors(cases=rows, fit=off[0], held_out=off[1], elsewhere=off[2])
        fits[holdout] = Fitted(cases=tuple(cases), values={}, errors=errors, found=found, prior=prior).of({})
    return fits


def held_out(
    cases: Sequence[AnyCase],
    masks: Sequence[Any],
    solve: Callable[[list[AnyCase]], Solution],
    times: Callable[[list[AnyCase], Solution], Mapping[Part, Any]],
) -> dict[Part, Any]:
    """Computed times of each row [s] by a fit to the rows outside its mask; NaN for rows of no mask.

    Args:
        cases: The measurements.
        masks: The rows that are held out together.
        solve: Function from cases to a fit.
        times: Function from cases and a fit to computed times by part.
    """
    result: dict[Part, Any] = {}
    for mask in masks:
        rest, unseen = ([c for c, out in zip(cases, mask, strict=True) if out == held] for held in (False, True))
        for part, values in times(unseen, solve(rest)).items():
            result.setdefault(part, np.full(len(cases), np.nan))[mask] = values
    return result


def splits(model: FitModel, cases: Sequence[Case], holdout: Collection[Holdout]) -> Iterator[tuple[Any, Any]]:
    """Masks of the rows of a fit, and of those that it computes: none of these has a model, chip or framework of the fit.

    Args:
        model: The fit of this kind of rows.
        cases: The rows.
        holdout: What is held out; of several all are new to the fit, but inputs are held out in turn.
    """
    if names := [name for name in holdout if name in INPUTS]:
        for name in names:
            yield from _above(cases, name)
        return
    by: dict[str, Any] = {"chip": [c.chip for c in cases], "framework": [c.framework for c in cases]}
    labels = model.folds(cases)
    each = [
        folds(labels) if name == "model" and not model.whole else of_groups(by.get(name, labels)) for name in holdout
    ]
    for masks in itertools.product(*each):
        kept, out = ~np.logical_or.reduce(masks), np.logical_and.reduce(masks)
        if out.any():
            yield kept, out


def _above(cases: Sequence[Any], name: str) -> Iterator[tuple[Any, Any]]:
    """Masks of rows up to the middle of the range of an input of their chip and framework, on a logarithmic scale, and of those above."""
    if not all(isinstance(case, ModelCase) for case in cases):
        return
    values: dict[tuple[str, ...], list[float]] = {}
    keys = [(c.chip, c.framework, c.models) for c in cases]
    for key, case in zip(keys, cases, strict=True):
        values.setdefault(key, []).append(case.inputs[name])
    middles = {key: (min(each) * max(each)) ** 0.5 for key, each in values.items()}
    out = np.array([case.inputs[name] > middles[key] for key, case in zip(keys, cases, strict=True)])
    if out.any():
        yield ~out, out


def of_groups(labels: Sequence[str]) -> list[Any]:
    """Masks of the rows of each group; none where all are of one."""
    each = np.array(labels)
    names = sorted(set(labels))
    return [each == name for name in names] if len(names) > 1 else []


def folds(groups: Sequence[str]) -> list[Any]:
    """Masks of at most eight folds of whole models; with fewer than five models, of every fifth row."""
    names = sorted(set(groups))
    rows = np.arange(len(groups))
    if len(names) < 5:
        count = min(5, len(groups))
        return [rows % count == k for k in range(count)]
    count = min(8, len(names))
    by_row = np.array([names.index(g) % count for g in groups])
    return [by_row == k for k in range(count)]


def for_chip(fitted: Fitted, chip: str, era: str) -> Fitted:
    """A fit for a chip and an era: their parameters, and the errors, groups and interval of the chip's rows, if they are enough."""
    own = attrs.evolve(fitted.of({"chip": chip, "era": era}), chip=chip, era=era)
    mine: list[ModelCase] = [c for c in own.main.cases if c.chip == chip]
    errors = dict(own.errors)
    if own.found and own.found.space.by_chip and len({c.cluster for c in mine}) >= ENOUGH:
        errors = {p: e.of(np.array([c.chip == chip for c in e.cases])) for p, e in errors.items()}
    found = []
    for part, each in errors.items():
        of_part = [own.prior.drawn(group, ENOUGH) for group in groups(part, each, chip)]
        # The first is that of all rows.
        errors[part] = attrs.evolve(each, ends=(of_part[0].low, of_part[0].high))
        found += of_part
    return attrs.evolve(own, errors=errors, groups=tuple(found))
