"""``trnspec source``: what rests on a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click
from attrs import frozen

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.names import completer
from trnspec.cli.render import Block, Cell, Column, Table, emit, format_option, table, wrapped
from trnspec.errors import UnknownNameError
from trnspec.graph.facts import facts
from trnspec.model.source import Rank, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@frozen
class Resting:
    """Something that rests on a source: what is adopted from it, or what it claims of a figure.

    Attributes:
        source: The source.
        of: The document.
        kind: Its kind.
        at: Where in it.
        says: As printed.
        verdict: ``adopted``, or what was decided about the claim.
        where: The place in the source.
        reason: Why that was decided.
    """

    source: str
    of: str
    kind: str
    at: str
    says: str
    verdict: str
    where: str = ""
    reason: str = ""


@click.command("source")
@click.argument("name", required=False, metavar="[ID]", shell_complete=completer("sources"))
@click.option("--rank", type=click.Choice(get_args(Rank)), help="Only sources of this rank.")
@click.option(
    "--adopted", is_flag=True, help="Print what is adopted from the sources, and nothing they claim beside it."
)
@format_option
@catalog_options
def command(name: str | None, rank: str | None, adopted: bool, format_: str, **options: Any) -> None:  # noqa: FBT001  # click passes it by name
    """Print everything that rests on the source ID: what is adopted from it, and its claims with their verdicts.

    Without ID, list the sources with date, rank and how much rests on each; with --adopted, what is adopted from any.
    """
    graph = load_catalog(**options).graph
    sources = [n for n in graph.of(Source) if rank is None or n.spec.rank == rank]
    if name is not None:
        chosen = graph.named(name)
        if not isinstance(chosen.spec, Source):
            raise UnknownNameError(f"{chosen.name} is a {chosen.kind}, not a source; trnspec source lists the sources")
        sources = [n for n in sources if n is chosen]
    found = resting(graph, {n.name for n in sources})
    if name is None and not adopted:
        made = _sources(sources, found)
        emit(format_, lambda: [made, f"{len(sources)} sources."], lambda: made)
        return
    shown = [r for r in found if r.verdict == "adopted"] if adopted else found
    head = [_head(n) for n in sources] if name is not None else []
    emit(
        format_,
        lambda: [*head, *_page(shown, one=name is not None)],
        lambda: _data(shown),
        lambda: _about(sources, name),
    )


def resting(graph: Graph, sources: set[str]) -> list[Resting]:
    """Everything that rests on some sources, document by document."""
    found: list[Resting] = []
    for node in sorted(graph, key=lambda n: (n.kind, n.name)):
        # What a document says of a source itself rests on nothing.
        if isinstance(node.spec, Source):
            continue
        for fact in facts(graph, node):
            place = (node.name, node.kind, fact.at)
            if fact.text is not None and _own(graph, fact.source) in sources:
                source = _own(graph, fact.source)
                found.append(Resting(source, *place, fact.text, fact.verdict, fact.where, fact.reason))
            found += [
                Resting(_own(graph, r.source), *place, r.says, r.verdict, r.where, r.reason)
                for r in fact.conflicting
                if _own(graph, r.source) in sources
            ]
    return found


def _own(graph: Graph, name: str) -> str:
    """The name of a source that may be cited by an alias."""
    return graph.aliases.get(name, name)


def _about(sources: Sequence[Node[Any]], name: str | None) -> dict[str, Any]:
    if name is None or not sources:
        return {}
    node = sources[0]
    spec = node.spec
    about = {"source": node.name, "title": node.metadata.title, "publisher": spec.publisher, "as_of": spec.as_of}
    return {**about, "dating": spec.dating, "rank": spec.rank, "address": spec.address, "version": spec.version}


def _head(node: Node[Any]) -> str:
    spec = node.spec
    dated = spec.as_of if spec.dating == "exact" else f"{spec.as_of}, not before"
    lines = [
        f"{node.name}: {node.metadata.title}",
        wrapped("  publisher  ", f"{spec.publisher} ({spec.rank})"),
        f"  date       {dated}",
    ]
    lines += [wrapped("  version    ", spec.version)] if spec.version else []
    lines += [wrapped("  address    ", spec.address)] if spec.address else []
    lines += [wrapped("  note       ", spec.note)] if spec.note else []
    return "\n".join(lines)


def _page(found: Sequence[Resting], *, one: bool) -> list[Block]:
    if not found:
        return ["Nothing rests on it." if one else "Nothing is adopted from them."]
    columns = [
        Column("document", fold=True),
        Column("figure", fold=True, keep=True),
        Column("says", fold=True, keep=True),
        Column("verdict" if one else "source", fold=True, keep=True),
    ]
    rows = [(r.of, r.at, r.says, r.verdict if one else r.source) for r in found]
    adopted = sum(r.verdict == "adopted" for r in found)
    return [table(columns, rows), f"{adopted} adopted, {len(found) - adopted} claimed beside what is adopted."]


def _data(found: Iterable[Resting]) -> Table:
    names = ("source", "document", "kind", "at", "says", "verdict", "where", "reason")
    return table(names, [(r.source, r.of, r.kind, r.at, r.says, r.verdict, r.where, r.reason) for r in found])


def _sources(sources: Sequence[Node[Any]], found: Sequence[Resting]) -> Table:
    columns = [
        Column("source", fold=True, keep=True),
        Column("date", keep=True),
        Column("rank"),
        Column("adopted", right=True),
        Column("claims", right=True),
    ]
    rows: list[tuple[Cell, ...]] = []
    for node in sources:
        mine = [r for r in found if r.source == node.name]
        adopted = sum(r.verdict == "adopted" for r in mine)
        rows.append((node.name, node.spec.as_of, node.spec.rank, adopted, len(mine) - adopted))
    return table(columns, rows)
