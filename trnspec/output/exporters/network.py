"""The network between servers, in the figures that other tools use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.model.server import Network
from trnspec.output.exporters.wiring import systems

if TYPE_CHECKING:
    from fractions import Fraction

    from trnspec.model.document import Node
    from trnspec.output.exporters.ledger import Ledger


def server(ledger: Ledger) -> tuple[int, Node[Any]]:
    """The number of servers of the exported document, and the server."""
    return systems(ledger)


def adapters(ledger: Ledger, field: str) -> Fraction:
    """All NICs of all servers, in B/s.

    Raises:
        ExportError: The network bandwidth of a server is not known.
    """
    count, one = server(ledger)
    each = ledger.need(field, one, "network.bandwidth", ["network.baseline", "network.peak"])
    ledger.assume(field, "the rate of the adapters is taken to be that of one direction, as is usual of network cards")
    return count * each


def adapter_link(ledger: Ledger) -> str | None:
    """The name of the link of a server's NICs, if it is known."""
    network = server(ledger)[1].spec.network
    return network.link.name if isinstance(network, Network) and network.link is not None else None
