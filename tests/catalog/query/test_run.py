"""trnspec.catalog.query.run: which documents are found, in which order, with which cells."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trnspec
from tests.support.programs import ROOT
from tests.support.small_catalog import CAT
from trnspec.catalog.query.check import _dates
from trnspec.catalog.query.tree import QueryError
from trnspec.errors import UnknownNameError
from trnspec.model.server import Server
from trnspec.yaml import read_text

SHIPPED = trnspec.load()
QUERIES = read_text(Path(__file__).with_name("queries.yaml").read_text("utf-8"), "queries.yaml").data


def names(text: str) -> list[str]:
    return [b.name for b in CAT.query(text)]


@pytest.mark.parametrize("kind", ["chip", "chips", "Chip", "CHIPS"])
def test_kinds(kind) -> None:
    assert ["bare", "full"] == names(kind)


@pytest.mark.parametrize(("text", "found"), QUERIES["found"])
def test_found(text, found) -> None:
    assert found == names(text)


@pytest.mark.parametrize(("text", "found", "undecided"), QUERIES["undecided"])
def test_not_known(text, found, undecided) -> None:
    """A comparison with what nothing published is neither true nor false."""
    result = CAT.query(f"chip where {text}")

    assert (found, undecided) == ([b.name for b in result], [b.name for b in result.undecided])


def test_a_data_frame_has_numbers_in_base_units_and_no_bounds() -> None:
    frame = CAT.query("chip", columns=["name", "dies", "memory.capacity"]).to_pandas()
    assert frame.to_numpy(dtype=object, na_value=None).tolist() == [
        ["bare", None, 50.0 * _GI], ["full", 2, 100.0 * _GI]
    ]  # fmt: skip
    assert frame.attrs["units"] == {"memory.capacity": "B"}
    bounds = SHIPPED.query("cluster", columns=["chips.count"])
    assert any(cell and cell.is_bound for (cell,) in bounds.cells)
    assert bounds.to_pandas()["chips.count"].isna().all()


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


@pytest.mark.parametrize(("text", "marked", "words"), QUERIES["mistakes"])
def test_mistakes(text, marked, words) -> None:
    with pytest.raises(QueryError) as caught:
        CAT.query(text)
    error = caught.value

    assert (marked, "^" * len(marked)) == (text[error.start : error.end], str(error).split("\n")[2].strip())
    assert words in str(error)


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ((), ["box", "tin"]), ("-chips.count", ["box", "tin"]), ("chips.count", ["tin", "box"]),
        ("memory.bandwidth", ["box", "tin"]), ("-memory.bandwidth", ["box", "tin"]),
        (["title", "-name"], ["tin", "box"]), ("memory.capacity / chips.count", ["tin", "box"]),
    ],
)  # fmt: skip
def test_order(sort, order) -> None:
    """What is not known comes last either way; what is equal stays in the order of names."""
    assert order == [b.name for b in CAT.query("server", sort=sort)]


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


def test_result_is_a_sequence() -> None:
    found = CAT.query("chip", columns=["name"])

    assert (2, "bare", "full") == (len(found), found[0].name, found[-1].name)
    assert ("full",) == found[1:].column("name")
    with pytest.raises(UnknownNameError, match="did you mean 'name'"):
        found.column("nam")


@pytest.mark.parametrize(
    ("one", "other", "before"),
    [("2022", "2023-01", True), ("2022-11", "2022-12", True), ("2022-12", "2022-11-30", False), ("2022", "2022", False),
     ("2022", "2022-11", None), ("2022-11-30", "2022-11", None)],
)  # fmt: skip
def test_dates_of_which_one_is_less_precise(one, other, before) -> None:
    """Their order is unknown where one is a part of the other."""
    assert before is _dates("<", one, other)
    assert {None: None, True: False, False: one > other}[before] is _dates(">", one, other)
