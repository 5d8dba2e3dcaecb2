"""trnspec.graph.formulas: formulas that name figures of documents."""

from fractions import Fraction

import pytest
from attrs import evolve

from tests.support.rules import document, graph
from tests.support.tables import tables
from trnspec.graph.formulas import UnusableOperandError, is_circular, value_of
from trnspec.graph.graph import Graph
from trnspec.quantities.formula import FormulaError
from trnspec.quantities.quantity import Interval
from trnspec.quantities.units import UNITS, Dimension, Unit
from trnspec.yaml import read_text

CHIP = document("Chip", "one", "spec: {dies: 2, memory: {capacity: 96 GiB, technology: HBM}}", "aliases: [uno]")
BOX = document(
    "Server",
    "box.4xlarge",
    "spec: {chips: {chip: one, count: 4}, network: {nics: 8, bandwidth: ~800 Gbps}, "
    "fabric: {link: wire, topology: {shape: torus, dimensions: [2, 3]}}}",
)
WIRE = document("Link", "wire", "spec: {connects: chips, bandwidth: {per_direction: 100 GB/s}}")
BAD = "kind: Chip\nspec: {memory: {capacity: 96 GiB, bandwidth: 3 TBB/s}}"
GRAPH = graph(CHIP, BOX, WIRE)
BROKEN = Graph({**GRAPH.nodes, "bad": evolve(GRAPH.named("one"), document=read_text(BAD))}, {"torn": "torn.yaml"})


GB, GIB = 10**9, 2**30


@pytest.mark.parametrize(
    ("formula", "low", "high"),
    [
        # Approximate to one unit of the last digit; a count is exact.
        ("spec.network.bandwidth", Fraction(799, 8) * GB, Fraction(801, 8) * GB),
        ("spec.network.bandwidth / 8 nics", Fraction(799, 64) * GB, Fraction(801, 64) * GB),
        # The former path of an attribute is read as the present one.
        ("spec.network.bandwidth / spec.efa.cards", Fraction(799, 64) * GB, Fraction(801, 64) * GB),
        # An item of a list has its place in it.
        ("spec.fabric.topology.dimensions.0 x 10 GB", 19 * GB, 21 * GB),
        ("spec.fabric.topology.dimensions.1 x 10 GB", Fraction(57, 2) * GB, Fraction(63, 2) * GB),
        # The figure of another document, by its name or an alias.
        ("one:spec.memory.capacity", Fraction(191, 2) * GIB, Fraction(193, 2) * GIB),
        ("uno:spec.memory.capacity", Fraction(191, 2) * GIB, Fraction(193, 2) * GIB),
        ("wire:spec.bandwidth.per_direction + 1 GB/s", 100 * GB, 102 * GB),
        # The name of a document may have a point.
        ("one:spec.dies x box.4xlarge:spec.chips.count", 8, 8),
    ],
)
def test_values(formula, low, high) -> None:
    assert Interval(Fraction(low), Fraction(high)) == value_of(formula, GRAPH.named("box.4xlarge"), GRAPH)


@pytest.mark.parametrize(("formula", "message"), tables(__file__)["errors"])
def test_errors(formula, message) -> None:
    with pytest.raises(FormulaError) as error:
        value_of(formula, BROKEN.named("box.4xlarge"), BROKEN)

    assert message == str(error.value)
    assert formula.startswith(("torn", "bad")) == isinstance(error.value, UnusableOperandError)

    # Nothing reports the errors of a document that is not checked.
    with pytest.raises(FormulaError) as error:
        value_of(formula, BROKEN.named("box.4xlarge"), BROKEN.focused_on({"box.4xlarge"}))
    assert message == str(error.value)
    assert not isinstance(error.value, UnusableOperandError)


def test_units_of_a_plugin() -> None:
    """A formula may have the units that its document may have; without the unit, the word names what is counted."""
    table = UNITS.with_units(Unit("ops", Dimension.OP_RATE, Fraction(1)))
    node = evolve(GRAPH.named("one"), units=table)

    assert Interval(Fraction("2.95"), Fraction("3.05")) == value_of("3.0 ops", node, GRAPH)
    assert Interval.point(3) == value_of("3.0 ops", GRAPH.named("one"), GRAPH)


LOOP = graph(
    document(
        "Link",
        "loop",
        "spec: {connects: chips, bandwidth: {both: {value: 2 GB/s, derived: 2 x spec.bandwidth.per_direction}, "
        "per_direction: {value: 1 GB/s, derived: 'box:spec.network.bandwidth / spec.lanes.count'}}, "
        "lanes: {count: {value: 8, derived: spec.lanes.count / 1}}}",
    ),
    document(
        "Server",
        "box",
        "spec: {chips: {chip: one, count: 1}, "
        "network: {bandwidth: {value: 8 GB/s, derived: 'loop:spec.bandwidth.both x 4'}, peak: 9 GB/s}}",
    ),
    CHIP,
)


@pytest.mark.parametrize(("formula", "path", "circular"), tables(__file__)["circular_formulas"])
def test_circular_formulas(formula, path, circular) -> None:
    assert circular == is_circular(formula, LOOP.named("loop"), ("spec", *path.split(".")), LOOP)
