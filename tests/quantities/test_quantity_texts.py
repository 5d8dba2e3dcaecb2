"""Any printed figure: what is read back, and the pattern and the parser, which accept the same texts."""

import pickle
import re
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.quantities.conftest import numbers, quantities, texts
from trnspec.errors import QuantityError
from trnspec.quantities.grammar import MAX_TEXT
from trnspec.quantities.quantity import Quantity, parse, pattern
from trnspec.quantities.units import MAX_SYMBOL, UNITS, Dimension, Unit


@given(texts())
def test_every_form_is_read_back(text: str) -> None:
    """Reading keeps the text, fits the budget, and gives equal values for equal texts."""
    got = parse(text)
    assert (str(got), parse(str(got)), len(text) <= MAX_TEXT) == (text, got, True)
    assert pickle.loads(pickle.dumps(got)) == got
    assert 1 <= got.min_digits <= got.digits


@given(numbers(), st.sampled_from(UNITS.spellings()))
def test_value_is_exact(number: str, unit: str) -> None:
    """The number is the decimal that is printed, with no float in between."""
    got = parse(f"{number} {unit}")
    assert got.number == Fraction(number.replace(",", ""))
    assert got.value == got.number * UNITS.unit(unit).factor
    assert (got.number / got.ulp).denominator == 1


@given(quantities)
def test_value_in_interval_in_loose(got: Quantity) -> None:
    """The interval contains the value, and the loose one contains the interval."""
    assert got.value in got.interval
    assert got.value in got.loose
    assert got.loose.low <= got.interval.low
    if got.interval.high is None:
        assert got.loose.high is None
    else:
        assert got.loose.high is not None
        assert got.interval.high <= got.loose.high
    if got.digits == got.min_digits:
        assert got.interval == got.loose
    elif got.interval.high is not None:
        assert got.loose.high != got.interval.high


@given(numbers(), st.sampled_from(UNITS.spellings()))
def test_interval_equals_rounding_range_of_the_text(number: str, unit: str) -> None:
    """The ends are half a unit of the last digit away, the lower one in and the upper one out."""
    got = parse(f"{number} {unit}")
    half = got.ulp * got.unit.factor / 2
    interval = got.interval
    assert (interval.low, interval.high) == (max(got.value - half, 0), got.value + half)
    assert interval.low in interval
    assert got.value + half not in interval


def _reads(text: str, dimension: Dimension) -> bool:
    try:
        parse(text, dimension)
    except QuantityError:
        return False
    return True


@pytest.mark.parametrize("dimension", Dimension)
def test_pattern_takes_nothing_the_parser_refuses(dimension: Dimension) -> None:
    """Every text made from the pattern is read."""

    @settings(max_examples=40)
    @given(st.from_regex(pattern(dimension), fullmatch=True))
    def check(text: str) -> None:
        assert parse(text, dimension).text == text

    check()


@given(texts(), st.data())
def test_pattern_and_parser_agree_on_damaged_texts(text: str, data: st.DataObject) -> None:
    """A text with a character put in, taken out or replaced is taken by both or by neither, for every dimension."""
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 2))
    put = data.draw(
        st.sampled_from(
            ["", " ", "\n", ",", ".", "0", "9", "e", "-", "+", "~", "<", "=", "x", "/", "s", "B", "i", "µ", "٣"]
        )
    )
    damaged = text[:at] + put + text[at + cut :]
    dimension = data.draw(st.sampled_from(Dimension))
    for one in {dimension, parse(text).dimension}:
        assert bool(re.search(pattern(one), damaged)) == _reads(damaged, one)


@example("5 GB\n")
@example("5 GB\n\n")
@given(st.text(max_size=20))
def test_any_text_gives_a_quantity_or_our_error(text: str) -> None:
    """No text makes the parser fail in any other way, and the pattern agrees with it."""
    assert bool(re.search(pattern(Dimension.INFORMATION), text)) == _reads(text, Dimension.INFORMATION)


def test_longest_text_fits_the_budget() -> None:
    """The bounds in the pattern add up to the longest text that is looked at."""
    longest = f"up to {'999' + ',999' * 5}.{'9' * 15}e-30 "
    assert len(longest) + MAX_SYMBOL == MAX_TEXT
    table = UNITS.with_units(Unit("L" * MAX_SYMBOL, Dimension.POWER, Fraction(1)))
    text = longest + "L" * MAX_SYMBOL
    assert parse(text, Dimension.POWER, table).text == text


def test_pattern_is_plain_ecmascript() -> None:
    """The pattern uses nothing that only Python knows, and is anchored at both ends."""
    for dimension in Dimension:
        text = pattern(dimension)
        assert re.findall(r"\\[AZbB]|\(\?P|\(\?[aiLmsux<]|\(\?#|[*+?}]\+", text) == []
        assert (text[0], text[-7:]) == ("^", r"$(?!\n)")
