"""Scatter plots as SVG: the same points give the same text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 45
LEAST, MOST = 0.2, 5.0
"""The range of ratios that is shown; those beyond are at its edge."""

STYLE = """\
  .card{fill:#ffffff;stroke:#d5dae1}.grid{stroke:#d5dae1;stroke-width:1}.one{stroke:#56606d;stroke-width:1.4}
  .new{stroke:#3565c4}.held{stroke:#c4521a}.new,.held{fill:none;stroke-width:4;stroke-linecap:round;stroke-opacity:.55}
  text{fill:#1f2733;font:12px system-ui,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif}.title{font-weight:600}
  @media (prefers-color-scheme:dark){.card{fill:#12161d;stroke:#39424f}.grid{stroke:#39424f}.one{stroke:#9aa4b2}text{fill:#dfe5ec}}"""


@frozen
class Point:
    """A measured value, the ratio of the computed one to it, and whether a fit has seen it and held its model out."""

    measured: float
    ratio: float
    seen: bool


def ratios(points: Sequence[Point], title: str, unit: str, size: float) -> str:
    """Computed over measured against measured, both on logarithmic scales.

    Args:
        points: The points.
        title: The heading.
        unit: The unit of measured values.
        size: The size of the unit.
    """
    measured = [p.measured / size for p in points]
    first, last = math.floor(math.log10(min(measured))), math.ceil(math.log10(max(measured)))
    last = max(last, first + 1)

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(ratio: float) -> float:
        clipped = min(max(ratio, LEAST), MOST)
        return HEIGHT - BOTTOM - math.log(clipped / LEAST) / math.log(MOST / LEAST) * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{title}: computed over measured</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
        f'<text class="title" x="{LEFT}" y="24">{title}, {len(points):,} rows</text>',
        f'<text x="{WIDTH - RIGHT}" y="24" text-anchor="end">blue: not fitted; orange: model held out of the fit</text>',
    ]
    for ratio in (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0):
        kind = "one" if ratio == 1.0 else "grid"
        at = f"{y(ratio):.1f}"
        lines.append(f'<path class="{kind}" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for power in range(first, last + 1):
        at = f"{x(10.0**power):.1f}"
        lines.append(f'<path class="grid" d="M{at} {TOP}V{HEIGHT - BOTTOM}"/>')
        lines.append(f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">1e{power}</text>')
    lines.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">measured [{unit}]</text>'
    )
    for kind, seen in (("new", False), ("held", True)):
        dots = sorted(
            {f"M{x(m):.0f} {y(p.ratio):.0f}h0" for m, p in zip(measured, points, strict=True) if p.seen == seen}
        )
        if dots:
            lines.append(f'<path class="{kind}" d="{"".join(dots)}"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"
