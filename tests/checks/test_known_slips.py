"""Slips that no rule reported once, each with the rule that reports it: a place, what is written there, and the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mutations import Change, changed, findings
from trnspec.api import graph as load
from trnspec.api import registry

NVIDIA = Path(__file__).parents[2] / "plugins/trnspec-nvidia/src/trnspec_nvidia/catalog"

SLIPS = [
    # Figures of records and of other pages.
    ("trn1.32xlarge", "spec.other.network_card_peak", "200.0 Gbps", "TRN404"),
    ("trn1.32xlarge", "spec.other.network_card_baseline", "50.0 Gbps", "TRN404"),
    ("trn2.48xlarge", "spec.other.efa_per_rank_lnc2", "25 Gbps", "TRN404"),
    ("trn2.48xlarge", "spec.other.efa_per_rank_lnc1", "50 Gbps", "TRN404"),
    ("trainium2", "spec.other.efa_share", "100 Gbps", "TRN404"),
    ("trainium3", "spec.other.links_within_server", "320 GB/s", "TRN404"),
    ("trainium3", "spec.other.links_between_servers", "256 GB/s", "TRN404"),
    ("trainium3", "spec.other.links_between_racks", "256 GB/s", "TRN404"),
    ("trainium3", "spec.peak.sparse.fp16", "2,819 TFLOPS", "TRN608"),
    ("trn1.2xlarge", "spec.network.baseline", "400.0 Gbps", "TRN609"),
    ("trn2.48xlarge", "spec.network.storage_iops", "206,000 IOPS", "TRN609"),
    ("trn1.2xlarge", "spec.network.storage", "2,000 Mbps", "TRN609"),
    # Rows of other generations.
    ("trainium2", "spec.generation.accelerator", 4, "TRN610"),
    ("trainium2", "spec.links.link", "neuronlink-v4", "TRN504"),
    ("trainium3", "spec.links.link", "neuronlink-v3", "TRN504"),
    ("trn2.48xlarge", "spec.fabric.link", "neuronlink-v4", "TRN504"),
    ("neuronlink-v2", "spec.version", "v3", "TRN207"),
    ("neuroncore-v2", "spec.engines.vector.clock", "0.96 GHz", "TRN404"),
    ("neuroncore-v3", "spec.engines.vector.clock", "1.4 GHz", "TRN404"),
    ("neuroncore-v2", "spec.engines.scalar.clock", "2.8 GHz", "TRN404"),
    ("trn2u.48xlarge", "spec.family.name", "trn1", "TRN206"),
    ("neuroncore-v3", "spec.other.gpsimd_dma_bandwidth", "153 GB/s", "TRN404"),
    # Units, counts and directions.
    ("trn2.48xlarge", "spec.local_storage", "7,600 GiB", "TRN611"),
    ("trainium2", "spec.dma.host_engines", 2, "TRN314"),
    ("trainium1", "spec.dma.host_engines", 4, "TRN314"),
    ("trainium1", "spec.links.bandwidth.both", "768 GB/s", "TRN402"),
    ("trn2-ultraserver", "spec.stated.peak.dense.fp8", "80 PFLOPS", "TRN402"),
    ("trn3-gen2-ultraserver", "spec.fabric.bandwidth.both", "1,024 GB/s", "TRN404"),
    # Dates and sources.
    ("neuron-trainium2-2026-08", "spec.as_of", "2027-02", "TRN307"),
    ("neuron-trn1-2023-02", "spec.as_of", "2023-12-24", "TRN307"),
    ("neuron-trn1-2023-02", "spec.as_of", "2026-09", "TRN308"),
    ("neuron-trn2-2026-08", "spec.as_of", "2022-01", "TRN307"),
    ("trainium1", "spec.launched", "2012-10", "TRN310"),
    ("trainium1", "spec.launched", "2026-10", "TRN310"),
    ("trainium2", "spec.launched", "2014-12-03", "TRN610"),
    ("trainium3", "spec.launched", "2024-11", "TRN610"),
    ("trainium1", "spec.launched", "1922-10", "TRN306"),
    ("trainium1", "spec.launched", "2022-02-30", "TRN306"),
    # Dimensions of models.
    ("llama-3.3-70b", "spec.context", 262144, "TRN408"),
    ("llama-3-70b", "spec.layers", 64, "TRN408"),
    ("deepseek-v3", "spec.experts.count", 128, "TRN405"),
    ("deepseek-v3", "spec.experts.active", 16, "TRN405"),
    ("kimi-k2", "spec.context", 262144, "TRN303"),
    ("mpt-7b", "spec.attention.head_size", 96, "TRN409"),
    ("qwen3-vl-4b", "spec.context", 131072, "TRN409"),
    ("gpt-oss-120b", "spec.attention.windowed", 17, "TRN410"),
    ("gpt-145.6b", "spec.hidden", 6144, "TRN405"),
    ("mixtral-8x7b", "spec.context", 32786, "TRN410"),
    # Names.
    ("trn3pd98.3xlarge", "spec.chips.chip", "trainium2", "TRN206"),
]

OTHERS = [
    ("h100-sxm", "spec.links.bandwidth.both", "900 TB/s", "TRN402"),
    ("h100-sxm", "spec.links.link", "nvlink-3", "TRN504"),
    ("h200", "spec.peak.sparse.bf16", "2,500 TFLOPS", "TRN608"),
    ("b200", "spec.links.bandwidth.both", "1.8 GB/s", "TRN402"),
    ("nvlink-4", "spec.bandwidth.both", "25 GB/s", "TRN402"),
    ("h200", "spec.other.host_bandwidth", "64 GB/s", "TRN404"),
    ("dgx-b300", "spec.other.fabric_bandwidth", "7.2 TB/s", "TRN404"),
    ("gb200-nvl72", "spec.other.fabric_bandwidth", "13 TB/s", "TRN404"),
    ("hgx-b200", "spec.other.network_bandwidth", "0.4 TB/s", "TRN404"),
]


@pytest.fixture(scope="module")
def shipped():
    return load()


@pytest.fixture(scope="module")
def nvidia():
    return load([str(NVIDIA)])


def _reported(graph, name, path, value, code) -> list[str]:
    steps = tuple(path.split("."))
    made = changed(graph, Change("slip", name, ((steps, value),), ("",)))
    rules = [rule for rule in registry().rules if rule.code.id == code]

    before, after = ([d.code for d in findings(g, rules) if d.code == code] for g in (graph, made))

    assert before == []

    return after


@pytest.mark.parametrize(("name", "path", "value", "code"), SLIPS)
def test_slip_is_reported(shipped, name, path, value, code):
    assert code in _reported(shipped, name, path, value, code)


@pytest.mark.parametrize(("name", "path", "value", "code"), OTHERS)
def test_slip_in_a_plugin_is_reported(nvidia, name, path, value, code):
    assert code in _reported(nvidia, name, path, value, code)
