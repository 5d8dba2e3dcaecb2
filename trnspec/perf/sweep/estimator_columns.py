"""The numbers of several estimators as columns: arrays that formulas take."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number
from trnspec.perf.work.layout import longest
from trnspec.perf.work.reach import common_heads
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trnspec.perf.training.estimator import Estimator


@frozen
class Figures:
    """The numbers of several estimators as arrays; a single number where all are equal.

    An array has an axis: ``which``, the estimators; or another one, with fewer elements, on which each estimator has a
    position: its ``machine``, or an axis of numbers of the model that have few distinct combinations among many estimators.

    Attributes:
        numbers: By owner: ``model``, fields of :class:`~trnspec.perf.work.transformer.Transformer`; ``machine``, fields of
            :class:`~trnspec.perf.lowering.machine.Machine`; and ``limits``: query ``heads``, ``experts`` (1 for a dense
            model) and the ``longest`` sequence.
        axes: The axes of those arrays that are not by estimator, by owner and name.
        positions: By axis, for each estimator its position.
        sizes: The elements of each axis.
        built: The program that was last compiled for them, by its key; by ``None`` the key that was last met without one.
    """

    numbers: dict[str, dict[str, Number]]
    axes: dict[str, str]
    positions: dict[str, NDArray[np.int32]]
    sizes: dict[str, int]
    built: dict[Any, Any] = field(factory=dict)

    def map(self, function: Callable[[str, str, NDArray[np.float64]], Any]) -> dict[str, dict[str, Any]]:
        """The numbers by owner: arrays replaced by the result of a function of axis, owner and name, and array."""
        return {
            owner: {
                name: function(self.axes.get(f"{owner} {name}", "which"), f"{owner} {name}", number)
                if isinstance(number, np.ndarray)
                else number
                for name, number in numbers.items()
            }
            for owner, numbers in self.numbers.items()
        }

    @classmethod
    def of(cls, estimators: Sequence[Estimator]) -> Figures:
        """The numbers of some estimators, cached: a small batch would spend much of its time on them."""
        return _figures(ByIdentity(tuple(estimators)))

    @classmethod
    def computed(cls, estimators: Sequence[Estimator]) -> Figures:
        """The numbers of some estimators."""
        # Comparing machines by value is slow, and most estimators share one.
        objects = {id(e.machine): e.machine for e in estimators}
        machines: dict[Machine, int] = {}
        places = {key: machines.setdefault(value, len(machines)) for key, value in objects.items()}
        dims = [e.dims for e in estimators]
        limits = {
            "heads": np.array([common_heads(d) for d in dims]),
            "experts": np.maximum(1.0, np.array([d.experts for d in dims])),
            "longest": np.array([longest(d) for d in dims]),
        }
        numbers = {
            "model": _columns(Transformer, [e.model for e in estimators]),
            "limits": {name: collapsed(number) for name, number in limits.items()},
            "machine": _columns(Machine, list(machines)),
        }
        axes = {f"machine {name}": "machine" for name in numbers["machine"]}
        positions = {"machine": np.array([places[id(e.machine)] for e in estimators], dtype=np.int32)}
        sizes = {"machine": len(machines)}
        if len(estimators) > _MANY:
            columns = {
                (owner, name): column for owner in ("limits", "model") for name, column in numbers[owner].items()
            }
            found = {key: few for key, column in columns.items() if (few := _few(column)) is not None}
            for number, (of_axis, members) in enumerate(_joined(found)[:_FEW_AXES]):
                axis = f"models {number}"
                present, first, place = np.unique(of_axis, return_index=True, return_inverse=True)
                positions[axis], sizes[axis] = place.astype(np.int32), len(present)
                for owner, name in members:
                    axes[f"{owner} {name}"] = axis
                    numbers[owner][name] = numbers[owner][name][first]
        return cls(numbers, axes, positions, sizes)


_MANY = 256
"""Estimators among which numbers with few distinct values have other axes."""
_FEW = 64
"""Most distinct values of such a number, or combinations of several."""
_FEW_AXES = 10
"""Most axes of this kind: numpy 1 has arrays of at most 32 axes."""


def _joined(
    found: Mapping[tuple[str, str], tuple[NDArray[np.float64], NDArray[np.int32]]],
) -> list[tuple[NDArray[np.int64], list[tuple[str, str]]]]:
    """Numbers that have few combinations of values together, with a number of the combination for each element."""
    joined: list[tuple[NDArray[np.int64], list[tuple[str, str]]]] = []
    for key in sorted(found, key=lambda key: len(found[key][0])):
        values, positions = found[key]
        for i, (of_axis, members) in enumerate(joined):
            both = of_axis * len(values) + positions
            present = np.bincount(both) > 0
            if np.count_nonzero(present) <= _FEW:
                joined[i] = (np.cumsum(present) - 1)[both], [*members, key]
                break
        else:
            joined.append((positions.astype(np.int64), [key]))
    return joined


def _few(column: Number) -> tuple[NDArray[np.float64], NDArray[np.int32]] | None:
    """The distinct values of a column and the position of each element; ``None`` for one, or for too many."""
    if not isinstance(column, np.ndarray):
        return None
    values = np.unique(column[:: max(1, len(column) // 1024)])
    if len(values) > _FEW:
        return None
    positions = np.searchsorted(values, column)
    if positions.max() < len(values) and (values[positions] == column).all():
        return values, positions.astype(np.int32)
    # A rare value is not in the sample.
    values, positions = np.unique(column, return_inverse=True)
    return (values, positions.astype(np.int32)) if len(values) <= _FEW else None


class ByIdentity:
    """Estimators compared by identity: comparing their values is slow."""

    def __init__(self, estimators: tuple[Estimator, ...]) -> None:
        self.estimators = estimators

    def __hash__(self) -> int:
        return hash((len(self.estimators), *map(id, self.estimators[:1]), *map(id, self.estimators[-1:])))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByIdentity) or len(self.estimators) != len(other.estimators):
            return False
        return self.estimators is other.estimators or all(map(is_, self.estimators, other.estimators))


@lru_cache(maxsize=8)
def _figures(key: ByIdentity) -> Figures:
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
