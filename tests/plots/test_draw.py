"""Charts as matplotlib draws them: the numbers, the bytes, the places of texts."""

import subprocess
import sys
from pathlib import Path

import pytest

from trnspec.errors import UsageError
from trnspec.plots.chart import UNKNOWN, Bars, Chart, ChartAxis, LimitLine, Line, Panel, Points
from trnspec.plots.draw import OKABE_ITO

pytest.importorskip("matplotlib", reason="charts need matplotlib, the extra plot")


SEGMENTS = Bars((("a", (1.0, 2.0)), ("b", (0.5, 0.0))), ((1.2, 2.0), UNKNOWN), ("~1.5 s", "2 s"))
TIMES = ChartAxis("time [s]", zero=True), ChartAxis(categories=("one", "another"))
BARS = Chart(
    "breakdown", "two bars", (Panel(*TIMES, (SEGMENTS, LimitLine(3, "end", vertical=True))),), ("Sources: acme-2026-10 (2026-10).",)
)  # fmt: skip
ROOF = Line("roof", (1.0, 10.0, 100.0), (1.0, 10.0, 10.0))
POINTS = Points("", (2.0, 2.001, 50.0), (2.0, 2.001, 10.0), labels=("p", "q", "r"), like="roof")
DOTS = Chart("roofline", "dots", (Panel(ChartAxis("x", log=True), ChartAxis("y", log=True), (ROOF, POINTS)),))


def test_bars_have_the_lengths_of_the_data() -> None:
    (axes,) = BARS.figure().axes
    bars = [(p.get_x(), p.get_width()) for p in axes.patches]

    assert [(0.0, 1.0), (0.0, 2.0), (1.0, 0.5), (2.0, 0.0)] == bars
    (whisker,) = [c for c in axes.containers if not c.get_label().strip("ab")[:0] and hasattr(c, "has_xerr")]
    (segments,) = whisker.lines[2]
    assert [1.2, 2.0] == [x for x, _ in segments.get_segments()[0]]


def test_points_and_lines_have_the_values_of_the_data() -> None:
    (axes,) = DOTS.figure().axes
    roof, dots = axes.lines

    assert ([1.0, 10.0, 100.0], [1.0, 10.0, 10.0]) == (list(roof.get_xdata()), list(roof.get_ydata()))
    assert [2.0, 2.001, 50.0] == list(dots.get_xdata())
    assert roof.get_color() == dots.get_color() == OKABE_ITO[0]
    assert (1.8, 6.0, 1.0) == (roof.get_linewidth(), dots.get_markersize(), dots.get_alpha())


@pytest.mark.parametrize(
    ("high", "ticks"), [(4, [1, 1.5, 2, 3, 4]), (30, [1, 2, 5, 10, 20]), (1000, [1, 10, 100, 1000])]
)
def test_ticks_of_a_logarithmic_axis(high, ticks) -> None:
    (axes,) = Chart("x", "x", (Panel(ChartAxis(log=True), ChartAxis(), (Line("a", (1, high), (0, 1)),)),)).figure().axes

    assert ticks == [t for t in axes.get_xticks() if 1 <= t <= high]


def test_a_row_of_bars_has_its_height() -> None:
    """Apart from the caption and the title, which are equal."""

    def height(count: int) -> float:
        bars = Bars((("a", (1.0,) * count),), (UNKNOWN,) * count, ("",) * count)
        names = tuple(map(str, range(count)))
        return Chart("x", "x", (Panel(ChartAxis(), ChartAxis(categories=names), (bars,)),)).figure().get_figheight()

    assert height(12) - height(2) == pytest.approx(4.6)


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


def test_svg_has_no_date_and_names_its_sources() -> None:
    text = BARS.rendered().decode()

    assert "dc:date" not in text
    assert "acme-2026-10 (2026-10)" in text
    assert BARS._repr_svg_() == text


def test_labels_of_points_that_coincide_are_one() -> None:
    (axes,) = DOTS.figure().axes

    assert ["p, q", "r"] == sorted(t.get_text() for t in axes.texts)


def test_names_of_files() -> None:
    with pytest.raises(UsageError, match=r"chart.jpg: the name of a chart ends in .svg, .png or .pdf"):
        BARS.save("chart.jpg")
