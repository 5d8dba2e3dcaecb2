"""Operations of recorded formulas on the axes of a grid, evaluated region by region.

Each operation is evaluated on the axes of arrays that it depends on.  One of them has rows, the combinations of parallel degrees;
an operation that depends on some of the degrees is evaluated once for each combination of these, and repeated for the rows
where others need it.  What does not depend on the axis along which regions follow each other is evaluated once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define

from trnspec.perf.sweep.expressions import Expression, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.ops import Number
    from trnspec.perf.sweep.regions import Axis

Range = tuple[int, int]


@define(eq=False)
class Step:
    """An operation.

    Attributes:
        function: The operation; ``None`` for a column.
        operands: The numbers of other steps, or numbers.
        steps: Which of the operands are steps.
        axes: The axes of arrays that it depends on.
        values: Its values, as long as they are of use.
        later: Whether only measures need it, not conditions.
        hoisted: Whether it does not depend on the axis along which regions follow each other.
        stored: Whether its values are used by operations with other axes, or by those of the next region.
        last: The steps whose values are of no use after it.
    """

    function: Callable[..., Any] | None
    operands: tuple[Any, ...]
    steps: tuple[bool, ...]
    axes: tuple[int, ...]
    values: Any = None
    later: bool = False
    hoisted: bool = False
    stored: bool = False
    last: tuple[int, ...] = ()


ROWS = "rows"
_WHOLE = frozenset((ROWS,))
"""The group of every row by itself."""


class Plan:
    """The operations of formulas for some rows, in order.

    Args:
        axes: The axes of arrays; the columns of that of the rows are parallel degrees.
        place: The position of the axis of the rows.
        degrees: The axis of the grid of each column of the rows.
    """

    def __init__(self, axes: Sequence[Axis], place: int, degrees: Mapping[str, str]) -> None:
        self.axes, self.place, self.degrees = axes, place, degrees
        self.steps: list[Step] = []
        self._columns = {name: (i, column) for i, axis in enumerate(axes) for name, column in axis.columns.items()}
        self._places = {axis.name: i for i, axis in enumerate(axes)}
        self._names = frozenset(degrees.values())
        whole = (_WHOLE, slice(None), np.arange(len(axes[place])))
        self._groups: dict[frozenset[str], tuple[frozenset[str], Any, NDArray[np.intp]]] = {_WHOLE: whole}
        self._known: dict[tuple[int, frozenset[str]], int] = {}

    def add(self, output: Number) -> Any:
        """The number of the step with the values of an expression; a number as it is."""
        if not isinstance(output, Expression):
            return np.asarray(output)
        for expression in required([output]):
            self._add(expression)
        return self._operand(output, _WHOLE)

    def _group(self, expression: Expression) -> tuple[frozenset[str], Any, Any]:
        """Combinations of the degrees that an expression depends on: a name, the first row of each, and that of each row."""
        names = expression.axes & self._names
        if names not in self._groups:
            self._groups[names] = self._grouped(names)
        return self._groups[names]

    def _grouped(self, names: frozenset[str]) -> tuple[frozenset[str], Any, Any]:
        count = len(self.axes[self.place])
        of_row = np.zeros(count, dtype=np.int64)
        for name, axis in self.degrees.items():
            if axis in names:
                values, inverse = np.unique(self._columns[name][1], return_inverse=True)
                _, of_row = np.unique(of_row * len(values) + inverse, return_inverse=True)
        _, first = np.unique(of_row, return_index=True)
        if len(first) == count and names:
            return self._groups[_WHOLE]
        return names, first, of_row

    def _add(self, expression: Expression) -> None:
        group, first, _ = self._group(expression)
        if (id(expression), group) in self._known:
            return
        if expression.function is None:
            (name,) = expression.inputs
            at, column = self._columns[name]
            if at == self.place:
                column = column[first]
            shape = [1] * len(self.axes)
            shape[at] = len(column)
            values = np.asarray(column, dtype=expression.dtype).reshape(shape)
            step = Step(None, (), (), (at,), values, stored=True)
        else:
            are = tuple(isinstance(x, Expression) for x in expression.inputs)
            operands = tuple(
                self._operand(x, group) if is_step else x for x, is_step in zip(expression.inputs, are, strict=True)
            )
            axes = {a for x, is_step in zip(operands, are, strict=True) if is_step for a in self.steps[x].axes}
            step = Step(expression.function, operands, are, tuple(sorted(axes)))
        self._known[id(expression), group] = len(self.steps)
        self.steps.append(step)

    def _operand(self, x: Expression, group: frozenset[str]) -> int:
        """The step of an operand, repeated for the rows of a group of more degrees."""
        own, _, of_row = self._group(x)
        at = self._known[id(x), own]
        if not own or own == group:
            return at
        if (id(x), group) not in self._known:
            _, first, _ = self._groups[group]
            step = Step(_Take(of_row[first], self.place), (at,), (True,), self.steps[at].axes)
            self._known[id(x), group] = len(self.steps)
            self.steps.append(step)
        return self._known[id(x), group]


class _Take:
    """The values of some rows."""

    def __init__(self, rows: NDArray[np.intp], axis: int) -> None:
        self.rows, self.axis = rows, axis

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.take(self.rows, axis=self.axis, mode="clip")


class Evaluation:
    """Formulas on some rows, evaluated region by region.

    Args:
        plan: The operations.
        conditions: Results that are needed in each region.
        measures: Results that are needed where these leave something.
        changing: The axis along which regions follow each other; -1 for one region.
    """

    def __init__(self, plan: Plan, conditions: Sequence[Any], measures: Sequence[Any], changing: int) -> None:
        self.steps, self.place = plan.steps, plan.place
        self.conditions, self.measures = conditions, measures
        self._first = self._order({x for x in conditions if type(x) is int}, set())
        self._second = self._order({x for x in measures if type(x) is int}, set(self._first))
        outputs = {x for x in (*conditions, *measures) if type(x) is int}
        for i in self._second:
            self.steps[i].later = True
        for i in (*self._first, *self._second):
            step = self.steps[i]
            step.hoisted = changing >= 0 and changing not in step.axes
            step.stored = step.function is None or i in outputs
        consumed: dict[int, int] = {}
        for i in (*self._first, *self._second):
            step = self.steps[i]
            for x in self._operands(step):
                other = self.steps[x]
                other.stored |= other.hoisted and (
                    other.axes != step.axes or not step.hoisted or other.later != step.later
                )
                consumed[x] = i
        freed: dict[int, list[int]] = {}
        for x, i in consumed.items():
            if not self.steps[x].stored:
                freed.setdefault(i, []).append(x)
        for i, some in freed.items():
            self.steps[i].last = tuple(some)
        self._at: dict[tuple[bool, tuple[int, ...]], tuple[Range, ...]] = {}

    @staticmethod
    def _operands(step: Step) -> Iterator[int]:
        return (x for x, is_step in zip(step.operands, step.steps, strict=True) if is_step)

    def _order(self, outputs: set[int], known: set[int]) -> list[int]:
        """The steps that some results need besides those that are known."""
        needed = set(outputs)
        for i in range(max(outputs, default=-1), -1, -1):
            if i in needed:
                needed.update(self._operands(self.steps[i]))
        return sorted(needed - known)

    def checked(self, base: tuple[Range, ...]) -> list[Any]:
        """The conditions in a region."""
        self._run(self._first, base, base, later=False)
        return [self._cut(x, base, base) for x in self.conditions]

    def measured(self, base: tuple[Range, ...], at: tuple[Range, ...]) -> list[Any]:
        """The measures in a part of the region that was checked last."""
        self._run(self._second, base, at, later=True)
        return [self._cut(x, base, at) for x in self.measures]

    def _run(self, order: Sequence[int], base: tuple[Range, ...], at: tuple[Range, ...], *, later: bool) -> None:
        stale: dict[tuple[int, ...], bool] = {}
        for i in order:
            step = self.steps[i]
            if step.function is None:
                continue
            axes, place = step.axes, at
            if step.hoisted:
                if axes not in stale:
                    of_axes = tuple(base[a] for a in axes)
                    stale[axes] = self._at.get((later, axes)) != of_axes
                    self._at[later, axes] = of_axes
                if not stale[axes]:
                    continue
                place = base
            step.values = step.function(
                *(
                    self._cut(x, base, place) if is_step else x
                    for x, is_step in zip(step.operands, step.steps, strict=True)
                )
            )
            for x in step.last:
                self.steps[x].values = None

    def _cut(self, x: Any, base: tuple[Range, ...], at: tuple[Range, ...]) -> Any:
        """The values of a step, or a number, in a part of a region."""
        if type(x) is not int:
            return x
        step = self.steps[x]
        values = step.values
        # Columns have all values of an axis, hoisted operations and those of conditions those of the region.
        if step.function is not None and (at is base or (step.later and not step.hoisted)):
            return values
        index: list[slice] | None = None
        for a in step.axes:
            if a == self.place:
                continue
            first = 0 if step.function is None else base[a][0]
            begin, end = at[a][0] - first, at[a][1] - first
            if begin or end != values.shape[a]:
                index = index or [slice(None)] * values.ndim
                index[a] = slice(begin, end)
        return values if index is None else values[tuple(index)]
