"""Figures whose unit is probably wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trnspec.checks.reconcile.hypotheses import number
from trnspec.checks.reconcile.relations import claimed_paths
from trnspec.checks.reconcile.sites import Site
from trnspec.diagnostics import Severity
from trnspec.model.reflection import FigureShape, dotted, shape_at
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.yaml import Path


@rule("TRN601", "decimal-memory", severity=Severity.WARNING, over=object, local=True)
def decimal_memory(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """Memory in decimal units, or a bandwidth in binary ones.

    Why:
        Memory has a capacity in powers of two, and the rates of links are powers of ten. A page that prints "32 GB" of
        memory usually means 32 GiB, which is 7.4 % more; one that prints "820 GiB/s" means 820 GB/s. If the vendor does
        mean the decimal unit, accept the figure with a waiver that states the reason:

        ```text
        metadata:
          allow:
            - {code: TRN601, at: spec.memory.capacity, reason: The vendor counts memory in decimal units.}
        ```

        Disks are sold in decimal units and are not checked: `local_storage` of a server, and every field of a plugin
        that is declared as `DiskCapacity` instead of `Capacity`.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory:
            capacity: 32 GB  #! TRN601
            bandwidth: 820 GiB/s  #! TRN601
        ```

    Instead:
        ```diff
        -    capacity: 32 GB
        -    bandwidth: 820 GiB/s
        +    capacity: 32 GiB
        +    bandwidth: 820 GB/s
        ```

    Source:
        IEC 80000-13:2008 for the prefixes; JEDEC JESD235 for the organisation of HBM.
    """
    for path, figure in graph.figures(node).items():
        symbol = figure.value.unit.symbol
        shape = shape_at(type(node.spec), path[1:])
        is_memory = isinstance(shape, FigureShape) and shape.dimension is Dimension.INFORMATION and not shape.decimal
        if is_memory and symbol in _DECIMAL:
            hint = f"did you mean {number(figure.value)} {symbol[0].upper()}iB? Memory has binary units"
            yield Finding(path, f"{dotted(path)} is {figure}, in decimal units", hint)
        elif symbol.endswith(("iB/s", "ibit/s")):
            decimal = symbol.replace("i", "", 1).replace("K", "k")
            hint = f"did you mean {number(figure.value)} {decimal}? Bandwidth is a clock rate times a width, so it has decimal units"
            yield Finding(path, f"{dotted(path)} is {figure}, in binary units", hint)


_DECIMAL = frozenset({"kB", "MB", "GB", "TB", "PB", "EB"})


_FIELD_UNIT = re.compile(r"In(MiB|GiB|KiB|GB|TB|MB|Mbps|Gbps|MBps|Ghz)\b")
_SPELLED = {"MBps": "MB/s", "Ghz": "GHz"}

DECIMALS = 1000
"""Fields of records are whole numbers, or have up to three decimals."""


@rule("TRN611", "unit-field-mismatch", over=object, local=True)
def unit_field_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure from a field of a record that has no such number in the unit that the field is named after.

    Why:
        ``InstanceStorageInfo.TotalSizeInGB`` is a whole number of GB. 7,600 GiB are 8,160.4 GB, so that the unit was copied
        wrongly; 7.6 TB are right.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: ec2-api-moto-5.2.1}
        spec:
          chips: {chip: trainium2, count: 1}
          local_storage: {value: 475 GiB, where: InstanceStorageInfo.TotalSizeInGB}  #! TRN611
        ```

    Instead:
        ```diff
        -  local_storage: {value: 475 GiB, where: InstanceStorageInfo.TotalSizeInGB}
        +  local_storage: {value: 475 GB, where: InstanceStorageInfo.TotalSizeInGB}
        ```

    Source:
        Amazon EC2 API Reference, DescribeInstanceTypes.
    """
    figures: list[tuple[Path, Quantity, str | None]] = [
        (path, figure.value, figure.where) for path, figure in graph.figures(node).items()
    ]
    for index, claim in enumerate(node.claims):
        if claim.verdict == "rounded" or not _FIELD_UNIT.search(claim.where or ""):
            continue
        for path in claimed_paths(claim.at)[:1]:
            said = Site(node, path, index).value
            if isinstance(said, Quantity):
                figures.append(((*node.claim_path(index), "says"), said, claim.where))
    for path, quantity, where in figures:
        field = _FIELD_UNIT.search(where or "")
        if field is None:
            continue
        unit = parse(f"1 {_SPELLED.get(field[1], field[1])}", None, node.units)
        number = quantity.value / unit.value if unit.dimension is quantity.dimension else None
        if number is None or (number * DECIMALS).denominator != 1:
            shown = "nothing" if number is None else f"{float(number):,.7g}"
            message = f"{quantity} is from a field in {field[1]}, but is {shown} in that unit"
            yield Finding(path, message, f"is {field[1]} meant?")
