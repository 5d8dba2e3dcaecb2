"""trnspec.checks.rules.derived: what formulas mean, and which figures they do not give."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import beside, findings
from trnspec.quantities.formula import MOST_BRACKETS, MOST_CHARACTERS, FormulaError, evaluate
from trnspec.quantities.quantity import Interval, parse
from trnspec.yaml import read_text

FORMULAS = read_text(Path(__file__).with_name("formulas.yaml").read_text("utf-8"), "formulas.yaml").data


def exact(text: str) -> Fraction:
    value = evaluate(text)

    assert value.is_point
    return value.low


@pytest.mark.parametrize(("text", "expected"), FORMULAS["values"])
def test_numbers_are_exact(text, expected):
    assert Fraction(expected) == exact(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("384 GB/s", parse("384 GB/s").interval),
        ("384 GB/s / 4 links", parse("384 GB/s").interval.scaled(Fraction(1, 4))),
        ("27,648 GiB / 36", parse("27,648 GiB").interval.scaled(Fraction(1, 36))),
        ("2 x 64 GB/s", parse("64 GB/s").interval.scaled(2)),
        ("64 GB/sec x 2", parse("64 GB/s").interval.scaled(2)),
        ("1 us + 2 us", parse("1 us").interval + parse("2 us").interval),
        ("(1 us + 2 us) / 2", (parse("1 us").interval + parse("2 us").interval).scaled(Fraction(1, 2))),
        ("1,024 B / 50 Gbps", parse("1,024 B").interval.ratio(parse("50 Gbps").interval)),
        ("~2 GB/s x 3", parse("~2 GB/s").interval.scaled(3)),
        ("~5 x 2", Interval(Fraction(8), Fraction(12))),
    ],
)
def test_rounding_is_carried_through(text, expected):
    assert expected == evaluate(text)


@pytest.mark.parametrize(("text", "word"), FORMULAS["errors"])
def test_garbage_is_refused_with_a_reason(text, word):
    with pytest.raises(FormulaError, match=r".") as raised:
        evaluate(text)

    assert word in str(raised.value)


@pytest.mark.parametrize("depth", [MOST_BRACKETS, MOST_BRACKETS + 1, 100_000])
def test_depth_of_brackets_is_limited(depth):
    text = "(" * depth + "1" + ")" * depth
    if depth == MOST_BRACKETS:
        assert exact(f"{text} + {text}") == 2
        return
    with pytest.raises(FormulaError, match=r"brackets|characters"):
        evaluate(f"(1) + {text}")


def test_a_long_formula_is_refused():
    with pytest.raises(FormulaError, match="at most"):
        evaluate(" + ".join(["1"] * MOST_CHARACTERS))


@st.composite
def formulas(draw, depth=3):
    """A formula with what Python's exact arithmetic makes of it."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        number = draw(st.integers(0, 10_000))
        decimals = draw(st.integers(0, 3))
        value = Fraction(number, 10**decimals)
        text = f"{number // 10**decimals:,}" + (f".{number % 10**decimals:0{decimals}d}" if decimals else "")
        return text + draw(st.sampled_from(["", " links", " active lanes"])), value, 3
    left, a, left_rank = draw(formulas(depth=depth - 1))
    right, b, right_rank = draw(formulas(depth=depth - 1))
    sign = draw(st.sampled_from(["+", "x", "*", "/"]))
    if sign == "/" and b == 0:
        sign = "+"
    rank = 1 if sign == "+" else 2
    # A product on the right of a sign of its own rank needs brackets; elsewhere they are drawn.
    if left_rank < rank or draw(st.booleans()):
        left = f"({left})"
    if right_rank <= rank or draw(st.booleans()):
        right = f"({right})"
    value = {"+": a + b, "x": a * b, "*": a * b, "/": a / b if b else Fraction(0)}[sign]
    return f"{left} {sign} {right}", value, rank


@given(formulas())
def test_it_is_the_arithmetic_of_fractions(drawn):
    text, value, _ = drawn
    if len(text) <= MOST_CHARACTERS:
        assert value == exact(text)


@given(st.text(alphabet="0123456789.,e+-*/x() ~GBTiabs\u00d7", max_size=60))
def test_any_text_gives_a_value_or_a_reason(text):
    try:
        reported = evaluate(text).low >= 0
    except FormulaError as error:
        reported = bool(str(error))

    assert reported


def test_a_comma_that_ends_a_formula():
    wire = "{connects: chips, bandwidth: {both: {value: 12800 Gbps, derived: 4 x 3,200 Gbps}}}"
    text = f"api_version: trnspec/v1\nkind: Link\nmetadata: {{name: wire, title: Wire}}\nspec: {wire}\n"
    (found,) = findings("TRN404", beside(text))

    assert (found.where.path[-1], 'quote it: "4 x 3,200 Gbps"' in found.hint) == ("derived", True)
