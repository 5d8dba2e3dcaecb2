"""The wheel, installed where nothing of the checkout can be seen."""

import json
import subprocess
import zipfile

import pytest

from tests.support.programs import ROOT, Elsewhere, wheel, with_pytest
from trnspec._version import __version__

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def elsewhere() -> Elsewhere:
    """An environment with the wheel, and a folder to work in."""
    return with_pytest()


def installed(elsewhere: Elsewhere, *args: str) -> subprocess.CompletedProcess[str]:
    return elsewhere.run(elsewhere.python, "-I", "-m", "trnspec", *args)


def test_contents() -> None:
    """Every file of the package, the pages of codes included, of the catalog and of the schemas, and nothing else."""
    names = set(zipfile.ZipFile(wheel()).namelist())
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


def test_wheel_runs_away_from_the_checkout(elsewhere: Elsewhere) -> None:
    probe = "import trnspec.loading.files as c; print(c.__file__); print(c.shipped()); print(c.schemas())"
    lines = elsewhere.reported(elsewhere.python, "-I", "-c", probe).splitlines()

    assert len(lines) == 3
    assert all(line.startswith(str(elsewhere.folder)) for line in lines)


def test_version(elsewhere: Elsewhere) -> None:
    assert elsewhere.trnspec("--version").partition(",")[0] == f"trnspec {__version__}"


def test_shipped_catalog_is_clean(elsewhere: Elsewhere) -> None:
    done = installed(elsewhere, "validate")

    assert (done.returncode, done.stderr) == (0, "")
    assert "no findings" in done.stdout


def test_wrong_file(elsewhere: Elsewhere) -> None:
    """The schema is asked, so jsonschema came with it."""
    (elsewhere.folder / "wire.yaml").write_text(
        "api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire, title: W}\nspec: {conects: chips}\n"
    )
    done = installed(elsewhere, "validate", "wire.yaml", "--format", "json")

    assert done.returncode == 1
    assert ("TRN102", 4) in {(d["code"], d["line"]) for d in json.loads(done.stdout)["diagnostics"]}


def test_the_plugin_of_pytest_is_installed(elsewhere: Elsewhere) -> None:
    folder = elsewhere.folder / "checked"
    folder.mkdir()
    page = "api_version: trnspec/v1\nkind: Source\nmetadata: {name: a, title: A}\nspec: {publisher: A, as_of: 2026-01, rank: third-party}\n"
    (folder / "a.yaml").write_text(page)
    pytest_ = (elsewhere.python, "-m", "pytest", "-W", "error")

    assert 5 == elsewhere.run(*pytest_, cwd=folder).returncode
    assert "1 passed" in elsewhere.reported(*pytest_, "--trnspec", ".", cwd=folder)
