"""``trnspec audit --pages``: the values that the page of their source does not print."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from trnspec.checks.credit import OUTCOMES, credited
from trnspec.checks.reconcile.overview import is_at
from trnspec.cli.render import emit, width
from trnspec.graph.graph import Graph
from trnspec.text_table import Column, plural, table, wrapped

_COLUMNS = (
    Column("document", keep=True),
    Column("figure", keep=True),
    Column("says", wrap=True),
    Column("source", wrap=True, keep=True),
    Column("where", wrap=True),
)


def list_unprinted(graph: Graph, folder: Path, documents: Collection[str], paths: Iterable[str], format_: str) -> bool:
    """Print the values that the pages do not print, and how many they print; true if there are such values.

    Raises:
        UsageError: The folder has no pages.
    """
    found = [c for c in credited(graph, folder) if not documents or c.citation.of in documents]
    found = [c for c in found if is_at(c.citation.at, paths)]
    counts = {outcome: sum(c.printed == outcome for c in found) for outcome in OUTCOMES}
    missing = [c.citation for c in found if c.printed == "no"]
    rows = table(_COLUMNS, [(c.of, c.at, c.says, c.source, c.where) for c in missing], "--format json")
    sources = len({c.citation.source for c in found})
    summary = (
        f"{len(found):,} values of {plural(sources, 'source')}: {counts['line']:,} printed at the "
        f"named place, {counts['page']:,} elsewhere on the page, {counts['no']:,} not printed."
    )
    emit(
        format_,
        lambda: [*([rows] if missing else []), wrapped("", summary, width())],
        lambda: rows,
        lambda: {"values": len(found), "printed": counts},
    )
    return bool(missing)
