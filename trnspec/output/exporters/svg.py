"""The fabric of a system as an SVG picture, drawn without other programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import evolve, frozen

from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.output.exporters import drawing
from trnspec.output.exporters.drawing import COLORS, TIMES, Key, Picture, framed
from trnspec.output.exporters.export_log import ExportLog
from trnspec.output.exporters.exported import Export
from trnspec.output.exporters.link_table import BETWEEN, DIRECT, WITHIN, LinkClass, LinkTable, link_table
from trnspec.text_table import plural
from trnspec.topology.shapes import GridShape, Hypercube
from trnspec.topology.switched import Switched

MOST = 1024
"""The largest number of chips in a picture."""

_COLOURS = {WITHIN: "a", BETWEEN: "b", DIRECT: "d", f"{WITHIN} 1": "c", f"{WITHIN} 2": "a", f"{WITHIN} 3": "b"}


def export(node: Node[Any], graph: Graph, groups: Groups | None = None) -> Export:
    """Export the fabric of a server or an UltraServer.

    Raises:
        ExportError: It declares no fabric, or has more than :data:`MOST` chips.
    """
    log = ExportLog(graph, node, "svg")
    chips, _ = log.chip()
    if chips > MOST:
        raise log.refused("not-expressible", f"a picture shows at most {MOST:,} chips; it has {chips:,}")
    network = link_table(log)
    classes = {**_COLOURS, **{c.kind: _COLOURS.get(c.kind, "a") for c in network.classes}}
    drawn = _drawn(network, classes)
    if groups is not None:
        drawn = evolve(drawn, parts=tuple(_colored(drawn.parts, groups.chips)))
    boxes = [k for k in drawn.keys if k.cls == "group"]
    keys = (*boxes, *_keys(network, classes), *(k for k in drawn.keys if k not in boxes))
    words = _words(network) if groups is None else f"{_words(network)}; {groups.words}"
    described = f"{words}. " + ". ".join(k.words for k in keys) + "."
    picture = Picture(drawn.width, drawn.height, drawn.parts, keys)
    return log.export(framed(picture, node.metadata.title, [words], described, log.notes))


@frozen
class Groups:
    """Groups of consecutive chips.

    Attributes:
        chips: The chips of a group; below 1 where several groups are in a chip.
        words: What they are, for the subtitle.
    """

    chips: float
    words: str


def _colored(parts: Sequence[str], chips: float) -> Iterator[str]:
    """The elements, with a class for each box of a chip; its number is in the element that follows."""
    for part, following in zip(parts, (*parts[1:], ""), strict=True):
        number = _NUMBER.search(following) if part.endswith('class="chip"/>') else None
        group = f" g{int(int(number[1]) / chips) % COLORS}" if number is not None else ""
        yield part.replace('class="chip"/>', f'class="chip{group}"/>') if group else part


_NUMBER = re.compile(r">([0-9]+)</text>")


def _drawn(network: LinkTable, classes: dict[str, str]) -> Picture:
    shape = network.shape
    if isinstance(shape, Switched):
        return drawing.levels(shape, classes, network)
    if isinstance(shape, Hypercube) and shape.d == 4:
        return drawing.four(shape, classes)
    if isinstance(shape, GridShape) and len(shape.axes) == 2:
        return drawing.plane(shape, classes)
    if isinstance(shape, GridShape) and len(shape.axes) == 3:
        return drawing.planes(shape, classes, network)
    fabric = shape.build()
    if isinstance(shape, GridShape) and len(shape.axes) == 1 and not shape.axes[0].wrap:
        return drawing.row(fabric, classes)
    return drawing.circle(fabric, classes)


def _words(network: LinkTable) -> str:
    """The content of the picture in one line."""
    shape = network.shape
    servers = f" in {network.servers} {TIMES} {network.server}" if network.servers > 1 else ""
    noun = _noun(network)
    links = sum(c.count * (c.per_chip or 1 if noun == "link" else 1) for c in network.classes)
    parts = [name_of(network), plural(links, noun)]
    if isinstance(shape, GridShape) and shape.nodes > 1:
        parts.append(f"at most {shape.diameter} hop{'s' if shape.diameter > 1 else ''}")
    return f"{network.chips} {TIMES} {network.chip}{servers}: {', '.join(parts)}"


def _noun(network: LinkTable) -> str:
    # Without a number of links, a connection is a linked pair of a chip and a switch.
    counted = not isinstance(network.shape, Switched) or all(c.per_chip is not None for c in network.classes)
    return "link" if counted else "connection"


def name_of(network: LinkTable) -> str:
    """The shape in words: ``4 x 4 torus``."""
    shape = network.shape
    if isinstance(shape, Switched):
        count = len(shape.levels)
        return f"{count} level{'s' if count > 1 else ''} of switches" + (" and direct links" if shape.peers else "")
    word = type(shape).__name__.lower().replace("fullyconnected", "full connection")
    if isinstance(shape, GridShape) and len(shape.axes) > 1:
        return f"{TIMES.join(str(a.size) for a in shape.axes)} {word}"
    return word


def _keys(network: LinkTable, classes: dict[str, str]) -> list[Key]:
    keys = []
    if isinstance(network.shape, Switched):
        keys.append(Key("switch", f"a switch, {', '.join(dict.fromkeys(network.switches))}"))
    return [*keys, *(Key(f"link {classes[c.kind]}", link_text(network, c)) for c in network.classes)]


def link_text(network: LinkTable, links: LinkClass) -> str:
    """A class of links in words, with its rate."""
    count = plural(links.count, _noun(network))
    if not links.label:
        return f"{links.title}: {count}, rate not known"
    if links.per_chip is not None:
        return f"{links.title}: {plural(links.per_chip, 'link')}, {links.label} each way per chip"
    if isinstance(network.shape, Switched):
        return f"{links.title}: {count}, {links.label} each way per link"
    return f"{links.title}: {count}, {links.label} each way"
