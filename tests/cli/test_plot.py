"""``trnspec plot`` and ``trnspec eval --plot``."""

import json
import re

import pytest

import trnspec
from tests.support.programs import DATA
from tests.support.tables import tables
from trnspec.cli.plot import _compared

pytest.importorskip("matplotlib", reason="charts need matplotlib, the extra plot")


def test_eval_draws_the_chart_of_its_evaluation(here) -> None:
    done = here("eval", "roofline", "--on", "trainium2", "--plot", "roof.svg", "--format", "json")

    assert 0 == done.status
    assert done.data["evaluator"] == "roofline"
    assert trnspec.evaluate("roofline", on="trainium2").plot().rendered() == (here.folder / "roof.svg").read_bytes()


def test_a_sweep_is_one_chart(here) -> None:
    args = ("eval", "memory", "--model", "llama-3.1-8b", "--on", "trn2.48xlarge", "--seq", "4096", "--tp", "8,16")
    done = here(*args, "--plot", "memory.png", "--format", "json")
    (here.folder / "sweep.json").write_text(done.out)
    again = here("plot", "memory", "sweep.json", "--output", "again.png")

    assert (0, 0) == (done.status, again.status)
    assert (here.folder / "memory.png").read_bytes() == (here.folder / "again.png").read_bytes()


def test_a_comparison_has_values_in_one_unit_and_ratios_to_the_baseline() -> None:
    """The first figures first; a ratio that is not known, and that of a date, is missing."""
    catalog = trnspec.load()
    rows = _compared(catalog.graph, [catalog[name].node for name in ("trainium1", "trainium2")], 0)
    found = {at: (text, [ratio and float(ratio[0]) for ratio in ratios]) for at, text, ratios in rows}

    assert next(iter(found)) == "peak.dense.fp32"
    assert found["memory.capacity"] == ("32 | 96 GiB", [1.0, 3.0])
    assert found["peak.dense.int8"] == ("380 | - TOPS", [1.0, None])
    assert found["dies"][0] == "- | 2"
    assert rows[0][2][0][1] == pytest.approx((47.45 / 47.55, 47.55 / 47.45))


@pytest.mark.parametrize(
    ("args", "message"), tables(__file__)["errors"], ids=lambda value: "" if isinstance(value, list) else value
)
def test_errors(here, args, message) -> None:
    (here.folder / "text.json").write_text("TTFT")
    (here.folder / "list.json").write_text("[]")
    (here.folder / "empty.json").write_text("{}")
    (here.folder / "refused.json").write_text('{"refusal": {"message": "it does not fit"}}')
    done = here(*args)

    assert 2 == done.status or "mxfp4" in args
    assert message in " ".join(done.err.split())
    assert not (here.folder / "a.svg").exists()


@pytest.mark.parametrize(("ranks", "groups"), [(16, 4), (4, 16), (2, 16), (64, 1)])
def test_highlight(here, ranks, groups) -> None:
    assert 0 == here("plot", "topology", "trn2.48xlarge", "--highlight", f"tp={ranks}", "--output", "a.svg").status
    text = (here.folder / "a.svg").read_text()
    colors = re.findall(r'class="chip g(\d)"/>\n<text [^>]*>(\d+)</text>', text)

    assert list(range(16)) == sorted(int(n) for _, n in colors)
    by_chip = {int(n): int(c) for c, n in colors}
    per_group = 16 // groups
    assert [i // per_group % 7 for i in range(16)] == [by_chip[i] for i in range(16)] or ranks < 4
    assert here("export", "svg", "trn2.48xlarge").out.count('class="chip"') == 16


def test_heatmap_and_timeline(here) -> None:
    given = ["--model", "llama-3.1-8b", "--on", "trn2.48xlarge", "--seq", "4096", "--global-batch", "16", "--zero", "1"]
    (here.folder / "sweep.json").write_text(
        here("eval", "training", *given, "--tp", "8,16", "--pp", "1,2", "--format", "json").out
    )
    assert 0 == here("eval", "training", *given, "--tp", "8", "--pp", "4", "--trace", "step.json").status

    assert 0 == here("plot", "heatmap", "sweep.json", "--answer", "mfu", "--output", "mfu.svg").status
    assert 0 == here("plot", "timeline", "step.json", "--output", "step.png", "--dark").status
    assert (here.folder / "mfu.svg").read_text().count("<svg") == 1
    assert (here.folder / "step.png").read_bytes().startswith(b"\x89PNG")
    assert 2 == here("plot", "timeline", "sweep.json", "--output", "step.png").status


def test_several_files(here) -> None:
    """The answers of a sweep, and one from standard input or another file, are bars of one chart."""
    file = DATA / "plots" / "training.json"
    rows = [r for r in json.loads(file.read_text())["rows"] if "refusal" not in r]
    for i, row in enumerate(rows):
        (here.folder / f"{i}.json").write_text(json.dumps(row))
    done = here("plot", "breakdown", "0.json", "1.json", "--output", "step.svg")

    assert (0, "wrote step.svg\n") == (done.status, done.err)
