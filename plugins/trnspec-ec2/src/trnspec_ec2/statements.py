"""The statements of a record, each with the attributes of the catalog that it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal

from attrs import frozen

from trnspec import Quantity
from trnspec.quantities.quantity import parse as quantity

Part = Literal["server", "chip", "core"]
"""The documents that a record is about: the size, its accelerator, and the core of that."""

DEVICES = (
    ("NeuronInfo", "NeuronDevices", "TotalNeuronDeviceMemoryInMiB"),
    ("GpuInfo", "Gpus", "TotalGpuMemoryInMiB"),
    ("InferenceAcceleratorInfo", "Accelerators", "TotalInferenceMemoryInMiB"),
)
"""The places of accelerators in the API: the object, its list of devices, and the memory of all of them."""


@frozen
class Target:
    """An attribute of the catalog.

    Attributes:
        part: Which of the documents has it.
        path: Its dotted path: ``spec.host.vcpus``.
    """

    part: Part
    path: str


@frozen(kw_only=True)
class Statement:
    """One statement of a record.

    Attributes:
        id: Its identifier: ``host-memory``.
        title: Its name in text.
        says: A figure, a count, or a word.
        text: As printed, if that is more than the figure.
        where: The place in the record.
        targets: Its attributes; the first of them that the catalog states is compared.
        adds: Whether it is an addition if the catalog states none of them.
    """

    id: str
    title: str
    says: Quantity | int | str
    text: str = ""
    where: str
    targets: tuple[Target, ...]
    adds: bool = True

    def __str__(self) -> str:
        """As printed."""
        return self.text or (f"{self.says:,}" if isinstance(self.says, int) else str(self.says))


@frozen
class Device:
    """Accelerators of one type in a record.

    Attributes:
        name: Their name in the API: ``Trainium2``.
        maker: Their manufacturer, if the record states it.
        count: Their number; ``None`` if the record does not state it.
        where: The place in the record.
        data: All values of the record for them.
    """

    name: str
    maker: str
    count: int | None
    where: str
    data: Mapping[str, Any]

    def __str__(self) -> str:
        """As text: ``16 x Trainium2``."""
        return self.title if self.count is None else f"{self.count} x {self.title}"

    @property
    def is_part(self) -> bool:
        """True for a partition of a chip: its count and memory are not those of chips."""
        return bool(self.data.get("GpuPartitionSize", 1) != 1)

    @property
    def title(self) -> str:
        """Maker and name: ``NVIDIA H100``."""
        doubled = self.name.lower().startswith(self.maker.lower())
        return self.name if doubled else f"{self.maker} {self.name}".strip()


def devices(data: Mapping[str, Any]) -> tuple[Device, ...]:
    """The accelerators of a record; those that the API lists under two keys are given for both."""
    return tuple(
        Device(each.get("Name", ""), each.get("Manufacturer", ""), each.get("Count"), f"{info}.{listed}[{i}]", each)
        for info, listed, _ in DEVICES
        for i, each in enumerate(data.get(info, {}).get(listed, ()))
    )


def distinct(listed: Iterable[Device]) -> tuple[Device, ...]:
    """The same, with those that the API lists under two keys given once, with the data of both."""
    merged: dict[str, Device] = {}
    for device in listed:
        first = merged.setdefault(device.name.casefold(), device)
        if first is not device:
            count = device.count if first.count is None else first.count
            data = {**device.data, **first.data}
            merged[device.name.casefold()] = Device(first.name, first.maker or device.maker, count, first.where, data)
    return tuple(merged.values())


_MOST = 10**15
"""A figure has at most 15 digits; the product of two counts that are read may have more."""


def printed(number: int | Decimal, unit: str) -> Quantity:
    """A number of the API with its unit, as the catalog writes it: ``2,048 GiB``."""
    text = f"{number:,}" if isinstance(number, int) else f"{number:,f}"
    return quantity(f"{text} {unit}")


def statements(data: Mapping[str, Any]) -> tuple[Statement, ...]:
    """All comparable statements of a record."""
    return (*_host(data), *_accelerators(data), *_adapters(data), *_network(data), *_storage(data))


def _of(part: Part, *paths: str) -> tuple[Target, ...]:
    return tuple(Target(part, f"spec.{path}") for path in paths)


def _stated(data: Mapping[str, Any], fields: Iterable[_Field], at: str = "") -> Iterator[Statement]:
    """The statements of a table of fields; a field that is missing has none."""
    for id_, title, where, says, part, path in fields:
        value: Any = data
        for key in where.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            # The bandwidth in MB/s repeats that in Mbit/s, so it adds nothing.
            yield Statement(
                id=id_, title=title, says=says(value), where=f"{at}{where}", targets=_of(part, path),
                adds=not where.endswith("InMBps"),
            )  # fmt: skip


def _host(data: Mapping[str, Any]) -> Iterator[Statement]:
    cpu = data.get("VCpuInfo", {})
    yield from _stated(data, _HOST[:1])
    if "DefaultCores" in cpu and "DefaultThreadsPerCore" in cpu:
        cores, threads = cpu["DefaultCores"], cpu["DefaultThreadsPerCore"]
        yield Statement(
            id="threads",
            title="vCPUs, as cores x threads",
            says=cores * threads,
            text=f"{cores} x {threads} = {cores * threads}",
            where="VCpuInfo.DefaultCores and VCpuInfo.DefaultThreadsPerCore",
            targets=_of("server", "host.vcpus"),
        )
    yield from _stated(data, _HOST[1:])


def _accelerators(data: Mapping[str, Any]) -> Iterator[Statement]:
    for device in devices(data):
        yield from _device(device)
    for info, _, total in DEVICES:
        size = data.get(info, {}).get(total)
        if size is not None and not any(d.is_part for d in devices(data)):
            yield Statement(
                id="device-memory-total",
                title="device memory of all chips",
                says=printed(size, "MiB"),
                where=f"{info}.{total}",
                targets=_of("server", "stated.memory.capacity"),
            )


def _device(device: Device) -> Iterator[Statement]:
    if device.name:
        targets = _of("server", "chips.chip")
        at = f"{device.where}.Name"
        yield Statement(id="chip", title="chip", says=device.name, text=device.title, where=at, targets=targets)
    if not device.is_part:
        yield from _stated(device.data, _DEVICE, f"{device.where}.")


EFA, NOT_EFA = "EFA", "not EFA"
"""The network technology of a record without EFA; the record does not name another one."""


def _adapters(data: Mapping[str, Any]) -> Iterator[Statement]:
    network = data.get("NetworkInfo", {})
    supported = network.get("EfaSupported")
    cards = _of("server", "network.nics")
    if supported is not None:
        says = EFA if supported else NOT_EFA
        where = "NetworkInfo.EfaSupported"
        targets = _of("server", "network.technology")
        yield Statement(id="efa", title="EFA", says=says, where=where, targets=targets, adds=supported)
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces")
    if most is not None and supported is not False:
        where = "NetworkInfo.EfaInfo.MaximumEfaInterfaces"
        yield Statement(id="efa-interfaces", title="EFA interfaces", says=most, where=where, targets=cards)
    fast = adapters(data)
    if fast and "NetworkCards" in network:
        where = "NetworkInfo.NetworkCards"
        yield Statement(id="cards", title="network cards with EFA", says=len(fast), where=where, targets=cards)
    if fast and len(fast) == len(network["NetworkCards"]) and "MaximumNetworkCards" in network:
        where = "NetworkInfo.MaximumNetworkCards"
        says = network["MaximumNetworkCards"]
        yield Statement(id="cards-most", title="network cards at most", says=says, where=where, targets=cards)


def adapters(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The network cards of a record that are adapters to other servers; none if it has no EFA."""
    network = data.get("NetworkInfo", {})
    if not network.get("EfaSupported"):
        return []
    cards = [c for c in network.get("NetworkCards", ()) if "efa" in c.get("InterfaceTypes", ["efa"])]
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces")
    if most is None or most >= len(cards):
        return cards
    # One card more than EFA interfaces, of another rate, connects the server with the outside: p6-b300.48xlarge.
    by_rate: dict[Any, list[Mapping[str, Any]]] = {}
    for card in cards:
        by_rate.setdefault(card.get("PeakBandwidthInGbps"), []).append(card)
    return next((group for group in by_rate.values() if len(group) == most), cards)


_PERFORMANCE = re.compile(r"(?:(\d{1,4}) ?x )?(up to )?(\d{1,6}(?:\.\d{1,6})?) (?:Gigabit|Gbps)", re.IGNORECASE)


def _rates(count: int, *, with_efa: bool) -> tuple[Target, ...]:
    """The attributes for the rate of all cards: of one card the advertised peak, of several with EFA the NICs."""
    paths = ("network.peak", "network.bandwidth") if with_efa else ("network.peak",)
    return _of("server", *(paths if count == 1 else reversed(paths)))


def _network(data: Mapping[str, Any]) -> Iterator[Statement]:
    network = data.get("NetworkInfo", {})
    cards = network.get("NetworkCards", [])
    fast = adapters(data)
    counted = fast or cards
    where = "NetworkInfo.NetworkCards"
    at = where + ("[0]" if len(counted) == 1 else "")
    peaks = [c["PeakBandwidthInGbps"] for c in counted if "PeakBandwidthInGbps" in c]
    if peaks and len(peaks) == len(counted):
        yield Statement(
            id="peak",
            title="peak rate of the network cards",
            says=printed(sum(peaks), "Gbps"),
            where=f"{at}.PeakBandwidthInGbps" + (", added" if len(counted) > 1 else ""),
            targets=_rates(len(counted), with_efa=bool(fast)),
        )
    for key, name in (("Peak", "peak"), ("Baseline", "baseline")):
        rates = [(i, c[f"{key}BandwidthInGbps"]) for i, c in enumerate(cards) if f"{key}BandwidthInGbps" in c]
        path = "other.network_card_" + name
        if len(cards) == 1 and name == "baseline":
            path = "network.baseline"
        for index, rate in rates if len(cards) > 1 or name == "baseline" else ():
            yield Statement(
                id=f"card-{name}",
                title=f"{name} rate of one network card",
                says=printed(rate, "Gbps"),
                where=f"{where}[{index}].{key}BandwidthInGbps",
                targets=_of("server", path),
                adds=path == "network.baseline",
            )
    yield from _advertised(network, with_efa=bool(fast))


def _advertised(network: Mapping[str, Any], *, with_efa: bool) -> Iterator[Statement]:
    text = network.get("NetworkPerformance", "")
    match = _PERFORMANCE.fullmatch(text.strip())
    if match is None:
        return  # a word such as "High" cannot be compared
    count, _, rate = match.groups()
    where = "NetworkInfo.NetworkPerformance"
    one = Decimal(rate) if "." in rate else int(rate)
    says = printed(one * int(count or 1), "Gbps")
    targets = _rates(int(count or 1), with_efa=with_efa)
    yield Statement(id="performance", title="advertised network", says=says, text=text, where=where, targets=targets)
    if count is not None and with_efa:
        targets = _of("server", "network.nics")
        title = "advertised network cards"
        yield Statement(
            id="performance-cards", title=title, says=int(count), text=text, where=where, targets=targets, adds=False
        )


def _storage(data: Mapping[str, Any]) -> Iterator[Statement]:
    disks = data.get("InstanceStorageInfo", {})
    yield from _stated(data, _DISKS)
    sizes = [d["Count"] * d["SizeInGB"] for d in disks.get("Disks", ()) if "Count" in d and "SizeInGB" in d]
    if sizes and len(sizes) == len(disks["Disks"]) and sum(sizes) < _MOST:
        where, says, targets = "InstanceStorageInfo.Disks", printed(sum(sizes), "GB"), _of("server", "local_storage")
        yield Statement(id="disks", title="local disks, added", says=says, where=where, targets=targets)
    yield from _stated(data, _EBS)


def _in(unit: str) -> Callable[[Any], Quantity]:
    return lambda number: printed(number, unit)


def _as_is(value: Any) -> Any:
    return value


_Field = tuple[str, str, str, Callable[[Any], Any], Part, str]
"""Identifier, title, place in the record, the statement by the value, and the document and path of the attribute."""

_HOST: tuple[_Field, ...] = (
    ("vcpus", "vCPUs", "VCpuInfo.DefaultVCpus", _as_is, "server", "host.vcpus"),
    ("host-memory", "host memory", "MemoryInfo.SizeInMiB", _in("MiB"), "server", "host.memory"),
    ("cpu", "maker of the processor", "ProcessorInfo.Manufacturer", _as_is, "server", "host.cpu"),
    ("clock", "clock", "ProcessorInfo.SustainedClockSpeedInGhz", _in("GHz"), "server", "other.cpu_clock"),
)
_DEVICE: tuple[_Field, ...] = (
    ("chips", "chips", "Count", _as_is, "server", "chips.count"),
    ("cores", "cores of a chip", "CoreInfo.Count", _as_is, "chip", "cores.count"),
    ("core-version", "version of the core", "CoreInfo.Version", "v{}".format, "core", "version"),
    ("device-memory", "device memory of a chip", "MemoryInfo.SizeInMiB", _in("MiB"), "chip", "memory.capacity"),
)
_DISKS: tuple[_Field, ...] = (
    ("local-storage", "local storage", "InstanceStorageInfo.TotalSizeInGB", _in("GB"), "server", "local_storage"),
)
_EBS: tuple[_Field, ...] = tuple(
    (id_, title, f"EbsInfo.EbsOptimizedInfo.{key}", _in(unit), "server", f"network.{path}")
    for key, id_, title, unit, path in (
        ("MaximumBandwidthInMbps", "ebs", "bandwidth to block storage", "Mbps", "storage"),
        ("MaximumThroughputInMBps", "ebs-throughput", "throughput to block storage", "MB/s", "storage"),
        ("MaximumIops", "ebs-iops", "operations on block storage", "IOPS", "storage_iops"),
        ("BaselineBandwidthInMbps", "ebs-baseline", "baseline to block storage", "Mbps", "storage_baseline"),
        (
            "BaselineThroughputInMBps", "ebs-baseline-throughput", "baseline throughput to block storage", "MB/s",
            "storage_baseline",
        ),
        (
            "BaselineIops", "ebs-baseline-iops", "baseline of operations on block storage", "IOPS",
            "storage_iops_baseline",
        ),
    )
)  # fmt: skip
