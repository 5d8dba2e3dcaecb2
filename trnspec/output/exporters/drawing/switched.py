"""Pictures of switched fabrics: chips below their switches, two halves face to face.

A half with few chips shows every link.  In a half with many, the chips of a box share one thick line.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.output.exporters.drawing.canvas import TIMES, Key, Picture, chip, line, path, rect, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.output.exporters.link_table import LinkTable
    from trnspec.topology.switched import Switched

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
    def box_height(self) -> float:
        between = 24 if self.inner else 5
        return self.rows * self.sizes.high + (self.rows - 1) * between + 2 * self.sizes.pad

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
            y = top + s.pad + s.high / 2 + row * (s.high + (24 if self.inner else 5))
            corners.append((self.left(box) + s.pad + s.chip / 2 + column * s.step, y))
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
    key = Key("group", f"a server, {network.server}, with {network.per_server} chips")
    if plan.group != network.per_server:
        key = Key("group", f"{plan.group} chips")
    keys = (key,) if plan.boxes * halves > 1 else ()
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
    shapes = []
    for box in range(plan.boxes):
        x = plan.left(box) + plan.box_width * place
        y = edge + math.copysign(_DROP / 2, near - edge) + 4
        shapes += [line(x, edge, x, near, f"bundle {cls}"), text(x + 6, y, f"{plan.group}{TIMES}", "small")]
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
    shapes = []
    for box in range(plan.boxes):
        x = plan.left(box) + plan.box_width / 2
        shapes += [
            line(x, above, x, below, f"bundle {cls}"),
            text(x + 6, above + gap / 2 + 4, f"{plan.group}{TIMES}", "small"),
        ]
    return shapes


def _loops(shape: Switched, plan: _Plan, top: float, part: float, gap: float, cls: str) -> list[str]:
    """Direct links between chips of one half: arcs below them."""
    half = plan.group * plan.boxes
    shapes = []
    for edge in shape.build().edges:
        if edge.b >= shape.chips:
            continue
        ends = []
        for end in (edge.a, edge.b):
            x, y = plan.chips(top + end // half * (part + gap))[end % half]
            ends.append((x, y + plan.sizes.high / 2))
        (x1, y1), (x2, y2) = ends
        shapes.append(path(f"M{x1} {y1}C{x1} {y1 + 46} {x2} {y2 + 46} {x2} {y2}", f"link {cls}"))
    return shapes
