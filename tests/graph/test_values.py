"""trnspec.graph.values: what a document has at a path, and comparisons that a bound decides."""

import operator
from fractions import Fraction

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import document, graph
from tests.support.small_catalog import CORE, FULL, GRAPH, OLD, PAGE, WIRE
from tests.support.tables import tables
from trnspec.graph.paths import place
from trnspec.graph.totals import BoundedAmount
from trnspec.graph.values import compare
from trnspec.model.parts import CountRange
from trnspec.model.ref import Ref
from trnspec.quantities.amount import Amount
from trnspec.quantities.quantity import Interval
from trnspec.quantities.units import UNITS, Dimension

TABLES = tables(__file__)

POOR = document("Chip", "poor", "spec: {memory: {capacity: 100 GiB}, features: []}", "source: page")
SMALL = document("Server", "small", "spec: {chips: {chip: full, count: 2}, host: {memory: 200 GiB}}", "source: page")
MIXED = document("UltraServer", "mixed", "spec: {servers: {server: small, count: 4}}", "source: page")
BIG = document("Cluster", "big", "spec: {servers: [small], chips: 'over 10,001'}")
AT_MOST = document("Cluster", "most", "spec: {servers: [small], chips: 'up to 1,001'}")
EXACT = document("Cluster", "exact", "spec: {servers: [small], chips: '24,000'}")
OF_POOR = document("Server", "of-poor", "spec: {chips: {chip: poor, count: 3}}")
BOUNDS = graph(PAGE, OLD, CORE, FULL, POOR, WIRE, SMALL, MIXED, BIG, AT_MOST, EXACT, OF_POOR)


def at(made, name: str, path: str):
    node = made.named(name)
    field = place(made, type(node.spec), path)
    assert field is not None, path
    return field, field.read(node)


@pytest.mark.parametrize(("name", "path", "text", "value"), TABLES["words_and_counts"])
def test_words_and_counts(name, path, text, value) -> None:
    _, read = at(GRAPH, name, path)

    found = (None, None) if read is None else (read.text, read.value)
    assert (text, value, type(value)) == (*found, type(found[1]))


@pytest.mark.parametrize(("name", "path", "text", "figure", "part"), TABLES["figures"])
def test_figures(name, path, text, figure, part) -> None:
    """With the printed figure that the value is computed from, and the document that states it."""
    _, read = at(GRAPH, name, path)

    assert read is not None
    assert read.figure is not None
    assert read.part is not None
    assert (text, figure, part) == (read.text, read.figure.value.text, read.part.name)
    assert not read.is_bound


@pytest.mark.parametrize(
    ("name", "path", "text", "value", "is_bound"),
    [
        # Whole servers of 2 chips, of 8 cores each.
        ("big", "chips.count", ">= 10,002", CountRange(10_002), True),
        ("most", "chips.count", "<= 1,000", CountRange(0, 1_000), True),
        ("big", "servers.count", ">= 5,001", CountRange(5_001), True),
        ("most", "servers.count", "<= 500", CountRange(0, 500), True),
        ("big", "cores.count", ">= 80,016", CountRange(80_016), True),
        ("exact", "servers.count", "12,000", 12_000, False),
        ("exact", "cores.count", "192,000", 192_000, False),
        ("exact", "dies", "48,000", 48_000, False),
    ],
)
def test_count_bounds(name, path, text, value, is_bound) -> None:
    _, read = at(BOUNDS, name, path)

    assert read is not None
    assert (text, value, is_bound) == (read.text, read.value, read.is_bound)


@pytest.mark.parametrize(
    ("name", "path", "text", "value", "shown"),
    [
        ("big", "host.memory", ">= 1,000,200 GiB", 5_001 * 200 * 2**30, ">= 1,000,200 GiB"),
        ("most", "host.memory", "<= 100,000 GiB", 500 * 200 * 2**30, "<= 100,000 GiB"),
        ("most", "peak.dense.bf16", "<= 600 PFLOPS", 1_000 * 600 * 10**12, "<= 600 PFLOPS"),
    ],
)
def test_total_bounds(name, path, text, value, shown) -> None:
    _, read = at(BOUNDS, name, path)

    assert read is not None
    assert isinstance(read.value, BoundedAmount)
    assert (text, value, shown, True) == (read.text, read.value.value, str(read.value), read.is_bound)


def test_an_alias_of_a_source_is_its_name_and_an_equal_title_is_kept() -> None:
    cites = POOR.replace("title: T", "title: leaf").replace("source: page", "source: leaf")
    made = graph(PAGE.replace("name: page", "name: page, aliases: [leaf]"), cites)

    assert ["page", "leaf"] == [(read := at(made, "poor", path)[1]) and read.text for path in ("source", "title")]


def test_parts_that_differ() -> None:
    """A value of the parts is known where it is the same for all; a group, where all that have it know one."""
    made = GRAPH.replace("tin", evolve(GRAPH.named("tin").spec, host=GRAPH.named("box").spec.host))
    hosts = [at(made, name, "host.memory")[1] for name in ("box", "tin")]

    assert ["200 GiB", "200 GiB"] == [read and read.text for read in hosts]
    assert at(GRAPH, "rack", "chip.dies")[1] is not None
    # The chip of a server, and what only the other chip has.
    assert [None, "known", "known"] == [
        (read := at(BOUNDS, "of-poor", path)[1]) and read.text for path in ("peak", "memory", "chip.memory")
    ]


@pytest.mark.parametrize(("name", "path", "holds", "total", "words", "target"), TABLES["fields_of_a_path"])
def test_fields_of_a_path(name, path, holds, total, words, target) -> None:
    field, _ = at(GRAPH, name, path)

    assert (path, holds, total, words) == (
        field.path, field.holds and field.holds.name, field.total, list(field.words)
    )  # fmt: skip
    assert target == (None if field.target is None else field.target.__name__)


@pytest.mark.parametrize("path", ["chips.chip.dies", "chips.chip.memory.capacity", "chips.chip.name"])
@pytest.mark.parametrize("name", ["nothing", "wire"])
def test_a_reference_to_nothing_or_to_another_kind(path, name) -> None:
    box = GRAPH.named("box")
    made = GRAPH.replace("box", evolve(box.spec, chips=evolve(box.spec.chips, chip=Ref(name))))

    assert at(made, "box", path)[1] is None


SIGNS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "~": operator.eq,
    "!=": operator.ne,
}
ranges = st.one_of(
    st.integers(0, 6).map(CountRange),
    st.tuples(st.integers(0, 6), st.integers(1, 6)).map(lambda ends: CountRange(ends[0], ends[0] + ends[1])),
)
sides = st.one_of(st.integers(0, 6), ranges)


def values(side) -> range:
    """The counts that a side may be; one without an upper end goes far beyond what is compared."""
    if isinstance(side, int):
        return range(side, side + 1)
    return range(side.low, (40 if side.high is None else side.high) + 1)


@given(left=sides, right=sides, sign=st.sampled_from(sorted(SIGNS)))
def test_bounds_decide_where_every_value_gives_one_answer(left, right, sign) -> None:
    if isinstance(left, int) and isinstance(right, int):
        return
    answers = {SIGNS[sign](a, b) for a in values(left) for b in values(right)}

    assert (answers.pop() if len(answers) == 1 else None) is compare(sign, left, right)


BYTES = UNITS.unit("B")


def bounded(value: int, *, upper: bool) -> BoundedAmount:
    """At most, or at least, a number of bytes; as printed, up to a half more or less."""
    half = Fraction(1, 2)
    interval = Interval(Fraction(0), value + half) if upper else Interval(value - half, None)
    return BoundedAmount(Fraction(value), Dimension.INFORMATION, interval, BYTES, 4)


@pytest.mark.parametrize(("sign", "upper", "other", "expected"), TABLES["bounds_of_figures_are_compared_by_value"])
def test_bounds_of_figures_are_compared_by_value(sign, upper, other, expected) -> None:
    """The rounding of a figure does not widen the bound; neither does that of the other side."""
    exact = Amount(Fraction(other), Dimension.INFORMATION, Interval(Fraction(0), Fraction(100)), BYTES, 4)

    assert expected is compare(sign, bounded(10, upper=upper), exact)
    mirrored = sign.translate(str.maketrans("<>", "><"))
    assert expected is compare(mirrored, exact, bounded(10, upper=upper))


@pytest.mark.parametrize(("memory", "known"), [("200 GiB", "200 GiB"), ("300 GiB", None)])
def test_values_of_parts_are_known_where_they_are_equal(memory, known) -> None:
    other = document("Server", "other", f"spec: {{chips: {{chip: full, count: 4}}, host: {{memory: {memory}}}}}")
    both = document("Cluster", "both", "spec: {servers: [small, other], chips: '10'}")
    _, read = at(graph(PAGE, OLD, CORE, FULL, WIRE, SMALL, other, both), "both", "server.host.memory")

    assert known == (None if read is None else read.text)
