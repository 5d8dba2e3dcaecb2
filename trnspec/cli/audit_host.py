"""``trnspec audit --host``: a machine compared with the catalog."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from trnspec.cli.render import emit, width
from trnspec.errors import UsageError
from trnspec.loading.host import neuron_ls, nvidia_smi
from trnspec.loading.host.machine import Input
from trnspec.text_table import Column, escape, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.checks.reconcile.machines import Comparison
    from trnspec.graph.graph import Graph
    from trnspec.loading.host.machine import Machine
    from trnspec.text_table import Block, Cell, Table


def machine(file: str) -> Machine:
    """The machine that a file describes; ``-`` is standard input.

    Raises:
        UsageError: It cannot be read, or is not the output of neuron-ls or nvidia-smi.
    """
    if file == "-":
        if sys.stdin is None:
            raise UsageError("there is no standard input to read")
        source = Input.read("<stdin>", sys.stdin.buffer)
    else:
        source = Input.read(file)
    # XML begins with "<"; both may begin with a byte-order mark.
    first = source.text().lstrip()[:1]
    return nvidia_smi.read(source) if first == "<" else neuron_ls.read(source)


def report(graph: Graph, file: str, name: str | None, format_: str) -> bool:
    """Print how a machine compares with a catalog; true if something differs.

    Args:
        graph: The catalog.
        file: The description of the machine.
        name: The server to compare with; by default the one that the machine is.
        format_: One of the formats of :func:`~trnspec.cli.render.emit`.

    Raises:
        UsageError: The description cannot be read, or the document is not a server.
    """
    from trnspec.checks.reconcile.machines import compare

    result = compare(graph, machine(file), name)
    emit(format_, lambda: _page(result), lambda: _rows(result), lambda: _about(result))
    return result.differs


def _page(result: Comparison) -> Sequence[Block]:
    described = result.machine
    differing = sum(row.outcome == "differs" for row in result.rows)
    compared = sum(row.outcome in ("agrees", "differs") for row in result.rows)
    count = len(described.devices)
    head = f"{escape(described.file)}: {count} device{'' if count == 1 else 's'}, as {described.tool} lists them"
    target = result.server or " or ".join(result.candidates)
    target = target or (f"chip {result.chip}, no server" if result.chip else "nothing")
    lines = [
        wrapped("", head, width()),
        wrapped("compared with  ", f"{target} ({escape(result.reason)})", width()),
        f"result         {compared} compared, {differing} differ{'s' if differing == 1 else ''}",
    ]
    if result.candidates:
        lines.append("               trnspec audit NAME --host FILE compares with one of them")
    if described.driver:
        lines.append(wrapped("driver         ", f"{escape(described.driver)}, which no catalog lists", width()))
    if described.unknown:
        listed = ", ".join(f"{escape(key)} (line {line})" for key, line in described.unknown.items())
        lines.append(wrapped("unknown fields ", listed, width()))
    blocks: list[Block] = ["\n".join(lines)]
    if result.rows:
        columns = [
            Column("property", keep=True),
            Column("machine", wrap=True, keep=True),
            Column("catalog", wrap=True, keep=True),
            Column("outcome", keep=True),
            Column("source", wrap=True),
        ]
        rows: list[tuple[Cell, ...]] = [
            (r.property, _shown(r.machine), _shown(r.catalog), r.outcome, r.source or None) for r in result.rows
        ]
        blocks.append(table(columns, rows, "--format json"))
    notes = [f"{row.property}: {row.note}" for row in result.rows if row.note]
    if notes:
        blocks.append("\n".join(wrapped("note: ", escape(note), width()) for note in notes))
    return blocks


def _shown(text: str | None) -> str | None:
    return None if text is None else escape(text)


_COLUMNS = ("property", "machine", "catalog", "outcome", "name", "at", "source", "note")


def _rows(result: Comparison) -> Table:
    return table(list(_COLUMNS), [tuple(getattr(row, c) for c in _COLUMNS) for row in result.rows])


def _about(result: Comparison) -> dict[str, Any]:
    described = result.machine
    return {
        "tool": described.tool,
        "file": described.file,
        "devices": len(described.devices),
        "server": result.server or None,
        "chip": result.chip or None,
        "reason": result.reason,
        "candidates": list(result.candidates),
        "driver": described.driver or None,
        "unknown": [{"name": key, "line": line} for key, line in described.unknown.items()],
    }
