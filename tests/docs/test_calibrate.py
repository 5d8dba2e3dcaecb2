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


def test_columns() -> None:
    """Those that the reader of rows looks at, and no others."""
    read: set[str] = set()
    for module in (ROOT / "trnspec" / "perf" / "calibration" / "measured").glob("*.py"):
        if module.stem == "neuron_kernels":
            # Its rows are scored and never fitted.
            continue
        source = module.read_text(encoding="utf-8")
        # A cell is read by its name, or by one of several that stand in brackets.
        read |= set(re.findall(r"""\brow(?:\.get\(|\[)"(\w+)\"""", source))
        read |= set(re.findall(r"""\brow\.\w+\("(\w+)\"""", source))
        for names in re.findall(r"""\brow\.texts\(("\w+"(?:, "\w+")+)\)""", source):
            read |= set(re.findall(r"\w+", names))
        for names in re.findall(r"""for (?:n|name|column) in \(("\w+"(?:, "\w+")+)\)""", source):
            read |= set(re.findall(r"\w+", names))
    described = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`[^|]*) \|", section("Columns"), re.MULTILINE))))

    assert (set(), set()) == (read - described, described - read)
    assert {"isl", "ttft_ms", "n_chips", "layers", "vp"} <= read


def test_options() -> None:
    options = {o.lstrip("-") for p in command.params if isinstance(p, click.Option) for o in p.opts}

    assert set() == options - words("The command") - {"help"}


def test_fields() -> None:
    assert set() == {f.name for kind in (Calibration, Spread) for f in attrs.fields(kind)} - words("The document")
    assert f"{COVERAGE:.0%}".replace("%", " %") in page()
