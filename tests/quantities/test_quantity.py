"""Printed figures: reading them, the intervals they stand for, and showing computed ones."""

import pickle
import re
import subprocess
import sys
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.quantities.conftest import numbers, pairs, quantities, texts
from tests.support.tables import tables
from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.grammar import MAX_TEXT
from trnspec.quantities.quantity import (
    Interval,
    Qualifier,
    Quantity,
    choose_unit,
    parse,
    parse_or_none,
    pattern,
    render,
)
from trnspec.quantities.units import MAX_SYMBOL, UNITS, Dimension, Unit

TABLES = tables(__file__)

G, T = 10**9, 10**12
FORM = 'write one number, one space and a unit, such as "820 GB/s"'


@pytest.mark.parametrize(("text", "value", "unit", "digits", "least"), TABLES["printed"])
def test_printed_form(text, value, unit, digits, least) -> None:
    """A figure as vendors print it is read exactly, with its digits, and keeps its text."""
    got = parse(text)
    assert (got.value, got.unit.symbol, got.digits, got.min_digits) == (Fraction(value), unit, digits, least)
    assert (got.qualifier, str(got), f"{got}", float(got)) == (Qualifier.EXACT, text, text, float(Fraction(value)))
    assert re.search(pattern(got.dimension), text)
    assert parse(text, got.dimension) == got


@pytest.mark.parametrize(("text", "qualifier", "low", "high", "loose_low", "loose_high"), TABLES["interval"])
def test_interval(text, qualifier, low, high, loose_low, loose_high) -> None:
    """The qualifier and the last printed digit bound the value exactly, with and without trust in round zeros."""

    def tera(a: str, b: str | None) -> Interval:
        return Interval(Fraction(a) * T, None if b is None else Fraction(b) * T)

    got = parse(text)
    assert (got.qualifier.name, got.interval, got.loose) == (qualifier, tera(low, high), tera(loose_low, loose_high))


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [*TABLES["refused"], *((text, "malformed", FORM) for text in ("9" * (MAX_TEXT + 1), "1 " + "x" * 1_000_000))],
)
def test_refused(text, reason, hint) -> None:
    """What is not a quantity is refused with the reason and with what to write instead."""
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert (caught.value.reason, caught.value.hint) == (reason, hint)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("value", "shown"), [(5000, "5000"), (0.5, "0.5"), (2_000_000_000, "820"), (-1, "820")])
def test_the_example_for_a_number_without_a_unit(value, shown) -> None:
    """The number itself, unless it is in base units or in none."""
    with pytest.raises(QuantityError) as caught:
        parse(value, Dimension.BANDWIDTH)  # type: ignore[arg-type]
    assert caught.value.hint == f'write a text, such as "{shown} GB/s"'


def test_parse_or_none() -> None:
    """Texts that were parsed before, in this table or another, and what is not a quantity."""
    table = UNITS.with_units(Unit("GT/s", Dimension.BANDWIDTH, Fraction(10**9, 8)))

    assert parse_or_none("731 GB/s") == parse("731 GB/s")
    assert parse_or_none("731 GB/s") == parse("731 GB/s")
    assert parse_or_none("731 GT/s") is None
    assert parse_or_none("731 GT/s", table) == parse("731 GT/s", None, table)
    assert parse_or_none("731 GT/s") is None
    for text in ("731", "731 GB of them", "GB/s", "0731 GB/s", ""):
        assert parse_or_none(text) is None


def test_a_plugin_table_is_used() -> None:
    """A unit that only one table knows is read, matched and shown by that table alone."""
    table = UNITS.with_units(Unit("GT/s", Dimension.BANDWIDTH, Fraction(10**9, 8)))
    got = parse("32 GT/s", Dimension.BANDWIDTH, table)
    assert got.value == 4 * G
    assert got.to("GB/s") == 4.0
    assert parse("4 GB/s", None, table).to("GT/s") == 32.0
    assert render(got.value, got.unit, 3) == "32 GT/s"
    assert (got * parse("2 s")).table is (parse("2 s") * got).table is table
    assert [bool(re.search(pattern(Dimension.BANDWIDTH, t), "32 GT/s")) for t in (table, UNITS)] == [True, False]
    with pytest.raises(QuantityError):
        parse("32 GT/s")


# Intervals.

fractions = st.fractions(0, 10**6, max_denominator=1000)
bounded = st.tuples(fractions, fractions).map(lambda ends: Interval(min(ends), max(ends)))
intervals = bounded | fractions.map(lambda low: Interval(low, None)) | fractions.map(Interval.point)


def span(low: str, high: str | None) -> Interval:
    return Interval(Fraction(low), None if high is None else Fraction(high))


@pytest.mark.parametrize(
    ("one", "two", "overlap", "gap"),
    [
        (span("1", "2"), span("3", "5"), False, "1"),
        (span("1", "2"), span("2", "3"), False, "0"),
        (span("1", "2.1"), span("2", "3"), True, "0"),
        (span("1", "9"), span("2", "3"), True, "0"),
        (span("2", "2"), span("2", "3"), True, "0"),
        (span("3", "3"), span("2", "3"), False, "0"),
        (span("3", "3"), span("3", "3"), True, "0"),
        (span("3", "3"), span("4", "4"), False, "1"),
        (span("3", None), span("1", "2"), False, "1"),
        (span("3", None), span("1", "4"), True, "0"),
        (span("3", None), span("7", None), True, "0"),
        (span("3", None), span("7", "7"), True, "0"),
    ],
)
def test_overlap_and_gap(one, two, overlap, gap) -> None:
    """Half-open intervals that only touch share no number, and the gap is measured from end to end."""
    assert {one.overlaps(two), two.overlaps(one)} == {overlap}
    assert {one.gap(two), two.gap(one)} == {Fraction(gap)}


def test_interval_arithmetic() -> None:
    """Sums, products and quotients of bounds are the bounds of sums, products and quotients."""
    a, b, open_ended = span("1", "2"), span("4", "5"), span("3", None)
    assert a + b == span("5", "7")
    assert a + open_ended == span("4", None)
    assert a.times(b) == span("4", "10")
    assert b.times(Interval.point(3)) == span("12", "15")
    assert a.times(open_ended) == span("3", None)
    assert a.scaled(16) == span("16", "32")
    assert open_ended.scaled(0) == Interval.point(0)
    assert b.ratio(a) == span("2", "5")
    assert a.ratio(open_ended) == Interval(Fraction(0), Fraction(2, 3))
    assert a.ratio(span("0", "1")) == span("1", None)
    assert b.ratio(Interval.point(2)) == span("2", "2.5")


def test_misuse_of_intervals() -> None:
    """Negative numbers, ends in the wrong order and division by zero are refused."""
    with pytest.raises(UsageError):
        span("-1", "1")
    with pytest.raises(UsageError):
        span("2", "1")
    with pytest.raises(UsageError):
        span("1", "2").scaled(-1)
    with pytest.raises(UsageError):
        span("1", "2").ratio(Interval.point(0))


@pytest.mark.parametrize(
    ("one", "two", "below", "at_most"),
    [
        (span("1", "2"), span("2", "3"), None, True),
        (span("2", "3"), span("1", "2"), False, None),
        (span("1", "3"), span("2", "4"), None, None),
        (span("1", "2"), span("3", None), True, True),
    ],
)
def test_is_below(one, two, below, at_most) -> None:
    """Touching intervals have an equal number."""
    assert (below, at_most) == (one.is_below(two), one.is_below(two, or_equal=True))


@given(intervals, intervals, fractions, fractions)
def test_arithmetic_contains_the_numbers(a, b, x, y) -> None:
    """What holds for the intervals holds for every number in them."""
    x, y = a.low + (0 if a.is_point else x), b.low + (0 if b.is_point else y)
    assume(x in a and y in b)
    assert x + y in a + b
    assert x * y in a.times(b)
    if y > 0 and not a.is_point:
        assert x / y in a.ratio(b)
    if x == y:
        assert a.overlaps(b)


@given(intervals, intervals, fractions, fractions)
def test_scaling_is_linear(a, b, k, m) -> None:
    """Scaling twice is scaling by the product, and it may be done before or after the sum."""
    assert a.scaled(k).scaled(m) == a.scaled(k * m)
    if k > 0:
        assert (a + b).scaled(k) == a.scaled(k) + b.scaled(k)
        assert a.scaled(k).overlaps(b.scaled(k)) == a.overlaps(b)
        assert a.scaled(k).gap(b.scaled(k)) == a.gap(b) * k


@given(intervals, intervals)
def test_overlap_means_a_common_number(a, b) -> None:
    """Two intervals overlap exactly where the larger of the two lower ends lies in both; then there is no gap."""
    low = max(a.low, b.low)
    assert a.overlaps(b) == b.overlaps(a) == (low in a and low in b)
    assert not (a.overlaps(b) and a.gap(b))


@pytest.mark.parametrize(("one", "two", "strict", "loose"), TABLES["agrees"])
def test_agrees(one, two, strict, loose) -> None:
    """Figures agree where rounding alone can explain their difference."""
    a, b = parse(one), parse(two)
    assert {(x.agrees(y), x.loose.overlaps(y.loose)) for x, y in ((a, b), (b, a))} == {(strict, loose)}


@given(pairs)
def test_agreement_and_order(pair) -> None:
    """Agreement is symmetric and reflexive, loose agreement is wider, and order turns round with its arguments."""
    a, b = map(parse, pair)
    assert a.agrees(b) == b.agrees(a)
    assert a.agrees(a)
    assert a.loose.overlaps(b.loose) or not a.agrees(b)
    assert (a < b, a <= b) == (b > a, b >= a) == (a.value < b.value, a.value <= b.value)
    assert a.same_value(b) == (a.qualifier is b.qualifier and a <= b <= a)


def test_conversion() -> None:
    """A value is given in any unit of its dimension, and in no other."""
    rate = parse("800 Gbps")
    assert (rate.to("GB/s"), rate.to("Gbit/s"), rate.to(UNITS.unit("MB/s"))) == (100.0, 800.0, 100_000.0)
    for unit, reason in (("GB", "dimension"), (UNITS.unit("W"), "dimension"), ("GBB/s", "unknown-unit")):
        with pytest.raises(QuantityError) as caught:
            rate.to(unit)
        assert caught.value.reason == reason


@given(st.fractions(Fraction(1, 10**9), 10**20), st.sampled_from(list(UNITS)), st.integers(1, 15))
def test_render_can_be_read(value, unit, digits) -> None:
    """What is shown is a quantity, no further from the value than half a unit of the last digit."""
    # A number is read up to an exponent of 30.
    assume(value / unit.factor < 5 * 10**30)
    got = parse(render(value, unit, digits), unit.dimension)
    assert got.unit == unit
    assert abs(got.value - value) <= value * Fraction(10) ** (1 - digits) / 2
    assert got.digits <= max(digits, 15)


@given(quantities)
def test_render_repeats_exact_figures(got) -> None:
    """A figure of a usual size, shown with all its digits, keeps its value."""
    assume(got.digits <= 15 and (got.number == 0 or Fraction(1, 10**30) <= got.number < 10**31))
    again = parse(render(got.value, got.unit, got.digits))
    assert (again.value, again.unit) == (got.value, got.unit)


def test_misuse_of_render() -> None:
    """No digits, and values that are no numbers, are refused."""
    with pytest.raises(UsageError):
        render(1, "W", 0)
    for value in (float("inf"), float("nan")):
        with pytest.raises(UsageError):
            render(value, "W", 3)
        with pytest.raises(UsageError):
            choose_unit(value, Dimension.POWER)


def test_import_is_light() -> None:
    """Reading figures needs no library but attrs, and no hint machinery before the first mistake."""
    code = "import sys, trnspec.quantities.quantity as q; q.parse('820 GB/s'); print('\\n'.join(sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded & {"numpy", "cattrs", "jsonschema", "ruamel.yaml", "difflib"} == set()


MOST_DECIMALS = 15


def written(number: Decimal, digits: int) -> str:
    """The number with some digits: halves away from 0, an exponent from 10^15 on, below 10^-6, or for many decimals."""
    if not number:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).plus(number)
    exponent = rounded.adjusted()
    decimals = digits - 1 - exponent
    if exponent >= 15 or exponent < -6 or (exponent < 0 and decimals > MOST_DECIMALS):
        mantissa = f"{rounded.scaleb(-exponent):f}"
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@given(st.integers(-(10**21), 10**21), st.integers(-30, 12), st.integers(1, 20))
@example(-5, -1, 1)
@example(-5, -2, 3)
@example(1, -6, 1)
@example(1, -7, 1)
@example(9999995, -13, 1)
@example(99, -8, 1)
@example(999999999999999, 0, 15)
@example(9999999999999995, -1, 15)
@example(1, 15, 1)
@example(1234, -7, 12)
@example(1234, -7, 13)
@example(15, -1, 1)
@example(25, -1, 1)
@example(-25, -1, 1)
@example(-1, 0, 1)
def test_render(mantissa: int, power: int, digits: int) -> None:
    number = Decimal(mantissa).scaleb(power, Context(prec=60))
    sign = number.is_signed() and number != 0

    assert f"{'-' if sign else ''}{written(abs(number), digits)} B" == render(Fraction(number), "B", digits)
    assert f"{'-' if sign else ''}{written(abs(number), digits)}x" == render(Fraction(number), "x", digits)


@given(st.fractions(0, 10**20), st.sampled_from(Dimension))
@example(Fraction(0), Dimension.TIME)
def test_choose_unit(value: Fraction, dimension: Dimension) -> None:
    """The largest decimal unit in which the value is at least 1; the smallest, if there is none; the base unit of 0."""
    decimal = {u.factor: u for u in UNITS if u.dimension is dimension and "i" not in u.symbol.replace("bit", "")}
    powers = {f: u for f, u in decimal.items() if str(max(f.numerator, f.denominator)).strip("0") == "1"}
    fitting = [f for f in powers if f <= value]
    unit = choose_unit(value, dimension)

    if value == 0:
        assert dimension.base == unit.symbol
    else:
        assert powers[max(fitting) if fitting else min(powers)] is unit
    assert unit is choose_unit(-value, dimension)


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
