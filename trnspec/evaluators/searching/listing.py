"""The rows of a result: each configuration that is listed, evaluated by itself, with its interval and kind of evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from trnspec.evaluation.result import Evaluation, Value
from trnspec.evaluators import inference, training
from trnspec.evaluators.searching.measures import MEASURES
from trnspec.evaluators.searching.serving import DEPLOYMENT, HOUR, ServingPiece
from trnspec.evaluators.searching.training import LAYOUT, layout_inputs, training_question
from trnspec.evidence import rank_class
from trnspec.perf.sweep.pieces import timed

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Answer
    from trnspec.evaluators.searching.space import Search

_ANSWERS = {
    "step_time": "step_time",
    "mfu": "mfu",
    "tokens_per_s": "throughput",
    "tokens_per_s_per_chip": "throughput_per_chip",
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "latency": "latency",
    "memory": "memory",
}
"""The answer of the evaluator of one configuration for each measure that is one."""


@frozen
class Listed:
    """A configuration that is listed.

    Attributes:
        evaluation: Its evaluation.
        inputs: The inputs of its evaluator, given in any case.
        system: The system.
        values: Its measures: value, low and high end, as far as they are known.
        texts: What describes it.
    """

    evaluation: Evaluation = field(repr=False)
    inputs: dict[str, Any]
    system: str
    values: dict[str, tuple[float, float | None, float | None]]
    texts: dict[str, Value | None]

    @property
    def kind(self) -> str:
        """The kind of evidence."""
        return "" if self.evaluation.evidence is None else self.evaluation.evidence.kind

    @property
    def bound(self) -> bool:
        """Whether its times are bounds."""
        return rank_class(self.kind) > 0

    def cell(self, name: str) -> Value | None:
        """A cell of a table: a measure, an end of its interval, or what describes the configuration."""
        if name == "kind":
            return self.kind
        measure, _, end = name.rpartition("_")
        if end in ("low", "high") and measure in self.values:
            return self.values[measure][("low", "high").index(end) + 1]
        return self.values[name][0] if name in self.values else self.texts.get(name)


def listed(catalog: Catalog, search: Search, number: int) -> Listed:
    """A configuration of a search, by its number.

    Raises:
        RefusalError: It is invalid.
    """
    piece, q = search.piece(number), search.question
    if isinstance(piece, ServingPiece):
        return _deployment(catalog, piece, number)
    layout, estimator = piece.layout(number), piece.estimator
    chosen = {
        "on": piece.on,
        "dtype": estimator.dtype,
        "overlap": layout.overlap,
        "offload": layout.offload,
    }
    question = training_question(q, layout, **chosen)
    evaluation = training.run(catalog, question)
    always = tuple(name for name in LAYOUT if getattr(question, name) is not None)
    step = evaluation.answer("step_time")
    values = _answered(evaluation)
    for name in ("usd", "energy"):
        ends = [
            None if t is None else timed(name, piece, t, float(layout.tokens))
            for t in (step.value, step.low, step.high)
        ]
        if ends[0] is not None:
            values[name] = (ends[0], ends[1], ends[2])
    inputs = {name: v for name, v in layout_inputs(piece, number).items() if name != "expert_tp"}
    texts = inputs | {"system": piece.on, "dtype": estimator.dtype, "expert_tp": layout.expert_split}
    return Listed(evaluation, question.given(always=always), piece.on, values, texts)


def _deployment(catalog: Catalog, piece: ServingPiece, number: int) -> Listed:
    question = piece.question(number)
    evaluation = inference.run(catalog, question)
    values, rate = _answered(evaluation), evaluation.answer("throughput")
    for name, power in (("usd", None if piece.hourly is None else piece.hourly / HOUR), ("energy", piece.watts)):
        if power is not None and question.prefill_on is None:
            # More tokens per second cost less.
            ends = [None if r is None else power * (1e6 / float(r)) for r in (rate.value, rate.high, rate.low)]
            assert ends[0] is not None
            values[name] = (ends[0], ends[1], ends[2])
    own = piece.inputs(number)
    resolved = {name: evaluation.inputs.get(name) for name in DEPLOYMENT}
    texts = {**resolved, "system": piece.on}
    always = tuple(name for name in DEPLOYMENT if own[name] is not None)
    return Listed(evaluation, question.given(always=always), piece.on, values, texts)


def _answered(evaluation: Evaluation) -> dict[str, tuple[float, float | None, float | None]]:
    answers: dict[str, Answer] = {a.name: a for a in evaluation.answers}
    return {
        name: (float(answers[of].value), answers[of].low, answers[of].high)
        for name, of in _ANSWERS.items()
        if of in answers
    }


def columns(search: Search, rows: list[Listed], first: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a table of configurations.

    Args:
        search: The search.
        rows: The configurations.
        first: The measures that the table is about.
    """
    q = search.question
    if q.of == "training":
        measures: tuple[str, ...] = ("step_time", "mfu", "memory")
        chosen = [n for n in LAYOUT if n != "expert_tp" or any(r.evaluation.inputs.get("expert_tp") for r in rows)]
        chosen += [n for n in ("overlap", "offload", "dtype") if len({r.texts[n] for r in rows}) > 1]
    else:
        measures = ("tokens_per_s_per_chip", "ttft", "tpot", "memory")
        always = ("tp", "pp", "dp", "batch")
        chosen = [n for n in DEPLOYMENT if n in always or len({r.texts[n] for r in rows}) > 1]
    several = ("system",) if len(q.on) > 1 else ()
    mixed = ("kind",) if len({r.kind for r in rows}) > 1 else ()
    known = [n for n in ("usd", "energy") if n not in first and any(n in r.values for r in rows)]
    bounds = [f"{n}_{end}" for n in first if n not in ("memory", "chips") for end in ("low", "high")]
    chosen_names = (*several, *mixed, *first, *measures, *chosen, *known, *bounds, "kind")
    return tuple(dict.fromkeys(chosen_names))


def unit(name: str, mode: Any) -> str:
    """The unit of a column."""
    measure, _, end = name.rpartition("_")
    kind = MEASURES[mode].get(measure if end in ("low", "high") else name)
    return "" if kind is None or kind.text else kind.unit
