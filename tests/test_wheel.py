"""The wheel, installed where nothing of the checkout can be seen."""

from __future__ import annotations

import json
import os
import subprocess
import venv
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import ROOT
from tests.support.programs import wheel as built_wheel
from trnspec._version import __version__

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def run(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A program that sees nothing of this environment's Python."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run([*args], cwd=cwd, env=env, capture_output=True, check=False, text=True)


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel, built from this checkout."""
    return built_wheel()


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory) -> Path:
    """A folder with an environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "env", with_pip=True)
    done = run(folder / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)

    assert done.returncode == 0, done.stderr
    return folder


def installed(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run(folder / "env" / "bin" / "python", "-I", "-m", "trnspec", *args, cwd=folder)


def test_contents(wheel: Path) -> None:
    """Every file of the package, the pages of codes included, of the catalog and of the schemas, and nothing else."""
    names = set(zipfile.ZipFile(wheel).namelist())
    inside = {n for n in names if ".dist-info/" not in n}
    sources = (f for f in (ROOT / "trnspec").rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    package = {f.relative_to(ROOT).as_posix() for f in sources}
    data = {
        f"trnspec/_data/{f.relative_to(ROOT).as_posix()}"
        for folder in ("catalog", "schemas")
        for f in (ROOT / folder).rglob("*")
        if f.is_file()
    }

    assert package | data == inside
    assert any(n.endswith("/LICENSE") for n in names)


def test_wheel_runs_away_from_the_checkout(elsewhere: Path) -> None:
    probe = "import trnspec.loading.files as c; print(c.__file__); print(c.shipped()); print(c.schemas())"
    done = run(elsewhere / "env" / "bin" / "python", "-I", "-c", probe, cwd=elsewhere)

    assert len(done.stdout.splitlines()) == 3
    assert all(line.startswith(str(elsewhere)) for line in done.stdout.splitlines())


def test_version(elsewhere: Path) -> None:
    done = run(elsewhere / "env" / "bin" / "trnspec", "--version", cwd=elsewhere)

    assert (0, f"trnspec {__version__}") == (done.returncode, done.stdout.partition(",")[0])


def test_shipped_catalog_is_clean(elsewhere: Path) -> None:
    done = installed(elsewhere, "validate")

    assert (done.returncode, done.stderr) == (0, "")
    assert "no findings" in done.stdout


def test_every_file_is_shipped(elsewhere: Path) -> None:
    done = installed(elsewhere, "validate", "--format", "json")
    summary = json.loads(done.stdout)["summary"]

    assert (0, len(list((ROOT / "catalog").rglob("*.yaml")))) == (done.returncode, summary["files"])


def test_explanation(elsewhere: Path) -> None:
    done = installed(elsewhere, "explain", "TRN402")

    assert done.returncode == 0
    assert done.stdout.startswith("TRN402 aggregate-mismatch")


def test_wrong_file(elsewhere: Path) -> None:
    """The schema is asked, so jsonschema came with it."""
    (elsewhere / "wire.yaml").write_text(
        "api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire, title: W}\nspec: {conects: chips}\n"
    )
    done = installed(elsewhere, "validate", "wire.yaml", "--format", "json")

    assert done.returncode == 1
    assert ("TRN101", 4) in {(d["code"], d["line"]) for d in json.loads(done.stdout)["diagnostics"]}
