"""The audit of the shipped catalog shows every conflict that is known among the first five sources, and why."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.programs import written
from tests.support.rules import shipped
from trnspec.checks.reconcile.audit import Audit, audit
from trnspec.checks.reconcile.proportions import proportions
from trnspec.cli import group


@pytest.fixture(scope="module")
def shown() -> Audit:
    return audit(shipped())


# The known conflicts: document, a path the claim names, what it says, what explains it (of any of the hypotheses), verdict.
KNOWN = {
    "A1": ("trainium1", "bf16", "210 TFLOPS", "older-text", "superseded"),
    "A2": ("trainium1", "fp32", "52.5 TFLOPS", "older-text", "superseded"),
    "A3": ("trainium1", "fp32", "~47 TFLOPS", "truncation", "rounded"),
    "A4": ("trn1.32xlarge", "bf16", "3,360 TFLOPS", "older-claim", "superseded"),
    "A4, FP32": ("trn1.32xlarge", "fp32", "840 TFLOPS", "older-claim", "superseded"),
    "A5": ("trainium1", "memory.bandwidth", "820 GiB/sec", "decimal-unit", "rejected"),
    "A6": ("trn1.32xlarge", "memory.bandwidth", "13,120 GiB/sec", "decimal-unit", "rejected"),
    "A7": ("trainium1", "memory.capacity", "32 GB", "decimal-unit", "rejected"),
    "A7, server": ("trn1.32xlarge", "memory.capacity", "512 GB", "decimal-unit", "rejected"),
    "A11": ("trn2-ultraserver", "network.bandwidth", "3,200 Gbps", "part-for-whole", "rejected"),
    "A13": ("trn3-gen2-ultraserver", "memory.capacity", "20 TB", "decimal-unit", None),
    "A14": ("trn3-gen2-ultraserver", "fabric.bandwidth.both", "2,048 GiB/sec", "decimal-unit", "unresolved"),
    "A21, FP8": ("trn2.48xlarge", "fp8", "20 PFLOPS", "truncation", "superseded"),
    "A21, BF16": ("trn2.48xlarge", "bf16", "10 PFLOPS", "truncation", "superseded"),
    "A21, sparse": ("trn2.48xlarge", "sparse", "40 PFLOPS", "truncation", "superseded"),
    "A22": ("trn1.32xlarge", "fabric", "Yes", "word", "word"),
    "A22, small": ("trn1.2xlarge", "fabric", "N/A", "word", "word"),
    "A28": ("trainium1", "dma.bandwidth", "0.87 TB/s = 32 x 27.2 GB/s of neuroncore-v2", "coarse", "coarse"),
}


@pytest.mark.parametrize("id", KNOWN)
def test_a_known_conflict_is_shown_with_its_explanation(shown: Audit, id: str) -> None:
    name, at, says, cause, verdict = KNOWN[id]

    found = [
        d for d in shown.disagreements if d.name == name and at in d.at and says in {r.says for r in d.conflicting}
    ]

    assert found, f"{id} is not shown"
    assert any(cause in {c.id for c in d.causes} for d in found), [d.causes for d in found]
    assert verdict is None or verdict in {d.verdict for d in found}


@pytest.mark.parametrize(
    ("id", "name", "cause"),
    [
        ("A12", "network bandwidth per chip", "is one server's figure, 1 of 4"),
        ("A18, vCPUs", "vCPUs per trainium3", "not an error"),
        ("A18, memory", "host memory per trainium3", "not an error"),
        ("A19", "sparse over dense of trn2.48xlarge", "two gains, not one"),
        ("A20", "FP32 over BF16, dense", "counts engines other than the tensor engines"),
    ],
)
def test_a_known_proportion_is_shown_with_its_explanation(id: str, name: str, cause: str) -> None:
    found = [p for p in proportions(shipped()) if p.name == name]

    assert found, f"{id} is not shown"
    assert cause in found[0].cause


def test_an_adopted_count_has_its_own_source(shown: Audit) -> None:
    (found,) = (d for d in shown.disagreements if (d.name, d.at) == ("trainium2", "spec.dma.engines"))

    assert found.adopted is not None
    assert found.adopted.source == "neuron-trainium2-arch-2026-08"


def test_every_disagreement_is_recorded(shown: Audit) -> None:
    assert {d.verdict for d in shown.disagreements} >= {"superseded", "rejected"}
    assert not [d for d in shown.disagreements if d.verdict == "found"]


PAIR = {
    "sources/old.yaml": "kind: Source\nmetadata: {name: old, title: Old}\n"
    "spec: {publisher: Somebody, as_of: 2023-02-28, rank: vendor-guide}\n",
    "sources/new.yaml": "kind: Source\nmetadata: {name: new, title: New}\n"
    "spec: {publisher: Somebody, as_of: 2024-05, rank: vendor-guide}\n",
    "chips/part.yaml": "kind: Chip\nmetadata: {name: part, title: Part, source: new}\n"
    "spec: {peak: {dense: {bf16: 190 TFLOPS}}, memory: {capacity: 32 GiB}}\n"
    "claims:\n"
    "  - {at: spec.memory.bandwidth, says: 820 GB/s, source: new, where: line 7}\n"
    "  - {at: spec.memory.bandwidth, says: 820 GiB/s, source: old}\n",
}
"""A catalog in which nothing is adopted of what two sources say."""


def audited(folder: Path, files: dict[str, str], *options: str) -> Result:
    for name, text in files.items():
        written(folder / name, f"api_version: trnspec/v1\n{text}")
    return CliRunner().invoke(group, ["audit", "part", "--catalog", str(folder), *options])


def test_claims_that_exclude_each_other_where_nothing_is_adopted(tmp_path: Path) -> None:
    result = audited(tmp_path, PAIR)
    expected = """\
1 figure of 1 document: 2 values of 2 sources
      0 agree
      0 resolved
      0 unresolved
      1 not recorded  no document records the disagreement

part  memory.bandwidth
  adopted      nothing is adopted
  found        820 GiB/s against 820 GB/s  +7.4 %
               820 GiB/s: old, 2023-02-28
               820 GB/s: new, 2024-05, line 7
  rounding     cannot explain it
  cause        a decimal for a binary unit or the reverse: 820 GB/s was meant
  reason       neither claim has a verdict
"""

    assert expected == result.output
    assert 1 == result.exit_code


def test_a_part_of_the_catalog_can_be_audited() -> None:
    result = CliRunner().invoke(group, ["audit", "u-trn2x64"])

    assert result.exit_code == 0
    assert "trn2-ultraserver" in result.output
    assert "trainium1  " not in result.output
