"""The network by which servers reach each other, as other tools count it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.model.server import Efa
from trnspec.output.exporters.wiring import systems

if TYPE_CHECKING:
    from fractions import Fraction

    from trnspec.model.document import Node
    from trnspec.output.exporters.ledger import Ledger


def server(ledger: Ledger) -> tuple[int, Node[Any]]:
    """The number of servers of the exported document, and the server."""
    return systems(ledger)


def adapters(ledger: Ledger, field: str) -> Fraction:
    """All adapters of all servers, in B/s.

    Raises:
        ExportError: What the adapters of a server carry is not known.
    """
    count, one = server(ledger)
    each = ledger.need(field, one, "efa.bandwidth")
    ledger.assume(field, "the rate of the adapters is taken to be that of one direction, as is usual of network cards")
    return count * each


def adapter_link(ledger: Ledger) -> str | None:
    """The name of the link that the adapters of a server are, where it is known."""
    efa = server(ledger)[1].spec.efa
    return efa.link.name if isinstance(efa, Efa) and efa.link is not None else None
