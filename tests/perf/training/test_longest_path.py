"""The longest paths have the same bits by themselves, with numpy and in machine code."""

from __future__ import annotations

import numpy as np
import pytest

from trnspec.perf.training import longest_path
from trnspec.perf.training.execution import execution


@pytest.mark.parametrize("schedule", ["zb1p", "interleaved", "v-half"])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 13, 40])
def test_three_ways(schedule, rows, monkeypatch) -> None:
    one = execution(schedule, 4, 8, 2 if schedule == "interleaved" else 1)
    draw = np.random.default_rng(1)
    parts = 3 * sum(map(len, one.chunks))
    durations, ends = draw.uniform(0.5, 2.0, (parts, rows)), draw.uniform(0.0, 1.0, (4, rows))
    for paths in (one.forward, one.backward):
        found = []
        for few, compiled in ((1 << 30, 1 << 60), (0, 1 << 60), (0, 0)):
            monkeypatch.setattr(longest_path, "_FEW", few)
            monkeypatch.setattr(longest_path._FUNCTION, "least", compiled)
            found.append(paths.longest(durations, ends, one.middle))
        assert [found[0].tobytes()] * 3 == [way.tobytes() for way in found]
