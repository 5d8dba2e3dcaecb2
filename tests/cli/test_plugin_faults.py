"""Unusable parts of a plugin or a catalog: reported with their distribution, the rest is kept."""

import pytest

from tests.support.invented_plugins import ACME, CHIP, PAGE, SERVER
from tests.support.programs import Site, written

pytestmark = pytest.mark.slow

WRONG = CHIP.replace("64 GiB", "64 Gib")
BROKEN = {**ACME, "chips/acme-1.yaml": WRONG}
ACME_IS = "the plugin acme of trnspec-acme 1.0"


def listed(site: Site, **env: str) -> dict[str, tuple[str, list[str]]]:
    done = site.run("plugin", "list", "--format", "json", **env)

    assert 0 == done.status, done.err
    return {r["name"]: (r["status"], r["faults"]) for r in done.data["plugins"]}


def chips(site: Site, *options: str) -> set[str]:
    return {row["name"] for row in site.run("list", "chips", "--format", "json", *options).data["rows"]}


SHIPPED = {"trainium1", "trainium2", "trainium3", "trainium4"}
ASKED = [
    ("list", "chips"),
    ("show", "acme-1"),
    ("show", "acme"),
    ("compare", "acme-1", "trainium2"),
    ("query", "chip where memory.capacity > 1 GiB"),
    ("audit",),
    ("sql", "select name from chips"),
    ("export", "json"),
]


@pytest.mark.parametrize("args", ASKED, ids=lambda a: a[0])
def test_a_broken_document_of_a_plugin_is_reported(site, args) -> None:
    """Once, with file, line, column, code and distribution, and as a warning that precedes whatever else is said."""
    folder = site.catalog("acme", BROKEN)
    lines = site.run(*args).err.splitlines()

    assert lines[0].startswith(f"trnspec: warning: {folder}/chips/acme-1.yaml:6:22: TRN111 unknown-unit: ")
    assert lines[0].endswith(f"; the document is left out ({ACME_IS})")
    assert 1 == sum("warning" in line for line in lines)


def test_the_rest_of_a_document_is_used(site) -> None:
    text = CHIP.replace("2 TB/s", "2 TB/s, widht: 3")
    site.catalog("acme", {**ACME, "chips/acme-1.yaml": text})
    done = site.run("list", "chips")

    assert "acme-1 " in done.out
    assert "TRN101 unknown-key: unknown key 'widht' in spec.memory" in done.err
    assert f"; the rest of the document is used ({ACME_IS})" in done.err


def test_one_that_is_refused_is_reported(site) -> None:
    site.catalog("acme", {**ACME, "chips/trainium2.yaml": CHIP.replace("acme-1", "trainium2").replace("[acme]", "[]")})
    done = site.run("list", "chips")

    (row,) = [line.split() for line in done.out.splitlines() if line.startswith("trainium2 ")]
    assert ("96", True) == (row[2], "64" not in row)
    assert "chips/trainium2.yaml:3:18: TRN204 " in done.err
    assert f"the document is left out ({ACME_IS})" in done.err


def test_reference_to_a_broken_document_is_not_reported(site) -> None:
    site.catalog("acme", {**BROKEN, "servers/acme-server.yaml": SERVER})

    assert ["chips/acme-1.yaml"] == [
        line.split(": ")[2].partition("acme_catalog/")[2].partition(":")[0]
        for line in site.run("list", "servers").err.splitlines()
    ]


def test_many_are_counted(site) -> None:
    wrong = WRONG.replace("2 TB/s", "2 TBs")
    folder = site.catalog("acme", {**ACME, **{f"chips/a{n}.yaml": wrong.replace("acme-1", f"a{n}") for n in range(7)}})
    lines = site.run("list", "chips").err.splitlines()

    assert 4 == len(lines)
    assert f"trnspec: warning: and 4 more: trnspec validate {folder}" == lines[-1]


def test_sound_catalogs_are_silent(site) -> None:
    site.catalog("acme", {**ACME, "servers/acme-server.yaml": SERVER})

    assert ["", ""] == [site.run(*args).err for args in ASKED[:2]]


def own(site: Site, text: str) -> None:
    """A catalog with a trainium2 of its own."""
    for file, content in {"sources/acme-page.yaml": PAGE, "chips/trainium2.yaml": text}.items():
        written(site.folder / "ov" / file, content)


OWN = CHIP.replace("acme-1", "trainium2").replace(", aliases: [acme]", "")


@pytest.fixture(params=["named", "configured"])
def options(request, site) -> tuple[str, ...]:
    """How the catalog is named: on the command line, or in the settings."""
    if request.param == "named":
        return ("--catalog", "ov")
    (site.folder / "pyproject.toml").write_text('[tool.trnspec]\ncatalogs = ["ov"]\n')
    return ()


def test_a_broken_document_does_not_hide_the_shipped_one(site, options) -> None:
    own(site, OWN.replace("64 GiB", "64 Gib"))
    shown = site.run("show", "trainium2", *options)

    assert (0, True) == (shown.status, "96 GiB" in shown.out)
    assert SHIPPED == chips(site, *options)
    for err in (shown.err, site.run("list", "chips", *options).err):
        assert err.startswith("trnspec: warning: ")
        assert "ov/chips/trainium2.yaml:6:22: TRN111 unknown-unit: " in err
        assert err.endswith("ov)\n")


def test_a_sound_document_replaces_the_shipped_one(site, options) -> None:
    own(site, OWN)
    shown, all_ = site.run("show", "trainium2", *options), site.run("list", "chips", *options)
    (row,) = (line for line in all_.out.splitlines() if line.startswith("trainium2 "))

    assert ("", "") == (shown.err, all_.err)
    assert "2 TB/s" in shown.out
    assert "64" == row.split()[2]
    assert SHIPPED == chips(site, *options)


# The list of plugins.

FUNCTIONS = '''
import click
from trnspec.evaluation.result import Evaluation

def sound(catalog, *, x: int = 1) -> Evaluation:
    """It answers."""

def bare(catalog, *, x=1):
    """Its input has no annotation."""

hello = click.Command("hello")
number = 3
'''


MODULES = {
    "fns": FUNCTIONS,
    "ends": "raise SystemExit(3)",
    "sleeps": "import time\ntime.sleep(30)",
    "speechless": "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
}
IMPORT = "from trnspec.plugins.api import Command, Exporter, Reporter"
NOTHING = "fns:nothing cannot be imported: AttributeError: module 'fns' has no attribute 'nothing'"
PARTS = {
    "sound": ("evaluators=(Evaluator('e1', 'E.', 'fns:sound'),)", ""),
    "sounds": (
        "exporters=(Exporter('x1', '.g', 'G.', one='fns:sound', all='fns:sound'),), commands=(Command('c1', 'C.', 'fns:hello'),)", "",
    ),
    "absent": (
        "evaluators=(Evaluator('e2', 'E.', 'no_such:x'),)",
        "the evaluator e2: no_such:x cannot be imported: ModuleNotFoundError: No module named 'no_such'",
    ),
    "bare": ("evaluators=(Evaluator('e3', 'E.', 'fns:bare'),)", "the evaluator e3: the input x of the evaluator e3 has no annotation"),
    "number": ("evaluators=(Evaluator('e4', 'E.', 'fns:number'),)", "the evaluator e4: fns:number is not a function"),
    "ends": ("evaluators=(Evaluator('e5', 'E.', 'ends:x'),)", "the evaluator e5: ends:x cannot be imported: SystemExit: 3"),
    "speechless": (
        "evaluators=(Evaluator('e6', 'E.', 'speechless:x'),)",
        "the evaluator e6: speechless:x cannot be imported: E: its message cannot be shown",
    ),
    "sleeps": (
        "evaluators=(Evaluator('e7', 'E.', 'sleeps:x'),)",
        "the evaluator e7: sleeps:x cannot be imported: it took longer than TRNSPEC_PLUGIN_SECONDS",
    ),
    "exporter": ("exporters=(Exporter('x2', '.b', 'B.', all='fns:nothing'),)", f"the exporter x2: {NOTHING}"),
    "reporter": ("reporters=(Reporter('r1', 'R.', 'fns:nothing'),)", f"the reporter r1: {NOTHING}"),
    "command": ("commands=(Command('c2', 'C.', 'fns:sound'),)", "the command c2 is of type function; a click.Command is expected"),
}  # fmt: skip


def test_plugin_object_is_imported_by_name(site) -> None:
    for name, code in MODULES.items():
        (site.folder / f"{name}.py").write_text(code)
    for name, (more, _) in PARTS.items():
        site.plugin(name, more, head=IMPORT)

    assert {n: ("faulty" if fault else "ok", [fault] * bool(fault)) for n, (_, fault) in PARTS.items()} == listed(
        site, TRNSPEC_PLUGIN_SECONDS="1"
    )


def test_errors_of_a_catalog_are_in_the_list(site) -> None:
    server = SERVER.replace("512 GiB", "500 GiB").replace("name: acme-server", "name: beta-server")
    site.catalog("acme", {**BROKEN, "chips/acme-2.yaml": CHIP.replace("acme-1", "acme-2")})
    folder = site.catalog("beta", {"servers/beta-server.yaml": server.replace("acme-1", "acme-2")})
    found = listed(site)

    assert {"acme": "faulty", "beta": "faulty"} == {name: status for name, (status, _) in found.items()}
    assert [True] == ["acme-1.yaml:6:22: TRN111 unknown-unit: " in fault for fault in found["acme"][1]]
    assert [True] == [
        fault.startswith(f"{folder}/servers/beta-server.yaml:6:31: TRN402 ") for fault in found["beta"][1]
    ]
