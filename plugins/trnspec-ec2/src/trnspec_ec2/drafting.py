"""Drafts of catalog files from the records of a type alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec import Graph, Interval, Quantity, Ref
from trnspec.model.core import Core
from trnspec.model.document_text import document_text
from trnspec_ec2.comparing import chip_named
from trnspec_ec2.statements import NOT_EFA, Device, Statement, devices, distinct, printed, statements

if TYPE_CHECKING:
    from trnspec import Node
    from trnspec_ec2.reading import Record

FOLDERS = {"Server": "servers", "Chip": "chips", "Source": "sources"}


@frozen
class Origin:
    """The source that drafts name.

    Attributes:
        name: Its name in the catalog.
        as_of: Its date; empty if the catalog has the source already.
        region: The region of the records, if it is known.
    """

    name: str
    as_of: str
    region: str = ""


@frozen
class Drafts:
    """Drafted files, with notes.

    Attributes:
        files: The text of each by its path in a catalog: ``servers/trn2.3xlarge.yaml``.
        left_out: Types that cannot be drafted, with the reason.
        notes: What the drafts omit, and why.
    """

    files: Mapping[str, str]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def draft(records: Iterable[Record], graph: Graph, origin: Origin, schemas: str) -> Drafts:
    """Draft a server for each record, and the chips and the source that the catalog lacks.

    Args:
        records: The records; those of types without accelerators are left out.
        graph: The catalog.
        origin: The source of all that is drafted.
        schemas: The folder of the JSON Schemas, from the folder of a kind.
    """
    drafter = _Drafter(graph, origin, schemas)
    wanted = sorted(records, key=lambda r: r.name)
    chips = drafter.chips(wanted)
    for record in wanted:
        drafter.server(record, chips)
    if drafter.files and origin.name not in graph.nodes:
        drafter.source()
    return Drafts(dict(sorted(drafter.files.items())), tuple(drafter.left_out), tuple(drafter.notes))


@frozen
class _NamedChip:
    """A chip that a server can name, with its memory if that is known."""

    name: str
    capacity: Interval | None


class _Drafter:
    """The drafts of one run."""

    def __init__(self, graph: Graph, origin: Origin, schemas: str) -> None:
        self.graph = graph
        self.origin = origin
        self.schemas = schemas
        self.files: dict[str, str] = {}
        self.left_out: list[str] = []
        self.notes: list[str] = []

    def add(self, kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        """Add the text of a document."""
        schema = f"{self.schemas}/{kind.lower()}.schema.json"
        self.files[f"{FOLDERS[kind]}/{metadata['name']}.yaml"] = document_text(kind, metadata, spec, schema)

    def source(self) -> None:
        """Draft the source."""
        where = f", {self.origin.region}" if self.origin.region else ""
        self.add(
            "Source",
            {"name": self.origin.name, "title": f"EC2 DescribeInstanceTypes{where}, {self.origin.as_of}"},
            {"publisher": "Amazon EC2 API", "as_of": self.origin.as_of, "rank": "vendor-api"},
        )

    def chips(self, records: Iterable[Record]) -> Mapping[str, _NamedChip | str]:
        """The chip of each device by its title: that of the catalog, else a draft, else the reason why there is none."""
        by_title: dict[str, list[tuple[str, Device]]] = {}
        for record in records:
            for device in distinct(devices(record.data)):
                by_title.setdefault(device.title, []).append((record.name, device))
        return {title: self.chip(title, places) for title, places in by_title.items()}

    def chip(self, title: str, places: list[tuple[str, Device]]) -> _NamedChip | str:
        """A chip, or the reason why it cannot be drafted."""
        type_, device = next(((t, d) for t, d in places if not d.is_part), places[0])
        known = chip_named(self.graph, device)
        if known is not None:
            memory = known.spec.memory  # an announced chip may have none
            return _NamedChip(known.name, None if memory is None else memory.capacity.interval)
        name = re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")
        sizes = {d.data.get("MemoryInfo", {}).get("SizeInMiB") for _, d in places if not d.is_part}
        if not name:
            return "the record does not name its chip"
        if name in self.graph:
            return f"the catalog has another document named {name}"
        if None in sizes or not sizes:
            return f"nothing says how much memory a {title} has"
        if len(sizes) > 1:
            amounts = " and ".join(f"{s:,} MiB" for s in sorted(s for s in sizes if s is not None))
            return f"the records give a {title} {amounts}"
        size = printed(device.data["MemoryInfo"]["SizeInMiB"], "MiB")
        spec: dict[str, Any] = {}
        core = self.core(device, title)
        if core is not None:
            spec["cores"] = {"core": core, "count": device.data["CoreInfo"]["Count"]}
        spec |= {"peak": {}, "memory": {"capacity": _figure(size, f"{device.where}.MemoryInfo.SizeInMiB")}}
        source = {"source": self.origin.name, "where": f"the record of {type_}"}
        self.add("Chip", {"name": name, "title": title, **source}, spec)
        self.notes.append(f"{name}: the API has no peak rates; peak is empty until a source is found")
        return _NamedChip(name, size.interval)

    def core(self, device: Device, title: str) -> str | None:
        """The core of the catalog that a device has; the draft has no cores if there is none."""
        info = device.data.get("CoreInfo", {})
        if not info.get("Count") or "Version" not in info:
            return None
        matches = [c.name for c in self.graph.of(Core) if c.spec.version == f"v{info['Version']}"]
        if len(matches) == 1:
            return matches[0]
        self.notes.append(f"{title}: the catalog has no core of version v{info['Version']}; its cores are left out")
        return None

    def server(self, record: Record, chips: Mapping[str, _NamedChip | str]) -> None:
        """Draft a server, or report why not."""
        by_title = {d.title: d for d in distinct(devices(record.data))}
        if len(by_title) != 1:
            reason = "its record lists no accelerator" if not by_title else f"it has {' and '.join(by_title)}"
            self.left_out.append(f"{record.name}: {reason}")
            return
        [(title, device)] = by_title.items()
        chip = chips[title]
        if device.is_part:
            self.left_out.append(f"{record.name}: it has a part of a chip, and a catalog counts whole ones")
            return
        if isinstance(chip, str) or not device.count:
            reason = chip if isinstance(chip, str) else "its record does not say how many accelerators it has"
            self.left_out.append(f"{record.name}: {reason}")
            return
        other: Node[Any] | None = self.graph.find(Ref(record.name))
        if other is not None and other.name != record.name:
            self.left_out.append(f"{record.name}: in the catalog that is another name of {other.name}")
            return
        figures = self.figures(record)
        self.memory(record, figures, device.count, chip)
        spec: dict[str, Any] = {
            "family": {"name": record.name.partition(".")[0]},
            "chips": {"chip": chip.name, "count": device.count},
        }
        for path, statement in figures.items():
            _put(spec, path.split("."), statement)
        metadata = {"name": record.name, "title": f"Amazon EC2 {record.name}", "source": self.origin.name}
        self.add("Server", metadata, spec)

    def figures(self, record: Record) -> dict[str, Statement]:
        """The statement to draft for each path of a server; none if a record contradicts itself."""
        by_path: dict[str, list[Statement]] = {}
        for statement in statements(record.data):
            target = statement.targets[0]
            if target.part == "server" and target.path in _DRAFTED and statement.says != NOT_EFA:
                by_path.setdefault(target.path.removeprefix("spec."), []).append(statement)
        chosen: dict[str, Statement] = {}
        for path in (p.removeprefix("spec.") for p in _DRAFTED):
            first, *more = by_path.get(path, [None])
            other = next((s for s in more if s is not None and first is not None and not _alike(first, s)), None)
            if first is not None and other is not None:
                both = f"{first} at {first.where} and {other} at {other.where}"
                self.notes.append(f"{record.name}: {path} is left out, for the record says {both}")
            elif first is not None and _is_zero(first):
                self.notes.append(f"{record.name}: {path} is left out, for the record says {first} at {first.where}")
            elif first is not None:
                chosen[path] = first
        return chosen

    def memory(self, record: Record, figures: dict[str, Statement], count: int, chip: _NamedChip) -> None:
        """Omit the total of the memory if it is not the sum over the chips."""
        total = figures.get("stated.memory.capacity")
        if total is None or chip.capacity is None or not isinstance(total.says, Quantity):
            return
        if not total.says.interval.overlaps(chip.capacity.scaled(count)):
            del figures["stated.memory.capacity"]
            self.notes.append(
                f"{record.name}: the device memory of {total} is left out, for {chip.name} has another; "
                "trnspec ec2 audit shows more"
            )


_DRAFTED = (
    "spec.host.vcpus",
    "spec.host.memory",
    "spec.network.technology",
    "spec.network.nics",
    "spec.network.bandwidth",
    "spec.network.peak",
    "spec.network.baseline",
    "spec.network.storage",
    "spec.local_storage",
    "spec.stated.memory.capacity",
    "spec.other.cpu_clock",
)
"""The attributes of a server that are drafted, in the order of the catalog."""


def _is_zero(statement: Statement) -> bool:
    says = statement.says
    return says.value == 0 if isinstance(says, Quantity) else says == 0


def _alike(a: Statement, b: Statement) -> bool:
    if isinstance(a.says, Quantity) and isinstance(b.says, Quantity):
        return a.says.interval.overlaps(b.says.interval)
    return a.says == b.says


def _put(spec: dict[str, Any], steps: list[str], statement: Statement) -> None:
    for step in steps[:-1]:
        spec = spec.setdefault(step, {})
    says = statement.says
    spec[steps[-1]] = _figure(says, statement.where) if isinstance(says, Quantity) else says


def _figure(value: Quantity, where: str) -> dict[str, str]:
    return {"value": str(value), "where": where}


def lacking(records: Iterable[Record], graph: Graph) -> Iterator[Record]:
    """The records of types with accelerators that the catalog has no document of."""
    return (r for r in records if devices(r.data) and r.name not in graph)
