"""The result of an evaluator: answers with intervals, breakdowns, assumptions, and the catalog figures used.

An evaluator that has no answer raises a :class:`~trnspec.errors.RefusalError` with a reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
from attrs import evolve, field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError, UsageError, library
from trnspec.evidence import PREDICTED, Evidence, Kind, UsedFigure
from trnspec.plots.chart import Chart
from trnspec.short_repr import short_repr

if TYPE_CHECKING:  # an extra
    import pandas as pd

Value = float | int | str | bool


SHORT = {"ttft": "time_to_first_token", "tpot": "time_per_output_token"}
"""Names of answers by what people call them, which tables have as names of columns."""
COLUMN_ANSWERS = {**SHORT, "tokens_per_s_per_chip": "throughput_per_chip", "usd": "million_tokens"}
"""Names of answers by the columns that have their values."""


@frozen
class Answer:
    """One answer.

    Attributes:
        name: In snake case: ``step_time``.
        value: A number in the unit, a text, or true or false.
        unit: ``s``, ``B``, ``B/s``, ``FLOP/s``, ``FLOP``, ``tokens/s``, ``J``, ``W``, ``USD``, ``%`` (of 100), ``sh``
            for a command of a shell, or empty.
        low: The lower end of the interval, if known.
        high: The upper end.
        note: What a reader should know, such as what the interval covers.
        kind: The kind of evidence of a prediction: ``ideal`` (a bound), ``estimate``, ``extrapolated`` or ``transferred``;
            empty for any other answer. See :data:`trnspec.evidence.Kind`.
    """

    name: str
    value: Value
    unit: str = ""
    low: float | None = None
    high: float | None = None
    note: str = ""
    kind: Kind = ""

    __repr__ = short_repr


@frozen
class Part:
    """One part of an answer; the parts of an answer sum to it.

    Attributes:
        of: The name of the answer: ``step_time``.
        name: The name of the part: ``compute``.
        value: In the unit of the answer.
        note: What it covers.
    """

    of: str
    name: str
    value: float
    note: str = ""

    __repr__ = short_repr


@frozen
class Assumption:
    """An assumption of the evaluation.

    Attributes:
        name: In snake case: ``attention_flops``.
        value: As text, with its unit.
        why: Where it comes from: the caller, a default, a calibration, a published figure.
        first: Whether the first page has it, as it is about missing data. Plain data has no such key.
    """

    name: str
    value: str
    why: str = ""
    first: bool = field(default=False, eq=False)

    __repr__ = short_repr


@frozen
class Table:
    """A table of the evaluation.

    Attributes:
        title: The heading.
        columns: Names of the columns, in snake case.
        rows: One value per column; ``None`` for an empty cell.
        units: One unit per column, empty for none.
        kind: The kind of evidence of the rows, where it is not that of the answers.
        first_rows: The most rows on the first page, where tables with more rows come first; 0 for a table that only the page
            in full has. Plain data has no such key.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    units: tuple[str, ...] = ()
    kind: Kind = ""
    first_rows: int = field(default=5, eq=False)

    __repr__ = short_repr

    def records(self) -> list[dict[str, Value | None]]:
        """One mapping per row, from column to value in the base unit."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame; ``frame.attrs["units"]`` has the unit of each column.

        Raises:
            UsageError: pandas is not installed.
        """
        frame = library("pandas").DataFrame(list(self.rows), columns=list(self.columns))
        frame.attrs["units"] = dict(zip(self.columns, self.units or ("",) * len(self.columns), strict=True))
        return frame


@frozen
class Suggestion:
    """An evaluation to run next.

    Attributes:
        evaluator: The name of the evaluator: ``training``.
        inputs: Its inputs by name; those left out have their defaults.
        note: What it computes.
    """

    evaluator: str
    inputs: Mapping[str, Any]
    note: str = ""

    __repr__ = short_repr


@frozen(kw_only=True)
class Evaluation:
    """The result of an evaluator.

    Attributes:
        evaluator: The name of the evaluator.
        title: What was evaluated, in one line.
        inputs: The inputs by name, defaults resolved.
        answers: The answers.
        parts: The breakdown of some answers.
        bottleneck: What limits the first answer, in one sentence; empty if nothing does.
        assumptions: The assumptions, with values.
        figures_used: The catalog figures used.
        tables: Answers in rows.
        suggestions: Evaluations to run next.
        edition: The edition of the catalog; empty for the working edition.
        as_of: The date of the catalog; empty for today.
        evidence: What its predictions are based on; ``None`` where it has none.
        rows: Records for programs, which JSON and CSV have and the page has not; all have the same keys.
    """

    evaluator: str
    title: str
    inputs: Mapping[str, Value | None] = field(factory=dict)
    answers: tuple[Answer, ...] = ()
    parts: tuple[Part, ...] = ()
    bottleneck: str = ""
    assumptions: tuple[Assumption, ...] = ()
    figures_used: tuple[UsedFigure, ...] = ()
    tables: tuple[Table, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    edition: str = ""
    as_of: str = ""
    evidence: Evidence | None = None
    rows: tuple[Mapping[str, Value | None], ...] = ()

    __repr__ = short_repr

    @property
    def heading(self) -> str:
        """The evaluator and the title."""
        return f"{self.evaluator}: {self.title}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the answers."""
        return tuple(a.name for a in self.answers)

    def answer(self, name: str) -> Answer:
        """An answer by its name.

        Raises:
            UnknownNameError: There is none; the message has the nearest name. It is a ``KeyError`` too.
        """
        for answer in self.answers:
            if answer.name == name:
                return answer
        snake = str(name).strip().casefold().replace(" ", "_").replace("-", "_")
        snake = SHORT.get(snake, snake)
        hint = f"did you mean {snake!r}?" if snake in self.names else did_you_mean(str(name), self.names)
        hint = hint or f"there are {', '.join(self.names) or 'none'}"
        raise UnknownNameError(f"there is no answer {name!r}; {hint}")

    def __getitem__(self, name: str) -> Value:
        """The value of an answer; raises as :meth:`answer` does."""
        return self.answer(name).value

    def number(self, name: str) -> float:
        """The value of an answer that is a number, in its unit.

        Raises:
            UnknownNameError: There is no such answer.
            UsageError: It is a text, or true or false.
        """
        value = self.answer(name).value
        if isinstance(value, (bool, str)):
            raise UsageError(f"{name} is {value!r}, which is not a number")
        return float(value)

    def records(self) -> list[dict[str, Any]]:
        """One mapping per answer: name, value, unit, low, high, note, kind."""
        return [attrs.asdict(a) for a in self.answers]

    def to_pandas(self) -> pd.DataFrame:
        """The answers as a data frame, one row each; :meth:`Table.to_pandas` does the same for a table.

        Raises:
            UsageError: pandas is not installed.
        """
        return library("pandas").DataFrame(self.records(), columns=[a.name for a in attrs.fields(Answer)])

    def __str__(self) -> str:
        """The page that ``trnspec eval`` prints, at 80 columns and without colours."""
        from trnspec.evaluation.page import WIDTH, page
        from trnspec.text_table import rendered

        return rendered(page(self), WIDTH)

    def _repr_markdown_(self) -> str:
        """The page in a notebook."""
        from trnspec.evaluation.page import markdown_page

        return markdown_page(self)

    def _repr_html_(self) -> str:
        """The page in a notebook, which prefers HTML."""
        from trnspec.evaluation.page import html_page

        return html_page(self)

    def plot(self, kind: str | None = None) -> Chart:
        """A chart of the evaluation, which a notebook shows and ``save(file)`` writes.

        Args:
            kind: One of :data:`trnspec.evaluation.charts.KINDS`; by default the one for the evaluator.

        Raises:
            UsageError: There is no such chart of this evaluation.
        """
        from trnspec.evaluation.charts import chart

        return chart([self], kind)

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as plain data, for JSON; ``rows`` only where there are some."""
        data = attrs.asdict(self, filter=lambda attribute, _: attribute.name not in _PAGE_ONLY)
        if not self.rows:
            del data["rows"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The evaluation that :meth:`to_dict` returned, also from JSON; unknown keys are ignored."""
        values = {name: data[name] for name in ("evaluator", "title", "inputs", "bottleneck", "edition", "as_of")}
        for name, kind in ROWS.items():
            known = {f.name for f in attrs.fields(kind)}
            rows = data.get(name, ()) if name == "suggestions" else data[name]
            values[name] = tuple(kind(**{k: _tuples(v) for k, v in row.items() if k in known}) for row in rows)
        if evidence := data.get("evidence"):
            values["evidence"] = Evidence.from_dict(evidence)
        return cls(**values, rows=tuple(data.get("rows", ())))


_PAGE_ONLY = ("first", "first_rows")
"""Fields that only choose what the first page has."""

ROWS: dict[str, Any] = {
    "answers": Answer,
    "parts": Part,
    "assumptions": Assumption,
    "figures_used": UsedFigure,
    "tables": Table,
    "suggestions": Suggestion,
}
"""The class of the rows of each attribute of an evaluation that has some."""


def _tuples(value: Any) -> Any:
    """A value in which JSON has made tuples lists."""
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def marked(answers: Iterable[Answer], kind: Kind) -> tuple[Answer, ...]:
    """Answers with the kind of evidence on each that is a prediction and has none yet."""
    return tuple(evolve(a, kind=kind) if not a.kind and a.unit in PREDICTED else a for a in answers)


COMMANDS = {"plan-train": ("plan", "train"), "plan-serve": ("plan", "serve"), "search": ("search",)}
"""The commands of evaluators that have one of their own."""

_FLAG = re.compile(r"\b([a-z][a-z_]*)=(True|False)\b")


def command(suggestion: Suggestion, options: Mapping[str, Any]) -> str:
    """The command that runs a suggestion, for a shell.

    Args:
        suggestion: The evaluator and its inputs.
        options: The options that chose the catalog, by name; one that was given several times is a tuple.
    """
    words = ["trnspec", *COMMANDS.get(suggestion.evaluator, ("eval", suggestion.evaluator))]
    for name, value in (*suggestion.inputs.items(), *options.items()):
        option = f"--{name.replace('_', '-')}"
        several = value if isinstance(value, (list, tuple)) else (value,)
        if isinstance(value, bool):
            words.append(_flag(name, value=value))
        elif name in options and value is not None:
            words += [word for one in several for word in (option, plain(one))]
        elif value is not None:
            # A comma separates values; one within a value has a backslash.
            words += [option, ",".join(plain(one).replace(",", "\\,") for one in several)]
    return shlex.join(words)


def plain(value: object) -> str:
    """A value of an option as one types it: 20 and not 20.0."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def hint(text: str) -> str:
    """A hint for a shell: ``must_fit=False``, as it is written in Python, is the option ``--no-must-fit``."""
    return _FLAG.sub(lambda m: _flag(m[1], value=m[2] == "True"), text)


def _flag(name: str, *, value: bool) -> str:
    return f"--{'' if value else 'no-'}{name.replace('_', '-')}"
