"""trnspec.catalog.versions.as_of: what was published by a date."""

import functools

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.rules import document, graph, source
from trnspec.api import load
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.versions.as_of import _may_be_set, _typed, as_of
from trnspec.errors import UnknownNameError, UsageError
from trnspec.graph.graph import references
from trnspec.loading.structure import plain
from trnspec.model.annotations import NAME_PATTERN
from trnspec.model.reflection import ChoiceShape, FlagShape, NumberShape, TextShape, spread
from trnspec.model.source import Source, end
from trnspec.quantities.units import UNITS

DATES = st.builds(
    lambda y, m, d, n: f"{y}-{m:02}-{d:02}"[:n],
    st.integers(2022, 2027),
    st.integers(1, 12),
    st.integers(1, 28),
    st.sampled_from([4, 7, 10]),
)


@functools.cache
def whole() -> Catalog:
    return load()


def link(claims: str, spec: str = "{connects: chips, latency: {value: 9 us, source: new}}", metadata: str = "") -> str:
    return document("Link", "wire", f"spec: {spec}\nclaims: [{claims}]", metadata)


PAGES = (
    source("old", "2022-05-01"),
    source("mid", "2023-04"),
    source("new", "2024-06-02"),
    source("late", "2024-12", dating="not-before"),
    source("system", "2023-04", "vendor-system-page"),
    source("blog", "2023-09-09", "third-party"),
)


def claim(source: str, says: str, verdict: str = "", at: str = "spec.latency") -> str:
    judged = f", verdict: {verdict}, reason: because" if verdict else ""
    return f'{{at: "{at}", says: {says}, source: {source}, where: p{judged}}}'


def at(date: str, *claims: str, **more: str) -> tuple[str, str] | None:
    """The latency at a date and its source."""
    found = graph(*PAGES, link(", ".join(claims), **more))
    made, _ = as_of(found, date)
    if "wire" not in made:
        return None
    figure = Catalog(made)["wire"].figures.get("latency")
    return None if figure is None else (figure.value.text, figure.source_name)


@pytest.mark.parametrize(
    ("date", "last"), [("2023", "2023-12-31"), ("2023-04", "2023-04-31"), ("2023-04-15", "2023-04-15")]
)
def test_end(date, last) -> None:
    assert last == end(date)


@pytest.mark.parametrize(
    ("date", "known"), [("2023-03", False), ("2023-04-20", False), ("2023-04", True), ("2023", True), ("2022", False)]
)
def test_a_month_counts_from_its_end(date, known) -> None:
    made, _ = as_of(graph(*PAGES), date)

    assert known is ("mid" in made)


@pytest.mark.parametrize(
    "date", ["", "2023-13", "2023-3", "march", "2023-03-32", "2023-03\n", "20230301", "\uff12\uff10\uff12\uff13"]
)
def test_refuses_invalid_date(date) -> None:
    with pytest.raises(UsageError, match="is not a date"):
        whole().then(date)


def test_the_newest_claim_before() -> None:
    claims = (claim("old", "7 us", "superseded"), claim("mid", "8 us", "superseded"))

    assert [None, ("7 us", "old"), ("8 us", "mid"), ("9 us", "new")] == [
        at(date, *claims) for date in ("2022-04", "2023-03", "2023-04", "2024-06")
    ]


def test_a_third_party_decides_only_where_the_publisher_said_nothing() -> None:
    assert ("9 us", "mid") == at("2023-10", claim("mid", "9 us"), claim("blog", "7 us", "superseded"))
    assert ("7 us", "blog") == at("2023-10", claim("blog", "7 us", "superseded"))


def test_as_of_a_withdrawn_figure() -> None:
    """It is adopted again until the page appeared that the document is of."""
    more = {"spec": "{connects: chips}", "metadata": "source: new"}

    assert ("7 us", "mid") == at("2024-05", claim("mid", "7 us", "superseded"), **more)
    assert None is at("2024-06", claim("mid", "7 us", "superseded"), **more)
    assert None is at("2024-05", claim("mid", "7 us"), **more)


def chips(capacity: str) -> str:
    spec = f"spec: {{peak: {{}}, memory: {{capacity: {capacity}}}, launched: 2022-10, links: {{link: wire, ports: 2}}}}"
    return document("Chip", "part", f"{spec}\nclaims: [{claim('old', '2', at='spec.links.ports')}]", "source: new")


SERVER = document("Server", "box", "spec: {chips: {chip: part, count: 2}}", "source: old")


def test_missing_required_figure_omits_document() -> None:
    _, unknown = as_of(graph(*PAGES, chips("1 GiB"), link(claim("old", "9 us")), SERVER), "2023-05")

    assert {
        "part": "spec.memory.capacity was first published by new, of 2024-06-02",
        "box": "spec.chips.chip is part, which is unknown at that date",
    } == unknown


def test_unknown_document_error() -> None:
    catalog = Catalog(graph(*PAGES, chips("1 GiB"), link(claim("old", "9 us")))).then("2023-05")
    for ask in (lambda: catalog["part"], lambda: catalog.chips["part"]):
        with pytest.raises(UnknownNameError, match=r"part was not known by 2023-05: spec\.memory\.capacity was first"):
            ask()


def test_future_date_gives_whole_catalog() -> None:
    """Nothing is lost and nothing is swapped for a newer claim."""
    made = whole().then("2100")

    assert {} == made.unknown
    assert {n.name: plain(n) for n in whole().graph} == {n.name: plain(n) for n in made.graph}


@settings(max_examples=5)
@given(DATES)
def test_excludes_later_sources(date) -> None:
    """Every source is published by then, every reference leads somewhere, every figure has a source."""
    made = whole().then(date)

    assert all(end(s.spec.as_of) <= end(date) for s in made.graph.of(Source))
    for node in made.graph:
        assert all(made.graph.find(ref) is not None for _, _, ref in references(node))
    assert all(f.source_name or f.derived for each in made for f in each.figures.values())


@settings(max_examples=5)
@given(DATES, DATES)
def test_later_date_keeps_earlier_documents(one, other) -> None:
    """A later date has every document of an earlier one; what is missing is said."""
    early, late = (whole().then(d) for d in sorted((one, other), key=end))

    assert set(early.graph.nodes) <= set(late.graph.nodes)
    hardware = {n.name for n in whole().graph if not isinstance(n.spec, Source)}
    assert hardware == set(early.unknown) | (hardware & set(early.graph.nodes))


def test_unreadable_claim_is_ignored() -> None:
    wire = document("Link", "wire", "spec: {connects: chips, note: N}\nclaims: [" + claim("mid", "fast") + "]")

    assert None is as_of(graph(*PAGES, wire), "2023-05")[0].nodes["wire"].spec.latency


COUNT = NumberShape(whole=True, least=3)


@pytest.mark.parametrize(
    ("says", "shape", "value"),
    [
        ("70.6 M", evolve(COUNT, rounded=True), 70_600_000), ("70.6 M", COUNT, None), (3, COUNT, 3), (2, COUNT, None),
        (2, evolve(COUNT, least=None), 2), ("a", ChoiceShape(("a",)), "a"), ("b", ChoiceShape(("a",)), None),
        ("A", TextShape(), "A"), (5, TextShape(), None), ("a", TextShape(NAME_PATTERN), "a"),
        ("A", TextShape(NAME_PATTERN), None), ("a\n", TextShape(NAME_PATTERN), None), (1, FlagShape(), None),
    ],
)  # fmt: skip
def test_a_claim_of_another_type_has_no_value(says, shape, value) -> None:
    assert value == _typed(says, shape, UNITS)


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("power", True), ("dma.bandwidth", True), ("memory.bandwidth", True), ("peak.dense.bf16", True),
        ("cores.count", False), ("links.bandwidth.both", False), ("ratios.0.is", False), ("ratios.0", False), ("other.note", True),
    ],
)  # fmt: skip
def test_missing_value_without_required_siblings_may_be_set(path, may) -> None:
    spec = graph(document("Chip", "part", "spec: {memory: {capacity: 1 GiB}}")).nodes["part"].spec
    (steps,) = spread(path)

    assert may is _may_be_set(spec, ("spec", *steps))


def test_incomplete_part_is_omitted() -> None:
    """The fabric of a server needs a link, so a rate alone makes none."""
    features = ", ".join(f"{{name: by-{page}, says: N, source: {page}}}" for page in ("old", "new"))
    chip = document("Chip", "part", f"spec: {{memory: {{capacity: 1 GiB}}, features: [{features}]}}", "source: old")
    claims = claim("mid", "7 GB/s", "superseded", "spec.fabric.bandwidth.both")
    claims += ", " + claim("mid", "7 GB/s", "superseded", "spec.network.bandwidth")
    server = document("Server", "box", f"spec: {{chips: {{chip: part, count: 2}}}}\nclaims: [{claims}]", "source: new")
    made = as_of(graph(*PAGES, chip, server), "2023-05")[0]
    spec = made.nodes["box"].spec

    assert ["by-old"] == [feature.name for feature in made.nodes["part"].spec.features]
    assert None is spec.fabric
    assert "7 GB/s" == spec.network.bandwidth.value.text


def test_a_document_without_a_source() -> None:
    _, unknown = as_of(graph(document("Link", "wire", "spec: {connects: chips}")), "2023-05")

    assert {"wire": "nothing in it has a source, so its date is unknown"} == unknown
