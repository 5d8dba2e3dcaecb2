"""The longest paths have the same bits pass by pass and level by level."""

from __future__ import annotations

import numpy as np
import pytest

from trnspec.perf.training import execution as longest_path
from trnspec.perf.training.execution import execution


@pytest.mark.parametrize("schedule", ["zb1p", "interleaved", "v-half"])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 13, 40])
def test_rows_one_by_one_and_together(schedule, rows, monkeypatch) -> None:
    one = execution(schedule, 4, 8, 2 if schedule == "interleaved" else 1)
    draw = np.random.default_rng(1)
    parts = 3 * sum(map(len, one.chunks))
    durations, ends = draw.uniform(0.5, 2.0, (parts, rows)), draw.uniform(0.0, 1.0, (4, rows))
    for paths in (one.forward, one.backward):
        found = []
        for few in (1 << 30, 0):
            monkeypatch.setattr(longest_path, "_FEW", few)
            found.append(paths.longest(durations, ends, one.middle))
        assert [found[0].tobytes()] * 2 == [way.tobytes() for way in found]
