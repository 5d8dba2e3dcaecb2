"""The unit table: factors, spellings, hints, and adding to it."""

import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import tables
from trnspec.errors import UsageError
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
    base, usual = UNITS.unit(dimension.base, dimension), UNITS.unit(dimension.example, dimension)
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


@given(st.sampled_from((*UNITS.spellings(Dimension.INFORMATION), *UNITS.spellings(Dimension.BANDWIDTH))), st.data())
def test_a_slip_of_case_is_answered_with_the_unit(spelling: str, data: st.DataObject) -> None:
    """Whatever letters change their case: what is no unit then is answered with the one that was meant.

    A small b stays: a capital one says bytes.
    """
    changed = "".join(c if c == "b" else data.draw(st.sampled_from([c.lower(), c.upper()])) for c in spelling)
    if changed not in UNITS:
        meant = UNITS.unit(spelling)

        assert f'"{meant}"' in UNITS.suggest(changed, meant.dimension)


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


def test_a_table_of_other_units_is_unpickled_with_its_own() -> None:
    """Only a table that begins with the usual units is found by what it adds to them."""
    own = UnitTable(UNITS.units[1:3])
    assert pickle.loads(pickle.dumps(own)).units == own.units
