"""``trnspec source``: the values that come from a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.complete import documents
from trnspec.cli.help import documented, option
from trnspec.cli.render import emit, format_option, table_options, width
from trnspec.errors import UnknownNameError
from trnspec.graph.citations import Citation, citations
from trnspec.model.document import Node
from trnspec.model.ref import indefinite
from trnspec.model.source import RANKS, Source
from trnspec.text_table import Block, Cell, Column, TextTable, table, wrapped


@documented(
    "source",
    ("trnspec source --rank vendor-chip-page --sort -adopted", "Chip pages of vendors, the most used first:"),
    ("trnspec source neuron-trainium2-2026-08", "All values that one source supports or contradicts:"),
    ("trnspec source neuron-trainium2-2026-08 --adopted --format csv", "The adopted values alone, as CSV:"),
    ("trnspec source --rank third-party --adopted", "Adopted values that are not from the vendor:"),
)
@click.argument("name", required=False, metavar="[ID]", shell_complete=documents("sources"))
@option("--rank RANK", "Catalog", f"Only sources of this rank: {', '.join(RANKS)}.", type=click.Choice(RANKS))
@option("--adopted", "Output", "Print only adopted values, not other claims.")
@table_options
@format_option
@catalog_options
def command(
    name: str | None,
    rank: str | None,
    adopted: bool,  # noqa: FBT001  # click passes it by name
    columns: str | None,
    sort: str | None,
    format_: str,
    **options: Any,
) -> None:
    """Print all values that come from the source ID: adopted values, and claims with their verdicts.

    Without ID, list the sources with date, rank and how many values come from each; with --adopted, all adopted values.
    """
    graph = load_catalog(**options).graph
    sources = [n for n in graph.of(Source) if rank is None or n.spec.rank == rank]
    if name is not None:
        chosen = graph.named(name)
        if not isinstance(chosen.spec, Source):
            raise UnknownNameError(
                f"{chosen.name} is {indefinite(chosen.kind)}, not a source; trnspec source lists the sources"
            )
        sources = [n for n in sources if n is chosen]
    cited = citations(graph, {n.name for n in sources})
    if name is None and not adopted:
        listed = _sources(sources, cited).sorted(sort).selected(columns)
        emit(format_, lambda: [listed, f"{len(sources)} sources."], lambda: listed)
        return
    shown = [c for c in cited if c.verdict == "adopted"] if adopted else cited
    head = [_head(n) for n in sources] if name is not None else []
    emit(
        format_,
        lambda: [*head, *_page(shown, columns, sort, one=name is not None)],
        lambda: (
            table(
                ("source", "document", "kind", "at", "says", "verdict", "where", "reason"),
                [(r.source, r.of, r.kind, r.at, r.says, r.verdict, r.where, r.reason) for r in shown],
            )
            .sorted(sort)
            .selected(columns)
        ),
        lambda: _about(sources, name),
    )


def _about(sources: Sequence[Node[Any]], name: str | None) -> dict[str, Any]:
    if name is None or not sources:
        return {}
    node = sources[0]
    spec = node.spec
    about = {"name": node.name, "title": node.metadata.title, "publisher": spec.publisher, "as_of": spec.as_of}
    about |= {"dating": spec.dating, "rank": spec.rank, "address": spec.address, "version": spec.version}
    # Below a key of its own: at the top level, version is that of the output format.
    return {"source": about}


def _head(node: Node[Any]) -> str:
    spec = node.spec
    dated = spec.as_of if spec.dating == "exact" else f"{spec.as_of}, not before"
    lines = [
        f"{node.name}: {node.metadata.title}",
        wrapped("  publisher  ", f"{spec.publisher} ({spec.standing})", width()),
        f"  date       {dated}",
    ]
    lines += [wrapped("  version    ", spec.version, width())] if spec.version else []
    lines += [wrapped("  address    ", spec.address, width())] if spec.address else []
    lines += [wrapped("  note       ", spec.note, width())] if spec.note else []
    return "\n".join(lines)


def _page(cited: Sequence[Citation], columns: str | None, sort: str | None, *, one: bool) -> list[Block]:
    if not cited:
        return ["No values come from it." if one else "No values are adopted from them."]
    heads = [
        Column("document", wrap=True),
        Column("figure", wrap=True, keep=True),
        Column("says", wrap=True, keep=True),
        Column("verdict" if one else "source", wrap=True, keep=True),
    ]
    rows = [(c.of, c.at, c.says, c.verdict if one else c.source) for c in cited]
    adopted = sum(c.verdict == "adopted" for c in cited)
    shown = table(heads, rows, "--columns").sorted(sort).selected(columns)
    return [shown, f"{adopted:,} adopted values, {len(cited) - adopted:,} other claims."]


def _sources(sources: Sequence[Node[Any]], cited: Sequence[Citation]) -> TextTable:
    columns = [
        Column("source", wrap=True, keep=True),
        Column("date", keep=True),
        Column("rank"),
        Column("adopted", right=True),
        Column("claims", right=True),
    ]
    rows: list[tuple[Cell, ...]] = []
    for node in sources:
        mine = [r for r in cited if r.source == node.name]
        adopted = sum(r.verdict == "adopted" for r in mine)
        rows.append((node.name, node.spec.as_of, node.spec.rank, adopted, len(mine) - adopted))
    return table(columns, rows, "--columns")
