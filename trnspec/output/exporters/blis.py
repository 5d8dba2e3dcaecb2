"""A hardware entry of BLIS (https://github.com/inference-sim/inference-sim): its ``hardware_config.json``.

One entry per chip, in TFLOPS, TB/s, GiB and GB/s. The assumptions are in keys that begin with ``_comment``, the only
other keys that its strict reader allows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trnspec.output.exporters.exported import ExportError
from trnspec.output.exporters.ledger import Ledger, Number, in_unit
from trnspec.output.exporters.network import adapters
from trnspec.output.exporters.wiring import out_of_a_chip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.output.exporters.exported import Export


def export(node: Node[Any], graph: Graph, use: Mapping[str, str] | None = None) -> Export:
    """Export the chip of a server or an UltraServer, with its share of the network.

    Args:
        node: The document.
        graph: The documents.
        use: The figures to use in place of unknown ones, by field of the export.

    Raises:
        ExportError: The 16-bit rate or the memory of the chip is not known.
    """
    ledger = Ledger(graph, node, "blis", use)
    _, chip = ledger.chip()
    entry: dict[str, Number] = {
        "TFlopsPeak": in_unit(ledger.need("TFlopsPeak", chip, "peak.dense.bf16", ["peak.dense.fp16"]), "TFLOPS"),
        "TFlopsFP8": 0,
        "BwPeakTBs": in_unit(ledger.need("BwPeakTBs", chip, "memory.bandwidth"), "TB/s"),
        "mfuPrefill": 1,
        "mfuDecode": 1,
        "MemoryGiB": in_unit(ledger.need("MemoryGiB", chip, "memory.capacity"), "GiB"),
    }
    eight = ledger.find(chip, "peak.dense.fp8")
    if eight is None:
        ledger.assume("TFlopsFP8", f"0, for which BLIS takes the 16-bit rate: no fp8 rate of {chip.name} is known")
    else:
        entry["TFlopsFP8"] = in_unit(ledger.use("TFlopsFP8", eight), "TFLOPS")
    ledger.assume("mfuPrefill, mfuDecode", "1, the peak rate (ideal): times are lower bounds")
    entry |= _network(ledger)
    comments = {
        "_comment": f"{node.metadata.title}, written by trnspec from checked figures",
        "_comment_assumptions": "; ".join(map(str, ledger.assumptions)),
        "_comment_figures": "; ".join(map(str, ledger.used)),
    }
    return ledger.export(json.dumps({node.name: {**comments, **entry}}, indent=2) + "\n")


def _network(ledger: Ledger) -> dict[str, Number]:
    """Both rates, or neither: BLIS uses only their ratio, and refuses one alone."""
    try:
        # The figures of a rate that is left out are not figures of the export.
        _rates(Ledger(ledger.graph, ledger.node, ledger.format, ledger.instead))
    except ExportError as error:
        if error.reason not in ("unknown-figure", "no-fabric"):
            raise
        ledger.assume(
            "IntraNodeBwGBps, InterNodeBwGBps", f"left out: {str(error).partition(': ')[2].partition(';')[0]}"
        )
        return {}
    return _rates(ledger)


def _rates(ledger: Ledger) -> dict[str, Number]:
    count, _ = ledger.chip()
    intra, inter = "IntraNodeBwGBps", "InterNodeBwGBps"
    ledger.assume(intra, f"the rate of a chip over all its links in {ledger.node.name} at once, in one direction")
    within = out_of_a_chip(ledger, intra)
    ledger.assume(inter, f"the adapters, divided evenly among the {count} chips; BLIS expects achieved rates")
    return {intra: in_unit(within, "GB/s"), inter: in_unit(adapters(ledger, inter) / count, "GB/s")}
