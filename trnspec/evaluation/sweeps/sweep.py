"""Sweeps: an evaluator over every combination of some values of its inputs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from trnspec.errors import RefusalError, UsageError, library
from trnspec.evaluation.result import Evaluation, Value
from trnspec.evaluation.sweeps.axes import FigureValue, expanded
from trnspec.short_repr import abbreviated

if TYPE_CHECKING:
    import os

    import pandas as pd
    import polars as pl
    import xarray as xr

    from trnspec.evaluation.inputs import Input
    from trnspec.plots.chart import Chart

Row = tuple[dict[str, Any], Evaluation | RefusalError]
"""A combination of input values, and its evaluation or the refusal."""


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


def values_of(one: Input | None, value: Any) -> Any:
    """The values of a range that is given as text for an input that is a number; any other value as it is.

    Raises:
        UsageError: The range or a value of it is invalid.
    """
    if one is None or one.type not in (int, float) or not isinstance(value, str) or ".." not in value:
        return value
    return tuple(one.read(text) for text in expanded(value, one.name))


@frozen(repr=False)
class Sweep:
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
        from trnspec.evaluation.sweeps.page import heading

        axes = ", ".join(f"{name} {list(map(_shown, values))}" for name, values in self.axes.items())
        refused = sum(isinstance(result, RefusalError) for _, result in self.rows)
        return abbreviated(f"<Sweep of {heading(self.evaluator, self.rows)}, {refused} refused; {axes}>")

    def _repr_markdown_(self) -> str:
        """The table in a notebook."""
        from trnspec.evaluation.sweeps.page import heading, sweep_markdown

        return sweep_markdown(self.rows, heading(self.evaluator, self.rows)) if self.rows else repr(self)

    def _repr_html_(self) -> str:
        """The table in a notebook, which prefers HTML."""
        from trnspec.evaluation.sweeps.page import heading, sweep_html

        return sweep_html(self.rows, heading(self.evaluator, self.rows))

    def plot(self, kind: str | None = None) -> Chart:
        """A chart of all combinations that have an answer, which a notebook shows and ``save(file)`` writes.

        Args:
            kind: One of :data:`trnspec.evaluation.charts.evaluations.KINDS`; by default the one for the evaluator.

        Raises:
            UsageError: There is no such chart of these evaluations, or they are too many.
        """
        from trnspec.evaluation.charts.evaluations import sweep_chart

        return sweep_chart(self.rows, kind)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each figure that varies and of each answer that have one."""
        figures = {
            n: v.unit for n, values in self.axes.items() for v in values if isinstance(v, FigureValue) and v.unit
        }
        evaluations = (result for _, result in self.rows if isinstance(result, Evaluation))
        return figures | {answer.name: answer.unit for e in evaluations for answer in e.answers if answer.unit}

    def records(self) -> list[dict[str, Value | None]]:
        """For each combination its values, its answers, ``evidence``, and the reason of a ``refusal``, or ``None``.

        Figures and answers are in base units, see :attr:`units`. All records have the same keys. ``evidence`` is the kind of
        evidence of the predictions; rows of different kinds are not comparable.
        """
        empty = {answer.name: None for _, r in self.rows if isinstance(r, Evaluation) for answer in r.answers}
        return [
            {**_numbers(combination), **empty, "evidence": None, "refusal": result.reason}
            if isinstance(result, RefusalError)
            else {
                **_numbers(combination),
                **empty,
                **{answer.name: answer.value for answer in result.answers},
                "evidence": "" if result.evidence is None else result.evidence.kind,
                "refusal": None,
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
        xarray, numpy = library("xarray", "arrays"), library("numpy", "arrays")
        points = {name: [_number(v) for v in values] for name, values in self.axes.items()}
        if twice := [name for name, values in points.items() if len(set(values)) < len(values)]:
            raise UsageError(f"{twice[0]} has a value twice; a grid needs different values")
        shape, units = tuple(map(len, points.values())), self.units
        records = self.records()

        def attributes(name: str) -> dict[str, str]:
            return {"units": units[name]} if name in units else {}

        def variable(name: str) -> Any:
            column = [record[name] for record in records]
            numbers = all(v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)) for v in column)
            data: Any
            if numbers and name not in _TEXTS:
                data = numpy.array([numpy.nan if v is None else v for v in column], dtype=float)
            else:
                data = numpy.array(["" if v is None else v for v in column], dtype=object)
            return tuple(points), data.reshape(shape), attributes(name)

        names = [name for name in (records[0] if records else ()) if name not in points]
        coordinates = {name: (name, values, attributes(name)) for name, values in points.items()}
        dataset: xr.Dataset = xarray.Dataset(
            {name: variable(name) for name in names},
            coordinates,
            {"evaluator": self.evaluator, **{k: _text(v) for k, v in self.fixed.items()}},
        )
        return dataset


_TEXTS = ("evidence", "refusal")
"""Columns of texts, also where all of them are empty."""


def _numbers(combination: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) for name, value in combination.items()}


def _number(value: Any) -> Any:
    """A value of an axis in a record: of a figure the number in base units."""
    return value.number if isinstance(value, FigureValue) else value


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, FigureValue) else value


def _text(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) else json.dumps(value, ensure_ascii=False)
