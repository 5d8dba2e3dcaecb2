"""Parts of numbers of many layouts: each a float, or an array that broadcasts to the axes of a region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from trnspec.perf.sweep.axes import sums
from trnspec.perf.sweep.columns import Choices
from trnspec.perf.training.costs import Costs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.ops import Number

ALL = slice(None)
"""All positions on an axis."""


def as_column(column: NDArray[Any]) -> Any:
    """A column, or a single number where all its elements are equal."""
    first = column.item(0)
    return column if column.item(-1) != first or (column != first).any() else first


def arrays_of(numbers_: Any) -> dict[str, NDArray[Any]]:
    """The attributes that are arrays."""
    names = _NAMES[type(numbers_)]
    return {name: number for name in names if isinstance(number := getattr(numbers_, name), np.ndarray)}


_NAMES = {numbers: tuple(attribute.name for attribute in attrs.fields(numbers)) for numbers in (Choices, Costs)}


def some_of(numbers_: Any, arrays: dict[str, NDArray[Any]], at: Sequence[Any], optional: Iterable[str] = ()) -> Any:
    """Numbers at some positions on the other axes; those of the optional names are 0.0 where they are zeros.

    Args:
        numbers_: Choices or coefficients.
        arrays: Those of them that are arrays.
        at: The positions.
        optional: The names.
    """
    some: dict[str, Number] = arrays
    if not all(x is ALL for x in at):
        some = {name: at_positions(number, at) for name, number in arrays.items()}
    some = some | {name: without_zeros(some[name]) for name in optional if name in some}
    changed = {name: number for name, number in some.items() if number is not arrays[name]}
    return attrs.evolve(numbers_, **changed) if changed else numbers_


def where_any(valid: NDArray[np.bool_], number: NDArray[Any]) -> NDArray[Any]:
    """A number, with 0 where no layout that it is of is valid."""
    axes = tuple(i for i, n in enumerate(number.shape) if n == 1 and valid.shape[i] > 1)
    return number * valid.any(axis=axes, keepdims=True)


def without_zeros(number: Number) -> Number:
    """A number, or 0.0 for an array of zeros, so that formulas omit what it multiplies."""
    return number if type(number) is float or number.item(0) or number.any() else 0.0


def at_positions(number: Number, at: Sequence[Any]) -> Number:
    """A part of a number that broadcasts to the axes of arrays, by the positions on the first of them."""
    if not isinstance(number, np.ndarray):
        return number
    index: Any = None
    part = number
    for axis, (x, n) in enumerate(zip(at, number.shape, strict=False)):
        if x is ALL or n == 1:
            continue
        if type(x) is slice:
            index = index or [ALL] * part.ndim
            index[axis] = x
        else:
            part = part.take(x, axis=axis)
    return part if index is None else part[tuple(index)]


def scatter(column: NDArray[Any], places: Sequence[NDArray[np.int64]], values: Number) -> None:
    """Write values, which broadcast, to the numbers of combinations."""
    column[sums(places)] = np.broadcast_to(values, tuple(map(len, places))).reshape(-1)


def as_slice(chosen: NDArray[np.intp], size: int = -1) -> Any:
    """Positions as a slice, where they are consecutive; all of an axis of some size as :data:`ALL`."""
    begin, end = int(chosen[0]), int(chosen[-1]) + 1
    if end - begin != len(chosen):
        return chosen
    return ALL if len(chosen) == size else slice(begin, end)
