"""Operations of recorded formulas on the axes of a grid, evaluated region by region.

Each operation is evaluated on the axes of arrays that it depends on.  One of them has rows, the combinations of parallel degrees;
an operation that depends on some of the degrees is evaluated once for each combination of these, and repeated for the rows
where others need it.  What does not depend on the axis along which regions follow each other is evaluated once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from trnspec.perf.distinct import numbered
from trnspec.perf.sweep.axes import Axis
from trnspec.perf.sweep.expressions import Expression, required

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.perf.ops import Number

Range = tuple[int, int]
Degrees = frozenset[str]
"""Some axes of parallel degrees."""
ROWS = "rows"
_WHOLE: Degrees = frozenset((ROWS,))
"""Every row by itself."""


@define(eq=False)
class _Step:
    """An operation, a column, or a number.

    Attributes:
        function: The operation; ``None`` for the others.
        operands: The steps with its operands.
        axes: The axes of arrays that it depends on.
        degrees: The degrees that it depends on.
        column: The name of a column.
        number: A number.
        taken: The degrees of its operand, where it repeats this for the rows of more degrees.
        hoisted: Whether it does not depend on the axis along which regions follow each other.
        stored: Whether its values are used by operations with other axes, or as results.
        last: The steps whose values are of no use after it.
    """

    function: Callable[..., Any] | None
    operands: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    degrees: Degrees = frozenset()
    column: str = ""
    number: Any = None
    taken: Degrees | None = None
    hoisted: bool = False
    stored: bool = False
    last: tuple[int, ...] = ()


@frozen(eq=False)
class Shape:
    """The axes of arrays.

    Attributes:
        names: Their names.
        place: The position of that of the rows.
        degrees: The axes of the grid that are degrees.
        changing: The axis along which regions follow each other; -1 for one region.
    """

    names: tuple[str, ...]
    place: int
    degrees: Degrees
    changing: int = -1


class Plan:
    """The operations of formulas on some axes, in order.

    Args:
        shape: The axes.
        conditions: What is needed in each region.
        measures: What is needed where these leave something.
    """

    def __init__(self, shape: Shape, conditions: Sequence[Number], measures: Sequence[Number]) -> None:
        self.shape = shape
        self.steps: list[_Step] = []
        self._known: dict[Any, int] = {}
        self.conditions = [self._added(x) for x in conditions]
        self.measures = [self._added(x) for x in measures]
        first = self._needed(self.conditions, set())
        later = self._needed(self.measures, set(first))
        for step in self.steps:
            step.hoisted = shape.changing >= 0 and shape.changing not in step.axes
        self.first = first
        self.later_hoisted = [i for i in later if self.steps[i].hoisted]
        self.later = [i for i in later if not self.steps[i].hoisted]
        self.numbers = [step.number for step in self.steps]
        self.columns = [i for i, step in enumerate(self.steps) if step.column]
        passes = [dict.fromkeys(some, n) for n, some in enumerate((first, self.later_hoisted, self.later))]
        of_pass = {i: n for some in passes for i, n in some.items()}
        outputs = {*self.conditions, *self.measures}
        last: dict[int, int] = {}
        entering = {x for x in self.measures if of_pass.get(x) != 2}
        for i in (*first, *self.later_hoisted, *self.later):
            for x in self.steps[i].operands:
                other, step = self.steps[x], self.steps[i]
                if other.hoisted and (other.axes != step.axes or not step.hoisted or of_pass.get(x) != of_pass[i]):
                    other.stored = True
                if of_pass[i] == 2 and of_pass.get(x) != 2:
                    entering.add(x)
                last[x] = i
        self.entering = [x for x in sorted(entering) if self.steps[x].axes]
        for x, i in last.items():
            if self.steps[x].function is not None and not self.steps[x].stored and x not in outputs:
                self.steps[i].last += (x,)

    def _added(self, output: Number) -> int:
        """The step with the values of an expression, or with a number."""
        if not isinstance(output, Expression):
            return self._constant(output)
        for expression in required([output]):
            self._add(expression)
        return self._repeated(output, _WHOLE)

    def _constant(self, number: Any) -> int:
        return self._once((type(number), number), lambda: _Step(None, number=number))

    def _once(self, key: Any, step: Callable[[], _Step]) -> int:
        if key not in self._known:
            made = step()
            self._known[key] = len(self.steps)
            self.steps.append(made)
        return self._known[key]

    def _add(self, expression: Expression) -> None:
        degrees = expression.axes & self.shape.degrees

        def made() -> _Step:
            if expression.function is None:
                ((name,), (axis,)) = expression.inputs, expression.axes
                at = self.shape.place if degrees else self.shape.names.index(axis)
                return _Step(None, axes=(at,), degrees=degrees, column=name)
            operands = tuple(
                self._repeated(x, degrees) if isinstance(x, Expression) else self._constant(x)
                for x in expression.inputs
            )
            axes = tuple(sorted({a for x in operands for a in self.steps[x].axes}))
            return _Step(expression.function, operands, axes, degrees)

        self._once(id(expression), made)

    def _repeated(self, x: Expression, degrees: Degrees) -> int:
        """The step of an expression, repeated for the rows of more degrees than it depends on."""
        at = self._known[id(x)]
        own = self.steps[at].degrees
        if not own or own == degrees:
            return at
        return self._once(
            (id(x), degrees),
            lambda: _Step(np.take, (at,), self.steps[at].axes, degrees, taken=own),
        )

    def _needed(self, outputs: Iterable[int], known: set[int]) -> list[int]:
        """The operations that some results need besides those that are known, in order."""
        needed = set(outputs)
        for i in range(max(needed, default=-1), -1, -1):
            if i in needed:
                needed.update(self.steps[i].operands)
        return [i for i in sorted(needed - known) if self.steps[i].function is not None]


@define(eq=False)
class Evaluation:
    """A plan that is evaluated for some rows, region by region.

    Attributes:
        plan: The plan.
        axes: The axes of arrays.
    """

    plan: Plan
    axes: Sequence[Axis]
    _values: list[Any] = field(init=False)
    _columns: list[tuple[int, int, NDArray[Any]]] = field(factory=list, init=False)
    _groups: dict[Degrees, tuple[NDArray[np.intp], NDArray[np.intp]]] = field(factory=dict, init=False)
    _degrees: dict[str, tuple[int, NDArray[np.intp]]] = field(factory=dict, init=False)
    _rows: dict[tuple[Degrees, Degrees], NDArray[np.intp] | None] = field(factory=dict, init=False)
    _at: dict[tuple[bool, tuple[int, ...]], tuple[Range, ...]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        columns: Mapping[str, NDArray[Any]] = {n: c for axis in self.axes for n, c in axis.columns.items()}
        self._values = self.plan.numbers.copy()
        place = self.plan.shape.place
        for i in self.plan.columns:
            step = self.plan.steps[i]
            (at,) = step.axes
            column = np.asarray(columns[step.column], dtype=np.float64)
            shape = [1] * len(self.axes)
            if at == place:
                column = column[self._group(step.degrees)[0]]
            shape[at] = len(column)
            self._values[i] = column.reshape(shape)
            if at != place:
                self._columns.append((i, at, self._values[i]))

    def _repeated(self, own: Degrees, degrees: Degrees) -> NDArray[np.intp] | None:
        """For each combination of some degrees that of fewer of them; ``None`` where these are the same."""
        if (own, degrees) not in self._rows:
            rows = self._group(own)[1][self._group(degrees)[0]]
            same = np.array_equal(rows, np.arange(len(self._group(own)[0])))
            self._rows[own, degrees] = None if same else rows
        return self._rows[own, degrees]

    def _group(self, degrees: Degrees) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first row of each combination of some degrees, and the combination of each row."""
        if degrees not in self._groups:
            rows = self.axes[self.plan.shape.place]
            first = of_row = np.arange(len(rows))
            if degrees != _WHOLE and len(rows) > 1:
                number = np.zeros(len(rows), dtype=np.int64)
                for name in sorted(degrees):
                    size, position = self._positions(name)
                    number = number * size + position
                some, of_some = numbered(number)
                # Where all are different, in the order of the rows, so that nothing is repeated.
                if len(some) < len(rows):
                    first, of_row = some, of_some
            self._groups[degrees] = first, of_row
        return self._groups[degrees]

    def _positions(self, name: str) -> tuple[int, NDArray[np.intp]]:
        """How many values a degree has among the rows, and the position of that of each row."""
        if name not in self._degrees:
            first, of_rows = numbered(self.axes[self.plan.shape.place].columns[name])
            self._degrees[name] = len(first), of_rows
        return self._degrees[name]

    def checked(self, base: tuple[Range, ...]) -> list[Any]:
        """The conditions in a region."""
        values, plan = self._values, self.plan
        for i, axis, column in self._columns:
            values[i] = _cut(column, (axis,), base, None)
        self._run(plan.first, values, base, later=False)
        return [np.asarray(values[x]) for x in plan.conditions]

    def measured(self, base: tuple[Range, ...], at: tuple[Range, ...]) -> list[Any]:
        """The measures in a part of the region that was checked last, with all of its rows."""
        values, plan = self._values, self.plan
        self._run(plan.later_hoisted, values, base, later=True)
        if at != base:
            values = values.copy()
            for x in plan.entering:
                values[x] = _cut(values[x], plan.steps[x].axes, at, base, plan.shape.place)
        self._run(plan.later, values, base, later=True)
        return [np.asarray(values[x]) for x in plan.measures]

    def _run(self, order: Sequence[int], values: list[Any], base: tuple[Range, ...], *, later: bool) -> None:
        stale: dict[tuple[int, ...], bool] = {}
        steps = self.plan.steps
        for i in order:
            step = steps[i]
            if step.hoisted:
                axes = step.axes
                if axes not in stale:
                    at = tuple(base[a] for a in axes)
                    stale[axes] = self._at.get((later, axes)) != at
                    self._at[later, axes] = at
                if not stale[axes]:
                    continue
            operands = [values[x] for x in step.operands]
            if step.taken is None:
                values[i] = step.function(*operands)  # type: ignore[misc]  # only operations are run
            else:
                rows = self._repeated(step.taken, step.degrees)
                values[i] = (
                    operands[0] if rows is None else operands[0].take(rows, axis=self.plan.shape.place, mode="clip")
                )
            for x in step.last:
                values[x] = None


def _cut(
    values: NDArray[Any], axes: Sequence[int], at: tuple[Range, ...], base: tuple[Range, ...] | None, place: int = -1
) -> NDArray[Any]:
    """Values of a region, or of whole axes for ``None``, in a part of it; all along the axis of the rows."""
    index: list[slice] | None = None
    for a in axes:
        if a == place:
            continue
        first = 0 if base is None else base[a][0]
        begin, end = at[a][0] - first, at[a][1] - first
        if begin or end != values.shape[a]:
            index = index or [slice(None)] * values.ndim
            index[a] = slice(begin, end)
    return values if index is None else values[tuple(index)]
