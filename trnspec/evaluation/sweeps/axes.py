"""Axes of a sweep: ranges of values, and figures of the catalog: ``trn2.48xlarge.network.bandwidth=1.6..6.4Tbps:x2``.

A range ``1..64:x2`` multiplies, ``8..64:+8`` adds, ``1.6..6.4Tbps:x2`` has a unit.  Its values are written out as texts, exactly,
and read as if each of them had been given.  Each value of a figure is an assumption of the evaluations of its rows, see
:mod:`trnspec.evaluation.assumptions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from trnspec.errors import UsageError
from trnspec.evaluation.assumptions import assumed
from trnspec.model.reflection import NumberShape
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.evaluation.assumptions import Assumed
    from trnspec.graph.graph import Graph
    from trnspec.quantities.quantity import Quantity

MOST = 10_000
"""The maximum number of values of a range."""

_NUMBER = r"\d{1,30}(?:\.\d{1,30})?(?:[eE]\+?\d{1,2})?"
_UNIT = r"\s*[A-Za-z%][A-Za-z/%]*"
_RANGE = re.compile(
    rf"(?P<first>{_NUMBER})(?P<one>{_UNIT})?\s*\.\.\s*(?P<last>{_NUMBER})(?P<unit>{_UNIT})?\s*"
    rf"(?::\s*(?P<by>[x+])\s*(?P<step>{_NUMBER}))?",
    re.ASCII,
)
_DIGITS = 12
"""Significant digits of a value that is not a whole number; products of decimals may have many more."""


def expanded(text: str, name: str, *, numeric: bool = True) -> list[str]:
    """The values of a range as texts; a text that is not a range, by itself.

    Args:
        text: ``1..64:x2``, ``8..64:+8``, ``1..8`` in steps of 1, ``1.6..6.4Tbps:x2``; or one value. The last value
            belongs to the range if a step meets it.
        name: The option or input, for messages.
        numeric: Whether values are numbers, so that ``..`` can only be that of a range. Where they are texts, a range
            has a step, so that no path is mistaken for one.

    Raises:
        UsageError: The range is malformed or empty, its steps lead nowhere, or it has over :data:`MOST` values.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None or not (numeric or match["by"]):
        if numeric and ".." in text:
            example = "such as 1..64:x2 or 8..64:+8"
            raise UsageError(
                f"{name}: {text!r} is not a range; write FIRST..LAST:xFACTOR or FIRST..LAST:+STEP, {example}"
            )
        return [text]
    first, last = Fraction(match["first"]), Fraction(match["last"])
    unit = (match["unit"] or "").strip()
    fault = _fault(match, first, last, unit)
    if fault:
        raise UsageError(f"{name}: the range {text!r} {fault}")
    step = Fraction(match["step"] or 1)
    values = [first]
    while (after := values[-1] * step if match["by"] == "x" else values[-1] + step) <= last:
        values.append(after)
        if len(values) > MOST:
            raise UsageError(f"{name}: the range {text!r} has more than {MOST:,} values")
    return [f"{_written(value)}{' ' if unit else ''}{unit}" for value in values]


def _fault(match: re.Match[str], first: Fraction, last: Fraction, unit: str) -> str:
    """The fault of a range; empty for a valid one."""
    step = Fraction(match["step"] or 1)
    if match["one"] and match["one"].strip() != unit:
        return f"has two units, {match['one'].strip()} and {unit or 'none'}; write the unit once, after the last value"
    if first > last:
        return "ends below its first value; write the smaller value first"
    if match["by"] is None and (unit or first.denominator != 1 or last.denominator != 1):
        return "has no step; write :xFACTOR or :+STEP after it"
    if match["by"] == "x" and (step <= 1 or not first):
        return "does not grow; a factor above 1 and a first value above 0 are expected"
    if not step:
        return "does not grow; a step above 0 is expected"
    return ""


def _written(value: Fraction) -> str:
    """A value as decimal text."""
    if value.denominator == 1:
        return str(value.numerator)
    whole = len(str(value.numerator // value.denominator))
    places = max(1, _DIGITS - whole) if value >= 1 else _DIGITS + 8
    scaled = round(value * 10**places)
    digits = str(scaled).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?\s*[A-Za-z%]", re.ASCII)


class FigureValue(str):
    """A value of a figure, a text as written, which knows its number.

    Attributes:
        number: In base units; of a count, the count.
        unit: The base unit, empty for a count or a ratio.
    """

    __slots__ = ("number", "unit")

    number: float
    unit: str

    @classmethod
    def of(cls, one: Assumed) -> FigureValue:
        """The value of an assumption."""
        if isinstance(one.path.shape, NumberShape):
            value = cls(one.value)
            value.number, value.unit = int(one.value.replace(",", "")), ""
            return value
        return cls.of_quantity(parse(one.value, None, one.path.node.units))

    @classmethod
    def of_quantity(cls, quantity: Quantity) -> FigureValue:
        """The value of a figure."""
        value = cls(quantity.text)
        value.number = float(quantity.value)
        value.unit = "" if quantity.dimension is Dimension.RATIO else quantity.dimension.base
        return value


def from_options(texts: Sequence[str]) -> dict[str, list[str]]:
    r"""The values by path of texts such as ``trainium2.memory.bandwidth=2TB/s,3TB/s``.

    Commas separate values and ranges; ``\,`` is a comma of a value.

    Raises:
        UsageError: A text has no ``=``, nothing before or after it or between its commas, or a bad range.
    """
    axes: dict[str, list[str]] = {}
    for text in texts:
        path, equals, values = (part.strip() for part in text.partition("="))
        parts = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", values)]
        if not (path and equals and all(parts)):
            example = "trainium2.memory.bandwidth=2TB/s,3TB/s"
            raise UsageError(f"--vary: {text!r}; PATH=VALUE,... is expected, such as {example}")
        if _THOUSANDS.match(values):
            raise UsageError(f"--vary: {text!r}: a comma separates values here, so write 3200 for 3,200")
        axes.setdefault(path, []).extend(value for part in parts for value in expanded(part, "--vary"))
    return axes


def figure_axes(graph: Graph, axes: Mapping[str, Iterable[str] | str], assume: Mapping[str, str]) -> dict[str, Any]:
    """The figures that vary, each with its values, checked.

    Args:
        graph: The catalog.
        axes: Values by path, or a range as text.
        assume: Figures that are assumed in all rows.

    Raises:
        UsageError: A path is unknown or is given twice, or a value is invalid.
    """
    if not isinstance(axes, Mapping):
        raise UsageError('vary: a mapping is expected, {"trainium2.memory.bandwidth": ["2 TB/s", "3 TB/s"]}')
    fixed = {str(one.path) for one in assumed(graph, assume)} if assume else set()
    result: dict[str, Any] = {}
    for path, given in axes.items():
        texts = expanded(given, f"vary: {path}") if isinstance(given, str) else list(given)
        values = [FigureValue.of(*assumed(graph, {path: text}, "vary")) for text in texts]
        if not values:
            raise UsageError(f"vary: {path} has no values to sweep")
        name = str(assumed(graph, {path: texts[0]}, "vary")[0].path)
        if name in result or name in fixed:
            raise UsageError(f"vary: {name} is given twice")
        result[name] = values
    return result


def with_figures(given: Mapping[str, Any], combination: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of one combination of a sweep; the figures that vary are assumptions."""
    figures = {name: value for name, value in combination.items() if isinstance(value, FigureValue)}
    inputs = {name: value for name, value in combination.items() if name not in figures}
    assume = {**given.get("assume", {}), **figures}
    return {**given, **inputs, **({"assume": assume} if figures else {})}
