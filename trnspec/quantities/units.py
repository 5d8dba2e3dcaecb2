"""The closed set of units a figure may be printed in, with the dimension of each.

A unit table is immutable: a plugin that needs one more unit makes a new table (``UNITS.with_units(...)``). Factors are
exact fractions, so that 96 GiB and 103,079,215,104 B are the same number.

Prefixes: k M G T P E are powers of 1,000 (SI brochure, 9th edition, table 7); Ki Mi Gi Ti Pi Ei are powers of
1,024 (IEC 80000-13).
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from attrs import field, frozen

from trnspec.errors import QuantityError, UsageError

MAX_SYMBOL = 14
"""Longest symbol of a unit, so that a quantity never exceeds its limit of 64 characters."""

# Letters and slashes only: a digit, a point or a sign could be read as part of the number before it.
_SYMBOL = re.compile(r"[A-Za-zµμ][A-Za-zµμ/]*\Z")


class Dimension(enum.Enum):
    """A physical dimension.

    Attributes:
        word: Its name in messages.
        base: The symbol of its base unit, the unit of ``Quantity.value``.
        example: The symbol of a commonly printed unit, for hints.
    """

    INFORMATION = ("information", "B", "GB")
    BANDWIDTH = ("bandwidth", "B/s", "GB/s")
    FLOP_RATE = ("floating-point rate", "FLOPS", "TFLOPS")
    OP_RATE = ("operation rate", "OPS", "TOPS")
    FREQUENCY = ("frequency", "Hz", "GHz")
    TIME = ("time", "s", "us")
    POWER = ("power", "W", "W")
    ENERGY = ("energy", "J", "J")
    PRICE = ("price", "USD/h", "USD/h")
    RATIO = ("ratio", "x", "x")
    FLOP_PER_CYCLE = ("work per cycle", "FLOP/cycle", "FLOP/cycle")
    INTENSITY = ("arithmetic intensity", "FLOP/B", "FLOP/B")
    IO_RATE = ("I/O rate", "IOPS", "IOPS")

    def __init__(self, word: str, base: str, example: str) -> None:
        self.word = word
        self.base = base
        self.example = example


@frozen
class Unit:
    """One unit; a value in base units is ``number * factor``.

    Attributes:
        symbol: The canonical spelling.
        dimension: Its dimension.
        factor: Its size in base units of the dimension, above 0.
        aliases: Other accepted spellings.

    Raises:
        UsageError: The factor is not above 0, or a spelling is empty, too long, or has characters other than letters and slashes.
    """

    symbol: str
    dimension: Dimension
    factor: Fraction
    aliases: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        # Not a converter: attrs imports inspect for it.
        object.__setattr__(self, "factor", Fraction(self.factor))
        if self.factor <= 0:
            raise UsageError(f"unit {self.symbol!r}: the factor must be above 0, not {self.factor}")
        for spelling in self.spellings:
            if len(spelling) > MAX_SYMBOL or not _SYMBOL.match(spelling):
                raise UsageError(f"unit {spelling!r}: a unit has 1 to {MAX_SYMBOL} letters and slashes, a letter first")

    @property
    def spellings(self) -> tuple[str, ...]:
        """The symbol, then the aliases."""
        return (self.symbol, *self.aliases)

    @property
    def separator(self) -> str:
        """The text between number and unit: empty for a ratio (``6.7x``), else one space."""
        return "" if self.dimension is Dimension.RATIO else " "

    def __str__(self) -> str:
        return self.symbol


# Compared by identity: a table is large, immutable, and used as a key.
@frozen(eq=False, repr=False)
class UnitTable:
    """A closed set of units with distinct spellings.

    Raises:
        UsageError: Two units share a spelling.
    """

    units: tuple[Unit, ...]
    _index: Mapping[str, Unit] = field(init=False)

    def __attrs_post_init__(self) -> None:
        index: dict[str, Unit] = {}
        for unit in self.units:
            for spelling in unit.spellings:
                if spelling in index:
                    raise UsageError(
                        f"unit {spelling!r} is defined twice, as {index[spelling].symbol} and {unit.symbol}"
                    )
                index[spelling] = unit
        object.__setattr__(self, "_index", index)

    def __repr__(self) -> str:
        return f"UnitTable({len(self.units)} units)"

    def __reduce__(self) -> tuple[Any, ...]:
        # A figure unpickled in another process has the table of that process, not a copy.
        return (
            (extended, (self.units[len(UNITS.units) :],))
            if self.units[: len(UNITS.units)] == UNITS.units
            else (
                UnitTable,
                (self.units,),
            )
        )

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)

    def __contains__(self, spelling: object) -> bool:
        return spelling in self._index

    def get(self, spelling: str) -> Unit | None:
        """The unit of that symbol or alias, or None."""
        return self._index.get(spelling)

    def unit(self, spelling: str, dimension: Dimension | None = None) -> Unit:
        """The unit of that symbol or alias.

        Raises:
            QuantityError: ``unknown-unit``, with a hint; or ``dimension``, if the unit has another than the given one.
        """
        unit = self._index.get(spelling)
        if unit is None:
            raise QuantityError("unknown-unit", f'unknown unit "{spelling}"', self.suggest(spelling, dimension))
        if dimension is not None and unit.dimension is not dimension:
            raise QuantityError("dimension", wrong_dimension(unit, dimension), self.choices(dimension))
        return unit

    def with_units(self, *units: Unit) -> UnitTable:
        """A new table with these units added; a unit that is equal to a known one is not added again.

        Raises:
            UsageError: A spelling is already taken.
        """
        return UnitTable((*self.units, *(unit for unit in dict.fromkeys(units) if unit not in self.units)))

    def confusion(self, unit: Unit) -> str:
        """The reason for which a new unit could be confused with a known spelling, or an empty text; an equal unit is accepted."""
        if unit in self.units:
            return ""
        folded = {known.casefold(): (known, other) for known, other in self._index.items()}
        for spelling in unit.spellings:
            known, other = folded.get(spelling.casefold(), ("", None))
            if other is not None and known == spelling:
                return f"the unit {spelling} is already defined: {other.symbol} measures {other.dimension.word}"
            if other is not None:
                return f"the unit {spelling} differs from {known} only in case"
            if symbols := [symbol for symbol in _WORDS.get(spelling, ()) if symbol in self._index]:
                return f"the unit {spelling} is ambiguous: it may be read as {_alternatives(symbols)}"
            if scope := self._scope(spelling):
                return f"the unit {spelling} contains the scope of a figure: {scope}"
        return ""

    def spellings(self, dimension: Dimension | None = None) -> tuple[str, ...]:
        """All symbols of a dimension (or of all), canonical ones first, then aliases."""
        units = [unit for unit in self.units if dimension is None or unit.dimension is dimension]
        return (*(unit.symbol for unit in units), *(alias for unit in units for alias in unit.aliases))

    def counterpart(self, unit: Unit, dimension: Dimension) -> Unit | None:
        """The unit of ``dimension`` most likely meant by ``unit``: GB for GB/s, TOPS for TFLOPS, and vice versa."""
        if {unit.dimension, dimension} not in _OFTEN_MIXED_UP:
            return None
        return next((u for u in self.units if u.dimension is dimension and u.factor == unit.factor), None)

    def choices(self, dimension: Dimension | None) -> str:
        """A hint that lists the units of a dimension, at most eight, the commonly printed one first."""
        if dimension is None:
            return "use a unit such as " + ", ".join(d.example for d in list(Dimension)[:6])
        symbols = [unit.symbol for unit in self.units if unit.dimension is dimension and "bit" not in unit.symbol]
        symbols.sort(key=lambda symbol: symbol != dimension.example)
        more = ", ..." if len(symbols) > 8 else ""
        return f"units of {dimension.word}: {', '.join(symbols[:8])}{more}"

    def suggest(self, spelling: str, dimension: Dimension | None = None) -> str:
        """A hint for an unknown spelling: common mistakes first, then the nearest spellings."""
        if scope := self._scope(spelling):
            return scope
        ambiguous = self._ambiguous(spelling, dimension)
        symbols = ambiguous or self._near(spelling)
        fitting = [symbol for symbol in symbols if dimension is None or self._index[symbol].dimension is dimension]
        # A word for units of another dimension is explained; a spelling that is only near to one is not.
        if not (guesses := fitting or ambiguous):
            return self.choices(dimension)
        return f"did you mean {_alternatives([self._explained(symbol) for symbol in guesses[:3]])}?"

    def correction(self, spelling: str, dimension: Dimension | None) -> str:
        """The one unit that an unknown spelling can mean; empty if there are several, or if it is a guess.

        Case, a missing S and, in a word of four letters or more, one wrong letter or two exchanged ones are corrected,
        but not the first letter, which is mostly a prefix, and not what is divided by: ``USD/s`` is not ``USD/h``, ``Wh``
        is not ``W``, and ``MW`` is not ``mW``.
        """
        if self._scope(spelling):
            return ""
        candidates = self._ambiguous(spelling, dimension) or self._near(spelling)
        symbols = [s for s in candidates if dimension is None or self._index[s].dimension is dimension]
        if len(symbols) != 1 or symbols[0][:1].casefold() != spelling[:1].casefold():
            return ""
        known = self._index[symbols[0]].spellings
        return symbols[0] if spelling in _WORDS or any(_is_slip(spelling, other) for other in known) else ""

    def _scope(self, spelling: str) -> str:
        """The hint for ``GB/s/chip`` and ``GB HBM``: a unit followed by the scope of the figure."""
        for separator in (" ", "/"):
            unit, split, scope = spelling.rpartition(separator)
            while split and unit not in self._index:
                unit, split, more = unit.rpartition(separator)
                scope = more + separator + scope
            if split and scope.strip(" ./").casefold() not in _NO_SCOPE:
                return (
                    f'write "{unit}" and omit "{scope}": the scope of a figure is defined by its path, not by its unit'
                )
        return ""

    def _ambiguous(self, spelling: str, dimension: Dimension | None) -> list[str]:
        """The readings of ``KB``, ``Gb``, ``Mib`` and similar spellings with two or three common meanings.

        A capital B is a byte. A lower-case b is a bit or, by mistake, a byte, and so is the B of ``GBPS``, in which all
        letters are capitals: both readings are given. With the i of a binary prefix the byte is the likelier one. The
        expected dimension decides whether a rate is meant; without one, the spelling does.
        """
        match = re.fullmatch(r"(?:([kmgtpe])(i)?)?(b)(ps|/s|/sec)?", spelling, re.IGNORECASE)
        if match is None:
            return []
        letter, binary, b, ending = (match[1] or "").upper(), match[2], match[3], match[4]
        rated = dimension is Dimension.BANDWIDTH or (ending and dimension is not Dimension.INFORMATION)
        rate = "/s" if rated else ""
        prefix = f"{letter}i" if binary else "k" if letter == "K" else letter
        byte, bit = f"{prefix}B{rate}", f"{prefix}bit{rate}"
        if b == "B":
            readings = [byte] if binary else [byte, f"{letter}iB{rate}"]
            readings += [bit] if ending == "PS" else []
        else:
            readings = [byte, bit] if binary else [bit, f"{prefix}bit/s", byte]
        return [symbol for symbol in dict.fromkeys(readings) if symbol in self._index]

    def _near(self, spelling: str) -> list[str]:
        """Symbols whose spelling differs in case, in a missing S, in a plural, or in one or two letters."""
        if spelling in _WORDS:
            return [symbol for symbol in _WORDS[spelling] if symbol in self._index]
        folded = spelling.casefold()
        if byte := re.fullmatch(r"(k|kilo|m|mega|g|giga|t|tera|p|peta)?(i)?bytes?(/s|/sec|ps)?", folded):
            first = (byte[1] or "")[:1]
            symbol = f"{first.upper() if first != 'k' or byte[2] else first}{byte[2] or ''}B{'/s' if byte[3] else ''}"
            return [symbol] if symbol in self._index else []
        same = {unit.symbol: None for known, unit in self._index.items() if known.casefold() in (folded, folded + "s")}
        if same:
            return list(same)
        import difflib

        near = difflib.get_close_matches(spelling, self._index, n=3, cutoff=0.6)
        return list(dict.fromkeys(self._index[known].symbol for known in near))

    def _explained(self, symbol: str) -> str:
        """The symbol, with its size if two symbols could be confused: ``"KiB" (1,024 B)``."""
        unit = self._index[symbol]
        if unit.dimension not in (Dimension.INFORMATION, Dimension.BANDWIDTH) or unit.factor == 1:
            return f'"{symbol}"'
        size = f"{unit.factor.numerator:,}" if unit.factor.denominator == 1 else str(unit.factor)
        return f'"{symbol}" ({size} {unit.dimension.base})'


_LONG_WORD = 4
"""The letters of a word in which one slip leaves no doubt."""
_OFTEN_MIXED_UP = ({Dimension.INFORMATION, Dimension.BANDWIDTH}, {Dimension.FLOP_RATE, Dimension.OP_RATE})
_NO_SCOPE = {"", *"s sec second seconds ms us ns min h hr hour day month clk cycle b byte".split()}  # noqa: SIM905
"""Words after the slash of a unit that are not the scope of a figure."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "%": ("x",),
    "percent": ("x",),
    "times": ("x",),
    "seconds": ("s",),
    "milliseconds": ("ms",),
    "microseconds": ("us",),
    "nanoseconds": ("ns",),
    "Megabit": ("Mbit/s", "Mbit"),
    "Gigabit": ("Gbit/s", "Gbit"),
    "Terabit": ("Tbit/s", "Tbit"),
    "$/h": ("USD/h",),
    "$/hr": ("USD/h",),
    "$/hour": ("USD/h",),
}


def _alternatives(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _is_slip(written: str, known: str) -> bool:
    """True if a spelling is a known one with another case, without its last S, or with one slip in a long word."""
    if written[:1] in "MP" and known[:1] in "mp":
        return False  # mega and milli, peta and pico
    one, two = written.casefold(), known.casefold()
    if two in (one, one + "s"):
        return True
    (word, _, per), (known_word, _, known_per) = one.partition("/"), two.partition("/")
    if per != known_per or len(known_word) < _LONG_WORD:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, known_word, strict=False)) if a != b), len(known_word))
    rest, expected = word[at:], known_word[at:]
    swapped = expected[1:2] + expected[:1] + expected[2:]
    return rest == swapped or rest[1:] in (expected, expected[1:]) or rest == expected[1:]


def wrong_dimension(unit: Unit, expected: Dimension) -> str:
    """The message for a unit of another dimension than the expected one."""
    return (
        f"{unit.symbol} measures {unit.dimension.word} (base unit {unit.dimension.base}), "
        f"but {expected.word} (base unit {expected.base}) is expected, such as {expected.example}"
    )


def _builtin_units() -> Iterator[Unit]:
    decimal = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
    binary = {f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")}
    names = {"k": "Kilo", "M": "Mega", "G": "Giga", "T": "Tera", "P": "Peta", "E": "Exa"}
    bit = Fraction(1, 8)
    for prefix, size in (decimal | binary).items():
        words = ("byte", "bytes") if prefix == "" else ()
        yield Unit(f"{prefix}B", Dimension.INFORMATION, Fraction(size), words)
        yield Unit(f"{prefix}bit", Dimension.INFORMATION, size * bit)
    for prefix, size in (decimal | binary).items():
        # Without prefix, "b/s" differs from "B/s" in the case of one letter only, so it is not an alias.
        long = (f"{prefix}Byte/s",) if prefix in names else ()
        per_ns = ("B/ns",) if prefix == "G" else ()
        # As Google and AMD print rates of memory and links; "gbps" in lower case stays ambiguous.
        printed = (f"{prefix}Bps",) if prefix in ("M", "G", "T") else ()
        yield Unit(f"{prefix}B/s", Dimension.BANDWIDTH, Fraction(size), (f"{prefix}B/sec", *long, *per_ns, *printed))
        short = () if prefix in binary else ("bps",) if prefix == "" else (f"{prefix}bps", f"{prefix}b/s")
        kilo = ("Kbps",) if prefix == "k" else ()
        yield Unit(f"{prefix}bit/s", Dimension.BANDWIDTH, size * bit, (f"{prefix}bit/sec", *short, *kilo))
    for prefix, size in decimal.items():
        name = (f"{names[prefix]}FLOPS",) if prefix else ()
        yield Unit(f"{prefix}FLOPS", Dimension.FLOP_RATE, Fraction(size), (f"{prefix}FLOP/s", *name))
    for prefix, size in decimal.items():
        yield Unit(f"{prefix}OPS", Dimension.OP_RATE, Fraction(size), (f"{prefix}OP/s",))
    for prefix in ("", "k", "M", "G"):
        yield Unit(f"{prefix}Hz", Dimension.FREQUENCY, Fraction(decimal[prefix]))
    yield Unit("s", Dimension.TIME, Fraction(1), ("sec",))
    yield Unit("ms", Dimension.TIME, Fraction(1, 10**3))
    # The micro sign (U+00B5) and the Greek letter (U+03BC) look the same.
    yield Unit("us", Dimension.TIME, Fraction(1, 10**6), ("µs", "μs"))
    yield Unit("ns", Dimension.TIME, Fraction(1, 10**9))
    for prefix, size in {"": Fraction(1), "k": Fraction(1000), "m": Fraction(1, 1000)}.items():
        yield Unit(f"{prefix}W", Dimension.POWER, size)
    for prefix, size in {"": Fraction(1), "k": Fraction(1000), "p": Fraction(1, 10**12)}.items():
        yield Unit(f"{prefix}J", Dimension.ENERGY, size)
    yield Unit("USD/h", Dimension.PRICE, Fraction(1), ("USD/hr", "USD/hour"))
    yield Unit("x", Dimension.RATIO, Fraction(1))
    yield Unit("IOPS", Dimension.IO_RATE, Fraction(1))
    yield Unit("kIOPS", Dimension.IO_RATE, Fraction(1000))
    yield Unit("FLOP/cycle", Dimension.FLOP_PER_CYCLE, Fraction(1), ("FLOPs/cycle",))
    yield Unit("FLOP/B", Dimension.INTENSITY, Fraction(1), ("FLOPs/B", "FLOP/Byte", "FLOPs/Byte", "Flops/Byte"))


UNITS = UnitTable(tuple(_builtin_units()))
"""The built-in units."""


@functools.lru_cache(maxsize=64)
def extended(units: tuple[Unit, ...]) -> UnitTable:
    """The built-in table with more units; the same object for the same units, so that caches keyed by it stay valid.

    Raises:
        UsageError: A spelling is already taken.
    """
    return UNITS.with_units(*units) if units else UNITS
