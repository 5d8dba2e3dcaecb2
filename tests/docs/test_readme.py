"""Commands and outputs of README.md."""

import re
import shlex
import shutil

import pytest

from tests.docs.conftest import blocks, commands, matches
from tests.support.programs import ROOT

README = ROOT / "README.md"


def shown() -> dict[str, str]:
    """What README.md says a command prints, by the command; those of ``make`` are left out."""
    found = (pair for block in blocks(README) if block.language == "console" for pair in commands(block.text))
    return dict(found)


def test_length() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("command", [c for c in shown() if c != "trnspec validate catalog"])
def test_prints(here, command) -> None:
    program, *args = shlex.split(command)
    printed = here(*args)

    assert ("trnspec", 0, "") == (program, printed.status, printed.err)
    assert matches(shown()[command], printed.out), printed.out


def test_a_changed_figure(here) -> None:
    """Of a copy of the catalog, in which one figure of a server is changed."""
    shutil.copytree(ROOT / "catalog", here.folder / "catalog")
    server = here.folder / "catalog" / "servers" / "trn1.32xlarge.yaml"
    text = server.read_text(encoding="utf-8")
    server.write_text(text.replace("tf32: 3,040 TFLOPS", "tf32: 2,850 TFLOPS"), encoding="utf-8")
    printed = here("validate", "catalog")

    assert 1 == printed.status
    assert shown()["trnspec validate catalog"] == printed.out


def test_python(capsys) -> None:
    (block,) = [b for b in blocks(README) if b.language == "python"]
    exec(compile(block.text, "README.md", "exec"), {})
    printed = capsys.readouterr().out

    assert {"230 FLOP/B", "10.672 PFLOPS"} <= set(printed.splitlines())
    assert printed.splitlines()[-1] in README.read_text(encoding="utf-8")


def test_errors_are_those_of_the_accuracy_page() -> None:
    """The generated page changes with the fits; the rows of README.md are some of it."""
    page = (ROOT / "docs" / "explanation" / "accuracy.md").read_text(encoding="utf-8")
    cells = r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| (mean [^|]+) \|[^|]*\|$"
    expected = re.findall(cells, page, re.MULTILINE)
    shown = re.findall(r"^\| ([^|]+) \| (mean [^|]+) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(shown) >= 5
    assert set() == set(shown) - set(expected)
