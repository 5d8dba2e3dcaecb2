"""Pictures of grids (a plane with the arcs that wrap around it, planes side by side), rows and circles of chips."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.output.exporters.drawing.canvas import TIMES, Key, Picture, chip, dot, line, num, path, rect, text
from trnspec.topology.grid import GridAxis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.output.exporters.link_table import LinkTable
    from trnspec.topology.fabric import Fabric
    from trnspec.topology.shapes import GridShape, Hypercube

_CHIP = 46
_STEP = 96
_APART = 88  # in a row
_BULGE = 34
_MARGIN = 42  # around a plane, for its arcs


@frozen
class _Scale:
    """The size of a plane: the side of a chip, the distance between chips, the height of arcs, their margin."""

    chip: float
    step: float
    bulge: float
    margin: float
    number: str = "number"


_LARGE = _Scale(_CHIP, _STEP, _BULGE, _MARGIN)
_SMALL = _Scale(30, 56, 21, 30, "number small")


def plane(shape: GridShape, classes: Mapping[str, str]) -> Picture:
    """A grid of two dimensions: the first runs down, the last to the right."""
    rows, columns = shape.axes
    parts, width, height = _plane(rows, columns, classes, range(shape.nodes), _LARGE)
    return Picture(width, height, tuple(parts))


def four(shape: Hypercube, classes: Mapping[str, str]) -> Picture:
    """A hypercube of four dimensions, which is a torus of 4 x 4 chips numbered so that neighbours differ in one bit."""
    gray = (0, 1, 3, 2)
    axis = GridAxis(4, rate=shape.rate, kind=shape.kind)
    numbers = [4 * i + j for i in gray for j in gray]
    parts, width, height = _plane(axis, axis, classes, numbers, _LARGE)
    return Picture(width, height, tuple(parts))


def planes(shape: GridShape, classes: Mapping[str, str], network: LinkTable) -> Picture:
    """A grid of three dimensions: the planes of the last two side by side, and the links of the first one between them."""
    deep, rows, columns = shape.axes
    size = rows.size * columns.size
    _, width, height = _plane(rows, columns, classes, range(size), _SMALL)
    gap, head, pad = 40, 30, 8
    cls = classes[deep.kind]
    place = "server" if network.per_server == size else "plane"
    across: list[str] = []
    boxes: list[str] = []
    top = head + 4
    for index in range(deep.size):
        x = index * (width + 2 * pad + gap)
        numbers = range(index * size, (index + 1) * size)
        inside, _, _ = _plane(rows, columns, classes, numbers, _SMALL, f"dot {cls}" if deep.links else "")
        named = f"{place} {index}"
        span = f"chips {index * size} to {(index + 1) * size - 1}"
        boxes += [rect(x, head, width + 2 * pad, height + 2 * pad, "group", 10)]
        boxes += [text(x + (width + 2 * pad) / 2, head - 10, f"{named}: {span}", "tag soft middle")]
        boxes += [f'<g transform="translate({num(x + pad)} {num(top + pad - 4)})">', *inside, "</g>"]
    full = deep.size * (width + 2 * pad + gap) - gap
    # Each chip is linked to the same place of the next plane; one line represents all of them.
    mid = head + (height + 2 * pad) / 2
    for index in range(deep.size - 1):
        x = (index + 1) * (width + 2 * pad + gap) - gap
        across += [line(x + 1, mid, x + gap - 1, mid, f"bundle {cls}")]
        across += [text(x + gap / 2, mid - 12, f"{size}{TIMES}", "tag middle")]
    low = head + height + 2 * pad
    if deep.links > deep.size - 1:
        first, last = (width + 2 * pad) / 2, full - (width + 2 * pad) / 2
        drop, r = 34, 14
        data = f"M{num(first)} {num(low)}v{drop - r}q0 {r} {r} {r}H{num(last - r)}q{r} 0 {r} {-r}V{num(low)}"
        across += [path(data, f"bundle {cls}")]
        across += [
            text(
                full / 2,
                low + drop - 10,
                f"{size}{TIMES}, each chip to the one in the same place of the next {place}",
                "tag middle",
            )
        ]
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
) -> tuple[list[str], float, float]:
    """The parts of a plane with its size; ``numbers`` are those of its chips, row by row; ``marked`` gives them dots."""
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
    width = far_x + half + scale.margin / 3
    return [*links, *chips], width, far_y + half + scale.margin / 3


def _arc(x1: float, y1: float, x2: float, y2: float, dx: float, dy: float) -> str:
    return f"M{num(x1)} {num(y1)}C{num(x1 + dx)} {num(y1 + dy)} {num(x2 + dx)} {num(y2 + dy)} {num(x2)} {num(y2)}"


def row(fabric: Fabric, classes: Mapping[str, str]) -> Picture:
    """Chips in a row, as a chain is."""
    y = _CHIP / 2 + 2
    links = [
        line(_CHIP / 2 + e.a * _APART, y, _CHIP / 2 + e.b * _APART, y, f"link {classes[e.kind]}") for e in fabric.edges
    ]
    chips = [part for i in range(fabric.nodes) for part in chip(_CHIP / 2 + i * _APART, y, _CHIP, _CHIP, i)]
    return Picture((fabric.nodes - 1) * _APART + _CHIP, _CHIP + 4, (*links, *chips))


def circle(fabric: Fabric, classes: Mapping[str, str]) -> Picture:
    """Chips on a circle in the order of their numbers, every link a straight line: a ring, or anything else."""
    count = fabric.nodes
    radius = max(110.0, count * (_CHIP + 36) / (2 * math.pi))
    middle = radius + _CHIP / 2 + 4
    at = [
        (middle + radius * math.sin(2 * math.pi * i / count), middle - radius * math.cos(2 * math.pi * i / count))
        for i in range(count)
    ]
    links = [line(*at[e.a], *at[e.b], f"link {classes[e.kind]}") for e in fabric.edges]
    chips = [part for i, (x, y) in enumerate(at) for part in chip(x, y, _CHIP, _CHIP, i)]
    return Picture(2 * middle, 2 * middle, (*links, *chips))
