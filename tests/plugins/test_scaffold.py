"""trnspec.plugins.scaffold.writer: a new plugin is a distribution that passes its own tests at once."""

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.support.programs import Here
from trnspec.errors import UsageError
from trnspec.plugins.scaffold.writer import KINDS, files, write

DEPENDENCIES = sysconfig.get_path("purelib")


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


def test_new(here) -> None:
    done = here("plugin", "new", "trnspec-acme-tpu", "--kind", "rules")
    made = {f.relative_to(here.folder).as_posix() for f in here.folder.rglob("*") if f.is_file()}

    assert (0, "") == (done.status, done.err)
    assert "pip install --editable 'trnspec-acme-tpu[test]'" in done.out
    assert {f"trnspec-acme-tpu/{name}" for name in files("acme-tpu", "rules")} == made
    assert 'acme-tpu = "trnspec_acme_tpu:plugin"' in (here.folder / "trnspec-acme-tpu/pyproject.toml").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_scaffold_has_no_placeholders(kind) -> None:
    made = files("acme", kind)

    assert [] == [
        n
        for n, t in made.items()
        for word in ("NAME", "MODULE", "SUMMARY", "LETTERS", "CLASS", "SCHEMA", "COMMAND")
        if word in t + n
    ]
    assert {"pyproject.toml", "README.md", "src/trnspec_acme/__init__.py", "tests/test_plugin.py"} <= set(made)


@pytest.mark.parametrize("name", ["", "a", "A", "Acme", "acme_tpu", "-acme", "acme-", "a--b", "9a", "../x", "a" * 41])
def test_names_that_are_refused(tmp_path, name) -> None:
    with pytest.raises(UsageError, match="is not a valid name of a plugin"):
        write(name, "rules", tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_scaffold_does_not_overwrite_files(tmp_path) -> None:
    (tmp_path / "trnspec-acme").mkdir()
    with pytest.raises(UsageError, match="exists already; nothing was written"):
        write("acme", "rules", tmp_path)
    assert [] == list((tmp_path / "trnspec-acme").iterdir())


def run(*args: str | Path, cwd: Path) -> str:
    """What a program prints, in an environment that says nothing of this one's Python."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "TRNSPEC"))}
    done = subprocess.run([*args], cwd=cwd, env=env, capture_output=True, check=False, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_new_plugins_pass_their_own_tests(tmp_path) -> None:
    """Written, installed with pip, tested, listed and uninstalled without a trace: two of each kind, together."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    # What this environment has, trnspec itself among it, lies beside what is installed there.
    (site / "beside.pth").write_text(f"import site; site.addsitedir({DEPENDENCIES!r})\n")
    made = [write(f"{which}-{kind}", kind, tmp_path) for which in ("new", "other") for kind in KINDS]
    # Two generations with the same figures are a finding: copied-document.
    chip = tmp_path / "trnspec-other-generation/src/trnspec_other_generation/catalog/chips/other-generation-1.yaml"
    chip.write_text(chip.read_text().replace("fp32: 100 TFLOPS", "fp32: 125 TFLOPS").replace("2 TB/s", "3 TB/s"))
    # Built with what is installed once, and not in an environment for each.
    run(python, "-m", "pip", "install", "--quiet", "hatchling", cwd=tmp_path)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", *made, cwd=tmp_path)
    for folder in (f for f in made if f.name.startswith("trnspec-new-")):
        assert " passed" in run(python, "-m", "pytest", "-q", "-W", "error", cwd=folder).splitlines()[-1]
    trnspec = (python, "-m", "trnspec")
    listed = run(*trnspec, "plugin", "list", cwd=tmp_path).splitlines()[1:]

    assert {(f"{which}-{kind}", "ok") for which in ("new", "other") for kind in KINDS} == {
        (line.split()[0], line.split()[3]) for line in listed if line.startswith(("new-", "other-"))
    }
    assert "new-generation-1" in run(*trnspec, "list", "chips", cwd=tmp_path)
    assert "NEWRUL001" in run(*trnspec, "explain", cwd=tmp_path)

    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", *(f.name for f in made), cwd=tmp_path)

    assert "new-" not in run(*trnspec, "plugin", "list", cwd=tmp_path) + run(*trnspec, "list", "chips", cwd=tmp_path)
    assert [] == [f.name for f in site.iterdir() if "new" in f.name]


@pytest.mark.parametrize(
    ("name", "code"), [("acme", "ACME001"), ("trn", "TRNX001"), ("x9", "XX001"), ("accelerators", "ACCELE001")]
)
def test_codes_have_letters_of_their_own(name, code) -> None:
    assert f'@rule("{code}"' in files(name, "rules")[f"src/trnspec_{name}/rules.py"]


def test_kinds_that_are_refused() -> None:
    with pytest.raises(UsageError, match="'other' is not a kind of plugin; use one of generation"):
        files("acme", "other")
