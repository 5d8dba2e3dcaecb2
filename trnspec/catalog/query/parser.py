"""The query language as text: what is written becomes a tree.

Which paths and kinds there are is not known here; ``docs/reference/query.md`` tells the whole grammar.
"""

from __future__ import annotations

import re

from trnspec.catalog.query.tree import (
    OPERATORS,
    And,
    Comparison,
    Condition,
    Known,
    Measure,
    Not,
    Number,
    Operand,
    Or,
    Path,
    Query,
    QueryError,
    Quotient,
    Term,
    Word,
)
from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.tokens import NUMBER, Token, Tokenizer, read_number
from trnspec.quantities.units import UNITS, UnitTable

MAX_TEXT = 4_000
"""Longest query that is looked at."""

MAX_DEPTH = 100
"""How deep brackets and ``not`` may be nested."""

KEYWORDS = ("where", "and", "or", "not", "known", "unknown")

_HINTS = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or != between two values",
    "[": "brackets are round",
    "{": "brackets are round",
    "-": "there are no negative figures, and nothing is subtracted",
    "*": "one path may be divided by another; there is no other arithmetic",
    "+": "one path may be divided by another; there is no other arithmetic",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write !=",
    "≈": "write ~",
    "“": 'words stand in straight quotes, "so"',
    "‘": 'words stand in straight quotes, "so"',
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


class _Reader:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, units: UnitTable = UNITS) -> None:
        self.text = text
        self.units = units
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
        found = _keyword(self.now) == keyword
        self.at += found
        return found

    def refuse(self, message: str, token: Token, hint: str = "") -> QueryError:
        return QueryError(message, self.text, token.span, hint)

    def expected(self, what: str, hint: str = "") -> QueryError:
        token = self.now
        got = "the query ends" if token.kind == "end" else f"{self.text[slice(*token.span)]!r} stands"
        return self.refuse(f"{what} is expected where {got}", token, hint)

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
                raise self.expected("'where' or the end")
            where = self.any_of()
            self.finish("'and', 'or' or the end", self.after())
        return Query(kind.text, where, self.text, kind.span)

    def after(self) -> str:
        """The hint for what stands where a condition has ended."""
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
            raise self.refuse(f"brackets and 'not' are nested more than {MAX_DEPTH} deep", self.now)
        made = self._one()
        self.depth -= 1
        return made

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
                    raise self.refuse("the bracket is not closed", opened)
                raise self.expected("')', 'and' or 'or'", self.after())
            self.take()
            return inner
        left = self.operand()
        if self.now.text not in OPERATORS or self.now.kind != "sign":
            hint = "ask for what is known with: known PATH" if isinstance(left, Path) else self.after()
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

    def measure(self, token: Token) -> Measure | Number:
        try:
            quantity = read_number(token, self.units)
        except QuantityError as error:
            raise self.refuse(str(error), token, error.hint) from error
        return Measure(quantity, token.span) if token.unit else Number(token.text, token.span)

    def term(self) -> Term:
        top = self.path()
        if self.now.text != "/" or self.now.kind != "sign":
            return top
        self.take()
        bottom = self.path()
        return Quotient(top, bottom, (top.span[0], bottom.span[1]))

    def path(self) -> Path:
        if self.now.kind != "path" or _keyword(self.now):
            raise self.expected("a path such as memory.capacity, or a value")
        token = self.take()
        return Path(token.text, token.span)


def parse_query(text: str, units: UnitTable = UNITS) -> Query:
    """Read a query whose figures are written in the units of a table.

    Raises:
        QueryError: It does not follow the grammar; the message marks the place.
        UsageError: It is longer than a query may be.
    """
    return _Reader(text, units).query()


def parse_term(text: str) -> Term:
    """Read one path, or one path over another: a column, or what to sort by.

    Raises:
        QueryError: It is something else.
        UsageError: It is longer than a query may be.
    """
    reader = _Reader(text)
    made = reader.term()
    reader.finish("the end", "a column is a path, or one path over another")
    return made
