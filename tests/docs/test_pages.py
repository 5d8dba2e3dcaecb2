"""Blocks of commands and Python in the manual, run in order and compared with the output that the page shows."""

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.conftest import Runner, blocks
from tests.support.programs import DATA, ROOT, Here, few_plans
from trnspec.mcp.server import TOOLS

DOCS = ROOT / "docs"

ELSEWHERE = {
    "tutorial/write-an-evaluator.md": "test_evaluate.py", "reference/evaluate.md": "test_evaluate.py",
    "reference/calibrate.md": "test_calibrate.py", "tutorial/add-a-generation.md": "test_plugins.py",
    "tutorial/add-a-kind.md": "test_plugins.py", "tutorial/write-a-rule.md": "test_plugins.py",
    "tutorial/write-an-exporter.md": "test_plugins.py", "how-to/connect-an-agent.md": "test_pages.py",
    "how-to/test-a-catalog.md": "test_plugins.py",
}  # fmt: skip
"""Pages that need more than a folder of their own, and the module that runs them."""

FRAGMENTS = {"explanation/plugins.md", "reference/codes.md"}
"""Pages whose Python is a fragment of a module; the examples of codes are run with the rules."""

SLOW = {
    "how-to/ask-what-limits-a-run.md", "how-to/draw-charts.md", "how-to/browse-the-catalog.md",
    "how-to/plan-a-training-run.md", "how-to/size-a-serving-fleet.md", "tutorial/size-a-serving-fleet.md",
}  # fmt: skip


PAGES = sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if "_build" not in p.parts and blocks(p))


def _machine(folder: Path, text: str) -> None:
    (output,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (folder / "neuron-ls.json").write_text(output)


def _scenarios(folder: Path, text: str) -> None:
    """The broken file has two of its lines changed."""
    (document,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (folder / "serving.yaml").write_text(document)
    (folder / "broken.yaml").write_text(document.replace("kv_dtype", "kv_type").replace("4 TB/s", "4 TB"))


def _logs(folder: Path, text: str) -> None:  # like the others
    for name, log in (("run", "nccom_all_gather"), ("train", "nxd")):
        shutil.copy(DATA / "imports" / f"{log}.log", folder / f"{name}.log")


def _overlay(folder: Path, text: str) -> None:
    (document,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (folder / "my.yaml").write_text(document)


PREPARED = {
    "how-to/check-a-machine.md": _machine,
    "how-to/compare-scenarios.md": _scenarios,
    "how-to/import-measurements.md": _logs,
    "reference/overlay.md": _overlay,
}
"""Files that a page expects in the folder of its reader."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, marks=pytest.mark.slow if p in SLOW else ())
        for p in PAGES
        if p not in ELSEWHERE and p not in FRAGMENTS
    ],
)
def test_every_block(page, tmp_path, monkeypatch, capsys) -> None:
    """In one namespace: later blocks use what earlier ones have made."""
    monkeypatch.delenv("COLUMNS", raising=False)
    few_plans(monkeypatch)
    file = DOCS / page
    if page in PREPARED:
        PREPARED[page](tmp_path, file.read_text(encoding="utf-8"))
    runner = Runner(Here(tmp_path, monkeypatch, capsys))
    for block in blocks(file):
        runner.run(block)


def test_the_lists_above_have_pages() -> None:
    assert {*ELSEWHERE, *FRAGMENTS, *SLOW, *PREPARED} <= set(PAGES)
    assert all((ROOT / "tests" / "docs" / module).is_file() for module in ELSEWHERE.values())


AGENTS = DOCS / "how-to" / "connect-an-agent.md"


def test_connect_an_agent(tmp_path, monkeypatch, capfd) -> None:
    """The client gives the server its standard error, which has to be a file."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    runner = Runner(Here(tmp_path, monkeypatch, capfd))
    for block in blocks(AGENTS):
        runner.run(block)


def test_the_page_for_agents_has_every_tool() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `", AGENTS.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [tool.__name__ for tool in TOOLS]
