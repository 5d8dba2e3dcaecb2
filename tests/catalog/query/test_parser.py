"""trnspec.catalog.query.parser: what follows the grammar comes back as it was; what does not is marked where it is wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.catalog.query import tree
from trnspec.catalog.query.parser import KEYWORDS, parse_query
from trnspec.errors import UsageError
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS
from trnspec.yaml import read_text

GRAMMAR = read_text(Path(__file__).with_name("queries.yaml").read_text("utf-8"), "queries.yaml").data["grammar"]
A, B = tree.PathTerm("a"), tree.PathTerm("b.c")
THREE = tree.Comparison(A, "=", tree.NumberLiteral("3"))
FOUR = tree.Comparison(B, "=", tree.NumberLiteral("4"))
FIVE = tree.Comparison(A, ">", tree.NumberLiteral("5"))

# What follows the grammar.


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = 3 and b.c = 4 or a > 5", tree.Or((tree.And((THREE, FOUR)), FIVE))),
        ("a = 3 and (b.c = 4 or a > 5)", tree.And((THREE, tree.Or((FOUR, FIVE))))),
        ("not a = 3 and b.c = 4", tree.And((tree.Not(THREE), FOUR))),
        ("not (a = 3 and b.c = 4)", tree.Not(tree.And((THREE, FOUR)))),
        ("((a=3))", THREE),
        ("NOT known a OR Unknown b.c", tree.Or((tree.Not(tree.Known(A)), tree.Known(B, unknown=True)))),
        ("a == 3", THREE),
        ("a / b.c ~ 2.90 TB/s", tree.Comparison(tree.Quotient(A, B), "~", tree.Measure(parse("2.90 TB/s")))),
        ("a<1,000GB/s", tree.Comparison(A, "<", tree.Measure(parse("1,000 GB/s")))),
        ("a > 6.7 x", tree.Comparison(A, ">", tree.Measure(parse("6.7x")))),
        ("1e3 W != a", tree.Comparison(tree.Measure(parse("1e3 W")), "!=", A)),
        (r"""a = 'it\'s "so"\\'""", tree.Comparison(A, "=", tree.Word('it\'s "so"\\'))), ("a\n =\t3", THREE),
        ("other.some-thing = 3", tree.Comparison(tree.PathTerm("other.some-thing"), "=", tree.NumberLiteral("3"))),
        ("fabric.topology.dimensions.0 = 4",
         tree.Comparison(tree.PathTerm("fabric.topology.dimensions.0"), "=", tree.NumberLiteral("4"))),
    ],
)  # fmt: skip
def test_conditions(text, where) -> None:
    assert tree.Query("chip", where) == parse_query(f"chip where {text}")


steps = st.from_regex(r"[a-z_][a-z0-9_-]{0,6}", fullmatch=True)
paths = (
    st.lists(steps, min_size=1, max_size=3).map(".".join).filter(lambda p: p.lower() not in KEYWORDS).map(tree.PathTerm)
)
numbers = st.from_regex(r"(0|[1-9][0-9]{0,2}(,[0-9]{3})?)(\.[0-9]{1,3})?(e-?[1-9])?", fullmatch=True)
units = st.sampled_from([u for unit in UNITS for u in unit.spellings])
measures = st.builds(lambda n, u: tree.Measure(parse(f"{n}{UNITS.unit(u).separator}{u}")), numbers, units)
operands = st.one_of(
    paths,
    st.builds(tree.Quotient, paths, paths),
    measures,
    st.builds(tree.NumberLiteral, numbers),
    st.builds(tree.Word, st.text(max_size=8)),
)
conditions = st.recursive(
    st.builds(tree.Comparison, operands, st.sampled_from(sorted(set(tree.OPERATORS.values()))), operands)
    | st.builds(tree.Known, paths, st.booleans()),
    lambda inner: (
        st.builds(tree.Not, inner)
        | st.builds(tree.And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(tree.Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=12,
)


@given(st.builds(tree.Query, steps.filter(lambda s: s not in KEYWORDS), st.none() | conditions))
def test_round_trip(query) -> None:
    """Every tree is written as a text that gives the same tree again."""
    assert query == parse_query(str(query))


@given(st.text() | st.text(alphabet="ab.=<>~!/()\"'\\ 3Gx,-\nnotadr").map(lambda t: f"chip where {t}"))
def test_any_text_is_a_query_or_an_error(text) -> None:
    """Whatever is written, it is read or refused; an error marks a place in the text, and a tree reads back."""
    wrong: tree.QueryError | None = None
    try:
        query = parse_query(text)
    except tree.QueryError as error:
        wrong = error
    if wrong is None:
        assert query == parse_query(str(query))
    else:
        assert 0 <= wrong.start <= wrong.end <= len(text)
        assert set(str(wrong).split("\n")[-1].strip()) == {"^"}


def shown(text: str) -> list[str]:
    with pytest.raises(tree.QueryError) as caught:
        parse_query(text)
    return str(caught.value).split("\n")


@pytest.mark.parametrize(("text", "marks", "words"), GRAMMAR)
def test_mistakes(text, marks, words) -> None:
    message, line, below = shown(text)

    assert words in message
    assert (f"  {text}", f"  {marks}") == (line, below)


def test_conditions_next_to_others_are_not_nested() -> None:
    """Many in parentheses are no depth, and take none from those after them."""
    many = " or ".join(["(known power)"] * 150)
    parse_query(f"chip where {many}")
    with pytest.raises(tree.QueryError, match="nested more than"):
        parse_query(f"chip where {many} or {'not ' * 100}known power")


def test_budgets() -> None:
    deep = "not " * 100
    with pytest.raises(tree.QueryError, match="deep"):
        parse_query(f"chip where {deep} a = 3")
    with pytest.raises(UsageError, match="at most 4,000 characters, this one has 4,001"):
        parse_query("chip where a = 3" + " " * 3_985)

    assert parse_query(f"chip where {deep[4:]} a = 3").where is not None
