"""The pages of the performance model name all parts, conventions and schedules, with the numbers of documents and code."""

import re
import sys

import attrs
import pytest

import trnspec
from tests.support.programs import ROOT
from trnspec.model.calibration import Calibration
from trnspec.perf.lowering.machine import Efficiency
from trnspec.perf.training.step import PARTS
from trnspec.perf.work.layout import SCHEDULES
from trnspec.perf.work.transformer import CONVENTIONS

sys.path.insert(0, str(ROOT / "docs"))
from reference_pages import FORMULAS, linked, pages

FOLDER = ROOT / "docs" / "explanation"
PAGES = (FOLDER / "the-performance-model.md", *sorted((FOLDER / "performance").glob("*.md")), FOLDER / "accuracy.md")
FOLDERS = sorted(ROOT.glob("plugins/*/src/*/catalog/calibrations"))


def text() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def rows() -> list[list[str]]:
    """The cells of all tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text().splitlines() if line[:1] == "|"]


@pytest.mark.parametrize(
    "names", [PARTS, CONVENTIONS, tuple(SCHEDULES), tuple(f.name for f in attrs.fields(Efficiency))]
)
def test_names(names) -> None:
    named = set(re.findall(r"\w[\w-]*", text()))

    assert set() == set(names) - named


def test_schedules() -> None:
    """The bubble of each over that of 1F1B; of the interleaved one a chunk's."""
    named = {}
    for cell, factors, *_ in rows():
        names = re.findall(r"`([\w-]+)`", cell)
        # Those of schedules with a split backward pass depend on the passes, and have a formula instead.
        if set(names) & set(SCHEDULES) and factors:
            named |= dict(zip(names, factors.split(", "), strict=True))
    number = {"1": 1.0, "1/v": 1.0, "0": 0.0, "1/2": 1 / 2, "1/3": 1 / 3, "2/3": 2 / 3}

    assert {name: number[factor] for name, factor in named.items()} == {
        name: schedule.bubble for name, schedule in SCHEDULES.items() if name in ("1f1b", "gpipe", "interleaved")
    }


def test_known_errors() -> None:
    """Rows, mean and median of every calibration, those of plugins in this repository among them."""
    cat = trnspec.load([ROOT / "catalog", *(f.parent for f in FOLDERS)])
    named = {name: row[1:4] for row in rows() for name in re.findall(r"`([\w.-]+)`", row[0]) if len(row) == 6}
    expected = {}
    for node in cat.graph.of(Calibration):
        spread = node.spec.spread
        expected[node.name] = [
            str(int(spread.rows)),
            *(f"{100 * float(x):.2g} %" for x in (spread.mean, spread.median)),
        ]

    assert expected == {name: named.get(name) for name in expected}
    assert len(expected) > len(FOLDERS) > 0


def test_formulas_name_their_functions() -> None:
    """A section with a formula names the functions that compute it."""
    sections = re.split(r"^#+ ", text(), flags=re.MULTILINE)
    named = {
        section.partition("\n")[0]: re.findall(
            r"`(perf\.[\w.]+)`", " ".join(re.findall(r"Functions?: [^;\n]+", section))
        )
        for section in sections
        if "```{math}" in section
    }

    assert len(named) > 15
    assert [] == [title for title, functions in named.items() if not functions]


def test_functions_are_links() -> None:
    """The manual describes what a page with formulas names, and makes a link of the name."""
    described = set(re.findall(r"^\.\. auto\w+:: (\S+)$", pages()["formulas.md"], re.MULTILINE))
    links = re.findall(r"\{py:obj\}`[\w.]+ <([\w.]+)>`", "".join(linked(page.read_text("utf-8")) for page in FORMULAS))

    assert len(links) > 75
    assert set() == set(links) - described
    modules = "training.microbatch", "serving.forward_pass"
    assert {f"trnspec.perf.{m}.tensor_parallel_all_reduce" for m in modules} < set(links)
