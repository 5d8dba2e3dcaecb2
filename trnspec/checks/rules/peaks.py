"""Peak rates: of one document by type, and of chips with the same cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from trnspec.checks.reconcile.hypotheses import with_comma
from trnspec.checks.reconcile.relations import EVERY_RATE
from trnspec.checks.reconcile.sites import is_below, rate_at
from trnspec.diagnostics import Severity
from trnspec.graph.graph import Graph, at, cached_by_graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Interval, Quantity, render
from trnspec.yaml import Path

WIDTHS = {
    "fp64": 64,
    "fp32": 32,
    "tf32": 19,
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "cfp8": 8,
    "mxfp8": 8,
    "fp6": 6,
    "mxfp6": 6,
    "fp4": 4,
    "mxfp4": 4,
}
"""Bits of the floating-point types."""

_GROUPS: tuple[Path, ...] = (("spec", "peak"), ("spec", "tensor_peak"), ("spec", "stated", "peak"))
"""Paths of peak rates: of a chip, of its tensor engines, and the totals of a server or UltraServer."""


@rule("TRN602", "sparse-below-dense", over=object, local=True)
def sparse_below_dense(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A sparse rate below the dense rate of the same type.

    Why:
        A sparse rate counts skipped zeros as work, so it is never the smaller one. The two columns are swapped, or one of
        them belongs to another type.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak:
            dense: {bf16: "2,563 TFLOPS"}
            sparse: {bf16: 667 TFLOPS}  #! TRN602
          memory: {capacity: 96 GiB}
        ```

    Instead:
        ```diff
        -    dense: {bf16: "2,563 TFLOPS"}
        -    sparse: {bf16: 667 TFLOPS}
        +    dense: {bf16: 667 TFLOPS}
        +    sparse: {bf16: "2,563 TFLOPS"}
        ```

    Source:
        Mishra et al.: Accelerating Sparse Deep Neural Networks (2021), section 3, for how sparse rates are counted.
    """
    for group, (kind, dtype) in product(_GROUPS, EVERY_RATE) if node.is_of(Chip, Server, UltraServer) else ():
        sparse, dense = rate_at(node, (*group, "sparse", dtype)), rate_at(node, (*group, "dense", dtype))
        if kind == "sparse" and sparse and dense and is_below(sparse, dense):
            message = f"the sparse rate of {dtype} is {sparse}, the dense one {dense}"
            meant = with_comma(sparse)
            hint = f"a point for the comma of thousands: {meant}?" if meant else "are the two swapped?"
            see = (at(node, (*group, "dense", dtype), text=str(dense)),)
            yield Finding((*group, "sparse", dtype), message, hint, see)


@rule("TRN603", "narrow-type-slower", over=object, severity=Severity.WARNING, local=True)
def narrow_type_slower(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A floating-point type that is slower than a wider one.

    Why:
        Arithmetic on fewer bits needs less silicon and less bandwidth, so no accelerator computes a narrow type slower
        than a wide one. Two rows are swapped, or the two rates count different engines.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak:
            dense:
              bf16: 47.5 TFLOPS  #! TRN603
              fp32: 190 TFLOPS
          memory: {capacity: 32 GiB}
        ```

    Instead:
        ```diff
        -      bf16: 47.5 TFLOPS
        -      fp32: 190 TFLOPS
        +      bf16: 190 TFLOPS
        +      fp32: 47.5 TFLOPS
        ```

    Source:
        Horowitz: Computing's energy problem, ISSCC 2014, for the cost of arithmetic by width.
    """
    for group, kind in product(_GROUPS, ("dense", "sparse")) if node.is_of(Chip, Server, UltraServer) else ():
        rates = [(d, r) for d in WIDTHS if (r := rate_at(node, (*group, kind, d))) is not None]
        for dtype, rate in rates:
            wider = [(d, r) for d, r in rates if WIDTHS[d] > WIDTHS[dtype] and is_below(rate, r)]
            if wider:
                other, more = wider[-1]
                see = (at(node, (*group, kind, other), text=f"{other}: {more}"),)
                message = f"{dtype} has {rate}, the wider {other} has {more}"
                yield Finding((*group, kind, dtype), message, "are the two rows swapped?", see)


TENSOR_SHARE = Interval(Fraction(99, 100), Fraction(5, 4))
"""Printed chip peak over the peak of the tensor engines: observed from 1.000 (Trainium3 MX) to 1.163 (Trainium3 FP32).
Not an equality, because publishers do not state which other engines they count."""


@rule("TRN607", "tensor-above-chip", over=Chip, local=True)
def tensor_above_chip(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """A peak of the tensor engines that does not fit the printed peak of the whole chip.

    Why:
        The printed peak of a chip counts the tensor engines and, on most generations, other engines. It is never smaller
        than the peak of the tensor engines, and at most a sixth larger on known chips; a larger gap means another type or
        another unit.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          tensor_peak:
            dense:
              bf16: 1,258 TFLOPS  #! TRN607
          memory: {capacity: 96 GiB}
        ```

    Instead:
        ```diff
        -      bf16: 1,258 TFLOPS
        +      bf16: 629 TFLOPS
        ```

    Source:
        The Neuron pages of Trainium1 to 3: 190 over 183.5, 667 over 629.1, 671 over 629.1, 183 over 157.3 TFLOPS.
    """
    for kind, dtype in EVERY_RATE:
        path: Path = ("spec", "tensor_peak", kind, dtype)
        tensor, whole = rate_at(chip, path), rate_at(chip, ("spec", "peak", kind, dtype))
        if tensor is None or whole is None or tensor.value == 0:
            continue
        ratio = whole.interval.ratio(tensor.interval)
        if not ratio.overlaps(TENSOR_SHARE):
            see = (at(chip, ("spec", "peak", kind, dtype), text=f"the whole chip: {whole}"),)
            quotient = render(whole.value / tensor.value, "x", 3)
            message = f"the tensor engines have {tensor}, the whole chip {whole}: {quotient}, expected 1x to 1.25x"
            yield Finding(path, message, "is one of the two of another type, or sparse?", see)


@rule("TRN608", "engine-rate-conflict", over=Chip, local=True)
def engine_rate_conflict(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """Types that the tensor engines compute at one rate, or chips with as many of the same cores, with different peaks.

    Why:
        Types with the same rate on the tensor engines share the same data path, and the other engines add the same to
        each of them. A peak that differs from the others of its row belongs to another type, or has a wrong digit. So has
        one that differs from that of a chip with as many of the same cores.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS, fp16: 767 TFLOPS}}  #! TRN608
          tensor_peak: {dense: {bf16: 629.1 TFLOPS, fp16: 629.1 TFLOPS}}
          memory: {capacity: 96 GiB}
        ```

    Instead:
        ```diff
        -  peak: {dense: {bf16: 667 TFLOPS, fp16: 767 TFLOPS}}
        +  peak: {dense: {bf16: 667 TFLOPS, fp16: 667 TFLOPS}}
        ```

    Source:
        The Neuron pages of Trainium1 to 3, which print one peak for BF16, FP16 and TF32.
    """
    groups: dict[tuple[str, Fraction], dict[str, Quantity]] = {}
    for kind, dtype in EVERY_RATE:
        rate, same = rate_at(chip, ("spec", "peak", kind, dtype)), rate_at(chip, ("spec", "tensor_peak", kind, dtype))
        if same is None and kind == "sparse":
            # Without a rate of the tensor engines: sparsity is the same gain for types of one dense rate.
            same = rate_at(chip, ("spec", "peak", "dense", dtype))
        if rate is not None and same is not None:
            groups.setdefault((kind, same.value), {})[dtype] = rate
    for (kind, _), rates in groups.items():
        agreeing = {
            d: sum(rate.interval.overlaps(other.interval) for other in rates.values()) for d, rate in rates.items()
        }
        other = max(rates, key=lambda dtype: agreeing[dtype])
        for dtype, rate in rates.items():
            if not rate.interval.overlaps(rates[other].interval):
                message = (
                    f"{dtype} has a peak of {rate} and {other} of {rates[other]}, at one rate of the tensor engines"
                )
                see = (at(chip, ("spec", "peak", kind, other), text=f"{other}: {rates[other]}"),)
                yield Finding(("spec", "peak", kind, dtype), message, f"{rates[other]}, as the others of the row?", see)
    yield from _same_cores(chip, graph)


@cached_by_graph
def _chips_by_cores(graph: Graph) -> Mapping[Any, Mapping[Any, Sequence[Node[Chip]]]]:
    """Map cores to the chips that have them, by their peaks."""
    found: dict[Any, dict[Any, list[Node[Chip]]]] = {}
    for chip in graph.of(Chip):
        found.setdefault(chip.spec.cores, {}).setdefault(chip.spec.peak, []).append(chip)
    return found


def _same_cores(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """The peaks that differ from those of another chip with as many of the same cores; integers too."""
    cores, peak = chip.spec.cores, chip.spec.peak
    if cores is None:
        return
    paths: list[Path] = [("spec", "peak", *rate) for rate in EVERY_RATE]
    rates = {path: rate for path in paths if (rate := rate_at(chip, path)) is not None}
    for other in (node for peaks, nodes in _chips_by_cores(graph)[cores].items() if peaks != peak for node in nodes):
        if other.target and other.name > chip.name:
            continue
        pairs = [(p, a, b) for p, a in rates.items() if (b := rate_at(other, p)) is not None]
        differing = [pair for pair in pairs if not pair[1].loose.overlaps(pair[2].loose)]
        # Where most differ, the cores have another clock.
        for path, own, known in differing if 2 * len(differing) < len(pairs) else ():
            message = (
                f"{path[-1]} has a peak of {own}, but {known} in {other.name}, which has as many of the same cores"
            )
            see = (at(other, path, text=f"{other.name}: {known}"),)
            yield Finding(path, message, f"{known}, as {other.name} has?", see)
