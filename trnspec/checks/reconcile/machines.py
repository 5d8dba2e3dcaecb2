"""A machine compared with the servers of a catalog: which one it is, and what differs.

Only what the description states is compared. A field that it lacks is reported as not reported, one that the catalog
lacks as not stated; neither is a difference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Literal

from attrs import evolve, frozen

from trnspec.errors import UsageError
from trnspec.graph.fabrics import fabric
from trnspec.graph.graph import Graph, figure_at
from trnspec.graph.provenance import credited_source
from trnspec.graph.quotes import upper_power
from trnspec.loading.host.machine import Accelerator, HostMachine
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.ref import indefinite
from trnspec.model.server import Server
from trnspec.quantities.quantity import render
from trnspec.topology.compare import difference
from trnspec.topology.fabric import FabricGraph, TopologyError, asymmetries

Outcome = Literal["agrees", "differs", "not reported", "not stated"]

RESERVED = Fraction(2, 100)
"""The largest part of its memory that an NVIDIA driver keeps back: an H100 of 81,920 MiB has a total of 81,559 MiB."""

TRANSFER = {1: Fraction(2), 2: Fraction(4), 3: Fraction(8), 4: Fraction(16), 5: Fraction(32), 6: Fraction(64)}
"""The transfer rate of a PCIe lane in GT/s by generation (PCI-SIG); vendors print it without the overhead of coding."""


@frozen(kw_only=True)
class PropertyRow:
    """One property of a machine and its counterpart in the catalog.

    Attributes:
        property: Its name.
        machine: The value of the machine; ``None`` if its description has none.
        catalog: The value of the catalog; ``None`` if it has none.
        outcome: How they compare.
        name: The document of the value.
        at: Its path below ``spec``.
        source: Its source.
        note: What explains the outcome.
    """

    property: str
    machine: str | None
    catalog: str | None
    outcome: Outcome
    name: str = ""
    at: str = ""
    source: str = ""
    note: str = ""


@frozen
class MachineComparison:
    """A machine compared with a catalog.

    Attributes:
        machine: The machine.
        reason: How the server is known, or why it is not.
        server: The server that it was compared with; empty if it is not known.
        chip: The chip of its devices; empty if it is not known.
        candidates: Servers of the catalog that the description fits, if it does not name one.
        rows: The properties.
    """

    machine: HostMachine
    reason: str
    server: str = ""
    chip: str = ""
    candidates: tuple[str, ...] = ()
    rows: tuple[PropertyRow, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether a property differs, or the catalog has nothing like this machine."""
        known = self.server or self.chip or self.candidates
        return not known or any(row.outcome == "differs" for row in self.rows)


def slug(product: str) -> str:
    """A product name as an alias in a catalog: ``NVIDIA H100 80GB HBM3`` is ``nvidia-h100-80gb-hbm3``."""
    return re.sub(r"[^a-z0-9]+", "-", product.lower()).strip("-")


def compare(graph: Graph, machine: HostMachine, name: str | None = None) -> MachineComparison:
    """Compare a machine with a server of a catalog.

    Raises:
        UsageError: The document of that name is not a server; or no document has the name of the products.
    """

    def compared(server: Node[Server], reason: str) -> MachineComparison:
        rows = tuple(_rows(graph, machine, server))
        return MachineComparison(machine, reason, server.name, server.spec.chips.chip.name, rows=rows)

    if name is not None:
        node = graph.named(name)
        if not isinstance(node.spec, Server):
            raise UsageError(f"{node.name} is {indefinite(node.kind)}; a machine is compared with a Server")
        return compared(node, "as requested")
    products = sorted({d.name for d in machine.devices if d.name})
    known = graph.lookup(machine.instance_type, Server) if machine.instance_type else None
    if known is not None:
        return compared(known, f"the instance type is {machine.instance_type}")
    chips = {p: chip for p in products if (chip := _chip(graph, p)) is not None}
    if products and not any(a.startswith(_VENDOR) for c in graph.of(Chip) for a in c.metadata.aliases):
        hint = "install trnspec-nvidia, or name its catalog with --catalog"
        raise UsageError(f"the catalog has no chips of NVIDIA, such as {products[0]}; {hint}")
    fitting = [s for s in graph.of(Server) if _fits(graph, machine, s)]
    what = _described(machine)
    if machine.instance_type:
        what = f"the catalog has no {machine.instance_type}; {what}"
    if len(fitting) == 1:
        return compared(fitting[0], f"{what}: only {fitting[0].name} has these")
    if fitting:
        tables = [{r.property: r for r in _rows(graph, machine, s)} for s in fitting]
        same, names = _alike(s.spec.chips.chip.name for s in fitting), tuple(s.name for s in fitting)
        reason = f"{what}: several servers have these"
        return MachineComparison(machine, reason, chip=same, candidates=names, rows=tuple(_shared(tables)))
    reason = f"{what}: no server of the catalog has these"
    missing = [p for p in products if p not in chips]
    if missing:
        reason = f"{what}: no chip of the catalog is called {', '.join(missing)}"
    elif not products and not any(_is_neuron(c) and c.name.startswith("inf") for c in graph.of(Chip)):
        reason += "; those of Inferentia are in trnspec-inferentia"
    if len(chips) != 1 or missing:
        return MachineComparison(machine, reason)
    (only,) = chips.values()
    return MachineComparison(machine, reason, chip=only.name, rows=tuple(_of_chip(graph, machine, only)))


_VENDOR = "nvidia-"
"""The beginning of the product names of NVIDIA as aliases."""


def _shared(tables: list[dict[str, PropertyRow]]) -> Iterator[PropertyRow]:
    """The rows that several candidates state alike; where their documents differ, without document and source."""
    for title, row in tables[0].items():
        rows = [t[title] for t in tables if title in t]
        if len(rows) == len(tables) and len({r.catalog for r in rows}) == 1:
            name, at, source = (_alike(getattr(r, key) for r in rows) for key in ("name", "at", "source"))
            yield evolve(row, name=name, at=at, source=source)


def _alike(texts: Iterable[str]) -> str:
    """The text that all of some are, or an empty one."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def _chip(graph: Graph, product: str) -> Node[Chip] | None:
    return graph.lookup(slug(product), Chip)


def _described(machine: HostMachine) -> str:
    first = machine.devices[0]
    texts = [f"{machine.attached or len(machine.devices)} x {first.name or 'device'}"]
    if first.memory is not None:
        texts.append(f"{_bytes(first.memory)} each")
    cores = _physical(first)
    if cores is not None:
        texts.append(f"{cores} cores each")
    return ", ".join(texts)


def _fits(graph: Graph, machine: HostMachine, server: Node[Server]) -> bool:
    """Whether every property that can be compared agrees; a server of another vendor's chip never fits."""
    chip = graph.find(server.spec.chips.chip)
    if chip is None or (machine.tool == "neuron-ls") != _is_neuron(chip):
        return False
    if any(d.name and _chip(graph, d.name) is not chip for d in machine.devices):
        return False
    rows = [r for r in _rows(graph, machine, server) if r.property not in ("power limit", "host link")]
    return all(row.outcome != "differs" for row in rows)


def _is_neuron(chip: Node[Chip]) -> bool:
    """Whether the Neuron tools list this chip: its cores are NeuronCores."""
    cores = chip.spec.cores
    return cores is not None and cores.core.name.startswith("neuroncore")


def _rows(graph: Graph, machine: HostMachine, server: Node[Server]) -> Iterator[PropertyRow]:
    yield from _of_server(graph, machine, server)
    chip = graph.find(server.spec.chips.chip)
    if chip is not None:
        yield from _of_chip(graph, machine, chip)


def _row(
    title: str, machine: str | None, catalog: str | None, place: Mapping[str, str], *, same: bool, note: str = ""
) -> PropertyRow:
    outcome: Outcome = "agrees" if same else "differs"
    if machine is None or catalog is None:
        outcome = "not reported" if machine is None else "not stated"
    return PropertyRow(property=title, machine=machine, catalog=catalog, outcome=outcome, note=note, **place)


def _of_server(graph: Graph, machine: HostMachine, server: Node[Server]) -> Iterator[PropertyRow]:
    count, listed = server.spec.chips.count, len(machine.devices)
    note = ""
    if listed < count:
        note = "a container or a partition may see fewer devices than the machine has"
    if machine.attached is not None and machine.attached > listed:
        note = f"{listed} of {machine.attached} attached devices are described"
    yield _count(graph, "devices", machine.attached or listed, server, "chips.count", note)
    tables = [d.neighbours for d in machine.devices if d.neighbours is not None]
    try:
        declared = fabric(graph, server)
        expected = declared.build() if declared is not None else None
    except TopologyError:
        expected = None
    if expected is not None and expected.switches:
        return  # links to switches are not listed by any tool
    yield _links(graph, server, tables, expected)
    yield _topology(graph, machine, server, tables, expected)


def _links(
    graph: Graph, server: Node[Server], tables: list[tuple[int, ...]], expected: FabricGraph | None
) -> PropertyRow:
    """The links of each device; without a declared number those of the declared topology."""
    at = "fabric.links_per_chip"
    stated = figure_at(server, ("spec", *at.split(".")))
    degrees = sorted({len(expected.links[v]) for v in range(expected.nodes)}) if expected is not None else []
    if stated is None and server.spec.chips.count == 1 and server.spec.fabric is None:
        degrees, at = [0], "chips.count"
    values = [int(stated)] if isinstance(stated, int) and len(degrees) < 2 else degrees
    counted = _each(sorted(map(len, tables))) if tables else None
    text = " or ".join(map(str, values)) or None
    same = all(len(t) in values for t in tables)
    return _row("links of a device", counted, text, _place(graph, server, at), same=same)


def _topology(
    graph: Graph,
    machine: HostMachine,
    server: Node[Server],
    tables: list[tuple[int, ...]],
    expected: FabricGraph | None,
) -> PropertyRow:
    """The graph of the links, up to the numbering of the devices."""
    declared = server.spec.fabric.topology if server.spec.fabric is not None else None
    words, place = None, {}
    if declared is not None:
        words = f"{declared.shape} {' x '.join(map(str, declared.dimensions))}".strip()
        place = _place(graph, server, "fabric.topology")
    text, note = None, ""
    outcome: Outcome = "not reported"
    numbers = {d.index: n for n, d in enumerate(machine.devices)}
    missing = sorted({m for table in tables for m in table if m not in numbers})
    if missing:
        note = f"linked devices that are not described: {', '.join(map(str, missing))}"
    elif any(tables) and len(tables) == len(machine.devices):
        rows = [[numbers[m] for m in table] for table in tables]
        one_sided = next(iter(asymmetries(rows)), None)
        if one_sided is not None:
            a, b = (machine.devices[n].index for n in one_sided)
            text = f"device {a} lists itself" if a == b else f"device {a} lists {b}, but {b} does not list {a}"
            outcome = "differs"
        elif expected is None:
            text, outcome = f"{sum(map(len, rows)) // 2} links", "not stated"
        else:
            found = difference(FabricGraph.from_adjacency(rows), expected)
            text, outcome = found or "the same graph", "differs" if found else "agrees"
    return PropertyRow(property="topology", machine=text, catalog=words, outcome=outcome, note=note, **place)


def _of_chip(graph: Graph, machine: HostMachine, chip: Node[Chip]) -> Iterator[PropertyRow]:
    devices = machine.devices
    products = sorted({d.name for d in devices if d.name})
    if products:
        same = all((node := _chip(graph, p)) is not None and node.name == chip.name for p in products)
        yield _row("product", ", ".join(products), chip.metadata.title, {"name": chip.name}, same=same)
    if machine.tool == "neuron-ls":
        yield _cores(graph, devices, chip)
    if any(d.partitioned for d in devices):
        count = sum(d.partitioned for d in devices)
        yield _row("partitions", f"MIG on {count} of {len(devices)}", None, {}, same=False)
    if chip.spec.memory.capacity is not None:
        yield _memory(graph, machine, chip)
    if machine.tool == "nvidia-smi":
        yield _power(graph, devices, chip)
        yield _host_link(graph, devices, chip)


def _cores(graph: Graph, devices: Iterable[Accelerator], chip: Node[Chip]) -> PropertyRow:
    listed = [d for d in devices if d.cores is not None]
    physical = [c for d in listed if (c := _physical(d)) is not None]
    note = ""
    logical = sorted({d.cores_in_one or 1 for d in listed})
    if logical not in ([], [1]):
        sizes = ", ".join(map(str, logical))
        note = f"{_each([d.cores for d in listed if d.cores])} logical cores of {sizes} physical cores each"
    stated = chip.spec.cores.count if chip.spec.cores is not None else None
    if stated is not None and physical and logical == [1] and all(c < stated and stated % c == 0 for c in physical):
        note = f"logical cores of {stated // physical[0]} physical cores each would explain it"
    return _count(graph, "cores of a device", physical, chip, "cores.count", note)


def _physical(device: Accelerator) -> int | None:
    return None if device.cores is None else device.cores * (device.cores_in_one or 1)


def _memory(graph: Graph, machine: HostMachine, chip: Node[Chip]) -> PropertyRow:
    sizes = [d.memory for d in machine.devices if d.memory is not None]
    figure = chip.spec.memory.capacity
    counted = _each(sizes, _mebibytes if machine.tool == "nvidia-smi" else _bytes) if sizes else None
    low, high = figure.interval.low, figure.interval.high
    outside = [s for s in sizes if Fraction(s) not in figure.interval]
    note = ""
    # Only the driver of NVIDIA keeps a part back; neuron-ls prints the capacity.
    kept = machine.tool == "nvidia-smi" and all(low * (1 - RESERVED) <= s <= (high or s) for s in outside)
    if outside and kept:
        share = 1 - Fraction(min(outside)) / figure.value.value
        note = f"the driver keeps {float(share):.1%} back".replace("%", " %")
    place = _place(graph, chip, "memory.capacity")
    return _row("memory of a device", counted, str(figure), place, same=not outside or kept, note=note)


def _power(graph: Graph, devices: Iterable[Accelerator], chip: Node[Chip]) -> PropertyRow:
    limits = [d.power for d in devices if d.power is not None]
    known = upper_power(graph, chip)
    figure = None if known is None else known.figure
    counted = _each(limits, lambda w: render(w, "W", 6)) if limits else None
    same = figure is not None and all(w in figure.interval for w in limits)
    place = _place(graph, chip if known is None else known.document, "power")
    return _row("power limit", counted, None if figure is None else figure.value.text, place, same=same)


def _host_link(graph: Graph, devices: Iterable[Accelerator], chip: Node[Chip]) -> PropertyRow:
    """PCIe of the host: the rate of both directions, which data sheets print."""
    at = "other.host_bandwidth"
    figure = figure_at(chip, ("spec", *at.split(".")))
    links = [d.pcie for d in devices if d.pcie is not None]
    counted = _each(links, lambda link: f"PCIe Gen{link[0]} x{link[1]}") if links else None
    text = str(figure) if isinstance(figure, Figure) else None
    same = isinstance(figure, Figure) and all(
        generation in TRANSFER and 2 * TRANSFER[generation] * lanes / 8 * 10**9 in figure.interval
        for generation, lanes in links
    )
    return _row("host link", counted, text, _place(graph, chip, at), same=same)


def _count(graph: Graph, title: str, counts: int | list[int], node: Node[Any], at: str, note: str = "") -> PropertyRow:
    """A count of the machine, or of each of its devices, and that of a document."""
    values = [counts] if isinstance(counts, int) else counts
    stated = figure_at(node, ("spec", *at.split(".")))
    text = f"{stated:,}" if isinstance(stated, int) else None
    counted = (f"{counts:,}" if isinstance(counts, int) else _each(counts)) if values else None
    return _row(title, counted, text, _place(graph, node, at), same=all(v == stated for v in values), note=note)


def _place(graph: Graph, node: Node[Any], at: str) -> dict[str, str]:
    """Document, path and source of a value."""
    source = credited_source(node, ("spec", *at.split(".")))
    known = source is not None and graph.find(source) is not None
    return {"name": node.name, "at": at, "source": source.name if source is not None and known else ""}


def _each(values: Iterable[Any], text: Any = str) -> str:
    """Equal values once, different ones with the number of devices: ``15 x 96 GiB, 1 x 48 GiB``."""
    counted = Counter(values)
    if len(counted) == 1:
        return str(text(next(iter(counted))))
    return ", ".join(f"{n} x {text(v)}" for v, n in counted.most_common())


def _bytes(size: int) -> str:
    """A number of bytes in GiB if it is a whole number of them, else in MiB or bytes."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if size and size % factor == 0:
            return f"{size // factor:,} {unit}"
    return f"{size:,} B"


def _mebibytes(size: int) -> str:
    return f"{size // 2**20:,} MiB"
