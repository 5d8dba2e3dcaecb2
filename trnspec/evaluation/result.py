"""What an evaluator answers: figures with intervals, what they are made of, what they rest on; or a named refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from attrs import field, frozen

from trnspec.errors import TrnspecError
from trnspec.short_repr import short_repr

Value = float | int | str | bool


@frozen
class Answer:
    """One thing that was asked.

    Attributes:
        name: In snake case: ``step_time``.
        value: A number in the unit, a word, or whether something holds.
        unit: ``s``, ``B``, ``B/s``, ``FLOP/s``, ``FLOP``, ``tokens/s``, ``J``, ``W``, ``USD``, ``%`` (of 100), or empty.
        low: The lower end of the interval, where one is known.
        high: The upper end.
        note: What a reader should know; what the interval stands for.
    """

    name: str
    value: Value
    unit: str = ""
    low: float | None = None
    high: float | None = None
    note: str = ""

    __repr__ = short_repr


@frozen
class Part:
    """One part of an answer; the parts of one answer sum to it.

    Attributes:
        of: The name of the answer: ``step_time``.
        name: What the part is: ``compute``.
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
    """Something the answer takes for granted.

    Attributes:
        name: In snake case: ``attention_flops``.
        value: As text, with its unit.
        why: Where it comes from: the caller, a default, a calibration, a published figure.
    """

    name: str
    value: str
    why: str = ""

    __repr__ = short_repr


@frozen
class UsedFigure:
    """A figure of the catalog that the answer rests on.

    Attributes:
        of: The document.
        at: Where in it: ``peak.dense.bf16``.
        says: As printed.
        source: The name of its source, or how it is derived.
        as_of: The date of the source.
        rivals: What others say of it, as printed, with the verdict.
    """

    of: str
    at: str
    says: str
    source: str
    as_of: str = ""
    conflicting: tuple[str, ...] = ()

    __repr__ = short_repr


@frozen
class Table:
    """Rows of answers of one kind.

    Attributes:
        title: What the rows are.
        columns: Names of the columns, in snake case.
        rows: One value a column; ``None`` where there is none.
        units: One unit a column, empty where there is none.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    units: tuple[str, ...] = ()

    __repr__ = short_repr


@frozen(kw_only=True)
class Evaluation:
    """What an evaluator found.

    Attributes:
        evaluator: The name of the evaluator.
        title: What was evaluated, in one line.
        inputs: The inputs, by name, as they were understood: defaults filled in.
        answers: What was asked.
        parts: The breakdown of some answers.
        bottleneck: What limits the first answer, in one sentence; empty where nothing does.
        assumptions: What was taken for granted, with values.
        figures_used: The figures of the catalog it rests on.
        tables: Answers that come in rows.
        edition: The edition of the catalog; empty for the working edition.
        as_of: The date that the catalog answers for; empty for today.
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
    edition: str = ""
    as_of: str = ""

    __repr__ = short_repr

    def answer(self, name: str) -> Answer:
        """The answer of that name; ``KeyError`` where there is none."""
        return (
            next(a for a in self.answers if a.name == name) if name in {a.name for a in self.answers} else _none(name)
        )

    def __getitem__(self, name: str) -> Value:
        """The value of the answer of that name; ``KeyError`` where there is none."""
        return self.answer(name).value

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The evaluation that :meth:`to_dict` told, also after a way through JSON; other keys are passed over."""
        made = {name: data[name] for name in ("evaluator", "title", "inputs", "bottleneck", "edition", "as_of")}
        for name, kind in _ROWS.items():
            made[name] = tuple(kind(**{k: _tuples(v) for k, v in row.items()}) for row in data[name])
        return cls(**made)


_ROWS: dict[str, Any] = {
    "answers": Answer,
    "parts": Part,
    "assumptions": Assumption,
    "figures_used": UsedFigure,
    "tables": Table,
}


def _tuples(value: Any) -> Any:
    """A value of which JSON has made lists."""
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def _none(name: str) -> Answer:
    raise KeyError(name)


class RefusalError(TrnspecError):
    """There is no answer, and this is why: the question contradicts itself, or a figure is unknown.

    Attributes:
        reason: One word for programs, in kebab case: ``rank-count``, ``does-not-fit``, ``unknown-figure``.
        place: Where: an input (``tp``) or a figure of a document (``trainium1 spec.peak.dense.fp8``).
        hint: What to do about it, or an empty text.
    """

    def __init__(self, reason: str, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.place = place
        self.hint = hint
