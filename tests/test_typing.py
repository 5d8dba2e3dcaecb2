"""The Python API as mypy and pyright see it: what they reveal of ask_check.py, what they refuse of ask_wrong.py."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT, environment

BIN = Path(sys.executable).parent
RIGHT = ROOT / "tests" / "typing" / "ask_check.py"
WRONG = ROOT / "tests" / "typing" / "ask_wrong.py"


def expected(file: Path) -> dict[int, str]:
    """The comment of each line that reveals a type."""
    found = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("reveal_type("):
            found[number] = line.rpartition("# ")[2]
    return found


def marked(file: Path) -> set[int]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return {n for n, line in enumerate(lines, 1) if "# wrong" in line}


def plain(revealed: str) -> str:
    """A type without the modules of its names; mypy writes literals one by one."""
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", revealed)
    return re.sub(r"'\] \| Literal\['", "', '", text)


def mypy(*files: Path) -> str:
    done = subprocess.run(
        [BIN / "mypy", "--strict", "--no-error-summary", *files], cwd=ROOT, capture_output=True, check=False, text=True
    )
    assert done.stderr == ""
    return done.stdout


def pyright(*files: Path) -> str:
    command = [BIN / "pyright", "--pythonpath", sys.executable, *files]
    env = environment(PYRIGHT_PYTHON_GLOBAL_NODE="1", PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False, text=True)
    return done.stdout


CHECKERS = [
    pytest.param(mypy, r':(\d+): note: Revealed type is "(.*)"', r":(\d+): error:", id="mypy"),
    pytest.param(
        pyright,
        r':(\d+):\d+ - information: Type of ".*" is "(.*)"',
        r":(\d+):\d+ - error:",
        id="pyright",
        marks=pytest.mark.skipif(shutil.which("node") is None, reason="pyright runs on node"),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("checker", "revealed", "refused"), CHECKERS)
def test_types(checker, revealed, refused) -> None:
    """Every type is the one in its comment, and nothing is refused."""
    text = checker(RIGHT)

    assert {int(line): plain(found) for line, found in re.findall(revealed, text)} == expected(RIGHT)
    assert re.findall(refused, text) == []


@pytest.mark.slow
@pytest.mark.parametrize(("checker", "revealed", "refused"), CHECKERS)
def test_mistakes(checker, revealed, refused) -> None:
    """Every marked line is refused, and no other."""
    assert {int(line) for line in re.findall(refused, checker(WRONG))} == marked(WRONG)


def test_package_says_that_it_is_typed() -> None:
    assert (ROOT / "trnspec" / "py.typed").is_file()


def test_comments_hold_at_run_time() -> None:
    """The right page runs; what it reveals is what it has."""
    done = subprocess.run([sys.executable, RIGHT], cwd=ROOT, capture_output=True, check=False, text=True)

    assert done.returncode == 0, done.stderr
    assert len(re.findall("Runtime type is ", done.stderr)) == len(expected(RIGHT))
