"""Fabrics with the classes of their links, and what a chip sends over them."""

from collections import Counter

import pytest

import trnspec
from tests.support.tables import tables
from trnspec.output.exporters.export_log import ExportLog
from trnspec.output.exporters.link_table import latency, link_table, out_of_a_chip

CAT = trnspec.load()
GB = 10**9


def export_log(name: str, catalog: trnspec.Catalog = CAT) -> ExportLog:
    return ExportLog(catalog.graph, catalog.graph.named(name), "form")


def classes(name: str) -> dict[str, tuple[int, str]]:
    return {c.kind: (c.count, c.label) for c in link_table(export_log(name)).classes}


@pytest.mark.parametrize(("name", "expected"), tables(__file__)["classes"])
def test_classes(name, expected) -> None:
    assert {name: tuple(each) for name, each in expected.items()} == classes(name)


@pytest.mark.parametrize("name", ["trn1.32xlarge", "trn2-ultraserver", "trn3-gen2-ultraserver"])
def test_every_link_has_a_class(name) -> None:
    found = link_table(export_log(name))
    edges = Counter(e.kind for e in found.shape.build().edges)

    assert edges == {c.kind: c.count for c in found.classes}
    assert found.chips == found.shape.nodes == CAT[name].chip_count


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("trn1.32xlarge", 192),  # 4 x 96 / 2
        ("trn2.48xlarge", 512),  # 4 x 128
        ("trn2-ultraserver", 640),  # 4 x 128 + 2 x 64
        ("trn3-gen1-ultraserver", 1024),  # 2,048 / 2
    ],
)
def test_out_of_a_chip(name, expected) -> None:
    assert expected * GB == out_of_a_chip(export_log(name), "bandwidth")


def test_latency_is_printed_or_zero() -> None:
    account = export_log("trn2.48xlarge")

    assert (15e-6, 0, 0) == tuple(float(latency(account, "delay", x)) for x in ("efa-v3", "efa", None))
    assert 2 == sum("lower bounds" in a.says for a in account.assumptions)
