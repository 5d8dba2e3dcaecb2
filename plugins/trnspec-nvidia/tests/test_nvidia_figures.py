"""Adopted figures compared with what their sources print, those of EC2 with the records themselves."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from nvidia_catalog import catalog

from trnspec.quantities.quantity import parse

DATA = Path(__file__).parent / "data"
RECORDS = json.loads((DATA / "ec2.json").read_text(encoding="utf-8"))["records"]

with (DATA / "nvidia_figures.csv").open(encoding="utf-8", newline="") as table:
    ROWS = list(csv.DictReader(table))


def adopted(row):
    """What the catalog says where the row does: value, dimension and source."""
    node = catalog().named(row["document"])
    figure = catalog().figures(node)[tuple(row["at"].split("."))]
    source = "derived" if figure.derived else str(figure.source or node.metadata.source)
    return figure.value.value, figure.value.dimension, source


def expected(row):
    quantity = parse(row["says"])
    return quantity.value, quantity.dimension, row["source"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['document']}-{row['at'].removeprefix('spec.')}")
def test_figure(row):
    assert expected(row) == adopted(row)


def test_another_value_or_source_is_not_taken():
    for row in ROWS[:3]:
        assert expected(row | {"says": "1 TFLOPS"}) != adopted(row)
        assert expected(row | {"source": "verda-blackwell-2025"}) != adopted(row)


def test_no_row_twice():
    assert len({(row["document"], row["at"]) for row in ROWS}) == len(ROWS)


ULTRA = {("b300", "fp4"), ("gb300", "fp4")}
"""Blackwell Ultra raised the dense rate of FP4 alone; that with sparsity stayed."""


def test_sparsity_doubles_the_rate():
    """Structured sparsity doubles the rate of a tensor core: both are distinguished, and agree within their digits."""
    checked = set()
    for node in (n for n in catalog() if n.target and n.kind == "Chip"):
        figures = catalog().figures(node)
        for path, sparse in figures.items():
            if path[:3] == ("spec", "peak", "sparse"):
                dense = figures["spec", "peak", "dense", path[3]].interval
                assert sparse.interval.low < 2 * dense.high, (node.name, path)
                if (node.name, path[3]) in ULTRA:
                    assert dense.high < sparse.interval.low < sparse.interval.high < 2 * dense.low, (node.name, path)
                else:
                    assert 2 * dense.low < sparse.interval.high, (node.name, path)
                checked.add((node.name, path[3]))

    assert checked >= ULTRA
    assert len(checked) == 47


@pytest.mark.parametrize("name", RECORDS)
def test_ec2_record(name):
    record, spec = RECORDS[name], catalog().named(name).spec
    chip = catalog().find(spec.chips.chip)
    reported = {
        "vcpus": spec.host.vcpus,
        "host_memory_mib": spec.host.memory.to("MiB"),
        "gpus": spec.chips.count,
        "gpu_memory_mib": chip.spec.memory.capacity.to("MiB"),
        "total_gpu_memory_mib": spec.stated.memory.capacity.to("MiB"),
        "efa_interfaces": spec.network.nics,
        "storage_mbps": spec.network.storage.to("Mbps"),
        "disks_gb": spec.local_storage.to("GB"),
        "clock_ghz": spec.other["cpu_clock"].to("GHz"),
    }

    assert {k: record[k] for k in reported} == reported
    assert chip.name.startswith(record["gpu"].lower())


@pytest.mark.parametrize("name", RECORDS)
def test_ec2_network(name):
    """Its performance is printed as 3200 Gigabit, or as 4x 100 Gigabit."""
    words = RECORDS[name]["network_performance"].split()
    gigabit = int(words[-2]) * (int(words[0].removesuffix("x")) if len(words) == 3 else 1)

    assert words[-1] == "Gigabit"
    assert catalog().named(name).spec.network.bandwidth.to("Gbit/s") == gigabit
