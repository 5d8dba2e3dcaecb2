"""The numbers of several estimators as columns: arrays that formulas take."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number
from trnspec.perf.work.layout import longest
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trnspec.perf.training.estimator import Estimator


@frozen
class Figures:
    """The numbers of several estimators as arrays; a single number where all are equal.

    Attributes:
        model: Fields of :class:`~trnspec.perf.work.transformer.Transformer`, by estimator.
        limits: Query ``heads``, ``experts`` (1 for a dense model) and the ``longest`` sequence, by estimator.
        machine: Fields of :class:`~trnspec.perf.lowering.machine.Machine`, by distinct machine.
        machine_of: For each estimator the position of its machine.
        machines: Number of distinct machines.
        built: The program that was last compiled for them, by its key; by ``None`` the key that was last met without one.
    """

    model: dict[str, Number]
    limits: dict[str, Number]
    machine: dict[str, Number]
    machine_of: NDArray[np.int32]
    machines: int
    built: dict[Any, Any] = field(factory=dict, eq=False)

    def map(self, function: Callable[[str, str, NDArray[np.float64]], Any]) -> dict[str, dict[str, Any]]:
        """The numbers by what they belong to: arrays replaced by the result of a function of axis, name and array."""
        owners = {
            "model": ("which", self.model),
            "limits": ("which", self.limits),
            "machine": ("machine", self.machine),
        }
        return {
            owner: {
                name: function(axis, f"{owner} {name}", number) if isinstance(number, np.ndarray) else number
                for name, number in numbers.items()
            }
            for owner, (axis, numbers) in owners.items()
        }

    @classmethod
    def of(cls, estimators: Sequence[Estimator]) -> Figures:
        """The numbers of some estimators, cached: a small batch would spend much of its time on them."""
        return _figures(_ByIdentity(tuple(estimators)))

    @classmethod
    def computed(cls, estimators: Sequence[Estimator]) -> Figures:
        """The numbers of some estimators."""
        # Comparing machines by value is slow, and most estimators share one.
        objects = {id(e.machine): e.machine for e in estimators}
        machines: dict[Machine, int] = {}
        places = {key: machines.setdefault(value, len(machines)) for key, value in objects.items()}
        dims = [e.dims for e in estimators]
        limits = {
            "heads": np.array([d.heads for d in dims]),
            "experts": np.maximum(1.0, np.array([d.experts for d in dims])),
            "longest": np.array([longest(d) for d in dims]),
        }
        return cls(
            _columns(Transformer, [e.model for e in estimators]),
            {name: collapsed(number) for name, number in limits.items()},
            _columns(Machine, list(machines)),
            np.array([places[id(e.machine)] for e in estimators], dtype=np.int32),
            len(machines),
        )


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
