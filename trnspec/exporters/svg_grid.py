"""Pictures of grids: a plane with the arcs that wrap around it, and planes side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.exporters.svg_canvas import Picture, chip, line, num, path, rect, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.exporters.wiring import Wiring
    from trnspec.topology.grid import Axis
    from trnspec.topology.shapes import GridShape

_CHIP = 46
_STEP = 96
_BULGE = 34
_ROOM = 42  # around a plane, for its arcs


@frozen
class _Scale:
    """How large a plane is drawn: the side of a chip, from chip to chip, how far arcs reach, room for them."""

    chip: float
    step: float
    bulge: float
    room: float
    number: str = "number"


_LARGE = _Scale(_CHIP, _STEP, _BULGE, _ROOM)
_SMALL = _Scale(30, 56, 21, 30, "number small")


def plane(shape: GridShape, classes: Mapping[str, str]) -> Picture:
    """A grid of two dimensions: the first runs down, the last to the right."""
    rows, columns = shape.axes
    parts, width, height = _plane(rows, columns, classes, 0, _LARGE)
    return Picture(width, height, tuple(parts))


def planes(shape: GridShape, classes: Mapping[str, str], found: Wiring) -> Picture:
    """A grid of three dimensions: the planes of the last two side by side, and how the first one joins them."""
    deep, rows, columns = shape.axes
    size = rows.size * columns.size
    _, width, height = _plane(rows, columns, classes, 0, _SMALL)
    gap, head, pad = 40, 30, 8
    cls = classes[deep.kind]
    across: list[str] = []
    boxes: list[str] = []
    top = head + 4
    for index in range(deep.size):
        x = index * (width + 2 * pad + gap)
        inside, _, _ = _plane(rows, columns, classes, index * size, _SMALL)
        named = f"server {index}" if found.per_server == size else f"plane {index}"
        span = f"chips {index * size} to {(index + 1) * size - 1}"
        boxes += [rect(x, head, width + 2 * pad, height + 2 * pad, "group", 10)]
        boxes += [text(x + (width + 2 * pad) / 2, head - 10, f"{named}: {span}", "tag soft middle")]
        boxes += [f'<g transform="translate({num(x + pad)} {num(top + pad - 4)})">', *inside, "</g>"]
    full = deep.size * (width + 2 * pad + gap) - gap
    # Each chip is linked to the same place of the next plane; one line stands for all of them.
    mid = head + (height + 2 * pad) / 2
    for index in range(deep.size - 1):
        x = (index + 1) * (width + 2 * pad + gap) - gap
        across += [line(x + 1, mid, x + gap - 1, mid, f"bundle {cls}")]
        across += [text(x + gap / 2, mid - 12, f"{size}×", "tag middle halo")]
    low = head + height + 2 * pad
    if deep.links > deep.size - 1:
        first, last = (width + 2 * pad) / 2, full - (width + 2 * pad) / 2
        drop, r = 34, 14
        data = f"M{num(first)} {num(low)}v{drop - r}q0 {r} {r} {r}H{num(last - r)}q{r} 0 {r} {-r}V{num(low)}"
        across += [path(data, f"bundle {cls}")]
        across += [text(full / 2, low + drop - 10, f"{size}×, and so around", "tag middle")]
        low += drop + 6
    return Picture(full, low, (*across, *boxes))


def _plane(
    rows: Axis, columns: Axis, classes: Mapping[str, str], first: int, scale: _Scale
) -> tuple[list[str], float, float]:
    """The parts of a plane with its size; the numbers of its chips begin at ``first``."""
    x0 = scale.room + scale.chip / 2
    y0 = scale.room + scale.chip / 2
    links: list[str] = []
    chips: list[str] = []
    for i in range(rows.size):
        for j in range(columns.size):
            x, y = x0 + j * scale.step, y0 + i * scale.step
            if j + 1 < columns.size:
                links.append(line(x, y, x + scale.step, y, f"link {classes[columns.kind]}"))
            if i + 1 < rows.size:
                links.append(line(x, y, x, y + scale.step, f"link {classes[rows.kind]}"))
            chips += chip(x, y, scale.chip, scale.chip, first + i * columns.size + j, scale.number)
    far_x, far_y = x0 + (columns.size - 1) * scale.step, y0 + (rows.size - 1) * scale.step
    half, inset = scale.chip / 2, scale.chip / 4
    if columns.links > columns.size - 1:
        cls = f"link {classes[columns.kind]}"
        for i in range(rows.size):
            y = y0 + i * scale.step - half
            links.append(path(_arc(x0 - inset, y, far_x + inset, y, 0, -scale.bulge), cls))
    if rows.links > rows.size - 1:
        cls = f"link {classes[rows.kind]}"
        for j in range(columns.size):
            x = x0 + j * scale.step - half
            links.append(path(_arc(x, y0 - inset, x, far_y + inset, -scale.bulge, 0), cls))
    width = far_x + half + scale.room / 3
    return [*links, *chips], width, far_y + half + scale.room / 3


def _arc(x1: float, y1: float, x2: float, y2: float, dx: float, dy: float) -> str:
    return f"M{num(x1)} {num(y1)}C{num(x1 + dx)} {num(y1 + dy)} {num(x2 + dx)} {num(y2 + dy)} {num(x2)} {num(y2)}"
