"""Keys of rows: the positions of their values on axes as bits of words, from which positions in tables are cut.

Every axis has a field of some bits in a 64-bit word.  A table has a power of two of elements along each of its axes, so that
a position in it consists of fields: where they are next to each other in a word, with one mask and one shift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.perf.cache_lines import in_lines
from trnspec.perf.distinct import distinct
from trnspec.perf.sweep.expressions import Expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.sweep.expressions import Recording

_WORD = 62
"""Bits of a word; one that is negative has no position for some value."""


@frozen
class Field:
    """Bits of a word.

    Attributes:
        word: The name of the word.
        shift: The lowest bit.
        bits: Number of bits.
    """

    word: str
    shift: int
    bits: int

    @property
    def end(self) -> int:
        """The bit after the highest one."""
        return self.shift + self.bits


@frozen
class Key:
    """A position in tables with some axes.

    Attributes:
        position: For each row.
        names: The axes, the slowest first.
        shape: Elements along each of them.
    """

    position: Expression
    names: tuple[str, ...]
    shape: tuple[int, ...]

    def records(self, tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Tables of one type side by side, so that a row is looked up at once; elements that no row refers to are 0.

        Args:
            tables: Tables whose dimensions are the axes in their order.
        """
        # A record of three would take longer than one of four.
        width = 1 << (len(tables) - 1).bit_length()
        records = in_lines((*self.shape, width), tables[0].dtype)
        for i, table in enumerate(tables):
            at: Any = (*map(slice, table.shape), i)
            records[at] = table
        return records.reshape(-1, width)

    def few(self, tables: Sequence[NDArray[np.float64]]) -> list[Expression]:
        """What rows look up in tables that have few different records together: the number of that, and its elements.

        Args:
            tables: Tables whose dimensions are the axes in their order.
        """
        columns = [self.records([table]).reshape(-1) for table in tables]
        first, numbers = distinct(columns)
        if len(first) * _FEW > len(numbers):
            return []
        number = self.position.of(numbers.astype(np.min_scalar_type(len(first))))
        return [number.of(column[first]) for column in columns]


_FEW = 16
"""Records are few if each one occurs as often on average."""


def fields(sizes: Mapping[str, int], groups: Iterable[frozenset[str]]) -> dict[str, Field]:
    """Fields of axes, in an order with which the keys of groups need few operations.

    Args:
        sizes: Positions on each axis.
        groups: The axes of each table.
    """
    bits = {name: max(1, (size - 1).bit_length()) for name, size in sizes.items()}
    order: list[str] = []
    for name in sorted(bits):
        known = {*order, name}
        parts = [part for group in groups if len(part := group & known) > 1]
        moved = [[*order[:place], name, *order[place:]] for place in range(len(order) + 1)]
        order = min(moved, key=lambda names: _operations(_placed(names, bits), parts))
    return _placed(order, bits)


def key(rows: Recording, fields: Mapping[str, Field], axes: Iterable[str]) -> Key:
    """The position in tables with some axes, as an expression of words."""
    position: Any = None
    names: list[str] = []
    used = 0
    for run in _runs(fields, axes):
        begin, end = fields[run[0]].shift, fields[run[-1]].end
        mask = ((1 << (end - begin)) - 1) << begin
        part = rows.column(fields[run[0]].word, np.int64) & np.int64(mask)
        if begin > used:
            part = part >> np.int64(begin - used)
        elif begin < used:
            part = part << np.int64(used - begin)
        position = part if position is None else position | part
        used += end - begin
        names += run
    names.reverse()
    return Key(position, tuple(names), tuple(1 << fields[name].bits for name in names))


def _placed(order: Iterable[str], bits: Mapping[str, int]) -> dict[str, Field]:
    """The fields of axes, one after the other."""
    placed: dict[str, Field] = {}
    word = shift = 0
    for name in order:
        if shift + bits[name] > _WORD:
            word, shift = word + 1, 0
        placed[name] = Field(f"word {word}", shift, bits[name])
        shift += bits[name]
    return placed


def _runs(fields: Mapping[str, Field], axes: Iterable[str]) -> list[list[str]]:
    """Axes whose fields are next to each other, lowest first."""
    runs: list[list[str]] = []
    for name in sorted(axes, key=lambda name: (fields[name].word, fields[name].shift)):
        last = fields[runs[-1][-1]] if runs else None
        if last is not None and (last.word, last.end) == (fields[name].word, fields[name].shift):
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs


def _operations(fields: Mapping[str, Field], groups: Iterable[Iterable[str]]) -> int:
    """Operations that the keys of some groups need."""
    runs = [_runs(fields, axes) for axes in groups]
    return sum(3 * len(of_key) - (fields[of_key[0][0]].shift == 0) for of_key in runs)
