"""Lowering: a :class:`LoweredSystem`, the input of the performance engine, from the figures of the catalog graph; and models by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from pathlib import PurePath
from typing import Any

from attrs import asdict, evolve

from trnspec.diagnostics import did_you_mean, in_plugin, nearest
from trnspec.errors import RefusalError, UnknownNameError, UsageError
from trnspec.graph import composition
from trnspec.graph.fabrics import fabric as shape_of
from trnspec.graph.graph import Graph, directed
from trnspec.graph.provenance import Stated, stated
from trnspec.model.chip import Chip
from trnspec.model.document import Metadata, Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import dotted, value_at
from trnspec.model.transformers.model import Model
from trnspec.model.transformers.names import base_name, name_key
from trnspec.perf.lowering.machine import UNKNOWN, Level, LoweredSystem
from trnspec.topology.fabric import TopologyError
from trnspec.topology.switched import Switched
from trnspec.yaml import Document, Places

ON = re.compile(r"(?P<name>[a-z0-9][a-z0-9.-]*?)(?:\s*\*\s*(?P<count>[1-9][0-9]{0,5}))?\Z")
"""The name of a system, and how many of it."""
_MISSPELLED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,79}?)(?P<count>|\s*\*\s*[1-9][0-9]{0,5})")
_FABRICS = ("fabric", "between_servers")


@lru_cache(maxsize=64)  # a sweep may name any number of systems
def lower(graph: Graph, on: str, *, lnc: int | None = None, chips: int | None = None) -> LoweredSystem:
    """The system that ``trn1.32xlarge*32`` names: N servers or UltraServers, or one chip alone.

    Args:
        graph: The catalog.
        on: The name of a server, an UltraServer or a chip, with ``*`` and the number of them.
        lnc: Physical cores of a logical core; a rank is a logical core on Neuron. 2 from Trainium2 on, else 1.
        chips: Number of chips to use, the same number of each unit; all if omitted.

    Raises:
        UsageError: The text is not a name with an optional count, or the document is of another kind.
        UnknownNameError: There is no such document.
        RefusalError: A figure that is needed is not published.
    """
    match = ON.match(on.strip())
    if match is None:
        hint = _hint(graph, on.strip()) or "write a name, and how many: trn1.32xlarge*32"
        raise UsageError(f"{on!r} is not a system; {hint}")
    name = match["name"]
    try:
        node = graph.named(name)
    except UnknownNameError:
        # Systems of similar names, and no prices or sources.
        near = _hint(graph, name)
        message = f"no system is named {name!r}" + (f"; {near}" if near else "")
        raise UnknownNameError(message, hint=in_plugin(name)) from None
    lowering = _Lowering(graph, node, int(match["count"]) if match["count"] else None, lnc)
    slow, value, fast = (lowering.system(on, end) for end in ("slow", "value", "fast"))
    if chips is not None and chips != value.chips:
        slow, value, fast = (_some(system, chips) for system in (slow, value, fast))
    return evolve(value, ends=(slow, fast))


def _hint(graph: Graph, on: str) -> str:
    """A hint with the systems of similar names, such as with other capitals; empty if there are none."""
    parts = _MISSPELLED.fullmatch(on)
    if parts is None:
        return ""
    name, count = parts["name"].lower(), parts["count"].lower()
    names = [name] if name in graph.aliases else nearest(name, _systems(graph))
    return f"did you mean {' or '.join(repr(n + count) for n in names)}?" if names else ""


def _systems(graph: Graph) -> list[str]:
    """The names of chips, and of what is composed of chips."""
    of_chips = [n for n in graph.nodes.values() if Chip in composition.declared_closure(n.spec_class)]
    return [alias for n in (*graph.of(Chip), *of_chips) for alias in (n.name, *n.metadata.aliases)]


def _some(system: LoweredSystem, chips: int) -> LoweredSystem:
    """The system with only some of its chips: the same number of each unit, with unchanged link rates."""
    inner = [level for level in system.levels if level.ranks != float("inf")]
    shares = _evenly(chips, int(system.chips), [int(level.ranks / system.ranks_per_chip) for level in reversed(inner)])
    if not shares or chips > system.chips:
        raise RefusalError(
            "chip-count",
            f"{chips} chips are not taken evenly from the {int(system.chips)} of {system.name}",
            place="chips",
        )
    levels = [
        evolve(level, ranks=share * system.ranks_per_chip) for level, share in zip(inner, shares[:0:-1], strict=True)
    ]
    servers = next((chips / level.ranks * system.ranks_per_chip for level in levels if level.name == "server"), 0.0)
    widest = shares[1] if inner else 1
    return evolve(
        system, name=f"{system.name}, {chips} chips", chips=float(chips), ranks=chips * system.ranks_per_chip,
        servers=servers or float(ceil(chips * system.servers / system.chips)),
        levels=(*levels, *(level for level in system.levels if level not in inner and widest < chips)),
    )  # fmt: skip


def _evenly(chips: int, whole: int, units: Sequence[int]) -> list[int]:
    """Chips of the system and of a unit of each level, from the outermost; empty if they do not divide evenly.

    Each level uses as few units as possible, each of them in the same part, and fewer than twice as many as could hold the
    chips: 40 racks with 64 of 72 chips, but not 17 servers with one of 16.  A chip is not divided.

    Args:
        chips: Chips to use.
        whole: Chips of the whole system.
        units: Chips of a whole unit of each level, from the outermost.
    """
    shares = [chips]
    for unit in units:
        share = shares[-1]
        least = max(1, -(-share // unit))
        most = min(whole // unit, 2 * least - 1)
        few = next((n for n in range(least, most + 1) if share % n == 0), 0)
        if few * unit > whole or not few:
            return []
        shares.append(share // few)
        whole = unit
    return shares if chips > 0 else []


class _Lowering:
    """Reads figures at either end of their intervals, and records the figures used."""

    def __init__(self, graph: Graph, node: Node[Any], count: int | None, lnc: int | None) -> None:
        self.graph = graph
        self.node = node
        self.end = "value"
        self.wanted_lnc = lnc
        self.stated: dict[tuple[str, str], Stated | None] = {}
        self.count = count or 1
        """The number of units, linked by the network."""
        self.units = 1
        """Servers of the unit."""
        self.unit = node
        """The scale-up domain: a server, or a document such as an UltraServer with a fabric among its servers."""
        self.server = self._server(count)
        counted: tuple[int, Node[Chip]] | None = (
            (1, node) if self.server is None else composition.chips(graph, self.server)
        )
        if counted is None:
            raise UsageError(f"{(self.server or node).name} is built of several kinds of chips")
        self.in_server, self.chip = counted
        if self.chip.spec.memory.capacity is None:
            raise RefusalError(
                "announced",
                f"{self.chip.name} is announced, not published: its memory and peak rates are not known",
                place=f"{self.chip.name} spec.memory",
                hint=f"give its memory.capacity, memory.bandwidth and peak.dense with --assume {self.chip.name}.PATH=VALUE",
            )

    def _server(self, count: int | None) -> Node[Any] | None:
        """The server that the system is built of; ``None`` for a chip alone. It sets the unit and the counts."""
        node = self.node
        if isinstance(node.spec, Chip):
            if self.count > 1:
                raise RefusalError(
                    "unknown-topology",
                    f"{node.name} is a chip, and how {self.count} of them are linked is not known",
                    place="on",
                    hint="a server or an UltraServer",
                )
            return None
        servers = composition.server_occurrences(self.graph, node)
        if servers is None:
            raise UsageError(f"{node.name} is built of a part that is not in the catalog, or is of another kind")
        if not servers:
            raise UsageError(f"{node.kind} {node.name} has no chips; name a server, an UltraServer or a chip")
        if len(servers) > 1:
            names = ", ".join(dict.fromkeys(o.node.name for o in servers))
            raise UsageError(f"{node.name} is built of several parts ({names}); name one of them")
        occurrence = servers[0]
        domains = [i for i, (holder, _) in enumerate(occurrence.steps) if hasattr(holder.spec, "fabric")]
        linked = [i for i in domains if any(getattr(occurrence.steps[i][0].spec, name, None) for name in _FABRICS)]
        if len(linked) > 1:
            names = " and ".join(occurrence.steps[i][0].name for i in linked)
            raise UsageError(f"{names} both have a fabric among servers, and only one of them can be modelled")
        first = (linked or domains[-1:] or [len(occurrence.steps)])[0]
        self.unit = occurrence.steps[first][0] if first < len(occurrence.steps) else occurrence.node
        for index, (_, part) in enumerate(occurrence.steps):
            if not isinstance(part.count, int):
                # A number that is not published exactly is taken from the name: ``CLUSTER*N``.
                if count is None:
                    known = "" if part.count is None else f"; known is {part.count}"
                    raise UsageError(
                        f"how many {part.node.name} {node.name} has is not known exactly{known}; "
                        f"write {node.name}*N for N of them"
                    )
            elif index < first:
                self.count *= part.count
            else:
                self.units *= part.count
        return occurrence.node

    def read(self, node: Node[Any], at: str, *, slow_is_high: bool = False) -> float:
        """A figure in base units, or :data:`UNKNOWN`; it is recorded as used."""
        if (node.name, at) not in self.stated:
            path = ("spec", *at.split("."))
            value = value_at(node.spec, path[1:])
            self.stated[node.name, at] = stated(self.graph, node, path, value) if isinstance(value, Figure) else None
        figure = self.stated[node.name, at]
        if figure is None:
            return UNKNOWN
        interval = figure.interval
        low, high = (self.end == "slow") != slow_is_high, (self.end == "fast") != slow_is_high
        if self.end != "value" and low:
            return float(interval.low)
        if self.end != "value" and high and interval.high is not None:
            return float(interval.high)
        return float(figure)

    def system(self, name: str, end: str) -> LoweredSystem:
        """The system with figures at an end of their intervals: ``slow``, ``fast``, or ``value`` for the figures themselves."""
        self.end = end
        chip = self.chip.spec
        per_chip = 1.0
        lnc = 0
        cores = chip.cores
        # On Neuron programs run on single cores of the chip; elsewhere a rank is a chip.
        if cores and self.graph.find(cores.core) is not None and cores.core.name.startswith("neuroncore"):
            # From Trainium2 on, two physical cores make one logical core by default.
            lnc = self.wanted_lnc if self.wanted_lnc is not None else (2 if cores.count >= 8 else 1)
            if lnc not in (1, 2) or cores.count % lnc or (lnc == 2 and cores.count < 8):
                raise RefusalError(
                    "logical-cores",
                    f"{self.chip.name} has {cores.count} cores of which no logical cores of {lnc} are made",
                    place="lnc",
                    hint="1 everywhere; 2 from Trainium2 on",
                )
            per_chip = float(cores.count // lnc)
        elif self.wanted_lnc is not None:
            raise UsageError(f"{self.chip.name} has no logical cores, so lnc means nothing to it")
        # Two cores of Trainium2, where each is a rank, share a memory stack.
        stacks = chip.memory.stacks.count if chip.memory and chip.memory.stacks else None
        in_server, units = self.in_server, self.units
        servers = units * self.count
        rates, published = self._rates(per_chip)
        capacity = self.read(self.chip, "memory.capacity")
        bandwidth = self.read(self.chip, "memory.bandwidth")
        levels = self._levels(per_chip, float(in_server), float(units), bandwidth)
        host = self.read(self.server, "host.memory") if self.server is not None else UNKNOWN
        return LoweredSystem(
            name=name.strip(),
            chip=self.chip.name,
            chips=float(in_server * servers),
            servers=float(servers),
            ranks=in_server * servers * per_chip,
            ranks_per_chip=per_chip,
            lnc=float(lnc),
            rates=rates,
            published=published,
            capacity=capacity / per_chip,
            bandwidth=bandwidth / per_chip,
            sharing=max(per_chip / stacks, 1.0) if stacks and per_chip > 1.0 else 1.0,
            host_memory=host,
            levels=levels,
            figures_used=tuple(figure.used for figure in self.stated.values() if figure is not None),
        )

    def _rates(self, per_chip: float) -> tuple[dict[str, float], dict[str, float]]:
        all_engines: dict[str, float] = {}
        tensor: dict[str, float] = {}
        for group, rates in (("peak", all_engines), ("tensor_peak", tensor)):
            dense = value_at(self.chip.spec, (group, "dense"))
            stated_rates = {} if dense is None else asdict(dense, recurse=False)
            for dtype in (name for name, figure in stated_rates.items() if figure is not None):
                rates[dtype] = self.read(self.chip, f"{group}.dense.{dtype}") / per_chip
        return {**all_engines, **tensor}, all_engines

    def _levels(self, per_chip: float, in_server: float, units: float, bandwidth: float) -> tuple[Level, ...]:
        levels: list[Level] = []
        if per_chip > 1:
            # Cores of a chip communicate through their common memory: every byte is written once and read once.
            place = f"{self.chip.name} spec.memory.bandwidth"
            levels.append(
                Level(name="chip", ranks=per_chip, rate=bandwidth / per_chip / 2, link="device memory", place=place)
            )
        if self.server is None:
            return tuple(levels)
        ranks = in_server * per_chip
        inner = self._fabric(self.server, "fabric")
        if units > 1:
            whole, outer = (self._fabric(self.unit, name) for name in _FABRICS)
            if outer.rate:
                inner = inner if inner.rate else whole
            if inner.rate and outer.rate and in_server > 1:
                levels.append(self._level("server", ranks, inner, per_chip, self.server))
            wide = outer if outer.rate else whole
            levels.append(self._level("ultraserver", ranks * units, wide, per_chip, self.unit))
        elif in_server > 1:
            levels.append(self._level("server", ranks, inner, per_chip, self.server))
        if self.count > 1:
            levels.append(self._network(ranks))
        return tuple(levels)

    def _fabric(self, node: Node[Any], name: str) -> Level:
        """The links of one chip in a fabric, all together, in one direction; without a link where no fabric is declared.

        The rate is the fabric's rate per direction, or half of its rate in both; else the number of links of a chip times the rate of one.
        """
        place = f"{node.name} spec.{name}"
        declared = getattr(node.spec, name, None)
        if declared is None:
            return Level(name=name, ranks=1.0, rate=UNKNOWN, place=place)
        link = self.graph.find(declared.link)
        level = Level(name=name, ranks=1.0, rate=UNKNOWN, link=declared.link.name)
        level = self._linked(level, link, f"{declared.link.name} spec.latency")
        rate, at = self._one_direction(node, f"{name}.bandwidth")
        if rate:
            place = f"{node.name} spec.{at}"
        elif link is not None and declared.links_per_chip:
            rate, _ = self._one_direction(link, "bandwidth")
            rate, place = rate * declared.links_per_chip, f"{link.name} spec.bandwidth"
        else:
            place = f"{place}.bandwidth"
        return evolve(level, rate=rate, place=place)

    def _linked(self, level: Level, link: Node[Any] | None, missing: str) -> Level:
        """A level with the published latency of a link, and whether its switches reduce; ``missing`` is where a latency would be."""
        if link is None:
            return evolve(level, latency_place=missing)
        latency, reduces = self.read(link, "latency", slow_is_high=True), bool(link.spec.in_network_reduction)
        return evolve(level, latency=latency, latency_place=f"{link.name} spec.latency", reduces=reduces)

    def _one_direction(self, node: Node[Any], at: str) -> tuple[float, str]:
        """A rate in one direction in B/s, and the path of the figure that states it; :data:`UNKNOWN` without one."""
        path, factor = directed(node, ("spec", *at.split(".")))
        rate = self.read(node, dotted(path[1:]))
        return (rate * float(factor), dotted(path[1:])) if rate else (UNKNOWN, at)

    def _level(self, name: str, ranks: float, links: Level, per_chip: float, node: Node[Any]) -> Level:
        """A level of the system with the links of a chip, which its ranks share, in the shape of the fabric of a document."""
        try:
            shape = shape_of(self.graph, node)
        except TopologyError:
            shape = None
        # Without switches there is nothing between the chips that could reduce.
        reduces = links.reduces and isinstance(shape, Switched)
        return evolve(links, name=name, ranks=ranks, rate=links.rate / per_chip, shape=shape, reduces=reduces)

    def _network(self, ranks: float) -> Level:
        assert self.server is not None
        for at in ("network.bandwidth", "network.peak"):
            rate = self.read(self.server, at)
            if rate:
                break
        else:
            at = "network.bandwidth"
        network = getattr(self.server.spec, "network", None)
        link = None if network is None or network.link is None else self.graph.find(network.link)
        place, linked = f"{self.server.name} spec.{at}", "network" if link is None else link.name
        level = Level(name="network", ranks=float("inf"), rate=rate / ranks, link=linked, place=place)
        return self._linked(level, link, f"{self.server.name} spec.network.link")


# Models.


def _of_config(file: str) -> Node[Model]:
    """The model of a config.json, which is in no catalog."""
    # Few evaluations are of such a model.
    from trnspec.model.transformers.huggingface.config import read_config
    from trnspec.model.transformers.huggingface.registry import imported

    config = read_config(file)
    stem = str(config.get("_name_or_path") or PurePath(file).stem)
    name = re.sub(r"[^a-z0-9.]+", "-", stem.rpartition("/")[2].lower()).strip("-.") or "model"
    spec = imported(config).model
    document = Document(file=file, data=None, places=Places(), problems=(), text="")
    return Node(kind="Model", metadata=Metadata(name=name, title=name), spec=spec, document=document)


def model_like(graph: Graph, text: str) -> Node[Model] | None:
    """The model that a text names as tables and model hubs write it; ``None`` if the catalog has no such model."""
    if (named := graph.lookup(base_name(text), Model)) is not None:
        return named
    key = name_key(text)
    return next((n for n in graph.of(Model) if key in map(name_key, (n.name, *n.aliases))), None)


def model_named(graph: Graph, name: str) -> Node[Model]:
    """The model with this name or alias, as the catalog or a model hub writes it, or that of a config.json.

    Raises:
        UnknownNameError: No such model; the message suggests the nearest.
        UsageError: The config.json cannot be read.
        ConfigError: No model can be made from it.
    """
    if name.endswith(".json"):
        return _of_config(name)
    if (node := graph.lookup(name, Model) or model_like(graph, name)) is not None:
        return node
    hint = did_you_mean(name, [alias for n in graph.of(Model) for alias in (n.name, *n.metadata.aliases)])
    raise UnknownNameError(f"no model is named {name!r}" + (f"; {hint}" if hint else ""))
