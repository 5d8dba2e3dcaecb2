"""trnspec.plugins.discovery: nothing that is installed beside trnspec can stop it."""

import importlib.metadata
from importlib.metadata import EntryPoint

import pytest

from tests.support.programs import HEAD, ROOT, Site
from tests.support.tables import tables
from trnspec.plugins import discovery
from trnspec.plugins.api import API
from trnspec.plugins.entry_points import distribution, imported, installed
from trnspec.plugins.selection import GROUP, ONLY

CHIP = ROOT / "catalog" / "chips" / "trainium2.yaml"


def records(site: Site, *options: str, **env: str) -> dict[str, dict]:
    done = site.run(*options, "plugin", "list", "--format", "json", **env)

    assert done.status == 0, done.err
    return {r["name"]: r for r in done.data["plugins"]}


KINDS = "kinds=(Kind('Chip', 'chipses', type('Chip', (), {})),)"
FOLDERS = "kinds=(Kind('Chips', 'chips', type('Chips', (), {})),)"
RULE = '''
@rule({!r}, {!r})
def check(graph):
    """It says nothing."""
    yield from ()
'''
FAILURES = {
    "import": ("raise ImportError('no such thing')", "broken", "its import failed: ImportError: no such thing"),
    "missing": ("import trnspec_no_such_module", "broken", "No module named 'trnspec_no_such_module'"),
    "syntax": ("def (:", "broken", "its import failed: SyntaxError"),
    "exit": ("import sys; sys.exit(3)", "broken", "its import failed: SystemExit: 3"),
    "absent": ("other = 1", "broken", "has no attribute 'plugin'"),
    "message": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "broken",
        "its message cannot be shown",
    ),
    "lines": ("raise ValueError('one\\ntwo')", "broken", "ValueError: one two"),
    "sleep": ("import time\ntime.sleep(30)", "slow", "its import took longer than 1 s"),
    "object": ("plugin = 5", "invalid", "is of type int; a trnspec.Plugin is expected"),
    "misnamed": (HEAD + "plugin = Plugin(name='other', api=API)", "invalid", "'misnamed' and the plugin 'other'"),
    "fields": (
        HEAD + "plugin = Plugin(name='fields', api=API, kinds=5)",
        "invalid",
        "kinds is of type int; a tuple is expected",
    ),
    "catalog": (
        HEAD + "from pathlib import Path\nplugin = Plugin(name='catalog', api=API, catalogs=(Path('/no/such'),))",
        "invalid",
        "its catalog /no/such is not a folder",
    ),
    "textual": (HEAD + "plugin = Plugin(name='textual', api='1')", "invalid", "its api is '1'"),
    "old": (HEAD + "plugin = Plugin(name='old', api=API - 1)", "outdated", f"API {API - 1}, and this is API {API}"),
    "new": (HEAD + "plugin = Plugin(name='new', api=API + 1)", "newer", f"API {API + 1}, and this is API {API}"),
    "kind": (HEAD + f"plugin = Plugin(name='kind', api=API, {KINDS})", "clash", "the kind Chip is defined by trnspec"),
    "folder": (HEAD + f"plugin = Plugin(name='folder', api=API, {FOLDERS})", "clash", "the folder chips is defined"),
    "code": (
        HEAD + RULE.format("TRN402", "x") + "plugin = Plugin(name='code', api=API, rules=(check,))",
        "clash",
        "the code TRN402 is defined by trnspec already",
    ),
    "letters": (
        HEAD + RULE.format("TRN999", "x") + "plugin = Plugin(name='letters', api=API, rules=(check,))",
        "clash",
        "the code TRN999 begins with TRN, which is reserved",
    ),
    "codename": (
        HEAD + RULE.format("ABC001", "duplicate-name") + "plugin = Plugin(name='codename', api=API, rules=(check,))",
        "clash",
        "the code name duplicate-name is defined by trnspec already",
    ),
    "twice": (
        HEAD + RULE.format("ABC001", "x") + "plugin = Plugin(name='twice', api=API, rules=(check, check))",
        "clash",
        "it defines the code ABC001 twice",
    ),
}


@pytest.fixture(scope="module")
def failed(tmp_path_factory) -> tuple[dict[str, dict], list[str]]:
    """The records of all of them, installed at once beside one that works, and the warnings."""
    site = Site(tmp_path_factory.mktemp("failures"))
    for name, (code, *_) in FAILURES.items():
        site.add(name, code)
    site.plugin("zz-fine")
    done = site.run("plugin", "list", "--format", "json", TRNSPEC_PLUGIN_SECONDS="1")

    assert 0 == done.status
    return {r["name"]: r for r in done.data["plugins"]}, done.err.splitlines()


@pytest.mark.parametrize("name", FAILURES)
def test_failure(failed, name) -> None:
    """Each is a record, and a warning of one line that names the distribution; the others work."""
    _, status, message = FAILURES[name]
    found, warnings = failed
    warning = f"trnspec: warning: the plugin {name} of trnspec-{name} 1.0 is left out: "

    assert ("ok", "") == (found["zz-fine"]["status"], found["zz-fine"]["message"])
    assert 0 < found["zz-fine"]["seconds"] < 1  # the limit
    assert (f"trnspec-{name}", "1.0", status) == tuple(found[name][k] for k in ("distribution", "version", "status"))
    assert message in " ".join(found[name]["message"].split())
    assert (1, len(FAILURES)) == (sum(line.startswith(warning) for line in warnings), len(warnings))


def test_output_of_an_import_is_not_ours(site) -> None:
    site.plugin("loud", head="print('hello')")
    done = site.run("validate", CHIP, "--format", "json")

    assert (0, "hello\n") == (done.status, done.err)
    assert done.data["summary"]["files"] == 1


def test_between_plugins_the_first_by_name_wins(site) -> None:
    for name in ("beta", "alpha"):
        site.plugin(name, "rules=(check,)", head=RULE.format("ABC001", "x"))

    found = records(site)

    assert {"alpha": "ok", "beta": "clash"} == {n: r["status"] for n, r in found.items()}
    assert found["beta"]["faults"][0] == "the code ABC001 is defined by alpha already"


def test_two_distributions_with_one_plugin(site) -> None:
    """By its name it could not be distinguished from itself, so the message names the other distribution."""
    site.plugin("acme")
    module = site.add("other", (site.folder / "trnspec_acme.py").read_text())
    points = site.folder / f"{module.stem}-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("other =", "acme ="))
    done = site.run("plugin", "list")

    reported = "the plugin acme is defined by trnspec-acme 1.0 already"
    assert f"trnspec: warning: the plugin acme of trnspec-other 1.0 is left out: {reported}\n" == done.err
    assert reported in " ".join(done.out.split())


def test_plugins_are_chosen_by_name(site) -> None:
    for name in ("one", "two"):
        site.plugin(name)
    site.add("bad", "raise ValueError")
    left = {"bad": "left-out", "one": "ok", "two": "left-out"}

    found = records(site, "--plugin", "one")
    assert left == {n: r["status"] for n, r in found.items()}
    assert {"bad", "two"} == {n for n, r in found.items() if r["seconds"] == 0}
    assert left == {n: r["status"] for n, r in records(site, TRNSPEC_PLUGINS="one").items()}


@pytest.mark.parametrize(("args", "env", "message"), tables(__file__)["misuse"])
def test_misuse(site, args, env, message) -> None:
    site.plugin("one")
    done = site.run(*args, "plugin", "list", **env)

    assert (2, "") == (done.status, done.out)
    assert message in done.err


@pytest.mark.parametrize("args", [["--version"], ["explain", "TRN402"]])
def test_some_commands_import_no_plugin(site, args) -> None:
    site.add("bad", "raise ValueError")
    done = site.run(*args)

    assert (0, "") == (done.status, done.err)


def test_codes_of_plugins_are_explained(site) -> None:
    site.plugin("one", "rules=(check,)", head=RULE.format("ABC001", "nothing-at-all"))

    page = site.run("explain", "nothing-at-all").out
    assert page.startswith("ABC001 nothing-at-all (error)\n\nIt says nothing.\n\nAccept:\n")
    assert "ABC001" in site.run("explain").out
    assert "ABC001" not in site.run("--no-plugins", "explain").out


def test_trnspec_is_not_listed_as_a_plugin() -> None:
    assert "trnspec" in {e.name for e in importlib.metadata.entry_points(group=GROUP)}
    assert "trnspec" not in {e.name for e in installed()}


def test_the_choice_ends_with_its_context() -> None:
    token = ONLY.set(("a",))
    chosen = discovery.chosen({"TRNSPEC_PLUGINS": "b, c ,"})
    ONLY.reset(token)

    assert (("a",), ("b", "c")) == (chosen.only, discovery.chosen({"TRNSPEC_PLUGINS": "b, c ,"}).only)
    assert [None, None] == [discovery.chosen({}).only, discovery.chosen({"TRNSPEC_PLUGINS": " "}).only]


def test_distributions_of_installed_plugins(tmp_path, monkeypatch) -> None:
    site = Site(tmp_path)
    for name in ("one", "two"):
        site.plugin(name)
    (tmp_path / "trnspec_two-1.0.dist-info" / "METADATA").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    found = {e.name: distribution(e) for e in installed()}

    assert {"one": ("trnspec-one", "1.0"), "two": ("", "")} == {name: found[name] for name in ("one", "two")}


def test_distribution_without_metadata_of_another_finder(tmp_path, monkeypatch) -> None:
    """Package importlib_metadata, which some packages import, raises an error of its own for it."""
    finder = pytest.importorskip("importlib_metadata").MetadataPathFinder
    site = Site(tmp_path)
    site.plugin("two")
    (tmp_path / "trnspec_two-1.0.dist-info" / "METADATA").unlink()
    (found,) = finder.find_distributions(finder.Context(name="trnspec_two", path=[str(tmp_path)]))
    (entry,) = found.entry_points

    assert ("", "") == distribution(entry)


def test_slow_imports_are_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in {"entry_a": "x = 1", "entry_b": "import time; time.sleep(600)", "entry_c": "x = 3"}.items():
        (tmp_path / f"{name}.py").write_text(code)
    found = [imported(EntryPoint(n, f"entry_{n}:x", "g"), 0.5) for n in "abcb"]

    assert [(1, False), (None, True), (3, False), (None, True)] == [(o.value, o.is_late) for o in found]
