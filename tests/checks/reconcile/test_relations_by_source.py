"""trnspec.checks.reconcile.relations: what one source says of totals and of their parts."""

from __future__ import annotations

import pytest

from tests.support.rules import beside, shipped
from trnspec.checks.reconcile.relations import sums_by_source

PAGE = """\
# file: sources/a-page.yaml
api_version: trnspec/v1
kind: Source
metadata: {name: a-page, title: A page, aliases: [the-page]}
spec: {publisher: Somebody, as_of: 2023-02-28, rank: third-party}
# file: chips/part.yaml
api_version: trnspec/v1
kind: Chip
metadata: {name: part, title: Part, source: SOURCE}
spec:
  peak: {dense: {bf16: 210 TFLOPS}}
  memory: {capacity: 32 GiB}
# file: servers/whole.yaml
api_version: trnspec/v1
kind: Server
metadata: {name: whole, title: Whole, source: neuron-trainium-2026-08}
spec:
  chips: {chip: part, count: 16}
claims:
  - {at: spec.stated.peak.dense.bf16, says: "3,360 TFLOPS", source: SOURCE}
"""


@pytest.mark.parametrize("source", ["a-page", "the-page"])
def test_the_view_of_a_source(source):
    """What a page says of chip and server is checked against each other, by whatever name it is referred to."""
    found = sums_by_source(beside(PAGE.replace("SOURCE", source)))["a-page"]

    assert [str(r.terms[0]) for r in found] == ["16 x 210 TFLOPS of part"]
    assert [str(r.total.value) for r in found] == ["3,360 TFLOPS"]
    assert found[0].holds


def test_view_omits_figures_of_other_sources():
    part = PAGE.replace("source: SOURCE}\nspec", "source: neuron-trn1-2023-02}\nspec")

    assert sums_by_source(beside(part.replace("SOURCE", "a-page"))).get("a-page", []) == []


def test_an_old_page_that_closes():
    """16 x 210 = 3,360 and 16 x 52.5 = 840: the page of 2023-02 is outdated and consistent."""
    sums = {(str(r.total.value), str(r.terms[0])): r.holds for r in sums_by_source(shipped())["neuron-trn1-2023-02"]}

    assert sums["3,360 TFLOPS", "16 x 210 TFLOPS of trainium1"]
    assert sums["840 TFLOPS", "16 x 52.5 TFLOPS of trainium1"]


def test_a_page_that_does_not_close():
    """The page of 2024-12 gives an UltraServer the EFA of one server."""
    sums = {(str(r.total.value), str(r.terms[0])): r.holds for r in sums_by_source(shipped())["neuron-trn2-2024-12"]}

    assert [v for (total, _), v in sums.items() if total == "3,200 Gbps"] == [False]
