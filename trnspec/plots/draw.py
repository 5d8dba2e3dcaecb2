"""Draws charts with matplotlib: fixed fonts and colours, no dates, so that equal charts are equal files.

Colours are those of Okabe and Ito (2008), distinguishable with any colour vision; from the ninth name on
they are repeated with hatches, or other markers.
"""

from __future__ import annotations

import io
import itertools
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from attrs import field, frozen
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullFormatter

from trnspec.plots.chart import Bars, Chart, ChartAxis, Ends, HeatMap, LimitLine, Line, Panel, Points, Spans

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""The palette; on dark ground black is replaced by light grey."""
_MARKERS = "osD^vPX*"
_HATCHES = ("", "////", "....", "xxxx")
_WIDTH = 9.0
_BAR = 0.46
_PLOT = 3.7
_DOT_ROW = 0.27
_LETTERS = 146
"""Letters of a line of the caption at its size."""
_CAPTION = 7.5
_TITLE_LETTERS = 84
_LABEL_LETTERS = 44
_THICK, _RAISED = 0.54, 0.09
"""The thickness of a bar, and how far it is above its tick: the whisker is below it."""
_INCHES = 5.4
"""About the width of the axes of bars: a segment has its value printed in it if it fits."""


@frozen
class _Theme:
    ground: str
    text: str
    soft: str
    grid: str
    colors: tuple[str, ...]


_LIGHT = _Theme("#ffffff", "#1f2733", "#56606d", "#d5dae1", OKABE_ITO)
_DARK = _Theme("#12161d", "#e6eaf0", "#a3adba", "#39424f", (*OKABE_ITO[:-1], "#dfe5ec"))


@frozen
class _Drawing:
    """A panel that is being drawn.

    Attributes:
        axes: Where.
        theme: The colours.
        numbers: The number of each name, which decides its colour, hatch and marker.
        lines: What labels should not cover: the lines and whiskers.
        limits: The lines across the panel, which labels should not cover either.
        texts: The labels of points, which are placed when the layout is known: point and text.
    """

    axes: Axes
    theme: _Theme
    numbers: dict[str, int]
    lines: list[tuple[Sequence[float], Sequence[float]]] = field(factory=list)
    limits: list[Line2D] = field(factory=list)
    texts: list[tuple[float, float, str]] = field(factory=list)

    def number(self, name: str) -> int:
        """The number of a name; it gets the next one when it is new."""
        return self.numbers.setdefault(name, len(self.numbers))

    def color(self, name: str) -> str:
        """The colour of a name."""
        return self.theme.colors[self.number(name) % len(self.theme.colors)]


def figure(chart: Chart, *, dark: bool = False) -> Figure:
    """The chart as a figure."""
    theme = _DARK if dark else _LIGHT
    with _settings(theme):
        caption = [line for words in chart.caption for line in textwrap.wrap(words, _LETTERS, break_on_hyphens=False)]
        title = textwrap.wrap(chart.title, _TITLE_LETTERS, break_on_hyphens=False)
        heights = [_height(p) for p in chart.panels]
        below = 0.12 + len(caption) * _CAPTION * 1.32 / 72
        above = 0.14 + len(title) * 12 * 1.25 / 72
        height = sum(heights) + below + above
        drawn = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasAgg(drawn)
        engine: Any = drawn.get_layout_engine()
        engine.set(rect=(0.01, below / height, 0.98, sum(heights) / height), h_pad=0.06, w_pad=0.04)
        drawn.text(0.015, 1 - 0.1 / height, "\n".join(title), size=12, weight="bold", va="top", linespacing=1.15)
        drawn.text(
            0.015, 0.08 / height, "\n".join(caption), size=_CAPTION, color=theme.soft, va="bottom", linespacing=1.2
        )
        grid = drawn.subplots(len(chart.panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
        numbers: dict[str, int] = {}
        drawings = [_Drawing(axes, theme, numbers) for axes in grid[:, 0]]
        for panel, drawing in zip(chart.panels, drawings, strict=True):
            _panel(panel, drawing)
        drawn.draw_without_rendering()
        for drawing in drawings:
            _place(drawing)
        return drawn


def rendered(chart: Chart, format: str, *, dark: bool = False) -> bytes:
    """The chart as a file in a format."""
    drawn = figure(chart, dark=dark)
    metadata: dict[str, Any] = {"Title": chart.title}
    if format == "svg":
        metadata |= {"Date": None, "Creator": "trnspec", "Description": " ".join(chart.caption)}
    elif format == "pdf":
        metadata |= {"CreationDate": None, "Creator": "trnspec", "Producer": "matplotlib"}
    else:
        metadata |= {"Description": " ".join(chart.caption), "Software": "trnspec"}
    contents = io.BytesIO()
    with _settings(_DARK if dark else _LIGHT):
        drawn.savefig(contents, format=format, metadata=metadata, dpi=160)
    return contents.getvalue()


@contextmanager
def _settings(theme: _Theme) -> Iterator[None]:
    """The settings of matplotlib, whatever its files say."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({
            "svg.hashsalt": "trnspec", "svg.fonttype": "path", "pdf.fonttype": 42, "font.family": "DejaVu Sans",
            "font.size": 9, "text.color": theme.text, "text.parse_math": False, "figure.facecolor": theme.ground,
            "savefig.facecolor": theme.ground, "axes.facecolor": theme.ground, "axes.edgecolor": theme.soft,
            "axes.labelcolor": theme.text, "axes.titlesize": 10, "axes.titlelocation": "left", "axes.spines.top": False,
            "axes.spines.right": False, "axes.axisbelow": True, "xtick.color": theme.soft, "ytick.color": theme.soft,
            "xtick.labelcolor": theme.text, "ytick.labelcolor": theme.text, "grid.color": theme.grid,
            "grid.linewidth": 0.7, "legend.frameon": False, "legend.fontsize": 8.5, "hatch.linewidth": 0.7,
            "hatch.color": theme.ground,
        })  # fmt: skip
        yield


def _height(panel: Panel) -> float:
    """The height of a panel in inches, its title and its label included."""
    if not panel.y.categories:
        return _PLOT
    bars = [m for m in panel.marks if isinstance(m, (Bars, Spans))]
    lines = max(text.count("\n") + 1 for text in map(_wrapped, panel.y.categories))
    row = max(_BAR if bars else _DOT_ROW, 0.06 + 0.165 * lines)
    groups = [len(m.segments) if isinstance(m, Bars) else len(m.groups) for m in bars]
    return 0.8 + max(row * len(panel.y.categories), *(count * 0.19 for count in groups), 0.0)


def _wrapped(category: str) -> str:
    return "\n".join(textwrap.wrap(category, _LABEL_LETTERS, break_on_hyphens=False)) or " "


def _panel(panel: Panel, to: _Drawing) -> None:
    axes = to.axes
    axes.margins(0.06, 0.12)
    axes.set_title(panel.title, weight="bold")
    if any(isinstance(m, Bars) for m in panel.marks):
        _set_range(panel, to)
    for mark in panel.marks:
        if isinstance(mark, Bars):
            _bars(mark, to)
        elif isinstance(mark, Line):
            _line(mark, to)
        elif isinstance(mark, Points):
            _points(mark, to)
        elif isinstance(mark, Spans):
            _spans(mark, to)
        elif isinstance(mark, HeatMap):
            _cells(mark, panel, to)
        else:
            _limit(mark, to)
    _axis(panel.x, axes, "x")
    _axis(panel.y, axes, "y")
    handles, names = axes.get_legend_handles_labels()
    shown = {n: h for h, n in zip(handles, names, strict=True) if n and not n.startswith("_")}
    if shown:
        wrapped = ["\n".join(textwrap.wrap(n, 30, subsequent_indent="  ")) for n in shown]
        axes.legend(shown.values(), wrapped, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def _axis(axis: ChartAxis, axes: Axes, which: str) -> None:
    side = axes.xaxis if which == "x" else axes.yaxis
    side.set_label_text(axis.label)
    if axis.categories:
        count = len(axis.categories)
        side.set_ticks(range(count), [_wrapped(c) for c in axis.categories])
        side.set_tick_params(length=0)
        if which == "x":
            return
        axes.set_ylim(count - 0.45, -0.55)  # the first at the top
        if not any(p.get_width() for p in axes.patches if hasattr(p, "get_width")):
            axes.grid(axis="y")
        return
    axes.grid(axis=which)  # type: ignore[arg-type]  # x or y
    if axis.log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        low, high = side.get_view_interval()
        decades = math.log10(high / low)
        subs = (1.0,) if decades > 2.5 else (1.0, 2.0, 5.0) if decades > 0.9 else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
        side.set_major_locator(LogLocator(subs=subs, numticks=14))
        side.set_minor_formatter(NullFormatter())
    elif axis.zero:
        axes.set_xlim(left=0.0) if which == "x" else axes.set_ylim(bottom=0.0)
    side.set_major_formatter(FuncFormatter(lambda value, _: (_month if axis.dates else _tick)(value)))
    if axis.dates:
        low, high = side.get_view_interval()
        steps = [months for most, months in _MONTHS if high - low <= most]
        side.set_major_locator(MultipleLocator(steps[0] / 12.0) if steps else MaxNLocator(integer=True))


_MONTHS = ((0.7, 1.0), (1.5, 3.0), (3.0, 6.0))
"""The longest span of an axis of dates in years, and the months between its ticks."""


def _month(year: float) -> str:
    """A year, or its month: ``2026``, ``2026-08``."""
    months = round(year * 12.0)
    return f"{months // 12}-{months % 12 + 1:02d}" if months % 12 else f"{months // 12}"


def _tick(value: float) -> str:
    """A tick with as many digits as it has: ``0.25``, ``1,500``."""
    return f"{value:,.10g}" if abs(value) < 1e6 else f"{value:.4g}"


def _set_range(panel: Panel, to: _Drawing) -> None:
    """Sets the range of the axis so that the texts right of the bars fit."""
    bars = [m for m in panel.marks if isinstance(m, Bars)]
    totals = [sum(lengths[i] for _, lengths in m.segments) for m in bars for i in range(len(m.texts))]
    others = [high for m in bars for _, high in m.ends if high is not None]
    others += [m.value for m in panel.marks if isinstance(m, LimitLine)]
    to.axes.set_xlim(0.0, max([1.2 * t for t in totals] + [1.04 * o for o in others]) or 1.0)


def _bars(bars: Bars, to: _Drawing) -> None:
    rows = range(len(bars.texts))
    left = [0.0 for _ in rows]
    inches = _INCHES / to.axes.get_xlim()[1]
    for name, lengths in bars.segments:
        number = to.number(name)
        hatch = _HATCHES[number // len(OKABE_ITO) % len(_HATCHES)]
        drawn = to.axes.barh(
            [i - _RAISED for i in rows], lengths, _THICK, left, label=name, color=to.color(name), hatch=hatch, edgecolor=to.theme.ground,
            linewidth=0.6,
        )  # fmt: skip
        for i, patch in enumerate(drawn):
            text = _short(lengths[i])
            if lengths[i] * inches >= 0.08 * len(text) + 0.06:
                to.axes.text(
                    left[i] + lengths[i] / 2, i - _RAISED, text, ha="center", va="center", size=8,
                    color=_on(to.color(name)), bbox={"facecolor": patch.get_facecolor(), "edgecolor": "none", "pad": 0.8},
                )  # fmt: skip
        left = [a + b for a, b in zip(left, lengths, strict=True)]
    for i in rows:
        # Below the bar, so that it crosses no text.
        _whisker(to, left[i], i + _THICK / 2 + 0.02, bars.ends[i], horizontal=True, color=to.theme.text)
        to.axes.annotate(
            bars.texts[i], (left[i], i - _RAISED), (6, 0), textcoords="offset points", va="center", size=8.5
        )


def _spans(spans: Spans, to: _Drawing) -> None:
    """Boxes without edges: hundreds of them would be hidden by their edges."""
    for name, boxes in sorted(spans.groups, key=lambda group: group[0] in spans.idle):
        idle = name in spans.idle
        hatch = "" if idle else _HATCHES[to.number(name) // len(OKABE_ITO) % len(_HATCHES)]
        to.axes.barh(
            [row for row, _, _ in boxes], [end - start for _, start, end in boxes], 0.72, [start for _, start, _ in boxes],
            label=name, color=to.theme.grid if idle else to.color(name), hatch=hatch, edgecolor=to.theme.ground, linewidth=0.25,
        )  # fmt: skip


def _cells(cells: HeatMap, panel: Panel, to: _Drawing) -> None:
    """A cell without a value has the colour of the background; its text states the reason."""
    known = [value for row in cells.values for value in row if value is not None]
    scale = LogNorm if cells.log else Normalize
    norm = scale(min(known), max(known))
    palette = mpl.colormaps["cividis_r" if cells.low_is_better else "cividis"]
    for y, (values, texts) in enumerate(zip(cells.values, cells.texts, strict=True)):
        for x, (value, text) in enumerate(zip(values, texts, strict=True)):
            color = to.theme.ground if value is None else mpl.colors.to_hex(palette(norm(value)))
            to.axes.barh(y, 0.96, 0.9, x - 0.48, color=color, edgecolor=to.theme.grid, linewidth=0.8)
            ink = to.theme.soft if value is None else _on(color)
            to.axes.text(x, y, text, ha="center", va="center", size=7 if value is None else 8.5, color=ink)
    to.axes.set_xlim(-0.5, len(panel.x.categories) - 0.5)
    bar = to.axes.figure.colorbar(mpl.cm.ScalarMappable(norm, palette), ax=to.axes, pad=0.02)
    bar.set_label(cells.label)
    bar.outline.set_visible(False)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _on(color: str) -> str:
    """Black or white, whichever is read better on a colour."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 115 else "#ffffff"


def _whisker(to: _Drawing, value: float, other: float, ends: Ends, *, horizontal: bool, color: str) -> None:
    low, high = (value if e is None else e for e in ends)
    if low == high:
        return
    error = [[max(value - low, 0.0)], [max(high - value, 0.0)]]
    x, y = (value, other) if horizontal else (other, value)
    to.lines.append(((low, high), (other, other)) if horizontal else ((other, other), (low, high)))
    to.axes.errorbar(
        [x], [y], xerr=error if horizontal else None, yerr=None if horizontal else error, fmt="none", ecolor=color,
        elinewidth=1.1, capsize=3, label="_interval", zorder=1.9,
    )  # fmt: skip


def _line(line: Line, to: _Drawing) -> None:
    name = line.like or line.name
    to.lines.append((line.x, line.y))
    marker = _MARKERS[to.number(name) % len(_MARKERS)] if line.dots else ""
    to.axes.plot(
        line.x, line.y, color=to.color(name), linestyle="--" if line.dashed else "-", label=line.name, marker=marker,
        markersize=4.5, linewidth=1.5 if line.dashed else 1.8, zorder=1.8 if line.dashed else 2.0,
    )  # fmt: skip


def _points(points: Points, to: _Drawing) -> None:
    name = points.like or points.name
    color, number = to.color(name), to.number(name)
    for ends, values, others, horizontal in (
        (points.x_ends, points.x, points.y, True),
        (points.y_ends, points.y, points.x, False),
    ):
        for one, value, other in zip(ends, values, others, strict=bool(ends)):
            _whisker(to, value, other, one, horizontal=horizontal, color=color)
    to.axes.plot(
        points.x, points.y, color=color, linestyle="", label=points.name, marker=_MARKERS[number % len(_MARKERS)],
        markersize=3.2 if points.faint else 6.0, alpha=0.4 if points.faint else 1.0,
        markeredgecolor="none" if points.faint else to.theme.ground, markeredgewidth=0.5, zorder=3.0 if points.faint else 4.0 - number / 100,
    )  # fmt: skip
    to.texts.extend((x, y, text) for x, y, text in zip(points.x, points.y, points.labels, strict=False) if text)


def _limit(limit: LimitLine, to: _Drawing) -> None:
    draw = to.axes.axvline if limit.vertical else to.axes.axhline
    style = (0, (1, 1.6)) if limit.vertical else (0, (4, 3))
    drawn = draw(limit.value, color=to.theme.soft, linestyle=style, linewidth=1.4, label=limit.name or "_limit")
    to.limits.append(drawn)


_PLACES = tuple(
    itertools.chain.from_iterable(
        ((d, 0, "left", "center"), (-d, 0, "right", "center"), (0, d, "center", "bottom"), (0, -d, "center", "top"),
         (d, d, "left", "bottom"), (d, -d, "left", "top"), (-d, d, "right", "bottom"), (-d, -d, "right", "top"))
        for d in (7, 13, 20, 29)
    )
)  # fmt: skip
"""Places of the label of a point, the best first: offset in points, and alignment."""


def _place(to: _Drawing) -> None:
    """Places each label where it covers no line, no point and no other label inside the panel, if there is such a place."""
    canvas: Any = to.axes.figure.canvas
    renderer = canvas.get_renderer()
    inside = to.axes.get_window_extent(renderer)
    merged = _merged(to)
    avoided = [tuple(to.axes.transData.transform((x, y))) for x, y, _ in merged] + list(_samples(to))
    taken: list[Any] = []
    for x, y, text in merged:
        best: tuple[float, Any, Any] | None = None
        for number, (dx, dy, ha, va) in enumerate(_PLACES):
            far = max(abs(dx), abs(dy)) > _NEAR
            label = to.axes.annotate(
                text, (x, y), (dx, dy), textcoords="offset points", ha=ha, va=va, size=8,
                linespacing=1.1,
                arrowprops={"arrowstyle": "-", "color": to.theme.soft, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
                if far else None,
            )  # fmt: skip
            label.set_in_layout(False)
            label.update_positions(renderer)
            box = Text.get_window_extent(label, renderer)  # without the line to the point
            bad = 10.0 * sum(box.overlaps(other) for other in taken) + sum(box.contains(*dot) for dot in avoided)
            bad += 10.0 * (
                not (inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1)
            )
            bad += number * 1e-3
            if best is None or bad < best[0]:
                if best is not None:
                    best[1].remove()
                best = (bad, label, box)
            else:
                label.remove()
            if best[0] < 1.0:
                break
        assert best is not None
        taken.append(best[2])


_NEAR = 13
"""The offset from which a line connects a label with its point."""
_SAME = 5.0
"""The distance in pixels up to which points share one label."""


def _merged(to: _Drawing) -> list[tuple[float, float, str]]:
    """The labels; those of points that coincide in one."""
    merged: list[tuple[float, float, str]] = []
    transform = to.axes.transData.transform
    for x, y, text in to.texts:
        for i, (ox, oy, other) in enumerate(merged):
            if math.dist(transform((x, y)), transform((ox, oy))) <= _SAME:
                merged[i] = (ox, oy, other if text in other.split(", ") else f"{other}, {text}")
                break
        else:
            merged.append((x, y, text))
    return merged


def _samples(to: _Drawing) -> Iterator[tuple[float, float]]:
    """Points every few pixels along the lines and whiskers."""
    paths = [to.axes.transData.transform(list(zip(xs, ys, strict=True))) for xs, ys in to.lines]
    paths += [drawn.get_transform().transform(drawn.get_xydata()) for drawn in to.limits]
    for corners in paths:
        for (ax, ay), (bx, by) in itertools.pairwise(corners):
            steps = max(int(math.hypot(bx - ax, by - ay) / 3.0), 1)
            yield from ((ax + (bx - ax) * i / steps, ay + (by - ay) * i / steps) for i in range(steps + 1))
