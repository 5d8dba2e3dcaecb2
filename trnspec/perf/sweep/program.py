"""Operations on rows in an order, with buffers that are written again and again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define
from numpy.typing import NDArray

from trnspec.perf.sweep.expressions import Element, Expression, Table, required

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.perf.sweep.expressions import Operand


@define
class Program:
    """Operations in order, each with the buffer that it writes to.

    A buffer is written again when no later operation reads its number, so that the working set stays in cache.

    Attributes:
        steps: Functions, with their operands and the register of the result.
        columns: The registers of columns, by name.
        outputs: The results.
        buffers: For each register its buffer, if it has one.
        kinds: Type and width of each buffer.
    """

    steps: list[tuple[Callable[..., Any], tuple[_Operand, ...], int]]
    columns: dict[str, int]
    outputs: list[_Operand]
    buffers: dict[int, int]
    kinds: list[tuple[np.dtype[Any], int]]
    _bound: _Bound | None = None

    @classmethod
    def of(cls, outputs: Iterable[Operand]) -> Program:
        """The operations that some results need."""
        results = list(outputs)
        expressions = required(results)
        register = {id(x): i for i, x in enumerate(expressions)}

        def operand(x: Operand) -> _Operand:
            return (True, register[id(x)]) if isinstance(x, Expression) else (False, x)

        last = {register[id(i)]: n for n, x in enumerate(expressions) for i in x.inputs if isinstance(i, Expression)}
        last |= {register[id(x)]: len(expressions) for x in results if isinstance(x, Expression)}
        for n, x in enumerate(expressions):
            if isinstance(x.function, Element):
                # A view is valid as long as its records.
                records = register[id(x.inputs[0])]
                last[records] = max(last[records], last.get(n, n))
        ends: dict[int, list[int]] = {}
        for i, n in last.items():
            ends.setdefault(n, []).append(i)
        free: dict[tuple[np.dtype[Any], int], list[int]] = {}
        program = cls([], {}, [operand(x) for x in results], {}, [])
        for n, x in enumerate(expressions):
            width = x.function.table.shape[1] if isinstance(x.function, Table) and x.function.table.ndim > 1 else 1
            kind = x.dtype, width
            # An operation may write to the buffer of an operand: elements are computed one by one.
            for i in ends.get(n, ()):
                if i in program.buffers:
                    free.setdefault(program.kinds[program.buffers[i]], []).append(program.buffers[i])
            if x.function is None:
                program.columns[x.inputs[0]] = n
            else:
                program.steps.append((x.function, tuple(map(operand, x.inputs)), n))
            if not isinstance(x.function, Element):
                spare = free.get(kind) if x.function is not None else None
                program.buffers[n] = spare.pop() if spare else len(program.kinds)
                if program.buffers[n] == len(program.kinds):
                    program.kinds.append(kind)
        return program

    def bound(self, size: int) -> _Bound:
        """The operations for some number of rows."""
        if self._bound is None or self._bound.size != size:
            arrays = [np.empty((size, width) if width > 1 else size, dtype=dtype) for dtype, width in self.kinds]
            registers = {register: arrays[buffer] for register, buffer in self.buffers.items()}
            calls: list[Callable[[], Any]] = []
            for function, operands, register in self.steps:
                values = [registers[x] if held else x for held, x in operands]
                if isinstance(function, Element):
                    registers[register] = function(*values)
                else:
                    calls.append(partial(function, *values, out=registers[register]))
            columns = {name: registers[register] for name, register in self.columns.items()}
            self._bound = _Bound(size, columns, calls, [registers[x] if held else x for held, x in self.outputs])
        return self._bound


_Operand = tuple[bool, Any]
"""A register, or a scalar."""


@define
class _Bound:
    """The operations for some number of rows.

    Attributes:
        size: Number of rows.
        columns: The arrays that columns are read from.
        calls: The operations.
        results: The arrays of the results, which every run overwrites.
    """

    size: int
    columns: dict[str, NDArray[Any]]
    calls: list[Callable[[], Any]]
    results: list[Any]

    def run(self) -> list[Any]:
        """The results for the rows in the columns."""
        for call in self.calls:
            call()
        return self.results
