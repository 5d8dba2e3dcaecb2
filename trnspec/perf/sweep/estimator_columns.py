"""The numbers of several estimators side by side, as arrays that formulas take."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number
from trnspec.perf.work.layout import longest
from trnspec.perf.work.terms import Terms, terms
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.training.estimator import Estimator


@frozen
class Figures:
    """The numbers of some estimators side by side: arrays, or one number where it is the same for all.

    Attributes:
        each: Those of :class:`~trnspec.perf.work.terms.Terms`, and ``heads``, ``experts``, 1 for none, and ``longest``, the most
            tokens of a sequence.
        machine: Those of :class:`~trnspec.perf.lowering.machine.Machine`.
        built: What was computed from them last, by what it was computed for.
    """

    each: dict[str, Number]
    machine: dict[str, Number]
    built: dict[Any, Any] = field(factory=dict, eq=False)

    @classmethod
    def of(cls, estimators: Sequence[Estimator]) -> Figures:
        """Those of some estimators; remembered, since a small batch would spend much of its time on them."""
        return _figures(_Held(tuple(estimators)))

    @classmethod
    def computed(cls, estimators: Sequence[Estimator]) -> Figures:
        """Those of some estimators."""
        machine = _stacked(Machine, [e.machine for e in estimators])
        model = _stacked(Transformer, [e.model for e in estimators])
        made = terms(Transformer(**model), Machine(**machine))
        each = {f.name: getattr(made, f.name) for f in attrs.fields(Terms)}
        each["heads"] = np.array([e.dims.heads for e in estimators])
        each["longest"] = np.array([longest(e.dims) for e in estimators])
        each["experts"] = np.array([max(1.0, e.dims.experts) for e in estimators])
        return cls({name: plain(number) for name, number in each.items()}, machine)


class _Held:
    """Some estimators, compared as objects: what they say takes long to compare."""

    def __init__(self, estimators: tuple[Estimator, ...]) -> None:
        self.estimators = estimators
        self._places = tuple(map(id, estimators))

    def __hash__(self) -> int:
        return hash(self._places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self._places == other._places


@lru_cache(maxsize=8)
def _figures(held: _Held) -> Figures:
    return Figures.computed(held.estimators)


def _stacked(of: type, objects: Sequence[Any]) -> dict[str, Number]:
    """The attributes of some objects, each an array, or one number."""
    names = [f.name for f in attrs.fields(of)]
    table = np.array(list(map(attrgetter(*names), objects))).T.copy()
    return {name: plain(row) for name, row in zip(names, table, strict=True)}


def plain(number: Number) -> Number:
    """One number where all of an array is the same."""
    if not isinstance(number, np.ndarray):
        return number
    low = number.min()
    return number if low != number.max() else float(low) if number.dtype == np.float64 else low


class Late:
    """Figures of rows, gathered whenever one is asked for and not kept: the memory that they take stays in cache.

    Without rows they are those of all estimators.
    """

    def __init__(self, figures: dict[str, Number], which: Any = None) -> None:
        self._figures = figures
        self._which = which

    def __getattr__(self, name: str) -> Number:
        try:
            found = self._figures[name]
        except KeyError:
            raise AttributeError(name) from None
        return found.take(self._which) if isinstance(found, np.ndarray) and self._which is not None else found
