"""The evidence of an answer: the catalog figures used, and whether it is a bound, an estimate, or beyond what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from trnspec.short_repr import ShortRepr

Kind = Literal["", "ideal", "estimate", "extrapolated", "transferred"]
"""The kinds of evidence; empty for an answer that is not a prediction, such as a number of bytes.

``ideal``
    No losses: a lower bound on time, an upper bound on throughput.
``estimate``
    Calibrated on this chip and framework, with all inputs inside the range of the fit, and near those of one of its rows.
``extrapolated``
    Calibrated on this chip and framework, with an input outside the range of the fit, or with no row near.
``transferred``
    By a calibration that was fitted on another chip or framework.
"""

KINDS: tuple[Kind, ...] = ("estimate", "extrapolated", "transferred", "ideal", "")
"""The kinds, strongest evidence first."""

PREDICTED = frozenset({"s", "tokens/s", "FLOP/s", "B/s", "%"})
"""The units of answers that are predictions; counts and bytes are computed exactly."""


@frozen(repr=False)
class UsedFigure(ShortRepr):
    """A catalog figure used by the evaluation.

    Attributes:
        of: The document.
        at: The path in the document: ``peak.dense.bf16``.
        says: The published text.
        source: The name of its source, or how it is derived.
        as_of: The date of the source.
        conflicting: Values that other sources publish, with the verdict.
    """

    of: str
    at: str
    says: str
    source: str
    as_of: str = ""
    conflicting: tuple[str, ...] = ()


@frozen(kw_only=True, repr=False)
class Outside(ShortRepr):
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

    def __str__(self) -> str:
        """Text such as ``seq 131,072 is 16x above 8,192``."""
        if isinstance(self.value, str) or isinstance(self.low, str) or isinstance(self.high, str):
            return f"{self.input} {self.value}, fitted on {self.low}"
        above = self.value > self.high
        factor = float(f"{self.factor:.2g}")
        # Bytes would read as billions.
        count = _gigabytes if self.input.endswith("_per_rank") and not self.input.startswith("tokens") else _count
        return (
            f"{self.input} {count(self.value)} is {factor:,.15g}x {'above' if above else 'below'} "
            f"{count(self.high if above else self.low)}"
        )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.3g} GB"


def _count(value: float) -> str:
    for size, symbol in ((1e9, "B"), (1e6, "M")):
        if value >= size:
            return f"{value / size:.3g}{symbol}"
    return f"{value:,.0f}"


@frozen(kw_only=True, repr=False)
class Nearest(ShortRepr):
    """The row of a fit whose inputs are nearest, by the sum of the logarithms of their ratios.

    Attributes:
        id: The name of the row.
        set: The table: the name of its file without ``.csv``.
        differences: The inputs that differ from it by a quarter or more, and the model, the furthest first.
    """

    id: str
    set: str
    differences: tuple[Outside, ...] = ()

    def __str__(self) -> str:
        """Text such as ``trn1-llama of training_trn1, seq 131,072 is 16x above 8,192``."""
        return "; ".join([f"{self.id} of {self.set}", *map(str, self.differences)])


@frozen(kw_only=True, repr=False)
class GroupError(ShortRepr):
    """The errors of the rows that are most like the question, computed by fits without their model.

    Attributes:
        phase: What was computed: ``step``, ``tpot`` or ``ttft``.
        rows: How many rows.
        clusters: How many configurations among them; 0 if unknown.
        mean: Mean absolute error, as a share.
        median: Median of the same.
        scale: ``server``, ``cluster`` or ``large``; empty for systems of any size.
        models: ``dense`` or ``experts``; empty for both.
    """

    phase: str
    rows: int
    clusters: int = 0
    mean: float
    median: float
    scale: str = ""
    models: str = ""

    def __str__(self) -> str:
        """Text such as ``TPOT 9.1% on 54 rows (cluster, dense)``."""
        of = ", ".join(filter(None, (self.scale, self.models)))
        phase = self.phase.upper() if self.phase in ("tpot", "ttft") else self.phase
        return f"{phase} {self.mean:.1%} on {self.rows} rows" + (f" ({of})" if of else "")


@frozen(kw_only=True, repr=False)
class Evidence(ShortRepr):
    """Evidence of the predictions of an evaluation.

    Attributes:
        kind: The kind of evidence.
        reason: Why it is of this kind, in one line.
        calibration: The name of the calibration; empty without one.
        chip: The chips whose measurements it was fitted on, separated by commas.
        software: The software that was measured.
        rows: How many rows it was fitted on.
        outside: The inputs outside the range of the fit, the furthest first.
        framework: The framework, as ``--framework`` names it; empty if unknown.
        era: The era of its release; empty if unknown.
        errors: The mean errors of held-out rows like the question, for each measured quantity.
        nearest: The nearest row of the fit; ``None`` where its table is not in the catalog.
        page: The page with the errors of all measurements; empty without a calibration.
    """

    kind: Kind
    reason: str
    calibration: str = ""
    chip: str = ""
    software: str = ""
    rows: int = 0
    outside: tuple[Outside, ...] = ()
    framework: str = ""
    era: str = ""
    errors: tuple[GroupError, ...] = ()
    nearest: Nearest | None = None
    page: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the errors are those of other chips and software: also where an input that is not a number differs."""
        return self.kind == "transferred" or any(o.factor == 1.0 for o in self.outside)

    @property
    def weakness(self) -> tuple[int, bool]:
        """The place of the kind, the strongest first, and of one kind whether an input that is not a number differs."""
        return KINDS.index(self.kind), self.is_elsewhere

    def without_row(self, far: Sequence[Outside]) -> Evidence:
        """The evidence where some inputs are far off those of every row: at most extrapolated."""
        if not far or self.kind != "estimate":
            return self
        reason = f"no row is near: {'; '.join(map(str, far))}; {self.reason}"
        return evolve(self, kind="extrapolated", reason=reason, outside=tuple(far))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evidence:
        """The evidence that ``attrs.asdict`` returned, also from JSON."""
        nearest = data.get("nearest")
        return cls(
            **{
                **data,
                "outside": tuple(Outside(**o) for o in data["outside"]),
                "errors": tuple(GroupError(**e) for e in data.get("errors", ())),
                "nearest": nearest
                and Nearest(**{**nearest, "differences": tuple(Outside(**o) for o in nearest["differences"])}),
            }
        )


PAGE = "docs/explanation/accuracy.md"
"""The page with the errors of all measurements of the catalog."""


IDEAL = Evidence(kind="ideal", reason="no losses: lower bound on time, upper bound on throughput")
"""The evidence of an evaluation from published figures alone."""


def weakest(several: Iterable[Evidence]) -> Evidence:
    """The weakest of some evidence, which is that of an answer that depends on all of them."""
    return max(several, key=lambda evidence: KINDS.index(evidence.kind))


def rank_class(kind: object) -> int:
    """The class in which a row of a ranking is compared: 0 for estimates, 1 for bounds, 2 without a prediction.

    A ranking sorts by this first, since a bound is faster than any estimate of the same run. Estimates, extrapolated
    and transferred ones among them, are in the middle of their intervals and are compared with each other.

    Args:
        kind: The kind of evidence of the row; empty or ``None`` for a refusal.
    """
    return {"": 2, "ideal": 1}.get(str(kind or ""), 0)


def mixed(kinds: Iterable[object]) -> bool:
    """Whether some rows have predictions of different kinds, so that a table states the kind of each."""
    return len({*kinds} - {"", None}) > 1
