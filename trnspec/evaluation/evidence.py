"""The kind of evidence of an answer: a bound, an estimate, or an estimate beyond what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import evolve, frozen

from trnspec.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from trnspec.evaluation.result import Answer

Kind = Literal["", "ideal", "estimate", "extrapolated", "transferred"]
"""The kinds of evidence; empty for an answer that is not a prediction, such as a number of bytes.

``ideal``
    No losses: a lower bound on time, an upper bound on throughput.
``estimate``
    Calibrated on this chip and framework, with all inputs inside the range of the fit.
``extrapolated``
    Calibrated on this chip and framework, with an input outside the range of the fit.
``transferred``
    By a calibration that was fitted on another chip or framework.
"""

KINDS: tuple[Kind, ...] = ("estimate", "extrapolated", "transferred", "ideal", "")
"""The kinds, strongest evidence first."""

PREDICTED = frozenset({"s", "tokens/s", "FLOP/s", "B/s", "%"})
"""The units of answers that are predictions; counts and bytes are computed exactly."""


@frozen(kw_only=True)
class Outside:
    """An input outside the range of a fit.

    Attributes:
        input: The name of the input: ``seq``.
        value: Its value.
        low: The least value of the rows of the fit; of a text those values, separated by commas.
        high: The largest value of those rows; empty for a text.
        factor: How far outside: the value over the nearer end, or that end over the value; 1 for a text.
    """

    input: str
    value: float | str
    low: float | str
    high: float | str = ""
    factor: float = 1.0

    __repr__ = short_repr

    def __str__(self) -> str:
        """Such as ``seq 131,072 is 16x above 8,192``."""
        if isinstance(self.value, str) or isinstance(self.low, str) or isinstance(self.high, str):
            return f"{self.input} {self.value}, fitted on {self.low}"
        above = self.value > self.high
        return (
            f"{self.input} {_count(self.value)} is {self.factor:.2g}x {'above' if above else 'below'} "
            f"{_count(self.high if above else self.low)}"
        )


def _count(value: float) -> str:
    for size, symbol in ((1e9, "B"), (1e6, "M")):
        if value >= size:
            return f"{value / size:.3g}{symbol}"
    return f"{value:,.0f}"


@frozen(kw_only=True)
class Evidence:
    """What the predictions of an evaluation are based on.

    Attributes:
        kind: The kind of evidence.
        reason: Why it is of this kind, in one line.
        calibration: The name of the calibration; empty without one.
        chip: The chips whose measurements it was fitted on, separated by commas.
        software: The software that was measured.
        rows: How many rows it was fitted on.
        outside: The inputs outside the range of the fit, the furthest first.
    """

    kind: Kind
    reason: str
    calibration: str = ""
    chip: str = ""
    software: str = ""
    rows: int = 0
    outside: tuple[Outside, ...] = ()

    __repr__ = short_repr


IDEAL = Evidence(kind="ideal", reason="no losses: lower bound on time, upper bound on throughput")
"""The evidence of an evaluation from published figures alone."""


def weakest(several: Iterable[Evidence]) -> Evidence:
    """The weakest of some evidence, which is that of an answer that depends on all of them."""
    return max(several, key=lambda evidence: KINDS.index(evidence.kind))


def marked(answers: Iterable[Answer], kind: Kind, also: Collection[str] = ()) -> tuple[Answer, ...]:
    """Answers with the kind of evidence on each that is a prediction and has none yet.

    Args:
        answers: The answers.
        kind: The kind.
        also: Names of predictions whose unit is not one of :data:`PREDICTED`.
    """
    return tuple(evolve(a, kind=kind) if not a.kind and (a.unit in PREDICTED or a.name in also) else a for a in answers)
