"""``trnspec list``: the documents of the catalog, or of one kind with their main figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click
from attrs import evolve

from trnspec.api import registry
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.figure_column import figure_column
from trnspec.catalog.newest import documents_in_order, is_driver_name, newest_first
from trnspec.catalog.system_table import main_figures, system_table, systems
from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.complete import kinds
from trnspec.cli.help import documented
from trnspec.cli.render import emit, fitted, format_option, full_option, table_options, width
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError
from trnspec.graph.facts import words
from trnspec.graph.graph import Graph
from trnspec.graph.quotes import quotes
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.kinds import LISTS
from trnspec.model.link import Link
from trnspec.model.parts import has_parts
from trnspec.model.quotes import Power, Price
from trnspec.model.reflection import value_at
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.plugins.api import Kind
from trnspec.quantities.display import Displayed
from trnspec.text_table import Block, Cell, Column, TextTable, table, wrapped

_FIGURES: dict[type, dict[str, str]] = {
    Core: {"version": "version", "SBUF": "sbuf.capacity", "PSUM": "psum.capacity"},
    Link: {"connects": "connects", "per direction": "bandwidth.per_direction", "both": "bandwidth.both"},
    Cluster: {"chip": "chip", "chips": "chips", "network": "network"},
    Model: {"layers": "layers", "hidden": "hidden", "heads": "attention.heads", "vocabulary": "vocabulary"},
    Power: {"of": "of", "type": "type", "scope": "scope", "power": "power"},
    Source: {"date": "as_of", "rank": "rank"},
}
"""The columns of the list of a kind between name and title: heading and path."""


@documented(
    "list",
    ("trnspec list", "The systems, the newest first, and how many other documents there are:"),
    ("trnspec list chips", "The chips with their main figures:"),
    ("trnspec list servers --sort -memory --columns name,chips,memory", "Servers by memory, largest first:"),
    ("trnspec list chips --as-of 2023-06", "The chips that were known in June 2023:"),
)
@click.argument("kind", required=False, shell_complete=kinds)
@full_option()
@table_options
@format_option
@catalog_options
def command(
    kind: str | None, format_: str, columns: str | None, sort: str | None, *, full: bool, **options: Any
) -> None:
    """List the documents of a KIND with their main figures; without KIND the systems, and how many others there are.

    KIND is chips, servers, ultraservers, cores, links, clusters, prices, power, models, sources, or a kind of a plugin. Figures of
    servers and UltraServers are totals, computed from their chips. Trainium comes first, the newest generation first. CSV
    and JSON have every document, with numbers in base units.
    """
    catalog = load_catalog(**options)
    graph = catalog.graph
    if kind is None:
        nodes = list(graph)
        titles = _titles(graph).sorted(sort).selected(columns)
        whole = full or columns is not None or sort is not None
        emit(format_, lambda: [titles] if whole else _overview(graph, nodes), lambda: titles)
        return
    chosen = _kind(kind)
    nodes = [n for n in graph if _is_kind(n, chosen)]
    listing, units = _kind_table(graph, chosen.spec, nodes)
    listing = listing.sorted(sort).selected(columns)

    def text() -> Sequence[Block]:
        hidden = _hidden(catalog, chosen, options)
        names = sorted(n.name for n in nodes if is_driver_name(graph, n))
        if not names or full or sort is not None:
            return _listed(listing, chosen, hidden, full=full or sort is not None)
        shown, _ = _kind_table(graph, chosen.spec, [n for n in nodes if n.name not in names])
        named = wrapped("", f"Servers named by a driver only: {', '.join(names)}.", width())
        return _listed(shown.selected(columns), chosen, [*hidden, named], full=False)

    emit(
        format_,
        text,
        lambda: listing if format_ == "markdown" else _data(listing, units, in_heads=format_ == "csv"),
        lambda: {"units": units},
    )


def _titles(graph: Graph) -> TextTable:
    columns = [Column("name", keep=True), Column("kind"), Column("title", wrap=True)]
    return table(columns, [(n.name, n.kind, n.metadata.title) for n in documents_in_order(graph)], "--columns")


def _overview(graph: Graph, nodes: Sequence[Node[Any]]) -> Sequence[Block]:
    """The systems on a screen, then the number of other documents by kind."""
    listed = systems(graph, nodes)
    names = {n.name for n in listed}
    folders = {k.name: k.folder for k in registry().kinds.values()}
    rest = [n for n in nodes if n.name not in names]
    counts = Counter("servers named by a driver only" if is_driver_name(graph, n) else folders[n.kind] for n in rest)
    others = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))

    def page(shown: int) -> list[Block]:
        hidden = f"{len(listed) - shown} more systems, " if shown < len(listed) else ""
        last = wrapped("", f"Also {hidden}{others}: trnspec list KIND; --full lists every document.", width())
        return [system_table(graph, listed[:shown]), last]

    return fitted(page, len(listed))


def _listed(listing: TextTable, chosen: Kind, after: Sequence[Block], *, full: bool) -> Sequence[Block]:
    """The documents of a kind, on a screen unless all are wanted; the others are counted."""
    rows = listing.rows
    if not rows:
        return [f"There are no {chosen.folder}.", *after]

    def page(shown: int) -> list[Block]:
        hidden = [f"--full: {len(rows) - shown} more {chosen.folder}"] if shown < len(rows) else []
        return [evolve(listing, rows=rows[:shown]), *hidden, *after]

    return fitted(page, len(rows), full=full)


def _kind(name: str) -> Kind:
    kinds = registry().kinds
    names = {name.lower(): kinds[LISTS.get(k.name, k.name)] for k in kinds.values() for name in (k.folder, k.name)}
    if name.lower() not in names:
        folders = dict.fromkeys(k.folder for k in kinds.values())
        hint = did_you_mean(name.lower(), names) or f"known: {', '.join(folders)}"
        raise UnknownNameError(f"no kind is named {name!r}; {hint}")
    return names[name.lower()]


def _hidden(catalog: Catalog, chosen: Kind, options: Mapping[str, Any]) -> list[Block]:
    """The documents of a kind that were not published by the date of the catalog, each with the reason."""
    if not catalog.unknown:
        return []
    everything = load_catalog(**{**options, "as_of": None}).graph
    names = [name for name in catalog.unknown if name in everything and _is_kind(everything.named(name), chosen)]
    if not names:
        return []
    head = f"hidden, because not published by {catalog.as_of}:"
    size = max(map(len, names))
    return ["\n".join([head, *(wrapped(f"  {name:<{size}}  ", catalog.unknown[name], width()) for name in names)])]


def _is_kind(node: Node[Any], chosen: Kind) -> bool:
    """True for a document of a kind, or of one that a plugin derives from it."""
    return node.kind == chosen.name or chosen.spec in type(node.spec).__mro__[1:]


def _kind_table(graph: Graph, spec: type, nodes: Sequence[Node[Any]]) -> tuple[TextTable, dict[str, str]]:
    """The list of a kind, and the base unit of each column of figures by its name."""
    is_system = has_parts(spec) and not issubclass(spec, Cluster)
    nodes = newest_first(graph, nodes) if is_system else sorted(nodes, key=lambda n: n.name)
    columns = [Column("name", wrap=True, keep=True)]
    cells: list[list[Cell]] = [[n.name for n in nodes]]
    units: dict[str, str] = {}
    values = main_figures(graph, nodes) if is_system else _values(graph, spec, nodes)
    for name, shown in values.items():
        if name != "chips" or not issubclass(spec, Chip):
            column, texts, unit = figure_column(name, shown)
            columns.append(column)
            cells.append(texts)
            units |= {name: unit} if unit else {}
    columns.append(Column("title", wrap=True, importance=-1))
    cells.append([n.metadata.title for n in nodes])
    return table(columns, list(zip(*cells, strict=True)), "--columns"), units


def _values(graph: Graph, spec: type, nodes: Sequence[Node[Any]]) -> dict[str, list[Displayed | Cell]]:
    """Columns of the list of a kind without chips, with the value of each document."""
    if issubclass(spec, Price):
        prices = [_listed_price(graph, n) for n in nodes]
        return {name: [row[name] for row in prices] for name in (prices[0] if prices else ())}
    paths = next((_FIGURES[c] for c in spec.__mro__ if c in _FIGURES), {})
    return {name: [_value(n, at) for n in nodes] for name, at in paths.items()}


def _data(shown: TextTable, units: Mapping[str, str], *, in_heads: bool) -> TextTable:
    """The table with plain names of columns for programs; their base units behind them where ``in_heads``."""

    def name(column: Column) -> str:
        return f"{column.label} [{units[column.label]}]" if in_heads and column.label in units else column.label

    return evolve(shown, columns=tuple(evolve(c, name=name(c)) for c in shown.columns))


def _value(node: Node[Any], at: str) -> Displayed | Cell:
    value = value_at(node.spec, tuple(at.split(".")))
    if isinstance(value, Figure):
        return Displayed.of(value.value)
    return value if value is None or isinstance(value, int) else words(value) if isinstance(value, str) else str(value)


def _listed_price(graph: Graph, node: Node[Any]) -> dict[str, Displayed | Cell]:
    """Columns of a document of prices in a list: server, type, the price that evaluators use, and its region and date."""
    server = graph.find(node.spec.server)
    known = () if server is None else quotes(graph, server, node.spec.type)
    quote = next((q for q in known if q.document is node), None)
    return {
        "server": node.spec.server.name,
        "type": node.spec.type,
        "price": None if quote is None else Displayed.of(quote.figure.value),
        "region": quote.place if quote is not None else "unlisted" if node.spec.status == "unlisted" else None,
        "date": None if quote is None else quote.figure.as_of,
        "regions": len(node.spec.hourly),
    }
