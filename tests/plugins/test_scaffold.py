"""trnspec.plugins.scaffold.writer: a new plugin is a distribution that passes its own tests at once."""

import shutil

import pytest

from tests.support.programs import Here, Site, built
from trnspec.errors import UsageError
from trnspec.plugins.scaffold.writer import KINDS, files, write


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


@pytest.mark.slow
def test_new_plugins_pass_their_own_tests(tmp_path) -> None:
    """Written, installed with pip, tested, listed and uninstalled without a trace: one of each kind, together."""
    env = built(tmp_path)
    before = env.files()
    made = [write(f"new-{kind}", kind, tmp_path) for kind in KINDS]
    # Built with what is installed once, and not in an environment for each.
    env.pip("install", "--no-deps", "--no-build-isolation", *made)
    # The tutorials run the tests of each alone; the shipped catalog is checked once beside all.
    together = ("-c", made[0] / "pyproject.toml", "--import-mode=importlib", "-k", "not beside_it", *made)
    tested = env.reported(env.python, "-m", "pytest", "-q", "-W", "error", *together, cwd=tmp_path)
    assert " passed" in tested.splitlines()[-1]
    listed = env.trnspec("plugin", "list").splitlines()[1:]

    assert {(f"new-{kind}", "ok") for kind in KINDS} == {
        (line.split()[0], line.split()[3]) for line in listed if line.startswith("new-")
    }
    assert "no findings" in env.trnspec("validate")
    assert "new-generation-1" in env.trnspec("list", "chips")
    assert "NEWRUL001" in env.trnspec("explain")

    env.pip("uninstall", "--yes", *(f.name for f in made))

    assert "new-" not in env.trnspec("plugin", "list") + env.trnspec("list", "chips")
    assert before == env.files()


def test_two_of_each_kind(tmp_path) -> None:
    """They share no names."""
    site = Site(tmp_path / "site")
    for plugin, kind in ((f"{which}-{kind}", kind) for which in ("new", "other") for kind in KINDS):
        module = f"trnspec_{plugin.replace('-', '_')}"
        made = write(plugin, kind, tmp_path)
        site.add(plugin, "").unlink()
        shutil.copytree(made / "src" / module, site.folder / module)
    listed = [line.split() for line in site.run("plugin", "list").out.splitlines() if line.startswith(("new", "other"))]

    assert ["ok"] * 2 * len(KINDS) == [line[3] for line in listed]


@pytest.mark.parametrize(
    ("name", "code"), [("acme", "ACME001"), ("trn", "TRNX001"), ("x9", "XX001"), ("a" * 40, "AAAAAA001")]
)
def test_codes_have_letters_of_their_own(name, code) -> None:
    assert f'@rule("{code}"' in files(name, "rules")[f"src/trnspec_{name}/rules.py"]


def test_kinds_that_are_refused() -> None:
    with pytest.raises(UsageError, match="'other' is not a kind of plugin; use one of generation"):
        files("acme", "other")
