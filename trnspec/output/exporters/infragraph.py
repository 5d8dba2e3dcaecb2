"""An infrastructure of InfraGraph (https://infragraph.dev, ``infragraph`` on PyPI): a YAML file.

A server is a device with its chips (``xpu``) and switches; an UltraServer has an instance for each server, and a switch
that several servers share is a device of its own. The service of InfraGraph keeps one edge for each pair of components,
so parallel links are one edge with their rate together.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from attrs import define, field, frozen

from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.output.exporters.export_log import ExportLog, in_unit
from trnspec.output.exporters.exported import Export, ExportError
from trnspec.output.exporters.link_table import (
    BETWEEN,
    DIRECT,
    LinkTable,
    fabrics,
    link_table,
    out_of_part,
    per_direction,
    systems,
)
from trnspec.text_table import escape
from trnspec.topology.fabric import FabricGraph
from trnspec.topology.switched import Switched

_HEAD = "Infrastructure of InfraGraph, written by trnspec from checked figures."

_Item = dict[str, Any]
_Pair = tuple[int, int]


@frozen
class _Place:
    """A component of an instance of a device."""

    device: str
    instance: int
    component: str


@define
class _Device:
    title: str
    instances: int
    components: list[_Item] = field(factory=list)


def export(node: Node[Any], graph: Graph) -> Export:
    """Export a server or an UltraServer: its chips, its switches and the connections between them.

    Where the catalog does not declare the links, the chips are exported without edges, and the file says so. An unknown
    rate or latency of a link is left out.

    Raises:
        ExportError: The document has no chips, is not built of one kind of server, or has too many links to list.
        TopologyError: The declared topology contradicts the number of chips.
    """
    log = ExportLog(graph, node, "infragraph")
    count, chip = log.chip()
    servers, server = systems(log)
    log.assume("components", "chips and switches; how NICs, CPUs and memory are connected to them is not known")
    per_server = count // servers
    name, xpu = _name(server.name), _name(chip.name)
    devices = {name: _Device(server.metadata.title, servers)}
    devices[name].components.append(_component(xpu, chip.metadata.title, per_server, "xpu"))
    links: dict[str, _Item] = {}
    edges: dict[tuple[str, _Place, _Place], list[_Pair]] = {}
    network = _links_of(log, count)
    if network is not None:
        fabric = network.shape.build()
        places = [(_Place(name, i // per_server, xpu), i % per_server) for i in range(count)]
        places += _switches(network, fabric, devices, name)
        for (a, b, kind), parallel in Counter((e.a, e.b, e.kind) for e in fabric.edges).items():
            link = _link(log, network, kind, parallel, links)
            (one, i), (other, j) = places[a], places[b]
            edges.setdefault((link, one, other), []).append((i, j))
    return log.export(_written(log, devices, links, edges))


def _links_of(log: ExportLog, count: int) -> LinkTable | None:
    """The fabric, or ``None`` where none is declared."""
    try:
        return link_table(log, rated=False)
    except ExportError as error:
        if error.reason != "no-fabric":
            raise
        if count > 1:
            log.assume("edges", f"none: the links between the {count} chips are not known")
        return None


def _switches(
    network: LinkTable, fabric: FabricGraph, devices: dict[str, _Device], server: str
) -> Iterator[tuple[_Place, int]]:
    """The places of the switches in the order of their numbers; adds them to the devices."""
    if not isinstance(network.shape, Switched):
        return
    for level, title in zip(network.shape.levels, network.switches, strict=True):
        name, count = _name(title), fabric.nodes // level.size
        name = name if len(network.switches) == 1 else f"{name}-{level.size}"
        inside, rest = divmod(network.per_server, level.size)
        if inside and not rest:
            devices[server].components.append(_component(name, f"{title} of {level.size} chips", inside, "switch"))
            yield from ((_Place(server, i // inside, name), i % inside) for i in range(count))
        else:
            devices[name] = _Device(f"{title} of {level.size} chips", count)
            devices[name].components.append(_component("switch", title, 1, "switch"))
            yield from ((_Place(name, i, "switch"), 0) for i in range(count))


def _link(log: ExportLog, network: LinkTable, kind: str, parallel: int, links: dict[str, _Item]) -> str:
    """The name of the link of a connection; adds it to the links."""
    inner, outer = fabrics(log)
    at, declared = ("between_servers", outer) if kind in (BETWEEN, DIRECT) and outer else ("fabric", inner)
    name = "-".join([_name(declared.link.name), *([] if kind == "within" else [_name(kind)])])
    name = name if parallel == 1 else f"{name}-x{parallel}"
    if name in links:
        return name
    found = log.graph.find(declared.link)
    physical: _Item = {}
    where = f"links.{name}"
    rate: Fraction | None = None
    if not isinstance(network.shape, Switched):
        rate = None if found is None else per_direction(log, f"{where}.bandwidth", found)
    elif outer if kind == DIRECT else len(network.shape.levels) == 1:
        rate = out_of_part(log, f"{where}.bandwidth", at, declared)
        log.assume(f"{where}.bandwidth", "all links of one chip over this connection together, in one direction")
    if rate is None:
        log.assume(f"{where}.bandwidth", "left out: the rate of the connection is not known")
    else:
        physical["bandwidth"] = {"choice": _GBPS, _GBPS: float(in_unit(rate * parallel, "GB/s"))}
    latency = None if found is None else log.find(found, "latency")
    if latency is None:
        log.assume(f"{where}.latency", "left out: no latency of the link is known")
    else:
        value = log.use(f"{where}.latency", latency)
        physical["latency"] = {"choice": "us", "us": float(in_unit(value, "us"))}
    title = declared.link.name if found is None else found.metadata.title
    links[name] = {"name": name, "description": title, **({"physical": physical} if physical else {})}
    return name


_GBPS = "gigabytes_per_second"


def _component(name: str, title: str, count: int, choice: str) -> _Item:
    return {"name": name, "description": title, "count": count, "choice": choice, choice: {}}


def _name(text: str) -> str:
    """A name that its slice notation can hold."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text)


def _runs(pairs: Iterable[_Pair]) -> Iterator[tuple[str, str, str]]:
    """Pairs of numbers as slices of both ends with the scheme that joins them, each pair once."""
    left = set(pairs)
    for pair in sorted(left):
        if pair not in left:
            continue
        runs = [(_run(left, pair, step), step) for step in ((0, 1), (1, 0), (1, 1))]
        length, (da, db) = max(runs)
        left -= {(pair[0] + i * da, pair[1] + i * db) for i in range(length)}
        a, b = (f"[{start}:{start + (length - 1) * step + 1}]" for start, step in zip(pair, (da, db), strict=True))
        yield a, b, "one2one" if da == db == 1 else "many2many"


def _run(pairs: set[_Pair], start: _Pair, step: _Pair) -> int:
    length = 1
    while (start[0] + length * step[0], start[1] + length * step[1]) in pairs:
        length += 1
    return length


def _written(
    log: ExportLog,
    devices: dict[str, _Device],
    links: dict[str, _Item],
    edges: dict[tuple[str, _Place, _Place], list[_Pair]],
) -> str:
    title = log.node.metadata.title
    lines = log.comments(_HEAD)
    lines += [f"name: {_json(_name(log.node.name))}", f"description: {_json(title)}", "devices:"]
    for name, device in devices.items():
        inside: list[_Item] = []
        for (link, a, b), pairs in edges.items():
            # Every instance of a device has the connections of the first.
            if a.device == b.device == name and a.instance == b.instance == 0:
                inside += [
                    {
                        "ep1": {"component": a.component + x},
                        "ep2": {"component": b.component + y},
                        "scheme": s,
                        "link": link,
                    }
                    for x, y, s in _runs(pairs)
                ]
        lines += [f"  - name: {_json(name)}", f"    description: {_json(device.title)}"]
        lines += _listed("components", device.components, "    ")
        lines += _listed("links", _used(inside, links), "    ")
        lines += _listed("edges", inside, "    ")
    lines += _listed("instances", [{"name": n, "device": n, "count": d.instances} for n, d in devices.items()])
    outside = [
        {"ep1": _end(a, x), "ep2": _end(b, y), "scheme": s, "link": link}
        for (link, a, b), pairs in edges.items()
        if (a.device, a.instance) != (b.device, b.instance)
        for x, y, s in _runs(pairs)
    ]
    lines += _listed("links", _used(outside, links))
    lines += _listed("edges", outside)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _json(value: Any) -> str:
    """A value on one line: JSON is YAML too, but for escaped surrogates."""
    return escape(json.dumps(value, ensure_ascii=False))


def _used(edges: list[_Item], links: Mapping[str, _Item]) -> list[_Item]:
    return [links[name] for name in dict.fromkeys(str(edge["link"]) for edge in edges)]


def _end(place: _Place, numbers: str) -> _Item:
    return {"instance": f"{place.device}[{place.instance}]", "component": place.component + numbers}


def _listed(key: str, items: list[Any], indent: str = "") -> list[str]:
    if not items:
        return [f"{indent}{key}: []"]
    return [f"{indent}{key}:", *(f"{indent}  - {_json(item)}" for item in items)]
