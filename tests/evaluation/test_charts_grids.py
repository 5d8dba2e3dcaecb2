"""Heatmaps of sweeps and timelines of steps: every value that they draw is in the sweep or the trace."""

from __future__ import annotations

import pytest

import trnspec
from trnspec.errors import UsageError
from trnspec.evaluation.charts import heatmap, timeline
from trnspec.evaluation.result import Evaluation
from trnspec.plots.chart import Cells, Spans
from trnspec.plots.draw import figure

INPUTS = {"model": "llama-3.1-8b", "on": "trn2.48xlarge*4", "seq": 8192, "global_batch": 256, "zero": 1}


@pytest.fixture(scope="module")
def swept() -> trnspec.Sweep:
    return trnspec.sweep("training", None, **INPUTS, tp=[8, 16, 12], pp=[1, 4], microbatch=[1, 2])


def test_heatmap_cells_are_best_over_other_axes(swept: trnspec.Sweep) -> None:
    drawn = heatmap(swept.rows, "mfu", x="tp", y="pp")
    (panel,) = drawn.panels
    (cells,) = panel.marks
    assert isinstance(cells, Cells)
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
    assert isinstance(cells, Cells)
    assert cells.low_is_better
    assert "step time [s]" == cells.label
    times = [r.number("step_time") for g, r in swept.rows if isinstance(r, Evaluation) and (g["tp"], g["pp"]) == (8, 1)]
    assert len(times) == 2
    assert pytest.approx(min(times)) == cells.values[0][0]


def test_a_sweep_over_one_input_has_no_heatmap() -> None:
    one = trnspec.sweep("roofline", None, on="trainium2", intensity=[100, 200])
    with pytest.raises(UsageError, match="two inputs"):
        heatmap(one.rows)
