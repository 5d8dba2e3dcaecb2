"""``trnspec audit --stale``: the values whose newest source is old."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from trnspec.checks.reconcile.overview import is_at
from trnspec.cli.render import emit
from trnspec.graph.currency import ages, limit
from trnspec.text_table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trnspec.graph.currency import Age
    from trnspec.graph.graph import Graph
    from trnspec.text_table import Block

_COLUMNS = (
    Column("document", keep=True),
    Column("figure", keep=True),
    Column("value", wrap=True),
    Column("source"),
    Column("date", keep=True),
    Column("months", right=True, keep=True),
    Column("sources", right=True, importance=-2),
)


def report(graph: Graph, documents: Iterable[str], paths: Iterable[str], older_than: str, format_: str) -> None:
    """Print the values whose newest source is older than a limit, oldest first.

    Args:
        graph: The catalog.
        documents: Only these documents; all if empty.
        paths: Only these paths below ``spec`` and those below them; all if empty.
        older_than: The limit, such as ``12mo``.
        format_: One of the formats of :func:`~trnspec.cli.render.emit`.

    Raises:
        UsageError: The limit is not one.
    """
    most, today = limit(older_than), date.today().isoformat()  # noqa: DTZ011  # pages are dated without a time zone
    known = [age for age in ages(graph, today, documents) if is_at(age.at, paths)]
    stale = sorted((age for age in known if age.months > most), key=lambda age: (-age.months, age.name, age.at))
    emit(format_, lambda: _page(stale, len(known), most), lambda: _table(stale), lambda: _about(today, most, known))


def _page(stale: Sequence[Age], known: int, most: int) -> Sequence[Block]:
    summary = f"{len(stale):,} of {known:,} values have no source of the last {most} months."
    return [_table(stale), summary] if stale else [summary]


def _table(stale: Sequence[Age]) -> Table:
    rows = tuple((a.name, a.at, a.value, a.source, a.as_of, a.months, a.sources) for a in stale)
    return Table(_COLUMNS, rows, hint="--format json")


def _about(today: str, most: int, known: Sequence[Age]) -> Mapping[str, Any]:
    return {"as_of": today, "older_than_months": most, "values": len(known)}
