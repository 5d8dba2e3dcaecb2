"""The interval of a derived figure is that of its inputs."""

from __future__ import annotations

from fractions import Fraction

import pytest

import trnspec
from trnspec.catalog.tables import tables
from trnspec.graph.provenance import figures
from trnspec.graph.totals import total
from trnspec.model.figure import Figure
from trnspec.quantities.formula import evaluate
from trnspec.quantities.quantity import Interval, Qualifier, parse

CATALOG = trnspec.load()
DERIVED = [
    (name, figure)
    for name, node in CATALOG.graph.nodes.items()
    for figure in figures(CATALOG.graph, node).values()
    if figure.derived is not None and figure.value.qualifier is Qualifier.EXACT
]


def test_it_is_wider_than_the_digits_of_the_result() -> None:
    """Five digits of the product of a clock rate with two."""
    figure = Figure(value=parse("2,516.6 TFLOPS"), derived="8 x 128 x 128 x 2 x 4 x 2.4 GHz")

    clocks = Interval(Fraction(2_350_000_000), Fraction(2_450_000_000))
    assert figure.interval == clocks.scaled(Fraction(8 * 128 * 128 * 2 * 4))
    assert figure.amount.interval == figure.interval
    assert figure.amount.value == parse("2,516.6 TFLOPS").value


def test_it_is_narrower_than_the_digits_of_the_result() -> None:
    figure = Figure(value=parse("36 GiB"), derived="144 GiB / 4 stacks")

    gib = 1 << 30
    assert figure.interval == Interval(Fraction(287 * gib, 8), Fraction(289 * gib, 8))


def test_it_contains_the_value_where_inputs_are_exact() -> None:
    figure = Figure(value=parse("157.3 TFLOPS"), derived="157,286 x 1,000,000,000")

    assert figure.interval == Interval(Fraction(157_286 * 10**9), Fraction(157_300 * 10**9))


@pytest.mark.parametrize("formula", ["twice the other", "3 TFLOPS / 4"])
def test_a_formula_that_does_not_give_the_value_changes_nothing(formula) -> None:
    """Rules report it."""
    figure = Figure(value=parse("157.3 TFLOPS"), derived=formula)

    assert figure.interval == figure.value.interval


@pytest.mark.parametrize("value", [">= 50 GiB", "~50 GiB"])
def test_a_bound_stays_one(value) -> None:
    figure = Figure(value=parse(value), derived="50 GiB")

    assert figure.interval == figure.value.interval


def test_a_printed_figure_has_that_of_its_digits() -> None:
    figure = Figure(value=parse("629 TFLOPS"))

    assert figure.interval == figure.value.interval


def test_every_derived_figure_of_the_catalog() -> None:
    """Contains its value, and no end of it is further inside than an end of the formula."""
    assert len(DERIVED) > 20
    for name, figure in DERIVED:
        inputs, interval = evaluate(figure.derived, figure.value.table), figure.interval
        assert interval.low <= figure.value.value <= interval.high, (name, figure.at)
        assert interval.low <= inputs.low, (name, figure.at)
        assert interval.high >= inputs.high, (name, figure.at)


def test_a_total_of_derived_figures_follows_from_their_inputs() -> None:
    graph = CATALOG.graph
    server, chip = graph.named("trn3-gen2-server"), graph.named("trainium3")
    path = ("spec", "tensor_peak", "dense", "bf16")
    (whole,) = [total(graph, server, path)]
    figure = figures(graph, chip)["tensor_peak.dense.bf16"]

    assert figure.derived is not None
    (term,) = whole.terms
    assert whole.interval == figure.interval.scaled(Fraction(term.count))


def test_tables_and_answers_have_the_interval_of_the_formula() -> None:
    """The sparse roof of a chip is a derived figure; its ends are those of the clock rate."""
    figure = figures(CATALOG.graph, CATALOG.graph.named("trainium3"))["tensor_peak.sparse.bf16"]
    ends = float(figure.interval.low), float(figure.interval.high)

    table = tables(CATALOG.graph)["figures"]
    columns = [c.name for c in table.columns]
    (row,) = [r for r in table.rows if (r[0], r[2]) == (figure.of, figure.at)]
    assert (row[columns.index("low")], row[columns.index("high")]) == ends
    assert ends == (
        0.5 * (2.35 + 2.35) * 8 * 128 * 128 * 2 * 4 * 1e9,
        0.5 * (2.45 + 2.45) * 8 * 128 * 128 * 2 * 4 * 1e9,
    )
