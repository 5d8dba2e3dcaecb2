"""Evaluation of queries in three-valued logic: a condition is true, false or unknown.

A figure that is not published is unknown, not zero: a comparison with it is unknown, and so is its negation. The result
has the documents for which the condition is true. See ``docs/reference/query.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from attrs import evolve, field, frozen

from trnspec.catalog.query.check import Check, QueryColumn, Test
from trnspec.catalog.query.parser import parse_query, parse_term
from trnspec.catalog.query.tree import (
    Comparison,
    Condition,
    Flag,
    Known,
    Not,
    Or,
    PathTerm,
    Query,
    QueryError,
    Quotient,
    Term,
    Word,
)
from trnspec.diagnostics import did_you_mean, unknown_name
from trnspec.errors import library
from trnspec.graph.graph import Graph
from trnspec.graph.totals import BoundedAmount
from trnspec.graph.values import PathValue, Side, Sort
from trnspec.model.document import Node
from trnspec.model.parts import CountRange
from trnspec.plugins.builtin_kinds import IN_GRAPH
from trnspec.quantities.amount import Amount
from trnspec.quantities.units import Dimension
from trnspec.short_repr import abbreviated
from trnspec.text_table import Block, Column, InNotebook, rendered, table

if TYPE_CHECKING:  # an extra
    import pandas as pd


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Value = Side | None


@frozen(eq=False, repr=False)
class Result(Sequence[T_co], InNotebook, Generic[T_co]):
    """The documents that a query found, in order, and a table of their values; ``str(result)`` is the table.

    Attributes:
        rows: The documents.
        columns: The names of the columns: ``memory.capacity``.
        units: The base unit of each column of figures; columns of counts and texts have none.
        cells: For each document the value of each column with its text; ``None`` if it is unknown.
        undecided: The documents for which the condition is unknown.
        hints: Sentences on texts of the condition that no document has, with the nearest that one has.
    """

    rows: tuple[T_co, ...]
    columns: tuple[str, ...]
    units: Mapping[str, str]
    cells: tuple[tuple[PathValue | None, ...], ...] = field(repr=False)
    undecided: tuple[T_co, ...] = ()
    hints: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Result[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Result[T_co]:
        if isinstance(index, slice):
            return evolve(self, rows=self.rows[index], cells=self.cells[index])
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> tuple[Value, ...]:
        """The values of a column, one for each document: amounts, counts or texts, ``None`` if unknown.

        Raises:
            UnknownNameError: There is no such column; the message lists the nearest.
        """
        if name not in self.columns:
            raise unknown_name(f"the result has no column {name!r}", name, self.columns)
        index = self.columns.index(name)
        return tuple(None if (cell := row[index]) is None else cell.value for row in self.cells)

    def records(self) -> list[dict[str, Value]]:
        """For each document a mapping from columns to values: amounts, counts or texts, ``None`` if unknown."""
        return self._records(lambda cell: cell.value)

    def _records(self, read: Callable[[PathValue], Any]) -> list[dict[str, Any]]:
        pairs = (zip(self.columns, row, strict=True) for row in self.cells)
        return [{c: None if cell is None else read(cell) for c, cell in row} for row in pairs]

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame; figures are floats in base units, and ``frame.attrs["units"]`` names these.

        Raises:
            UsageError: pandas is not installed.
        """
        pandas = library("pandas")
        frame: pd.DataFrame = pandas.DataFrame(self._records(_in_frame), columns=list(self.columns))
        frame.attrs["units"] = dict(self.units)
        return frame

    def _sections(self) -> Iterator[tuple[str, Block]]:
        values = [[cell.value for row in self.cells if (cell := row[i])] for i in range(len(self.columns))]
        numbers = [any(isinstance(value, (Amount, int)) for value in column) for column in values]
        columns = [Column(name, right=right) for name, right in zip(self.columns, numbers, strict=True)]
        yield "", table(columns, [tuple(None if cell is None else cell.text for cell in row) for row in self.cells])
        if self.undecided:
            yield "", f"unknown for: {', '.join(getattr(row, 'name', str(row)) for row in self.undecided)}"
        yield from (("", hint) for hint in self.hints)

    def __repr__(self) -> str:
        names = ", ".join(getattr(row, "name", str(row)) for row in self.rows)
        undecided = f", {len(self.undecided)} undecided" if self.undecided else ""
        return abbreviated(f"<Result: {len(self)} documents{undecided}: {names}>")

    def __str__(self) -> str:
        rows = [tuple(None if cell is None else cell.text for cell in row) for row in self.cells]
        return rendered([table(self.columns, rows)], sys.maxsize)


def query(
    graph: Graph,
    text: str,
    view: Callable[[Node[Any]], T],
    *,
    columns: Iterable[str] = (),
    sort: Iterable[str] = (),
    absent: Collection[str] = (),
) -> Result[T]:
    """The documents of a graph for which a query is true.

    Args:
        graph: The documents.
        text: ``KIND [where CONDITION]``.
        view: Makes a row of a document.
        columns: The columns: paths, or one path over another; by default the name and the compared paths.
        sort: The sort keys, the most significant first; a leading ``-`` means descending. Unknown values come last,
            equal ones in the order of names.
        absent: Names that may be compared with although the graph has no such documents.

    Raises:
        QueryError: The query, a column or a sort key is invalid; the message marks the position.
    """
    parsed = parse_query(text, graph.units)
    spec = _kind(graph, parsed)
    check = Check(graph, spec, text, frozenset(absent) | frozenset(graph.broken))
    test = None if parsed.where is None else _test(parsed.where, check)
    documents: tuple[Node[Any], ...] = graph.of(spec)
    answers = [(n, True if test is None else test(n)) for n in documents]
    nodes = [n for n, answer in answers if answer]
    for key in reversed(list(sort)):
        nodes = _sorted(nodes, key, graph, spec)
    shown = _columns(list(columns), parsed, check)
    return Result(
        tuple(view(n) for n in nodes),
        tuple(c.name for c in shown),
        {c.name: c.holds.base for c in shown if isinstance(c.holds, Dimension)},
        tuple(tuple(c.read(n) for c in shown) for n in nodes),
        tuple(view(n) for n, answer in answers if answer is None),
        () if parsed.where is None else tuple(dict.fromkeys(_hints(parsed.where, check))),
    )


def kinds(graph: Graph) -> Mapping[str, type[Any]]:
    """The classes of the kinds by the names that queries accept, in lower case."""
    named = {name: k.spec for k in IN_GRAPH for name in (k.name.lower(), k.folder)}
    added = ((name, n) for n in graph if n.kind.lower() not in named for name in (n.kind.lower(), n.folder) if name)
    return {name: type(n.spec) for name, n in added} | named


def _kind(graph: Graph, query: Query) -> type[Any]:
    known = kinds(graph)
    spec = known.get(query.kind.lower())
    if spec is None:
        hint = (
            did_you_mean(query.kind.lower(), known) or f"known: {', '.join(sorted(k.name.lower() for k in IN_GRAPH))}"
        )
        raise QueryError(f"no kind is named {query.kind!r}", query.text, query.span, hint)
    return spec


# Conditions in three-valued logic.


def _test(condition: Condition, check: Check) -> Test:
    """The condition as a function of a document: true, false, or ``None`` for unknown."""
    if isinstance(condition, Comparison):
        return check.comparison(condition)
    if isinstance(condition, Known):
        return check.known(condition)
    assert not isinstance(condition, Flag), "queries of documents have no truth values of their own"
    if isinstance(condition, Not):
        inner = _test(condition.inner, check)
        return lambda node: None if (answer := inner(node)) is None else not answer
    parts = [_test(p, check) for p in condition.parts]
    decisive = isinstance(condition, Or)
    return lambda node: _joined((part(node) for part in parts), decisive=decisive)


def _joined(answers: Iterator[bool | None], *, decisive: bool) -> bool | None:
    """The value of ``or`` (``decisive`` is true) or ``and`` (false): a decisive part decides, else an unknown one."""
    joined: bool | None = not decisive
    for answer in answers:
        if answer is decisive:
            return decisive
        joined = None if answer is None else joined
    return joined


# Columns and order.


def _columns(given: list[str], query: Query, check: Check) -> list[QueryColumn]:
    if given:
        return [Check(check.graph, check.spec, text, check.absent).column(parse_term(text)) for text in given]
    terms: list[Term] = [PathTerm("name")]
    if query.where is not None:
        terms += _mentioned(query.where, check)
    columns = [check.column(t) for t in dict.fromkeys(terms)]
    return columns if len(columns) > 1 else [*columns, check.column(PathTerm("title"))]


def _mentioned(condition: Condition, check: Check) -> Iterator[Term]:
    for leaf in _leaves(condition):
        if isinstance(leaf, Comparison):
            sides = leaf.left, check.with_text(leaf).right
            yield from (side for side in sides if isinstance(side, (PathTerm, Quotient)))
        else:
            yield leaf.path


def _leaves(condition: Condition) -> Iterator[Comparison | Known | Flag]:
    """The comparisons and the other parts of a condition that have no parts."""
    if isinstance(condition, (Comparison, Known, Flag)):
        yield condition
    else:
        for part in (condition.inner,) if isinstance(condition, Not) else condition.parts:
            yield from _leaves(part)


def _hints(condition: Condition, check: Check) -> Iterator[str]:
    """A sentence for each text that is compared with a path, but that no document has there."""
    for leaf in _leaves(condition):
        comparison = check.with_text(leaf) if isinstance(leaf, Comparison) else None
        if comparison is None or not isinstance(comparison.left, PathTerm) or not isinstance(comparison.right, Word):
            continue
        column, word = check.column(comparison.left), comparison.right
        if column.holds in (Sort.WORD, Sort.WORDS) and not column.words and column.target is None:
            cells = [str(cell.value) for n in check.graph.of(check.spec) if (cell := column.read(n)) is not None]
            known = {each for cell in cells for each in (cell.split(", ") if column.holds is Sort.WORDS else [cell])}
            if word.text not in known and (hint := did_you_mean(word.text, sorted(known))):
                yield f"no {check.spec.__name__} has {word} at {column.name}; {hint}"


def _sorted(nodes: list[Node[Any]], text: str, graph: Graph, spec: type[Any]) -> list[Node[Any]]:
    descending = text.lstrip().startswith("-")
    # The sign is replaced by a space, so that the positions in error messages are those of the text.
    term = parse_term(text.replace("-", " ", 1) if descending else text)
    check = Check(graph, spec, text)
    column = check.column(term)
    if column.holds in (None, Sort.GROUP):
        raise check.refuse(f"{column}: it cannot be a sort key", term)
    cells = [(node, column.read(node)) for node in nodes]
    known = [(node, cell.value) for node, cell in cells if cell is not None]
    known.sort(key=lambda pair: _key(pair[1]), reverse=descending)
    return [node for node, _ in known] + [node for node, cell in cells if cell is None]


def _in_frame(cell: PathValue) -> float | int | str | None:
    """A value in a column of a data frame, which has no place for a bound."""
    if isinstance(cell.value, (BoundedAmount, CountRange)):
        return None
    return float(cell.value) if isinstance(cell.value, (Amount, Fraction)) else cell.value


def _key(value: Side) -> Any:
    if isinstance(value, CountRange):
        return value.bound
    return value.value if isinstance(value, Amount) else value
