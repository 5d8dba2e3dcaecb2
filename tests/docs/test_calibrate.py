"""docs/reference/calibrate.md does what it says, and reports every column that is read and every field that is written."""

import re

import attrs
import click
import pytest

from tests.docs.conftest import Runner, blocks
from tests.support.programs import ROOT, Here
from trnspec.cli.calibrate import command
from trnspec.model.calibration import Calibration, Spread
from trnspec.perf.calibration.groups import COVERAGE

PAGE = ROOT / "docs" / "reference" / "calibrate.md"


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def section(title: str) -> str:
    return re.split(r"^## ", page().partition(f"## {title}\n")[2], flags=re.MULTILINE)[0]


def words(title: str) -> set[str]:
    """What is in backquotes in the section of that title."""
    return set(re.findall(r"`-{0,2}([\w-]+)[^`]*`", section(title)))


def test_example(tmp_path, monkeypatch, capsys) -> None:
    """The rows of the page, fitted, written, validated and used."""
    pytest.importorskip("scipy")
    monkeypatch.delenv("COLUMNS", raising=False)
    (csv,) = re.findall(r"^```csv\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)
    (tmp_path / "measured.csv").write_text(csv, encoding="utf-8")
    (tmp_path / "mine").mkdir()
    runner = Runner(Here(tmp_path, monkeypatch, capsys))
    found = blocks(PAGE)

    assert 2 == len(found)
    for block in found:
        runner.run(block)


def test_options() -> None:
    options = {o.lstrip("-") for p in command.params if isinstance(p, click.Option) for o in p.opts}

    assert set() == options - words("The command") - {"help"}


def test_fields() -> None:
    assert set() == {f.name for kind in (Calibration, Spread) for f in attrs.fields(kind)} - words("The document")
    assert f"{COVERAGE:.0%}".replace("%", " %") in page()
