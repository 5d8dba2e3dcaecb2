"""The best layouts of a training step, or deployments for serving, on some systems, of all that fit: the result of a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, field, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.result import COLUMN_ANSWERS, Answer, Assumption, Evaluation, Part, Suggestion, Table, Value
from trnspec.evaluators import inference, training
from trnspec.evaluators.deployment_grid import DeploymentGrid
from trnspec.evaluators.layouts import EVALUATED, rejected
from trnspec.evaluators.prices import rent
from trnspec.evaluators.searching.measures import MEASURES, unit
from trnspec.evaluators.searching.nearest import infeasible
from trnspec.evaluators.searching.question import SearchQuestion  # the annotation is read at run time
from trnspec.evaluators.searching.space import DEPLOYMENT, LAYOUT, Search, reduced, search_of, training_question
from trnspec.evaluators.software import training_assumptions
from trnspec.evidence import rank_class
from trnspec.perf.frameworks import SETTINGS
from trnspec.perf.sweep.reductions import Goal, Selected


def run(catalog: Catalog, question: SearchQuestion) -> Evaluation:
    """Search for the best layouts of a training step, or deployments for serving, by evaluating all that fit in memory.

    With seq and global_batch it is a training step. Degrees that are not given are the divisors of the number of ranks; data
    parallelism takes the remaining ranks, and stages have different numbers of layers where these do not divide. All ZeRO
    stages are evaluated, recompute none and full, without flash attention also selective, and sequence parallelism with
    tensor parallelism; the interleaved schedule with 2, 4 and 8 model chunks per stage. Else it is serving: all tensor,
    pipeline and expert-parallel degrees, and batch sizes in powers of two. An input such as --tp 4,8 limits the search to these
    values. Several systems are searched together; bounds are ranked by themselves, after estimates.

    Raises:
        UsageError: An input is missing, or belongs to the other mode.
        RefusalError: Nothing fits or meets the condition, or a figure is not published.

    Examples:
        The three fastest layouts of Llama 3.1 70B on 16 Trn2 servers:

            trnspec search --model llama-3.1-70b --on 'trn2.48xlarge*16' --seq 8192
            --global-batch 1024 --top 3

        The same without pipeline parallelism, with ZeRO stage 1:

            trnspec search --model llama-3.1-70b --on 'trn2.48xlarge*16' --seq 8192
            --global-batch 1024 --pp 1 --zero 1

        The most output tokens per second and chip with a time per output token below 30 ms:

            trnspec search --model llama-3.1-70b --on trn2.48xlarge --prompt 4096 --output 512
            --where 'tpot < 30 ms'
    """
    search = search_of(catalog, question)
    return report(catalog, search, reduced(search))


_ANSWERS = {**COLUMN_ANSWERS, "tokens_per_s": "throughput"}
"""The answer of the evaluator of one configuration for each measure that has another name."""


@frozen
class ListedConfiguration:
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


def listed(catalog: Catalog, search: Search, number: int) -> ListedConfiguration:
    """A configuration of a search, by its number.

    Raises:
        RefusalError: It is invalid.
    """
    piece: Any = search.piece(number)
    question: Any
    names: tuple[str, ...]
    if isinstance(piece, DeploymentGrid):
        question, on, names = piece.question(number), piece.base.on, DEPLOYMENT
        evaluation = inference.run(catalog, question)
        texts = {name: evaluation.inputs.get(name) for name in DEPLOYMENT}
        rate, priced = evaluation.answer("throughput"), piece.per_tokens
        ends = rate.value, rate.high, rate.low
    else:
        layout, on, dtype, names = piece.layout(number), piece.on, piece.estimator.dtype, LAYOUT
        question = training_question(
            search.question, layout, on=on, dtype=dtype, overlap=layout.overlap, offload=layout.offload
        )
        evaluation = training.run(catalog, question)
        texts = {name: getattr(layout, name) for name in (*LAYOUT, "overlap", "offload")}
        texts |= {"dtype": dtype, "expert_tp": layout.expert_split}
        step, priced = evaluation.answer("step_time"), piece.timed
        ends = step.value, step.low, step.high
    answers = {a.name: a for a in evaluation.answers}
    goals = [name for name, kind in MEASURES[search.question.of].items() if kind.sign]
    found = {name: answers[of] for name in goals if (of := _ANSWERS.get(name, name)) in answers}
    values = {name: (float(answer.value), answer.low, answer.high) for name, answer in found.items()}
    for name in ("usd", "energy"):
        value, low, high = (None if end is None else priced(name, end) for end in ends)
        if value is not None:
            values[name] = value, low, high
    always = tuple(name for name in names if getattr(question, name) is not None)
    return ListedConfiguration(evaluation, question.given(always), on, values, texts | {"system": on})


def columns(search: Search, rows: list[ListedConfiguration], first: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a table of configurations."""
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


_BASES = {"ttft": "time_to_first_token"}
"""The answer whose parts explain an objective; that of a step or of an output token for the others."""


def report(catalog: Catalog, search: Search, kept: Selected) -> Evaluation:
    """The evaluation with the configurations that were kept.

    Raises:
        RefusalError: None is feasible; the error has the nearest searches that have an answer.
    """
    if not len(kept.best):
        raise infeasible(catalog, search, kept)
    q, mode = search.question, search.question.of
    best, front = (
        [listed(catalog, search, number) for number in some.index.tolist()] for some in (kept.best, kept.front)
    )
    first = best[0]
    goal = search.selection.goal
    single = first.evaluation
    piece = search.piece(int(kept.best.index[0]))
    ranks = f", {int(piece.estimator.system.ranks):,} ranks" if mode == "training" else ""
    return Evaluation(
        evaluator="search",
        title=f"{single.inputs['model']} on {first.system}: {_WORDS[goal.name]} of {kept.evaluated:,} {search.noun}{ranks}",
        inputs={**q.used(), **{n: single.inputs[n] for n in ("model", "calibration")}},
        answers=tuple(_answers(search, kept, first)),
        parts=tuple(Part("rejected", reason, count) for reason, count in rejected(kept.counts)),
        bottleneck=single.bottleneck,
        assumptions=tuple(_assumptions(catalog, search, kept, first)),
        figures_used=single.figures_used,
        tables=tuple(_tables(search, best, front)),
        evidence=single.evidence,
        suggestions=(Suggestion(single.evaluator, first.inputs, f"the {_best(goal)} {search.noun[:-1]}"),),
        edition=catalog.edition or "",
    )


def _best(goal: Goal) -> str:
    return {"step_time": "fastest", "usd": "cheapest"}.get(goal.name, "best")


_WORDS = {
    "tokens_per_s_per_chip": "the most tokens/s per chip", "ttft": "the least TTFT", "tpot": "the least TPOT",
    "energy": "the least energy", "step_time": "the fastest", "usd": "the cheapest",
}  # fmt: skip


def _answers(search: Search, kept: Selected, first: ListedConfiguration) -> Iterator[Answer]:
    single, goal = first.evaluation, search.selection.goal
    note = f"of the {_best(goal)} {search.noun[:-1]}"
    priced = {a.name: a for a in _priced(search, first)}
    if (priced_as := _ANSWERS.get(goal.name, goal.name)) in priced:
        one = priced.pop(priced_as)
        yield evolve(one, note=f"{one.note}; {note}")
    names = ["step_time", "throughput", "mfu", "ideal_step_time"]
    if search.question.of == "inference":
        names = ["throughput", "throughput_per_chip", "time_to_first_token", "time_per_output_token"]
        names += ["ideal_time_to_first_token", "ideal_time_per_output_token"]
        names.sort(key=lambda name: goal.name in ("ttft", "tpot") and name != _ANSWERS.get(goal.name))
    by_name = {a.name: a for a in single.answers}
    shown = [by_name[name] for name in names if name in by_name]
    if goal.name not in ("usd", "energy"):
        shown[0] = evolve(shown[0], note=f"{note}; {shown[0].note}" if shown[0].note else note)
    yield from shown
    yield from priced.values()
    yield Answer("evaluated", kept.evaluated, note=search.noun)
    where = f", and {search.question.where}" if search.question.where else ""
    yield Answer("feasible", kept.feasible, note=f"{search.noun} that are valid and fit{where}")
    yield Answer("rejected", kept.evaluated - kept.feasible, note=f"{search.noun} that are invalid or do not fit")


def _priced(search: Search, first: ListedConfiguration) -> Iterator[Answer]:
    """Cost and energy of a million tokens, as far as they are known."""
    mode, kind = search.question.of, first.evaluation.answers[0].kind
    of = "trained" if mode == "training" else "output tokens"
    for name in ("usd", "energy"):
        if name in first.values:
            value, low, high = first.values[name]
            note = of if name == "usd" else f"a million tokens, {of}"
            yield Answer(_ANSWERS.get(name, name), value, unit(name, mode), low, high, note, kind)


def _assumptions(catalog: Catalog, search: Search, kept: Selected, first: ListedConfiguration) -> Iterator[Assumption]:
    q, single = search.question, first.evaluation
    of = {a.name: a for a in single.assumptions}
    if "calibration" in of:
        yield of["calibration"]
    why = "errors of the model favor the layouts it underestimates"
    yield Assumption("selection", f"{_WORDS[search.selection.goal.name]} of {kept.evaluated:,}", why, first=True)
    if kept.evaluated < search.size:
        yield Assumption(
            "interrupted",
            f"{kept.evaluated:,} of {search.size:,} {search.noun}",
            "the others were not evaluated",
            first=True,
        )
    if q.of == "training":
        choices = q.choices(q.dtype[0])
        yield Assumption("degrees", EVALUATED, "the layouts that are evaluated, where no degree is given")
        yield Assumption("rank_order", "tensor, context, data, pipeline", "neighbors are in one tensor-parallel group")
        yield Assumption("schedules", ", ".join(choices.schedule), "the input schedule; all for every schedule")
        yield from training_assumptions(q, [n for n in SETTINGS if n not in ("zero", "recompute", "overlap")])
        yield from (of[name] for name in ("experts", "dispatch") if name in of)
    else:
        degrees = "tp: divisors of the ranks; pp: of the layers; ep: of the experts"
        yield Assumption("degrees", degrees, "the deployments that are evaluated, where no degree is given")
        yield from (of[name] for name in ("reserve", "routing", "idle_ranks") if name in of)
    price = rent(catalog, first.system, type=q.price_type, region=q.region, price=q.price)
    if "usd" in first.values and price is not None:
        text, _, why = str(price).partition(": ")
        yield Assumption("price", text, why)
    if any(g.name == "energy" for g in (search.selection.goal, *search.selection.front)):
        yield Assumption("energy", "maximum power of all chips", "without hosts, network and cooling")


def _tables(search: Search, best: list[ListedConfiguration], front: list[ListedConfiguration]) -> Iterator[Table]:
    goal, mode = search.selection.goal, search.question.of
    yield from _ranked(f"{_best(goal).capitalize()} {search.noun}", search, best, (goal.name,))
    if len(best) > 1 and best[0].bound == best[1].bound:
        yield from _comparison(goal, mode, best[0], best[1])
    if search.selection.front:
        goals = tuple(g.name for g in search.selection.front)
        yield from _ranked(f"Pareto front of {' and '.join(goals)}", search, front, goals)


def _ranked(title: str, search: Search, rows: list[ListedConfiguration], first: tuple[str, ...]) -> Iterator[Table]:
    """A table of rows; bounds, which are not comparable with estimates, in one of their own."""
    estimates = [row for row in rows if not row.bound]
    bounds = [row for row in rows if row.bound]
    if estimates:
        yield _table(title, search, estimates, first)
    if bounds:
        named = f"{title}: bounds, without losses" if estimates else title
        yield evolve(_table(named, search, bounds, first), kind="ideal")


def _table(title: str, search: Search, rows: list[ListedConfiguration], first: tuple[str, ...]) -> Table:
    names = columns(search, rows, first)
    cells = tuple(tuple(row.cell(name) for name in names) for row in rows)
    return Table(title, names, cells, tuple(unit(name, search.question.of) for name in names))


def _comparison(goal: Goal, mode: str, first: ListedConfiguration, second: ListedConfiguration) -> Iterator[Table]:
    """Differences between the times of the first and the second."""
    base = _BASES.get(goal.name, "step_time" if mode == "training" else "time_per_output_token")
    parts = [{p.name: p.value for p in one.evaluation.parts if p.of == base} for one in (first, second)]
    names = list(dict.fromkeys(name for one in parts for name in one))
    rows = [(name, parts[0].get(name, 0.0), parts[1].get(name, 0.0)) for name in names]
    changed = [(name, a, b, a - b) for name, a, b in rows if a != b]
    changed.sort(key=lambda row: -abs(row[3]))
    total = [one.evaluation.number(base) for one in (first, second)]
    changed.append(("total", total[0], total[1], total[0] - total[1]))
    about = base.replace("_", " ")
    yield Table(
        f"First and second: {about}",
        ("part", "first", "second", "difference"),
        tuple(changed),
        ("", "s", "s", "s"),
        first_rows=3,
    )
