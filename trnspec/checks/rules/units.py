"""Figures whose unit is probably wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.checks.reconcile.hypotheses import number
from trnspec.checks.reconcile.relations import AGREES, relations
from trnspec.checks.reconcile.sites import Site
from trnspec.diagnostics import Severity
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import claims_at
from trnspec.model.chip import Chip
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.link import Link
from trnspec.model.reflection import FigureShape, dotted, shape_at, spread
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Interval, Qualifier, Quantity, parse
from trnspec.quantities.units import Dimension
from trnspec.yaml import Path
from trnspec.yaml.document import Edit
from trnspec.yaml.edits import item, joined


@rule("TRN601", "decimal-memory", severity=Severity.INFO, over=object, local=True)
def decimal_memory(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """Memory in decimal units.

    Why:
        Memory has a capacity in powers of two. A page that prints "80 GB" usually means 80 GiB, which is 7.4 % more, or
        it rounds what an API reports in MiB. The capacity of the API is the one to adopt, the printed value a claim:
        `trnspec fix` writes both where a claim, or the total of a system, has the capacity in binary units. Until then
        the figure is used as it is printed. Disks are sold in decimal units and are not checked: `local_storage` of a
        server, and every field of a plugin that is declared as `DiskCapacity` instead of `Capacity`.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory:
            capacity: 32 GB  #! TRN601
        ```

    Instead:
        ```diff
        -    capacity: 32 GB
        +    capacity: 32 GiB
        ```

    Source:
        IEC 80000-13:2008 for the prefixes; JEDEC JESD235 for the organisation of HBM.
    """
    for path, figure in graph.figures(node).items():
        symbol = figure.value.unit.symbol
        shape = shape_at(type(node.spec), path[1:])
        is_memory = isinstance(shape, FigureShape) and shape.dimension is Dimension.INFORMATION and not shape.decimal
        if not is_memory or symbol not in _DECIMAL:
            continue
        binary = f"{symbol[0].upper()}iB"
        capacity = next(_capacities(Site(node, path), figure.value, binary, graph), None)
        hint = f"did you mean {number(figure.value)} {binary}? Memory has binary units"
        edit = None
        if capacity is not None:
            hint = f"did you mean {capacity.text}? Adopt that of {capacity.of}, and keep {figure} as a claim"
            edit = _adopting(node, path, figure, capacity, binary)
        yield Finding(path, f"{dotted(path)} is {figure}, in decimal units", hint, edit=edit)


_DECIMAL = frozenset({"kB", "MB", "GB", "TB", "PB", "EB"})


@frozen
class _Capacity:
    """A capacity in binary units that a claim states, or that follows from the total of a system.

    Attributes:
        text: The capacity.
        of: The source or the system.
        origin: The keys of the figure in addition to its value.
        claim: The index of the claim; ``None`` for a total.
        agrees: Whether the printed value is a rounding of it, and not the same number in another unit.
    """

    text: str
    of: str
    origin: dict[str, str | None]
    claim: int | None
    agrees: bool


def _capacities(site: Site, printed: Quantity, binary: str, graph: Graph) -> Iterator[_Capacity]:
    """The capacities in binary units that a printed one in decimal units can mean."""
    node, factor = site.node, parse(f"1 {binary}").value / printed.unit.factor

    def fits(interval: Interval) -> bool:
        return any(printed.interval.scaled(k).overlaps(interval) for k in (Fraction(1), factor))

    for index in claims_at(node).get(site.path, ()):
        claim, said = node.claims[index], Site(node, site.path, index).value
        if claim.verdict in AGREES and isinstance(said, Quantity) and _is_binary(said) and fits(said.interval):
            origin = {"source": claim.source.name, "where": claim.where}
            yield _Capacity(said.text, claim.source.name, origin, index, printed.interval.overlaps(said.interval))
    for relation in relations(graph.focused_on([node.name])):
        (term, *others), total = relation.terms, relation.total
        if others or total.claim is not None or term.part.key != site.key or not isinstance(total.value, Quantity):
            continue
        own = Interval.point(total.value.value / term.times)
        mebibytes = own.low / 2**20
        if _is_binary(total.value) and mebibytes.denominator == 1 and fits(own):
            text = f"{mebibytes / 1024} GiB" if mebibytes % 1024 == 0 else f"{mebibytes.numerator:,} MiB"
            holder = "" if total.node is node else f"{total.node.name}:"
            formula = f"{holder}{dotted(total.path)} / {term.times}"
            yield _Capacity(text, total.node.name, {"derived": formula}, None, printed.interval.overlaps(own))


def _is_binary(quantity: Quantity) -> bool:
    return quantity.unit.symbol.endswith("iB") and quantity.qualifier is Qualifier.EXACT


def _adopting(node: Node[Any], path: Path, figure: Figure, capacity: _Capacity, binary: str) -> Edit | None:
    """The edit that adopts a capacity and makes the printed one a claim; ``None`` for a figure with a note or formula."""
    source = figure.source or node.metadata.source
    span = node.document.places.get(path)
    if (
        source is None
        or span is None
        or span.value.line != span.end.line
        or figure.note
        or figure.derived
        or figure.check
    ):
        return None
    where = figure.where or (None if figure.source else node.metadata.where)
    claim = {"at": dotted(path), "says": figure.value.text, "source": source.name, "where": where}
    if not capacity.agrees:
        reason = f"{figure.value.unit.symbol} is printed where {binary} is meant: the memory has {capacity.text}."
        claim |= {"verdict": "rejected", "reason": reason}
    adopted = Edit(span.value, span.end, _mapping({"value": capacity.text, **capacity.origin}))
    return joined(node.document, [adopted, item(node.document, ("claims",), _mapping(claim), instead=capacity.claim)])


def _mapping(values: dict[str, str | None]) -> str:
    """A mapping in braces; texts that are not a plain word or path are quoted."""
    written = {k: v if re.fullmatch(r"[a-z][\w.-]*", v) else json.dumps(v) for k, v in values.items() if v is not None}
    return "{" + ", ".join(f"{key}: {value}" for key, value in written.items()) + "}"


@rule("TRN615", "binary-bandwidth", severity=Severity.WARNING, over=object, local=True)
def binary_bandwidth(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A bandwidth in binary units.

    Why:
        A bandwidth is a clock rate times a width, so it has powers of ten. A page that prints "820 GiB/s" means
        820 GB/s, which is 6.9 % less.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          memory:
            capacity: 32 GiB
            bandwidth: 820 GiB/s  #! TRN615
        ```

    Instead:
        ```diff
        -    bandwidth: 820 GiB/s
        +    bandwidth: 820 GB/s
        ```

    Source:
        IEC 80000-13:2008 for the prefixes.
    """
    for path, figure in graph.figures(node).items():
        symbol = figure.value.unit.symbol
        if symbol.endswith(("iB/s", "ibit/s")):
            decimal = symbol.replace("i", "", 1).replace("K", "k")
            hint = f"did you mean {number(figure.value)} {decimal}? Bandwidth is a clock rate times a width, so it has decimal units"
            yield Finding(path, f"{dotted(path)} is {figure}, in binary units", hint)


_FIELD_UNIT = re.compile(r"In(MiB|GiB|KiB|GB|TB|MB|Mbps|Gbps|MBps|Ghz)\b")
_NAMED = re.compile(r"(?:^|_)(bandwidth|clock|latency|time)(?:$|_)")
_DIMENSIONS = {
    "bandwidth": Dimension.BANDWIDTH,
    "clock": Dimension.FREQUENCY,
    "latency": Dimension.TIME,
    "time": Dimension.TIME,
}
"""Dimensions of figures of ``other``, by a word of their names."""

_RANGES = {
    "clock": (Dimension.FREQUENCY, parse("100 MHz").value, parse("10 GHz").value, "0.1 to 10 GHz"),
    "latency": (Dimension.TIME, parse("0.1 ns").value, parse("500 us").value, "0.1 ns to 500 us"),
}
"""The values of figures of any hardware, in base units, by the end of their names; no known one is near a limit."""

_SPELLED = {"MBps": "MB/s", "Ghz": "GHz"}

DECIMALS = 1000
"""Fields of records are whole numbers, or have up to three decimals."""


@rule("TRN611", "unit-field-mismatch", over=object, local=True)
def unit_field_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure that does not fit the field of a record that it is from, or its name.

    Why:
        A clock of 1.4 MHz and a link with a latency of 1 ms have a wrong prefix.
        ``InstanceStorageInfo.TotalSizeInGB`` is a whole number of GB. 7,600 GiB are 8,160.4 GB, so that the unit was copied
        wrongly; 7.6 TB are right.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: ec2-api-moto-5.2.1}
        spec:
          chips: {chip: trainium2, count: 1}
          local_storage: {value: 475 GiB, where: InstanceStorageInfo.TotalSizeInGB}  #! TRN611
        ```

    Instead:
        ```diff
        -  local_storage: {value: 475 GiB, where: InstanceStorageInfo.TotalSizeInGB}
        +  local_storage: {value: 475 GB, where: InstanceStorageInfo.TotalSizeInGB}
        ```

    Source:
        Amazon EC2 API Reference, DescribeInstanceTypes.
    """
    figures: list[tuple[Path, Quantity, str | None]] = [
        (path, figure.value, figure.where) for path, figure in graph.figures(node).items()
    ]
    for index, claim in enumerate(node.claims):
        if claim.verdict == "rounded" or not _FIELD_UNIT.search(claim.where or ""):
            continue
        said = Site(node, spread(claim.at)[0], index).value
        if isinstance(said, Quantity):
            figures.append(((*node.claim_path(index), "says"), said, claim.where))
    for path, quantity, where in figures:
        named = _NAMED.search(str(path[-1])) if path[1] == "other" else None
        expected = _DIMENSIONS[named[1]] if named else quantity.dimension
        if named and quantity.dimension not in {expected, Dimension.RATIO}:
            message = f"{quantity} measures {quantity.dimension.word}, but {path[-1]} is named after a {named[1]}"
            yield Finding(path, message, f"{expected.word} is expected: correct the unit or the name")
        dimension, low, high, usual = _RANGES.get(str(path[-1]).rpartition("_")[2], (None, 0, 0, ""))
        is_ranged = quantity.dimension is dimension and node.is_of(Chip, Core, Link, Server, UltraServer)
        if is_ranged and not low <= quantity.value <= high:
            yield Finding(path, f"{path[-1]} is {quantity}", f"is the prefix wrong? {usual} is usual")
        field = _FIELD_UNIT.search(where or "")
        if field is None:
            continue
        unit = parse(f"1 {_SPELLED.get(field[1], field[1])}", None, node.units)
        number = quantity.value / unit.value if unit.dimension is quantity.dimension else None
        if number is None or (number * DECIMALS).denominator != 1:
            shown = "nothing" if number is None else f"{float(number):,.7g}"
            message = f"{quantity} is from a field in {field[1]}, but is {shown} in that unit"
            yield Finding(path, message, f"is {field[1]} meant?")
