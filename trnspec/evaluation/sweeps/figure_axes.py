"""Figures of the catalog as axes of a sweep: ``trn2.48xlarge.network.bandwidth=1.6..6.4Tbps:x2``.

Each value is an assumption of the evaluations of its rows, see :mod:`trnspec.evaluation.assumptions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trnspec.errors import UsageError
from trnspec.evaluation.assumptions import assumed
from trnspec.evaluation.sweeps.ranges import expanded
from trnspec.model.reflection import NumberShape
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.evaluation.assumptions import Assumed
    from trnspec.graph.graph import Graph
    from trnspec.quantities.quantity import Quantity


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
