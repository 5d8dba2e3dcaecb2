"""Kinds of plugins, from the document to every command: one derived from Chip, and one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import types

import pytest

from tests.plugins.acme_kinds import CHIP, DOCUMENTS, MODULE, RACK, install
from tests.support.programs import Site, environment
from trnspec.builtin import plugin as builtin
from trnspec.model.chip import Chip
from trnspec.model.json_schema import document_schema
from trnspec.plugins.api import Plugin, Registry
from trnspec.testing import diagnose


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    """The command line where the plugin is installed; no test here changes it."""
    made = Site(tmp_path_factory.mktemp("site"))
    install(made)
    return made


@pytest.fixture(scope="module")
def acme(site) -> Plugin:
    """The same plugin in this process, which has it in no registry but those that a test makes."""
    module = types.ModuleType("trnspec_acme_under_test")
    module.__file__ = str(site.folder / "trnspec_acme.py")
    # Classes look up the names in their annotations in the module that they say they are of.
    sys.modules[module.__name__] = module
    exec(compile(MODULE, module.__file__, "exec"), module.__dict__)
    return module.plugin


@pytest.fixture
def known(acme) -> Registry:
    return Registry.of([builtin, acme])


def rows(site, *args) -> list[list[str]]:
    """The first cells of a table that a command prints."""
    done = site.run(*args, "--format", "csv")

    assert (0, "") == (done.status, done.err)
    return [line.split(",") for line in done.out.splitlines()[1:]]


def test_its_documents_are_sound(site) -> None:
    checked = json.loads(site.run("validate", "acme_catalog", "--format", "json").out)

    assert ([], len(DOCUMENTS)) == (checked["diagnostics"], checked["summary"]["files"])


@pytest.mark.parametrize(
    ("kind", "names"),
    [("acmechips", ["acme-1"]), ("AcmeChip", ["acme-1"]), ("racks", ["acme-rack"]), ("rack", ["acme-rack"])],
)
def test_a_kind_is_listed(site, kind, names) -> None:
    assert names == [row[0] for row in rows(site, "list", kind)]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("chip where memory.capacity = 64 GiB", ["acme-1"]),
        ("acmechip where lanes > 3", ["acme-1"]),
        ("acmechips where scratch.capacity >= 512 MiB", ["acme-1"]),
        ("acmechip where lanes > 16", []),
        ("server where chip.memory.capacity = 64 GiB and memory.capacity = 512 GiB", ["acme-server"]),
        ("rack where power > 39 kW", ["acme-rack"]),
        ('racks where servers.server = "acme-server"', ["acme-rack"]),
        ("rack where servers.count > 4", []),
    ],
)
def test_query(site, query, names) -> None:
    assert names == [row[0] for row in rows(site, "query", query)]


def test_show(site) -> None:
    chip, rack = (site.run("show", name).out for name in ("acme-1", "acme-rack"))

    assert "acme-1: Acme 1 (AcmeChip)" in chip
    assert "acme-rack: Acme rack (Rack)" in rack
    assert [("lanes", "16"), ("capacity", "512")] == [
        tuple(line.split()[:2]) for line in chip.splitlines() if line.startswith("lanes") or "512 MiB" in line
    ]


def test_tree(site) -> None:
    found = json.loads(site.run("tree", "acme-rack", "--format", "json").out)["rows"]

    assert [("acme-rack", 1), ("acme-server", 4), ("acme-1", 32)] == [(r["name"], r["all together"]) for r in found]


def test_python(site) -> None:
    code = (
        "import trnspec; cat = trnspec.load(); chip = cat.chips['acme-1']; rack = cat['acme-rack']\n"
        "print(type(chip).__name__, chip.lanes, chip.scratch.capacity.to('MiB'), 'trainium2' in cat.chips)\n"
        "print(cat.servers['acme-server'].chip_view is chip, rack.kind, rack.power.to('W'), rack.servers.count)\n"
        "print(cat.replace('acme-1', {'lanes': 8}).query('acmechips where lanes = 8').rows[0].name)\n"
    )
    env = environment(PYTHONPATH=str(site.folder))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)

    assert "AcmeChipView 16 512.0 True\nTrue Rack 40000.0 4\nacme-1\n" == done.stdout, done.stderr


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("racks/acme-rack.yaml", RACK.replace("count: 4", "count: 9"), {("ACME001", 5)}),
        ("racks/acme-rack.yaml", RACK.replace("acme-server", "acme-1"), {("TRN202", 5)}),
        ("racks/acme-rack.yaml", RACK.replace("power", "powr"), {("TRN101", 6)}),
        ("acmechips/acme-1.yaml", CHIP.replace("  lanes: 16\n", ""), {("TRN102", 4)}),
        ("acmechips/acme-1.yaml", CHIP.replace("scratch", "scrach"), {("TRN101", 8)}),
        ("acmechips/acme-1.yaml", CHIP.replace("512 MiB", "512 MHz"), {("TRN112", 8)}),
        # Both a key of the base and one of its own, and neither hides the other.
        ("acmechips/acme-1.yaml", CHIP.replace("peak", "peek").replace("lanes: 16", "lanes: 0"),
         {("TRN101", 5), ("TRN106", 7)}),
        # Rules over Chip look at it.
        ("acmechips/acme-1.yaml", CHIP.replace("400 TFLOPS", "400 TFLOPS, fp32: 500 TFLOPS"), {("TRN603", 5)}),
    ],
)  # fmt: skip
def test_findings(known, file, text, found) -> None:
    files = {**DOCUMENTS, file: text}

    assert found == {(code, line) for name, code, line in diagnose(files, registry=known) if name == file}


# The schema of a derived class.


def test_the_schema_of_a_derived_kind(acme) -> None:
    own, others = (
        document_schema(kind, spec)["$defs"][kind] for kind, spec in (("AcmeChip", acme.kinds[0].spec), ("Chip", Chip))
    )

    assert [*others["properties"], "lanes", "scratch"] == list(own["properties"])
    assert others["properties"] == {name: own["properties"][name] for name in others["properties"]}
    assert own["additionalProperties"] is False
    assert {"lanes"} == set(own["required"]) - set(others["required"])
