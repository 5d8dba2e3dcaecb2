"""Sweeps: an evaluator over every combination of some values of its inputs, and of figures of the catalog.

A range ``1..64:x2`` multiplies, ``8..64:+8`` adds, ``1.6..6.4Tbps:x2`` has a unit.  Its values are written out as texts, exactly,
and read as if each of them had been given.  Each value of a figure, ``trn2.48xlarge.network.bandwidth=1.6..6.4Tbps:x2``, is an
assumption of the evaluations of its rows, see :mod:`trnspec.evaluation.runner`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.errors import RefusalError, UsageError, library
from trnspec.evaluation.inputs import Input
from trnspec.evaluation.measures import common, edge, mark, measure
from trnspec.evaluation.page import BOUNDS, IDEAL, cell, with_unit
from trnspec.evaluation.result import Answer, Evaluation, Value
from trnspec.evaluation.runner import Assumed, assumed
from trnspec.evaluation.summary import SYNONYMS, is_number, label
from trnspec.evidence import Kind, mixed, rank_class
from trnspec.graph.graph import Graph
from trnspec.model.reflection import NumberShape
from trnspec.plots.chart import Chart
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import Dimension
from trnspec.short_repr import abbreviated
from trnspec.text_table import Block, Cell, Column, InNotebook, Number, TextTable, escape, table

if TYPE_CHECKING:  # extras
    import pandas as pd
    import polars as pl
    import xarray as xr

Row = tuple[Mapping[str, Any], Evaluation | RefusalError]
"""A combination of input values, and its evaluation or the refusal."""

# Ranges of values.

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
    first, last, step = Fraction(match["first"]), Fraction(match["last"]), Fraction(match["step"] or 1)
    one, unit, by = (match["one"] or "").strip(), (match["unit"] or "").strip(), match["by"]
    faults = {
        f"has two units, {one} and {unit or 'none'}; write the unit once, after the last value": one and one != unit,
        "ends below its first value; write the smaller value first": first > last,
        "has no step; write :xFACTOR or :+STEP after it": not by and (unit or {first.denominator, last.denominator} != {1}),
        "does not grow; a factor above 1 and a first value above 0 are expected": by == "x" and (step <= 1 or not first),
        "does not grow; a step above 0 is expected": not step,
    }  # fmt: skip
    if fault := next((text for text, holds in faults.items() if holds), ""):
        raise UsageError(f"{name}: the range {text!r} {fault}")
    values = [first]
    while (after := values[-1] * step if by == "x" else values[-1] + step) <= last:
        values.append(after)
        if len(values) > MOST:
            raise UsageError(f"{name}: the range {text!r} has more than {MOST:,} values")
    return [f"{_written(value)} {unit}".rstrip() for value in values]


def _written(value: Fraction) -> str:
    """A value as decimal text."""
    if value.denominator == 1:
        return str(value.numerator)
    whole = len(str(value.numerator // value.denominator))
    places = max(1, _DIGITS - whole) if value >= 1 else _DIGITS + 8
    digits = str(round(value * 10**places)).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def values_of(one: Input | None, value: Any) -> Any:
    """The values of a range that is given as text for an input that is a number; any other value as it is.

    Raises:
        UsageError: The range or a value of it is invalid.
    """
    if one is None or one.type not in (int, float) or not isinstance(value, str) or ".." not in value:
        return value
    return tuple(one.read(text) for text in expanded(value, one.name))


# Figures that vary.

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
        path, _, values = (part.strip() for part in text.partition("="))
        parts = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", values)]
        if not (path and all(parts)):
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
        texts = expanded(given, f"vary: {path}") if isinstance(given, str) else given
        values = [one for text in texts for one in assumed(graph, {path: text}, "vary")]
        if not values:
            raise UsageError(f"vary: {path} has no values to sweep")
        name = str(values[0].path)
        if name in result or name in fixed:
            raise UsageError(f"vary: {name} is given twice")
        result[name] = [*map(FigureValue.of, values)]
    return result


def with_figures(given: Mapping[str, Any], combination: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of one combination of a sweep; the figures that vary are assumptions."""
    figures = {name: value for name, value in combination.items() if isinstance(value, FigureValue)}
    inputs = {name: value for name, value in combination.items() if name not in figures}
    return {**given, **inputs, **({"assume": {**given.get("assume", {}), **figures}} if figures else {})}


# Combinations.


def combinations(axes: Mapping[str, Sequence[Any]], evaluate: Callable[[dict[str, Any]], Evaluation]) -> list[Row]:
    """Evaluates every combination of the values of some inputs, the last input varying fastest."""
    rows: list[Row] = []
    for values in itertools.product(*axes.values()):
        combination = dict(zip(axes, values, strict=True))
        try:
            rows.append((combination, evaluate(combination)))
        except RefusalError as refusal:
            rows.append((combination, refusal))
    return rows


@frozen(repr=False)
class Sweep(InNotebook):
    """The evaluations of every combination of some input values, in order.

    Attributes:
        evaluator: The name of the evaluator.
        axes: The values of each swept input, and of each figure that varies.
        rows: Each combination with its evaluation, or with the refusal.
        fixed: The other inputs that were given.
    """

    evaluator: str
    axes: Mapping[str, tuple[Any, ...]]
    rows: tuple[Row, ...]
    fixed: Mapping[str, Any] = field(factory=dict)

    def __len__(self) -> int:
        """The number of combinations."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        axes = ", ".join(f"{name} {list(values)}" for name, values in self.axes.items())
        refused = sum(isinstance(result, RefusalError) for _, result in self.rows)
        return abbreviated(f"<Sweep of {heading(self.evaluator, self.rows)}, {refused} refused; {axes}>")

    def _sections(self) -> list[tuple[str, Block]]:
        return sections(self.rows, heading(self.evaluator, self.rows)) if self.rows else [("", repr(self))]

    def plot(self, kind: str | None = None) -> Chart:
        """A chart of all combinations that have an answer, which a notebook shows and ``save(file)`` writes.

        Args:
            kind: One of :data:`trnspec.evaluation.charts.KINDS`; by default the one for the evaluator.

        Raises:
            UsageError: There is no such chart of these evaluations, or they are too many.
        """
        from trnspec.evaluation.charts import sweep_chart

        return sweep_chart(self.rows, kind)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each figure that varies and of each answer that have one."""
        figures = {
            n: v.unit for n, values in self.axes.items() for v in values if isinstance(v, FigureValue) and v.unit
        }
        answers = (answer for _, result in self.rows for answer in answers_of(result).values())
        return figures | {answer.name: answer.unit for answer in answers if answer.unit}

    def records(self) -> list[dict[str, Value | None]]:
        """For each combination its values, its answers, ``evidence``, and the reason of a ``refusal``, or ``None``.

        Figures and answers are in base units, see :attr:`units`. All records have the same keys. ``evidence`` is the kind of
        evidence of the predictions; rows of different kinds are not comparable.
        """
        empty = {name: None for _, result in self.rows for name in answers_of(result)}
        return [
            {
                **{name: number_of(value) for name, value in combination.items()},
                **empty,
                **{name: answer.value for name, answer in answers_of(result).items()},
                "evidence": None if isinstance(result, RefusalError) else _kind(result),
                "refusal": result.reason if isinstance(result, RefusalError) else None,
            }
            for combination, result in self.rows
        ]

    @property
    def about(self) -> dict[str, Any]:
        """Metadata of the tables: evaluator, constant inputs, and the units."""
        return {"evaluator": self.evaluator, "inputs": dict(self.fixed), "units": self.units}

    def to_pandas(self) -> pd.DataFrame:
        """The records as a data frame of pandas; ``frame.attrs["units"]`` has the units.

        Raises:
            UsageError: pandas is not installed.
        """
        frame: pd.DataFrame = library("pandas").DataFrame(self.records())
        frame.attrs |= self.about
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The records as a data frame of polars, which has no metadata; :attr:`units` has the units.

        Raises:
            UsageError: polars is not installed.
        """
        frame: pl.DataFrame = library("polars").DataFrame(self.records(), infer_schema_length=None)
        return frame

    def to_parquet(self, file: str | os.PathLike[str]) -> None:
        """Writes the records to a Parquet file; the metadata of a column has its ``unit``, that of the file :attr:`about`.

        Raises:
            UsageError: pyarrow is not installed.
            OSError: The file cannot be written; then it is not changed.
        """
        from trnspec.atomic_write import write

        parquet, arrow = library("pyarrow.parquet"), library("pyarrow")
        table = arrow.Table.from_pylist(self.records())
        units = self.units
        fields = [f.with_type(arrow.string()) if f.name in _TEXTS else f for f in table.schema]
        fields = [f.with_metadata({"unit": units[f.name]}) if f.name in units else f for f in fields]
        about = {"evaluator": self.evaluator, "inputs": json.dumps(dict(self.fixed), ensure_ascii=False)}
        sink = arrow.BufferOutputStream()
        parquet.write_table(table.cast(arrow.schema(fields, metadata=about)), sink)
        write({FilePath(file): sink.getvalue().to_pybytes()})

    def to_xarray(self) -> xr.Dataset:
        """The sweep as a dense grid of xarray: one dimension for each axis, one variable for each answer.

        ``dataset["step_time"].attrs["units"]`` is the unit; a figure that varies is a coordinate in base units with its
        unit. A number is NaN where there is no answer, and ``refusal`` has the reason, empty where there is one.

        Raises:
            UsageError: xarray is not installed, or an axis has a value twice.
        """
        xarray = library("xarray", "arrays")
        points = {name: [number_of(v) for v in values] for name, values in self.axes.items()}
        if twice := [name for name, values in points.items() if len(set(values)) < len(values)]:
            raise UsageError(f"{twice[0]} has a value twice; a grid needs different values")
        shape, records, units = tuple(map(len, points.values())), self.records(), self.units
        names = [name for name in (records[0] if records else ()) if name not in points]
        attributes = {name: {"units": units[name]} if name in units else {} for name in (*names, *points)}
        fixed = {
            n: v if isinstance(v, (int, float, str)) else json.dumps(v, ensure_ascii=False)
            for n, v in self.fixed.items()
        }
        columns = {name: _array(name, [record[name] for record in records]) for name in names}
        dataset: xr.Dataset = xarray.Dataset(
            {name: (tuple(points), column.reshape(shape), attributes[name]) for name, column in columns.items()},
            {name: (name, values, attributes[name]) for name, values in points.items()},
            {"evaluator": self.evaluator, **fixed},
        )
        return dataset


_TEXTS = ("evidence", "refusal")
"""Columns of texts, also where all of them are empty."""


def _array(name: str, column: Sequence[Any]) -> Any:
    """A column of numbers, NaN where there is none, or of other values, empty where there is none."""
    numpy = library("numpy", "arrays")
    if name not in _TEXTS and all(v is None or is_number(v) for v in column):
        return numpy.array([numpy.nan if v is None else v for v in column], dtype=float)
    return numpy.array(["" if v is None else v for v in column], dtype=object)


def number_of(value: Any) -> Any:
    """A value of an axis in a record: of a figure the number in base units."""
    return value.number if isinstance(value, FigureValue) else value


# The page: one table with the inputs that vary, the answers, and why some combinations have none.

_IMPORTANCE = {
    **dict.fromkeys(("step_time", "mfu", "time_to_first_token", "time_per_output_token", "throughput"), 2),
    **dict.fromkeys(("system", "run_time", "run_cost", "million_tokens", "in_time", "probability"), 3),
}
"""The answers that people compare, which are hidden after others, and those of plans, which are hidden last."""
MIXED = (
    "The rows have different kinds of evidence. Ideal rows are bounds, which are not comparable with the others: "
    "they are ranked by themselves, last."
)
_LONGEST = 80
"""The most characters of the message of a refusal in a cell."""
_MOST_NOTES = 10


def heading(evaluator: str, rows: Sequence[Row]) -> str:
    """Heading of a sweep: ``training: 3 combinations``."""
    return f"{evaluator}: {len(rows):,} {'combination' if len(rows) == 1 else 'combinations'}"


def sections(
    rows: Sequence[Row], head: str, *, columns: str | None = None, sort: str | None = None
) -> list[tuple[str, Block]]:
    """The page of a sweep: a paragraph, the table, and notes; none has a heading.

    Args:
        rows: The rows.
        head: The paragraph above the table: what all rows have in common.
        columns: The names of the columns to show, by commas; all of them if left out.
        sort: The column to sort by, with ``-`` before it for the largest first. Bounds are not compared with estimates, so
            they are sorted by themselves, last.

    Raises:
        UsageError: There is no column of such a name.
    """
    shown = sweep_table(rows).sorted(sort)
    if sort is not None and mixed(_kind(result) for _, result in rows):
        at = [c.name for c in shown.columns].index("evidence")
        shown = evolve(shown, rows=tuple(sorted(shown.rows, key=lambda row: rank_class(row[at]))))
    notes = [f"[{number}] {message}" for message, number in _long_refusals(rows).items()]
    if (more := len(notes) - _MOST_NOTES) > 0:
        notes[_MOST_NOTES:] = [f"{more} more are in --format json."]
    blocks: list[Block] = [head, shown.selected(columns), *map(escape, notes), sweep_note(rows)]
    return [("", block) for block in blocks if block]


def sweep_table(rows: Sequence[Row]) -> TextTable:
    """A sweep as one table, each column in one unit."""
    answers, kinds = [answers_of(result) for _, result in rows], [_kind(result) for _, result in rows]
    varied, calibrations = list(rows[0][0]), [_calibration(result) for _, result in rows]
    columns: dict[Column, Iterable[Cell]] = {}
    for name in varied:
        values = [combination[name] for combination, _ in rows]
        right = is_number(number_of(values[0]))
        columns[Column(name, right=right, keep=True, identity=True)] = map(_input, values)
    if mixed(kinds):
        columns[Column("evidence", keep=True)] = kinds
    if "calibration" not in varied and len({*calibrations} - {None}) > 1:
        columns[Column("calibration", wrap=True, importance=1)] = (escape(measure(c)) for c in calibrations)
    units = {name: answer.unit for each in reversed(answers) for name, answer in each.items()}
    for name in dict.fromkeys(name for each in answers for name in each):
        given = [each.get(name) for each in answers]
        values = [None if a is None else a.value for a in given]
        within = common(values, units[name])
        head = with_unit(SYNONYMS.get(label(name), label(name)), within)
        column = Column(head, right=any(map(is_number, values)), importance=_IMPORTANCE.get(name, 0), key=name)
        columns[column] = [None if a is None else _cell(a, units[name], within) for a in given]
    if any(isinstance(result, RefusalError) for _, result in rows):
        numbers = _long_refusals(rows)
        # A long message is a note below the table.
        columns[Column("refused", wrap=True, keep=True)] = [
            r.reason + (f" [{numbers[str(r)]}]" if str(r) in numbers else f": {escape(str(r))}")
            if isinstance(r, RefusalError)
            else ""
            for _, r in rows
        ]
    return table(list(columns), list(zip(*columns.values(), strict=True)), "--columns")


def _long_refusals(rows: Sequence[Row]) -> dict[str, int]:
    """The messages of refusals that would take several lines of a cell, numbered."""
    messages = [str(result) for _, result in rows if isinstance(result, RefusalError)]
    return {m: n for n, m in enumerate(dict.fromkeys(m for m in messages if len(m) > _LONGEST), 1)}


def sweep_note(rows: Sequence[Row]) -> str:
    """Note on ``>=``, ``<=`` and the ranking of bounds; empty where no bound is shown."""
    bounds = [r for _, r in rows if any(map(edge, answers_of(r).values()))]
    notes = [BOUNDS] if bounds else []
    if bounds and all(_calibration(r) == "none" for r in bounds):
        notes.append(IDEAL)
    kinds = {_kind(result) for _, result in rows}
    return " ".join([*notes, MIXED] if mixed(kinds) and "ideal" in kinds else notes)


def _kind(result: Evaluation | RefusalError) -> Kind:
    return "" if isinstance(result, RefusalError) or result.evidence is None else result.evidence.kind


def _cell(answer: Answer, unit: str, within: tuple[float, str] | None) -> Cell:
    """The cell of an answer; of a bound without losses its end, and other bounds are not predictions."""
    plain, bound = cell(answer.value, unit, within), edge(answer)
    if not isinstance(plain, Number):
        return f"{mark(answer)}{plain}"
    if bound and answer.kind != "ideal":
        return evolve(plain, text=f"{bound} {plain.text}")
    end = answer.low if answer.high is None else answer.high
    return cell(answer.value, unit, within, bound or mark(answer), end if bound else None)


def _input(value: Value | None) -> Cell:
    text, number = escape(measure(value)), number_of(value)
    return Number(number, text) if is_number(number) else text


def _calibration(result: Evaluation | RefusalError) -> Value | None:
    return None if isinstance(result, RefusalError) else result.inputs.get("calibration")


def answers_of(result: Evaluation | RefusalError) -> dict[str, Answer]:
    """The answers by name; none of a refusal."""
    return {} if isinstance(result, RefusalError) else {a.name: a for a in result.answers}
