"""A printed quantity: ``"2.9 TB/s"`` is parsed into a value, a unit, and the interval its digits represent.

A printed number represents every value that is printed the same way. With ``ulp`` the size of one unit of its last
digit, ``2.9`` is [2.85, 2.95): half-open, because halves are rounded up, as most publishers do. Trailing zeros of a
round integer may or may not be significant (``190`` may be rounded to 1 or to 10), so a quantity has two intervals:
``interval`` counts the zeros as significant, ``loose`` does not. All arithmetic is exact; floats are used for results
only.
"""

from __future__ import annotations

import enum
import functools
from fractions import Fraction
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.arithmetic import Measured
from trnspec.quantities.grammar import (
    EXPONENT,
    FRACTION,
    INTEGER,
    MAX_TEXT,
    PARTS,
    QUALIFIER,
    form,
    no_number,
    no_unit,
    not_text,
    quoted,
)
from trnspec.quantities.units import UNITS, Dimension, Unit, UnitTable, wrong_dimension

if TYPE_CHECKING:  # amount imports this module
    from trnspec.quantities.amount import Amount


class Qualifier(enum.Enum):
    """The qualifier before the number; the value is its canonical spelling."""

    EXACT = ""
    ABOUT = "~"
    AT_MOST = "<="
    UNDER = "<"
    UP_TO = "up to"
    AT_LEAST = ">="
    OVER = ">"


_QUALIFIERS = {q.value: q for q in Qualifier} | {"up-to": Qualifier.UP_TO, "over": Qualifier.OVER}
_BELOW = frozenset((Qualifier.AT_MOST, Qualifier.UNDER, Qualifier.UP_TO))
_ABOVE = frozenset((Qualifier.AT_LEAST, Qualifier.OVER))


@frozen
class Interval:
    """The half-open interval [low, high) of non-negative numbers.

    ``high`` is None for an interval without upper bound. ``low == high`` is one exact number.

    Raises:
        UsageError: ``low`` is negative, or ``high`` is below ``low``.
    """

    low: Fraction
    high: Fraction | None

    def __attrs_post_init__(self) -> None:
        if self.low < 0 or (self.high is not None and self.high < self.low):
            raise UsageError(f"not an interval of non-negative numbers: [{self.low}, {self.high})")

    @classmethod
    def point(cls, value: Fraction | int) -> Interval:
        """The interval of one exact number."""
        return cls(Fraction(value), Fraction(value))

    @property
    def is_point(self) -> bool:
        """True if the interval contains exactly one number."""
        return self.low == self.high

    @property
    def middle(self) -> Fraction:
        """The middle; the lower end where there is no upper one."""
        return self.low if self.high is None else (self.low + self.high) / 2

    def __contains__(self, value: Fraction | float) -> bool:
        return self.low <= value and (self.high is None or value < self.high or self.low == value == self.high)

    def overlaps(self, other: Interval) -> bool:
        """True if the two intervals have a number in common."""
        if self is other:
            return True
        if self.is_point:
            return self.low in other
        if other.is_point:
            return other.low in self
        return (self.high is None or other.low < self.high) and (other.high is None or self.low < other.high)

    def gap(self, other: Interval) -> Fraction:
        """The distance between the nearest ends: 0 if the intervals overlap or touch."""
        if self.high is not None and self.high < other.low:
            return other.low - self.high
        if other.high is not None and other.high < self.low:
            return self.low - other.high
        return Fraction(0)

    def is_below(self, other: Interval, *, or_equal: bool = False) -> bool | None:
        """Whether a number of this interval is below (or equal to) one of the other; ``None`` where that depends on them.

        Both ends count as numbers of an interval here: it is that of a value with bounds.
        """
        if self.high is not None and (self.high < other.low or (or_equal and self.high == other.low)):
            return True
        if other.high is not None and (self.low > other.high or (not or_equal and self.low == other.high)):
            return False
        return None

    def scaled(self, k: Fraction | int) -> Interval:
        """All numbers times an exact ``k``: the interval of 16 chips from the interval of one.

        Raises:
            UsageError: ``k`` is negative.
        """
        if k < 0:
            raise UsageError(f"an interval is scaled by a non-negative number, not by {k}")
        if k == 0:
            return Interval.point(0)
        return Interval(self.low * k, None if self.high is None else self.high * k)

    def __add__(self, other: Interval) -> Interval:
        high = None if self.high is None or other.high is None else self.high + other.high
        return Interval(self.low + other.low, high)

    def times(self, other: Interval) -> Interval:
        """All products of a number of this interval and a number of the other."""
        for one, two in ((self, other), (other, self)):
            if one.is_point:
                return two.scaled(one.low)
        high = None if self.high is None or other.high is None else self.high * other.high
        return Interval(self.low * other.low, high)

    def ratio(self, other: Interval) -> Interval:
        """All quotients of a number of this interval by a number of the other that is not 0.

        Division swaps the ends, so a half-open result is exact except at the ends themselves: it contains the lower
        end even if no quotient reaches it, and excludes the upper end even if a quotient reaches it.

        Raises:
            UsageError: ``other`` is the number 0.
        """
        if other.high == 0:
            raise UsageError("division by an interval that is 0")
        low = Fraction(0) if other.high is None else self.low / other.high
        high = None if self.high is None or other.low == 0 else self.high / other.low
        return Interval(low, high)


# mypy assumes that attrs generates the comparisons unless configured otherwise.
@frozen(order=False, cache_hash=True, slots=False)
class Quantity(Measured):
    """A printed quantity.

    ``==`` compares all attributes, the text included; ``same_value`` compares values, ``agrees`` intervals, and ``<``
    and ``>`` values, also with a text: ``Quantity.parse("2.9 TB/s") > "800 GB/s"``. ``format(quantity, ".2f")`` applies
    the format to the number and keeps qualifier and unit.

    Attributes:
        text: As printed, unchanged.
        qualifier: The qualifier of the number.
        number: The number, in ``unit``.
        unit: The unit; an alias is resolved, ``text`` keeps it.
        ulp: The size of one unit of the last printed digit, in ``unit``.
        digits: Significant digits, at least 1.
        min_digits: Less than ``digits`` if trailing zeros of an integer may be placeholders:
            3 and 2 for 190, 4 and 3 for 3,040, 4 and 4 for 400.0.
        table: The units known when it was parsed, which ``to`` accepts. Ignored by comparisons.
    """

    text: str
    qualifier: Qualifier
    number: Fraction
    unit: Unit
    ulp: Fraction
    digits: int
    min_digits: int
    table: UnitTable = field(default=UNITS, eq=False, repr=False)

    @classmethod
    def parse(cls, text: str, dimension: Dimension | None = None, table: UnitTable = UNITS) -> Quantity:
        """A text such as ``"2.9 TB/s"`` as a quantity; see :func:`parse`.

        Raises:
            QuantityError: ``malformed``, ``no-unit``, ``unknown-unit`` or ``dimension``.
        """
        return parse(text, dimension, table)

    @property
    def amount(self) -> Amount:
        """The exact value with its dimension and interval."""
        from trnspec.quantities.amount import Amount

        return Amount.of(self)

    @property
    def dimension(self) -> Dimension:
        """The dimension of the unit."""
        return self.unit.dimension

    @functools.cached_property
    def value(self) -> Fraction:
        """The number in base units of its dimension (B, B/s, FLOPS, s, ...), exact."""
        return self.number * self.unit.factor

    def __float__(self) -> float:
        """The number in base units of its dimension."""
        return float(self.value)

    @functools.cached_property
    def interval(self) -> Interval:
        """The values that are printed with these digits, in base units."""
        return self._interval(self.ulp)

    @functools.cached_property
    def loose(self) -> Interval:
        """The same with ambiguous trailing zeros read as placeholders, in base units; it contains ``interval``."""
        return (
            self.interval
            if self.digits == self.min_digits
            else self._interval(self.ulp * 10 ** (self.digits - self.min_digits))
        )

    def _interval(self, ulp: Fraction) -> Interval:
        number, factor = self.number, self.unit.factor
        # "~" is less precise than rounding: one unit of the last digit to either side.
        reach = ulp if self.qualifier is Qualifier.ABOUT else ulp / 2
        low = Fraction(0) if self.qualifier in _BELOW else max(number - reach, Fraction(0))
        high = None if self.qualifier in _ABOVE else (number + reach) * factor
        return Interval(low * factor, high)

    def same_value(self, other: Quantity) -> bool:
        """True if qualifier, dimension and exact value are the same: ``1,000 MB`` and ``1 GB``."""
        return (self.qualifier, self.dimension, self.value) == (other.qualifier, other.dimension, other.value)

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        if not spec:
            return self.text
        qualifier = self.qualifier.value
        return f"{qualifier}{' ' if qualifier[-1:].isalpha() else ''}{formatted(self.value, self.unit, spec)}"

    def __repr__(self) -> str:
        return f"<Quantity {self.text}>"


def parse(text: str, dimension: Dimension | None = None, table: UnitTable = UNITS) -> Quantity:
    """Parse a printed quantity.

    The form is: an optional ``~``, ``<=``, ``<``, ``>=``, ``>``, ``up to``, ``up-to`` or ``over``; a decimal number,
    optionally with commas as thousands separators or with an exponent from -30 to 30; one space; a unit of ``table``.
    The space may be omitted before the ``x`` of a ratio.

    Args:
        text: The printed text.
        dimension: The expected dimension; None accepts any.
        table: The known units.

    Raises:
        QuantityError: ``malformed``, ``no-unit``, ``unknown-unit`` or ``dimension``.
    """
    if not isinstance(text, str):
        raise not_text(text, dimension)
    return _parse(text, dimension, table)


def parse_or_none(text: str, table: UnitTable = UNITS) -> Quantity | None:
    """A printed quantity of any dimension; ``None`` for another text, without the cost of an explanation."""
    match = PARTS.match(text)
    if match is None or table.get(match[6]) is None:
        return None
    try:
        return parse(text, None, table)
    except QuantityError:
        return None


@functools.lru_cache(maxsize=10_000)  # documents and rules repeat the same texts
def _parse(text: str, dimension: Dimension | None, table: UnitTable) -> Quantity:
    if len(text) > MAX_TEXT:
        raise QuantityError(
            "malformed", f"a quantity has at most {MAX_TEXT} characters, this text has {len(text)}", form(dimension)
        )
    match = PARTS.match(text)
    if match is None:
        raise no_number(text, dimension)
    qualifier, integer, decimals, exponent, space, spelling = match.groups()
    unit = table.get(spelling)
    if unit is None or (space != " " and unit.separator):
        raise no_unit(text, match, dimension, table)
    if dimension is not None and unit.dimension is not dimension:
        counterpart = table.counterpart(unit, dimension)
        number = text[: match.end(5)]
        hint = f"did you mean {number}{counterpart.symbol}?" if counterpart else table.choices(dimension)
        raise QuantityError("dimension", f"{quoted(text)}: {wrong_dimension(unit, dimension)}", hint)
    mantissa = integer.replace(",", "")
    power = int(exponent[1:]) if exponent else 0
    if decimals:
        mantissa += decimals[1:]
        power -= len(decimals) - 1
    significant = mantissa.lstrip("0")
    digits = max(len(significant), 1)
    ulp = _power_of_ten(power)
    return Quantity(
        text=text,
        qualifier=_QUALIFIERS[qualifier.strip()] if qualifier else Qualifier.EXACT,
        number=int(mantissa) * ulp,
        unit=unit,
        ulp=ulp,
        digits=digits,
        min_digits=digits if decimals else max(len(significant.rstrip("0")), 1),
        table=table,
    )


@functools.cache
def _power_of_ten(power: int) -> Fraction:
    return Fraction(10) ** power


def pattern(dimension: Dimension, table: UnitTable = UNITS) -> str:
    """A regular expression for exactly the texts that ``parse`` accepts for the dimension.

    ECMA-262 (JSON Schema) and Python's ``re.search`` interpret it identically. The numbers it matches are bounded so
    that no matching text is longer than ``MAX_TEXT``.
    """
    units: dict[str, list[str]] = {}
    for spelling in table.spellings(dimension):
        unit = table.unit(spelling)
        units.setdefault(" " if unit.separator else " ?", []).append(spelling)
    endings = "|".join(f"{space}(?:{'|'.join(spellings)})" for space, spellings in units.items())
    # Python's "$" also matches before a final newline; the look-ahead excludes it in both languages.
    number = rf"(?:{INTEGER})(?:{FRACTION})?(?:{EXPONENT})?"
    return rf"^(?:{QUALIFIER})?{number}(?:{endings})$(?!\n)"


def choose_unit(value: Fraction | float, dimension: Dimension) -> Unit:
    """The unit to show a computed value in base units in: the largest decimal one in which it is at least 1.

    Raises:
        UsageError: The value is not finite.
    """
    size = abs(_finite(value))
    decimal = (u for u in UNITS if u.dimension is dimension and _is_power_of_ten(u.factor))
    units = sorted(decimal, key=lambda unit: unit.factor)
    fitting = [unit for unit in units if unit.factor <= size]
    if size == 0 or not units:
        return UNITS.unit(dimension.base, dimension)
    return fitting[-1] if fitting else units[0]


def _finite(value: Fraction | float) -> Fraction:
    try:
        return Fraction(value)
    except (OverflowError, ValueError):
        raise UsageError(f"a finite value is expected, not {value}") from None


def _is_power_of_ten(factor: Fraction) -> bool:
    long, short = max(factor.numerator, factor.denominator), min(factor.numerator, factor.denominator)
    return short == 1 and str(long).rstrip("0") == "1"


def significant(value: Fraction | float, digits: int) -> str:
    """A number without unit, rounded to significant digits, as ``22,230``; an exponent is printed from 1e15 on."""
    return f"{float(f'{float(value):.{digits}g}'):,.15g}"


def render(value: Fraction | float, unit: str | Unit, digits: int) -> str:
    """A value in base units as a text in ``unit``: ``render(3.04e15, "TFLOPS", 4)`` is ``"3,040 TFLOPS"``.

    The text has at most ``digits`` significant digits. Halves are rounded up, away from 0; trailing zeros of decimals
    are dropped; very large and very small numbers get an exponent.

    Raises:
        UsageError: ``digits`` below 1, or a value that is not finite.
        QuantityError: ``unknown-unit``.
    """
    if digits < 1:
        raise UsageError(f"at least 1 significant digit is expected, not {digits}")
    if isinstance(unit, str):
        unit = UNITS.unit(unit)
    number = _finite(value) / unit.factor
    if number == 0:
        return f"0{unit.separator}{unit.symbol}"
    exponent = _exponent(number)
    rounded = _round(number, exponent - digits + 1)
    exponent = _exponent(rounded)
    # Also if plain decimals would have more digits than a printed quantity may have.
    scientific = not max(-6, digits - 16) <= exponent < 15 if exponent < 0 else exponent >= 15
    shown = rounded / _power_of_ten(exponent) if scientific else rounded
    places = max(digits - 1 if scientific else digits - 1 - exponent, 0)
    scaled = abs(shown.numerator) * 10**places // shown.denominator
    whole, rest = divmod(scaled, 10**places)
    decimals = f"{rest:0{places}d}".rstrip("0") if places else ""
    sign = "-" if number < 0 else ""
    tail = f"e{exponent}" if scientific else ""
    return f"{sign}{whole:,}{'.' if decimals else ''}{decimals}{tail}{unit.separator}{unit.symbol}"


def formatted(value: Fraction, unit: Unit, spec: str) -> str:
    """A value in base units as a number in ``unit``, in a format for floats such as ``.2f``, followed by the unit.

    Raises:
        QuantityError: ``malformed``, if the format is not one for floats.
    """
    try:
        number = format(float(value / unit.factor), spec)
    except ValueError as error:
        message = f"{spec!r} is not a format for the number of a quantity"
        raise QuantityError("malformed", message, "use a format for floats, such as .2f") from error
    return f"{number}{unit.separator}{unit.symbol}"


def _exponent(number: Fraction) -> int:
    """The power of ten of the first digit: 3 for 3,040, and -1 for 0.8."""
    guess = len(str(abs(number.numerator))) - len(str(number.denominator))
    return guess if abs(number) >= _power_of_ten(guess) else guess - 1


def _round(number: Fraction, power: int) -> Fraction:
    """The number rounded to a multiple of 10**power, halves away from 0."""
    steps = abs(number) / _power_of_ten(power)
    size = (2 * steps.numerator + steps.denominator) // (2 * steps.denominator) * _power_of_ten(power)
    return size if number > 0 else -size
