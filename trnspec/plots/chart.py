"""The data of a chart, which any layer can make; nothing here imports matplotlib.

Values are in the unit of their axis. :mod:`trnspec.plots.draw` draws a chart.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.atomic_write import write
from trnspec.errors import UsageError, library
from trnspec.short_repr import short_repr

if TYPE_CHECKING:  # an extra
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")
"""The formats of files, by the end of their names."""

Ends = tuple[float | None, float | None]
"""The ends of an interval; ``None`` where one is not known."""

UNKNOWN: Ends = (None, None)
"""The ends of no interval."""


@frozen
class ChartAxis:
    """An axis.

    Attributes:
        label: The quantity with its unit: ``step time [s]``.
        log: Whether the scale is logarithmic.
        zero: Whether a linear scale starts at 0.
        dates: Whether numbers are years, with fractions.
        categories: The texts of the ticks at 0, 1, 2, ... instead of numbers.
    """

    label: str = ""
    log: bool = False
    zero: bool = False
    dates: bool = False
    categories: tuple[str, ...] = ()


@frozen
class Bars:
    """A stacked horizontal bar at each category of the vertical axis.

    Attributes:
        segments: The name of each segment, and its length in each bar.
        ends: The interval of each total.
        texts: What is printed behind each bar.
    """

    segments: tuple[tuple[str, tuple[float, ...]], ...]
    ends: tuple[Ends, ...]
    texts: tuple[str, ...]


@frozen
class Line:
    """A line through points.

    Attributes:
        name: The name in the legend.
        x: The horizontal values.
        y: The vertical values.
        dashed: Whether the line is dashed.
        like: The name of another mark, whose colour it has.
        dots: Whether the points are marked.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    like: str = ""
    dots: bool = False


@frozen
class Points:
    """Points.

    Attributes:
        name: The name in the legend.
        x: The horizontal values.
        y: The vertical values.
        x_ends: The interval of each horizontal value; empty for none.
        y_ends: The interval of each vertical value; empty for none.
        labels: The text next to each point, empty for none.
        like: The name of another mark, whose colour and marker it has.
        faint: Whether the points are small and translucent, for hundreds of them.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    x_ends: tuple[Ends, ...] = ()
    y_ends: tuple[Ends, ...] = ()
    labels: tuple[str, ...] = ()
    like: str = ""
    faint: bool = False


@frozen
class LimitLine:
    """A dashed line across the panel.

    Attributes:
        value: Where it is.
        name: The name in the legend; empty for none.
        vertical: Whether it is at a horizontal value.
    """

    value: float
    name: str = ""
    vertical: bool = False


@frozen
class Spans:
    """Boxes from one horizontal value to another, each in a row of the vertical axis: the events of a timeline.

    Attributes:
        groups: The name of each group of boxes, and for each box its row, start and end.
        idle: The names of the groups in which nothing is done; they have no colour of their own.
    """

    groups: tuple[tuple[str, tuple[tuple[int, float, float], ...]], ...]
    idle: tuple[str, ...]


@frozen
class HeatMap:
    """A grid of cells, whose colours are the values: a row for each category of the vertical axis.

    Attributes:
        values: The value of each cell by row and column; ``None`` where there is none.
        texts: The text in each cell.
        label: What the colours mean.
        log: Whether colours are on a logarithmic scale.
        low_is_better: Whether the brightest colour is that of the smallest value.
    """

    values: tuple[tuple[float | None, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    label: str
    log: bool
    low_is_better: bool


Mark = Bars | Line | Points | LimitLine | Spans | HeatMap


@frozen
class Panel:
    """Axes with what is drawn between them."""

    x: ChartAxis
    y: ChartAxis
    marks: tuple[Mark, ...]
    title: str = ""


@frozen(repr=False)
class Chart:
    """A chart.

    Attributes:
        kind: What ``trnspec plot`` calls it: ``breakdown``.
        title: The title.
        panels: The panels, from top to bottom.
        caption: Paragraphs below: evidence, what whiskers mean, sources with their dates.
    """

    kind: str
    title: str
    panels: tuple[Panel, ...]
    caption: tuple[str, ...] = field(default=())

    __repr__ = short_repr

    def figure(self, *, dark: bool = False) -> Figure:
        """The chart as a figure of matplotlib.

        Raises:
            UsageError: matplotlib is not installed.
        """
        library("matplotlib", "plot")
        from trnspec.plots.draw import figure

        return figure(self, dark=dark)

    def rendered(self, format: str = "svg", *, dark: bool = False) -> bytes:
        """The chart as a file; equal charts give equal bytes with one version of matplotlib.

        Args:
            format: ``svg``, ``png`` or ``pdf``.
            dark: Light on dark.

        Raises:
            UsageError: There is no such format, or matplotlib is not installed.
        """
        check(f"chart.{format}")
        library("matplotlib", "plot")
        from trnspec.plots.draw import rendered

        return rendered(self, format, dark=dark)

    def save(self, file: str | os.PathLike[str], *, dark: bool = False) -> None:
        """Writes the chart; the end of the name decides the format: .svg, .png or .pdf.

        Raises:
            UsageError: The name ends otherwise, or matplotlib is not installed.
            OSError: The file cannot be written.
        """
        path = check(file)
        write({path: self.rendered(path.suffix[1:].lower(), dark=dark)})

    def _repr_svg_(self) -> str:
        """The chart in a notebook."""
        return self.rendered().decode()


def check(file: str | os.PathLike[str]) -> Path:
    """The path of a chart.

    Raises:
        UsageError: Its name does not end in one of :data:`SUFFIXES`.
    """
    path = Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path.name}: the name of a chart ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    return path
