"""Drawings of fabrics as SVG: elements and frame; grids, rows and circles of chips; chips below their switches.

Colours are CSS classes, defined for light and dark mode; a background card makes the picture readable on a page of any
colour. In a switched half with few chips every link is a line; in one with many, the chips of a box share one thick line.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from trnspec.output.exporters.link_table import LinkTable
from trnspec.text_table import visible
from trnspec.topology.fabric import FabricGraph
from trnspec.topology.shapes import GridAxis, GridShape, Hypercube
from trnspec.topology.switched import Switched

STYLE = """\
  .card{fill:#ffffff;stroke:#d5dae1}
  .group{fill:#f6f8fa;stroke:#d5dae1}
  .chip{fill:#e8f0fe;stroke:#3565c4;stroke-width:1.4}
  .switch{fill:#fdf1d8;stroke:#a86b00;stroke-width:1.4}
  .link{fill:none;stroke-width:1.8;stroke-linecap:round}
  .bundle{fill:none;stroke-width:3.4;stroke-linecap:round}
  .a{stroke:#3565c4}.b{stroke:#c4521a}.c{stroke:#a86b00}.d{stroke:#8a3fa0}
  .d{stroke-dasharray:6 5}
  .around{stroke-width:1.4}
  .dot.a{fill:#3565c4}.dot.b{fill:#c4521a}
  .dot{stroke-width:0}
  .g0{fill:#a6cfe6}.g1{fill:#f6dda6}.g2{fill:#a6dccc}.g3{fill:#edd3e0}.g4{fill:#c4e4f6}.g5{fill:#f1c6a6}.g6{fill:#faf5c4}
  text{fill:#1f2733;font-family:system-ui,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif}
  .title{font-size:20px;font-weight:600}
  .name{font-size:13px;font-weight:600}
  .soft{fill:#56606d}
  .word{font-size:13px}
  .tag{font-size:12px}
  .number{font-size:12px;text-anchor:middle}
  .small{font-size:10.5px}
  .middle{text-anchor:middle}
  @media (prefers-color-scheme:dark){
    .card{fill:#12161d;stroke:#39424f}
    .group{fill:#1a2029;stroke:#39424f}
    .chip{fill:#1b2b4d;stroke:#7ea6f5}
    .switch{fill:#3a2c0c;stroke:#e0ab48}
    .a{stroke:#7ea6f5}.b{stroke:#f2915c}.c{stroke:#e0ab48}.d{stroke:#d592e8}
    text{fill:#e6eaf0}
    .soft{fill:#a3adba}
    .g0{fill:#094468}.g1{fill:#7c5b0f}.g2{fill:#095a48}.g3{fill:#6f4862}.g4{fill:#346583}.g5{fill:#743a0f}.g6{fill:#817d30}
    .dot.a{fill:#7ea6f5}.dot.b{fill:#f2915c}
  }
"""
"""All CSS classes; a, b, c and d are the colours of the link classes."""

COLORS = 7
"""Classes g0 to g6, tints (dark: shades) of the colours of Okabe and Ito for groups of chips."""

TIMES = "\u00d7"
"""The multiplication sign in labels."""

MARGIN = 28
_LINE = 22
_MOST_LETTERS = 76


def text_of(value: object) -> str:
    """A text escaped for XML, between tags and in quotes."""
    return visible(str(value)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def num(value: float) -> str:
    """A coordinate, rounded to a tenth of a pixel, without trailing zeros."""
    return f"{round(value, 1):g}" if abs(value) < 1e5 else f"{value:.1f}"


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    """A straight line."""
    return f'<line x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}" class="{cls}"/>'


def path(data: str, cls: str) -> str:
    """A path."""
    return f'<path d="{data}" class="{cls}"/>'


def rect(x: float, y: float, width: float, height: float, cls: str, radius: float) -> str:
    """A box with round corners."""
    box = f'x="{num(x)}" y="{num(y)}" width="{num(width)}" height="{num(height)}"'
    return f'<rect {box} rx="{num(radius)}" class="{cls}"/>'


def text(x: float, y: float, words: object, cls: str) -> str:
    """A text, its base line at ``y``; a ``number`` is centred on the point."""
    # Not every viewer supports dominant-baseline; the height of digits is about 0.72 of the font size.
    down = ' dy=".36em"' if cls.startswith("number") else ""
    return f'<text x="{num(x)}" y="{num(y)}"{down} class="{cls}">{text_of(words)}</text>'


def chip(x: float, y: float, width: float, height: float, label: object, cls: str = "number") -> list[str]:
    """A chip with its number, centred on the point."""
    box = rect(x - width / 2, y - height / 2, width, height, "chip", min(7, height / 3.5))
    return [box, text(x, y, label, cls)]


def dot(x: float, y: float, cls: str) -> str:
    """A dot."""
    return f'<circle cx="{num(x)}" cy="{num(y)}" r="3.4" class="{cls}"/>'


@frozen
class Key:
    """A line of the legend.

    Attributes:
        cls: The class of the sample; ``switch`` and ``group`` are boxes, ``dot`` a dot, all others lines.
        words: The text.
    """

    cls: str
    words: str


@frozen
class Picture:
    """A drawing without its frame.

    Attributes:
        width: Width in pixels.
        height: Height in pixels.
        parts: Its elements, from back to front.
        keys: The legend.
    """

    width: float
    height: float
    parts: tuple[str, ...]
    keys: tuple[Key, ...] = field(default=())


def framed(picture: Picture, title: str, subtitle: Iterable[str], description: str, notes: Iterable[str]) -> str:
    """The whole file: card, title, drawing and legend."""
    letters = max(_MOST_LETTERS, int((picture.width - 46) / 7.2))
    lines = [wrapped for words in subtitle for wrapped in textwrap.wrap(words, letters)]
    keys = [
        ("" if i else key.cls, words)
        for key in picture.keys
        for i, words in enumerate(textwrap.wrap(key.words, letters))
    ]
    inner = max(picture.width, len(title) * 11.2, *(len(w) * 7.2 for w in lines), *(len(w) * 7.2 + 46 for _, w in keys))
    width = inner + 2 * MARGIN
    top = MARGIN + 20 + _LINE * len(lines) + 22
    bottom = top + picture.height + 26
    height = bottom + _LINE * len(keys) + MARGIN - 8
    left = MARGIN + (inner - picture.width) / 2
    parts = [rect(0.5, 0.5, width - 1, height - 1, "card", 12), text(MARGIN, MARGIN + 18, title, "title")]
    parts += [text(MARGIN, MARGIN + 18 + _LINE * (i + 1), words, "word soft") for i, words in enumerate(lines)]
    parts += [f'<g transform="translate({num(left)} {num(top)})">', *picture.parts, "</g>"]
    for index, (cls, words) in enumerate(keys):
        y = bottom + _LINE * index + 8
        parts += [*([_sample(cls, MARGIN, y)] if cls else []), text(MARGIN + 46, y + 4.5, words, "word")]
    size = f'viewBox="0 0 {num(width)} {num(height)}" width="{num(width)}" height="{num(height)}"'
    comments = "".join(f"  {text_of(n).replace('--', '- -')}\n" for n in notes)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">\n'
        f'<title id="title">{text_of(title)}</title>\n<desc id="desc">{text_of(description)}</desc>\n'
        + (f"<!--\n{comments}-->\n" if comments else "")
        + f"<style>\n{STYLE}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )
    # ASCII is independent of the encoding of a pipe or of the page that includes the picture.
    return svg.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _sample(cls: str, x: float, y: float) -> str:
    if cls in ("switch", "group"):
        return rect(x + 6, y - 7, 22, 14, cls, 4)
    if cls.startswith("dot"):
        return dot(x + 17, y, cls)
    return line(x, y, x + 34, y, cls)


# Grids (a plane with the arcs that wrap around it, planes side by side), rows and circles.

_CHIP = 46
_STEP = 96
_APART = 88  # in a row
_BULGE = 34
_PLANE_MARGIN = 42  # around a plane, for its arcs


@frozen
class _Scale:
    """The size of a plane: the side of a chip, the distance between chips, the height of arcs, their margin."""

    chip: float
    step: float
    bulge: float
    margin: float
    number: str = "number"


_LARGE = _Scale(_CHIP, _STEP, _BULGE, _PLANE_MARGIN)
_SMALL = _Scale(30, 56, 21, 30, "number small")


def plane(shape: GridShape, classes: Mapping[str, str]) -> Picture:
    """A grid of two dimensions: the first runs down, the last to the right."""
    rows, columns = shape.axes
    return _plane(rows, columns, classes, range(shape.nodes), _LARGE)


def four(shape: Hypercube, classes: Mapping[str, str]) -> Picture:
    """A hypercube of four dimensions, which is a torus of 4 x 4 chips numbered so that neighbours differ in one bit."""
    gray = (0, 1, 3, 2)
    axis = GridAxis(4, rate=shape.rate, kind=shape.kind)
    return _plane(axis, axis, classes, [4 * i + j for i in gray for j in gray], _LARGE)


def planes(shape: GridShape, classes: Mapping[str, str], network: LinkTable) -> Picture:
    """A grid of three dimensions: the planes of the last two side by side, and the links of the first one between them."""
    deep, rows, columns = shape.axes
    size = rows.size * columns.size
    gap, head, pad = 40, 30, 8
    cls = classes[deep.kind]
    place = "server" if network.per_server == size else "plane"
    marked = f"dot {cls}" if deep.links else ""
    inside = [_plane(rows, columns, classes, range(i * size, (i + 1) * size), _SMALL, marked) for i in range(deep.size)]
    width, height = inside[0].width + 2 * pad, inside[0].height + 2 * pad
    across: list[str] = []
    boxes: list[str] = []
    for index, drawn in enumerate(inside):
        x = index * (width + gap)
        span = f"{place} {index}: chips {index * size} to {(index + 1) * size - 1}"
        boxes += [rect(x, head, width, height, "group", 10), text(x + width / 2, head - 10, span, "tag soft middle")]
        boxes += [f'<g transform="translate({num(x + pad)} {num(head + pad)})">', *drawn.parts, "</g>"]
        # Each chip is linked to the same place of the next plane; one line represents all of them.
        if index:
            mid = head + height / 2
            across += [line(x - gap + 1, mid, x - 1, mid, f"bundle {cls}")]
            across += [text(x - gap / 2, mid - 12, f"{size}{TIMES}", "tag middle")]
    full = deep.size * (width + gap) - gap
    low = head + height
    if deep.links > deep.size - 1:
        drop, r = 34, 14
        data = f"M{num(width / 2)} {num(low)}v{drop - r}q0 {r} {r} {r}H{num(full - width / 2 - r)}q{r} 0 {r} {-r}V{num(low)}"
        words = f"{size}{TIMES}, each chip to the one in the same place of the next {place}"
        across += [path(data, f"bundle {cls}"), text(full / 2, low + drop - 10, words, "tag middle")]
        low += drop + 6
    keys = (Key(f"dot {cls}", f"the links of a chip to the {place}s next to its own"),) if deep.links else ()
    return Picture(full, low, (*across, *boxes), keys)


def _plane(
    rows: GridAxis,
    columns: GridAxis,
    classes: Mapping[str, str],
    numbers: Sequence[int],
    scale: _Scale,
    marked: str = "",
) -> Picture:
    """A plane; ``numbers`` are those of its chips, row by row; ``marked`` gives them dots."""
    x0 = scale.margin + scale.chip / 2
    y0 = scale.margin + scale.chip / 2
    links: list[str] = []
    chips: list[str] = []
    for i in range(rows.size):
        for j in range(columns.size):
            x, y = x0 + j * scale.step, y0 + i * scale.step
            if j + 1 < columns.size:
                links.append(line(x, y, x + scale.step, y, f"link {classes[columns.kind]}"))
            if i + 1 < rows.size:
                links.append(line(x, y, x, y + scale.step, f"link {classes[rows.kind]}"))
            chips += chip(x, y, scale.chip, scale.chip, numbers[i * columns.size + j], scale.number)
            if marked:
                chips.append(dot(x + scale.chip / 2 - 1, y + scale.chip / 2 - 1, marked))
    far_x, far_y = x0 + (columns.size - 1) * scale.step, y0 + (rows.size - 1) * scale.step
    half, inset = scale.chip / 2, scale.chip / 4
    if columns.links > columns.size - 1:
        cls = f"link {classes[columns.kind]}"
        for i in range(rows.size):
            y = y0 + i * scale.step - half
            links.append(path(_arc(x0 - inset, y, far_x + inset, y, 0, -scale.bulge), f"{cls} around"))
    if rows.links > rows.size - 1:
        cls = f"link {classes[rows.kind]}"
        for j in range(columns.size):
            x = x0 + j * scale.step - half
            links.append(path(_arc(x, y0 - inset, x, far_y + inset, -scale.bulge, 0), f"{cls} around"))
    beyond = half + scale.margin / 3
    return Picture(far_x + beyond, far_y + beyond, (*links, *chips))


def _arc(x1: float, y1: float, x2: float, y2: float, dx: float, dy: float) -> str:
    return f"M{num(x1)} {num(y1)}C{num(x1 + dx)} {num(y1 + dy)} {num(x2 + dx)} {num(y2 + dy)} {num(x2)} {num(y2)}"


def row(fabric: FabricGraph, classes: Mapping[str, str]) -> Picture:
    """Chips in a row, as a chain is."""
    places = [(_CHIP / 2 + i * _APART, _CHIP / 2 + 2) for i in range(fabric.nodes)]
    return Picture((fabric.nodes - 1) * _APART + _CHIP, _CHIP + 4, _placed(places, fabric, classes))


def circle(fabric: FabricGraph, classes: Mapping[str, str]) -> Picture:
    """Chips on a circle in the order of their numbers, every link a straight line: a ring, or anything else."""
    count = fabric.nodes
    radius = max(110.0, count * (_CHIP + 36) / (2 * math.pi))
    middle = radius + _CHIP / 2 + 4
    angles = [2 * math.pi * i / count for i in range(count)]
    places = [(middle + radius * math.sin(angle), middle - radius * math.cos(angle)) for angle in angles]
    return Picture(2 * middle, 2 * middle, _placed(places, fabric, classes))


def _placed(places: Sequence[tuple[float, float]], fabric: FabricGraph, classes: Mapping[str, str]) -> tuple[str, ...]:
    """Links as straight lines, and the chips at their places."""
    links = [line(*places[e.a], *places[e.b], f"link {classes[e.kind]}") for e in fabric.edges]
    return (*links, *(part for i, (x, y) in enumerate(places) for part in chip(x, y, _CHIP, _CHIP, i)))


# Switched fabrics; two halves are face to face.

_MOST_IN_A_ROW = 40
_BAR = 34
_DROP = 44  # from the chips to a bar
_FACE = 78  # between two halves that face each other


@frozen
class _Sizes:
    chip: float
    high: float
    step: float
    pad: float
    gap: float
    number: str


_ROW = _Sizes(26, 26, 32, 8, 14, "number small")
_BOX = _Sizes(25, 19, 29, 5, 7, "number small")


@frozen
class _Plan:
    """The layout of one half.

    Attributes:
        group: Number of chips of a box.
        boxes: Number of boxes.
        columns: Number of chips in a row of a box.
        rows: Number of rows of a box.
        sizes: The sizes of the elements.
        inner: Whether a box has its own switch between its rows.
    """

    group: int
    boxes: int
    columns: int
    rows: int
    sizes: _Sizes
    inner: bool = False

    @property
    def box_width(self) -> float:
        return (self.columns - 1) * self.sizes.step + self.sizes.chip + 2 * self.sizes.pad

    @property
    def row_step(self) -> float:
        return self.sizes.high + (24 if self.inner else 5)

    @property
    def box_height(self) -> float:
        return self.sizes.high + (self.rows - 1) * self.row_step + 2 * self.sizes.pad

    @property
    def width(self) -> float:
        return self.boxes * (self.box_width + self.sizes.gap) - self.sizes.gap

    def left(self, box: int) -> float:
        return box * (self.box_width + self.sizes.gap)

    def chips(self, top: float) -> list[tuple[float, float]]:
        """The centre of each chip of the half."""
        s, corners = self.sizes, []
        for number in range(self.group * self.boxes):
            box, inside = divmod(number, self.group)
            row, column = divmod(inside, self.columns)
            x = self.left(box) + s.pad + s.chip / 2 + column * s.step
            corners.append((x, top + s.pad + s.high / 2 + row * self.row_step))
        return corners


def levels(shape: Switched, classes: Mapping[str, str], network: LinkTable) -> Picture:
    """The whole fabric; two halves that are joined by direct links face each other."""
    size = max(level.size for level in shape.levels)
    plan = _plan(shape, network, size)
    outer = shape.levels[1:] if plan.inner else shape.levels
    halves = shape.chips // size
    bars = len(outer) * (_BAR + 12) - 12
    part = bars + _DROP + plan.box_height
    facing = halves == 2
    gap = _FACE if facing and shape.peers else 34
    drawn: list[str] = []
    for half in range(halves):
        upside_down = facing and half == 1
        top = half * (part + gap)
        boxes_at = top if upside_down else top + bars + _DROP
        bar_at = top + plan.box_height + _DROP if upside_down else top
        order = outer if upside_down else outer[::-1]
        for index, level in enumerate(order):
            y = bar_at + index * (_BAR + 12)
            drawn += _bars(plan, level.size, y, network.switches[shape.levels.index(level)], half * size, size)
            near = y if upside_down else y + _BAR
            edge = boxes_at + plan.box_height if upside_down else boxes_at
            # Lines are drawn behind the elements that they join.
            place = (len(outer) - outer.index(level)) / (len(outer) + 1)
            drawn = _up(plan, boxes_at, edge, near, place, classes[level.kind]) + drawn
        drawn += _boxes(plan, boxes_at, half * size, classes[shape.levels[0].kind])
    height = halves * part + (halves - 1) * gap
    below = _peers(shape, plan, part, gap, bars, classes)
    words = f"{plan.group} chips"
    if plan.group == network.per_server:
        words = f"a server, {network.server}, with {network.per_server} chips"
    keys = (Key("group", words),) if plan.boxes * halves > 1 else ()
    return Picture(plan.width, height + (0 if facing or not shape.peers else 40), (*below, *drawn), keys)


def _plan(shape: Switched, network: LinkTable, size: int) -> _Plan:
    smallest = shape.levels[0].size
    if len(shape.levels) > 1 and smallest <= 32:
        columns = math.ceil(smallest / 2)
        return _Plan(smallest, size // smallest, columns, 2, _BOX, inner=True)
    group = smallest if smallest % network.per_server else network.per_server
    if size <= _MOST_IN_A_ROW:
        return _Plan(group, size // group, group, 1, _ROW)
    columns = max(2, math.ceil(math.sqrt(group)))
    return _Plan(group, size // group, columns, math.ceil(group / columns), _BOX)


def _bars(plan: _Plan, joined: int, y: float, name: str, first: int, size: int) -> list[str]:
    shapes: list[str] = []
    per = max(1, joined // plan.group)
    for index in range(size // joined):
        x = plan.left(index * per)
        width = per * (plan.box_width + plan.sizes.gap) - plan.sizes.gap
        start = first + index * joined
        shapes.append(rect(x, y, width, _BAR, "switch", 7))
        words = f"{name}, chips {start} to {start + joined - 1}"
        shapes.append(text(x + width / 2, y + _BAR / 2, words, "number"))
    return shapes


def _up(plan: _Plan, top: float, edge: float, near: float, place: float, cls: str) -> list[str]:
    """The links from the chips to a bar: one line each, or one thick line for a box, at a position along its side."""
    if plan.rows == 1:
        return [line(x, y, x, near, f"link {cls}") for x, y in plan.chips(top)]
    return _bundles(plan, plan.box_width * place, (edge, near), edge + math.copysign(_DROP / 2, near - edge) + 4, cls)


def _bundles(plan: _Plan, at: float, ends: tuple[float, float], label: float, cls: str) -> list[str]:
    """A thick line for each box with its number of links: its place in the box, its ends, and the height of the number."""
    shapes: list[str] = []
    for x in (plan.left(box) + at for box in range(plan.boxes)):
        shapes += [line(x, ends[0], x, ends[1], f"bundle {cls}"), text(x + 6, label, f"{plan.group}{TIMES}", "small")]
    return shapes


def _boxes(plan: _Plan, top: float, first: int, cls: str) -> list[str]:
    s, wide, high = plan.sizes, plan.box_width, plan.box_height
    shapes = [rect(plan.left(box), top, wide, high, "group", 8) for box in range(plan.boxes)]
    chips: list[str] = []
    for number, (x, y) in enumerate(plan.chips(top)):
        if plan.inner:
            middle = top + plan.box_height / 2
            shapes.append(line(x, y, x, middle, f"link {cls}"))
        chips += chip(x, y, s.chip, s.high, first + number, s.number)
    if plan.inner:
        for box in range(plan.boxes):
            x, y = plan.left(box) + s.pad, top + plan.box_height / 2 - 6
            chips.append(rect(x, y, plan.box_width - 2 * s.pad, 12, "switch", 3))
    return [*shapes, *chips]


def _peers(shape: Switched, plan: _Plan, part: float, gap: float, bars: float, classes: Mapping[str, str]) -> list[str]:
    if not shape.peers:
        return []
    peer = shape.peers[0]
    cls = classes[peer.kind]
    half = plan.group * plan.boxes
    if shape.chips != 2 * half or peer.stride != half:
        return _loops(shape, plan, bars + _DROP, part, gap, cls)
    above, below = part, part + gap
    if plan.rows == 1:
        return [line(x, above - 20, x, below + 20, f"link {cls}") for x, _ in plan.chips(0)]
    return _bundles(plan, plan.box_width / 2, (above, below), above + gap / 2 + 4, cls)


def _loops(shape: Switched, plan: _Plan, top: float, part: float, gap: float, cls: str) -> list[str]:
    """Direct links between chips of one half: arcs below them."""
    half = plan.group * plan.boxes
    shapes = []
    for edge in shape.build().edges:
        if edge.b >= shape.chips:
            continue
        ends = [plan.chips(top + end // half * (part + gap))[end % half] for end in (edge.a, edge.b)]
        (x1, y1), (x2, y2) = ((x, y + plan.sizes.high / 2) for x, y in ends)
        shapes.append(path(f"M{x1} {y1}C{x1} {y1 + 46} {x2} {y2 + 46} {x2} {y2}", f"link {cls}"))
    return shapes
