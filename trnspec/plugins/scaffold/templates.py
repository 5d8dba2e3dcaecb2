"""The files that ``trnspec plugin new --kind evaluator`` writes beside those that every plugin has."""

from __future__ import annotations

EVALUATOR = {
    "src/trnspec_MODULE/evaluate.py": '''\
"""What the plugin computes."""

from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.result import Answer, UsedFigure, Evaluation, RefusalError
from trnspec.graph.provenance import Stated


def sweep(catalog: Catalog, *, chip: str = "trainium2", times: int = 1) -> Evaluation:
    """The time to read all device memory of a chip: capacity over bandwidth.

    It bounds from below what a model that fills the memory needs for one token.

    Args:
        catalog: Where the figures are.
        chip: Which chip: trainium2.
        times: How often the memory is read.

    Raises:
        RefusalError: A figure is not known, and nothing is guessed.
    """
    if times < 1:
        raise RefusalError("no-times", f"the memory is read {times} times", place="times", hint="1 or more")
    capacity = known(catalog, chip, "memory.capacity")
    bandwidth = known(catalog, chip, "memory.bandwidth")
    one = float(capacity) / float(bandwidth)
    time = (capacity.amount / bandwidth.amount).interval
    return Evaluation(
        evaluator="NAME-sweep",
        title=f"all memory of {chip}, {times} times",
        inputs={"chip": chip, "times": times},
        answers=(
            Answer(
                "time",
                one * times,
                "s",
                float(time.low) * times,
                None if time.high is None else float(time.high) * times,
                "what the digits of both figures leave open",
            ),
        ),
        bottleneck="The bandwidth of the device memory.",
        figures_used=tuple(used(figure) for figure in (capacity, bandwidth)),
    )


def known(catalog: Catalog, chip: str, at: str) -> Stated:
    """A figure of a chip; ``RefusalError`` where the catalog does not have it."""
    figure = catalog.chips[chip].figures.get(at)
    if figure is None:
        raise RefusalError(
            "unknown-figure",
            f"the catalog has no {at} of {chip}",
            place=f"{chip} spec.{at}",
            hint="an overlay can give it",
        )
    return figure


def used(figure: Stated) -> UsedFigure:
    """What the answer says of a figure that it rests on."""
    conflicting = tuple(f"{r.says}, {r.verdict} ({r.source}, {r.as_of})" for r in figure.conflicting)
    source = figure.source_name or f"derived: {figure.derived}"
    return UsedFigure(figure.of, figure.at, figure.value.text, source, figure.as_of, conflicting)
''',
    "tests/test_evaluate.py": '''\
"""The evaluator computes what its formula says, and keeps what every evaluator must keep."""

import pytest
import trnspec
from trnspec.testing import EvaluatorConformance

from trnspec_MODULE import plugin as under_test
from trnspec_MODULE.evaluate import sweep


class TestSweep(EvaluatorConformance):
    plugin = under_test
    name = "NAME-sweep"
    good = ({}, {"chip": "trainium1", "times": 3})
    bad = (({"times": 0}, "no-times"), ({"chip": "nothing"}, "misuse"))


def test_formula() -> None:
    found = sweep(trnspec.load(), times=2)

    # 96 GiB at 2.9 TB/s, twice.
    assert found["time"] == pytest.approx(2 * 96 * 2**30 / 2.9e12)
''',
}
"""Texts by path, with the words that :mod:`trnspec.plugins.scaffold.writer` fills in."""
