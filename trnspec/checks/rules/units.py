"""Units that cannot be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.checks.reconcile.hypotheses import number
from trnspec.diagnostics import Severity
from trnspec.model.reflection import dotted
from trnspec.plugins.api import Finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@rule("TRN601", "decimal-memory", severity=Severity.WARNING, over=object)
def decimal_memory(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """Memory in decimal units, or a bandwidth in binary ones.

    Why:
        Memory is built in powers of two and links are clocked in powers of ten.  A page that prints "32 GB" of memory
        means 32 GiB, which is 7.4 % more; one that prints "820 GiB/s" means 820 GB/s.  Disks are sold in decimal units
        and are not meant here.

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
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory:
            capacity: 32 GiB
            bandwidth: 820 GB/s
        ```

    Source:
        IEC 80000-13:2008 for the prefixes; JEDEC JESD235 for the organisation of HBM.
    """
    for path, figure in graph.figures(node).items():
        symbol = figure.value.unit.symbol
        if path[-1] in _MEMORY_FIELDS and symbol in _DECIMAL:
            hint = f"did you mean {number(figure.value)} {symbol[0].upper()}iB? Memory is built in powers of two"
            yield Finding(path, f"{dotted(path)} is {figure}, in decimal units", hint)
        elif symbol.endswith(("iB/s", "ibit/s")):
            decimal = symbol.replace("i", "", 1).replace("K", "k")
            hint = (
                f"did you mean {number(figure.value)} {decimal}? Bandwidth is a clock rate times a width: it is decimal"
            )
            yield Finding(path, f"{dotted(path)} is {figure}, in binary units", hint)


_DECIMAL = frozenset({"kB", "MB", "GB", "TB", "PB", "EB"})
_MEMORY_FIELDS = frozenset({"capacity", "memory", "sbuf", "per_partition", "per_bank"})
