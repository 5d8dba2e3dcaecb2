"""``trnspec tree``: what a system is built of, down to the engines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from trnspec.cli.common import catalog_options
from trnspec.cli.complete import documents
from trnspec.cli.names import graph_for
from trnspec.cli.render import emit, format_option, width
from trnspec.errors import UsageError
from trnspec.graph.totals import chips, total
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core, Engine, Engines
from trnspec.model.reflection import ObjectShape, RefShape, leaves, value_at
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.text_table import Block, Cell, Table, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.model.ref import Ref


@frozen
class Part:
    """A part of a system.

    Attributes:
        name: A document, or an engine of a core.
        kind: Its kind, or ``engine``.
        count: How many of it the whole above has; ``None`` where that is not told.
        figures: Its main figures as texts.
        parts: What it is built of.
    """

    name: str
    kind: str
    count: int | None
    figures: tuple[str, ...]
    parts: tuple[Part, ...] = ()


@click.command("tree")
@click.argument("name", shell_complete=documents())
@format_option
@catalog_options
def command(name: str, format_: str, **options: Any) -> None:
    """Print what the system NAME is built of: servers, chips, cores and engines, with counts and main figures."""
    graph = graph_for(name, **options)
    node = graph.named(name)
    if not isinstance(node.spec, (Cluster, UltraServer, Server, Chip, Core)) and not any(_refs(node.spec)):
        raise UsageError(f"{node.kind} {node.name} is not built of parts")
    whole = part(graph, node, None)
    emit(format_, lambda: _page(whole), lambda: _data(whole))


def part(graph: Graph, node: Node[Any], count: int | None) -> Part:
    """A document with all that it is built of."""
    below: tuple[Part, ...] = ()
    if isinstance(node.spec, Core):
        below = tuple(_engines(node.spec.engines))
    else:
        below = tuple(part(graph, graph.node(ref), n) for ref, n in _refs(node.spec))
    return Part(node.name, node.kind, count, tuple(_figures(graph, node)), below)


def _refs(spec: Any) -> Iterator[tuple[Ref[Any], int | None]]:
    if isinstance(spec, Cluster):
        # Servers, where they are told, hold the chips.
        refs = spec.servers or ((spec.chip,) if spec.chip is not None else ())
        yield from ((ref, None) for ref in refs)
    elif isinstance(spec, UltraServer):
        yield spec.servers.server, spec.servers.count
    elif isinstance(spec, Server):
        yield spec.chips.chip, spec.chips.count
    elif isinstance(spec, Chip) and spec.cores is not None:
        yield spec.cores.core, spec.cores.count
    elif not isinstance(spec, (Chip, Core)):
        # A kind of a plugin: whatever it names, as often as the count beside the name says.
        for path, shape, leaf in leaves(spec, ObjectShape(type(spec))):
            if isinstance(shape, RefShape) and not issubclass(shape.target, Source):
                count = value_at(spec, (*path[:-1], "count"))
                yield leaf, count if isinstance(count, int) else None


def _figures(graph: Graph, node: Node[Any]) -> Iterator[str]:
    if isinstance(node.spec, Core):
        for name in ("sbuf", "psum"):
            figure = value_at(node.spec, (name, "capacity"))
            if figure is not None:
                yield f"{name.upper()} {figure}"
        return
    if isinstance(node.spec, (Server, UltraServer)):
        found = chips(graph, node)
        if found is not None and isinstance(node.spec, UltraServer):
            yield f"{found[0]} chips"
        if found is not None and found[1].spec.cores is not None:
            yield f"{found[0] * found[1].spec.cores.count} cores"
    if isinstance(node.spec, Cluster):
        yield from (f"{word} {told}" for told, word in ((node.spec.chips, "chips:"),) if told)
        return
    paths = (("bf16", ("peak", "dense", "bf16")), ("", ("memory", "capacity")), ("", ("memory", "bandwidth")))
    for word, path in paths:
        whole = total(graph, node, ("spec", *path))
        if whole is not None:
            yield f"{word} {whole}".strip()


def _engines(engines: Engines) -> Iterator[Part]:
    for name in ObjectShape(Engines).fields:
        engine: Engine | None = getattr(engines, name)
        if engine is not None:
            yield Part(name, "engine", 1, tuple(_of_engine(engine)))


def _of_engine(engine: Engine) -> Iterator[str]:
    if engine.array is not None:
        yield f"{engine.array.rows} x {engine.array.columns}"
    if engine.processors is not None:
        yield f"{engine.processors} processors"
    for path, _, value in leaves(engine, ObjectShape(Engine)):
        if path in (("clock",), ("throughput",)) or path[:2] == ("peak", "dense"):
            yield f"{path[-1]} {value}" if path[0] == "peak" else str(value)


_BRANCHES = ("├─ ", "└─ ", "│  ", "   ")
_ASCII = ("|- ", "`- ", "|  ", "   ")


def _page(whole: Part) -> list[Block]:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "".join(_BRANCHES).encode(encoding)
        branches = _BRANCHES
    except (UnicodeEncodeError, LookupError):
        branches = _ASCII
    return ["\n".join(_lines(whole, "", "", branches))]


def _lines(whole: Part, head: str, rest: str, branches: Sequence[str]) -> Iterator[str]:
    count = "" if whole.count is None or whole.kind == "engine" else f"{whole.count} x "
    figures = f": {', '.join(whole.figures)}" if whole.figures else ""
    text = f"{count}{whole.name}{figures}"
    room = width() - len(head)
    # What does not fit goes on under the name, with the branches drawn on.
    first, *more = wrapped("", text, room).split("\n")
    yield head + first
    drawn = rest + (branches[2] if whole.parts else branches[3])
    for line in more:
        yield drawn + line
    for index, each in enumerate(whole.parts):
        last = index == len(whole.parts) - 1
        yield from _lines(each, rest + branches[1 if last else 0], rest + branches[3 if last else 2], branches)


def _data(whole: Part) -> Table:
    rows: list[tuple[Cell, ...]] = []

    def walk(each: Part, depth: int, parent: str | None, all_: int | None) -> None:
        # How many of it the whole tree has; not known below a count that is not told.
        count = each.count if depth else 1
        together = None if count is None or all_ is None else all_ * count
        rows.append((depth, each.name, each.kind, parent, count, together, ", ".join(each.figures)))
        for below in each.parts:
            walk(below, depth + 1, each.name, together)

    walk(whole, 0, None, 1)
    return table(["depth", "name", "kind", "in", "count", "all together", "figures"], rows)
