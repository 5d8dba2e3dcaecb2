"""The catalog of Inferentia: sound, complete, wired as the driver says, and adding up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from inferentia import FOLDER, catalog
from trnspec_inferentia import plugin

from trnspec.api import validate
from trnspec.graph.fabrics import fabric
from trnspec.graph.facts import facts
from trnspec.graph.totals import sums, total
from trnspec.loading.files import documents_in, shipped
from trnspec.plugins.api import API
from trnspec.topology.measures import total_rate
from trnspec.topology.shapes import Chain, Ring

SIZES = {
    "inf1.xlarge": 1,
    "inf1.2xlarge": 1,
    "inf1.6xlarge": 4,
    "inf1.24xlarge": 16,
    "inf2.xlarge": 1,
    "inf2.8xlarge": 1,
    "inf2.24xlarge": 6,
    "inf2.48xlarge": 12,
}


def names(folder, *kinds):
    return {f.stem for kind in kinds for f in documents_in(folder / kind)}


def built(name):
    found = fabric(catalog(), catalog().named(name))
    assert found is not None
    return found


def test_plugin():
    assert ("inferentia", API) == (plugin.name, plugin.api)
    assert ((), (), ()) == (plugin.kinds, plugin.rules, plugin.codes)


def test_catalog_is_sound():
    checked = validate([str(FOLDER)])

    assert [] == list(checked.report.diagnostics)
    known = [n for n in catalog() if n.target]
    of_lists = {f"{n.spec.server}-prices" for n in known if n.kind == "Price"}
    of_lists |= {f"{n.spec.chip}-{n.spec.framework}-calibrations" for n in known if n.kind == "Calibration"}
    assert of_lists | {n.name for n in known if n.kind not in ("Price", "Calibration")} == {
        f.stem for f in documents_in(FOLDER)
    }


def test_every_size_and_part():
    assert set(SIZES) == names(FOLDER, "servers")
    assert {"inferentia1", "inferentia2", "neuroncore-v1", "neuronlink-v1"} == names(FOLDER, "chips", "cores", "links")
    assert SIZES == {n: catalog().named(n).spec.chips.count for n in SIZES}


def test_nothing_is_copied_from_the_shipped_catalog():
    kinds = ("chips", "cores", "links", "servers", "sources")

    assert set() == names(FOLDER, *kinds) & names(shipped(), *kinds)


def test_every_source_is_used():
    used = {str(c.source) for n in catalog() for c in n.claims}
    used |= {str(n.metadata.source) for n in catalog()}
    used |= {fact.source for n in catalog() for fact in facts(catalog(), n)}

    assert set() == names(FOLDER, "sources") - used


@pytest.mark.parametrize(
    ("name", "wiring"),
    [
        ("inf1.6xlarge", Chain(4, 8e9)),
        ("inf1.24xlarge", Chain(16, 8e9)),
        ("inf2.24xlarge", Chain(6, 48e9)),
        ("inf2.48xlarge", Ring(12, 48e9)),
    ],
)
def test_chains_and_rings(name, wiring):
    """B/s of one link in one direction."""
    assert wiring == built(name)


@pytest.mark.parametrize("name", [name for name, chips in SIZES.items() if chips == 1])
def test_one_chip_has_no_fabric(name):
    assert fabric(catalog(), catalog().named(name)) is None


@pytest.mark.parametrize(
    ("name", "ends", "interior"),
    [("inf1.6xlarge", 16e9, 32e9), ("inf1.24xlarge", 16e9, 32e9), ("inf2.24xlarge", 96e9, 192e9)],
)
def test_chips_at_the_ends_of_a_chain_have_half(name, ends, interior):
    """Both directions: what is printed of every chip is true of those in between."""
    first, *between, last = (2 * rate for rate in map(total_rate, built(name).build().links))

    assert (ends, ends) == (first, last)
    assert {interior} == set(between)
    assert float(catalog().named(name).spec.fabric.bandwidth.both) == interior


def test_in_the_ring_every_chip_has_two_links():
    assert {192e9} == {2 * rate for rate in map(total_rate, built("inf2.48xlarge").build().links)}


def test_neighbours_as_neuron_ls_prints_them():
    """The four chips of inf1.6xlarge, and chip 0 of inf2.48xlarge."""
    assert [{1}, {0, 2}, {1, 3}, {2}] == [set(n) for n in built("inf1.6xlarge").build().adjacency]
    assert {1, 11} == set(built("inf2.48xlarge").build().adjacency[0])


@pytest.mark.parametrize(
    ("name", "bf16", "int8", "capacity", "bandwidth", "cores"),
    [
        ("inf1.xlarge", "64 TFLOPS", "128 TOPS", "8 GiB", "50 GB/s", "4"),
        ("inf1.2xlarge", "64 TFLOPS", "128 TOPS", "8 GiB", "50 GB/s", "4"),
        ("inf1.6xlarge", "256 TFLOPS", "512 TOPS", "32 GiB", "200 GB/s", "16"),
        ("inf1.24xlarge", "1,024 TFLOPS", "2,048 TOPS", "128 GiB", "800 GB/s", "64"),
        ("inf2.xlarge", "190 TFLOPS", "380 TOPS", "32 GiB", "820 GB/s", "2"),
        ("inf2.8xlarge", "190 TFLOPS", "380 TOPS", "32 GiB", "820 GB/s", "2"),
        ("inf2.24xlarge", "1,140 TFLOPS", "2,280 TOPS", "192 GiB", "4,920 GB/s", "12"),
        ("inf2.48xlarge", "2,280 TFLOPS", "4,560 TOPS", "384 GiB", "9,840 GB/s", "24"),
    ],
)
def test_totals(name, bf16, int8, capacity, bandwidth, cores):
    found = {s.at: s.text for s in sums(catalog(), catalog().named(name))}
    paths = ("peak.dense.bf16", "peak.dense.int8", "memory.capacity", "memory.bandwidth", "cores")

    assert (bf16, int8, capacity, bandwidth, cores) == tuple(found[path] for path in paths)


@pytest.mark.parametrize("name", SIZES)
def test_totals_are_those_that_the_pages_print(name):
    """Every peak rate and capacity that is stated of a size follows from its chips."""
    node = catalog().named(name)
    stated = {p: f for p, f in catalog().figures(node).items() if p[:2] == ("spec", "stated")}
    computed = {p: total(catalog(), node, ("spec", *p[2:])) for p in stated}

    assert len(stated) >= 4
    assert {p: float(t) for p, t in computed.items()} == {p: float(f) for p, f in stated.items()}


def test_the_readme_shows_what_is_printed():
    command = [sys.executable, "-m", "trnspec", "validate", "--table", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60)
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

    assert "".join(f"    {line}".rstrip() + "\n" for line in done.stdout.splitlines()) in readme
