"""Operations on rows in an order, with buffers that are written again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trnspec.perf.cache_lines import LINE
from trnspec.perf.sweep.columns import COUNTS
from trnspec.perf.sweep.expressions import Element, Expression, Table, required
from trnspec.perf.sweep.formulas import COLUMNS
from trnspec.perf.sweep.tables.axes import Axis

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    _bound: dict[int, Bound] = field(factory=dict)

    @classmethod
    def of(cls, outputs: Iterable[Operand], *, reuse: bool = True) -> Program:
        """The operations that some results need.

        Args:
            outputs: The results.
            reuse: Whether operations may write to the arrays of columns that no later operation reads.
        """
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
                if i in program.buffers and (reuse or expressions[i].function is not None):
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

    def bound(self, size: int, buffers: Buffers) -> Bound:
        """The operations for some number of rows.

        Args:
            size: Number of rows.
            buffers: The memory, which other programs use too.
        """
        known = self._bound.get(size)
        if known is not None:
            return known
        arrays = buffers.arrays(self.kinds, size)
        registers: dict[int, Any] = {register: arrays[buffer] for register, buffer in self.buffers.items()}
        calls: list[Callable[[], Any]] = []
        for function, operands, register in self.steps:
            values = [registers[x] if held else x for held, x in operands]
            if isinstance(function, Element):
                registers[register] = function(*values)
            else:
                calls.append(partial(function, *values, out=registers[register]))
        columns = {name: registers[register] for name, register in self.columns.items()}
        bound = Bound(size, columns, calls, [registers[x] if held else x for held, x in self.outputs])
        if len(self._bound) >= _SIZES:
            self._bound.clear()
        self._bound[size] = bound
        return bound


_SIZES = 64
"""Most numbers of rows for which the operations are kept."""


_PAGE = 4096
"""Bytes of a memory page."""


def staggered(size: int, dtype: Any, number: int) -> NDArray[Any]:
    """An array that begins with a cache line, each ``number`` at another place of a page.

    A processor takes an element that is read for one that was just written if both have the same place in their pages; with
    arrays of whole pages one after the other, that makes operations half as fast.
    """
    length = size * np.dtype(dtype).itemsize
    memory = np.empty(length + _PAGE, dtype=np.uint8)
    begin = (number * 5 * LINE - memory.ctypes.data) % _PAGE
    array: NDArray[Any] = memory[begin : begin + length].view(dtype)
    return array


@define
class Buffers:
    """Memory that several programs write to, one after the other.

    Attributes:
        known: For each type and width the arrays, of which smaller ones are the beginning.
        number: Arrays that were made.
    """

    known: dict[tuple[np.dtype[Any], int], list[NDArray[Any]]] = field(factory=dict)
    number: int = 0

    def arrays(self, kinds: Iterable[tuple[np.dtype[Any], int]], size: int) -> list[NDArray[Any]]:
        """An array for each of some types and widths."""
        used: Counter[tuple[np.dtype[Any], int]] = Counter()
        arrays: list[NDArray[Any]] = []
        for kind in kinds:
            of_kind, position = self.known.setdefault(kind, []), used[kind]
            used[kind] += 1
            if position < len(of_kind) and len(of_kind[position]) < size:
                del of_kind[position:]
            if position >= len(of_kind):
                dtype, width = kind
                self.number += 1
                array = staggered(size * width, dtype, self.number)
                of_kind.append(array.reshape(size, width) if width > 1 else array)
            arrays.append(of_kind[position][:size])
        return arrays


_Operand = tuple[bool, Any]
"""A register, or a scalar."""


@define
class Bound:
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

    def read(self, columns: Mapping[str, Any]) -> None:
        """Copy columns into the arrays of the program."""
        for name, array in self.columns.items():
            np.copyto(array, columns[name], casting="unsafe")

    def gather(self, columns: Mapping[str, Any], rows: NDArray[np.intp]) -> None:
        """Copy some rows of columns into the arrays of the program."""
        for name, array in self.columns.items():
            column = columns[name]
            if column.dtype == array.dtype:
                column.take(rows, out=array, mode="clip")
            else:
                np.copyto(array, column.take(rows), casting="unsafe")


Translation = tuple[str, str, np.int64 | NDArray[np.int64]]
"""A column, the word that has its positions on an axis, and their bits: for each value, or a shift where it is the position."""

REJECTED = 255
"""The features of a layout that is invalid."""
_CHUNK = 8192
"""Most rows that a program evaluates at once."""
_ROUND = 256
"""The number of rows that a program evaluates is a multiple of this, so that few sizes occur."""


NEAR = 12
"""Bits of a number by which rows are sorted, besides their features."""
_FOUND = 8192
"""Rows whose positions on axes are found at once."""


def near(axes: Mapping[str, Axis], which: Any) -> Any:
    """Numbers of rows that are equal where estimators are next to each other, so that elements of tables are."""
    if not isinstance(which, (np.ndarray, Expression)):
        return np.uint16(0)
    narrow = max(0, (len(axes["which"].values) - 1).bit_length() - NEAR)
    return (which >> narrow if narrow else which).astype(np.uint16)


def is_known(name: str, axis: Axis, column: Any) -> bool:
    """Whether a column that is not looked up has valid values, and where it is recorded as a number only that one."""
    if not isinstance(column, np.ndarray):
        return True
    if name in COUNTS and np.minimum.reduce(column) < 1:
        return False
    if axis.fixed:
        return bool(column.min() >= 0 and column.max() < len(axis.values))
    return len(axis.values) != 1 or bool((column == axis.values[0]).all())


@define
class Programs:
    """The operations of a batch: those that find out which layouts are valid, and for these the times.

    Rows whose layouts have the same features are evaluated together, without the operations of other features.

    Attributes:
        axes: The values of each column.
        layouts: Codes and features.
        kinds: Times and their parts by features.
        every: The features of the program for the other rows.
        words: The columns that programs have as bits of words.
        buffers: The memory of the programs.
        evaluated: Rows that were evaluated so far.
    """

    axes: Mapping[str, Axis]
    layouts: Program
    kinds: dict[int, Program]
    every: int
    words: list[Translation]
    buffers: Buffers = field(factory=Buffers)
    evaluated: int = field(default=0, init=False)
    _scratch: dict[str, NDArray[np.int64]] = field(factory=dict, init=False)

    def evaluate(self, columns: Mapping[str, Any], times: Sequence[NDArray[np.float64]]) -> NDArray[np.uint8] | None:
        """Write times and parts of valid rows, and return the codes of all; ``None`` where a value is new."""
        size = len(times[0])
        self.evaluated += size
        words: dict[str, NDArray[Any]] = {}
        code, features = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8)
        for begin in range(0, size, _FOUND):
            at = slice(begin, min(size, begin + _FOUND))
            part = {name: column[at] if isinstance(column, np.ndarray) else column for name, column in columns.items()}
            found = self.found(part, at.stop - begin)
            if found is None:
                return None
            code[at], features[at] = self.layout(part | found, at.stop - begin)
            for name, bits in found.items():
                words.setdefault(name, self._array(f"all {name}", size))[at] = bits
        self._write(dict(columns) | words, features, near(self.axes, columns["which"]), times)
        return code

    def found(self, columns: Mapping[str, Any], size: int) -> dict[str, NDArray[Any]] | None:
        """The positions of the values of rows on axes, as bits of words; ``None`` where one is new."""
        known = {name for name, _, _ in self.words}
        if not all(is_known(name, self.axes[name], columns[name]) for name in COLUMNS if name not in known):
            return None
        words: dict[str, NDArray[Any]] = {}
        part = self._array("part", size)
        for name, word, bits in self.words:
            if word in words:
                self.axes[name].find(columns[name], bits, part)
                np.bitwise_or(words[word], part, out=words[word])
            else:
                words[word] = self._array(word, size)
                self.axes[name].find(columns[name], bits, words[word])
        return None if any(np.minimum.reduce(word) < 0 for word in words.values()) else words

    def _array(self, name: str, size: int) -> NDArray[np.int64]:
        """An array for bits of rows, which is used again."""
        array = self._scratch.get(name)
        if array is None or len(array) < size:
            array = self._scratch[name] = np.empty(size, dtype=np.int64)
        return array[:size]

    def layout(self, columns: Mapping[str, Any], size: int) -> tuple[Any, Any]:
        """Codes and features of some rows, which the next call overwrites; those of all rows where they are equal."""
        layouts = self.layouts.bound(size, self.buffers)
        layouts.read(columns)
        code, features = layouts.run()
        return code, features

    def _write(
        self, columns: Mapping[str, Any], features: NDArray[np.uint8], near: Any, times: Sequence[NDArray[np.float64]]
    ) -> None:
        """Write times and parts of rows with valid layouts.

        Args:
            columns: The columns that programs read.
            features: The features of each row.
            near: Numbers below 2^12; rows with the same one look up elements that are near each other.
            times: Where to write.
        """
        programs = list(self.kinds)
        place = np.full(REJECTED + 1, programs.index(self.every), dtype=np.uint16)
        place[programs] = np.arange(len(programs))
        place[REJECTED] = len(programs)
        keys = place.take(features)
        order = np.argsort((keys << np.uint16(NEAR)) | near, kind="stable")
        ends = np.cumsum(np.bincount(keys, minlength=len(programs))).tolist()
        for begin, end, program in zip([0, *ends], ends, self.kinds.values(), strict=False):
            for first in range(begin, end, _CHUNK):
                part = order[first : min(end, first + _CHUNK)]
                count = -(-len(part) // _ROUND) * _ROUND
                bound = program.bound(count, self.buffers)
                bound.gather(columns, np.concatenate((part, np.full(count - len(part), part[0]))))
                for column, values in zip(times, bound.run(), strict=True):
                    column[part] = values[: len(part)] if isinstance(values, np.ndarray) else values
