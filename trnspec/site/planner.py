"""Plans for common questions, computed when the site is built: the same numbers as those of ``trnspec plan``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from trnspec.errors import TrnspecError
from trnspec.evaluation.page import table_of
from trnspec.evaluation.result import Evaluation, Suggestion, command
from trnspec.evaluation.summary import summary_items
from trnspec.text_table import shown

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b")
TRAINED = ("trn1.32xlarge", "trn2.48xlarge")
SERVED = ("trn1.32xlarge", "trn2.48xlarge", "trn3.48xlarge")
COUNTS = (4, 16, 64)
LOADS = {
    "chat: prompts of 1,024 tokens, outputs of 256": {"isl": 1024, "osl": 256, "ttft": "1s", "tpot": "50ms"},
    "documents: prompts of 8,192 tokens, outputs of 512": {"isl": 8192, "osl": 512, "ttft": "3s", "tpot": "50ms"},
}
COLUMNS = {
    "train": ("system", "chips", "run_time", "run_cost", "kind", "mfu", "goodput", "layout", "price"),
    "serve": ("system", "chips", "tp", "replicas", "ttft", "tpot", "million_tokens", "kind", "probability", "price"),
}
MOST_ROWS = 8


@frozen
class PlannedCase:
    """A question with its answer.

    Attributes:
        id: For the address: ``train-llama-3.1-8b``.
        phase: ``train`` or ``serve``.
        model: The model.
        load: What is trained or served, in words.
        command: The command that prints the whole answer.
        summary: Lines of the summary, name and text.
        columns: Headings with units; a number is aligned right.
        rows: The best plans, as the command prints them.
    """

    id: str
    phase: str
    model: str
    load: str
    command: str
    summary: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]


def cases(evaluate: Callable[[str, Mapping[str, Any]], Evaluation], known: Sequence[str]) -> list[PlannedCase]:
    """The answers to the questions for the models and systems that a catalog has."""
    found = []
    for model in (m for m in MODELS if m in known):
        for phase, load, inputs in _questions(model, [s for s in dict.fromkeys((*TRAINED, *SERVED)) if s in known]):
            try:
                evaluation = evaluate(f"plan-{phase}", inputs)
            except TrnspecError:
                continue  # no plan: the catalog lacks a price or a figure
            found.append(_case(phase, model, load, inputs, evaluation))
    return found


def _questions(model: str, systems: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    trained = tuple(s for s in systems if s in TRAINED)
    served = tuple(s for s in systems if s in SERVED)
    if trained:
        yield "train", "1 trillion tokens", {"model": model, "tokens": "1T", "on": trained, "count": COUNTS}
    if served:
        for load, inputs in LOADS.items():
            yield "serve", f"20 requests/s, {load}", {"model": model, "rate": 20.0, "on": served, **inputs}


def _case(phase: str, model: str, load: str, inputs: Mapping[str, Any], evaluation: Evaluation) -> PlannedCase:
    plans = table_of(evaluation, evaluation.tables[0])
    keys = [column.key or column.name for column in plans.columns]
    at = [keys.index(name) for name in COLUMNS[phase] if name in keys]
    rows = [row for row in plans.rows if not isinstance(row, str)][:MOST_ROWS]
    return PlannedCase(
        f"{phase}-{model}-{inputs.get('isl', '')}".rstrip("-"),
        phase,
        model,
        load,
        command(Suggestion(f"plan-{phase}", inputs), {}),
        tuple((name, text) for name, text, *_ in summary_items(evaluation)),
        tuple((" ".join(plans.columns[i].name.split()), plans.columns[i].right) for i in at),
        tuple(tuple(shown(row[i]) for i in at) for row in rows),
    )
