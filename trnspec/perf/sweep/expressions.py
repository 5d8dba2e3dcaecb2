"""Formulas recorded as graphs of operations, so that each operation is evaluated on as few elements as it depends on.

A formula of :mod:`trnspec.perf` takes floats or arrays.  Called with expressions it returns an expression: the operations that
it would have applied, each with the columns that it depends on.  Equal operations on equal operands are one expression.
Operations are evaluated as recorded, so results are bit for bit those of the formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

Operand = Any
"""An expression, or a scalar."""


class Expression(NDArrayOperatorsMixin):
    """An operation on other expressions, or a column.

    Attributes:
        function: The operation: a ufunc, or a function of arrays; ``None`` for a column.
        inputs: Its operands.
        axes: Names of the columns that it depends on.
        dtype: Type of its elements.
    """

    __slots__ = ("_recording", "axes", "dtype", "function", "inputs")
    __hash__ = object.__hash__

    def __init__(
        self,
        recording: Recording,
        function: Callable[..., Any] | None,
        inputs: tuple[Operand, ...],
        axes: frozenset[str],
        dtype: np.dtype[Any],
    ) -> None:
        self._recording = recording
        self.function = function
        self.inputs = inputs
        self.axes = axes
        self.dtype = dtype

    def __bool__(self) -> bool:
        raise TypeError("the value of an expression is not known while a formula is recorded; use perf.ops.where")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Operand, **options: Any) -> Any:
        """Record an operation; operators and functions of numpy arrive here."""
        if method != "__call__" or options or any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
            return NotImplemented
        if ufunc is np.frexp:
            return self._recording.apply(_mantissa, inputs), self._recording.apply(_exponent, inputs)
        return self._recording.apply(ufunc, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Record ``where``."""
        return self._recording.apply(selected, args) if function is np.where and not options else NotImplemented

    def recorded(self, function: Callable[..., Any], inputs: tuple[Operand, ...]) -> Any:
        """Record a function of arrays; see :func:`trnspec.perf.ops.elementwise`."""
        return self._recording.apply(function, inputs)

    def any(self) -> bool:
        """Any condition may hold somewhere."""
        return True

    def all(self) -> bool:
        """No condition is known to hold everywhere."""
        return False

    def astype(self, dtype: Any) -> Expression:
        """The same number as another type."""
        if np.dtype(dtype) == self.dtype:
            return self
        cast: Expression = self._recording.apply(Cast(np.dtype(dtype)), (self,))
        return cast

    def of(self, table: NDArray[Any]) -> Expression:
        """The elements of a table at this position."""
        elements: Expression = self._recording.apply(Table(table), (self,))
        return elements

    def records(self, table: NDArray[Any]) -> list[Expression]:
        """The elements of the record of a table at this position."""
        if table.shape[1] == 1:
            return [self.of(table.reshape(-1))]
        record = self.of(table)
        return [self._recording.apply(Element(i), (record,)) for i in range(table.shape[1])]


@frozen
class Element:
    """An element of each record, as a view."""

    position: int

    def __call__(self, records: NDArray[Any]) -> NDArray[Any]:
        """The elements."""
        return records[:, self.position]


class Table:
    """A table that is looked up by position."""

    def __init__(self, table: NDArray[Any]) -> None:
        self.table = table

    def __call__(self, positions: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The elements at some positions."""
        # Positions are never outside; numpy would buffer the output if it had to check that.
        return self.table.take(positions, axis=0, out=out, mode="clip")

    def __hash__(self) -> int:
        return id(self.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.table is other.table


def _mantissa(number: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    return _into(out, np.frexp(number)[0])


def _exponent(number: NDArray[np.float64], out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    return _into(out, np.frexp(number)[1])


@frozen
class Cast:
    """A conversion to another type."""

    dtype: np.dtype[Any]

    def __call__(self, number: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The numbers as another type."""
        return number.astype(self.dtype) if out is None else _into(out, number)


def selected(condition: Any, then: Any, otherwise: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """``numpy.where``, with a buffer."""
    if out is None:
        chosen: NDArray[Any] = np.where(condition, then, otherwise)
        return chosen
    # The result may be in the place of an operand.
    in_place = [out is x for x in (then, otherwise)]
    if in_place[0]:
        condition, then, otherwise = np.logical_not(condition), otherwise, then
    if not any(in_place):
        np.copyto(out, otherwise)
    np.copyto(out, then, where=condition)
    return out


def _into(out: NDArray[Any] | None, result: NDArray[Any]) -> NDArray[Any]:
    """A result, in its buffer if it has one."""
    if out is None:
        return result
    np.copyto(out, result)
    return out


@define
class Recording:
    """The operations of some formulas: equal ones are one expression."""

    _known: dict[Any, Expression] = field(factory=dict)

    def column(self, name: str, dtype: Any = np.float64, axis: str = "") -> Expression:
        """A column, by its name; ``axis`` is the column that it depends on where that is another one."""
        return self._once(("column", name), None, (name,), frozenset((axis or name,)), np.dtype(dtype))

    def apply(self, function: Callable[..., Any], inputs: Iterable[Operand]) -> Any:
        """An operation on some operands."""
        operands = tuple(inputs)
        if not any(isinstance(x, Expression) for x in operands):
            number = np.asarray(function(*operands))
            return number.item() if number.dtype.kind in "bf" else number[()]
        if (unchanged := _unchanged(function, operands)) is not None:
            return unchanged
        axes = frozenset().union(*(x.axes for x in operands if isinstance(x, Expression)))
        key = (function, *(id(x) if isinstance(x, Expression) else (type(x), x) for x in operands))
        return self._once(key, function, operands, axes, None)

    def _once(self, key: Any, function: Any, inputs: Any, axes: frozenset[str], dtype: Any) -> Expression:
        known = self._known.get(key)
        if known is None:
            known = Expression(self, function, inputs, axes, dtype or _result_type(function, inputs))
            self._known[key] = known
        return known


def _result_type(function: Any, inputs: tuple[Operand, ...]) -> np.dtype[Any]:
    """The type of the elements of a result, from a call with one element."""
    if function in _FLOATING and all(type(x) is float or getattr(x, "dtype", None) == _FLOAT for x in inputs):
        return _FLOAT
    if isinstance(function, Table):
        return function.table.dtype
    if isinstance(function, Element):
        (records,) = inputs
        dtype: np.dtype[Any] = records.dtype
        return dtype
    ones = [np.ones(1, dtype=x.dtype) if isinstance(x, Expression) else x for x in inputs]
    return np.asarray(function(*ones)).dtype


def _unchanged(function: Any, operands: tuple[Operand, ...]) -> Operand:
    """The operand that an operation leaves as it is, bit for bit, or the zero that it results in; else ``None``."""
    if function not in _ARITHMETIC:
        return None
    a, b = operands
    number, scalar, first = (b, a, True) if type(a) is float else (a, b, False)
    if type(scalar) is not float or number.dtype != np.float64:
        return None
    if function is np.add:
        return number if scalar == 0.0 else None
    if function is np.subtract:
        return number if scalar == 0.0 and not first else None
    # All numbers of formulas are finite, and no divisor is zero.
    if scalar == 0.0 and (function is np.multiply or first):
        return 0.0
    return number if scalar == 1.0 and (function is np.multiply or not first) else None


_ARITHMETIC = {np.add, np.subtract, np.multiply, np.true_divide}
"""Operations that may leave an operand as it is."""
_FLOATING = {*_ARITHMETIC, np.maximum, np.minimum, np.floor, np.ceil, np.sqrt}
"""Operations of which the results of floats are floats."""
_FLOAT = np.dtype(np.float64)


def required(outputs: Iterable[Operand], known: Container[Expression] = ()) -> list[Expression]:
    """The expressions that some results need, each after its operands and as late as possible."""
    order: dict[int, Expression] = {}
    stack = [(x, False) for x in reversed(list(outputs)) if isinstance(x, Expression)]
    while stack:
        expression, ready = stack.pop()
        if id(expression) in order:
            continue
        if ready:
            order[id(expression)] = expression
        else:
            stack.append((expression, True))
            if expression not in known:
                stack += [(x, False) for x in reversed(expression.inputs) if isinstance(x, Expression)]
    return list(order.values())


def replaced(recording: Recording, outputs: Sequence[Operand], columns: Mapping[str, Operand]) -> list[Operand]:
    """Some results recorded again.

    Args:
        recording: Where.
        outputs: The results.
        columns: Expressions in place of columns.
    """
    found: dict[int, Operand] = {}
    for x in required(outputs):
        if x.function is None:
            (name,) = x.inputs
            found[id(x)] = columns[name] if name in columns else recording.column(name, x.dtype)
        else:
            found[id(x)] = recording.apply(x.function, (found.get(id(y), y) for y in x.inputs))
    return [found.get(id(x), x) for x in outputs]
