"""Explanations of plugins in ``trnspec audit``, as in ``trnspec validate``."""

from __future__ import annotations

import json

import pytest

from tests.support.programs import Site

EXPLAIN = """
from trnspec.checks.reconcile.hypotheses import Explanation

def moon(case):
    yield Explanation("moon", "the moon was full")
"""
SOURCE = (
    "api_version: trnspec/v1\nkind: Source\nmetadata: {name: acme-page, title: Acme}\n"
    "spec: {publisher: Acme, as_of: 2026-01, dating: not-before, rank: vendor-chip-page}\n"
)
CHIP = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: acme-1, title: Acme 1, source: acme-page}
spec:
  peak: {dense: {bf16: 400 TFLOPS}}
  memory: {capacity: 64 GiB}
"""
SERVER = """\
api_version: trnspec/v1
kind: Server
metadata: {name: acme-server, title: Acme server, source: acme-page}
spec:
  chips: {chip: acme-1, count: 8}
  stated: {memory: {capacity: 577 GiB}}
"""


@pytest.fixture
def site(tmp_path) -> Site:
    made = Site(tmp_path / "site")
    made.plugin("moon", "explanations=(moon,)", head=EXPLAIN)
    for name, text in {"sources/acme-page": SOURCE, "chips/acme-1": CHIP, "servers/acme-server": SERVER}.items():
        file = made.folder / "catalog" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return made


def causes(site, *before) -> dict[str, list[str]]:
    """What an audit of the catalog reports of each disagreement."""
    done = site.run(*before, "audit", "acme-server", "--catalog", "catalog", "--format", "json")
    found = json.loads(done.out)["disagreements"]

    assert (1, "") == (done.status, done.err)
    return {d["at"]: [c["sentence"] for c in d["causes"]] for d in found}


def test_explanations_are_reported(site) -> None:
    at = "spec.stated.memory.capacity"

    assert {at: ["the moon was full"]} == causes(site)
    assert {at: []} == causes(site, "--no-plugins")
