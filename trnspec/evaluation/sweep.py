"""Sweeps: an evaluator over every combination of some values of its inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.evaluation.result import Evaluation, RefusalError, Value
from trnspec.short_repr import abbreviated

if TYPE_CHECKING:
    import pandas as pd

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


@frozen(repr=False)
class Sweep:
    """The evaluations of every combination of some input values, in order.

    Attributes:
        evaluator: The name of the evaluator.
        axes: The values of each swept input.
        rows: Each combination with its evaluation, or with the refusal.
    """

    evaluator: str
    axes: Mapping[str, tuple[Any, ...]]
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        """The number of combinations."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        axes = ", ".join(f"{name} {list(values)}" for name, values in self.axes.items())
        refused = sum(isinstance(result, RefusalError) for _, result in self.rows)
        return abbreviated(f"<Sweep of {self.evaluator}: {len(self)} combinations, {refused} refused; {axes}>")

    def _repr_markdown_(self) -> str:
        """The table in a notebook."""
        from trnspec.evaluation.sweep_page import sweep_markdown

        return sweep_markdown(self.rows, f"{self.evaluator}: {len(self)} combinations") if self.rows else repr(self)

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
        """The unit of each answer that has one."""
        evaluations = (result for _, result in self.rows if isinstance(result, Evaluation))
        return {answer.name: answer.unit for e in evaluations for answer in e.answers if answer.unit}

    def records(self) -> list[dict[str, Value | None]]:
        """For each combination its values, its answers, ``evidence``, and the reason of a ``refusal``, or ``None``.

        ``evidence`` is the kind of evidence of the predictions; rows of different kinds are not comparable.
        """
        return [
            {**combination, "evidence": None, "refusal": result.reason}
            if isinstance(result, RefusalError)
            else {
                **combination,
                **{answer.name: answer.value for answer in result.answers},
                "evidence": "" if result.evidence is None else result.evidence.kind,
                "refusal": None,
            }
            for combination, result in self.rows
        ]

    def to_pandas(self) -> pd.DataFrame:
        """The records as a data frame of pandas; ``frame.attrs["units"]`` has the units.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(f"pandas is not installed ({error}); pip install 'trnspec[tables]'") from error
        frame = pd.DataFrame(self.records())
        frame.attrs["units"] = self.units
        return frame
