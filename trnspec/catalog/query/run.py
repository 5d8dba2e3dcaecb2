"""Queries: a condition on the documents of a kind, with units, and three answers: true, false, not known.

A figure that nobody has published is unknown, not zero: a comparison with it is neither true nor false, nor is the
contrary of that. Only documents of which the condition is true are found. See ``docs/reference/query.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from attrs import field, frozen

from trnspec.catalog.query.check import Check, Column, Test
from trnspec.catalog.query.parser import parse_query, parse_term
from trnspec.catalog.query.tree import Comparison, Condition, Known, Not, Or, Query, QueryError, Quotient, Term
from trnspec.catalog.query.tree import Path as PathTerm
from trnspec.diagnostics import did_you_mean
from trnspec.graph.values import PathValue, Side, Sort
from trnspec.model.parts import CountRange
from trnspec.plugins.builtin_kinds import KINDS
from trnspec.quantities.amount import Amount
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node

T = TypeVar("T")
Value = Side | None


@frozen(eq=False, repr=False)
class Result(Sequence[T], Generic[T]):
    """The documents that a query found, in order, and a table of what was asked of them.

    Attributes:
        rows: The documents.
        columns: The columns by their texts: ``memory.capacity``.
        units: The base unit of each column of figures; nothing for counts and words.
        cells: For each document a value for each column with its text; ``None`` where it is not known.
        undecided: The documents of which nobody can tell whether they fulfil the condition.
    """

    rows: tuple[T, ...]
    columns: tuple[str, ...]
    units: Mapping[str, str]
    cells: tuple[tuple[PathValue | None, ...], ...] = field(repr=False)
    undecided: tuple[T, ...] = ()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Result[T]: ...
    def __getitem__(self, index: int | slice) -> T | Result[T]:
        if isinstance(index, slice):
            return Result(self.rows[index], self.columns, self.units, self.cells[index], self.undecided)
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> tuple[Value, ...]:
        """The values of a column, one for each document: amounts, counts or words, ``None`` where it is not known.

        Raises:
            UnknownNameError: There is no such column; the message lists the nearest.
        """
        from trnspec.errors import UnknownNameError

        if name not in self.columns:
            hint = did_you_mean(name, self.columns)
            raise UnknownNameError(f"the result has no column {name!r}" + (f"; {hint}" if hint else ""))
        index = self.columns.index(name)
        return tuple(None if (cell := row[index]) is None else cell.value for row in self.cells)

    def records(self) -> list[dict[str, Value]]:
        """A mapping from columns to values for each document."""
        return [
            {c: None if cell is None else cell.value for c, cell in zip(self.columns, row, strict=True)}
            for row in self.cells
        ]

    def __repr__(self) -> str:
        rows = [self.columns, *(tuple("-" if c is None else c.text for c in row) for row in self.cells)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.columns))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def query(  # what is asked, of what, and how it is answered
    graph: Graph,
    text: str,
    view: Callable[[Node[Any]], T],
    *,
    columns: Iterable[str] = (),
    sort: Iterable[str] = (),
    absent: Collection[str] = (),
) -> Result[T]:
    """The documents of a graph of which a query is true.

    Args:
        graph: The documents.
        text: ``KIND [where CONDITION]``.
        view: Makes a row of a document.
        columns: What the table shows: paths, or one path over another; by default the name and what is compared.
        sort: What to sort by, the first first; a ``-`` before it turns the order around. What is not known comes last,
            what is equal in the order of names.
        absent: Names that are known though the graph has no such documents.

    Raises:
        QueryError: The query, a column or what to sort by is wrong; the message marks the place.
    """
    read = parse_query(text, graph.units)
    spec = _kind(graph, read)
    check = Check(graph, spec, text, frozenset(absent) | frozenset(graph.broken))
    test = None if read.where is None else _test(read.where, check)
    every: tuple[Node[Any], ...] = graph.of(spec)
    answers = [(n, True if test is None else test(n)) for n in every]
    nodes = [n for n, answer in answers if answer]
    for each in reversed(list(sort)):
        nodes = _sorted(nodes, each, graph, spec)
    shown = _columns(list(columns), read, check)
    return Result(
        tuple(view(n) for n in nodes),
        tuple(c.name for c in shown),
        {c.name: c.holds.base for c in shown if isinstance(c.holds, Dimension)},
        tuple(tuple(c.read(n) for c in shown) for n in nodes),
        tuple(view(n) for n, answer in answers if answer is None),
    )


def kinds(graph: Graph) -> Mapping[str, type[Any]]:
    """The classes of the kinds by the names that a query may call them, in small letters."""
    named = {name: k.spec for k in KINDS for name in (k.name.lower(), k.folder)}
    brought = ((name, n) for n in graph if n.kind.lower() not in named for name in (n.kind.lower(), n.folder) if name)
    return {name: type(n.spec) for name, n in brought} | named


def _kind(graph: Graph, read: Query) -> type[Any]:
    known = kinds(graph)
    found = known.get(read.kind.lower())
    if found is None:
        hint = did_you_mean(read.kind.lower(), known) or f"known: {', '.join(sorted(k.name.lower() for k in KINDS))}"
        raise QueryError(f"no kind is called {read.kind!r}", read.text, read.span, hint)
    return found


# Conditions, with three answers.


def _test(condition: Condition, check: Check) -> Test:
    """The condition as a function of a document: true, false, or ``None`` for not known."""
    if isinstance(condition, Comparison):
        return check.comparison(condition)
    if isinstance(condition, Known):
        return check.known(condition)
    if isinstance(condition, Not):
        inner = _test(condition.inner, check)
        return lambda node: None if (found := inner(node)) is None else not found
    parts = [_test(p, check) for p in condition.parts]
    decisive = isinstance(condition, Or)
    return lambda node: _joined((part(node) for part in parts), decisive=decisive)


def _joined(answers: Iterator[bool | None], *, decisive: bool) -> bool | None:
    """The answer of ``or`` (``decisive`` is true) or ``and`` (false): one decisive part decides, else one unknown."""
    found: bool | None = not decisive
    for answer in answers:
        if answer is decisive:
            return decisive
        found = None if answer is None else found
    return found


# Columns and order.


def _columns(given: list[str], read: Query, check: Check) -> list[Column]:
    if given:
        return [Check(check.graph, check.spec, text, check.absent).column(parse_term(text)) for text in given]
    terms: list[Term] = [PathTerm("name")]
    if read.where is not None:
        terms += _mentioned(read.where)
    made = [check.column(t) for t in dict.fromkeys(terms)]
    return made if len(made) > 1 else [*made, check.column(PathTerm("title"))]


def _mentioned(condition: Condition) -> Iterator[Term]:
    if isinstance(condition, Comparison):
        yield from (o for o in (condition.left, condition.right) if isinstance(o, (PathTerm, Quotient)))
    elif isinstance(condition, Known):
        yield condition.path
    elif isinstance(condition, Not):
        yield from _mentioned(condition.inner)
    else:
        for part in condition.parts:
            yield from _mentioned(part)


def _sorted(nodes: list[Node[Any]], text: str, graph: Graph, spec: type[Any]) -> list[Node[Any]]:
    backwards = text.lstrip().startswith("-")
    # The mark stays in the text as a space, so that a wrong path is marked where it stands.
    term = parse_term(text.replace("-", " ", 1) if backwards else text)
    check = Check(graph, spec, text)
    column = check.column(term)
    if column.holds in (None, Sort.GROUP):
        raise check.refuse(f"{column}: nothing can be sorted by it", term)
    found = [(node, column.read(node)) for node in nodes]
    known = [(node, each.value) for node, each in found if each is not None]
    known.sort(key=lambda pair: _key(pair[1]), reverse=backwards)
    return [node for node, _ in known] + [node for node, each in found if each is None]


def _key(value: Side) -> Any:
    if isinstance(value, CountRange):
        return value.bound
    return value.value if isinstance(value, Amount) else value
