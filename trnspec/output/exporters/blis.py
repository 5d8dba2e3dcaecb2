"""A hardware entry of BLIS (https://github.com/inference-sim/inference-sim): its ``hardware_config.json``.

One entry per chip, in TFLOPS, TB/s, GiB and GB/s. The assumptions are in keys that begin with ``_comment``, the only
other keys that its strict reader allows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.output.exporters.export_log import ExportLog, Number, in_unit
from trnspec.output.exporters.exported import Export, ExportError
from trnspec.output.exporters.link_table import adapters, out_of_a_chip


def export(node: Node[Any], graph: Graph, use: Mapping[str, str] | None = None) -> Export:
    """Export the chip of a server or an UltraServer, with its share of the network.

    Raises:
        ExportError: The 16-bit rate or the memory of the chip is not known.
    """
    log = ExportLog(graph, node, "blis", use)
    _, chip = log.chip()
    entry: dict[str, Number] = {
        "TFlopsPeak": in_unit(log.need("TFlopsPeak", chip, "peak.dense.bf16", ["peak.dense.fp16"]), "TFLOPS"),
        "TFlopsFP8": 0,
        "BwPeakTBs": in_unit(log.need("BwPeakTBs", chip, "memory.bandwidth"), "TB/s"),
        "mfuPrefill": 1,
        "mfuDecode": 1,
        "MemoryGiB": in_unit(log.need("MemoryGiB", chip, "memory.capacity"), "GiB"),
    }
    eight = log.find(chip, "peak.dense.fp8")
    if eight is None:
        log.assume("TFlopsFP8", f"0, for which BLIS takes the 16-bit rate: no fp8 rate of {chip.name} is known")
    else:
        entry["TFlopsFP8"] = in_unit(log.use("TFlopsFP8", eight), "TFLOPS")
    log.assume("mfuPrefill, mfuDecode", "1, the peak rate (ideal): times are lower bounds")
    entry |= _network(log)
    comments = {
        "_comment": f"{node.metadata.title}, written by trnspec from checked figures",
        "_comment_assumptions": "; ".join(map(str, log.assumptions)),
        "_comment_figures": "; ".join(map(str, log.used)),
    }
    return log.export(json.dumps({node.name: {**comments, **entry}}, indent=2) + "\n")


def _network(log: ExportLog) -> dict[str, Number]:
    """Both rates, or neither: BLIS uses only their ratio, and refuses one alone."""
    try:
        # The figures of a rate that is left out are not figures of the export.
        _rates(ExportLog(log.graph, log.node, log.format, log.instead))
    except ExportError as error:
        if error.reason not in ("unknown-figure", "no-fabric"):
            raise
        log.assume("IntraNodeBwGBps, InterNodeBwGBps", f"left out: {str(error).partition(': ')[2].partition(';')[0]}")
        return {}
    return _rates(log)


def _rates(log: ExportLog) -> dict[str, Number]:
    count, _ = log.chip()
    intra, inter = "IntraNodeBwGBps", "InterNodeBwGBps"
    log.assume(intra, f"the rate of a chip over all its links in {log.node.name} at once, in one direction")
    within = out_of_a_chip(log, intra)
    log.assume(inter, f"the adapters, divided evenly among the {count} chips; BLIS expects achieved rates")
    return {intra: in_unit(within, "GB/s"), inter: in_unit(adapters(log, inter) / count, "GB/s")}
