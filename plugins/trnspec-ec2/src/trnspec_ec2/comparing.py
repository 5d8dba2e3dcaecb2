"""Comparison of records with the catalog: agreements, contradictions, and what either of them lacks."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec import Figure, Graph, Interval, Node, Quantity, Ref
from trnspec.checks.reconcile.hypotheses import Explanation
from trnspec.checks.reconcile.relations import AGREES
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.graph import figure_at
from trnspec.graph.totals import total
from trnspec.model.chip import Chip
from trnspec.model.reflection import spread
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.sourced import origin_of
from trnspec_ec2.causes import causes
from trnspec_ec2.reading import INSTANCE_TYPE
from trnspec_ec2.statements import EFA, NOT_EFA, Device, Part, Statement, Target, devices, distinct, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec_ec2.reading import Record


@frozen
class Adopted:
    """The figure of the catalog that a statement is about.

    Attributes:
        value: The figure, count or word.
        text: As text: ``16 x 96 GiB``.
        interval: The interval of its digits, in base units, if it is a number.
        name: The document.
        path: The path in the document.
        source: Its source; ``derived`` if it follows from other figures.
        as_of: The date of the source.
    """

    value: Any
    text: str
    interval: Interval | None
    name: str
    path: str
    source: str
    as_of: str


@frozen
class Known:
    """A contradiction that the catalog records already.

    Attributes:
        verdict: The verdict of the claim.
        reason: The reason of the verdict.
        name: The document that records it.
        source: The source that agrees with the record.
    """

    verdict: str
    reason: str
    name: str
    source: str


@frozen
class Compared:
    """A statement of a record and the figure of the catalog.

    Attributes:
        type: The instance type.
        statement: The statement of the record.
        adopted: The figure of the catalog; ``None`` if it has none.
        target: The attribute that was compared, or that the catalog lacks.
        agrees: True if rounding alone can explain the difference.
        causes: Possible causes of the difference; each closes the gap.
        known: The contradiction as the catalog records it, if it does.
    """

    type: str
    statement: Statement
    adopted: Adopted | None
    target: Target
    agrees: bool = True
    causes: tuple[Explanation, ...] = ()
    known: Known | None = None


@frozen
class Lacking:
    """An instance type with accelerators that the catalog has no document of.

    Attributes:
        type: The instance type.
        devices: Its devices, each with the chip of the catalog, if it has one of that name.
    """

    type: str
    devices: tuple[tuple[Device, str], ...]


@frozen(kw_only=True)
class Audit:
    """The result of comparing records with the catalog.

    Attributes:
        agreements: Statements that the catalog agrees with.
        contradictions: Those that it does not agree with.
        additions: Those of attributes that the catalog could state and does not.
        lacking: Types that the catalog lacks.
        omissions: Types of the catalog whose record lists no accelerator, with their accelerators.
        others: Number of types without accelerator and without document.
    """

    agreements: tuple[Compared, ...]
    contradictions: tuple[Compared, ...]
    additions: tuple[Compared, ...]
    lacking: tuple[Lacking, ...]
    omissions: tuple[tuple[str, str], ...]
    others: int = 0

    @property
    def unrecorded(self) -> tuple[Compared, ...]:
        """The contradictions that the catalog does not record yet."""
        return tuple(c for c in self.contradictions if c.known is None)


def audit(records: Iterable[Record], graph: Graph) -> Audit:
    """Compare records with a catalog."""
    compared: list[Compared] = []
    lacking: list[Lacking] = []
    omissions: list[tuple[str, str]] = []
    others = 0
    graph = _of_ec2(graph)
    for record in sorted(records, key=lambda r: r.name):
        parts = Parts.of(record.name, graph)
        listed = devices(record.data)
        if parts is None:
            if listed:
                devices_ = [(d, chip.name if (chip := chip_named(graph, d)) else "") for d in distinct(listed)]
                lacking.append(Lacking(record.name, tuple(devices_)))
            others += not listed
            continue
        if not listed:
            chips = parts.server.spec.chips
            omissions.append((record.name, f"{chips.count} x {chips.chip.name}"))
        compared += _of_record(record, parts)
    return Audit(
        agreements=tuple(c for c in compared if c.agrees and c.adopted is not None),
        contradictions=tuple(c for c in compared if not c.agrees),
        additions=tuple(_first_of_each(c for c in compared if c.adopted is None)),
        lacking=tuple(lacking),
        omissions=tuple(omissions),
        others=others,
    )


def _of_ec2(graph: Graph) -> Graph:
    """A graph without the servers that are not instance types, which explain nothing in a record of EC2."""
    others = {n.name for n in graph.of(Server) if not INSTANCE_TYPE.fullmatch(n.name)}
    return Graph({name: node for name, node in graph.nodes.items() if name not in others}) if others else graph


_FOLLOWS = {"peak": {"card-peak", "cards"}, "performance-cards": {"performance"}}
"""Contradictions that follow from others of the same record: one wrong value is one contradiction."""


def _of_record(record: Record, parts: Parts) -> Iterator[Compared]:
    compared = [one for s in statements(record.data) if (one := _compared(s, record, parts)) is not None]
    wrong = {c.statement.id for c in compared if not c.agrees}
    yield from (c for c in compared if c.agrees or not wrong & _FOLLOWS.get(c.statement.id, set()))


def _first_of_each(additions: Iterable[Compared]) -> Iterator[Compared]:
    """The first addition of each attribute, since several statements may be of one attribute."""
    seen: set[tuple[str, Target]] = set()
    for each in additions:
        if (each.type, each.target) not in seen:
            seen.add((each.type, each.target))
            yield each


@frozen
class Parts:
    """The documents that correspond to a record."""

    graph: Graph
    server: Node[Server]
    chip: Node[Chip] | None
    core: Node[Any] | None

    @classmethod
    def of(cls, name: str, graph: Graph) -> Parts | None:
        """The documents of an instance type; ``None`` if the catalog has no such server."""
        server: Node[Any] | None = graph.find(Ref(name))
        if server is None or not isinstance(server.spec, Server):
            return None
        chip: Node[Any] | None = graph.find(server.spec.chips.chip)
        if chip is None or not isinstance(chip.spec, Chip):
            return cls(graph, server, None, None)
        return cls(graph, server, chip, graph.find(chip.spec.cores.core) if chip.spec.cores else None)

    def node(self, part: Part) -> Node[Any] | None:
        """The document of a part."""
        return {"server": self.server, "chip": self.chip, "core": self.core}[part]

    def adopted(self, target: Target) -> Adopted | None:
        """The value of an attribute; the memory of all chips is computed if it is not stated."""
        node = self.node(target.part)
        if node is None:
            return None
        path = tuple(target.path.split("."))
        value = figure_at(node, path)
        if value is None and target.path == "spec.stated.memory.capacity":
            return self._memory()
        if value is None:
            return None
        if isinstance(value, Figure):
            source = value.source or node.metadata.source
            name = "derived" if value.derived is not None else source.name if source else ""
            return Adopted(value.value, str(value), value.interval, node.name, target.path, name, self.date(name))
        origin = origin_of(value)
        source = (origin.source if origin is not None else None) or node.metadata.source
        name = source.name if source else ""
        text = value.name if isinstance(value, Ref) else str(value)
        interval = Interval.point(value) if isinstance(value, int) else None
        return Adopted(value, text, interval, node.name, target.path, name, self.date(name))

    def _memory(self) -> Adopted | None:
        memory = total(self.graph, self.server, ("spec", "memory", "capacity"))
        if memory is None:
            return None
        name = memory.part.metadata.source.name if memory.part.metadata.source else ""
        text = f"{memory} = {memory.count} x {memory.figure}" if memory.count != 1 else str(memory)
        return Adopted(memory, text, memory.interval, memory.part.name, "spec.memory.capacity", name, self.date(name))

    def date(self, source: str) -> str:
        """The date of a source."""
        node = self.graph.nodes.get(source)
        return node.spec.as_of if node is not None and isinstance(node.spec, Source) else ""


def _compared(statement: Statement, record: Record, parts: Parts) -> Compared | None:
    stated = next(((t, a) for t in statement.targets if (a := parts.adopted(t)) is not None), None)
    if stated is None:
        earlier = _earlier(statement, parts)
        if earlier is not None and isinstance(statement.says, str) and _raw(statement) != earlier[1].text:
            target, adopted = earlier
            return Compared(record.name, statement, adopted, target, agrees=False)
        unresolved = _earlier(statement, parts, "unresolved")
        if unresolved is not None and _raw(statement) == unresolved[1].text:
            target, adopted = unresolved
            return Compared(record.name, statement, adopted, target)
        target = statement.targets[0]
        # The record of a server cannot add figures to a part that the catalog does not have, such as a core.
        adds = statement.adds and parts.node(target.part) is not None
        return Compared(record.name, statement, None, target) if adds else None
    target, adopted = stated
    if _agrees(statement, adopted, parts):
        return Compared(record.name, statement, adopted, target)
    return Compared(
        record.name,
        statement,
        adopted,
        target,
        agrees=False,
        causes=causes(statement, target, adopted.interval, parts, record.data),
        known=_known(statement, target, parts),
    )


def _earlier(statement: Statement, parts: Parts, verdict: str = "") -> tuple[Target, Adopted] | None:
    """What the catalog claims, with this verdict, of the same place of an earlier record, where it adopts no value."""
    for target in statement.targets:
        node = parts.node(target.part)
        steps = tuple(target.path.split("."))
        for claim in node.claims if node is not None else ():
            source = parts.graph.find(claim.source)
            covers = any(steps[: len(p)] == p for p in spread(claim.at))
            if verdict and claim.verdict != verdict:
                continue
            if covers and claim.where == statement.where and source is not None and source.spec.rank == "vendor-api":
                assert node is not None  # it has the claim
                said = Adopted(
                    claim.says, str(claim.says), None, node.name, target.path, source.name, source.spec.as_of
                )
                return target, said
    return None


def _raw(statement: Statement) -> str:
    """A statement as the record has it: True and False of a flag."""
    return {EFA: "True", NOT_EFA: "False"}.get(str(statement.says), str(statement))


def _agrees(statement: Statement, adopted: Adopted, parts: Parts) -> bool:
    says = statement.says
    if statement.id == "chip":
        return parts.chip is None or is_chip(parts.graph, str(says), statement.text, parts.chip)
    if isinstance(says, Quantity):
        same = adopted.interval is not None and says.dimension is _dimension(adopted)
        return same and adopted.interval is not None and says.interval.overlaps(adopted.interval)
    if isinstance(says, int):
        return adopted.interval is not None and Fraction(says) in adopted.interval
    said, stated = says.casefold(), str(adopted.value).casefold()
    # The catalog may state the model after its maker: "Intel Xeon Platinum 8488C".
    return said == stated or (statement.id == "cpu" and stated.startswith(f"{said} "))


def _dimension(adopted: Adopted) -> Any:
    figure = getattr(adopted.value, "figure", None)
    value = adopted.value if figure is None else figure.value
    return getattr(value, "dimension", None)


def _known(statement: Statement, target: Target, parts: Parts) -> Known | None:
    """The claim of the API in the catalog with the same value and a verdict, if there is one.

    The document of the server may also have the claim on one chip.
    """
    places = [(parts.node(target.part), target.path)]
    if statement.id in ("device-memory", "device-memory-total"):
        places.append((parts.server, "spec.stated.memory.capacity"))
    if statement.id == "cores":
        places.append((parts.server, "spec.stated.cores"))
    for node, path in places:
        for index, claim in enumerate(node.claims if node is not None else ()):
            assert node is not None  # there would be no claims
            source = parts.graph.find(claim.source)
            if claim.verdict in AGREES or source is None or source.spec.rank != "vendor-api":
                continue
            steps = tuple(path.split("."))
            covers = any(steps[: len(p)] == p for p in spread(claim.at))
            if (
                covers
                and _is_about(statement.where, claim.where)
                and _same(statement.says, Site(node, steps, index).value, claim.says)
            ):
                return Known(str(claim.verdict), claim.reason or "", node.name, claim.source.name)
    return None


def _is_about(where: str, claimed: str | None) -> bool:
    """True if a claim is about this place of the record: the figure of one chip may equal a wrong total."""
    return claimed is None or any(where.startswith(word) for word in re.split(r"[ ,]+", claimed) if "." in word)


def _same(says: Quantity | int | str, value: Quantity | int | None, text: int | str) -> bool:
    if isinstance(says, Quantity) and isinstance(value, Quantity):
        return says.dimension is value.dimension and says.value == value.value
    return says == (value if isinstance(says, int) else text)


def plain(text: str) -> str:
    """A name without capitals, spaces and hyphens, which vary between texts."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _names(chip: Node[Chip]) -> set[str]:
    """The names of a chip: name, aliases, and the title with and without its maker, the first word."""
    title = chip.metadata.title
    return {plain(n) for n in (chip.name, *chip.metadata.aliases, title, title.partition(" ")[2])} - {""}


def chip_named(graph: Graph, device: Device) -> Node[Chip] | None:
    """The chip of the catalog with the name that the API gives a device; ``None`` if none or several match."""
    wanted = {plain(device.name), plain(device.title)} - {""}
    matches = [chip for chip in graph.of(Chip) if wanted & _names(chip)]
    return matches[0] if len(matches) == 1 else None


def is_chip(graph: Graph, name: str, full: str, chip: Node[Chip]) -> bool:
    """True if the API's name can refer to this chip: it is its name, or a prefix of it and not another chip's name."""
    wanted = {plain(name), plain(full)} - {""}
    if wanted & _names(chip):
        return True
    if any(wanted & _names(other) for other in graph.of(Chip)):
        return False
    return any(own.startswith(w) and not own[len(w)].isdigit() for w in wanted for own in _names(chip))
