"""The charts of the catalog: the history of a figure, and comparisons."""

from __future__ import annotations

from datetime import date

import pytest

import trnspec
from trnspec.catalog.charts import Compared, comparison, history, year
from trnspec.errors import UnknownNameError, UsageError
from trnspec.plots.chart import UNKNOWN, Points

CAT = trnspec.load()


def test_history_draws_every_statement() -> None:
    figure = CAT["trainium1"].figure("memory.bandwidth")
    drawn = history(CAT.graph, CAT["trainium1"].node, "memory.bandwidth")
    points = [m for m in drawn.panels[0].marks if isinstance(m, Points)]
    values = {(m.name, round(y, 6)) for m in points for y in m.y}

    expected = {("adopted", float(figure) / 1e9)}
    expected |= {(c.verdict, float(trnspec.Quantity.parse(c.says).value) / 1e9) for c in figure.conflicting}
    assert {(v, round(y, 6)) for v, y in expected} == values
    listed = [line for line in drawn.caption if line[0].isdigit()]
    assert len(figure.conflicting) + 1 == len(listed)
    assert all(any(c.source in line and c.as_of in line for line in listed) for c in figure.conflicting)


def test_history_of_a_count() -> None:
    drawn = history(CAT.graph, CAT["trainium2"].node, "cores.count")
    points = {m.name: m for m in drawn.panels[0].marks if isinstance(m, Points)}

    assert {8.0} == set(points["agrees"].y)
    assert {4.0} == set(points["other-scope"].y)


def test_history_of_non_numeric_values() -> None:
    node = CAT["trainium2"].node
    with pytest.raises(UsageError, match="no dated values of one dimension"):
        history(CAT.graph, node, "launched")
    with pytest.raises(UnknownNameError, match=r"did you mean .memory.bandwidth."):
        history(CAT.graph, node, "memory.bandwith")


def test_dates() -> None:
    def fraction(day: date) -> float:
        first = date(day.year, 1, 1)
        return day.year + (day - first).days / (date(day.year + 1, 1, 1) - first).days

    assert (fraction(date(2024, 12, 31)), UNKNOWN) == year("2024-12-31")
    assert (fraction(date(2024, 12, 1)), 2025.0) == year("2024-12")[1]
    assert (2024.5, (2024.0, 2025.0)) == year("2024")


def test_comparison_chart_draws_differing_columns() -> None:
    rows = [
        Compared("a", "1 | 2", ((1, (1.0, 1.0)), (2, (1.9, 2.1)))),
        Compared("b", "1 | 1", ((1, (1.0, 1.0)), (1, (1.0, 1.0)))),
        Compared("c", "1 | -", ((1, (1.0, 1.0)), None)),
    ]
    drawn = comparison(["x", "y"], 0, rows, ["s (2026)"])
    (points,) = [m for m in drawn.panels[0].marks if isinstance(m, Points)]

    assert ((2.0,), ((1.9, 2.1),)) == (points.x, points.x_ends)
    assert ("a  1 | 2",) == drawn.panels[0].y.categories
    with pytest.raises(UsageError, match="differ in no figure"):
        comparison(["x", "y"], 0, rows[1:], [])
