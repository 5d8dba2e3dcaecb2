"""Evaluations and refusals for programs: flat records, and the message of a refusal."""

from __future__ import annotations

from typing import Any

from trnspec.errors import RefusalError
from trnspec.evaluation.result import Evaluation, hint


def refusal(error: RefusalError) -> dict[str, str]:
    """A refusal as plain data."""
    return {"reason": error.reason, "message": str(error), "place": error.place, "hint": error.hint}


def sentence(evaluator: str, error: RefusalError) -> str:
    """A refusal as a message of the command line: reason, where, and a hint that names options."""
    lines = [f"trnspec: {evaluator}: {error.reason}: {error}"]
    lines += [f"  at: {error.place}"] if error.place else []
    lines += [f"  hint: {hint(error.hint)}"] if error.hint else []
    return "\n".join(lines)


def cells(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Each answer as cells under headings: its value with its unit, and the ends of its interval where it has one.

    A prediction has its kind of evidence too. An answer that has the name of an input is called ``answer NAME``.
    """
    groups: dict[str, dict[str, Any]] = {}
    for answer in evaluation.answers:
        name = f"answer {answer.name}" if answer.name in evaluation.inputs else answer.name
        unit = f" [{answer.unit}]" if answer.unit else ""
        groups[name] = {f"{name}{unit}": answer.value}
        if answer.low is not None or answer.high is not None:
            groups[name] |= {f"{name} low{unit}": answer.low, f"{name} high{unit}": answer.high}
        if answer.kind:
            groups[name][f"{name} kind"] = answer.kind
    return groups


def record(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as one flat record: the inputs, then the answers with their units and intervals."""
    row: dict[str, Any] = dict(evaluation.inputs)
    for group in cells(evaluation).values():
        row |= group
    return row
