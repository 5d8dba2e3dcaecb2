"""The numbers of several estimators as columns: arrays that formulas take."""

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
    """The numbers of several estimators as arrays; a single number where all are equal.

    Attributes:
        each: Fields of :class:`~trnspec.perf.work.terms.Terms`, and ``heads``, ``experts`` (1 for a dense model) and
            ``longest``, the most tokens of a sequence.
        machine: Fields of :class:`~trnspec.perf.lowering.machine.Machine`.
        built: The tables that were last built from them, by their key.
    """

    each: dict[str, Number]
    machine: dict[str, Number]
    built: dict[Any, Any] = field(factory=dict, eq=False)

    @classmethod
    def of(cls, estimators: Sequence[Estimator]) -> Figures:
        """The numbers of some estimators, cached: a small batch would spend much of its time on them."""
        return _figures(_ByIdentity(tuple(estimators)))

    @classmethod
    def computed(cls, estimators: Sequence[Estimator]) -> Figures:
        """The numbers of some estimators."""
        machine = _columns(Machine, [e.machine for e in estimators])
        model = _columns(Transformer, [e.model for e in estimators])
        products = terms(Transformer(**model), Machine(**machine))
        figures = {f.name: getattr(products, f.name) for f in attrs.fields(Terms)}
        figures["heads"] = np.array([e.dims.heads for e in estimators])
        figures["longest"] = np.array([longest(e.dims) for e in estimators])
        figures["experts"] = np.array([max(1.0, e.dims.experts) for e in estimators])
        return cls({name: collapsed(number) for name, number in figures.items()}, machine)


class _ByIdentity:
    """Estimators compared by identity: comparing their values is slow."""

    def __init__(self, estimators: tuple[Estimator, ...]) -> None:
        self.estimators = estimators
        self._places = tuple(map(id, estimators))

    def __hash__(self) -> int:
        return hash(self._places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self._places == other._places


@lru_cache(maxsize=8)
def _figures(key: _ByIdentity) -> Figures:
    return Figures.computed(key.estimators)


def _columns(kind: type, objects: Sequence[Any]) -> dict[str, Number]:
    """The fields of some objects, each an array or a single number."""
    names = [f.name for f in attrs.fields(kind)]
    table = np.array(list(map(attrgetter(*names), objects))).T.copy()
    return {name: collapsed(row) for name, row in zip(names, table, strict=True)}


def collapsed(number: Number) -> Number:
    """A single number where all elements of an array are equal."""
    if not isinstance(number, np.ndarray):
        return number
    least = number.min()
    return number if least != number.max() else float(least) if number.dtype == np.float64 else least


class Gathered:
    """Figures of rows, gathered on every access and not stored, so that the working set stays in cache.

    Without rows, the figures of all estimators.
    """

    def __init__(self, figures: dict[str, Number], which: Any = None) -> None:
        self._figures = figures
        self._which = which

    def __getattr__(self, name: str) -> Number:
        try:
            figure = self._figures[name]
        except KeyError:
            raise AttributeError(name) from None
        return figure.take(self._which) if isinstance(figure, np.ndarray) and self._which is not None else figure
