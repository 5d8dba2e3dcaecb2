"""``trnspec tree``: the parts of a system, down to the engines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click
from attrs import frozen

from trnspec.cli.common import catalog_options, graph_for
from trnspec.cli.complete import documents
from trnspec.cli.help import documented
from trnspec.cli.render import emit, format_option, width
from trnspec.errors import UsageError
from trnspec.graph import composition
from trnspec.graph.graph import Graph
from trnspec.graph.totals import sums, total
from trnspec.model.chip import Chip
from trnspec.model.core import Core, Engine, Engines
from trnspec.model.document import Node
from trnspec.model.parts import PartCount, has_parts
from trnspec.model.reflection import ObjectShape, leaves, value_at
from trnspec.text_table import Block, Cell, TextTable, table, wrapped


@frozen
class TreePart:
    """A part of a system.

    Attributes:
        name: A document, or an engine of a core.
        kind: Its kind, or ``engine``.
        count: How many of it the part above has; ``None`` where that is not known.
        figures: Its main figures as text.
        parts: Its parts.
    """

    name: str
    kind: str
    count: PartCount | None
    figures: tuple[str, ...]
    parts: tuple[TreePart, ...] = ()


@documented(
    "tree",
    ("trnspec tree trn2-ultraserver", "The parts of an UltraServer:"),
    ("trnspec tree trainium2", "The engines of a chip:"),
    ("trnspec tree trn2.48xlarge --format csv", "A row for each part, for programs:"),
    ("trnspec tree trn1.32xlarge --edition 2026.11", "The parts in an edition of the catalog:"),
)
@click.argument("name", shell_complete=documents())
@format_option
@catalog_options
def command(name: str, format_: str, **options: Any) -> None:
    """Print the parts of the system NAME: servers, chips, cores and engines, with counts and main figures."""
    graph = graph_for(name, **options)
    node = graph.named(name)
    if not isinstance(node.spec, Core) and not has_parts(type(node.spec)):
        raise UsageError(f"{node.kind} {node.name} has no parts")
    root = part(graph, node, 1)
    emit(format_, lambda: _page(root), lambda: _data(root))


def part(graph: Graph, node: Node[Any], count: PartCount | None, above: tuple[str, ...] = ()) -> TreePart:
    """A document with all its parts.

    Raises:
        UsageError: A part is not in the catalog, is of another kind, or contains itself.
    """
    if node.name in above:
        raise UsageError(f"{node.kind} {node.name} contains itself")
    if isinstance(node.spec, Core):
        return TreePart(node.name, node.kind, count, tuple(_figures(graph, node)), tuple(_engines(node.spec.engines)))
    direct = composition.parts(graph, node)
    if direct is None:
        raise UsageError(f"a part of {node.kind} {node.name} is not in the catalog, or is of another kind")
    below = tuple(part(graph, p.node, p.count, (*above, node.name)) for p in direct)
    return TreePart(node.name, node.kind, count, tuple(_figures(graph, node)), below)


def _figures(graph: Graph, node: Node[Any]) -> Iterator[str]:
    if isinstance(node.spec, Core):
        for name in ("sbuf", "psum"):
            figure = value_at(node.spec, (name, "capacity"))
            if figure is not None:
                yield f"{name.upper()} {figure}"
        return
    direct = composition.parts(graph, node) or ()
    for count in sums(graph, node):
        # The chips of a server are the line below it.
        if count.at == "cores" or (count.at == "chips" and not any(isinstance(p.node.spec, Chip) for p in direct)):
            yield f"{count.text} {count.at}"
    paths = (("bf16", ("peak", "dense", "bf16")), ("", ("memory", "capacity")), ("", ("memory", "bandwidth")))
    for label, path in paths:
        value = total(graph, node, ("spec", *path))
        if value is not None:
            yield f"{label} {value}".strip()


def _engines(engines: Engines) -> Iterator[TreePart]:
    for name in ObjectShape(Engines).fields:
        engine: Engine | None = getattr(engines, name)
        if engine is not None:
            yield TreePart(name, "engine", 1, tuple(_of_engine(engine)))


def _of_engine(engine: Engine) -> Iterator[str]:
    if engine.array is not None:
        yield f"{engine.array.rows} x {engine.array.columns}"
    if engine.processors is not None:
        yield f"{engine.processors} processors"
    for path, _, value in leaves(engine):
        if path in (("clock",), ("throughput",)) or path[:2] == ("peak", "dense"):
            yield f"{path[-1]} {value}" if path[0] == "peak" else str(value)


_BRANCHES = ("├─ ", "└─ ", "│  ", "   ")
_ASCII = ("|- ", "`- ", "|  ", "   ")


def _page(root: TreePart) -> list[Block]:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "".join(_BRANCHES).encode(encoding)
        branches = _BRANCHES
    except (UnicodeEncodeError, LookupError):
        branches = _ASCII
    return ["\n".join(_lines(root, "", "", branches, top=True))]


def _lines(node: TreePart, head: str, rest: str, branches: Sequence[str], *, top: bool = False) -> Iterator[str]:
    counted = node.count is not None and node.kind != "engine" and not top
    count = f"{node.count:,} x " if counted else ""
    figures = f": {', '.join(node.figures)}" if node.figures else ""
    text = f"{count}{node.name}{figures}"
    # What does not fit continues below the name, next to the branches.
    first, *more = wrapped("", text, width() - len(head)).split("\n")
    yield head + first
    indent = rest + (branches[2] if node.parts else branches[3])
    for line in more:
        yield indent + line
    for index, below in enumerate(node.parts):
        last = index == len(node.parts) - 1
        yield from _lines(below, rest + branches[1 if last else 0], rest + branches[3 if last else 2], branches)


def _data(root: TreePart) -> TextTable:
    rows: list[tuple[Cell, ...]] = []

    def walk(node: TreePart, depth: int, parent: str | None, above: PartCount | None) -> None:
        # The number in the whole tree; not known below a count that is not known.
        together = None if node.count is None or above is None else above * node.count
        counts = _cell(node.count), _cell(together)
        rows.append((depth, node.name, node.kind, parent, *counts, ", ".join(node.figures)))
        for below in node.parts:
            walk(below, depth + 1, node.name, together)

    walk(root, 0, None, 1)
    return table(["depth", "name", "kind", "in", "count", "all together", "figures"], rows)


def _cell(count: PartCount | None) -> Cell:
    return count if count is None or isinstance(count, int) else str(count)
