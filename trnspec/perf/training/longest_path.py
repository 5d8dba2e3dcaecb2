"""The longest paths through the passes of a pipeline: of one row in Python, of many in machine code or with numpy."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from trnspec.perf import llvm
from trnspec.perf.cache_lines import in_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW = 8
"""Rows up to which each is computed by itself: a pass takes 0.1 us, a level of passes of any number of rows 5 us."""
_ELEMENTS = 1 << 20
"""Passes times rows that are computed at once with numpy."""
_COMPILED = 1 << 19
"""Passes times rows of a process from which on machine code is made: as long as they take in Python."""
_LANES = np.arange(llvm.LANES)

Level = tuple[slice, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
"""Passes of different stages that need none of each other: their numbers, those of the passes that they follow on their stage
and on others, and the positions of their durations."""


@frozen(eq=False)
class Paths:
    """The paths through some passes, which have numbers; those after the last are of none, and of what comes before a stage.

    Attributes:
        size: The number of passes.
        levels: The passes in order.
    """

    size: int
    levels: tuple[Level, ...]

    @cached_property
    def flat(self) -> NDArray[np.int64]:
        """The passes one by one: number, number of either pass before, and position of the duration; shape (4, passes)."""
        numbers = np.arange(self.size)
        columns = zip(*((numbers[here], own, other, part) for here, own, other, part in self.levels), strict=True)
        return np.array([np.concatenate(column) for column in columns], dtype=np.int64)

    @cached_property
    def _lists(self) -> list[list[int]]:
        passes: list[list[int]] = self.flat.T.tolist()
        return passes

    def longest(
        self, durations: NDArray[np.float64], ends: NDArray[np.float64], wanted: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """The longest path to and including some passes; shape (wanted, rows).

        Args:
            durations: The durations; shape (positions, rows).
            ends: What comes before the first passes of each stage; shape (stages, rows).
            wanted: The passes.
        """
        rows = durations.shape[1]
        if rows and _FUNCTION.is_ready(rows * self.size):
            return self._by_machine_code(durations, ends, wanted)
        if rows <= _FEW:
            each = [self._of_row(durations[:, i].tolist(), ends[:, i].tolist()) for i in range(rows)]
            return np.array([[of_row[i] for of_row in each] for i in wanted.tolist()]).reshape(len(wanted), rows)
        most = max(1, _ELEMENTS // self.size)
        parts = [slice(begin, begin + most) for begin in range(0, rows, most)]
        return np.concatenate([self._by_levels(durations[:, at], ends[:, at])[wanted] for at in parts], axis=1)

    def _of_row(self, durations: Sequence[float], ends: Sequence[float]) -> list[float]:
        found = [0.0] * self.size + [-np.inf, *ends]
        for here, own, other, part in self._lists:
            one, two = found[own], found[other]
            found[here] = (two if two > one else one) + durations[part]  # noqa: FURB136  # max takes three times as long
        return found

    def _by_levels(self, durations: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
        stages, rows = ends.shape
        durations = np.ascontiguousarray(durations)
        found, buffers = np.empty((self.size + 1 + stages, rows)), np.empty((2, stages, rows))
        found[self.size], found[self.size + 1 :] = -np.inf, ends
        for here, own, other, part in self.levels:
            one, two = (buffer[: len(own)] for buffer in buffers)
            # Positions are never outside; numpy would buffer the output if it had to check that.
            found.take(own, axis=0, out=one, mode="clip")
            found.take(other, axis=0, out=two, mode="clip")
            np.maximum(one, two, out=one)
            durations.take(part, axis=0, out=two, mode="clip")
            np.add(one, two, out=found[here])
        return found

    def _by_machine_code(
        self, durations: NDArray[np.float64], ends: NDArray[np.float64], wanted: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        given = ends.shape[1]
        if given < llvm.LANES:
            # The code computes no fewer rows at once.
            durations, ends = (x.take(_LANES, axis=1, mode="clip") for x in (durations, ends))
        durations, ends = np.ascontiguousarray(durations), np.ascontiguousarray(ends)
        stages, rows = ends.shape
        places = np.ascontiguousarray(wanted, dtype=np.int64)
        found, result = in_lines((self.size + 1 + stages, llvm.LANES), np.float64), np.empty((len(places), rows))
        found[self.size] = -np.inf
        arrays = self.flat, durations, ends, found, places, result
        _FUNCTION((rows, self.size, stages, len(places)), arrays)
        return result[:, :given]


_VECTOR = f"<{llvm.LANES} x double>"


def _copied(name: str, after: str, count: str, source: str, target: str) -> str:
    """A loop that copies vectors: rows of a matrix, or numbered ones of the paths that were found."""
    return f"""
{name}:
  %{name}_k = phi i64 [0, %{after}], [%{name}_next, %{name}]
{source}
  %{name}_v = load {_VECTOR}, ptr %{name}_from, align 8
{target}
  store {_VECTOR} %{name}_v, ptr %{name}_to, align 8
  %{name}_next = add i64 %{name}_k, 1
  %{name}_more = icmp slt i64 %{name}_next, {count}
"""


_TEXT = f"""
define void @longest(i64 %rows, i64 %size, i64 %stages, i64 %count,
                     ptr %flat, ptr %durations, ptr %ends, ptr %found, ptr %wanted, ptr %result) {{
entry:
  %last = sub i64 %rows, {llvm.LANES}
  %owns = getelementptr i64, ptr %flat, i64 %size
  %others = getelementptr i64, ptr %owns, i64 %size
  %parts = getelementptr i64, ptr %others, i64 %size
  %first = add i64 %size, 1
  br label %group
group:
  %g = phi i64 [0, %entry], [%g_next, %next]
  %over = icmp sgt i64 %g, %last
  %r = select i1 %over, i64 %last, i64 %g
  br label %begin
{
    _copied(
        "begin",
        "group",
        "%stages",
        '''
  %begin_row = mul i64 %begin_k, %rows
  %begin_at = add i64 %begin_row, %r
  %begin_from = getelementptr double, ptr %ends, i64 %begin_at''',
        f'''
  %begin_place = add i64 %first, %begin_k
  %begin_to = getelementptr {_VECTOR}, ptr %found, i64 %begin_place''',
    )
}
  br i1 %begin_more, label %begin, label %pass
pass:
  %k = phi i64 [0, %begin], [%k_next, %pass]
  %here_at = getelementptr i64, ptr %flat, i64 %k
  %own_at = getelementptr i64, ptr %owns, i64 %k
  %other_at = getelementptr i64, ptr %others, i64 %k
  %part_at = getelementptr i64, ptr %parts, i64 %k
  %here = load i64, ptr %here_at
  %own = load i64, ptr %own_at
  %other = load i64, ptr %other_at
  %part = load i64, ptr %part_at
  %one_at = getelementptr {_VECTOR}, ptr %found, i64 %own
  %two_at = getelementptr {_VECTOR}, ptr %found, i64 %other
  %one = load {_VECTOR}, ptr %one_at, align 8
  %two = load {_VECTOR}, ptr %two_at, align 8
  %later = fcmp ogt {_VECTOR} %two, %one
  %begun = select <{llvm.LANES} x i1> %later, {_VECTOR} %two, {_VECTOR} %one
  %duration_row = mul i64 %part, %rows
  %duration_place = add i64 %duration_row, %r
  %duration_at = getelementptr double, ptr %durations, i64 %duration_place
  %duration = load {_VECTOR}, ptr %duration_at, align 8
  %end = fadd {_VECTOR} %begun, %duration
  %end_at = getelementptr {_VECTOR}, ptr %found, i64 %here
  store {_VECTOR} %end, ptr %end_at, align 8
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, %size
  br i1 %k_more, label %pass, label %write
{
    _copied(
        "write",
        "pass",
        "%count",
        f'''
  %write_at = getelementptr i64, ptr %wanted, i64 %write_k
  %write_place = load i64, ptr %write_at
  %write_from = getelementptr {_VECTOR}, ptr %found, i64 %write_place''',
        '''
  %write_row = mul i64 %write_k, %rows
  %write_column = add i64 %write_row, %r
  %write_to = getelementptr double, ptr %result, i64 %write_column''',
    )
}
  br i1 %write_more, label %write, label %next
next:
  %g_next = add i64 %g, {llvm.LANES}
  %g_more = icmp slt i64 %g_next, %rows
  br i1 %g_more, label %group, label %exit
exit:
  ret void
}}
"""

_FUNCTION = llvm.Function("longest", _TEXT, numbers=4, arrays=6, least=_COMPILED)
