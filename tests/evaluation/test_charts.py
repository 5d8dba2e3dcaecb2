"""The charts of evaluations: every number that they draw is in the evaluation.

``python -m tests.evaluation.test_charts`` writes ``charts.txt``: the charts of the stored evaluations.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from attrs import asdict, evolve, has

import trnspec
from tests.support.programs import DATA
from trnspec.errors import UsageError
from trnspec.evaluation.charts import KINDS, chart, heatmap, sweep_chart, timeline
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.summary import label
from trnspec.plots.chart import Bars, HeatMap, LimitLine, Line, Points, Spans
from trnspec.plots.draw import figure

CAT = trnspec.load()


def read(name: str) -> Evaluation:
    return Evaluation.from_dict(json.loads((DATA / "plots" / f"{name}.json").read_text()))


def training() -> list[Evaluation]:
    rows = json.loads((DATA / "plots" / "training.json").read_text())["rows"]
    return [Evaluation.from_dict(row) for row in rows if "refusal" not in row]


def described(value: Any) -> str:
    """A part of a chart on one line: of many items the first, and how many there are."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(described, value[:3]))}{f', ... {len(value)}' if len(value) > 3 else ''}]"
    if has(type(value)):
        given = {n: v for n, v in asdict(value, recurse=False).items() if v not in ("", (), False, None)}
        return " ".join([type(value).__name__, *(f"{n}={described(v)}" for n, v in given.items())])
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def drawn_lines() -> list[str]:
    plans, fleet, errors = ([read(name)] for name in ("plans", "fleet", "errors"))
    drawn = [chart(training()), chart(training(), "memory"), chart(plans), chart(fleet), chart(errors)]
    parts = (
        (one.kind, one.title, *one.caption, *(p for q in one.panels for p in (evolve(q, marks=()), *q.marks)))
        for one in drawn
    )
    return [described(part) for each in parts for part in each]


CHARTS = Path(__file__).with_name("charts.txt")


def test_charts_of_stored_evaluations() -> None:
    assert drawn_lines() == CHARTS.read_text("utf-8").splitlines()


def test_breakdown() -> None:
    """A part that an evaluation does not have is 0."""
    first, second = training()
    names = [p.name for p in first.parts if p.of == "step_time"]
    some = [first, evolve(second, parts=tuple(p for p in second.parts if p.name != names[1]))]
    drawn = chart(some)
    (panel,) = drawn.panels
    (bars,) = panel.marks
    assert isinstance(bars, Bars)

    assert ("tp 16, dp 64", "tp 32, dp 32") == panel.y.categories
    assert "step time [s]" == panel.x.label
    assert {(n, i): v for n, values in bars.segments for i, v in enumerate(values)} == {
        (n, i): sum(p.value for p in e.parts if (p.of, p.name) == ("step_time", n)) for n in names for i, e in enumerate(some)
    }  # fmt: skip
    assert tuple((e.answer("step_time").low, e.answer("step_time").high) for e in some) == bars.ends
    assert {f.source for e in some for f in e.figures_used if f.as_of} <= set(
        " ".join(drawn.caption).replace(",", "").split()
    )


def test_sweep_chart_names_refused_points() -> None:
    given = {"model": "llama-3.1-8b", "on": "trn1.32xlarge*32", "seq": 8192, "global_batch": 1024, "zero": 1}
    drawn = trnspec.sweep("training", CAT, tp=[4, 32], **given).plot()

    assert ("tp 32",) == drawn.panels[0].y.categories or ("",) == drawn.panels[0].y.categories
    assert "Without an answer: tp 4 (does-not-fit)." == drawn.caption[-1]


def test_pareto() -> None:
    plans = read("plans")
    (panel,) = chart([plans]).panels
    rows = plans.tables[0].records()
    points = [(x, y) for m in panel.marks if isinstance(m, Points) for x, y in zip(m.x, m.y, strict=True)]
    (front,) = [m for m in panel.marks if isinstance(m, Line)]

    assert {(r["run_time"] / 86400, r["run_cost"]) for r in rows} == set(points)
    assert list(front.x) == sorted(front.x)
    # No plan beats one of the front, and each of the others is beaten.
    beaten = {p for p in points if any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    assert set(points) - beaten == set(zip(front.x, front.y, strict=True))
    named = [
        (m.name + label.removeprefix("best plan: "), m.x[i], m.y[i])
        for m in panel.marks
        if isinstance(m, Points)
        for i, label in enumerate(m.labels)
        if label.startswith("best plan")
    ]
    assert [(plans["system"], plans.number("run_time") / 86400, plans.number("run_cost"))] == named
    assert [LimitLine(60.0, "deadline, 60d", vertical=True)] == [m for m in panel.marks if isinstance(m, LimitLine)]


def test_serving() -> None:
    fleet = read("fleet")
    rows = fleet.tables[0].records()
    for panel, name, size in zip(chart([fleet]).panels, ("ttft", "tpot"), (1e-3, 1e-3), strict=True):
        high, middle = (m for m in panel.marks if isinstance(m, Line))
        assert [r["rate"] for r in rows] == list(high.x) == list(middle.x)
        assert [r[name] / size for r in rows] == list(high.y)
        assert [r[f"median_{name}"] / size for r in rows] == list(middle.y)
        assert "best plan, p95" == high.name
    limits = [m.value for p in chart([fleet]).panels for m in p.marks if isinstance(m, LimitLine) and not m.vertical]
    assert [1000.0, 30.0] == pytest.approx(limits)


@pytest.mark.parametrize("phase", ["prefill", "decode", "train"])
def test_roofline(phase) -> None:
    """The corner is where the evaluator has the ridge point; parts of the model are on the line."""
    answers = [
        trnspec.evaluate("roofline", CAT, on=c, model="llama-3.1-8b", phase=phase) for c in ("trainium1", "trainium2")
    ]
    (panel,) = chart(answers).panels
    lines = [m for m in panel.marks if isinstance(m, Line)]

    assert ["trainium1", "trainium2"] == [line.name for line in lines]
    drawn = [x for m in panel.marks if isinstance(m, Points) for x in m.x]
    assert {(min(drawn) / 4, max(drawn) * 4)} == {(line.x[0], line.x[-1]) for line in lines}
    for line, answer in zip(lines, answers, strict=True):
        assert answer["ridge_point"] == pytest.approx(line.x[1])
        rates = [(r["intensity"], r["attainable_rate"]) for r in answer.tables[0].records()]
        slope = line.y[0] / line.x[0]
        *_, whole = [m for m in panel.marks if isinstance(m, Points) and line.name == m.like]
        assert answer.number("flops") / answer.number("traffic") == pytest.approx(whole.x[0])
        assert answer.number("flops") / answer.number("time") / 1e12 == pytest.approx(whole.y[0])
        assert [rate / 1e12 for _, rate in rates] == pytest.approx([min(line.y[1], at * slope) for at, _ in rates])


def test_parts_with_one_name_are_told_apart_by_their_layers() -> None:
    (panel,) = chart([trnspec.evaluate("roofline", CAT, on="trainium2", model="gemma-4-31b", phase="train")]).panels
    names = ("projections", "scores, full", "scores, windowed", "mlp", "head")
    assert names in [m.labels for m in panel.marks if isinstance(m, Points)]


def test_accuracy() -> None:
    stored = read("errors")
    first = next(r for r in stored.rows if r["computed"] is not None)
    errors = evolve(stored, rows=(*stored.rows, *({**first, "computed": by * first["measured"]} for by in (0.1, 9.0))))
    (panel,) = chart([errors]).panels
    rows = [r for r in errors.rows if r["computed"] is not None]
    faint = [m for m in panel.marks if isinstance(m, Points) and m.faint]
    (middle,) = [m for m in panel.marks if isinstance(m, Points) and not m.faint]
    ratios = [min(max(r["computed"] / r["measured"], 0.2), 5.0) for r in rows]

    assert sorted(ratios) == sorted(x for m in faint for x in m.x)
    for at, category in enumerate(panel.y.categories):
        some = [
            q
            for q, r in zip(ratios, rows, strict=True)
            if category.startswith(f"{label(str(r['part']))}: {r['set']} (")
        ]
        assert median(some) == pytest.approx(middle.x[at])


def test_refusals() -> None:
    with pytest.raises(UsageError, match="there is no chart 'pie' of evaluations; there are breakdown,"):
        chart(training(), "pie")
    with pytest.raises(UsageError, match="no combination has an answer"):
        sweep_chart([])
    with pytest.raises(UsageError, match="training has no table 'Plans', which a pareto chart shows"):
        chart(training(), "pareto")
    with pytest.raises(UsageError, match="a chart shows at most 24 evaluations, not 26"):
        chart(training() * 13)
    with pytest.raises(UsageError, match="roofline has no parts for a breakdown chart"):
        chart([trnspec.evaluate("roofline", CAT, on="trainium2")], "breakdown")
    assert set(KINDS) == {"breakdown", "memory", "pareto", "serving", "roofline", "accuracy"}


def test_memory() -> None:
    some = training()
    (panel,) = chart(some, "memory").panels
    bars, capacity = panel.marks
    assert isinstance(bars, Bars)

    totals = [sum(values[i] for _, values in bars.segments) for i in range(2)]
    assert [e.number("memory") / 2**30 for e in some] == pytest.approx(totals, rel=1e-12)
    assert LimitLine(some[0].number("capacity") / 2**30, "capacity of a rank", vertical=True) == capacity


def test_inference_has_a_panel_for_each_time() -> None:
    answer = trnspec.evaluate("inference", CAT, model="llama-3.1-8b", on="trn2.48xlarge", tp=8)
    drawn = answer.plot()

    assert ["time per output token [ms]", "time to first token [ms]"] == [p.x.label for p in drawn.panels]
    assert answer.plot("memory").kind == "memory"


def test_pareto_without_prices() -> None:
    plans = read("plans")
    at = plans.tables[0].columns.index("run_cost")
    rows = tuple((*row[:at], None, *row[at + 1 :]) for row in plans.tables[0].rows)

    with pytest.raises(UsageError, match="no plan has a time and a price"):
        chart([evolve(plans, tables=(evolve(plans.tables[0], rows=rows),))])


def test_pareto_front_of_a_search() -> None:
    inputs = {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "seq": 4096, "global_batch": 64, "tp": (8, 16)}
    found = trnspec.evaluate("search", CAT, **inputs, pareto=("step_time", "memory"))
    table = next(t for t in found.tables if t.title.startswith("Pareto front"))
    drawn = chart([found])
    (panel,) = drawn.panels
    line, points = panel.marks
    assert isinstance(line, Line)
    assert isinstance(points, Points)
    assert "pareto" == drawn.kind

    at = [table.columns.index(name) for name in ("step_time", "memory")]
    expected = sorted((row[at[0]], row[at[1]] / 2**30) for row in table.rows)
    assert [x for x, _ in expected] == pytest.approx(list(points.x))
    assert [y for _, y in expected] == pytest.approx(list(points.y))
    assert list(points.y) == sorted(points.y, reverse=True)
    ends = [table.columns.index(f"step_time_{end}") for end in ("low", "high")]
    assert sorted(tuple(row[n] for n in ends) for row in table.rows) == sorted(points.x_ends)
    assert len(expected) > 1


def test_a_search_without_a_front_has_no_such_chart() -> None:
    inputs = {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "seq": 4096, "global_batch": 64, "tp": (8,), "pp": (1,)}
    with pytest.raises(UsageError, match="Pareto"):
        chart([trnspec.evaluate("search", CAT, **inputs)], "pareto")


def test_serving_of_inference_has_a_point_for_each_batch() -> None:
    inputs = {"model": "llama-3.1-8b", "prompt": 1024, "output": 128, "batch": 8}
    some = [trnspec.evaluate("inference", CAT, on="trn2.48xlarge", tp=tp, **inputs) for tp in (4, 8)]
    (panel,) = chart(some, "serving").panels
    drawn = [m for m in panel.marks if isinstance(m, Points)]
    assert ["tp 4", "tp 8"] == [m.name.partition(",")[0] for m in drawn]
    for points, one in zip(drawn, some, strict=True):
        rows = one.tables[0].records()
        assert points.y == tuple(r["throughput_per_chip"] for r in rows)
        assert [1000.0 * r["time_per_output_token"] for r in rows] == pytest.approx(list(points.x))
        assert points.labels == tuple(f"{r['batch']:,}" for r in rows)


INPUTS = {"model": "llama-3.1-8b", "on": "trn2.48xlarge*4", "seq": 8192, "global_batch": 256, "zero": 1}


@pytest.fixture(scope="module")
def swept() -> trnspec.Sweep:
    return trnspec.sweep("training", None, **INPUTS, tp=[8, 16, 12], pp=[1, 4], microbatch=[1, 2])


def test_heatmap_cells_are_best_over_other_axes(swept: trnspec.Sweep) -> None:
    drawn = heatmap(swept.rows, "mfu", x="tp", y="pp")
    (panel,) = drawn.panels
    (cells,) = panel.marks
    assert isinstance(cells, HeatMap)
    assert (("8", "16", "12"), ("1", "4")) == (panel.x.categories, panel.y.categories)
    assert not cells.low_is_better

    best: dict[tuple[int, int], float] = {}
    for given, result in swept.rows:
        if isinstance(result, Evaluation):
            cell = (given["pp"], given["tp"])
            best[cell] = max(best.get(cell, 0.0), result.number("mfu"))
    expected = [[best.get((pp, tp)) for tp in (8, 16, 12)] for pp in (1, 4)]
    assert [[None if v is None else pytest.approx(v) for v in row] for row in expected] == [
        list(row) for row in cells.values
    ]
    # 12 does not divide the ranks.
    assert cells.values[0][2] is None
    assert "rank" in cells.texts[0][2]
    figure(drawn)


@pytest.mark.parametrize("names", [{"answer": "speed"}, {"x": "seq"}])
def test_names_that_do_not_exist(swept: trnspec.Sweep, names) -> None:
    with pytest.raises((UsageError, trnspec.UnknownNameError)):
        heatmap(swept.rows, **names)


def test_timeline_has_every_event() -> None:
    trace = trnspec.trace("training", None, **INPUTS, tp=8, pp=4)
    drawn = timeline(trace)
    (panel,) = drawn.panels
    (spans,) = panel.marks
    assert isinstance(spans, Spans)
    assert ("stage 0", "stage 1", "stage 2", "stage 3") == panel.y.categories
    assert "time [s]" == panel.x.label

    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    drawn_events = sorted((row, name, end - start) for name, boxes in spans.groups for row, start, end in boxes)
    assert [(e[0], e[1]) for e in drawn_events] == sorted((e["pid"], e["name"]) for e in events)
    assert sum(e[2] for e in drawn_events) == pytest.approx(sum(e["dur"] for e in events) / 1e6)
    assert "pipeline bubble" in spans.idle
    figure(drawn)


@pytest.mark.parametrize(
    "trace",
    [{}, {"traceEvents": [], "otherData": {"title": "t", "step_time_s": 1.0}}, {"traceEvents": [{}], "otherData": {}}],
)
def test_refuses_invalid_traces(trace) -> None:
    with pytest.raises(UsageError):
        timeline(trace)


def test_of_times_the_lowest_is_the_best(swept: trnspec.Sweep) -> None:
    (panel,) = heatmap(swept.rows).panels
    (cells,) = panel.marks
    assert isinstance(cells, HeatMap)
    assert cells.low_is_better
    assert "step time [s]" == cells.label
    times = [r.number("step_time") for g, r in swept.rows if isinstance(r, Evaluation) and (g["tp"], g["pp"]) == (8, 1)]
    assert len(times) == 2
    assert pytest.approx(min(times)) == cells.values[0][0]


def test_a_sweep_over_one_input_has_no_heatmap() -> None:
    one = trnspec.sweep("roofline", None, on="trainium2", intensity=[100, 200])
    with pytest.raises(UsageError, match="two inputs; those that vary are intensity"):
        heatmap(one.rows)


if __name__ == "__main__":
    CHARTS.write_text("\n".join(drawn_lines()) + "\n", "utf-8")
