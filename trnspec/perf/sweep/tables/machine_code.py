"""Recorded operations as machine code: one pass over the rows, without arrays in between.

It needs llvmlite (the extra ``fast``).  An operation is the instruction that IEEE 754 defines, on eight rows at once; none is
contracted or reassociated, so results have the bits of numpy's.  Functions of arrays that are not ufuncs remain calls
between the passes.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from trnspec.perf.llvm import LANES, compiled, has
from trnspec.perf.sweep.expressions import Cast, Element, Expression, Table, required, selected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.perf.sweep.expressions import Operand

_CHUNK = 1 << 16
"""Rows of a pass where results of one are read by the next."""
_CACHED = 1 << 19
"""Bytes of a table from which on elements are fetched into the cache before a row needs them."""
_AHEAD = 8
"""How many rows before; the misses of more rows would hold up the columns, which are read at the same time."""

_PERMUTABLE = 64
"""Elements of a table up to which they are faster selected from vectors than read from memory."""

_FLOAT = {np.add: "fadd", np.subtract: "fsub", np.multiply: "fmul", np.true_divide: "fdiv", np.negative: "fneg"}
_WHOLE = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.negative: "sub",
    np.left_shift: "shl",
    np.right_shift: "ashr",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
    np.bitwise_xor: "xor",
}
_UNSIGNED = _WHOLE | {np.right_shift: "lshr"}
_TRUTH = {
    np.add: "or",
    np.multiply: "and",
    np.maximum: "or",
    np.minimum: "and",
    np.logical_and: "and",
    np.logical_or: "or",
    np.logical_not: "xor",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
    np.bitwise_xor: "xor",
}
_COMPARED = {
    np.greater: "gt",
    np.greater_equal: "ge",
    np.less: "lt",
    np.less_equal: "le",
    np.equal: "eq",
    np.not_equal: "ne",
}
_LOGICAL = {np.logical_and, np.logical_or, np.logical_not}
_CALLED = {np.floor: "llvm.floor", np.ceil: "llvm.ceil", np.sqrt: "llvm.sqrt"}
_PERMUTED = "llvm.x86.avx512.vpermi2var"
_UFUNCS = {*_FLOAT, *_WHOLE, *_TRUTH, *_COMPARED, *_CALLED}
_BOOL, _INT = np.dtype(np.bool_), np.dtype(np.int64)


def is_inline(x: Expression) -> bool:
    """Whether an operation is a few instructions."""
    function = x.function
    return (
        function is None or function in _UFUNCS or function is selected or isinstance(function, (Cast, Element, Table))
    )


def _is_key(x: Operand) -> bool:
    """Whether a number is cut from columns with masks and shifts, which is faster than to store it."""
    if not isinstance(x, Expression) or x.function is None:
        return True
    return x.dtype == np.int64 and x.function in _WHOLE and all(map(_is_key, x.inputs))


def _is_position(x: Operand) -> bool:
    """Whether a number is computed from columns, without tables."""
    if not isinstance(x, Expression) or x.function is None:
        return True
    return x.function in _UFUNCS and all(map(_is_position, x.inputs))


@frozen
class _Place:
    """An array that a pass reads or writes.

    Attributes:
        kind: ``column``, ``result``, ``buffer`` or ``table``.
        key: The name of a column, the number of a result; the identity of a table or of what a buffer has.
        array: The table or the buffer.
    """

    kind: str
    key: Any = None
    array: Any = field(default=None, eq=False)


class _Pass:
    """The instructions of one pass.

    Attributes:
        name: Its name.
        buffers: See :class:`Routine`.
        indexed: Whether rows have positions in columns and results.
        places: Arrays that it reads or writes.
        names: The value of each expression, by its identity.
    """

    def __init__(self, name: str, buffers: Mapping[int, NDArray[Any]], *, indexed: bool) -> None:
        self.name = name
        self.buffers = buffers
        self.indexed = indexed
        self.places: list[_Place] = []
        self.names: dict[int, str] = {}
        self._lines: list[str] = []
        self._row, self._place = "%i", "%r"
        self._fetched: set[tuple[int, int]] = set()
        self._count = 0
        self._pointers: dict[Any, str] = {}

    def text(self) -> str:
        """The function: it takes the number of rows, their positions and the addresses of the arrays."""
        entry = "".join(
            f" %a{i} = getelementptr ptr, ptr %places, i64 {i}\n %p{i} = load ptr, ptr %a{i}\n"
            for i in range(len(self.places))
        )
        # The last rows are computed twice where their number is no multiple of that of an instruction.
        begin = (
            "loop:\n %k = phi i64 [0, %entry], [%next, %loop]\n %over = icmp sgt i64 %k, %last\n"
            " %i = select i1 %over, i64 %last, i64 %k\n"
        )
        if self._fetched:
            begin += f" %a = add i64 %k, {_AHEAD}\n %late = icmp sgt i64 %a, %last\n %f = select i1 %late, i64 %last, i64 %a\n"
        for row, place in (("%i", "%r"), ("%f", "%fr"))[: 1 + bool(self._fetched)] if self.indexed else ():
            begin += f" {place}p = getelementptr i64, ptr %rows, i64 {row}\n"
            begin += f" {place} = load <{LANES} x i64>, ptr {place}p, align 8\n"
        end = f" %next = add i64 %k, {LANES}\n %more = icmp slt i64 %next, %n\n br i1 %more, label %loop, label %exit\n"
        return (
            f"define void @{self.name}(i64 %n, ptr %rows, ptr %places) {{\nentry:\n %last = sub i64 %n, {LANES}\n{entry}"
            f" br label %loop\n{begin}{''.join(self._lines)}{end}exit:\n ret void\n}}\n"
        )

    def value(self, x: Operand, dtype: np.dtype[Any]) -> str:
        """The value of an operand as a type."""
        if isinstance(x, Expression):
            return self._cast(self.names[id(x)], x.dtype, dtype)
        return _constant(x, dtype)

    def need(self, x: Expression) -> None:
        """Compute the value of an expression, or read it where another pass or a function has left it."""
        if id(x) in self.names:
            return
        for y in _operands(x):
            if id(y) not in self.names:
                if _is_key(y):
                    self.need(y)
                else:
                    self._load(y, _Place("buffer", id(y), self.buffers[id(y)]))
        if x.function is None:
            self._load(x, _Place("column", x.inputs[0]))
        else:
            self._apply(x)

    def _load(self, x: Expression, place: _Place) -> None:
        """Read the value of an expression from an array."""
        pointer, kind = self._pointer(place), _stored(x.dtype)
        if self.indexed and place.kind == "column":
            value = self._gather(pointer, self._place, kind)
        else:
            address = self._emit(f"getelementptr {kind}, ptr {pointer}, i64 {self._row}")
            value = self._emit(f"load <{LANES} x {kind}>, ptr {address}, align 1")
        self.names[id(x)] = (
            value if x.dtype != _BOOL else self._emit(f"trunc {_vector(kind)} {value} to {_vector('i1')}")
        )

    def store(self, x: Expression, place: _Place) -> None:
        """Write the value of an expression to an array."""
        pointer, kind, value = self._pointer(place), _stored(x.dtype), self.names[id(x)]
        if x.dtype == _BOOL:
            value = self._emit(f"zext {_vector('i1')} {value} to {_vector('i8')}")
        if self.indexed and place.kind == "result":
            address = self._emit(f"getelementptr {kind}, ptr {pointer}, {_vector('i64')} %r")
            self._lines.append(
                f" call void @llvm.masked.scatter.v{LANES}{_suffix(kind)}.v{LANES}p0({_vector(kind)} {value}, {_vector('ptr')} "
                f"{address}, i32 8, {_vector('i1')} splat (i1 true))\n"
            )
        else:
            address = self._emit(f"getelementptr {kind}, ptr {pointer}, i64 %i")
            self._lines.append(f" store {_vector(kind)} {value}, ptr {address}, align 1\n")

    def _apply(self, x: Expression) -> None:
        """Compute an operation."""
        function = x.function
        if isinstance(function, Table):
            self.names[id(x)] = self._looked_up(function.table, x.inputs[0], 1, 0)
        elif isinstance(function, Element):
            (records,) = x.inputs
            table = records.function.table
            self.names[id(x)] = self._looked_up(table, records.inputs[0], table.shape[1], function.position)
        elif isinstance(function, Cast):
            self.names[id(x)] = self.value(x.inputs[0], x.dtype)
        elif function is selected:
            condition, then, otherwise = x.inputs
            either = ", ".join(f"{_vector(_kind(x.dtype))} {self.value(y, x.dtype)}" for y in (then, otherwise))
            self.names[id(x)] = self._emit(f"select {_vector('i1')} {self.value(condition, _BOOL)}, {either}")
        else:
            assert isinstance(function, np.ufunc)
            operand = [y.dtype if isinstance(y, Expression) else _type_of(y) for y in x.inputs]
            *taken, given = function.resolve_dtypes((*operand, None))
            if function in _LOGICAL:
                taken = [_BOOL] * len(taken)
            values = [self.value(y, dtype) for y, dtype in zip(x.inputs, taken, strict=True)]
            self.names[id(x)] = self._cast(self._ufunc(function, values, taken[0]), given, x.dtype)

    def _ufunc(self, function: np.ufunc, values: list[str], dtype: np.dtype[Any]) -> str:
        """The instruction of a ufunc whose operands have one type."""
        kind, operands = _vector(_kind(dtype)), ", ".join(values)
        is_float, is_unsigned = dtype.kind == "f", dtype.kind in "bu"
        letter = "o" if is_float else "u" if is_unsigned else "s"
        compare = "fcmp" if is_float else "icmp"
        if function in _COMPARED:
            word = _COMPARED[function]
            if word in {"eq", "ne"}:
                letter = ("u" if word == "ne" else "o") if is_float else ""
            return self._emit(f"{compare} {letter}{word} {kind} {operands}")
        if function in {np.maximum, np.minimum} and dtype != _BOOL:
            # Like Python: the second one where it is larger or smaller.
            a, b = values
            other = self._emit(f"{compare} {letter}{'gt' if function is np.maximum else 'lt'} {kind} {b}, {a}")
            return self._emit(f"select {_vector('i1')} {other}, {kind} {b}, {kind} {a}")
        if function in _CALLED:
            return self._emit(f"call {kind} @{_CALLED[function]}.v{LANES}{_suffix(_kind(dtype))}({kind} {operands})")
        if function is np.logical_not:
            operands += ", splat (i1 true)"
        elif function is np.negative and not is_float:
            operands = f"zeroinitializer, {operands}"
        names = _FLOAT if is_float else _TRUTH if dtype == _BOOL else _UNSIGNED if is_unsigned else _WHOLE
        return self._emit(f"{names[function]} {kind} {operands}")

    def _looked_up(self, table: NDArray[Any], position: Expression, width: int, element: int) -> str:
        if table.ndim == 1 and len(table) <= _PERMUTABLE and has("avx512f"):
            return self._permuted(table, position)
        pointer = self._pointer(_Place("table", id(table), table))
        if table.nbytes >= _CACHED and _is_position(position):
            self._fetch(table, position, pointer, width)
        value = self._gather(pointer, self._number(position, width, element), _stored(table.dtype))
        return value if table.dtype != _BOOL else self._emit(f"trunc {_vector('i8')} {value} to {_vector('i1')}")

    def _permuted(self, table: NDArray[Any], position: Expression) -> str:
        """The elements of a table that is a few vectors: of each two of them, and of the results the one that is meant."""
        element = np.dtype(np.float64 if table.dtype.kind == "f" else np.int64)
        kind, suffix, place = _kind(element), "pd" if table.dtype.kind == "f" else "q", self.value(position, _INT)
        # Of two vectors at least; positions are never in what is repeated.
        padded = np.resize(table, max(2 * LANES, 1 << (table.size - 1).bit_length())).astype(element)
        vectors = [
            f"{_vector(kind)} <{', '.join(f'{kind} {_scalar(x, element)}' for x in part)}>"
            for part in padded.reshape(-1, LANES)
        ]
        found = [
            self._emit(f"call {_vector(kind)} @{_PERMUTED}.{suffix}.512({low}, {_vector('i64')} {place}, {high})")
            for low, high in zip(vectors[::2], vectors[1::2], strict=True)
        ]
        bit = 2 * LANES
        while len(found) > 1:
            masked = self._emit(f"and {_vector('i64')} {place}, splat (i64 {bit})")
            later = self._emit(f"icmp ne {_vector('i64')} {masked}, zeroinitializer")
            found = [
                self._emit(f"select {_vector('i1')} {later}, {_vector(kind)} {high}, {_vector(kind)} {low}")
                for low, high in zip(found[::2], found[1::2], strict=True)
            ]
            bit *= 2
        return self._cast(found[0], element, table.dtype)

    def _number(self, position: Expression, width: int, element: int) -> str:
        """The numbers of elements in a table with records of some width."""
        place = self.value(position, _INT)
        if width > 1:
            place = self._emit(f"mul {_vector('i64')} {place}, splat (i64 {width})")
        return self._emit(f"add {_vector('i64')} {place}, splat (i64 {element})") if element else place

    def _fetch(self, table: NDArray[Any], position: Expression, pointer: str, width: int) -> None:
        """Fetch the records of later rows into the cache: a pass is too long for a processor to look as far ahead."""
        if (id(table), id(position)) in self._fetched:
            return
        self._fetched.add((id(table), id(position)))
        kept = self.names, self._row, self._place
        self.names, self._row, self._place = {}, "%f", "%fr"
        for x in required([position]):
            self.need(x)
        place = self._number(position, width, 0)
        self.names, self._row, self._place = kept
        address = self._emit(f"getelementptr {_stored(table.dtype)}, ptr {pointer}, {_vector('i64')} {place}")
        for lane in range(LANES):
            one = self._emit(f"extractelement {_vector('ptr')} {address}, i32 {lane}")
            self._lines.append(f" call void @llvm.prefetch.p0(ptr {one}, i32 0, i32 3, i32 1)\n")

    def _gather(self, pointer: str, places: str, kind: str) -> str:
        address = self._emit(f"getelementptr {kind}, ptr {pointer}, {_vector('i64')} {places}")
        return self._emit(
            f"call {_vector(kind)} @llvm.masked.gather.v{LANES}{_suffix(kind)}.v{LANES}p0({_vector('ptr')} {address}, "
            f"i32 8, {_vector('i1')} splat (i1 true), {_vector(kind)} poison)"
        )

    def _cast(self, value: str, dtype: np.dtype[Any], to: np.dtype[Any]) -> str:
        if dtype == to:
            return value
        before, after = _vector(_kind(dtype)), _vector(_kind(to))
        if to == _BOOL:
            return self._emit(f"{'fcmp une' if dtype.kind == 'f' else 'icmp ne'} {before} {value}, zeroinitializer")
        if dtype == _BOOL:
            return self._emit(f"select {before} {value}, {after} {_constant(1, to)}, {after} zeroinitializer")
        if to.kind == "f":
            word = "uitofp" if dtype.kind == "u" else "sitofp"
        elif dtype.kind == "f":
            word = "fptoui" if to.kind == "u" else "fptosi"
        elif to.itemsize == dtype.itemsize:
            return value
        else:
            word = "trunc" if to.itemsize < dtype.itemsize else "zext" if dtype.kind == "u" else "sext"
        return self._emit(f"{word} {before} {value} to {after}")

    def _pointer(self, place: _Place) -> str:
        key = place.kind, place.key
        if key not in self._pointers:
            self._pointers[key] = f"%p{len(self.places)}"
            self.places.append(place)
        return self._pointers[key]

    def _emit(self, instruction: str) -> str:
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f" {name} = {instruction}\n")
        return name


def _vector(kind: str) -> str:
    return f"<{LANES} x {kind}>"


def _kind(dtype: np.dtype[Any]) -> str:
    """The type of a value."""
    return "i1" if dtype == _BOOL else "double" if dtype.kind == "f" else f"i{8 * dtype.itemsize}"


def _stored(dtype: np.dtype[Any]) -> str:
    """The type of an element of an array."""
    return "i8" if dtype == _BOOL else _kind(dtype)


def _suffix(kind: str) -> str:
    return "f64" if kind == "double" else kind


def _type_of(scalar: Any) -> Any:
    """The type of a scalar; Python's adapt to those of arrays."""
    return scalar.dtype if isinstance(scalar, np.generic) else type(scalar) if type(scalar) is not bool else _BOOL


def _constant(scalar: Any, dtype: np.dtype[Any]) -> str:
    return f"splat ({_kind(dtype)} {_scalar(scalar, dtype)})"


def _scalar(scalar: Any, dtype: np.dtype[Any]) -> str:
    if dtype.kind == "f":
        return f"0x{struct.unpack('<Q', struct.pack('<d', scalar))[0]:016X}"
    return str(bool(scalar)).lower() if dtype == _BOOL else str(int(scalar))


@define
class Routine:
    """Results from columns: passes, and between them functions of arrays.

    Attributes:
        steps: Passes, and functions as their expressions.
        buffers: What one step leaves for another, by the identity of its expression.
        copied: By the identity of a function that is a result the number of that.
        constants: The results that are the same for all rows, by their number.
        calls: For each pass its machine code, and the addresses of its arrays.
        engine: What owns the machine code.
    """

    steps: list[_Pass | Expression]
    buffers: dict[int, NDArray[Any]]
    copied: dict[int, int]
    constants: dict[int, Any]
    calls: list[tuple[Any, NDArray[np.uintp]]] = field(factory=list)
    engine: Any = None

    def run(
        self,
        columns: Mapping[str, NDArray[Any]],
        results: Sequence[NDArray[Any]],
        rows: NDArray[np.int64] | None,
        size: int,
    ) -> None:
        """Write results.

        Args:
            columns: Contiguous columns of the types that were recorded.
            results: Arrays of the results.
            rows: Positions of the rows in columns and results; without, the first ones.
            size: Number of rows, at least :data:`LANES`.
        """
        for number, value in self.constants.items():
            results[number][slice(size) if rows is None else rows] = value
        # What is left for another step is in cache.
        count = 1 if len(self.steps) == 1 else -(-size // _CHUNK)
        for n in range(count):
            self._run(columns, results, rows, size * n // count, size * (n + 1) // count)

    def _run(self, columns: Mapping[str, Any], results: Sequence[Any], rows: Any, begin: int, end: int) -> None:
        calls = iter(self.calls)
        for step in self.steps:
            if isinstance(step, Expression):
                operands = [self.buffers[id(x)][: end - begin] if isinstance(x, Expression) else x for x in step.inputs]
                out = self.buffers[id(step)][: end - begin]
                step.function(*operands, out=out)  # type: ignore[misc]
                if id(step) in self.copied:
                    results[self.copied[id(step)]][slice(begin, end) if rows is None else rows[begin:end]] = out
                continue
            function, addresses = next(calls)
            for i, place in enumerate(step.places):
                if place.kind in {"column", "result"}:
                    array = columns[place.key] if place.kind == "column" else results[place.key]
                    addresses[i] = array.ctypes.data + (begin * array.itemsize if rows is None else 0)
            function(end - begin, None if rows is None else rows.ctypes.data + 8 * begin, addresses.ctypes.data)


@define
class Library:
    """Routines that are compiled together.

    Attributes:
        routines: The routines.
    """

    routines: list[Routine] = field(factory=list)

    def routine(self, results: Sequence[Operand], *, indexed: bool) -> Routine:
        """A routine for some results.

        Args:
            results: The results.
            indexed: Whether rows have positions in columns and results.
        """
        order = [x for x in required(results) if not (isinstance(x.function, Table) and x.function.table.ndim > 1)]
        levels, last = _levels(order)
        numbers = {id(x): i for i, x in enumerate(results) if isinstance(x, Expression)}
        needed = {
            id(y) for x in order for y in _operands(x)
            if not (is_inline(x) and is_inline(y)) or (levels[id(y)] < levels[id(x)] and not _is_key(y))
        }  # fmt: skip
        buffers = {id(x): np.empty(_CHUNK, dtype=x.dtype) for x in order if id(x) in needed or not is_inline(x)}
        steps: list[_Pass | Expression] = []
        for level in range(last + 1):
            one = _Pass(f"pass_{len(self.routines)}_{level}", buffers, indexed=indexed)
            for x in order:
                if is_inline(x) and levels[id(x)] == level:
                    one.need(x)
                    if id(x) in needed:
                        one.store(x, _Place("buffer", id(x), buffers[id(x)]))
                    if id(x) in numbers:
                        one.store(x, _Place("result", numbers[id(x)]))
            steps += [one] if one.places else []
            steps += [x for x in order if not is_inline(x) and levels[id(x)] == level]
        copied = {id(x): numbers[id(x)] for x in order if not is_inline(x) and id(x) in numbers}
        constants = {i: x for i, x in enumerate(results) if not isinstance(x, Expression)}
        routine = Routine(steps, buffers, copied, constants)
        self.routines.append(routine)
        return routine

    def compile(self, keys: int) -> Order:
        """Make machine code of all routines, and of what sorts keys below a number."""
        passes = [step for routine in self.routines for step in routine.steps if isinstance(step, _Pass)]
        engine = compiled(_DECLARED + _SORT + "".join(one.text() for one in passes))
        for routine in self.routines:
            routine.engine = engine
            for step in routine.steps:
                if isinstance(step, _Pass):
                    addresses = [0 if x.array is None else x.array.ctypes.data for x in step.places]
                    function = _PASS(engine.get_function_address(step.name))
                    routine.calls.append((function, np.array(addresses, dtype=np.uintp)))
        count, place = (_SORTS(engine.get_function_address(name)) for name in ("count", "place"))
        return Order(count, place, keys, engine)


_PASS = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_SORTS = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@define
class Order:
    """Sorts rows by small keys: counts each key, and puts the rows into their places.

    Attributes:
        count: Adds up how often each key occurs.
        place: Writes the rows in their order; places of keys become their ends.
        keys: Number of keys.
        engine: What owns the machine code.
    """

    count: Any
    place: Any
    keys: int
    engine: Any

    def sorted(self, key: NDArray[np.uint8]) -> tuple[NDArray[np.int64], list[int]]:
        """The rows in the order of their keys, equal ones as they are; and for each key where its rows end."""
        counts, rows = np.zeros(self.keys + 1, dtype=np.int64), np.empty(len(key), dtype=np.int64)
        self.count(len(key), key.ctypes.data, counts.ctypes.data + 8, None)
        places = np.cumsum(counts)
        self.place(len(key), key.ctypes.data, places.ctypes.data, rows.ctypes.data)
        return rows, places[:-1].tolist()


_EACH = """
entry:
 br label %loop
loop:
 %i = phi i64 [0, %entry], [%next, %loop]
 %kp = getelementptr i8, ptr %keys, i64 %i
 %k = load i8, ptr %kp
 %at = zext i8 %k to i64
 %cp = getelementptr i64, ptr %counts, i64 %at
 %c = load i64, ptr %cp
 %more = add i64 %c, 1
 store i64 %more, ptr %cp
 INSTRUCTIONS
 %next = add i64 %i, 1
 %left = icmp slt i64 %next, %n
 br i1 %left, label %loop, label %exit
exit:
 ret void
}
"""
_SORT = "".join(
    f"define void @{name}(i64 %n, ptr %keys, ptr %counts, ptr %rows) {{{_EACH.replace('INSTRUCTIONS', instructions)}"
    for name, instructions in (
        ("count", ""),
        ("place", "%rp = getelementptr i64, ptr %rows, i64 %c\n store i64 %i, ptr %rp"),
    )
)
_DECLARED = (
    "".join(
        f"declare {_vector(kind)} @llvm.masked.gather.v{LANES}{_suffix(kind)}.v{LANES}p0"
        f"({_vector('ptr')}, i32, {_vector('i1')}, {_vector(kind)})\n"
        f"declare void @llvm.masked.scatter.v{LANES}{_suffix(kind)}.v{LANES}p0"
        f"({_vector(kind)}, {_vector('ptr')}, i32, {_vector('i1')})\n"
        for kind in ("double", "i64", "i32", "i16", "i8")
    )
    + "".join(
        f"declare {_vector(kind)} @{_PERMUTED}.{suffix}.512({_vector(kind)}, {_vector('i64')}, {_vector(kind)})\n"
        for kind, suffix in (("double", "pd"), ("i64", "q"))
    )
    + "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
    + "".join(f"declare {_vector('double')} @{name}.v{LANES}f64({_vector('double')})\n" for name in _CALLED.values())
)


def _operands(x: Expression) -> list[Expression]:
    """The expressions that an operation reads: of an element of a record the position of that."""
    inputs = x.inputs[0].inputs if isinstance(x.function, Element) else x.inputs
    return [y for y in inputs if isinstance(y, Expression)]


def _levels(order: Sequence[Expression]) -> tuple[dict[int, int], int]:
    """The pass in which each expression is computed, as late as possible; and the last one.

    A function of arrays is called after the pass of its level, so that its result is read in the next ones.
    """
    first: dict[int, int] = {}
    for x in order:
        first[id(x)] = max((first[id(y)] + (not is_inline(y)) for y in _operands(x)), default=0)
    last = max((first[id(x)] + (not is_inline(x)) for x in order), default=0)
    level = dict.fromkeys(first, last)
    for x in reversed(order):
        if not is_inline(x):
            level[id(x)] = first[id(x)]
        for y in _operands(x):
            level[id(y)] = min(level[id(y)], level[id(x)])
    return level, last
