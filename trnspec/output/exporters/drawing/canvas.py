"""The SVG elements of pictures of fabrics.

Colours are CSS classes, defined for light and dark mode; a background card makes the picture readable on a page of any
colour.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.text_table import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def rect(x: float, y: float, width: float, height: float, cls: str, radius: float = 6) -> str:
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
    """The whole file: card, title, drawing and legend.

    Args:
        picture: The drawing.
        title: The title.
        subtitle: Lines below the title.
        description: The text alternative for screen readers.
        notes: The comments of the file.
    """
    letters = max(_MOST_LETTERS, int((picture.width - 46) / 7.2))
    lines = [wrapped for words in subtitle for wrapped in textwrap.wrap(words, letters)]
    keys = [
        (key.cls if i == 0 else "", words)
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
