"""Pictures of chips on a line or on a circle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trnspec.output.exporters.drawing.canvas import Picture, chip, line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.topology.fabric import Fabric

_CHIP = 46
_STEP = 88


def row(fabric: Fabric, classes: Mapping[str, str]) -> Picture:
    """Chips in a row, as a chain is."""
    y = _CHIP / 2 + 2
    links = [
        line(_CHIP / 2 + e.a * _STEP, y, _CHIP / 2 + e.b * _STEP, y, f"link {classes[e.kind]}") for e in fabric.edges
    ]
    chips = [part for i in range(fabric.nodes) for part in chip(_CHIP / 2 + i * _STEP, y, _CHIP, _CHIP, i)]
    return Picture((fabric.nodes - 1) * _STEP + _CHIP, _CHIP + 4, (*links, *chips))


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
