"""Numbers of many estimators: those with few values have other axes, and every estimator keeps its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from engine_samples import SYSTEMS, estimator

from trnspec.perf.sweep.estimator_columns import Figures

COUNT = 2100
AT = np.arange(COUNT)
RARE = AT == 2001
"""One that a sample of the estimators misses."""

NAMES = ("weights", "scores", "outer", "index", "small", "absorbed", "joined", "shared", "routed", "moe", "hidden")


@pytest.mark.parametrize(
    ("columns", "axes"),
    [
        # 2 x 4 x 8 combinations are on one axis; with 9 more values, or 65 of one number, they would be too many.
        (
            {"weights": AT % 2, "scores": AT // 2 % 4, "outer": AT // 8 % 8, "index": AT // 64 % 9, "small": AT % 65},
            [({"weights", "scores", "outer"}, 64), ({"index"}, 9)],
        ),
        ({"weights": np.where(RARE, 5, AT % 2), "scores": np.where(RARE, -1, AT % 64)}, [({"weights"}, 3)]),
        # As far as numpy has axes for them.
        ({name: AT // 2 % (i + 50) for i, name in enumerate(NAMES)}, [({n}, i + 50) for i, n in enumerate(NAMES[:10])]),
    ],
    ids=["combinations", "rare", "many"],
)  # fmt: skip
def test_numbers_with_few_values_share_axes(columns, axes) -> None:
    e = estimator("llama-8b", SYSTEMS[0])
    found = Figures.computed([
        evolve(e, model=evolve(e.model, **dict(zip(columns, values, strict=True))))
        for values in zip(*(c.astype(float).tolist() for c in columns.values()), strict=True)
    ])  # fmt: skip
    members: dict[str, set[str]] = {}
    for name, column in columns.items():
        axis = found.axes.get(f"model {name}", "which")
        number = found.numbers["model"][name]
        assert number[AT if axis == "which" else found.positions[axis]].tolist() == column.tolist()
        members.setdefault(axis, set()).add(name)

    members.pop("which", None)
    assert [(names, found.sizes[axis]) for axis, names in members.items()] == axes
