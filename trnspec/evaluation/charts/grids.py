"""Charts with two discrete axes: an answer of a sweep by two inputs, and a training step by pipeline stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.errors import UsageError
from trnspec.evaluation.charts.evaluations import caption
from trnspec.evaluation.measures import edge, mark, measure, scale
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.summary import label
from trnspec.plots.chart import Axis, Cells, Chart, Panel, Spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.evaluation.sweeps import Row

MOST_CELLS = 24
"""The largest number of values of one axis of a heatmap."""
_WIDE = 8.0
_HIGHER = ("throughput", "mfu", "hfu", "goodput", "max_batch")
"""Beginnings of the names of answers of which more is better."""


def heatmap(rows: Sequence[Row], answer: str | None = None, x: str | None = None, y: str | None = None) -> Chart:
    """An answer of a sweep over two inputs, as a grid of cells.

    Args:
        rows: The combinations. Where other inputs vary too, a cell has the best of them.
        answer: The name of the answer; by default the first of the evaluator.
        x: The input of the columns; by default the second that varies.
        y: The input of the rows; by default the first that varies.

    Raises:
        UsageError: The rows have no two inputs of these names that vary, no such answer, or too many values.
    """
    inputs = list(dict.fromkeys(name for given, _ in rows for name in given))
    y = y or next((n for n in inputs if n != x), "")
    x = x or next((n for n in inputs if n != y), "")
    for name in (x, y):
        if name not in inputs:
            raise UsageError(
                f"a heatmap needs a sweep over two inputs; those that vary are {', '.join(inputs) or 'none'}"
            )
    answered = [result for _, result in rows if isinstance(result, Evaluation)]
    if not answered:
        raise UsageError("there is nothing to draw: no combination has an answer")
    chosen = answered[0].answer(answer) if answer else answered[0].answers[0]
    columns = list(dict.fromkeys(measure(given[x]) for given, _ in rows))
    lines = list(dict.fromkeys(measure(given[y]) for given, _ in rows))
    if max(len(columns), len(lines)) > MOST_CELLS:
        raise UsageError(f"a heatmap has at most {MOST_CELLS} values of one input")
    higher = chosen.name.startswith(_HIGHER)
    best: dict[tuple[str, str], Evaluation] = {}
    reasons: dict[tuple[str, str], str] = {}
    for given, result in rows:
        cell = measure(given[y]), measure(given[x])
        if not isinstance(result, Evaluation):
            reasons.setdefault(cell, result.reason)
        elif cell not in best or (result.number(chosen.name) > best[cell].number(chosen.name)) == higher:
            best[cell] = result
    size, symbol = scale([e.number(chosen.name) for e in best.values()], chosen.unit)
    values = tuple(
        tuple(best[r, c].number(chosen.name) / size if (r, c) in best else None for c in columns) for r in lines
    )
    texts = tuple(
        tuple(_text(best.get((r, c)), chosen.name, size, reasons.get((r, c), "")) for c in columns) for r in lines
    )
    known = [v for row in values for v in row if v]
    others = [n for n in inputs if n not in (x, y)]
    cells = Cells(
        values,
        texts,
        f"{label(chosen.name)} [{symbol}]" if symbol else label(chosen.name),
        bool(known) and max(known) > _WIDE * min(known),
        not higher,
    )
    panel = Panel(Axis(label(x), categories=tuple(columns)), Axis(label(y), categories=tuple(lines)), (cells,))
    notes = (
        f"Of several values of {', '.join(label(n) for n in others)} a cell has the best" if others else "",
        "A cell without colour was rejected for the reason in it" if reasons.keys() - best.keys() else "",
    )
    title = f"{answered[0].evaluator}: {label(chosen.name)} by {label(y)} and {label(x)}"
    return Chart("heatmap", title, (panel,), caption(answered, *notes))


def _text(evaluation: Evaluation | None, name: str, size: float, reason: str) -> str:
    if evaluation is None:
        return reason.replace("-", "\n", 1)
    answer = evaluation.answer(name)
    sign = edge(answer) or mark(answer)
    return f"{sign}{measure(evaluation.number(name) / size)}"


def timeline(trace: Mapping[str, Any]) -> Chart:
    """One training step by pipeline stage: computation above, exposed communication below, bubbles between.

    Args:
        trace: What ``trnspec eval training --trace`` writes.

    Raises:
        UsageError: It is not such a trace.
    """
    try:
        events = trace["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
        spans = [e for e in events if e["ph"] == "X"]
        title, total = trace["otherData"]["title"], float(trace["otherData"]["step_time_s"])
        starts = [(e["pid"], e["name"], float(e["ts"]), float(e["dur"])) for e in spans]
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"the output of trnspec eval training --trace is expected ({type(error).__name__}: {error})"
        ) from error
    if not starts:
        raise UsageError("the trace has no events")
    stages = sorted(names)
    size, symbol = scale([total], "s")
    groups: dict[str, list[tuple[int, float, float]]] = {}
    for stage, name, start, duration in starts:
        groups.setdefault(name, []).append((stages.index(stage), start * 1e-6 / size, (start + duration) * 1e-6 / size))
    panel = Panel(
        Axis(f"time [{symbol}]", zero=True),
        Axis(categories=tuple(names[stage] for stage in stages)),
        (Spans(tuple((name, tuple(boxes)) for name, boxes in groups.items()), ("pipeline bubble",)),),
    )
    note = f"Step time ~{measure(total, 's', digits=2)}; trnspec eval training has its interval. All ranks of a stage do the same."
    return Chart("timeline", f"training: {title}", (panel,), (note,))
