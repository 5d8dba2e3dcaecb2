"""trnspec.quantities.formula: the tokens that queries and formulas share."""

import pytest

from trnspec.errors import QuantityError
from trnspec.quantities.formula import NUMBER, UNIT, Token, Tokenizer, read_number
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS


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
