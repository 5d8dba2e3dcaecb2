"""The interval of a derived figure is that of its inputs."""

from fractions import Fraction

import pytest

import trnspec
from trnspec.graph.provenance import figures
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


def test_figures_are_compared_by_value() -> None:
    assert Figure(value=parse("2 TB/s")) > "1,999 GB/s"


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


def test_every_derived_figure_of_the_catalog() -> None:
    """Contains its value, and no end of it is further inside than an end of the formula."""
    assert len(DERIVED) > 20
    for name, figure in DERIVED:
        inputs, interval = evaluate(figure.derived, figure.value.table), figure.interval
        assert interval.low <= figure.value.value <= interval.high, (name, figure.at)
        assert interval.low <= inputs.low, (name, figure.at)
        assert interval.high >= inputs.high, (name, figure.at)
