"""Parser of the query language: from a text to its AST, without knowledge of kinds and paths.

The grammar is documented in ``docs/reference/query.md``.
"""

from __future__ import annotations

import re
from decimal import Decimal

from trnspec.catalog.query.tree import (
    OPERATORS,
    And,
    Comparison,
    Condition,
    Flag,
    Known,
    Measure,
    Not,
    NumberLiteral,
    Operand,
    Or,
    PathTerm,
    Query,
    QueryError,
    Quotient,
    Term,
    Word,
)
from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.formula import NUMBER, Token, Tokenizer, read_number
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS, UnitTable

MAX_TEXT = 4_000
"""Longest accepted query, in characters."""

MAX_DEPTH = 100
"""The deepest accepted nesting of parentheses and ``not``."""

KEYWORDS = ("where", "and", "or", "not", "known", "unknown")

_HINTS = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or != between two values",
    "[": "use parentheses",
    "{": "use parentheses",
    "-": "there are no negative figures and no subtraction",
    "*": "one path may be divided by another; there is no other arithmetic",
    "+": "one path may be divided by another; there is no other arithmetic",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write !=",
    "≈": "write ~",
    "“": 'use straight quotes, "text"',
    "‘": 'use straight quotes, "text"',
}


def _no_token(text: str, at: int) -> QueryError:
    """The error for a character at which no token begins."""
    if text[at] in "\"'":
        return QueryError("the quote is not closed", text, (at, len(text)))
    return QueryError(f"{text[at]!r} means nothing here", text, (at, at + 1), _HINTS.get(text[at], ""))


_TOKENIZER = Tokenizer(
    {
        "word": r"""(?P<quote>["'])(?:(?!(?P=quote))[^\\]|\\.)*(?P=quote)""",
        "number": NUMBER,
        "path": r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*",
        "sign": r"[!<>=]=|[<>=~/()]",
    },
    is_unit=lambda word: word.lower() not in KEYWORDS,
    error=_no_token,
)


def _tokens(text: str) -> list[Token]:
    if len(text) > MAX_TEXT:
        raise UsageError(f"a query has at most {MAX_TEXT:,} characters, this one has {len(text):,}")
    return list(_TOKENIZER(text))


def _keyword(token: Token) -> str:
    word = token.text.lower()
    return word if token.kind == "path" and word in KEYWORDS else ""


class _QueryParser:
    """A recursive-descent parser of the tokens of one text."""

    def __init__(self, text: str, units: UnitTable = UNITS, *, flags: bool = False) -> None:
        self.text = text
        self.units = units
        self.flags = flags
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.now
        self.at += token.kind != "end"
        return token

    def skip(self, keyword: str) -> bool:
        skipped = _keyword(self.now) == keyword
        self.at += skipped
        return skipped

    def refuse(self, message: str, token: Token, hint: str = "") -> QueryError:
        return QueryError(message, self.text, token.span, hint)

    def expected(self, what: str, hint: str = "") -> QueryError:
        token = self.now
        got = "the end of the query" if token.kind == "end" else repr(self.text[slice(*token.span)])
        return self.refuse(f"{what} is expected, not {got}", token, hint)

    def finish(self, what: str, hint: str = "") -> None:
        if self.now.kind != "end":
            raise self.expected(what, hint)

    def query(self) -> Query:
        if self.now.kind != "path" or _keyword(self.now):
            raise self.expected("a kind", "such as: server where memory.capacity > 1 TiB")
        kind = self.take()
        where = None
        if self.now.kind != "end":
            if not self.skip("where"):
                raise self.expected(
                    "'where' or the end", "a query is KIND where CONDITION: chip where memory.capacity > 90 GiB"
                )
            where = self.any_of()
            self.finish("'and', 'or' or the end", self.after())
        return Query(kind.text, where, self.text, kind.span)

    def after(self) -> str:
        """The hint for a token after the end of a condition."""
        if self.now.text in OPERATORS:
            return "a comparison has two sides; write 'and' between two comparisons"
        if self.now.text == "/":
            return "only a path can be divided, and only by one other path"
        return ""

    def any_of(self) -> Condition:
        parts = [self.all_of()]
        while self.skip("or"):
            parts.append(self.all_of())
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def all_of(self) -> Condition:
        parts = [self.one()]
        while self.skip("and"):
            parts.append(self.one())
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def one(self) -> Condition:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.refuse(f"parentheses and 'not' are nested more than {MAX_DEPTH} deep", self.now)
        condition = self._one()
        self.depth -= 1
        return condition

    def _one(self) -> Condition:
        if self.skip("not"):
            return Not(self.one())
        if _keyword(self.now) in ("known", "unknown"):
            return Known(unknown=_keyword(self.take()) == "unknown", path=self.path())
        if self.now.text == "(" and self.now.kind == "sign":
            opened = self.take()
            inner = self.any_of()
            if self.now.text != ")":
                if self.now.kind == "end":
                    raise self.refuse("the parenthesis is not closed", opened)
                raise self.expected("')', 'and' or 'or'", self.after())
            self.take()
            return inner
        left = self.operand()
        if (
            self.flags
            and isinstance(left, PathTerm)
            and (self.now.kind == "end" or _keyword(self.now) or self.now.text == ")")
        ):
            return Flag(left)
        if self.now.text not in OPERATORS or self.now.kind != "sign":
            hint = "to test whether a value is known, write: known PATH" if isinstance(left, PathTerm) else self.after()
            raise self.expected("a comparison such as >=", hint)
        operator = OPERATORS[self.take().text]
        right = self.operand()
        return Comparison(left, operator, right, (left.span[0], right.span[1]))

    def operand(self) -> Operand:
        token = self.now
        if token.kind == "word":
            self.take()
            return Word(re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL), token.span)
        if token.kind == "number":
            return self.measure(self.take())
        return self.term()

    def measure(self, token: Token) -> Measure | NumberLiteral:
        try:
            # Figures have no percentages; measures of evaluations have.
            percent = self.flags and token.unit == "%"
            quantity = parse(f"{Decimal(token.text) / 100:f}x") if percent else read_number(token, self.units)
        except QuantityError as error:
            raise self.refuse(str(error), token, error.hint) from error
        return Measure(quantity, token.span) if token.unit else NumberLiteral(token.text, token.span)

    def term(self) -> Term:
        top = self.path()
        if self.now.text != "/" or self.now.kind != "sign":
            return top
        self.take()
        bottom = self.path()
        return Quotient(top, bottom, (top.span[0], bottom.span[1]))

    def path(self) -> PathTerm:
        if self.now.kind != "path" or _keyword(self.now):
            raise self.expected("a path such as memory.capacity, or a value")
        token = self.take()
        return PathTerm(token.text, token.span)


def parse_query(text: str, units: UnitTable = UNITS) -> Query:
    """Parse a query whose quantities have units of a table.

    Raises:
        QueryError: It does not follow the grammar; the message marks the position.
        UsageError: It is longer than a query may be.
    """
    return _QueryParser(text, units).query()


def parse_condition(text: str, units: UnitTable = UNITS) -> Condition:
    """Parse a condition without a kind, in which a path alone is one that is true or false.

    Raises:
        QueryError: It does not follow the grammar; the message marks the position.
        UsageError: It is longer than a query may be.
    """
    reader = _QueryParser(text, units, flags=True)
    condition = reader.any_of()
    reader.finish("'and', 'or' or the end", reader.after())
    return condition


def parse_term(text: str) -> Term:
    """Parse one path, or one path over another: a column or a sort key.

    Raises:
        QueryError: It is something else.
        UsageError: It is longer than a query may be.
    """
    reader = _QueryParser(text)
    term = reader.term()
    reader.finish("the end", "a column is a path, or one path over another")
    return term
