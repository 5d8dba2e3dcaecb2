"""trnspec.catalog.query.run: which documents are found, in which order, with which cells."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trnspec
from tests.support.programs import ROOT
from tests.support.small_catalog import CAT
from trnspec.catalog.query.tree import QueryError
from trnspec.errors import QuantityError, UnknownNameError, UsageError
from trnspec.model.server import Server
from trnspec.quantities.amount import Amount
from trnspec.quantities.units import Dimension
from trnspec.yaml import read_text

SHIPPED = trnspec.load()
QUERIES = read_text(Path(__file__).with_name("queries.yaml").read_text("utf-8"), "queries.yaml").data


def names(text: str) -> list[str]:
    return [b.name for b in CAT.query(text)]


# Kinds and paths.


@pytest.mark.parametrize("kind", ["chip", "chips", "Chip", "CHIPS"])
def test_kinds(kind) -> None:
    assert ["bare", "full"] == names(kind)


def test_rows_are_documents() -> None:
    (row,) = CAT.query('server where name = "box"')

    assert row is CAT.servers["box"]


@pytest.mark.parametrize(("text", "found"), QUERIES["found"])
def test_found(text, found) -> None:
    assert found == names(text)


@pytest.mark.parametrize(("text", "found", "undecided"), QUERIES["undecided"])
def test_not_known(text, found, undecided) -> None:
    """A comparison with what nothing published is neither true nor false."""
    result = CAT.query(f"chip where {text}")

    assert (found, undecided) == ([b.name for b in result], [b.name for b in result.undecided])


# A comparison of random conditions with plain Python on plain numbers.

_GI = 1024**3
PLAIN = {
    "full": {"memory.capacity": 100 * _GI, "dies": 2, "peak.dense.bf16": 600 * 10**12, "memory.bandwidth": 3 * 10**12},
    "bare": {"memory.capacity": 50 * _GI, "dies": None, "peak.dense.bf16": None, "memory.bandwidth": None},
}
_SIGNS = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compared(path, sign, number, unit, size, turned):
    """A comparison as a text, and as a function of plain numbers."""

    def plain(values):
        value = values[path]
        if value is None:
            return None
        return _SIGNS[sign](number * size, value) if turned else _SIGNS[sign](value, number * size)

    sides = (path, f"{number} {unit}".strip())
    return f" {sign} ".join(reversed(sides) if turned else sides), plain


def divided(sign, number):
    def plain(values):
        a, b = values["peak.dense.bf16"], values["memory.bandwidth"]
        return None if a is None or b is None else _SIGNS[sign](Fraction(a, b), number)

    return f"peak.dense.bf16 / memory.bandwidth {sign} {number} FLOP/B", plain


def known(path, *, unknown):
    return f"{'unknown' if unknown else 'known'} {path}", lambda values: (values[path] is None) is unknown


def negated(inner):
    text, plain = inner
    return f"not ({text})", lambda values: None if plain(values) is None else not plain(values)


def joined(word, parts):
    def plain(values):
        answers = [p(values) for _, p in parts]
        if (word == "or") in answers:
            return word == "or"
        return None if None in answers else word == "and"

    return "(" + f" {word} ".join(text for text, _ in parts) + ")", plain


signs = st.sampled_from(sorted(_SIGNS))
leaves = st.one_of(
    st.builds(compared, st.just("memory.capacity"), signs, st.sampled_from([49, 50, 51, 100]), st.just("GiB"), st.just(_GI), st.booleans()),
    st.builds(compared, st.just("peak.dense.bf16"), signs, st.sampled_from([599, 600, 601]), st.just("TFLOPS"), st.just(10**12), st.booleans()),
    st.builds(compared, st.just("memory.bandwidth"), signs, st.sampled_from([2999, 3000]), st.just("GB/s"), st.just(10**9), st.booleans()),
    st.builds(compared, st.just("dies"), signs, st.integers(1, 3), st.just(""), st.just(1), st.booleans()),
    st.builds(divided, signs, st.sampled_from([199, 200, 201])),
    st.builds(known, st.sampled_from(sorted(PLAIN["full"])), unknown=st.booleans()),
)  # fmt: skip
conditions = st.recursive(
    leaves,
    lambda inner: (
        st.builds(negated, inner)
        | st.builds(joined, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3))
    ),
    max_leaves=10,
)


@given(conditions)
def test_the_same_as_plain_python(condition) -> None:
    text, plain = condition
    result = CAT.query(f"chip where {text}")
    answers = {name: plain(values) for name, values in PLAIN.items()}

    assert {n for n, a in answers.items() if a is True} == {b.name for b in result}
    assert {n for n, a in answers.items() if a is None} == {b.name for b in result.undecided}


# The page that explains the language.

PAGE = (ROOT / "docs" / "reference" / "query.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
EXAMPLES = [line for kind, text in BLOCKS if not kind for line in text.splitlines() if re.match(r"\w+ where ", line)]


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_of_the_page(text) -> None:
    """Every example can be asked, and is true of some document or shows what is not known."""
    found = SHIPPED.query(text)

    assert len(found) or found.undecided


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) > 10


def test_the_mistake_on_the_page() -> None:
    (reported,) = [text for kind, text in BLOCKS if kind == "text"]
    with pytest.raises(QueryError) as caught:
        SHIPPED.query("server where memory.capacity > 3 TB/s")

    assert reported.rstrip("\n") == str(caught.value)


def test_the_paths_of_the_page() -> None:
    rows = re.findall(r"^\| `([^|]+)` \| ((?:a|those)[^|]+) \|", PAGE, flags=re.MULTILINE)
    asked = [
        (kind, path)
        for paths, owners in rows
        for path in paths.split("`, `")
        for kind in re.findall("chip|UltraServer|server", owners)
    ]

    assert len(asked) > 12
    for kind, path in asked:
        assert SHIPPED.query(kind, columns=[path]).columns == (path,)


# Mistakes.


@pytest.mark.parametrize(("text", "marked", "words"), QUERIES["mistakes"])
def test_mistakes(text, marked, words) -> None:
    with pytest.raises(QueryError) as caught:
        CAT.query(text)
    error = caught.value

    assert (marked, "^" * len(marked)) == (text[error.start : error.end], str(error).split("\n")[2].strip())
    assert words in str(error)


def test_a_mistake_is_found_before_any_document_is_looked_at() -> None:
    """The first half is true of no document, so a lazy evaluation would never see the second."""
    with pytest.raises(QueryError, match="did you mean"):
        CAT.query("chip where dies = 99 and memory.capcity > 1 GB")


def test_names_that_a_date_hides_are_known() -> None:
    """A name that is not published yet is no slip."""
    early = trnspec.load(as_of="2023-03")

    assert "trainium2" in early.unknown
    assert [] == list(early.query('chip where name = "trainium2"'))
    with pytest.raises(QueryError):
        early.query('chip where name = "trainium99"')


# Columns and order.


def test_default_columns() -> None:
    """The name, and what is compared, once each."""
    assert ("name", "memory.capacity", "dies") == CAT.query(
        "chip where memory.capacity > 3 GB and (known dies or not memory.capacity > 1 TB)"
    ).columns
    assert ("name", "title") == CAT.query("chip").columns


def test_cells() -> None:
    """Figures as printed, totals with all digits, counts, words; a gap where nothing is known."""
    found = CAT.query("chip", columns=["name", "memory.bandwidth", "peak.dense.bf16 / memory.bandwidth", "dies"])

    assert found.records()[0] == {
        "name": "bare", "memory.bandwidth": None, "peak.dense.bf16 / memory.bandwidth": None, "dies": None,
    }  # fmt: skip
    assert ("full", "~3 TB/s", "200 FLOP/B", "2") == tuple(c.text for c in found.cells[1] if c is not None)
    assert {"memory.bandwidth": "B/s", "peak.dense.bf16 / memory.bandwidth": "FLOP/B"} == found.units
    (_, ridge) = found.column("peak.dense.bf16 / memory.bandwidth")
    assert isinstance(ridge, Amount)
    assert (Fraction(200), Dimension.INTENSITY) == (ridge.value, ridge.dimension)
    assert str(found).splitlines()[2].split() == ["bare", "-", "-", "-"]


def test_a_total_is_the_same_as_the_catalog_gives() -> None:
    cat = trnspec.load()
    found = cat.query("ultraserver", columns=["peak.dense.bf16", "memory.capacity"])

    assert len(found) > 1
    for row, (peak, capacity) in zip(found, found.cells, strict=True):
        assert peak is not None
        assert capacity is not None
        assert (row.total("peak.dense.bf16"), row.total("memory.capacity")) == (peak.value, capacity.value)


def test_a_changed_chip_changes_the_totals() -> None:
    assert ["tin"] == [
        b.name for b in CAT.replace("bare", {"memory.capacity": "1 TiB"}).query("server where memory.capacity > 1 TiB")
    ]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ((), ["box", "tin"]),
        ("-chips.count", ["box", "tin"]),
        ("chips.count", ["tin", "box"]),
        ("memory.bandwidth", ["box", "tin"]),
        ("-memory.bandwidth", ["box", "tin"]),
        (["title", "-name"], ["tin", "box"]),
        ("memory.capacity / chips.count", ["tin", "box"]),
    ],
)
def test_order(sort, order) -> None:
    """What is not known comes last either way; what is equal stays in the order of names."""
    assert order == [b.name for b in CAT.query("server", sort=sort)]


@pytest.mark.parametrize(
    "options",
    [{"columns": ["memory.capcity"]}, {"sort": "-memory.capcity"}, {"sort": "peak"}, {"columns": ["name", ""]}],
)
def test_wrong_columns_and_orders(options) -> None:
    with pytest.raises(QueryError):
        CAT.query("chip", **options)


def test_the_mark_of_a_wrong_order() -> None:
    with pytest.raises(QueryError) as caught:
        CAT.query("chip", sort="-memory.capcity")

    assert "\n" + "  " + " " + "^" * 14 == str(caught.value)[-18:]


def test_result_is_a_sequence() -> None:
    found = CAT.query("chip", columns=["name"])

    assert (2, "bare", "full") == (len(found), found[0].name, found[-1].name)
    assert ("full",) == found[1:].column("name")
    with pytest.raises(UnknownNameError, match="did you mean 'name'"):
        found.column("nam")


def test_one_error_to_catch() -> None:
    """A wrong query is misuse of the program, as everything that the command line answers with status 2."""
    with pytest.raises(UsageError):
        CAT.query("chip where memory.capacity > 3 GB/s")
    with pytest.raises(QuantityError):
        CAT.chips["full"].memory.capacity.to("GB/s")


# Lists of words.


def test_regions() -> None:
    """A list of words is compared with one of them; where no list is known, the answer is unknown."""
    listed = {s.name: s.document.data["spec"].get("availability", {}).get("regions") for s in SHIPPED.graph.of(Server)}
    offered = {name for name, regions in listed.items() if regions and "us-east-2" in regions}

    found = SHIPPED.query('server where region = "us-east-2"')
    others = SHIPPED.query('server where region != "us-east-2"')

    assert {row.name for row in found} == offered == {"trn1.2xlarge", "trn1.32xlarge", "trn2.48xlarge"}
    assert {row.name for row in others} == {name for name, regions in listed.items() if regions} - offered
    assert {row.name for row in found.undecided} == {name for name, regions in listed.items() if not regions}
    assert [row.name for row in SHIPPED.query('server where zone = "us-east-2c"')] == ["trn2.48xlarge"]
    with pytest.raises(QueryError, match="supports = and != only"):
        SHIPPED.query('server where region < "us-east-2"')
