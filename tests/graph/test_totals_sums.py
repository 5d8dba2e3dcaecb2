"""trnspec.graph.totals.sums: every total of a system, as it is shown."""

from fractions import Fraction

import pytest

from tests.support.rules import document, graph
from tests.support.small_catalog import CORE, FULL, GRAPH, OLD, PAGE, WIRE
from tests.support.tables import tables
from trnspec.graph.totals import Sum, summed, sums, terms, total
from trnspec.model.parts import CountRange
from trnspec.quantities.quantity import Qualifier

TABLES = tables(__file__)

SMALL = document("Server", "small", "spec: {chips: {chip: full, count: 2}, host: {memory: 200 GiB}}", "source: page")
MORE = document("Cluster", "more", "spec: {servers: [small], chips: 'over 10,001'}")
MOST = document("Cluster", "most", "spec: {servers: [small], chips: 'up to 1,001'}")
EXACT = document("Cluster", "exact", "spec: {servers: [small], chips: '24,000'}")
SYSTEMS = graph(PAGE, OLD, CORE, FULL, WIRE, SMALL, MORE, MOST, EXACT)
PLACES = {"box": GRAPH, "rack": GRAPH, "tin": GRAPH, "full": GRAPH, "core": GRAPH, "page": GRAPH}


def found(name: str) -> tuple[Sum, ...]:
    made = PLACES.get(name, SYSTEMS)
    return sums(made, made.named(name))


@pytest.mark.parametrize(("name", "expected"), TABLES["sums"])  # fmt: skip
def test_sums(name, expected) -> None:
    """Numbers of parts first, then figures and counts, those of the innermost parts first."""
    assert expected == [[s.at, s.path, s.text, s.parts, s.interval_text] for s in found(name)]


@pytest.mark.parametrize("name", ["box", "rack", "more", "most", "exact"])
def test_amounts_and_bounds(name) -> None:
    """An amount to calculate with, where the number of parts is exact; else the bounds alone."""
    exact = name not in ("more", "most")
    seen = found(name)

    assert seen
    for s in seen:
        value, low, high = s.bounds
        assert exact == (s.amount is not None)
        if exact:
            assert value == (s.amount if isinstance(s.amount, int) else s.amount.value)
            assert low <= value <= high
        elif name == "more":
            assert (True, None) == (Fraction(0) < low <= value, high)
        else:
            assert (0, True) == (low, value <= high)


@pytest.mark.parametrize(("number", "part", "qualifier"), TABLES["qualifiers"])
def test_qualifiers(number, part, qualifier) -> None:
    chip = document("Chip", "one", f"spec: {{memory: {{capacity: 1 GiB, bandwidth: '{part}'}}}}")
    made = graph(chip, document("Cluster", "hall", f"spec: {{chip: one, chips: '{number}'}}"))
    whole = total(made, made.named("hall"), ("spec", "memory", "bandwidth"))

    if qualifier is None:
        assert whole is None
    else:
        assert whole is not None
        space = " " if qualifier in ("up to", "<=", ">=") else ""
        assert (Qualifier(qualifier), f"{qualifier}{space}8 TB/s") == (whole.qualifier, str(whole))
        assert (number == "4") == whole.is_exact_count
        assert 8e12 == float(whole)


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("exact", "dies", 48_000),
        ("exact", "cores.count", 192_000),
        ("more", "dies", CountRange(20_004)),
        ("most", "dies", CountRange(0, 2_000)),
        ("full", "dies", 2),
        # A figure, a word, a path of no part.
        ("exact", "memory.technology", None),
        ("exact", "nothing", None),
        ("page", "dies", None),
    ],
)
def test_counts(name, path, expected) -> None:
    node = SYSTEMS.named(name)

    assert expected == summed(terms(SYSTEMS, node, ("spec", *path.split("."))))


def test_terms() -> None:
    """A part with its count; what does not add up has none, although a chip alone has it."""
    node = SYSTEMS.named("exact")

    assert [("full", 24_000, "24,000 x 8 core")] == [
        (t.part.name, t.count, str(t)) for t in terms(SYSTEMS, node, ("spec", "cores", "count")) or ()
    ]
    assert terms(SYSTEMS, node, ("spec", "launched")) is None
    assert terms(SYSTEMS, SYSTEMS.named("full"), ("spec", "launched")) is None
    assert terms(SYSTEMS, SYSTEMS.named("full"), ("spec", "links", "bandwidth", "both")) is not None
