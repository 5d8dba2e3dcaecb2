"""A GPU configuration of llm-analysis (https://github.com/cli99/llm-analysis): its ``gpu_configs/*.json``.

The package builds its ``GPUConfig`` from the keys, so other keys are not allowed. Missing keys get defaults of the package
(twice the 16-bit rate for 8 bit, 200 GB/s between nodes); every key is written, so that no default applies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.output.exporters.export_log import ExportLog, Number, in_unit
from trnspec.output.exporters.exported import Export
from trnspec.output.exporters.link_table import adapters, fabrics, latency, out_of_a_chip

_PEAK = "peak_fp16_TFLOPS"


def export(node: Node[Any], graph: Graph, use: Mapping[str, str] | None = None) -> Export:
    """Export the chip of a server or an UltraServer; the system is the node of llm-analysis.

    Raises:
        ExportError: A peak rate, the memory, the fabric or the adapters are not known.
    """
    log = ExportLog(graph, node, "llm-analysis", use)
    _, chip = log.chip()
    inner, _ = fabrics(log)
    memory, bandwidth = "mem_per_GPU_in_GB", "hbm_bandwidth_in_GB_per_sec"
    log.assume(memory, "in GiB: the package multiplies the value by 1024 ** 3")
    intra, delay = "intra_node_bandwidth_in_GB_per_sec", "intra_node_min_message_latency"
    log.assume(intra, f"the rate of a chip over all its links in {node.name} at once, in one direction")
    inter = "inter_node_bandwidth_in_GB_per_sec"
    log.assume(inter, f"all adapters of {node.name} together, as in the files of the package")
    peak = log.need(_PEAK, chip, "peak.dense.fp16", ["peak.dense.bf16"])
    config: dict[str, str | Number] = {
        "name": node.name,
        memory: in_unit(log.need(memory, chip, "memory.capacity"), "GiB"),
        bandwidth: in_unit(log.need(bandwidth, chip, "memory.bandwidth"), "GB/s"),
        intra: in_unit(out_of_a_chip(log, intra), "GB/s"),
        delay: in_unit(latency(log, delay, inner.link.name), "s"),
        _PEAK: in_unit(peak, "TFLOPS"),
        "peak_i8_TFLOPS": _integer(log, "peak_i8_TFLOPS", chip, "int8", peak),
        "peak_i4_TFLOPS": _integer(log, "peak_i4_TFLOPS", chip, "int4", peak),
        inter: in_unit(adapters(log, inter), "GB/s"),
    }
    tensor = log.find(chip, "tensor_peak.dense.fp16")
    if tensor is not None:
        share = float(tensor.value.value / peak)
        log.assume(_PEAK, f"the printed rate; the tensor engines alone reach {tensor.value.text}, {share:.3f} of it")
    return log.export(json.dumps(config, indent=4) + "\n")


def _integer(log: ExportLog, field: str, chip: Node[Chip], dtype: str, sixteen: Fraction) -> Number:
    figure = log.find(chip, f"peak.dense.{dtype}")
    if figure is not None:
        return in_unit(log.use(field, figure), "TOPS")
    log.assume(field, f"no {dtype} rate of {chip.name} is known; it is taken to run as fast as 16 bit, not faster")
    return in_unit(sixteen, "TFLOPS")
