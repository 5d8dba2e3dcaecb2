"""The published rates of an H100 in a p5.48xlarge, for answers that are computed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog

PER_SERVER = 8
"""Chips of a server."""


class Rates(NamedTuple):
    """Of a chip: FLOP/s, and B/s of its memory, and of its links in one direction."""

    peak: float
    memory: float
    nvlink: float
    network: float

    def gather(self, ranks: float, stride: float) -> float:
        """Time of an all-gather or a reduce-scatter, per byte of the buffer, of ranks with a stride.

        Thakur et al. 2005, section 4: with w of n ranks in a server, its links carry 1 - 1/w of the buffer and the network
        1/w - 1/n; pieces pass both at the same time.
        """
        inside = min(ranks, max(1.0, PER_SERVER / stride))
        return max((1.0 - 1.0 / inside) / self.nvlink, (1.0 / inside - 1.0 / ranks) / self.network)

    def dispatch(self, ep: float, k: float, stride: float, dispatch: str) -> float:
        """Time of an all-to-all of tokens to k experts on ep ranks, per byte of the tokens of a rank.

        ``per-copy``: each copy goes to its rank, of which 1/ep is the sender.  ``per-node``: one copy for each server with
        some of the experts (DeepSeek-V3, arXiv 2412.19437, section 3.2.2), forwarded to each rank with some.
        """
        inside = min(ep, max(1.0, PER_SERVER / stride))
        own, near = 1.0 / ep, inside / ep
        if dispatch == "per-copy":
            return max(k * (near - own) / self.nvlink, k * (1.0 - near) / self.network)
        some = [1.0 - (1.0 - share) ** k for share in (own, near)]
        return max(some[0] * (1.0 / own - 1.0 / near) / self.nvlink, some[1] * (1.0 / near - 1.0) / self.network)


def rates_of(catalog: Catalog) -> Rates:
    """The rates of the catalog."""
    chip, server = catalog["h100-sxm"], catalog["p5.48xlarge"]
    return Rates(
        peak=float(chip.figure("peak.dense.bf16").value),
        memory=float(chip.figure("memory.bandwidth").value),
        nvlink=float(server.figure("fabric.bandwidth.both").value) / 2.0,
        network=float(server.figure("network.bandwidth").value) / PER_SERVER,
    )
