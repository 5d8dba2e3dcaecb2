"""The charts of the catalog: the history of a figure, and comparisons."""

import pytest

import trnspec
from trnspec.catalog.charts import _numbers, history
from trnspec.errors import UnknownNameError, UsageError
from trnspec.plots.chart import Points

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


def test_a_value_without_a_date_is_listed() -> None:
    derived = history(CAT.graph, CAT["neuroncore-v2"].node, "psum.per_bank")
    assert derived.caption[-1] == "Not drawn: derived (no date): 2 KiB, derived."


def test_history_of_non_numeric_values() -> None:
    node = CAT["trainium2"].node
    with pytest.raises(UsageError, match="no dated values of one dimension"):
        history(CAT.graph, node, "launched")
    with pytest.raises(UnknownNameError, match=r"did you mean .memory.bandwidth."):
        history(CAT.graph, node, "memory.bandwith")


@pytest.mark.parametrize("text", ["1", "1-2", "1-3, 7", "1, 3-5, 7-8"])
def test_numbers_of_a_point(text) -> None:
    runs = [[int(end) for end in run.split("-")] for run in text.split(", ")]
    assert text == _numbers([n for run in runs for n in range(run[0], run[-1] + 1)])
