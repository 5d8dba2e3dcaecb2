"""Order and plausibility: values that contradict physics or every known chip."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING

from trnspec.checks.reconcile.relations import EVERY_RATE
from trnspec.diagnostics import Severity
from trnspec.graph.generations import generation_numbers
from trnspec.graph.graph import Graph, at, figure_at
from trnspec.model.chip import Chip
from trnspec.model.figure import Figure
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.dates import compared
from trnspec.quantities.quantity import Interval, Quantity, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.model.document import Node
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

RIDGE = (Fraction(5), Fraction(5_000))
"""Peak 16-bit rate over memory bandwidth, in FLOP/B: known chips have about 10 (processors with wide vectors) to about
1,000; the bounds leave a factor of two below and five above."""


def _rate(chip: Node[Chip], path: Path) -> Quantity | None:
    figure = figure_at(chip, path)
    return figure.value if isinstance(figure, Figure) else None


@rule("TRN602", "sparse-below-dense", over=Chip, local=True)
def sparse_below_dense(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
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
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak:
            dense: {bf16: 667 TFLOPS}
            sparse: {bf16: "2,563 TFLOPS"}
          memory: {capacity: 96 GiB}
        ```

    Source:
        Mishra et al.: Accelerating Sparse Deep Neural Networks (2021), section 3, for how sparse rates are counted.
    """
    for group in ("peak", "tensor_peak"):
        for kind, dtype in EVERY_RATE:
            path: Path = ("spec", group, kind, dtype)
            dense: Path = ("spec", group, "dense", dtype)
            sparse_rate, dense_rate = _rate(chip, path), _rate(chip, dense)
            if kind == "sparse" and sparse_rate and dense_rate and _below(sparse_rate, dense_rate):
                message = f"the sparse rate of {dtype} is {sparse_rate}, the dense one {dense_rate}"
                yield Finding(path, message, "are the two swapped?", (at(chip, dense, text=str(dense_rate)),))


def _below(a: Quantity, b: Quantity) -> bool:
    high = a.interval.high
    return high is not None and high <= b.interval.low


@rule("TRN603", "narrow-type-slower", over=Chip, severity=Severity.WARNING, local=True)
def narrow_type_slower(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
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
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak:
            dense:
              bf16: 190 TFLOPS
              fp32: 47.5 TFLOPS
          memory: {capacity: 32 GiB}
        ```

    Source:
        Horowitz: Computing's energy problem, ISSCC 2014, for the cost of arithmetic by width.
    """
    for group in ("peak", "tensor_peak"):
        for kind in ("dense", "sparse"):
            rates = [(d, r) for d in WIDTHS if (r := _rate(chip, ("spec", group, kind, d))) is not None]
            for dtype, rate in rates:
                wider = [(d, r) for d, r in rates if WIDTHS[d] > WIDTHS[dtype] and _below(rate, r)]
                if wider:
                    other, more = wider[-1]
                    see = (at(chip, ("spec", group, kind, other), text=f"{other}: {more}"),)
                    message = f"{dtype} has {rate}, the wider {other} has {more}"
                    yield Finding(("spec", group, kind, dtype), message, "are the two rows swapped?", see)


@rule("TRN604", "dma-below-memory", over=Chip, severity=Severity.WARNING, local=True)
def dma_below_memory(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """A DMA bandwidth below the bandwidth of the device memory.

    Why:
        The DMA engines move data from device memory to the cores. A peak below the bandwidth of the memory means that one
        of the two figures is an achieved rate, or has another unit.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB, bandwidth: 2.9 TB/s}
          dma:
            bandwidth: 0.37 TB/s  #! TRN604
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB, bandwidth: 2.9 TB/s}
          dma:
            bandwidth: 3.5 TB/s
        ```

    Source:
        Hennessy, Patterson: Computer Architecture, 6th edition, 2.2: the slowest stage bounds a transfer.
    """
    dma, memory = _rate(chip, ("spec", "dma", "bandwidth")), _rate(chip, ("spec", "memory", "bandwidth"))
    if dma and memory and _below(dma, memory):
        see = (at(chip, ("spec", "memory", "bandwidth"), text=f"memory: {memory}"),)
        message = f"the DMA engines have {dma}, the device memory {memory}"
        yield Finding(("spec", "dma", "bandwidth"), message, "is this an achieved rate, or the rate of one core?", see)


@rule("TRN605", "implausible-ridge", over=Chip, severity=Severity.WARNING, local=True)
def implausible_ridge(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """A ridge point outside the range of known accelerators.

    Why:
        The ridge point, the peak rate over the memory bandwidth, is the arithmetic intensity above which a kernel is
        compute-bound. Outside 5 to 5,000 FLOP/B one of the two figures has a wrong prefix.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory:
            capacity: 32 GiB
            bandwidth: 820 MB/s  #! TRN605
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
        Williams, Waterman, Patterson: Roofline, Communications of the ACM 52 (2009), for the ridge point.
    """
    memory = _rate(chip, ("spec", "memory", "bandwidth"))
    peak = _rate(chip, ("spec", "peak", "dense", "bf16")) or _rate(chip, ("spec", "peak", "dense", "fp16"))
    if memory is None or peak is None or memory.value == 0:
        return
    ridge = peak.value / memory.value
    if not RIDGE[0] <= ridge <= RIDGE[1]:
        message = f"{peak} over {memory} is a ridge point of {float(ridge):,.4g} FLOP/B"
        yield Finding(("spec", "memory", "bandwidth"), message, "a prefix is wrong; 100 to 1,000 FLOP/B are usual")


READ_TIME = (Fraction(5, 1000), Fraction(1, 10))
"""Capacity over bandwidth of stacked memory, in seconds: 0.008 (HBM) to 0.042 (HBM2e) of known chips, with a factor of about
two on both sides."""


@rule("TRN612", "implausible-read-time", over=Chip, severity=Severity.WARNING, local=True)
def implausible_read_time(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """Stacked memory that would be read once in less than 5 ms or in more than 100 ms.

    Why:
        Capacity and bandwidth of a stack grow together, since both are its number of dies and pins: all known chips with
        HBM read their memory once in 8 to 42 ms. Bits for bytes, the figure of one stack or core, the memory of the host
        and a wrong prefix lie outside.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          memory:
            capacity: 96 GiB
            bandwidth: 2.9 Tbps  #! TRN612
            technology: HBM
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          memory:
            capacity: 96 GiB
            bandwidth: 2.9 TB/s
            technology: HBM
        ```

    Source:
        JEDEC JESD235, JESD238 and JESD270-4, for the pins and capacities of HBM to HBM4.
    """
    memory, rate = chip.spec.memory, _rate(chip, ("spec", "memory", "bandwidth"))
    is_stacked = memory.stacks is not None or (
        memory.technology is not None and "HBM" in str(memory.technology).upper()
    )
    capacity = _rate(chip, ("spec", "memory", "capacity"))
    if not is_stacked or rate is None or capacity is None or rate.value == 0:
        return
    time = capacity.value / rate.value
    if not READ_TIME[0] <= time <= READ_TIME[1]:
        message = f"{capacity} at {rate} are read once in {float(time) * 1000:,.3g} ms, expected 5 to 100 ms"
        see = (at(chip, ("spec", "memory", "capacity"), text=f"the capacity: {capacity}"),)
        hint = "bits for bytes, a figure of one stack, or a wrong prefix? 20 to 45 ms are usual"
        yield Finding(("spec", "memory", "bandwidth"), message, hint, see)


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
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          tensor_peak:
            dense:
              bf16: 629 TFLOPS
          memory: {capacity: 96 GiB}
        ```

    Source:
        The Neuron pages of Trainium1 to 3: 190 over 183.5, 667 over 629.1, 671 over 629.1, 183 over 157.3 TFLOPS.
    """
    for kind, dtype in EVERY_RATE:
        path: Path = ("spec", "tensor_peak", kind, dtype)
        tensor, whole = _rate(chip, path), _rate(chip, ("spec", "peak", kind, dtype))
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
    """Types that the tensor engines compute at one rate, but that have different printed peaks.

    Why:
        Types with the same rate on the tensor engines share the same data path, and the other engines add the same to
        each of them. A peak that differs from the others of its row belongs to another type, or has a wrong digit.

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
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS, fp16: 667 TFLOPS}}
          tensor_peak: {dense: {bf16: 629.1 TFLOPS, fp16: 629.1 TFLOPS}}
          memory: {capacity: 96 GiB}
        ```

    Source:
        The Neuron pages of Trainium1 to 3, which print one peak for BF16, FP16 and TF32.
    """
    groups: dict[tuple[str, Fraction], list[str]] = {}
    for kind, dtype in EVERY_RATE:
        tensor = _rate(chip, ("spec", "tensor_peak", kind, dtype))
        if tensor is not None and _rate(chip, ("spec", "peak", kind, dtype)) is not None:
            groups.setdefault((kind, tensor.value), []).append(dtype)
        elif kind == "sparse":
            # Without a rate of the tensor engines: sparsity is the same gain for types of one dense rate.
            dense, sparse = _rate(chip, ("spec", "peak", "dense", dtype)), _rate(chip, ("spec", "peak", kind, dtype))
            if dense is not None and sparse is not None:
                groups.setdefault((kind, dense.value), []).append(dtype)
    for (kind, _), dtypes in groups.items():
        rates = {dtype: rate for dtype in dtypes if (rate := _rate(chip, ("spec", "peak", kind, dtype))) is not None}
        agreeing = {
            d: sum(rate.interval.overlaps(other.interval) for other in rates.values()) for d, rate in rates.items()
        }
        usual = max(rates, key=lambda dtype: agreeing[dtype])
        for dtype, rate in rates.items():
            if not rate.interval.overlaps(rates[usual].interval):
                message = (
                    f"{dtype} has a peak of {rate} and {usual} of {rates[usual]}, at one rate of the tensor engines"
                )
                see = (at(chip, ("spec", "peak", kind, usual), text=f"{usual}: {rates[usual]}"),)
                yield Finding(("spec", "peak", kind, dtype), message, f"{rates[usual]}, as the others of the row?", see)


@rule("TRN609", "baseline-above-peak", over=Server, local=True)
def baseline_above_peak(server: Node[Server], graph: Graph) -> Iterator[Finding]:
    """A sustained network bandwidth above the advertised peak.

    Why:
        The baseline is what a server can always use, the peak what it can use for a time; the baseline is never larger.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chips: {chip: trainium1, count: 1}
          network: {peak: 12.5 Gbps, baseline: 31.25 Gbps}  #! TRN609
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chips: {chip: trainium1, count: 1}
          network: {peak: 12.5 Gbps, baseline: 3.125 Gbps}
        ```

    Source:
        Amazon EC2 User Guide, instance network bandwidth.
    """
    network = server.spec.network
    for most, sustained in _RATES_OF_A_NETWORK if network is not None else ():
        peak, baseline = getattr(network, most), getattr(network, sustained)
        if peak is not None and baseline is not None and _below(peak.value, baseline.value):
            see = (at(server, ("spec", "network", most), text=f"the peak: {peak}"),)
            message = f"the baseline is {baseline}, above the peak of {peak}"
            yield Finding(("spec", "network", sustained), message, "swapped, or a wrong digit?", see)


_RATES_OF_A_NETWORK = (
    ("peak", "baseline"),
    ("storage", "storage_baseline"),
    ("storage_iops", "storage_iops_baseline"),
)
"""Peak and sustained figures of a server."""


MEMORY_OF_A_CPU = (Fraction(1, 4), Fraction(64))
"""Host memory for each virtual CPU, in GiB: 0.5 to 32 of the instance types that are sold."""


@rule("TRN613", "implausible-host-memory", over=Server, severity=Severity.WARNING, local=True)
def implausible_host_memory(server: Node[Server], graph: Graph) -> Iterator[Finding]:
    """A host with less than 0.25 GiB of memory for each virtual CPU, or with more than 64 GiB.

    Why:
        Instance types have 0.5 to 32 GiB of memory for each virtual CPU. Far outside, the two figures are swapped, or one
        has a wrong prefix.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          host:
            vcpus: 192
            memory: 2,048 MiB  #! TRN613
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          host:
            vcpus: 192
            memory: 2,048 GiB
        ```

    Source:
        Amazon EC2 User Guide, specifications of instance types.
    """
    host = server.spec.host
    if host is None or host.vcpus is None or host.memory is None:
        return
    each = host.memory.value.value / 2**30 / host.vcpus
    if not MEMORY_OF_A_CPU[0] <= each <= MEMORY_OF_A_CPU[1]:
        message = (
            f"{host.memory} for {host.vcpus:,} virtual CPUs are {float(each):,.3g} GiB each, expected 0.25 to 64 GiB"
        )
        see = (at(server, ("spec", "host", "vcpus")),)
        yield Finding(("spec", "host", "memory"), message, "swapped with the CPUs, or a wrong prefix?", see)


@rule("TRN610", "generation-order", local=True)
def generation_order(graph: Graph) -> Iterator[Finding]:
    """Two chips of one publisher whose generation numbers contradict each other, or the dates of their launch.

    Why:
        A publisher that counts its accelerators and its training chips counts both upwards: the second training chip is a
        later accelerator than the first, and was launched later. Numbers that contradict this were swapped or copied.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          generation: {accelerator: 2, training: 2}  #! TRN610
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB}
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          generation: {accelerator: 3, training: 2}
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB}
        ```

    Source:
        The Neuron pages, which call Trainium2 the third generation of accelerators.
    """
    counted: dict[str, dict[tuple[int, int], list[Node[Chip]]]] = {}
    checked = {chip.name for chip in graph.focused(Chip) if generation_numbers(chip) is not None}
    for chip in graph.of(Chip) if checked else ():
        numbers = generation_numbers(chip)
        page = None if numbers is None else graph.lookup(numbers[2], Source)
        if numbers is None or page is None:
            continue
        # Chips with equal numbers are compared once.
        counted.setdefault(page.spec.publisher, {}).setdefault(numbers[:2], []).append(chip)
    for chips in counted.values():
        for one, other in combinations(sorted(chips), 2):
            for earlier, later in product(chips[one], chips[other]) if one[0] < other[0] and one[1] >= other[1] else ():
                path: Path = ("spec", "generation")
                message = (
                    f"training generation {other[0]} ({later.name}) is accelerator {other[1]}, "
                    f"training generation {one[0]} ({earlier.name}) is accelerator {one[1]}"
                )
                see = (at(earlier, path, text=earlier.name),)
                yield Finding(path, message, "both numbers grow with time", see, later)
            if one[0] < other[0]:
                yield from _launched_before(chips[one], [c for c in chips[other] if c.name in checked])


def _launched_before(earlier: Iterable[Node[Chip]], later: Iterable[Node[Chip]]) -> Iterator[Finding]:
    """Chips that were launched before one of an earlier generation, each compared with the last one of these."""
    dated = [chip for chip in later if chip.spec.launched is not None]
    last = max(earlier, key=lambda chip: chip.spec.launched or "") if dated else None
    before = None if last is None else last.spec.launched
    for chip in dated:
        if last is not None and before is not None and compared(before, str(chip.spec.launched)) > 0:
            message = f"launched is {chip.spec.launched}, but {last.name}, the generation before, was launched {before}"
            see = (at(last, ("spec", "launched")),)
            yield Finding(("spec", "launched"), message, "correct one of the two dates", see, chip)
