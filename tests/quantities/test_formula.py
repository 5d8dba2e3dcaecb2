"""Errors of quantities in full, as they are shown, and the corrections of misspelt units.

``tests/data/answers/quantities.txt`` has an error of each wording, and after them the number and a checksum of all.  After a change
of a message, ``python -m tests.quantities.test_formula`` writes it; read the difference.
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from tests.support.stored import DATA, sample, sampled
from trnspec.errors import QuantityError
from trnspec.quantities.formula import NUMBER, UNIT, FormulaError, Token, Tokenizer, evaluate, read_number
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS, Dimension, Unit, UnitTable

STORED = "answers/quantities.txt"

TEXTS = [
    # No number.
    "", " ", "GB", "x", " 5 GB", "5 GB ", "  5 GB  ", "-5 GB", "\u22125 GB", " -5 GB", "-.5 GB", "- 5 GB", "+5 GB", "+ 5 GB", "+-5 GB", "+x", ".5 GB", ". 5 GB",
    "\uff15 GB", "\u0665 GB", "\u00b2 GB", "\u22645 GB", "\u2265 5 GB", "\u2248 5 GB", "about 5 GB", "About 5 GB", "approx. 5 GB", "around 5 GB", "at least 5 GB",
    "AT MOST 5 GB", "more than 5 GB", "less than 5 GB", "up to5 GB", "Up to 5 GB", "over  5 GB", "Over 5 GB", "about five GB", "up to", "~", "<", "~~5 GB", "= 5 GB", "five GB",
    "a\x07b", "\u200b5 GB", "$5", "(5 GB)", "\u2264 5 GB/s", "at least five",
    # No unit, spaces.
    "5", "5 ", "~5", "up to 5", "5.5", "1e3", "5GB", "5  GB", "5\tGB", "5\u00a0GB", "5 x", "5  x", "1,024GB/s", "~5GB", "up to 5GB", "1.5e3GB", "5  GB/s", "6.7  x", "5 GB\n", "1e3GB",
    # Numbers.
    "1 000 GB", "1'000 GB", "1_000 GB", "1\u00a0000 GB", "1\u2009000 GB", "1\u202f000 GB", "1\u2019000'000 GB", "1 000 000 GB", "12 3456 GB", "1 00 GB", "up to 1 000 GB", "0 000 GB",
    "1-2 GB", "1\u20132 GB", "1 - 2 GB", "1/2 GB", "1+2 GB", "1\u00b12 GB", "1 \u00d7 2 GB", "1x2 GB", "1 x 2 GB", "1*2 GB", "1...2 GB", "1 to 2 GB", "1 GB to 2 GB", "1..2", "4 4 GB", "4x4", "1 2",
    "1,0 GB", "1,00 GB", "1,0000 GB", "1,000,00 GB", ",5 GB", "1,,000 GB", "0,5 GB", "1.000.000 GB", "1.2.3 GB", "1. GB", "1.x", "1.,5 GB", "007 GB", "00 GB", "0x1F GB", "0b1 GB", "0o7 GB", "0x GB",
    "1e31 GB", "1e-31 GB", "1e GB", "1e+ GB", "1e1.5 GB", "1E99 GB", "1^3 GB", "1'0 GB", "1_0 GB", "1234567890123456789 GB", "123456789012345678 GB", "0.1234567890123456 GB", "0.123456789012345 GB",
    "1,234,567,890,123,456,789 GB", "10-3 GB", "1-GB", "1,GB", "1+", "5e3", "1e30 GB", "1e-30 GB", "1 e3 GB", "5 -", "5 to", "5 tonnes", "5 .. 6",
    # Units.
    "5 KB", "5 Gb", "5 gbps", "5 GBps", "5 GBPS", "5 Mib", "5 kib/s", "5 b", "5 %", "5 percent", "5 $/h", "5 $/hr", "5 FLOP", "5 tflops", "5 GFLOPSS", "5 Gigabit", "5 chips", "5 GB/s/chip",
    "5 GB HBM", "5 GB/s per link", "5 GB per s", "5 GB/sec/chip", "5 GB / s", "5 GB/", "5 W.", "5 GB.", "5 TFLOPS/core/chip", "5 HBM/GB", "5 foo/bar", "5 GiB/seconds", "5 USD/month", "5 USD/h/chip",
    "5 Hz/s", "5 microseconds", "5 milliseconds", "5 Terabit", "5 times", "5 sec", "5 secs", "5 bytes", "5 byte", "5 Bytes", "5 kIOP", "5 Watt", "5 nJ", "5 Tops", "5 tops", "5 XB", "5 GBit", "5 Gbit/S",
    "5 " + "x" * 62, "5 " + "x" * 63, "5 G\u0412", "5 \u00b5s/\u03bcs", "5 a\nb", "5 GB\x00", "5 zzz", "5 /s", "5 Ebps", "5 Eib", "5 pB", "5 ghz", "5 MHZ", "5 mw", "5 USD", "5 kw",
]  # fmt: skip
EXPECTED_DIMENSIONS = [None, Dimension.BANDWIDTH, Dimension.RATIO]
OF_ONE_DIMENSION = [
    ("5 GB", Dimension.BANDWIDTH), ("~5 GB", Dimension.BANDWIDTH), ("up to 1,024 GiB", Dimension.BANDWIDTH), ("5 GB/s", Dimension.INFORMATION), ("5 Gbit", Dimension.BANDWIDTH), ("5 TFLOPS", Dimension.OP_RATE),
    ("5 TOPS", Dimension.FLOP_RATE), ("5 GHz", Dimension.BANDWIDTH), ("5x", Dimension.BANDWIDTH), ("6.7 x", Dimension.POWER), ("5 W", Dimension.RATIO), ("5 GB", Dimension.TIME), ("5 GB", Dimension.PRICE),
    ("5 KB", Dimension.INFORMATION), ("5 Gb", Dimension.INFORMATION), ("5 gb/s", Dimension.INFORMATION), ("5 kOPS", Dimension.FLOP_RATE), ("5 foo", Dimension.INFORMATION), ("5 foo", Dimension.IO_RATE), ("", Dimension.ENERGY),
    ("5", Dimension.FREQUENCY), ("5 TFLOPS per chip", Dimension.FLOP_RATE), ("1 000 TFLOPS", Dimension.FLOP_RATE), ("5 kJ", Dimension.ENERGY), ("5 J", Dimension.POWER),
]  # fmt: skip
VALUES = [
    0, 1, 5.5, 999_999, 999_999.5, 10**6, 10**7, -1, 1e-9, 123456.7890123456, float("nan"), True, None, [], {},
    b"5 GB", "5",
]  # fmt: skip

FORMULAS = [
    "", " ", "2 x", "x", "2 x /", "2 x x 3", "(2", "(2 x 3))", "2)", "()", "2 3", "2 GB 3", "4 links x", "4 links 5", "4 GB links", "4 links/s", "2 / 0", "2 / (0 x 3)", "2 GB / 0 GB", "2 ? 3", "2 x ?", "?",
    "007 x 2", "1,0 x 2", "1e99", "2 - 3", "-2", "~ 5 GB x 2", "~5", "~ 5 x ~2", "2 x 3 +", "+ 2", "2 ++ 3", "2 x GB", "2 GBx", "2 x 3 links per chip", "9" * 400, "1" + " " * 399, "1" + " " * 400, "1 + " * 99 + "(1)",
    "1 + " * 99 + "(10)", "(" * 20 + "1" + ")" * 20, "(" * 21 + "1" + ")" * 21, "2 \u00d7 3", "2*3/4", "2 x 3 / 4 GB", "8 x 128 x 128 x 2 x 2.4 GHz", "27,648 GiB / 36", "2 GB + 3", "2.50 GB + ~2.5 GB", "1e3 x 2", "0 / 2",
    "2 x 3 chips x 4 links + 5 cores", "100 % x 2", "(2 x 3) GB", "5 %", "6.7x x 2", "6.7 x x 2", "2 x2 x 3x", "(1 + 2) x (3 + 4)", "2 Gb", "5 foo bar",
]  # fmt: skip


def fails(text: Any, dimension: Dimension | None) -> list[str] | str:
    try:
        return repr(parse(text, dimension))
    except QuantityError as error:
        return [error.reason, str(error), error.hint]


def value(text: str) -> str:
    try:
        interval = evaluate(text)
    except FormulaError as error:
        return str(error)
    return f"[{interval.low}, {interval.high}]"


def as_data() -> dict[str, Any]:
    """Everything that is shown for the texts above; ``repr`` of what is a quantity."""
    # In full without an expected dimension; with one only where it differs.
    pairs = [(t, d) for t in TEXTS for d in EXPECTED_DIMENSIONS if d is None or fails(t, d) != fails(t, None)]
    tried = [(text, d and d.name, fails(text, d)) for text, d in [*pairs, *OF_ONE_DIMENSION]]
    words = sorted({text.partition(" ")[2] for text in TEXTS if text.startswith("5 ")} - {""})
    return {
        "texts": [list(row) for row in tried],
        "values": [[repr(v), fails(v, None), fails(v, Dimension.POWER)] for v in VALUES[:-1]],
        "formulas": [[text, value(text)] for text in FORMULAS],
        "corrections": [[word, *(UNITS.correction(word, d) for d in (None, *Dimension))] for word in words],
        "suggestions": [[word, *(UNITS.suggest(word, d) for d in (None, Dimension.INFORMATION, Dimension.TIME))] for word in words],
        "units": [[u.symbol, u.dimension.name, str(u.factor), *u.aliases] for u in UNITS],
        "choices": [UNITS.choices(d) for d in (None, *Dimension)],
    }  # fmt: skip


def lines_of(name: str) -> Iterator[str]:
    return (json.dumps(row, ensure_ascii=False) for row in as_data()[name])


NAMES = ("texts", "values", "formulas", "corrections", "suggestions", "units", "choices")


@pytest.mark.parametrize("name", NAMES)
def test_errors_by_wording(name) -> None:
    assert sampled(STORED, name) == sample(name, lines_of(name), 25)


@pytest.mark.parametrize(("count", "more"), [(7, ""), (8, ""), (9, ", ...")])
def test_at_most_eight_units_are_listed(count, more) -> None:
    """The usual one first; what measures bits is left out."""
    names = [*"ABCDEFGHI"[: count - 1], "W"]
    table = UnitTable(tuple(Unit(name, Dimension.POWER, Fraction(1)) for name in [*names, "Wbit"]))

    assert f"units of power: {', '.join(['W', *names[:-1]][:8])}{more}" == table.choices(Dimension.POWER)


SCOPE = 'write "GB" and omit "chip": the scope of a figure is defined by its path, not by its unit'


@pytest.mark.parametrize(
    ("symbol", "aliases", "message"),
    [
        ("GB", (), "the unit GB is already defined: GB measures information"),
        ("Gbps", (), "the unit Gbps is already defined: Gbit/s measures bandwidth"),
        ("gbps", (), "the unit gbps differs from Gbps only in case"),
        ("KB", (), "the unit KB differs from kB only in case"),
        ("percent", (), "the unit percent is ambiguous: it may be read as x"),
        ("Gigabit", (), "the unit Gigabit is ambiguous: it may be read as Gbit/s or Gbit"),
        ("GB/chip", (), f"the unit GB/chip contains the scope of a figure: {SCOPE}"),
        ("GT", ("GTs", "tflops"), "the unit tflops differs from TFLOPS only in case"),
        ("GT", ("seconds",), "the unit seconds is ambiguous: it may be read as s"),
        ("GT", ("GTs",), ""),
        ("GT/s", (), ""),
        ("GB/month", (), ""),
    ],
)  # fmt: skip
def test_plugin_unit_near_a_builtin_unit(symbol, aliases, message) -> None:
    """Its symbol or an alias of it."""
    assert message == UNITS.confusion(Unit(symbol, Dimension.BANDWIDTH, Fraction(7), aliases))


@pytest.mark.parametrize(
    ("written", "unit"),
    [("Gibits", "Gibit"), ("Gibti", "Gibit"), ("Gibt", "Gibit"), ("Gibxt", "Gibit"), ("Gibxxt", ""), ("Gtibi", ""), ("TPOS", "TOPS"), ("GHx", "")],
)  # fmt: skip
def test_one_slip_in_a_long_word(written, unit) -> None:
    """A letter too many, too few, or another one, and two exchanged."""
    table = UnitTable(tuple(map(UNITS.unit, ("Gibit", "s", "TOPS", "GHz"))))

    assert unit == table.correction(written, None)


@pytest.mark.parametrize(
    ("written", "unit"), [("Gibxt/s", "Gibit/s"), ("gibit/s", "Gibit/s"), ("Gibxt/a", ""), ("Gibxt/z", ""), ("Gibxt", "")]
)  # fmt: skip
def test_denominator_of_a_rate_is_not_corrected(written, unit) -> None:
    assert unit == UnitTable((UNITS.unit("Gibit/s"),)).correction(written, None)


def test_a_known_unit_is_not_confused() -> None:
    assert "" == UNITS.confusion(UNITS.unit("GB"))


@pytest.mark.parametrize(
    ("written", "dimension"),
    [
        *(("MW", Dimension.POWER), ("Wh", Dimension.POWER), ("kWh", Dimension.POWER), ("PJ", Dimension.ENERGY)),
        *(("USD/s", Dimension.PRICE), ("USD/year", Dimension.PRICE), ("USD", Dimension.PRICE), ("Ms", Dimension.TIME)),
        *(("GB/h", Dimension.INFORMATION), ("GB/h", Dimension.BANDWIDTH), ("Hz/s", Dimension.FREQUENCY)),
        *(("KB", Dimension.INFORMATION), ("gb", Dimension.INFORMATION), ("TFLPOS", None), ("PFLOPS/s", None)),
    ],
)
def test_ambiguous_units_are_not_corrected(written, dimension) -> None:
    """Another power of ten, another time, another dimension; several units that are as near."""
    assert "" == UNITS.correction(written, dimension)


if __name__ == "__main__":
    lines = [line for name in NAMES for line in sample(name, lines_of(name), 25)]
    (DATA / STORED).write_text("".join(f"{line}\n" for line in lines), "utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("820 G\u0412/s", "(it contains U+0412 (cyrillic capital letter ve))"),
        ("820 GB\u2215s", "(it contains U+2215 (division slash))"),
        ("47\u00b75 TB/s", "(it contains U+00B7 (middle dot))"),
        ("\u0668\u0662\u0660 GB/s", 'write "820 GB/s"'),
        ("\uff18\uff12\uff10 GB/s", 'write "820 GB/s"'),
    ],
)
def test_characters_that_look_like_others_are_named(text, expected) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)

    assert caught.value.hint.endswith(expected)


def error(text: str, at: int) -> Exception:
    return ValueError(at, text[at])


TOKENIZER = Tokenizer({"number": NUMBER, "word": UNIT, "sign": "[+/]"}, lambda word: word in UNITS, error)


def test_tokens_have_spans_and_units() -> None:
    assert list(TOKENIZER(" 1,024 GB/s / 4links+ ")) == [
        Token("number", "1,024", (1, 11), "GB/s"),
        Token("sign", "/", (12, 13)),
        Token("number", "4", (14, 15)),
        Token("word", "links", (15, 20)),
        Token("sign", "+", (20, 21)),
        Token("end", "", (22, 22)),
    ]


def test_a_character_without_a_token_is_an_error_at_its_position() -> None:
    with pytest.raises(ValueError, match=r"\(3, '\?'\)"):
        list(TOKENIZER("1 +?"))


@pytest.mark.parametrize(
    ("number", "unit", "text"), [("1,024", "GB/s", "1,024 GB/s"), ("6.7", "x", "6.7x"), ("16", "", "16x")]
)
def test_numbers(number, unit, text) -> None:
    assert read_number(Token("number", number, (0, 0), unit), UNITS).same_value(parse(text))


@pytest.mark.parametrize(
    ("number", "unit", "word"), [("1,0", "", '"1,0"'), ("1", "GBx", '"GBx"'), ("007", "GB", "007 GB")]
)
def test_non_numeric_text_is_named(number, unit, word) -> None:
    with pytest.raises(QuantityError, match=r".") as raised:
        read_number(Token("number", number, (0, 0), unit), UNITS)

    assert word in str(raised.value)
