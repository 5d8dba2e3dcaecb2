"""Charts as matplotlib draws them: the numbers, the bytes, the places of texts.

``python tests/plots/test_draw.py`` writes ``artists.txt``: what is drawn, without what depends on the sizes of letters.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from trnspec.errors import UsageError
from trnspec.plots.chart import UNKNOWN, Bars, Chart, ChartAxis, HeatMap, LimitLine, Line, Panel, Points, Spans

pytest.importorskip("matplotlib", reason="charts need matplotlib, the extra plot")

from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from trnspec.plots.draw import _on

SEGMENTS = Bars((("a", (1.0, 2.0)), ("b", (0.5, 0.0))), ((1.2, 2.0), UNKNOWN), ("~1.5 s", "2 s"))
TIMES = ChartAxis("time [s]", zero=True), ChartAxis(categories=("one", "another"))
BARS = Chart(
    "breakdown", "two bars", (Panel(*TIMES, (SEGMENTS, LimitLine(3, "end", vertical=True))),), ("Sources: acme-2026-10 (2026-10).",)
)  # fmt: skip
ROOF = Line("roof", (1.0, 10.0, 100.0), (1.0, 10.0, 10.0))
POINTS = Points("", (2.0, 2.001, 50.0), (2.0, 2.001, 10.0), labels=("p", "q", "r"), like="roof")
DOTS = Chart("roofline", "dots", (Panel(ChartAxis("x", log=True), ChartAxis("y", log=True), (ROOF, POINTS)),))


LONG = "a name that has more than forty letters, on-and-on, which is wrapped at spaces"
ENDS = Points("faint", (2025.5, 2026.1), (1.0, 2.0), ((2025.2, 2025.9), UNKNOWN), ((0.5, None), (2.0, 2.0)), faint=True)
YEARS = ChartAxis("date", dates=True), ChartAxis("value", zero=True)
CELLS = HeatMap(((1.0, 10.0), (100.0, None)), (("1", "10"), ("100", "-")), "time", log=True, low_is_better=True)
SPANS = Spans((("busy", ((0, 0.0, 1.0), (1, 1.0, 3.0))), ("idle", ((1, 0.0, 1.0),))), idle=("idle",))
NAMES = ChartAxis(categories=("x", LONG))
OTHERS = Chart("others", f"{LONG}; {LONG}", (
    Panel(*YEARS, (ENDS, Line(f"{LONG} line", (2025.0, 2026.5), (1.0, 1.5), dots=True), LimitLine(1.2, "limit")), title="dates"),
    Panel(NAMES, NAMES, (CELLS,)),
    Panel(ChartAxis(), NAMES, (SPANS,)),
    Panel(ChartAxis(), NAMES, (Line("dashed", (0, 1), (0, 1), dashed=True),)),
), (LONG, f"{LONG}, {LONG}, {LONG}"))  # fmt: skip
CHARTS = {"bars": BARS, "dots": DOTS, "others": OTHERS}
ARTISTS = Path(__file__).with_name("artists.txt")


def rounded(values) -> str:
    return " ".join(f"{float(value):.6g}" for value in values)


def artists(name: str, *, dark: bool) -> str:
    """Each artist on a line: its numbers, colours and texts."""
    figure = CHARTS[name].figure(dark=dark)
    lines = [f"{name} {rounded(figure.get_size_inches())}"]
    lines += [
        f"text {t.get_text()!r} {rounded([*t.get_position(), t.get_size()])} {t.get_color()}" for t in figure.texts
    ]
    for axes in figure.axes:
        sides = [side for side, spine in axes.spines.items() if spine.get_visible()]
        lines.append(f"axes {axes.get_title('left')!r} {rounded([*axes.get_xlim(), *axes.get_ylim()])} {sides}")
        for axis in (axes.xaxis, axes.yaxis):
            words = [t.get_text() for t in axis.get_ticklabels()]
            lines.append(f"axis {axis.get_label_text()!r} {axis.get_scale()} {rounded(axis.get_ticklocs())} {words}")
        for t in axes.texts:
            place = [*t.get_position(), *getattr(t, "xy", ()), t.get_size()]
            lines.append(f"text {t.get_text()!r} {rounded(place)} {t.get_color()} {t.get_ha()} {t.get_va()}")
        for p in (each for each in axes.patches if isinstance(each, Rectangle)):
            box = rounded([p.get_x(), p.get_y(), p.get_width(), p.get_height(), p.get_linewidth()])
            hatch = f"{str(p.get_hatch() or '')!r} {p._hatch_linewidth:g}"
            lines.append(f"box {box} {to_hex(p.get_facecolor())} {to_hex(p.get_edgecolor())} {hatch}")
        for each in axes.get_children():
            if isinstance(each, Line2D):
                dashes = each._unscaled_dash_pattern
                style = f"{to_hex(each.get_color())} {dashes} {each.get_marker()!r} {each.get_alpha()}"
                sizes = rounded([each.get_linewidth(), each.get_markersize(), each.get_zorder()])
                lines.append(f"line {rounded(each.get_xdata())}; {rounded(each.get_ydata())}; {sizes} {style}")
            elif isinstance(each, LineCollection):
                lines += [f"whisker {rounded(points.flat)} {each.get_zorder()}" for points in each.get_segments()]
        legend = axes.get_legend()
        lines += [f"legend {t.get_text()!r}" for t in (legend.get_texts() if legend else ())]
    return "".join(f"{line}\n" for line in lines)


def drawn() -> str:
    return "".join(artists(name, dark=name == "others") for name in CHARTS)


def test_artists() -> None:
    assert ARTISTS.read_text("utf-8").splitlines() == drawn().splitlines()


def test_segments_that_have_room_are_labelled() -> None:
    bars = Bars((("a", (100.0, 1.0, 5.0)),), (UNKNOWN,) * 3, ("x", "y", "z"))
    (axes,) = Chart("breakdown", "b", (Panel(TIMES[0], ChartAxis(categories=("1", "2", "3")), (bars,)),)).figure().axes

    assert {"100", "5"} == {text.get_text() for text in axes.texts} - {"x", "y", "z"}


@pytest.mark.parametrize(
    ("color", "letters"),
    [
        ("#ffffff", "black"), ("#000000", "white"), ("#737373", "white"), ("#747474", "black"), ("#ff0000", "white"),
        ("#00ff00", "black"), ("#0000ff", "white"),
    ],
)  # fmt: skip
def test_letters_on_a_color(color, letters) -> None:
    assert {"black": "#000000", "white": "#ffffff"}[letters] == _on(color)


@pytest.mark.parametrize(
    ("high", "ticks"),
    [
        (4, [1, 1.5, 2, 3, 4]), (6.35, [1, 1.5, 2, 3, 4, 5]), (6.37, [1, 2, 5]), (30, [1, 2, 5, 10, 20]),
        (170, [1, 2, 5, 10, 20, 50, 100]), (171, [1, 10, 100]), (1000, [1, 10, 100, 1000]),
    ],
)  # fmt: skip
def test_ticks_of_a_logarithmic_axis(high, ticks) -> None:
    (axes,) = Chart("x", "x", (Panel(ChartAxis(log=True), ChartAxis(), (Line("a", (1, high), (0, 1)),)),)).figure().axes

    assert ticks == [t for t in axes.get_xticks() if 1 <= t <= high]


@pytest.mark.parametrize(("years", "months"), [(0.62, 1), (0.63, 3), (1.33, 3), (1.35, 6), (2.67, 6), (2.69, 12)])
def test_ticks_of_dates(years, months) -> None:
    points = Line("a", (2026.0, 2026.0 + years), (0, 1))
    (axes,) = Chart("x", "x", (Panel(ChartAxis(dates=True), ChartAxis(), (points,)),)).figure().axes
    first, second, *_ = (tick for tick in axes.get_xticks() if tick >= 2026.0)

    assert (0, months) == pytest.approx(((first - 2026.0) * 12, (second - first) * 12))


@pytest.mark.parametrize("log", [False, True])
def test_equal_cells_have_one_color(log) -> None:
    cells = HeatMap(((3.0, 3.0, None),), (("3", "3", "-"),), "time", log=log, low_is_better=True)
    panel = Panel(ChartAxis(categories=("a", "b", "c")), ChartAxis(categories=("d",)), (cells,))
    axes = Chart("x", "x", (panel,)).figure().axes[0]
    first, second, none = (to_hex(bar.get_facecolor()) for bar in axes.patches[:3])

    assert (first, True) == (second, first != none)


def test_labels_cover_no_line_and_no_label() -> None:
    figure = DOTS.figure()
    (axes,) = figure.axes
    roof = axes.transData.transform([(10 ** (i / 100), min(10 ** (i / 100), 10.0)) for i in range(200)])
    boxes = [t.get_window_extent() for t in axes.texts]

    assert not boxes[0].overlaps(boxes[1])
    assert not any(box.contains(x, y) for box in boxes for x, y in roof)


@pytest.mark.parametrize("chart", [BARS, DOTS], ids=["bars", "dots"])
def test_labels_are_inside_the_picture(chart) -> None:
    figure = chart.figure()
    whole, drawn = figure.bbox_inches, figure.get_tightbbox()
    texts = [t.get_window_extent() for axes in figure.axes for t in axes.texts]

    assert whole.x0 <= drawn.x0 <= drawn.x1 <= whole.x1
    assert whole.y0 <= drawn.y0 <= drawn.y1 <= whole.y1
    assert all(figure.bbox.contains(*corner) for box in texts for corner in box.corners())


@pytest.mark.slow
def test_equal_charts_are_equal_files(tmp_path) -> None:
    (tmp_path / "matplotlibrc").write_text("font.size: 20\naxes.facecolor: red\nsvg.hashsalt: other\n")
    program = """import sys
sys.path[:0] = sys.argv[1:]
from test_draw import BARS
for suffix in ("svg", "png", "pdf"):
    BARS.save(f"chart.{suffix}", dark=True)
"""
    here = Path(__file__)
    subprocess.run([sys.executable, "-c", program, here.parent, here.parents[2]], check=True, cwd=tmp_path)

    for suffix in ("svg", "png", "pdf"):
        assert BARS.rendered(suffix, dark=True) == (tmp_path / f"chart.{suffix}").read_bytes()
        assert BARS.rendered(suffix, dark=True) != BARS.rendered(suffix)


def test_svg_has_no_date_and_names_its_sources(tmp_path) -> None:
    text = BARS.rendered().decode()
    BARS.save(tmp_path / "chart.svg")

    assert "dc:date" not in text
    assert "acme-2026-10 (2026-10)" in text
    assert BARS._repr_svg_() == text == (tmp_path / "chart.svg").read_text()
    light, dark = (BARS.figure(dark=dark).get_facecolor() for dark in (False, True))
    assert BARS.figure().get_facecolor() == light != dark


def test_names_of_files() -> None:
    with pytest.raises(UsageError, match=r"chart.jpg: the name of a chart ends in .svg, .png or .pdf"):
        BARS.save("chart.jpg")


if __name__ == "__main__":
    ARTISTS.write_text(drawn(), "utf-8")
