"""A system of aiconfigurator (https://github.com/ai-dynamo/aiconfigurator): its ``systems/NAME.yaml``.

Values are in base units: B/s, bytes, FLOPS, seconds. The measured tables of a system are not part of the file, so it
serves the formula-only mode ``SOL`` (speed of light). A rate of a data type that is not known is left out: the program
then refuses that type and never scales another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.output.exporters.export_log import ExportLog, Number, number
from trnspec.output.exporters.exported import Export
from trnspec.output.exporters.link_table import adapter_link, adapters, either, fabrics, latency, out_of_part, systems

_HEAD = "System of aiconfigurator, written by trnspec from checked figures."

_OTHER_TYPES = {"int8_tc_flops": "int8", "fp8_tc_flops": "fp8", "fp4_tc_flops": "fp4"}


def export(node: Node[Any], graph: Graph, use: Mapping[str, str] | None = None) -> Export:
    """Export a server, or an UltraServer as the rack of the program.

    Raises:
        ExportError: The bf16 rate, the memory, the fabric or the network is not known.
    """
    log = ExportLog(graph, node, "aiconfigurator", use)
    _, chip = log.chip()
    fabrics(log)
    log.assume("data_dir", "measured tables are not exported: the system serves the mode SOL")
    gpu = _chip(log, chip)
    server = _server(log)
    log.assume("misc", "0 bytes for NCCL and the runtime: none are published; memory is an upper bound")
    misc = ["  nccl_mem: {1: 0, 2: 0, 4: 0, 8: 0}", "  other_mem: 0"]
    lines = log.comments(_HEAD)
    lines += [f"data_dir: data/{node.name}", "gpu:", *_block(gpu), "node:", *_block(server), "misc:", *misc]
    return log.export("\n".join(line.rstrip() for line in lines) + "\n")


def _chip(log: ExportLog, chip: Node[Chip]) -> dict[str, Number]:
    log.assume("gpu.mem_bw_empirical_scaling_factor", "1: the peak rate (ideal); times are lower bounds")
    log.assume("gpu.mem_empirical_constant_latency", "0 s (ideal): times are lower bounds")
    field = "gpu.bfloat16_tc_flops"
    found: dict[str, Number] = {
        "mem_bw": number(log.need("gpu.mem_bw", chip, "memory.bandwidth")),
        "mem_bw_empirical_scaling_factor": 1,
        "mem_empirical_constant_latency": 0,
        "mem_capacity": number(log.need("gpu.mem_capacity", chip, "memory.capacity")),
        "bfloat16_tc_flops": number(log.need(field, chip, "peak.dense.bf16", ["peak.dense.fp16"])),
    }
    for key, dtype in _OTHER_TYPES.items():
        figure = log.find(chip, f"peak.dense.{dtype}")
        if figure is None:
            log.assume(f"gpu.{key}", f"left out: the {dtype} rate of {chip.name} is not known")
        else:
            found[key] = number(log.use(f"gpu.{key}", figure))
    return found


def _server(log: ExportLog) -> dict[str, Number]:
    count, _ = log.chip()
    servers, _ = systems(log)
    inner, outer = fabrics(log)
    intra = out_of_part(log, "node.intra_node_bw", "fabric", inner)
    if intra is None:
        intra = log.replace("node.intra_node_bw", log.node, either("fabric.bandwidth"))
    log.assume("node.intra_node_bw", "the rate of a chip over all its links at once, in one direction")
    delay = number(latency(log, "node.p2p_latency", inner.link.name))
    beyond, away = ("node.inter_node_bw", "") if servers == 1 else ("node.inter_rack_bw", "node.inter_rack_latency")
    rate = adapters(log, beyond) / count
    log.assume(beyond, f"the adapters, divided evenly among the {count} chips")
    found: dict[str, Number] = {"num_gpus_per_node": count // servers, "intra_node_bw": number(intra)}
    if servers == 1:
        return {**found, "inter_node_bw": number(rate), "p2p_latency": delay}
    between = intra
    topology = inner.topology
    if outer is None and topology is not None and [level.chips for level in topology.levels] == [count]:
        log.assume("node.inter_node_bw", "as within a server: one switch joins all chips")
    else:
        field = "node.inter_node_bw"
        log.assume(field, "the rate of a chip over its links to other servers, in one direction")
        known = None if outer is None else out_of_part(log, field, "between_servers", outer)
        between = log.replace(field, log.node, either("between_servers.bandwidth")) if known is None else known
    return {
        **found,
        "num_gpus_per_rack": count,
        "inter_node_bw": number(between),
        "inter_rack_bw": number(rate),
        "p2p_latency": delay,
        "inter_rack_latency": number(latency(log, away, adapter_link(log))),
    }


def _block(values: Mapping[str, Number]) -> list[str]:
    return [f"  {key}: {_number(value)}" for key, value in values.items()]


def _number(value: Number) -> str:
    """The number as YAML 1.1 writes it, for which 1e-06 is a text."""
    digits, exponent, power = repr(value).partition("e")
    return f"{digits}.0e{power}" if exponent and "." not in digits else repr(value)
