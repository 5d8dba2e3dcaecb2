"""Kinds of a plugin, from the document to every command: one derived from Chip, and others that are built of parts."""

import csv
import io
import json
import subprocess
import sys

import pytest

from tests.support.invented_plugins import DOCUMENTS, install, module
from tests.support.programs import Site, environment
from trnspec.builtin import plugin as builtin
from trnspec.model.chip import Chip
from trnspec.model.json_schema import document_schema
from trnspec.plugins.api import Plugin, Registry
from trnspec.testing import diagnose


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    """The command line where the plugin is installed; no test here changes it."""
    installed = Site(tmp_path_factory.mktemp("site"))
    install(installed)
    return installed


@pytest.fixture(scope="module")
def tile(site) -> Plugin:
    return module(site.folder / "trnspec_tile.py").plugin


def out(site: Site, *args: str) -> str:
    done = site.run(*args)

    assert (0, "") == (done.status, done.err)
    return done.out


def names(site: Site, *args: str) -> set[str]:
    """The first cells of a table that a command prints."""
    return {line.split(",")[0] for line in out(site, *args, "--format", "csv").splitlines()[1:]}


def test_documents_are_sound(site) -> None:
    checked = json.loads(out(site, "validate", "tile_catalog", "--format", "json"))

    assert ([], len(DOCUMENTS)) == (checked["diagnostics"], checked["summary"]["files"])


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (("list", "tilechips"), {"tile-1"}), (("list", "TileChip"), {"tile-1"}),
        (("list", "racks"), {"tile-rack", "plain-rack"}),
        (("query", "chip where memory.capacity = 64 GiB"), {"tile-1"}),
        (("query", "tilechip where clock_domains > 1"), {"tile-1"}),
        (("query", "tilechips where scratch >= 512 MiB"), {"tile-1"}),
        (("query", "tilechip where clock_domains > 2"), set()),
        (("query", "server where chip.memory.capacity = 64 GiB and memory.capacity = 256 GiB"), {"tile-server"}),
        (("query", "rack where cooling > 1.5 kW"), {"tile-rack"}),
        (("query", "rack where memory.capacity > 1.9 TiB"), {"plain-rack"}),
        (("query", 'halls where rack = "tile-rack"'), {"tile-hall"}),
    ],
)  # fmt: skip
def test_list_and_query(site, args, found) -> None:
    assert found == names(site, *args)


def test_show(site) -> None:
    chip, hall = (out(site, "show", name) for name in ("tile-1", "tile-hall"))

    assert ("tile-1: tile-1 (TileChip)" in chip, "tile-hall: tile-hall (Hall)" in hall) == (True, True)
    assert {("clock_domains", "2"), ("scratch", "512")} <= {tuple(line.split()[:2]) for line in chip.splitlines()}


def test_python(site) -> None:
    code = (
        "import trnspec; cat = trnspec.load(); chip = cat.chips['tile-1']\n"
        "print(type(chip).__name__, chip.clock_domains, chip.scratch.to('MiB'), 'trainium2' in cat.chips)\n"
        "print(cat.servers['tile-server'].chip_view is chip, cat['plain-rack'].cooling.to('W'), cat['tile-pod'].slices)\n"
        "print(cat.replace('tile-1', {'clock_domains': 8}).query('tilechips where clock_domains = 8').rows[0].name)\n"
    )
    env = environment(PYTHONPATH=str(site.folder))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)

    assert "TileChipView 2 512.0 True\nTrue 1000.0 2\ntile-1\n" == done.stdout, done.stderr


CHIP, RACK, HALL = "tilechips/tile-1.yaml", "racks/plain-rack.yaml", "halls/tile-hall.yaml"


@pytest.mark.parametrize(
    ("file", "edits", "found"),
    [
        (RACK, {"count: 8": "count: 9"}, {("TILE001", 4)}),
        (RACK, {"tile-server": "tile-1"}, {("TRN202", 4)}),
        (RACK, {"cooling": "coolng"}, {("TRN101", 4)}),
        (HALL, {", count: 10": ""}, {("TRN102", 4)}),
        (CHIP, {"scratch": "scrach"}, {("TRN101", 7)}),
        (CHIP, {"512 MiB": "512 MHz"}, {("TRN112", 7)}),
        # Both a key of the base and one of its own, and neither hides the other.
        (CHIP, {"peak": "peek", "domains: 2": "domains: 0"}, {("TRN101", 5), ("TRN106", 8)}),
        # Rules over Chip look at it.
        (CHIP, {"400 TFLOPS": "400 TFLOPS, fp32: 500 TFLOPS"}, {("TRN603", 5)}),
    ],
)
def test_findings(tile, file, edits, found) -> None:
    text = DOCUMENTS[file]
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    diagnosed = diagnose({**DOCUMENTS, file: text}, registry=Registry.of([builtin, tile]))

    assert found == {(code, line) for name, code, line in diagnosed if name == file}


def test_the_schema_of_a_derived_kind(tile) -> None:
    own, others = (
        document_schema(kind, spec)["$defs"][kind] for kind, spec in (("TileChip", tile.kinds[0].spec), ("Chip", Chip))
    )

    assert [*others["properties"], "scratch", "clock_domains"] == list(own["properties"])
    assert others["properties"] == {name: own["properties"][name] for name in others["properties"]}
    assert (False, others["required"]) == (own["additionalProperties"], own["required"])


def test_tree(site) -> None:
    rows = list(csv.DictReader(io.StringIO(out(site, "tree", "tile-hall", "--format", "csv"))))

    assert [(r["depth"], r["name"], r["count"], r["all together"]) for r in rows] == [
        ("0", "tile-hall", "1", "1"),
        ("1", "tile-rack", "10", "10"),
        ("2", "tile-server", "3", "30"),
        ("3", "tile-1", "4", "120"),
        ("2", "tile-pod", "2", "20"),
        ("3", "tile-server", "2", "40"),
        ("4", "tile-1", "4", "160"),
    ]
