"""The Python API as mypy and pyright see it: types of typing/revealed.py, errors of typing/mistakes.py.

typing/script.py is a program that uses all of it: it is checked and run with the installed wheel.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

from tests.support.programs import ROOT, Elsewhere, built, environment

BIN = Path(sys.executable).parent
RIGHT = ROOT / "tests" / "typing" / "revealed.py"
SCRIPT = ROOT / "tests" / "typing" / "script.py"
WRONG = ROOT / "tests" / "typing" / "mistakes.py"


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


def mypy(*files: Path, python: str | Path = sys.executable, folder: Path = ROOT) -> str:
    command = [BIN / "mypy", "--strict", "--no-error-summary", "--python-executable", python, *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)
    assert done.stderr == ""
    return done.stdout


def pyright(*files: Path, python: str | Path = sys.executable, folder: Path = ROOT) -> str:
    command = [BIN / "pyright", "--pythonpath", python, *files]
    env = environment(PYRIGHT_PYTHON_GLOBAL_NODE="1", PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False, text=True)
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
def test_types_and_mistakes(checker, revealed, refused) -> None:
    """Types are those in the comments; every marked line of the mistakes has an error, and no line of other files."""
    text = checker(RIGHT, WRONG, SCRIPT)

    assert {int(line): plain(found) for line, found in re.findall(f"{RIGHT.name}{revealed}", text)} == expected(RIGHT)
    assert re.findall(f"(?:{RIGHT.name}|{SCRIPT.name}){refused}", text) == []
    assert {int(line) for line in re.findall(f"{WRONG.name}{refused}", text)} == marked(WRONG)


def test_package_has_py_typed() -> None:
    assert (ROOT / "trnspec" / "py.typed").is_file()


def test_comments_hold_at_run_time() -> None:
    """The file runs, and has all the types at run time."""
    done = subprocess.run([sys.executable, RIGHT], cwd=ROOT, capture_output=True, check=False, text=True)

    assert done.returncode == 0, done.stderr
    assert len(re.findall("Runtime type is ", done.stderr)) == len(expected(RIGHT))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Elsewhere:
    """An environment with the wheel, pandas of this one, and a copy of the script that cannot see the checkout."""
    installed = built(tmp_path_factory.mktemp("elsewhere"))
    (site,) = (installed.folder / "env" / "lib").glob("python*/site-packages")
    for name in ("*duckdb*", "pandas*", "pyarrow*", "*dateutil*", "six*", "pytz*", "tzdata*"):
        for found in Path(pandas.__file__).parents[1].glob(name):
            (site / found.name).symlink_to(found)
    shutil.copy(SCRIPT, installed.folder / "script.py")
    return installed


@pytest.mark.slow
def test_script_is_typed(elsewhere) -> None:
    """The types of the installed wheel suffice for a program: no errors, and no unknown module.

    By the checker that reads only what the program uses; mypy would check the whole package a second time.
    """
    checker = pyright if shutil.which("node") else mypy
    text = checker(elsewhere.folder / "script.py", python=elsewhere.python, folder=elsewhere.folder)

    assert "error:" not in text, text
    if checker is pyright:
        assert "0 errors" in text


@pytest.mark.slow
def test_script_runs(elsewhere) -> None:
    lines = elsewhere.reported(elsewhere.python, "script.py").splitlines()

    assert lines[-1] == "True []"
    assert any(line.startswith("2900.0 2.90 TB/s") for line in lines)
