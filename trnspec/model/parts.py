"""Parts of a kind, and counts of which only a bound is known."""

from __future__ import annotations

import functools
import typing
from fractions import Fraction
from typing import Any, TypeVar, get_args, get_origin

from attrs import frozen

from trnspec.errors import QuantityError
from trnspec.model.ref import Ref
from trnspec.quantities.quantity import Interval

T = TypeVar("T")


@frozen
class CountRange:
    """A count of which only bounds are known: ``over 100,000`` is ``>= 100,000``.

    Multiplication and addition carry the bounds through. A comparison is decided by the bounds; one that they do not
    decide raises :class:`~trnspec.errors.QuantityError`, because neither answer is known to be right.

    Attributes:
        low: The least count; 0 where there is no lower bound.
        high: The greatest count; ``None`` where there is no upper bound.
    """

    low: int
    high: int | None = None

    @classmethod
    def parse(cls, text: str) -> int | CountRange:
        """The count in a text such as ``over 100,000``, ``up to 30,000``, ``~500,000`` or ``512``; the last one is exact.

        An approximate count is within half a unit of its last digit that is not 0.
        """
        number = int(text.lstrip("~").rsplit(maxsplit=1)[-1].replace(",", ""))
        if text.startswith("~"):
            half = 10 ** (len(str(number)) - len(str(number).rstrip("0"))) // 2
            return cls(number - half, number + half)
        if text.startswith("over "):
            return cls(number)
        return cls(0, number) if text.startswith("up to ") else number

    @property
    def bound(self) -> int:
        """The bound to calculate with: the upper one where there is one, else the lower one."""
        return self.low if self.high is None else self.high

    @property
    def interval(self) -> Interval:
        """The bounds as an interval of numbers."""
        return Interval(Fraction(self.low), None if self.high is None else Fraction(self.high))

    def __mul__(self, other: object) -> CountRange:
        low, high = _bounds(other)
        return CountRange(self.low * low, None if self.high is None or high is None else self.high * high)

    __rmul__ = __mul__

    def __add__(self, other: object) -> CountRange:
        low, high = _bounds(other)
        return CountRange(self.low + low, None if self.high is None or high is None else self.high + high)

    __radd__ = __add__

    def __floordiv__(self, other: int) -> CountRange:
        """The number of units of ``other`` parts each, when all parts are in such units."""
        return CountRange(-(-self.low // other), None if self.high is None else self.high // other)

    def __lt__(self, other: object) -> bool:
        return self._is_below(other, "<", or_equal=False)

    def __le__(self, other: object) -> bool:
        return self._is_below(other, "<=", or_equal=True)

    def __gt__(self, other: object) -> bool:
        return not self._is_below(other, ">", or_equal=True)

    def __ge__(self, other: object) -> bool:
        return not self._is_below(other, ">=", or_equal=False)

    def _is_below(self, other: object, operator: str, *, or_equal: bool) -> bool:
        """Whether the count is ``< other``, or ``<= other``; ``operator`` is the one to report.

        Raises:
            QuantityError: Counts within the bounds give different answers.
            TypeError: ``other`` is not a count.
        """
        low, high = _bounds(other)
        answer = self.interval.is_below(CountRange(low, high).interval, or_equal=or_equal)
        if answer is not None:
            return answer
        message = f"the bounds do not decide whether a count of {self} is {operator} {other:,}"
        raise QuantityError("bounds", message, "compare one of its bounds: low, or high, which may be None")

    def __str__(self) -> str:
        if self.high is None:
            return f">= {self.low:,}"
        return f"{self.low:,} to {self.high:,}" if self.low else f"<= {self.high:,}"

    def __format__(self, spec: str) -> str:
        # Thousands are always separated, so "," adds nothing.
        return str(self)


def _bounds(count: object) -> tuple[int, int | None]:
    if isinstance(count, CountRange):
        return count.low, count.high
    if isinstance(count, int):
        return count, count
    raise TypeError(f"{count!r} is not a count")


PartCount = int | CountRange
"""A number of parts: exact, or with bounds only."""

Parts = tuple[tuple[PartCount | None, Ref[T]], ...]
"""The direct parts of a document, each with its count; ``None`` is a count that is not known.

A kind that is built of parts has a method ``parts(self) -> Parts[Server]``. Its return annotation names the kinds of the
parts (``Parts[Server | Chip]`` for several), so that their paths are known before there is a document. Totals, paths of
queries, sum checks, ``tree``, performance models and exporters use nothing else.
"""


def has_parts(spec: type[Any]) -> bool:
    """Whether a kind is built of parts."""
    return callable(getattr(spec, "parts", None))


@functools.cache
def declared_parts(spec: Any) -> tuple[type, ...]:
    """The kinds of the parts of a kind, as the return annotation of its ``parts`` names them; ``()`` where it names none."""
    method = getattr(spec, "parts", None)
    if not callable(method):
        return ()
    try:
        annotations = [typing.get_type_hints(method).get("return")]
    except NameError:  # imported for type checkers only
        return ()
    kinds: list[type] = []
    while annotations:
        annotation = annotations.pop(0)
        arguments = get_args(annotation)
        if get_origin(annotation) is Ref:
            kinds += (t for t in (get_args(arguments[0]) or arguments) if isinstance(t, type))
        else:
            annotations = [*arguments, *annotations]
    return tuple(dict.fromkeys(kinds))


def parts_fault(spec: Any) -> str:
    """The fault of the result of ``parts()`` of a spec, or an empty text."""
    name = f"{type(spec).__name__}.parts()"
    expected = "return a tuple of (count, ref), such as ((self.servers.count, self.servers.server),)"
    try:
        for part in spec.parts():
            count, ref = part
            is_count = count is None or (isinstance(count, PartCount) and not isinstance(count, bool))
            if not is_count or not isinstance(ref, Ref):
                return f"{name} has the part {part!r}; {expected}"
    except Exception as error:  # noqa: BLE001  # the code of a plugin
        return f"{name} raises {type(error).__name__}: {error}; {expected}"
    return ""
