"""The unit table: factors, spellings, hints, and adding to it."""

from __future__ import annotations

import pickle
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import tables
from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.units import MAX_SYMBOL, UNITS, Dimension, Unit, UnitTable

TABLES = tables(__file__)


@pytest.mark.parametrize(("symbol", "dimension", "factor"), TABLES["factor"])
def test_factor(symbol: str, dimension: str, factor: int | str) -> None:
    """A unit has the dimension and the exact size that its definition gives it."""
    unit = UNITS.unit(symbol)
    assert (unit.symbol, unit.dimension.name, unit.factor) == (symbol, dimension, Fraction(factor))


@pytest.mark.parametrize(("alias", "symbol"), TABLES["alias"])
def test_alias(alias: str, symbol: str) -> None:
    """Another spelling is read as the canonical unit."""
    assert UNITS.unit(alias).symbol == symbol


@pytest.mark.parametrize("dimension", Dimension)
def test_every_dimension_has_its_base_and_usual_unit(dimension: Dimension) -> None:
    """The base unit has factor 1, and the usual unit exists, in the dimension that names them."""
    base, usual = UNITS.unit(dimension.base, dimension), UNITS.unit(dimension.usual, dimension)
    assert base.factor == 1
    assert usual.dimension is dimension


def test_units_of_lists_each_spelling_once_canonical_first() -> None:
    """Symbols come before aliases, and the dimensions together make up the whole table."""
    bandwidth = UNITS.spellings(Dimension.BANDWIDTH)
    canonical = [UNITS.unit(spelling).symbol == spelling for spelling in bandwidth]
    assert canonical == sorted(canonical, reverse=True)
    assert {True, False} == set(canonical)
    everything = [spelling for dimension in Dimension for spelling in UNITS.spellings(dimension)]
    assert sorted(everything) == sorted(UNITS.spellings())
    assert len(everything) == len(set(everything))


def test_units_print_and_pickle() -> None:
    """A unit prints as its symbol and survives pickling as an equal value."""
    unit = UNITS.unit("GiB/sec")
    assert (str(unit), pickle.loads(pickle.dumps(unit))) == ("GiB/s", unit)


@pytest.mark.parametrize(("spelling", "dimension", "hint"), TABLES["hint_for_unknown_unit"])
def test_hint_for_unknown_unit(spelling: str, dimension: str | None, hint: str) -> None:
    """A spelling that is in no unit gets the units that were most likely meant."""
    with pytest.raises(QuantityError) as caught:
        UNITS.unit(spelling, None if dimension is None else Dimension[dimension])
    assert (caught.value.reason, caught.value.hint) == ("unknown-unit", hint)


@pytest.mark.parametrize(("spelling", "dimension", "units"), TABLES["slips"])
def test_a_slip_of_case(spelling: str, dimension: str | None, units: list[str]) -> None:
    """The nearest spelling is first, and where a bit may be meant for a byte both are there."""
    assert spelling not in UNITS
    assert units == re.findall(
        r'"([^"]+)"', UNITS.suggest(spelling, None if dimension is None else Dimension[dimension])
    )


@given(
    st.sampled_from((*UNITS.spellings(Dimension.INFORMATION), *UNITS.spellings(Dimension.BANDWIDTH))),
    st.data(),
)
def test_a_slip_of_case_is_answered_with_the_unit(spelling: str, data: st.DataObject) -> None:
    """Whatever letters change their case: what is no unit then is answered with the one that was meant.

    A small b stays: a capital one says bytes.
    """
    changed = "".join(c if c == "b" else data.draw(st.sampled_from([c.lower(), c.upper()])) for c in spelling)
    if changed not in UNITS:
        meant = UNITS.unit(spelling)

        assert f'"{meant}"' in UNITS.suggest(changed, meant.dimension)


@pytest.mark.parametrize(
    ("spelling", "keep", "leave"),
    [
        ("GB/sec/chip", "GB/sec", "chip"),
        ("GiB/s/device", "GiB/s", "device"),
        ("GB/s per link", "GB/s", "per link"),
        ("GB HBM", "GB", "HBM"),
        ("TFLOPS/core", "TFLOPS", "core"),
    ],
)
def test_a_scope_is_no_unit(spelling: str, keep: str, leave: str) -> None:
    """What the figure is a figure of is named as the part to leave out."""
    assert UNITS.suggest(spelling).startswith(f'write "{keep}" and omit "{leave}"')


@pytest.mark.parametrize("spelling", ["GB/S", "GB / s", "GB/seconds"])
def test_a_time_is_no_scope(spelling: str) -> None:
    """A misspelled rate is answered with rates, not as an amount with a scope."""
    hint = UNITS.suggest(spelling, Dimension.BANDWIDTH)
    assert (hint.startswith("did you mean"), "GB/s" in hint) == (True, True)


def test_wrong_dimension_names_both() -> None:
    """A unit of another dimension is refused with both dimensions and their base units."""
    with pytest.raises(QuantityError) as caught:
        UNITS.unit("GB", Dimension.BANDWIDTH)
    assert caught.value.reason == "dimension"
    assert str(caught.value) == (
        "GB measures information (base unit B), but bandwidth (base unit B/s) is expected, such as GB/s"
    )


@pytest.mark.parametrize(
    ("symbol", "dimension", "meant"),
    [
        ("GB", Dimension.BANDWIDTH, "GB/s"),
        ("GiB/s", Dimension.INFORMATION, "GiB"),
        ("Gbit", Dimension.BANDWIDTH, "Gbit/s"),
        ("TFLOPS", Dimension.OP_RATE, "TOPS"),
        ("TOPS", Dimension.FLOP_RATE, "TFLOPS"),
        ("GHz", Dimension.BANDWIDTH, None),
    ],
)
def test_counterpart(symbol: str, dimension: Dimension, meant: str | None) -> None:
    """An amount has its rate, FLOPS have OPS, and unrelated dimensions have nothing."""
    found = UNITS.counterpart(UNITS.unit(symbol), dimension)
    assert (found and found.symbol) == meant


def test_with_units_makes_a_new_table() -> None:
    """A plugin's unit is known to its table, and not to anyone else's."""
    furlong = Unit("GT/s", Dimension.BANDWIDTH, Fraction(10**9, 8), ("GTps",))
    table = UNITS.with_units(furlong)
    assert (table.get("GTps"), UNITS.get("GTps")) == (furlong, None)
    assert "GT/s" in table.spellings(Dimension.BANDWIDTH)
    assert table.with_units(furlong).units == table.units


def test_a_spelling_is_taken_once() -> None:
    """A unit cannot take a spelling of another one, neither as a symbol nor as an alias."""
    with pytest.raises(UsageError, match="Gbps"):
        UNITS.with_units(Unit("GBaud", Dimension.FREQUENCY, Fraction(10**9), ("Gbps",)))
    with pytest.raises(UsageError, match="TB"):
        UnitTable((Unit("TB", Dimension.INFORMATION, Fraction(2)), Unit("TB", Dimension.INFORMATION, Fraction(3))))


@pytest.mark.parametrize("symbol", ["", "5x", "e3", "m2", "GB s", "GB\n", "a" * (MAX_SYMBOL + 1), ".x", "-x", "/s"])
def test_a_symbol_is_letters_and_slashes(symbol: str) -> None:
    """A symbol that could be taken for a part of a number, or is too long, is refused."""
    with pytest.raises(UsageError):
        Unit(symbol, Dimension.RATIO, Fraction(1))
    with pytest.raises(UsageError):
        Unit("ok", Dimension.RATIO, Fraction(1), (symbol,))


@pytest.mark.parametrize("factor", [0, -1])
def test_a_factor_is_above_zero(factor: int) -> None:
    """A unit of no size or of a negative size is refused."""
    with pytest.raises(UsageError):
        Unit("zero", Dimension.RATIO, Fraction(factor))


def test_a_spelling_near_to_a_unit_of_another_dimension_is_not_that_unit() -> None:
    assert 'did you mean "s"?' == UNITS.suggest("parsec")
    assert UNITS.choices(Dimension.INFORMATION) == UNITS.suggest("parsec", Dimension.INFORMATION)
