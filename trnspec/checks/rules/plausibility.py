"""Order and plausibility: values that contradict physics or every known chip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from trnspec.checks.reconcile.machines import TRANSFER
from trnspec.checks.reconcile.sites import is_below, rate_at
from trnspec.diagnostics import Severity
from trnspec.graph.graph import Graph, at, directed
from trnspec.model.chip import Chip
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.measurements import Measurements
from trnspec.model.quotes import Power, Price
from trnspec.model.reflection import dotted
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.dates import compared
from trnspec.quantities.quantity import render, significant
from trnspec.yaml import Path

RIDGE = (Fraction(5), Fraction(5_000))
"""Peak 16-bit rate over memory bandwidth, in FLOP/B: known chips have about 10 (processors with wide vectors) to about
1,000; the bounds leave a factor of two below and five above."""


@rule("TRN616", "zero-figure", over=object, local=True)
def zero_figure(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure of hardware, or a price, that is 0.

    Why:
        No product has a capacity, a rate or a price of 0; a form that was not filled in has. Evaluators divide by figures.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          memory: {capacity: 96 GiB, bandwidth: 0 TB/s}  #! TRN616
        ```

    Instead:
        ```diff
        -  memory: {capacity: 96 GiB, bandwidth: 0 TB/s}
        +  memory: {capacity: 96 GiB}
        ```

    Source:
        The definition of a figure: it is left out where it is not published.
    """
    hardware = node.is_of(Chip, Core, Link, Server, UltraServer, Price, Power)
    for path, figure in graph.figures(node).items() if hardware else ():
        if not figure.value.value:
            yield Finding(path, f"{dotted(path)} is {figure}", "leave it out if it is not known")


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
        ```diff
        -    bandwidth: 0.37 TB/s
        +    bandwidth: 3.5 TB/s
        ```

    Source:
        Hennessy, Patterson: Computer Architecture, 6th edition, 2.2: the slowest stage bounds a transfer.
    """
    dma, memory = rate_at(chip, ("spec", "dma", "bandwidth")), rate_at(chip, ("spec", "memory", "bandwidth"))
    if dma and memory and is_below(dma, memory):
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
        ```diff
        -    bandwidth: 820 MB/s
        +    bandwidth: 820 GB/s
        ```

    Source:
        Williams, Waterman, Patterson: Roofline, Communications of the ACM 52 (2009), for the ridge point.
    """
    memory = rate_at(chip, ("spec", "memory", "bandwidth"))
    peak = rate_at(chip, ("spec", "peak", "dense", "bf16")) or rate_at(chip, ("spec", "peak", "dense", "fp16"))
    if memory is None or peak is None or memory.value == 0:
        return
    ridge = peak.value / memory.value
    if not RIDGE[0] <= ridge <= RIDGE[1]:
        message = f"{peak} over {memory} is a ridge point of {significant(ridge, 4)} FLOP/B"
        dtype = "bf16" if rate_at(chip, ("spec", "peak", "dense", "bf16")) else "fp16"
        see = (at(chip, ("spec", "peak", "dense", dtype)),)
        yield Finding(
            ("spec", "memory", "bandwidth"), message, "a prefix is wrong; 100 to 1,000 FLOP/B are common", see
        )


_TECHNOLOGIES = (
    *("HBM", "GDDR", "LPDDR", "DDR", "DRAM", "SDRAM", "SRAM", "PCI", "PCIe", "NVLink", "NeuronLink", "InfiniBand"),
    *("Ethernet", "EFA", "RoCE", "CXL", "UALink", "UCIe", "Intel", "AMD", "NVIDIA", "Graviton", "AWS", "Arm"),
)
"""Words that technologies and processors begin with."""

_LICENCES = (
    *("Apache-2.0", "MIT", "MIT-0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "MPL-2.0", "GPL-2.0", "GPL-3.0", "LGPL-3.0"),
    *("AGPL-3.0", "Unlicense", "CC0-1.0", "CC-BY-4.0", "CC-BY-3.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0"),
)
"""SPDX identifiers of licences."""

PROCESS = (1, 180)
"""The node of a process in nm: of accelerators since 2008, with a margin."""

_TRANSFER_SHARE = (Fraction(9, 10), Fraction(11, 10))
"""The rate of a lane over that of its generation: with or without the overhead of coding."""


@rule("TRN617", "implausible-technology", over=object, severity=Severity.WARNING, local=True)
def implausible_technology(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A misspelt technology or licence, lanes of another generation, an impossible process or number of dies.

    Why:
        Readers filter by technologies and licences, and rules and formulas read them: memory is compared with that
        of stacks if it is HBM. A generation of PCIe has one rate per lane. The compute dies of a package are alike: they
        divide its cores.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          memory: {capacity: 96 GiB, technology: HMB3}  #! TRN617
          process: 5 um  #! TRN617
        ```

    Instead:
        ```diff
        -  memory: {capacity: 96 GiB, technology: HMB3}
        -  process: 5 um
        +  memory: {capacity: 96 GiB, technology: HBM3}
        +  process: 5 nm
        ```

    Source:
        PCI-SIG, PCI Express Base Specification: 8, 16, 32 and 64 GT/s; JEDEC, names of memory standards.
    """
    spec = node.spec
    if node.is_of(Chip):
        yield from _misspelt(("spec", "memory", "technology"), spec.memory.technology)
        process = spec.process or ""
        in_nm = re.match(r"([0-9]+(?:\.[0-9]+)?) nm", process)
        is_plausible = in_nm is not None and PROCESS[0] <= float(in_nm[1]) <= PROCESS[1]
        if re.match(r"[0-9.]+(?:[nuµm]m| |$)", process) and not is_plausible:
            yield Finding(
                ("spec", "process"), f"{spec.process} is not the node of a process", "write it in nm, as in 5 nm"
            )
        cores = spec.cores.count if spec.cores is not None else None
        if spec.dies and cores and cores % spec.dies:
            see = (at(node, ("spec", "cores", "count")),)
            yield Finding(
                ("spec", "dies"), f"{spec.dies} dies do not divide {cores} cores", "correct one of the two", see
            )
    if node.is_of(Server) and spec.host is not None:
        yield from _misspelt(("spec", "host", "cpu"), spec.host.cpu)
    if node.is_of(Measurements):
        yield from _misspelt_licences(spec.licence)
    if node.is_of(Link):
        path = ("spec", "technology")
        yield from _misspelt(path, spec.technology)
        generation = re.search(r"PCIe (?:Gen ?)?([1-6])\b(?! ?x)", spec.technology or "", re.IGNORECASE)
        rate = rate_at(node, ("spec", "lanes", "rate"))
        if generation and rate is not None:
            expected = TRANSFER[int(generation[1])]
            share = rate.value * 8 / (expected * 10**9)
            if not _TRANSFER_SHARE[0] <= share <= _TRANSFER_SHARE[1]:
                message = f"a lane of {spec.technology} has {float(expected):g} Gbit/s, not {rate}"
                see = (at(node, ("spec", "lanes", "rate")),)
                yield Finding(path, message, "correct the generation or the rate of a lane, in one direction", see)


def _misspelt(path: Path, text: str | None) -> Iterator[Finding]:
    """The finding of a text that begins with nearly, but not quite, a known word."""
    if text and not re.search(r"[^\W\d_]", text):
        yield Finding(path, f"{text!r} has no letters", "write the name of a technology, such as HBM3")
    word = re.match(r"[A-Za-z]*", text or "")
    known = {each.casefold() for each in _TECHNOLOGIES}
    if word and word[0].casefold() not in known:
        near = [each for each in _TECHNOLOGIES if _is_near(word[0].casefold(), each.casefold())]
        if near:
            yield Finding(
                path,
                f"{text!r} begins with {word[0]}, which is not a known technology",
                f"{max(near, key=lambda each: len(each) == len(word[0]))}?",
            )
    elif word and word[0].casefold() == "hbm" and not re.match(r"HBM(?:[234]e?)?(?!\w)", text or "", re.IGNORECASE):
        yield Finding(path, f"{text!r} is not a generation of HBM", "write HBM, HBM2, HBM2e, HBM3, HBM3e or HBM4")


def _misspelt_licences(text: str) -> Iterator[Finding]:
    """The findings of words that are nearly, but not quite, the SPDX identifier of a licence."""
    for word in re.split(r"[;,:()]+ ?", text):
        letters = re.sub(r"[ -]", "", word).casefold()
        near = [each for each in _LICENCES if _is_near(letters, each.replace("-", "").casefold())]
        near = [each for each in _LICENCES if letters == each.replace("-", "").casefold()] or near
        if near and word.strip() not in near:
            yield Finding(("spec", "licence"), f"{word.strip()!r} is not an SPDX identifier", f"{near[0]}?")


def _is_near(one: str, other: str) -> bool:
    """Whether two words differ by one letter more or less, or by two neighbours that are exchanged."""
    if len(one) == len(other):
        return sorted(one) == sorted(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 2
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) > 2 and shorter in {longer[:i] + longer[i + 1 :] for i in range(len(longer))}


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
        ```diff
        -    bandwidth: 2.9 Tbps
        +    bandwidth: 2.9 TB/s
        ```

    Source:
        JEDEC JESD235, JESD238 and JESD270-4, for the pins and capacities of HBM to HBM4.
    """
    memory, rate = chip.spec.memory, rate_at(chip, ("spec", "memory", "bandwidth"))
    is_stacked = memory.stacks is not None or "HBM" in str(memory.technology or "").upper()
    capacity = rate_at(chip, ("spec", "memory", "capacity"))
    if not is_stacked or rate is None or capacity is None or rate.value == 0:
        return
    time = capacity.value / rate.value
    if not READ_TIME[0] <= time <= READ_TIME[1]:
        message = f"{capacity} at {rate} are read once in {significant(time * 1000, 3)} ms, expected 5 to 100 ms"
        see = (at(chip, ("spec", "memory", "capacity"), text=f"the capacity: {capacity}"),)
        hint = "bits for bytes, a figure of one stack, or a wrong prefix? 20 to 45 ms are common"
        yield Finding(("spec", "memory", "bandwidth"), message, hint, see)


@rule("TRN609", "baseline-above-peak", over=Server, local=True)
def baseline_above_peak(server: Node[Server], graph: Graph) -> Iterator[Finding]:
    """A sustained rate of network or storage above its peak, or below it where another rate is not.

    Why:
        The baseline is what a server can always use, the peak what it can use for a time; the baseline is never larger.
        Where the bandwidth of storage has no other peak than its baseline, its operations have none either.

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
        ```diff
        -  network: {peak: 12.5 Gbps, baseline: 31.25 Gbps}
        +  network: {peak: 12.5 Gbps, baseline: 3.125 Gbps}
        ```

    Source:
        Amazon EC2 User Guide, instance network bandwidth.
    """
    network = server.spec.network
    for most, sustained in _RATES_OF_A_NETWORK if network is not None else ():
        peak, baseline = getattr(network, most), getattr(network, sustained)
        if peak is not None and baseline is not None and is_below(peak.value, baseline.value):
            see = (at(server, ("spec", "network", most), text=f"the peak: {peak}"),)
            message = f"the baseline is {baseline}, above the peak of {peak}"
            yield Finding(("spec", "network", sustained), message, "swapped, or a wrong digit?", see)
    figures = (getattr(network, name, None) for rates in _RATES_OF_A_NETWORK[1:] for name in rates)
    storage = [figure.value for figure in figures if figure is not None]
    if len(storage) < len(_RATES_OF_A_NETWORK[1:]) * 2:
        return
    rate, sustained_rate, iops, sustained = storage
    if rate.value == sustained_rate.value and is_below(sustained, iops):
        message = f"the baseline is {sustained} of {iops}, but that of the bandwidth is its peak"
        yield Finding(("spec", "network", "storage_iops"), message, "swapped, or a wrong digit?")


_RATES_OF_A_NETWORK = (
    ("peak", "baseline"),
    ("storage", "storage_baseline"),
    ("storage_iops", "storage_iops_baseline"),
)
"""Peak and sustained figures of a server."""


OF_LINKS = Fraction(1, 2)
"""Most bandwidth of the network of a server over that of the links of its chips, in one direction: 0.11 of those known."""

OF_A_CHIP = Fraction(2 * 10**12)
"""Most bandwidth of a network in bit/s for each chip, where no rate of the links is known: 800 Gbps of those known."""


@rule("TRN614", "network-above-links", over=Server, local=True)
def network_above_links(server: Node[Server], graph: Graph) -> Iterator[Finding]:
    """A network of a server with more than half the bandwidth of the links of its chips, or above 2 Tbps for each chip.

    Why:
        Links between chips exist because networks are slower: networks of known servers have up to 0.11 of the bandwidth
        of the links, and up to 800 Gbps for each chip. GB/s written for Gbps, or the total of an UltraServer, is far above.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          network: {bandwidth: "12,800 GB/s"}  #! TRN614
        ```

    Instead:
        ```diff
        -  network: {bandwidth: "12,800 GB/s"}
        +  network: {bandwidth: "3,200 Gbps"}
        ```

    Source:
        The servers of AWS and of NVIDIA in the catalogs of trnspec, of 2019 to 2026.
    """
    chip = graph.find(server.spec.chips.chip)
    count = int(server.spec.chips.count)
    path = ("spec", "links", "bandwidth")
    stated, factor = (path, 1) if chip is None else directed(chip, path, "both")
    links = None if chip is None else rate_at(chip, stated)
    most = OF_A_CHIP / 8 * count if links is None else links.value * factor / 2 * count * OF_LINKS
    for name in ("bandwidth", "peak", "baseline"):
        own = rate_at(server, ("spec", "network", name))
        if own is not None and own.interval.low > most:
            shown = render(most, own.unit, 3)
            why = "half the links of its chips" if links is not None else f"{count} x 2 Tbps"
            message = f"the network has {own}, expected at most {shown}, {why}"
            see = () if links is None or chip is None else (at(chip, path, text=f"the links: {links}"),)
            yield Finding(("spec", "network", name), message, "bytes for bits, or the total of several servers?", see)


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
        ```diff
        -    memory: 2,048 MiB
        +    memory: 2,048 GiB
        ```

    Source:
        Amazon EC2 User Guide, specifications of instance types.
    """
    host = server.spec.host
    if host is None or host.vcpus is None or host.memory is None:
        return
    each = host.memory.value.value / 2**30 / host.vcpus
    if not MEMORY_OF_A_CPU[0] <= each <= MEMORY_OF_A_CPU[1]:
        message = f"{host.memory} for {host.vcpus:,} virtual CPUs are {significant(each, 3)} GiB each, expected 0.25 to 64 GiB"
        see = (at(server, ("spec", "host", "vcpus")),)
        yield Finding(("spec", "host", "memory"), message, "swapped with the CPUs, or a wrong prefix?", see)


@rule("TRN610", "generation-order", local=True)
def generation_order(graph: Graph) -> Iterator[Finding]:
    """Two chips of one publisher whose generation numbers contradict each other, or the dates of their launch.

    Why:
        A publisher that counts its accelerators and its training chips counts both upwards: the second training chip is a
        later accelerator than the first, and was launched later, as an H200 was after an H100. Numbers that contradict
        this were swapped or copied, and so was the number of two chips.

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
        ```diff
        -  generation: {accelerator: 2, training: 2}
        +  generation: {accelerator: 3, training: 2}
        ```

    Source:
        The Neuron pages, which call Trainium2 the third generation of accelerators.
    """
    reported: set[str] = set()
    checked = {chip.name for chip in graph.focused(Chip)}
    for (_, name), by_number in _series(graph).items() if checked else ():
        numbers = sorted(by_number)
        for one, other in combinations(numbers, 2) if name == "training" else ():
            yield from _out_of_order(one, by_number[one], other, by_number[other])
        for number in numbers:
            if name == "training":
                yield from _twice(number, by_number[number])
            for chip in by_number[number]:
                before = [c for n in numbers if n < number <= MOST_APART * n for c in by_number[n]]
                if name == "accelerator" and _generation(chip, "training"):
                    # The others are compared by that number.
                    before = [c for c in before if not _generation(c, "training")]
                finding = _launched_before(before, chip) if chip.name in checked - reported else None
                if finding is not None:
                    reported.add(chip.name)
                    yield finding


def _series(graph: Graph) -> dict[tuple[str, str], dict[int, list[Node[Chip]]]]:
    """The chips by number in each series: a generation that a publisher counts, or names that differ in a number."""
    series: dict[tuple[str, str], dict[int, list[Node[Chip]]]] = {}
    for chip in graph.of(Chip):
        counted: list[tuple[str, str, int | None]] = []
        if named := _SERIES.match(chip.name):
            counted.append(("", named["letters"], int(named["number"])))
        page = graph.find(chip.metadata.source)
        if page is not None:
            counted += [(page.spec.publisher, name, _generation(chip, name)) for name in ("training", "accelerator")]
        for publisher, name, number in counted:
            if number is not None:
                series.setdefault((publisher, name), {}).setdefault(number, []).append(chip)
    return series


def _out_of_order(one: int, earlier: list[Node[Chip]], other: int, later: list[Node[Chip]]) -> Iterator[Finding]:
    """Chips of a later training generation that are not later accelerators; chips with equal numbers are compared once."""
    firsts, lasts = ({_generation(chip, "accelerator"): chip for chip in reversed(chips)} for chips in (earlier, later))
    for (lower, first), (upper, last) in product(firsts.items(), lasts.items()):
        if lower is not None and upper is not None and lower >= upper:
            message = (
                f"training generation {other} ({last.name}) is accelerator {upper}, "
                f"training generation {one} ({first.name}) is accelerator {lower}"
            )
            see = (at(first, ("spec", "generation"), text=first.name),)
            yield Finding(("spec", "generation"), message, "both numbers grow with time", see, last)


def _generation(chip: Node[Chip], series: str) -> int | None:
    """The number of a chip among the accelerators or the training chips of its publisher."""
    number = getattr(chip.spec.generation, series, None)
    return None if number is None else int(number)


_SERIES = re.compile(r"(?P<letters>[a-z]+)(?P<number>[0-9]+)(?![0-9.])")

MOST_APART = 3
"""The largest ratio of the numbers in the names of two chips that were launched in this order: an H800 is older than an H200."""


def _twice(number: int, chips: list[Node[Chip]]) -> Iterator[Finding]:
    """A training generation of two chips whose names have different numbers: one was copied from the other."""
    first, *others = sorted(chips, key=lambda chip: (chip.target, chip.name))
    for chip in others:
        named = _SERIES.match(first.name), _SERIES.match(chip.name)
        if chip.target and named[0] and named[1] and named[0][0] != named[1][0]:
            message = f"training generation {number} is that of {first.name}"
            see = (at(first, ("spec", "generation"), text=first.name),)
            yield Finding(
                ("spec", "generation"), message, f"write that of {chip.name}; the two are different chips", see, chip
            )


def _launched_before(earlier: list[Node[Chip]], chip: Node[Chip]) -> Finding | None:
    """A chip that was launched before the last one of the earlier generations."""
    last = max(earlier, key=lambda c: c.spec.launched or "", default=None)
    before, launched = None if last is None else last.spec.launched, chip.spec.launched
    if last is None or before is None or launched is None or compared(before, launched) <= 0:
        return None
    message = f"launched is {launched}, but {last.name}, of an earlier generation, was launched {before}"
    return Finding(
        ("spec", "launched"), message, "correct one of the two dates", (at(last, ("spec", "launched")),), chip
    )
