"""A system of calculon (https://github.com/calculon-ai/calculon): its ``systems/*.json``.

Keys and units are those of its loader: rates in TFLOPS, memory in GiB and GB/s, networks in GB/s and seconds. The
assumptions are under an extra key at the top level, which the loader ignores; below it, unknown keys are not allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.output.exporters.export_log import ExportLog, Number, in_unit
from trnspec.output.exporters.exported import Export
from trnspec.output.exporters.link_table import adapter_link, adapters, fabrics, latency, out_of_a_chip
from trnspec.quantities.units import Dimension

DTYPES = {"fp8": "float8", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
"""The data types of calculon, by the names of trnspec."""

_VECTOR = "vector.tflops"

_WITHOUT_MATRIX = ("peak.dense.fp32",)
"""The rates that can replace that of the vector engines: on NVIDIA GPUs, fp32 runs outside of the tensor cores."""

_MANY = 65536
"""The size of the network of adapters: calculon needs a number, and none is published."""

_FULL = [[0, 1.0]]
"""Efficiency 1.0 at every size."""

_RING = {"p2p": [1.0, None], "reduce_scatter": [1.0, -1], "all_gather": [1.0, -1], "all_reduce": [2.0, -1]}
"""The bytes each operation sends: a factor of the message size, and an offset to the n parts.

A ring of n sends (n - 1) / n of the message in a reduce-scatter or all-gather and twice that in an all-reduce: R. Thakur,
R. Rabenseifner and W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005.
"""


def export(node: Node[Any], graph: Graph, use: Mapping[str, str] | None = None) -> Export:
    """Export a server or an UltraServer: chips become processors; fabric and adapters become networks.

    Raises:
        ExportError: A rate of the engines, the memory, the fabric or the adapters is not known.
    """
    log = ExportLog(graph, node, "calculon", use)
    _, chip = log.chip()
    matrix = _matrix(log, chip)
    system = {
        "matrix": matrix,
        "vector": _vector(log, chip, list(matrix)),
        "mem1": {
            "GiB": in_unit(log.need("mem1.GiB", chip, "memory.capacity"), "GiB"),
            "GBps": in_unit(log.need("mem1.GBps", chip, "memory.bandwidth"), "GB/s"),
            "MB_efficiency": _FULL,
        },
        "mem2": {"GiB": 0, "GBps": 1, "MB_efficiency": _FULL},
        "processing_mode": "roofline",
        "networks": [_fabric(log), _adapters(log)],
    }
    log.assume(
        "gflops_efficiency, MB_efficiency, efficiency",
        "1.0, the peak rate at every size (ideal): times are lower bounds",
    )
    log.assume(
        "mem2",
        "the rate between a chip and host memory is not known, so offloading is disabled: 0 GiB; 1 GB/s"
        " is a placeholder that is never used",
    )
    log.assume("processing_mode", "roofline: compute and data movement overlap, so times are lower bounds")
    log.assume("processor_usage", "0: communication uses no engines of the chip")
    log.assume("networks.ops", "ring algorithm: n chips send (n - 1) / n of the message, twice that for an all-reduce")
    about = {"assumptions": [str(a) for a in log.assumptions], "figures": [str(u) for u in log.used]}
    return log.export(_written({"trnspec": {"of": node.name, **about}, **system}))


def _matrix(log: ExportLog, chip: Node[Chip]) -> dict[str, Any]:
    engines: dict[str, Any] = {}
    for ours, theirs in DTYPES.items():
        field = f"matrix.{theirs}.tflops"
        tensor = log.find(chip, f"tensor_peak.dense.{ours}")
        printed = log.find(chip, f"peak.dense.{ours}")
        if tensor is None and printed is None:
            log.assume(f"matrix.{theirs}", f"omitted: the {ours} rate of {chip.name} is not known")
            continue
        if tensor is None:
            assert printed is not None
            log.assume(field, "the rate of all engines: the rate of the tensor engines alone is not known")
        elif printed is not None:
            log.assume(field, f"the tensor engines alone; the published rate of all engines is {printed.value.text}")
        engines[theirs] = _engine(in_unit(log.use(field, tensor or printed), "TFLOPS"))  # type: ignore[arg-type]  # not both
    if not engines:
        raise log.unknown("matrix", chip, "peak.dense.bf16")
    return engines


def _vector(log: ExportLog, chip: Node[Chip], types: list[str]) -> dict[str, Any]:
    rate = _vector_rate(log, chip)
    return {name: _engine(in_unit(rate, "TFLOPS")) for name in types}


def _vector_rate(log: ExportLog, chip: Node[Chip]) -> Fraction:
    path = "engines.vector.peak.dense.fp32"
    cores = chip.spec.cores
    core = None if cores is None else log.graph.find(cores.core)
    figure = None if core is None else log.find(core, path)
    if cores is None or core is None or figure is None:
        log.assume("vector", "the fp32 rate for every type")
        missing = "the vector rate of the cores" if core is None else f"{path} of {core.name}"
        published = _WITHOUT_MATRIX if log.find(chip, "tensor_peak.dense.fp32") is None and core is None else ()
        return log.replace(_VECTOR, chip, (missing,), published, Dimension.FLOP_RATE)
    log.assume(_VECTOR, f"{cores.count} cores times the rate of one")
    log.assume(
        "vector", "the vector engines alone, without the scalar and GpSimd engines; the fp32 rate for every type"
    )
    return log.use(_VECTOR, figure) * cores.count


def _engine(tflops: Number) -> dict[str, Any]:
    return {"tflops": tflops, "gflops_efficiency": _FULL}


def _fabric(log: ExportLog) -> dict[str, Any]:
    inner, _ = fabrics(log)
    count, _ = log.chip()
    field = "networks[0]"
    log.assume(f"{field}.bandwidth", "the rate of a chip over all its links at once, in one direction")
    rate = out_of_a_chip(log, f"{field}.bandwidth")
    return _network(rate_=in_unit(rate, "GB/s"), size=count, delay=_delay(log, field, inner.link.name), filled=True)


def _adapters(log: ExportLog) -> dict[str, Any]:
    count, _ = log.chip()
    field = "networks[1]"
    rate = adapters(log, f"{field}.bandwidth") / count
    log.assume(f"{field}.bandwidth", f"the adapters, divided evenly among the {count} chips")
    log.assume(f"{field}.size", f"{_MANY}: the limit is not known, and calculon needs one")
    return _network(rate_=in_unit(rate, "GB/s"), size=_MANY, delay=_delay(log, field, adapter_link(log)), filled=False)


def _delay(log: ExportLog, field: str, link: str | None) -> Number:
    return in_unit(latency(log, f"{field}.latency", link), "s")


def _network(*, rate_: Number, size: int, delay: Number, filled: bool) -> dict[str, Any]:
    return {
        "bandwidth": rate_,
        "efficiency": 1.0,
        "size": size,
        "latency": delay,
        "ops": _RING,
        "must_be_filled": filled,
        "processor_usage": 0.0,
    }


def _written(system: dict[str, Any]) -> str:
    text = json.dumps(system, indent=2)
    # Pairs of numbers, and lists of one pair, are written on one line.
    pairs = re.sub(r"\[\s+([-\d.]+),\s+([-\d.]+|null)\s+\]", r"[\1, \2]", text)
    return re.sub(r"\[\s+(\[[^\[\]]*\])\s+\]", r"[\1]", pairs) + "\n"
