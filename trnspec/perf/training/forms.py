"""The largest of several linear forms of each row, in machine code or with numpy.

Row i has the forms of one of many sets, whose coefficients are linear in a number of the row: ``(c + n d) . x``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trnspec.perf import llvm
from trnspec.perf.cache_lines import in_lines

SIZE = 5
"""Coefficients of a form."""
_COMPILED = 1 << 14
"""Rows of a process from which on machine code is made."""


@define
class Forms:
    """Sets of forms.

    Attributes:
        first: The first form of each set; it is a multiple of the numbers of a vector.
        count: The number of forms of each set; up to the next set the last one follows.
        coefficients: For each form its coefficients, and what each unit of the number adds to them; shape (10, forms).
    """

    first: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    count: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    coefficients: NDArray[np.float64] = field(factory=lambda: np.zeros((2 * SIZE, 0)))

    def add(self, forms: Any) -> int:
        """Add a set.

        Args:
            forms: Ten numbers for each form; at least one form.

        Returns:
            The number of the set.
        """
        rows = np.array(forms)
        rows = np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % llvm.LANES, axis=0)])
        self.first = np.append(self.first, self.coefficients.shape[1])
        self.count = np.append(self.count, len(forms))
        coefficients = np.concatenate([self.coefficients, rows.T], axis=1)
        self.coefficients = in_lines(coefficients.shape, np.float64)
        self.coefficients[:] = coefficients
        return len(self.first) - 1

    def largest(
        self, of_row: NDArray[np.int64], more: NDArray[np.float64], points: list[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """The value of the largest form of each row, at least 0.

        Args:
            of_row: The set of each row.
            more: The number of each row.
            points: Where forms are evaluated, coordinate by coordinate.
        """
        if _FUNCTION.is_ready(len(of_row)):
            return self._by_machine_code(of_row, more, points)
        return self._by_numpy(of_row, more, points)

    def _by_numpy(self, of_row: Any, more: Any, points: list[Any]) -> NDArray[np.float64]:
        count = self.count.take(of_row)
        # Rows with the most forms first, so that those that have one more are a slice.
        order = np.argsort(-count, kind="stable")
        first, more, points = self.first.take(of_row[order]), more[order], [x[order] for x in points]
        left = np.searchsorted(-count[order], -np.arange(count.max(initial=0)), side="left")
        sorted_ = np.zeros(len(order))
        for number, rows in enumerate(left.tolist()):
            total = self.value(first[:rows] + number, more[:rows], [x[:rows] for x in points])
            np.maximum(sorted_[:rows], total, out=sorted_[:rows])
        found = np.empty(len(order))
        # The larger of 0 and -0 may be either.
        found[order] = sorted_ + 0.0
        return found

    def counts(self, form: Any, more: Any) -> list[Any]:
        """The coefficients of some forms."""
        each = zip(self.coefficients[:SIZE], self.coefficients[SIZE:], strict=True)
        return [count.take(form) + more * added.take(form) for count, added in each]

    def value(self, form: Any, more: Any, points: list[Any]) -> Any:
        """The values of some forms."""
        total: Any = None
        for count, x in zip(self.counts(form, more), points, strict=True):
            part = np.multiply(count, x, out=count)
            total = part if total is None else np.add(total, part, out=total)
        return total

    def _by_machine_code(self, of_row: Any, more: Any, points: list[Any]) -> NDArray[np.float64]:
        first, blocks = self.first.take(of_row), (-(-self.count // llvm.LANES)).take(of_row)
        result = np.empty(len(of_row))
        arrays = [np.ascontiguousarray(x) for x in (first, blocks, more, *points)]
        _FUNCTION((len(of_row), self.coefficients.shape[1]), (self.coefficients, *arrays, result))
        return result


_VECTOR = f"<{llvm.LANES} x double>"


def _broadcast(name: str, source: str) -> str:
    """A vector of a number of the row."""
    return f"""
  %{name}_at = getelementptr double, ptr %{source}, i64 %row
  %{name}_1 = load double, ptr %{name}_at
  %{name}_0 = insertelement {_VECTOR} undef, double %{name}_1, i32 0
  %{name} = shufflevector {_VECTOR} %{name}_0, {_VECTOR} undef, <{llvm.LANES} x i32> zeroinitializer"""


def _term(n: int) -> str:
    """A coefficient of some forms times a coordinate, added to the others."""
    total = (
        f"%total_{n} = fadd {_VECTOR} %total_{n - 1}, %part_{n}"
        if n
        else f"%total_0 = fadd {_VECTOR} %part_0, zeroinitializer"
    )
    return f"""
  %line_{n} = mul i64 %forms, {n}
  %here_{n} = add i64 %line_{n}, %form
  %count_{n}_at = getelementptr double, ptr %coefficients, i64 %here_{n}
  %count_{n} = load {_VECTOR}, ptr %count_{n}_at, align 8
  %beyond_{n} = mul i64 %forms, {n + SIZE}
  %there_{n} = add i64 %beyond_{n}, %form
  %added_{n}_at = getelementptr double, ptr %coefficients, i64 %there_{n}
  %added_{n} = load {_VECTOR}, ptr %added_{n}_at, align 8
  %grown_{n} = fmul {_VECTOR} %added_{n}, %more
  %all_{n} = fadd {_VECTOR} %count_{n}, %grown_{n}
  %part_{n} = fmul {_VECTOR} %all_{n}, %x_{n}
  {total}"""


def _halves() -> str:
    """The largest number of a vector, by halves."""
    text, width, name = "", llvm.LANES, "%longest"
    while width > 1:
        half = width // 2
        low, high = (", ".join(f"i32 {i + shift}" for i in range(half)) for shift in (0, half))
        text += f"""
  %low_{half} = shufflevector <{width} x double> {name}, <{width} x double> undef, <{half} x i32> <{low}>
  %high_{half} = shufflevector <{width} x double> {name}, <{width} x double> undef, <{half} x i32> <{high}>
  %over_{half} = fcmp ogt <{half} x double> %high_{half}, %low_{half}
  %half_{half} = select <{half} x i1> %over_{half}, <{half} x double> %high_{half}, <{half} x double> %low_{half}"""
        width, name = half, f"%half_{half}"
    return text


_TEXT = f"""
define void @largest(i64 %rows, i64 %forms, ptr %coefficients, ptr %firsts, ptr %blocks, ptr %mores,
                     {", ".join(f"ptr %xs_{n}" for n in range(SIZE))}, ptr %result) {{
entry:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %begin, label %exit
begin:
  %row = phi i64 [0, %entry], [%row_next, %end]
  %first_at = getelementptr i64, ptr %firsts, i64 %row
  %first = load i64, ptr %first_at
  %blocks_at = getelementptr i64, ptr %blocks, i64 %row
  %count = load i64, ptr %blocks_at
{_broadcast("more", "mores")}
{"".join(_broadcast(f"x_{n}", f"xs_{n}") for n in range(SIZE))}
  br label %block
block:
  %k = phi i64 [0, %begin], [%k_next, %block]
  %form = phi i64 [%first, %begin], [%form_next, %block]
  %before = phi {_VECTOR} [zeroinitializer, %begin], [%longest, %block]
{"".join(map(_term, range(SIZE)))}
  %longer = fcmp ogt {_VECTOR} %total_{SIZE - 1}, %before
  %longest = select <{llvm.LANES} x i1> %longer, {_VECTOR} %total_{SIZE - 1}, {_VECTOR} %before
  %form_next = add i64 %form, {llvm.LANES}
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, %count
  br i1 %k_more, label %block, label %end
end:
{_halves()}
  %largest = extractelement <1 x double> %half_1, i32 0
  %result_at = getelementptr double, ptr %result, i64 %row
  store double %largest, ptr %result_at
  %row_next = add i64 %row, 1
  %row_more = icmp slt i64 %row_next, %rows
  br i1 %row_more, label %begin, label %exit
exit:
  ret void
}}
"""

_FUNCTION = llvm.Function("largest", _TEXT, numbers=2, arrays=5 + SIZE, least=_COMPILED)
