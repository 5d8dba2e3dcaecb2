"""The catalog of NVIDIA: sound, complete, switched as declared, and adding up."""

from __future__ import annotations

import math
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from nvidia_catalog import FOLDER, catalog
from trnspec_nvidia import plugin

from trnspec.api import load, validate
from trnspec.graph.fabrics import fabric
from trnspec.graph.facts import facts
from trnspec.graph.totals import sums, total
from trnspec.loading.files import documents_in, shipped
from trnspec.perf.lowering.lower import lower
from trnspec.testing import PluginConformance
from trnspec.topology.measures import degrees, diameter
from trnspec.topology.switched import Switched, SwitchLevel

ROOT = Path(__file__).parent.parent

CHIPS = {"a100-40gb", "a100-80gb", "h100-sxm", "h100-96gb-hbm2e", "h200", "b200", "b300", "gb200", "gb300"}
EIGHT = {
    "a100-800gbps": "a100-80gb",
    "dgx-a100-40gb": "a100-40gb",
    "dgx-a100-80gb": "a100-80gb",
    "dgx-b200": "b200",
    "dgx-b300": "b300",
    "dgx-h100": "h100-sxm",
    "dgx-h200": "h200",
    "grand-teton-h100": "h100-96gb-hbm2e",
    "hgx-b200": "b200",
    "hgx-h100": "h100-sxm",
    "p4d.24xlarge": "a100-40gb",
    "p4de.24xlarge": "a100-80gb",
    "p5.48xlarge": "h100-sxm",
    "p5e.48xlarge": "h200",
    "p5en.48xlarge": "h200",
    "p6-b200.48xlarge": "b200",
    "p6-b300.48xlarge": "b300",
}
TRAYS = {"gb200-nvl72": "gb200-compute-tray", "gb300-nvl72": "gb300-compute-tray"}
"""The racks, and the server that each has eighteen of."""

STATED = {
    "dgx-a100-40gb": 2,
    "dgx-a100-80gb": 2,
    "dgx-b200": 2,
    "dgx-b300": 3,
    "dgx-h100": 1,
    "dgx-h200": 1,
    "hgx-b200": 9,
    "p4d.24xlarge": 1,
    "p4de.24xlarge": 1,
    "p5.48xlarge": 1,
    "p5.4xlarge": 1,
    "p5e.48xlarge": 1,
    "p5en.48xlarge": 1,
    "p6-b200.48xlarge": 1,
    "p6-b300.48xlarge": 1,
    "gb200-nvl72": 11,
    "gb300-nvl72": 10,
}
"""How many figures of a whole system its pages print that must follow from its chips."""


def names(folder, *kinds):
    return {f.stem for kind in kinds for f in documents_in(folder / kind)}


def install(folder):
    """The metadata that an installation of this distribution leaves, with the entry points of its pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = project["entry-points"]["trnspec.plugins"]
    lines = [f"{point} = {value}\n" for point, value in points.items()]
    (info / "entry_points.txt").write_text("".join(["[trnspec.plugins]\n", *lines]))


class TestConformance(PluginConformance):
    plugin = plugin

    @pytest.fixture(autouse=True)
    def _installed(self, tmp_path, monkeypatch):
        # Tested as it lies here; an installation adds nothing but this folder to the path.
        install(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("TRNSPEC_PLUGINS", plugin.name)


def test_catalog_is_sound():
    checked = validate([str(FOLDER)])

    assert [] == list(checked.report.diagnostics)
    known = [n for n in catalog() if n.target]
    of_lists = {f"{n.spec.server}-prices" for n in known if n.kind == "Price"}
    of_lists |= {f"{n.spec.chip}-{n.spec.framework}-calibrations" for n in known if n.kind == "Calibration"}
    assert of_lists | {n.name for n in known if n.kind not in ("Price", "Calibration")} == {
        f.stem for f in documents_in(FOLDER)
    }


def test_every_chip_link_and_system():
    assert names(FOLDER, "chips") == CHIPS
    assert {*EIGHT, *TRAYS.values(), "p5.4xlarge", "p6e-gb200.36xlarge"} == names(FOLDER, "servers")
    assert set(TRAYS) == names(FOLDER, "ultraservers")
    assert {
        "nvlink-3",
        "nvlink-4",
        "nvlink-5",
        "pcie-gen4-x16",
        "pcie-gen5-x16",
        "infiniband-hdr",
        "infiniband-ndr",
        "infiniband-xdr",
        "rdma-400g",
        "efa-v4",
    } == names(FOLDER, "links")


def test_chips_of_every_server():
    found = {n: catalog().named(n).spec.chips for n in EIGHT}

    assert {n: (chip, 8) for n, chip in EIGHT.items()} == {n: (c.chip.name, c.count) for n, c in found.items()}


def test_nothing_is_copied_from_the_shipped_catalog():
    kinds = ("chips", "cores", "links", "servers", "ultraservers", "sources")

    assert set() == names(FOLDER, *kinds) & names(shipped(), *kinds)


def test_every_source_is_used():
    used = {str(c.source) for n in catalog() for c in n.claims}
    used |= {str(n.metadata.source) for n in catalog()}
    used |= {fact.source for n in catalog() for fact in facts(catalog(), n)}

    assert set() == names(FOLDER, "sources") - used


def test_waived_findings():
    """Memory of which no source prints the bytes, and nothing else."""
    waived = {(n.name, w.code, w.at) for n in catalog() if n.target for w in n.metadata.allow}

    assert waived == {
        ("h100-96gb-hbm2e", "TRN601", "spec.memory.capacity"),
    }


@pytest.mark.parametrize("name", EIGHT)
def test_eight_chips_at_one_switch(name):
    """The links of a chip are one edge, to the switch; two edges lead from each chip to each other."""
    built = fabric(catalog(), catalog().named(name))

    assert built == Switched(8, (SwitchLevel(8),))
    assert [1] * 8 == list(degrees(built.build()))
    assert diameter(built.build()) == 2


@pytest.mark.parametrize(("rack", "tray"), TRAYS.items())
def test_a_rack_of_72_is_one_domain(rack, tray):
    servers = catalog().named(rack).spec.servers

    assert (tray, 18) == (servers.server.name, servers.count)
    assert fabric(catalog(), catalog().named(rack)) == Switched(72, (SwitchLevel(72),))
    assert fabric(catalog(), catalog().named(tray)) is None


@pytest.mark.parametrize(
    ("on", "chips", "levels"),
    [
        ("gb300-nvl72*4", 288, [("ultraserver", 72, 900e9), ("network", math.inf, 100e9)]),
        ("dgx-gb300*4", 288, [("ultraserver", 72, 900e9), ("network", math.inf, 100e9)]),
        ("gb300-compute-tray*2", 8, [("server", 4, 900e9), ("network", math.inf, 100e9)]),
        ("dgx-b300*8", 64, [("server", 8, 900e9), ("network", math.inf, 100e9)]),
        ("hgx-h100", 8, [("server", 8, 450e9)]),
    ],
)
def test_systems_are_lowered(on, chips, levels):
    """Ranks of each level, and B/s of one rank in one direction."""
    system = lower(catalog(), on)

    assert system.chips == chips
    assert levels == [(level.name, level.ranks, level.rate) for level in system.levels]


@pytest.mark.parametrize("name", [*EIGHT, *TRAYS, *TRAYS.values()])
def test_links_of_a_chip(name):
    """Links times the rate of one is what the page prints of a chip, both directions added."""
    declared = catalog().named(name).spec.fabric
    link = catalog().find(declared.link).spec

    assert {"nvlink-3": 12, "nvlink-4": 18, "nvlink-5": 18}[declared.link.name] == declared.links_per_chip
    assert float(declared.bandwidth.both) == declared.links_per_chip * float(link.bandwidth.both)
    assert float(link.bandwidth.both) == 2 * float(link.bandwidth.per_direction)


@pytest.mark.parametrize("name", sorted({*EIGHT, *TRAYS.values()} - {"hgx-b200", "hgx-h100"}))
def test_between_servers_one_attribute_reports(name):
    """NICs times the rate of one; the technology is that of the link, where the page names it."""
    network = catalog().named(name).spec.network
    nic = catalog().find(network.link).spec
    family = network.link.name.partition("-")[0]

    assert nic.connects == "servers"
    assert network.technology == {"efa": "EFA", "infiniband": "InfiniBand", "rdma": None}[family]
    assert float(network.bandwidth) == network.nics * float(nic.bandwidth.per_direction)


@pytest.mark.parametrize(
    ("name", "per_chip"),
    [
        ("dgx-a100-80gb", 25e9),
        ("dgx-b300", 100e9),
        ("dgx-h100", 50e9),
        ("gb200-compute-tray", 50e9),
        ("gb300-compute-tray", 100e9),
        ("grand-teton-h100", 50e9),
        ("p4d.24xlarge", 6.25e9),
        ("p5.48xlarge", 50e9),
        ("p6-b300.48xlarge", 100e9),
    ],
)
def test_between_servers_for_each_chip(name, per_chip):
    """B/s in one direction."""
    spec = catalog().named(name).spec

    assert float(spec.network.bandwidth) / spec.chips.count == per_chip


@pytest.mark.parametrize(
    ("name", "bf16", "sparse", "bandwidth"),
    [
        ("dgx-a100-40gb", "2,496 TFLOPS", "4,992 TFLOPS", "12.44 TB/s"),
        ("dgx-a100-80gb", "2,496 TFLOPS", "4,992 TFLOPS", "16.312 TB/s"),
        ("dgx-h100", "7,915.2 TFLOPS", "15.832 PFLOPS", "26.8 TB/s"),
        ("dgx-h200", "7,916 TFLOPS", "15.832 PFLOPS", "38.4 TB/s"),
        ("dgx-b200", "18 PFLOPS", "36 PFLOPS", "61.6 TB/s"),
        ("dgx-b300", "18 PFLOPS", "36 PFLOPS", "61.6 TB/s"),
        ("gb200-nvl72", "180 PFLOPS", "360 PFLOPS", "576 TB/s"),
        ("gb300-nvl72", "180 PFLOPS", "360 PFLOPS", "576 TB/s"),
    ],
)
def test_totals(name, bf16, sparse, bandwidth):
    found = {s.at: s.text for s in sums(catalog(), catalog().named(name))}
    paths = ("peak.dense.bf16", "peak.sparse.bf16", "memory.bandwidth")

    assert (bf16, sparse, bandwidth) == tuple(found[path] for path in paths)


@pytest.mark.parametrize("name", STATED)
def test_totals_are_those_that_the_pages_print(name):
    """Every total that is printed overlaps, within its digits, with the sum over the chips within theirs."""
    node = catalog().named(name)
    stated = {p: f for p, f in catalog().figures(node).items() if p[:2] == ("spec", "stated")}
    computed = {p: total(catalog(), node, ("spec", *p[2:])).interval for p in stated}

    assert len(stated) == STATED[name]
    assert [] == [
        p for p, f in stated.items() if f.interval.high <= computed[p].low or computed[p].high <= f.interval.low
    ]


def test_ridge_points():
    """FLOP/B at which a matrix multiplication in bf16 is as long in the memory as in the tensor cores."""
    ridge = "peak.dense.bf16 / memory.bandwidth"
    found = load([str(FOLDER)]).query("chip where known memory.bandwidth", columns=[ridge])
    reported = {row.name: round(float(value), 3) for row, value in zip(found, found.column(ridge), strict=True)}

    assert {name: value for name, value in reported.items() if name in CHIPS} == {
        "a100-40gb": 200.643,
        "a100-80gb": 153.016,
        "b200": 292.208,
        "b300": 292.208,
        "gb200": 312.5,
        "gb300": 312.5,
        "h100-96gb-hbm2e": 412.083,
        "h100-sxm": 295.343,
        "h200": 206.146,
    }


def test_no_fp8_before_hopper():
    """Not published is not zero: A100 is neither found nor counted as slower."""
    found = load([str(FOLDER)]).query("chip where peak.dense.fp8 > 0 TFLOPS")

    assert CHIPS - {"a100-40gb", "a100-80gb"} == {row.name for row in found} & CHIPS
    assert {"a100-40gb", "a100-80gb"} == {row.name for row in found.undecided} & CHIPS


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "--table", "CATALOG"],
        ["query", "chip where memory.bandwidth > 3 TB/s", "--columns", "name,peak.dense.bf16 / memory.bandwidth"],
    ],
    ids=["validate", "query"],
)
def test_the_readme_shows_what_is_printed(arguments):
    reported = [str(FOLDER) if a == "CATALOG" else a for a in arguments]
    reported += ["--catalog", str(FOLDER)] if arguments[0] == "query" else []
    command = [sys.executable, "-m", "trnspec", *reported]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "".join(f"    {line}".rstrip() + "\n" for line in done.stdout.splitlines()) in readme
