"""Charts without matplotlib."""

import sys

import pytest

import trnspec.plots
from trnspec.errors import UsageError
from trnspec.plots.chart import Chart, ChartAxis, LimitLine, Panel


def test_without_the_extra(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "trnspec.plots.draw", raising=False)
    monkeypatch.delattr(trnspec.plots, "draw", raising=False)
    for name in [n for n in sys.modules if n.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    chart = Chart("history", "nothing", (Panel(ChartAxis(), ChartAxis(), (LimitLine(1.0),)),))

    with pytest.raises(UsageError, match=r"pip install 'trnspec\[plot\]'"):
        chart.rendered()
