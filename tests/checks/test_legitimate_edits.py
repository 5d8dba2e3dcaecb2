"""Edits that change nothing, or add what is known: the rules report none of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trnspec.api import validate
from trnspec.loading.files import shipped

ANNOUNCED = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: trainium4, title: Announced, source: neuron-trn3-2025-12}
spec:
  generation: {accelerator: 5, training: 4}
  memory: {capacity: 288 GiB}
"""
"""A generation of which no peak rate is published."""

FOREIGN = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: acme-1, title: A chip of another publisher, source: acme-2026-01}
spec:
  launched: 2025-11
  peak: {dense: {fp8: ~900 TFLOPS}}
  memory: {capacity: 64 GiB, bandwidth: up to 2 TB/s}
  links: {link: neuronlink-v2, ports: {value: 6, derived: 2 x 3}}
"""

PAGE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: acme-2026-01, title: A data sheet}
spec: {publisher: Acme, as_of: 2026-01-15, rank: vendor-chip-page}
"""

ROUNDED = """\
claims:
  - at: spec.memory.bandwidth
    says: 0.8 TB/s
    source: neuron-trn1-2022-10
    verdict: rounded
    reason: Its second digit is rounded.
"""

EDITS = [
    # An integer with ambiguous zeros.
    ("chips/trainium2.yaml", "fp8: 1,299 TFLOPS", "fp8: 1,300 TFLOPS"),
    ("chips/trainium1.yaml", "fp32: {value: 47.5 TFLOPS,", "fp32: {value: 47.50 TFLOPS,"),
    # Other units and spellings.
    ("chips/trainium2.yaml", "fp8: 1,299 TFLOPS", "fp8: 1.299 PFLOPS"),
    ("chips/trainium1.yaml", "capacity: 32 GiB\n", "capacity: 32,768 MiB\n"),
    ("chips/trainium2.yaml", "bandwidth: 2.9 TB/sec", "bandwidth: 2,900 GB/s"),
    ("servers/trn2.48xlarge.yaml", 'memory: "2,048 GiB"', "memory: 2 TiB"),
    # Sources, places and notes of counts and words.
    ("chips/trainium2.yaml", "  memory_pool: 64\n", "  memory_pool: {value: 64, where: line 117}\n"),
    ("chips/trainium3.yaml", "cores: {core: neuroncore-v4, count: 8}", "cores: {core: neuroncore-v4, count: {value: 8, derived: 2 x 4}}"),
    ("servers/trn1.32xlarge.yaml", "  chips: {chip: trainium1, count: 16}", "  chips: {chip: trainium1, count: {value: 16, note: In one chassis.}}"),
    # A source that agrees, exactly or to its digits, and one with a verdict.
    ("chips/trainium2.yaml", "claims:\n", "claims:\n  - {at: spec.memory.bandwidth, says: ~3 TB/s, source: semianalysis-2024-12}\n"),
    ("chips/trainium1.yaml", "claims:\n", "claims:\n  - {at: spec.peak.dense.bf16, says: over 100 TFLOPS, source: thirdparty-trainium-overview, where: line 3}\n"),
    (
        "chips/trainium1.yaml",
        "claims:\n",
        ROUNDED,
    ),
    # A torus in other words.
    ("servers/trn1.32xlarge.yaml", "dimensions: [4, 4]", "dimensions: [2, 2, 2, 2]"),
]  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return Path(shutil.copytree(shipped(), tmp_path / "catalog"))


@pytest.mark.parametrize("index", range(len(EDITS)))
def test_edit_of_a_document(catalog, index):
    name, old, new = EDITS[index]
    file = catalog / name
    text = file.read_text(encoding="utf-8")

    assert old in text

    file.write_text(text.replace(old, new, 1), encoding="utf-8")

    assert [] == [(d.code, d.message) for d in validate([str(file)]).report.diagnostics]


def test_chips_of_which_little_is_known(tmp_path):
    for name, text in (("chips/trainium4", ANNOUNCED), ("chips/acme-1", FOREIGN), ("sources/acme-2026-01", PAGE)):
        file = tmp_path / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")

    assert [] == [(d.code, d.message) for d in validate([str(tmp_path)]).report.diagnostics]
