"""trnspec.graph.products: the chips that a document or the name of a source is about."""

from __future__ import annotations

import pytest

from tests.support.rules import shipped
from trnspec.graph.products import about, chips_of


@pytest.mark.parametrize(
    ("name", "chips"),
    [
        ("trainium2", {"trainium2"}),
        ("neuroncore-v2", {"trainium1"}),
        ("neuroncore-v3", {"trainium2"}),
        ("trn1.32xlarge", {"trainium1"}),
        ("trn2-ultraserver", {"trainium2"}),
        ("trn3-gen2-ultraserver", {"trainium3"}),
        ("neuronlink-v3", {"trainium2"}),
        ("trn1-ultracluster", set()),
        ("neuron-trn1-2023-02", set()),
    ],
)
def test_chips_of(name, chips) -> None:
    graph = shipped()

    assert chips == chips_of(graph, graph.named(name))


@pytest.mark.parametrize(
    ("source", "chips"),
    [
        ("neuron-trn1-2023-02", {"trainium1"}),
        ("neuron-trn2-2024-12", {"trainium2"}),
        ("a-trn2u-page", {"trainium2"}),
        ("neuron-trainium3-2025-12", {"trainium3"}),
        ("trn1-and-trn2", {"trainium1", "trainium2"}),
        ("neuron-core-v3-2026-08", {"trainium2"}),
        ("neuron-figure-neuroncore-v4-overview-2026-08", {"trainium3"}),
        ("neuron-core-v1-2026-08", set()),
        ("a-core-v30-page", set()),
        ("ec2-api-moto-5.2.1", set()),
    ],
)
def test_about(source, chips) -> None:
    assert chips == about(shipped(), source)
