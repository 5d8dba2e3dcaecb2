"""Figures by the text that names them, and catalogs in which one of them is scaled."""

import math

import pytest

import trnspec
from tests.support.tables import tables
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluation.figure_path import figure_path, figures_of
from trnspec.evaluation.result import Evaluation
from trnspec.evidence import UsedFigure

TABLES = tables(__file__)

CATALOG = trnspec.load()


@pytest.mark.parametrize(("text", "of", "at"), TABLES["paths"])
def test_paths(text, of, at) -> None:
    """Names of documents have dots too; an alias, and ``spec.`` before the path, are accepted."""
    path = figure_path(CATALOG.graph, text)

    assert (of, at) == (path.node.name, path.at)
    assert (1.0 if at.startswith("achieved") else math.inf) == path.most


def test_figures_that_an_evaluation_used() -> None:
    """Each once; not those of documents that the catalog lacks, and no counts."""
    used = [("gone", "memory.bandwidth"), ("trainium2", "memory.bandwidth"), ("trn2.48xlarge", "chips.count")]
    figures = tuple(UsedFigure(of, at, "", "x") for of, at in (*used, *used))
    found = figures_of(Evaluation(evaluator="x", title="x", answers=(), figures_used=figures), CATALOG.graph)

    assert ["trainium2.memory.bandwidth"] == [str(path) for path in found]


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("trn9.48xlarge.network.bandwidth", UnknownNameError, "'trn2.48xlarge'"),
        ("nothing", UnknownNameError, "NAME.PATH"),
        ("trn2.48xlarge.netwrk.bandwidth", UnknownNameError, "'network.bandwidth'"),
        ("trainium2.peak.dense.bf17", UnknownNameError, "'peak.dense.bf16'"),
        ("trn2.48xlarge.memory.bandwidth", UsageError, "write trainium2.memory.bandwidth"),
        ("trn2-ultraserver.peak.dense.bf16", UsageError, "write trainium2.peak.dense.bf16"),
        ("trn2.48xlarge.chip.memory.bandwidth", UsageError, "write trainium2.memory.bandwidth"),
        ("trn2.48xlarge.network", UsageError, "trn2.48xlarge.network.bandwidth"),
        ("trn2.48xlarge.fabric.bandwidth", UsageError, "trn2.48xlarge.fabric.bandwidth.per_direction"),
        ("trn2.48xlarge", UsageError, "a figure of it"),
        ("trn2.48xlarge.network.technology", UsageError, "is not a figure"),
    ],
)
def test_errors_name_the_figure_to_write(text, error, part) -> None:
    with pytest.raises(error) as caught:
        figure_path(CATALOG.graph, text)

    assert part in str(caught.value)
