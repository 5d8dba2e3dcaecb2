"""The charts of evaluations: step time and memory by part, plans, percentiles under load, rooflines, accuracy, sweeps.

Each function takes one or several evaluations, a sweep or a timeline, and every number that it draws is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from attrs import evolve, frozen

from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.amounts import duration
from trnspec.evaluation.measures import common, edge, mark, measure, scale
from trnspec.evaluation.result import Evaluation, Table
from trnspec.evaluation.summary import label
from trnspec.evaluation.sweeps import Row
from trnspec.plots.chart import (
    UNKNOWN,
    Bars,
    Chart,
    ChartAxis,
    Ends,
    HeatMap,
    LimitLine,
    Line,
    Mark,
    Panel,
    Points,
    Spans,
)

MOST_BARS = 24
"""The largest number of evaluations in one chart."""

_DEFAULTS = {"memory": "memory", "roofline": "roofline", "plan-train": "pareto", "plan-serve": "serving"}
_DEFAULTS |= {"accuracy": "accuracy"}
_RATIOS = (0.2, 5.0)
"""The ratios of computed to measured that are drawn; those beyond are at the edge."""
_WIDE = 8.0
"""The ratio of the largest to the smallest value from which a scale is logarithmic."""


def chart(evaluations: Sequence[Evaluation], kind: str | None = None, labels: Sequence[str] = ()) -> Chart:
    """The chart of some evaluations of one evaluator.

    Args:
        evaluations: At least one.
        kind: One of :data:`KINDS`; by default that of the evaluator: the breakdown of its answers, for instance.
        labels: The name of each evaluation; by default the inputs in which they differ.

    Raises:
        UsageError: There is no chart of this kind, or the evaluations do not have what it shows.
    """
    if not evaluations:
        raise UsageError("there is nothing to draw: no combination has an answer")
    name = evaluations[0].evaluator
    front = name == "search" and any(t.title.startswith("Pareto front") for e in evaluations for t in e.tables)
    chosen = kind or ("pareto" if front else _DEFAULTS.get(name, "breakdown"))
    if chosen not in KINDS:
        raise UsageError(f"there is no chart {chosen!r} of evaluations; there are {', '.join(KINDS)}")
    return KINDS[chosen](evaluations, labels or _labels(evaluations))


def sweep_chart(rows: Sequence[Row], kind: str | None = None) -> Chart:
    """The chart of a sweep: a bar, or a series, for each combination that has an answer."""
    answered = [(given, result) for given, result in rows if isinstance(result, Evaluation)]
    drawn = chart([result for _, result in answered], kind, [_named(given) for given, _ in answered])
    refused = [f"{_named(given)} ({r.reason})" for given, r in rows if isinstance(r, RefusalError)]
    return evolve(drawn, caption=(*drawn.caption, f"Without an answer: {'; '.join(refused)}.")) if refused else drawn


def _labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """The inputs in which evaluations differ; the title of a single one."""
    if len(evaluations) == 1:
        return [evaluations[0].title]
    names = dict.fromkeys(name for e in evaluations for name in e.inputs)
    differing = [n for n in names if len({str(e.inputs.get(n)) for e in evaluations}) > 1]
    each = ({n: e.inputs.get(n) for n in differing} for e in evaluations)
    return [_named(own) or f"{n}: {e.title}" for n, (own, e) in enumerate(zip(each, evaluations, strict=True), 1)]


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{label(name)} {measure(value)}" for name, value in values.items())


def caption(evaluations: Sequence[Evaluation], *notes: str) -> tuple[str, ...]:
    """The paragraphs below a chart: notes, evidence, and the sources of the catalog figures with their dates."""
    evidence = dict.fromkeys(f"{e.evidence.kind}: {e.evidence.reason}" for e in evaluations if e.evidence is not None)
    sources = sorted({(f.source, f.as_of) for e in evaluations for f in e.figures_used if f.source and f.as_of})
    derived = any(f.source.startswith("derived") for e in evaluations for f in e.figures_used)
    editions = {e.edition or "working edition" for e in evaluations}
    named = ", ".join(f"{name} ({date})" for name, date in sources)
    return (
        *(f"{note}." for note in notes if note),
        *(f"Evidence: {'; '.join(evidence)}." for _ in [0] if evidence),
        *(f"Sources: {named}{', and figures derived from these' if derived else ''}." for _ in [0] if named),
        f"Catalog: {', '.join(sorted(editions))}.",
    )


# Bars of parts.


def _stacked(kind: str, evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Chart:
    """Stacked bars: of each answer that is a time, an energy or a cost, or of the memory of a rank, with its capacity.

    Raises:
        UsageError: No evaluation has parts of such an answer, or there are too many.
    """
    _few(evaluations)
    units = {a.name: a.unit for e in evaluations for a in e.answers}
    shown = {name for name, unit in units.items() if unit and (unit == "B") == (kind == "memory")}
    names = [name for name in dict.fromkeys(p.of for e in evaluations for p in e.parts) if name in shown]
    if not names:
        raise UsageError(f"{evaluations[0].evaluator} has no parts for a {kind} chart")
    panels = tuple(_bars(of, units[of], evaluations, labels) for of in names)
    whiskers = any(ends != UNKNOWN for p in panels for m in p.marks if isinstance(m, Bars) for ends in m.ends)
    notes = dict.fromkeys(a.note for e in evaluations for a in e.answers if a.name in names and a.low is not None)
    note = "; ".join(dict.fromkeys(part for n in notes for part in n.split("; ") if "measurements" in part))
    note = f"Whiskers: interval of the total{f' ({note})' if note else ''}" if whiskers else ""
    return Chart(kind, f"{evaluations[0].evaluator}: {_title(evaluations)}", panels, caption(evaluations, note))


def _bars(of: str, unit: str, evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Panel:
    chosen = [(e, text) for e, text in zip(evaluations, labels, strict=True) if any(p.of == of for p in e.parts)]
    answers = [e.answer(of) for e, _ in chosen]
    size, symbol = scale([e.number(of) for e, _ in chosen], unit)
    parts = [{p.name: p.value / size for p in e.parts if p.of == of} for e, _ in chosen]
    segments = tuple(
        (label(name), tuple(each.get(name, 0.0) for each in parts))
        for name in dict.fromkeys(n for each in parts for n in each)
    )
    ends: tuple[Ends, ...] = tuple(
        (None if a.low is None else a.low / size, None if a.high is None else a.high / size) for a in answers
    )
    texts = tuple(f"{edge(a)} {mark(a)}{measure(a.value, unit, (size, symbol))}".strip() for a in answers)
    marks: list[Mark] = [Bars(segments, ends, texts)]
    capacities = {float(e["capacity"]) for e, _ in chosen if unit == "B" and "capacity" in e.names}
    if len(capacities) == 1:
        marks.append(LimitLine(capacities.pop() / size, "capacity of a rank", vertical=True))
    axis = ChartAxis(f"{label(of)} [{symbol}]", zero=True)
    categories = ("",) if len(evaluations) == 1 else tuple(text for _, text in chosen)
    return Panel(axis, ChartAxis(categories=categories), tuple(marks), "" if len(evaluations) == 1 else label(of))


def _few(evaluations: Sequence[Evaluation]) -> None:
    if len(evaluations) > MOST_BARS:
        raise UsageError(f"a chart shows at most {MOST_BARS} evaluations, not {len(evaluations)}")


def _title(evaluations: Sequence[Evaluation]) -> str:
    """The inputs that all have in common, model and system first; the title of a single evaluation."""
    if len(evaluations) == 1:
        return evaluations[0].title
    inputs = [e.inputs for e in evaluations]
    same = {n: v for n, v in inputs[0].items() if v not in (None, "") and all(i.get(n) == v for i in inputs)}
    main = [str(same[n]) for n in ("model", "on") if n in same]
    lengths: dict[str, Any] = {n: same[n] for n in ("seq", "global_batch", "batch", "prompt", "output") if n in same}
    return ", ".join(filter(None, (" on ".join(main), _named(lengths)))) or f"{len(evaluations)} evaluations"


# Plans.


@frozen
class _Scaled:
    """A column of records in one unit.

    Attributes:
        name: Its name.
        size: Base units of the unit.
        symbol: The symbol of the unit.
    """

    name: str
    size: float
    symbol: str

    @classmethod
    def of(cls, name: str, rows: Iterable[Mapping[str, Any]], unit: str) -> _Scaled:
        """The column of some records in the unit that fits best."""
        return cls(name, *scale([r[name] for r in rows], unit))

    def values(self, rows: Iterable[Mapping[str, Any]]) -> tuple[float, ...]:
        """Its values."""
        return tuple(r[self.name] / self.size for r in rows)

    def ends(self, rows: Iterable[Mapping[str, Any]], of: str = "") -> tuple[Ends, ...]:
        """The ends of the intervals, whose columns begin with a name, by default its own."""
        columns = [f"{of or self.name}_{end}" for end in ("low", "high")]
        ends = ([r.get(name) for name in columns] for r in rows)
        return tuple((low and low / self.size, high and high / self.size) for low, high in ends)

    def axis(self, rows: Iterable[Mapping[str, Any]]) -> ChartAxis:
        """The axis; logarithmic where values are far apart."""
        text = f"{label(self.name)} [{self.symbol}]" if self.symbol else label(self.name)
        return ChartAxis(text, log=_wide(r[self.name] for r in rows), zero=True)


def pareto(evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Chart:  # noqa: ARG001  # each plan has a label
    """Time against cost of the plans of a training run, with the plans that none beats in both; the front of a search.

    Raises:
        UsageError: The evaluation has no plans with a price, and no front.
    """
    if evaluations[0].evaluator == "search":
        return _search_front(evaluations)
    tables = [_table(e, "Plans", "pareto").records() for e in evaluations]
    rows = [row for table in tables for row in table]
    priced: list[dict[str, Any]] = [r for r in rows if r.get("run_cost") is not None and r.get("run_time") is not None]
    if not priced:
        raise UsageError("no plan has a time and a price; --price gives one")
    # The first row of the plans is the best one.
    best = [table[0] for table in tables]
    time, cost = _Scaled.of("run_time", priced, "s"), _Scaled.of("run_cost", priced, "USD")
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in priced:
        groups.setdefault(str(row["system"]).partition("*")[0], []).append(row)
    marks: list[Mark] = []
    for name, some in groups.items():
        texts = (f"{'best plan: ' if r in best else ''}*{str(r['system']).partition('*')[2] or 1}" for r in some)
        ends = time.ends(some, "time"), cost.ends(some, "cost")
        marks.append(Points(name, time.values(some), cost.values(some), *ends, tuple(texts)))
    front = _front(priced)
    marks.append(Line("Pareto front", time.values(front), cost.values(front), dashed=True))
    deadline = _seconds(evaluations[0].inputs.get("deadline"))
    if deadline is not None:
        marks.append(LimitLine(deadline / time.size, f"deadline, {evaluations[0].inputs['deadline']}", vertical=True))
    omitted = len(rows) - len(priced)
    notes = (
        "Labels: number of systems. Whiskers: intervals of time and cost",
        f"{omitted} plans have no price" if omitted else "",
        f"Prices: {'; '.join(dict.fromkeys(str(r['price']) for r in priced if r.get('price')))}",
    )
    panel = Panel(time.axis(priced), cost.axis(priced), tuple(marks))
    return Chart("pareto", evaluations[0].heading, (panel,), caption(evaluations, *notes))


def _search_front(evaluations: Sequence[Evaluation]) -> Chart:
    """The Pareto front of a search in its first two measures; a series for each evaluation."""
    tables = [_table(e, "Pareto front", "pareto") for e in evaluations]
    units = dict(zip(tables[0].columns, tables[0].units, strict=True))
    names = tables[0].columns[:2]
    fronts: list[list[dict[str, Any]]] = [
        sorted((r for r in t.records() if None not in (r[names[0]], r[names[1]])), key=lambda r: float(r[names[0]]))
        for t in tables
    ]
    rows = [r for front in fronts for r in front]
    if not rows:
        raise UsageError("no layout has both measures")
    x, y = (_Scaled.of(name, rows, units[name]) for name in names)
    has_ends = {name: any(f"{name}_low" in t.columns for t in tables) for name in names}
    marks: list[Mark] = []
    for number, front in enumerate(fronts, 1):
        series = "Pareto front" if len(fronts) == 1 else f"Pareto front {number}"
        ends_x, ends_y = (one.ends(front) if has_ends[one.name] else () for one in (x, y))
        marks.append(Line("", x.values(front), y.values(front), dashed=True, like=series))
        marks.append(Points(series, x.values(front), y.values(front), ends_x, ends_y))
    note = "No layout is better in both" + (". Whiskers: intervals" if any(has_ends.values()) else "")
    title = f"search: {' and '.join(map(label, names))}, {evaluations[0].title}"
    panel = Panel(x.axis(rows), y.axis(rows), tuple(marks))
    return Chart("pareto", title, (panel,), caption(evaluations, note))


def _front(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows that no other beats in time and cost, the fastest first."""
    front: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda r: (r["run_time"], r["run_cost"])):
        if not front or row["run_cost"] < front[-1]["run_cost"]:
            front.append(row)
    return front


def _wide(values: Iterable[float]) -> bool:
    known = [v for v in values if v > 0.0]
    return bool(known) and max(known) > _WIDE * min(known)


def serving(evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Chart:
    """Percentiles of TTFT and of TPOT of a plan against the request rate; of inference, throughput against TPOT.

    Raises:
        UsageError: There are several evaluations, or it has no such table.
    """
    if evaluations[0].evaluator == "inference":
        return _latency(evaluations, labels)
    if len(evaluations) > 1:
        raise UsageError("a serving chart shows one plan")
    evaluation = evaluations[0]
    table = _table(evaluation, "Percentiles", "serving")
    rows: list[dict[str, Any]] = table.records()
    inputs = evaluation.inputs
    percentile = f"p{measure(inputs['percentile'])}" if "percentile" in inputs else "percentile"
    panels = []
    for name in ("ttft", "tpot"):
        columns = [name, f"median_{name}"]
        size, symbol = common([r[c] for r in rows for c in columns], "s") or (1.0, "s")
        marks: list[Mark] = [
            Line(text, tuple(r["rate"] for r in rows), tuple(r[c] / size for r in rows), dots=True)
            for c, text in zip(columns, (f"best plan, {percentile}", "best plan, median"), strict=True)
        ]
        limit = _seconds(inputs.get(name))
        if limit is not None:
            marks.append(LimitLine(limit / size, f"limit, {inputs[name]}"))
        if isinstance(inputs.get("rate"), (int, float)):
            marks.append(
                LimitLine(float(inputs["rate"] or 0.0), f"planned, {measure(inputs['rate'])}/s", vertical=True)
            )
        axis = ChartAxis(f"{label(name)} [{symbol}]", zero=True)
        panels.append(Panel(ChartAxis("requests per second of the fleet", zero=True), axis, tuple(marks)))
    return Chart("serving", evaluation.heading, tuple(panels), caption(evaluations))


def _latency(evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Chart:
    """Throughput per chip against TPOT of some deployments, a point for each batch size."""
    tables: list[list[dict[str, Any]]] = [_table(e, "Latency and throughput", "serving").records() for e in evaluations]
    every = [r for rows in tables for r in rows]
    time = _Scaled.of("time_per_output_token", every, "s")
    marks: list[Mark] = []
    for name, rows in zip(labels, tables, strict=True):
        x, y = time.values(rows), tuple(r["throughput_per_chip"] for r in rows)
        marks.append(Line("", x, y, like=name))
        marks.append(Points(name, x, y, labels=tuple(f"{r['batch']:,}" for r in rows)))
    panel = Panel(time.axis(every), ChartAxis("throughput per chip [tokens/s]", zero=True), tuple(marks))
    return Chart("serving", f"inference: {_title(evaluations)}", (panel,), caption(evaluations, "Labels: batch size"))


def _seconds(value: object) -> float | None:
    """A duration such as ``30ms`` in seconds; ``None`` where there is none, as of a day."""
    try:
        return duration(str(value), "")
    except UsageError:
        return None


def _table(evaluation: Evaluation, title: str, kind: str) -> Table:
    for table in evaluation.tables:
        if table.title.startswith(title):
            return table
    raise UsageError(f"{evaluation.evaluator} has no table {title!r}, which a {kind} chart shows")


# Rooflines.


def roofline(evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Chart:
    """The attainable rate against the arithmetic intensity of some chips, and where the parts of a model are.

    Raises:
        UsageError: An evaluation is not one of the evaluator ``roofline``.
    """
    _few(evaluations)
    several = len(evaluations) > 1
    roofs = []
    for e in evaluations:
        table = _table(e, "Ridge points", "roofline")
        kind = "sparse" if e.inputs.get("sparse") else "matmul"
        row = next((r for r in table.records() if r["dtype"] == e.inputs["dtype"]), {})
        rate, at = row.get(kind), row.get(f"{kind}_ridge")
        if not isinstance(rate, float) or not isinstance(at, float):
            raise UsageError(f"{e.title}: there is no rate of {e.inputs['dtype']}")
        roofs.append((table.title.removeprefix("Ridge points of "), rate, at))
    names = [name for name, *_ in roofs]
    shown = names if len(set(names)) == len(names) else list(labels)
    parts = [_parts(e) for e in evaluations]
    intensities = [r["intensity"] for rows in parts for r in rows] + [at for *_, at in roofs]
    first, last = min(intensities) / 4.0, max(intensities) * 4.0
    size, symbol = scale([max(rate for _, rate, _ in roofs)], "FLOP/s")
    marks: list[Mark] = []
    for name, (_, rate, at), e, rows in zip(shown, roofs, evaluations, parts, strict=True):
        slope = rate / at
        marks.append(Line(name, (first, at, last), (first * slope / size, rate / size, rate / size)))
        answer = e.answer("ridge_point")
        ends, text = ((answer.low, answer.high),), (f"{at:,.0f} FLOP/B",)
        marks.append(Points("", (at,), (rate / size,), ends, labels=text, like=name))
        if rows:
            labelled = not several or e is evaluations[0]
            texts = tuple(str(r["part"]) for r in rows) if labelled else ()
            x, y = tuple(r["intensity"] for r in rows), tuple(r["attainable_rate"] / size for r in rows)
            marks.append(Points("", x, y, labels=texts, like=name))
            x, y = (e.number("flops") / e.number("traffic"),), (e.number("attainable_rate") / size,)
            marks.append(Points("", x, y, labels=("whole model",) if labelled else (), like=name))
    dtype = ", ".join(dict.fromkeys(str(e.inputs["dtype"]) for e in evaluations))
    title = f"{', '.join(dict.fromkeys(names))}, {dtype}{_of_model(evaluations)}" if several else evaluations[0].title
    note = "Upper bounds: peak of matrix multiplication, and memory bandwidth. Whiskers: intervals of the ridge points"
    note += ". Other dots: parts of the model, and the whole model at its mean intensity" if any(parts) else ""
    axes = ChartAxis("arithmetic intensity [FLOP/B]", log=True), ChartAxis(f"attainable rate [{symbol}]", log=True)
    return Chart("roofline", f"roofline: {title}", (Panel(*axes, tuple(marks)),), caption(evaluations, note))


def _parts(evaluation: Evaluation) -> list[dict[str, Any]]:
    tables = [t for t in evaluation.tables if "attainable_rate" in t.columns]
    rows: list[dict[str, Any]] = tables[0].records() if tables else []
    named = [(r["part"], r["layers"]) for r in rows]
    several = {part for part, _ in named if [p for p, _ in named].count(part) > 1}
    return [{**r, "part": f"{r['part']}, {r['layers']}" if r["part"] in several else r["part"]} for r in rows]


def _of_model(evaluations: Sequence[Evaluation]) -> str:
    inputs = evaluations[0].inputs
    if inputs.get("model") is None:
        return ""
    return f": {inputs['model']}, {inputs['phase']}, {measure(inputs['batch'])} x {measure(inputs['seq'])} tokens"


# Accuracy.


def accuracy(evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Chart:  # noqa: ARG001  # sets have names
    """Computed over measured, a row for each set and quantity, with the median.

    A row that was fitted counts with the value of a fit to other models, where there is one.

    Raises:
        UsageError: The evaluation is not one of the evaluator ``accuracy``.
    """
    rows = [r for e in evaluations for r in e.rows if r.get("computed") is not None and r.get("measured")]
    if not rows:
        raise UsageError(f"{evaluations[0].evaluator} has no rows of measurements, which an accuracy chart shows")
    sets = list(dict.fromkeys((str(r["part"]), str(r["set"])) for r in rows))
    order = list(dict.fromkeys(part for part, _ in sets))
    sets.sort(key=lambda key: (order.index(key[0]), key[1]))
    groups: dict[str, list[tuple[float, float]]] = {}
    by_set: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        key = str(row["part"]), str(row["set"])
        ratio = ratio_of(row)
        by_set.setdefault(key, []).append(ratio)
        groups.setdefault(_seen(row), []).append((min(max(ratio, _RATIOS[0]), _RATIOS[1]), float(sets.index(key))))
    marks: list[Mark] = [LimitLine(1.0, vertical=True)]
    marks += [
        Points(name, tuple(x for x, _ in groups[name]), tuple(y for _, y in groups[name]), faint=True)
        for name in _SEEN
        if name in groups
    ]
    medians = tuple(min(max(median(by_set[key]), _RATIOS[0]), _RATIOS[1]) for key in sets)
    marks.append(Points("median", medians, tuple(map(float, range(len(sets))))))
    categories = tuple(f"{label(part)}: {name} ({len(by_set[part, name]):,})" for part, name in sets)
    notes = (
        "Number of rows in brackets. Values beyond 0.2 and 5 are at the edge. 'ideal' rows are bounds: no calibration applies",
        "--refit draws fitted rows with the value of a fit to other models" if "fitted" in groups else "",
        "The measurements are those of the catalog; their documents name the sources",
    )
    panel = Panel(ChartAxis("computed / measured", log=True), ChartAxis(categories=categories), tuple(marks))
    return Chart("accuracy", f"accuracy: {evaluations[0].title}", (panel,), caption(evaluations, *notes))


_SEEN = ("ideal", "fitted", "fitted, model held out", "not fitted")


def ratio_of(row: Mapping[str, Any]) -> float:
    """Computed over measured of a row of the evaluator ``accuracy``; of a fitted one by a fit without its model."""
    held_out = row.get("held_out")
    return float((row["computed"] if held_out is None else held_out) / row["measured"])


def _seen(row: Mapping[str, Any]) -> str:
    if row.get("kind") == "ideal":
        return "ideal"
    if not row.get("seen"):
        return "not fitted"
    return "fitted" if row.get("held_out") is None else "fitted, model held out"


# Sweeps over two inputs, and timelines.

MOST_CELLS = 24
"""The largest number of values of one axis of a heatmap."""
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
    if not {x, y} <= set(inputs):
        varying = ", ".join(inputs) or "none"
        raise UsageError(f"a heatmap needs a sweep over two inputs; those that vary are {varying}")
    answered = [result for _, result in rows if isinstance(result, Evaluation)]
    if not answered:
        raise UsageError("there is nothing to draw: no combination has an answer")
    chosen = answered[0].answer(answer) if answer else answered[0].answers[0]
    columns, lines = (tuple(dict.fromkeys(measure(given[name]) for given, _ in rows)) for name in (x, y))
    if max(len(columns), len(lines)) > MOST_CELLS:
        raise UsageError(f"a heatmap has at most {MOST_CELLS} values of one input")
    name, higher = chosen.name, chosen.name.startswith(_HIGHER)
    best: dict[tuple[str, str], Evaluation] = {}
    reasons: dict[tuple[str, str], str] = {}
    for given, result in rows:
        cell = measure(given[y]), measure(given[x])
        if not isinstance(result, Evaluation):
            reasons.setdefault(cell, result.reason.replace("-", "-\n", 1))
        elif cell not in best or (result.number(name) > best[cell].number(name)) == higher:
            best[cell] = result
    size, symbol = scale([e.number(name) for e in best.values()], chosen.unit)
    numbers = {cell: e.number(name) / size for cell, e in best.items()}
    signs = {cell: edge(e.answer(name)) or mark(e.answer(name)) for cell, e in best.items()}
    texts = reasons | {cell: f"{signs[cell]}{measure(number)}" for cell, number in numbers.items()}
    cells = HeatMap(
        tuple(tuple(numbers.get((row, column)) for column in columns) for row in lines),
        tuple(tuple(texts.get((row, column), "") for column in columns) for row in lines),
        f"{label(name)} [{symbol}]" if symbol else label(name),
        _wide(numbers.values()),
        not higher,
    )
    panel = Panel(ChartAxis(label(x), categories=columns), ChartAxis(label(y), categories=lines), (cells,))
    others = [label(n) for n in inputs if n not in (x, y)]
    notes = (
        f"Of several values of {', '.join(others)} a cell has the best" if others else "",
        "A cell without colour was rejected for the reason in it" if reasons.keys() - best.keys() else "",
    )
    title = f"{answered[0].evaluator}: {label(name)} by {label(y)} and {label(x)}"
    return Chart("heatmap", title, (panel,), caption(answered, *notes))


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
        raise UsageError("a file that trnspec eval training --trace FILE wrote is expected") from error
    if not starts:
        raise UsageError("the trace has no events")
    stages = sorted(names)
    size, symbol = scale([total], "s")
    groups: dict[str, list[tuple[int, float, float]]] = {}
    for stage, name, start, length in starts:
        groups.setdefault(name, []).append((stages.index(stage), start * 1e-6 / size, (start + length) * 1e-6 / size))
    panel = Panel(
        ChartAxis(f"time [{symbol}]", zero=True),
        ChartAxis(categories=tuple(names[stage] for stage in stages)),
        (Spans(tuple((name, tuple(boxes)) for name, boxes in groups.items()), ("pipeline bubble",)),),
    )
    note = f"Step time ~{measure(total, 's', digits=2)}; trnspec eval training has its interval. All ranks of a stage do the same."
    return Chart("timeline", f"training: {title}", (panel,), (note,))


KINDS: Mapping[str, Callable[[Sequence[Evaluation], Sequence[str]], Chart]] = {
    "breakdown": partial(_stacked, "breakdown"),
    "memory": partial(_stacked, "memory"),
    "pareto": pareto,
    "serving": serving,
    "roofline": roofline,
    "accuracy": accuracy,
}
"""The charts of evaluations by name."""
