"""trnspec.model.sourced: counts, words and dates with a source, a place and a formula of their own."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import beside, findings
from tests.support.tables import tables
from trnspec.api import registry
from trnspec.loading.pipeline import link, load_document
from trnspec.model.sourced import Origin, origin_of, sourced
from trnspec.yaml import read_text

DOCUMENT = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
spec:
  launched: {value: 2024-12, source: neuron-trn2-2024-12, where: line 2}
  cores: {core: neuroncore-v3, count: {value: 8, derived: 2 x 4, note: Two dies.}}
  peak: {dense: {bf16: 667 TFLOPS}}
  memory: {capacity: 96 GiB, technology: {value: HBM3, source: neuron-trn2-2024-12}}
  memory_pool: 16
"""


@given(st.integers(1, 10**9) | st.text(), st.text(min_size=1))
def test_value_is_that_of_the_plain_type(value, where):
    made = sourced(value, Origin(where=where))

    assert made == value
    assert hash(made) == hash(value)
    assert str(made) == str(value)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):  # our own bytes
        assert (again, origin_of(again)) == (value, Origin(where=where))


def test_plain_values_have_no_origin():
    assert [origin_of(value) for value in (16, "HBM", None, 2.5)] == [None] * 4


def example(text: str = DOCUMENT):
    return beside(text).named("example")


def test_origin_of_each_value():
    spec = example().spec

    assert (spec.launched, spec.cores.count, spec.memory.technology, spec.memory_pool) == ("2024-12", 8, "HBM3", 16)
    assert origin_of(spec.launched).source.name == "neuron-trn2-2024-12"
    assert origin_of(spec.launched).where == "line 2"
    assert origin_of(spec.cores.count).derived == "2 x 4"
    assert origin_of(spec.memory_pool) is None


@pytest.mark.parametrize(("old", "new", "code", "path"), tables(__file__)["errors"])
def test_errors(old, new, code, path):
    assert old in DOCUMENT
    reading = load_document(read_text(DOCUMENT.replace(old, new), "chips/example.yaml"), registry())
    context = [
        load_document(n.document, registry(), target=False) for n in beside() if n.kind in ("Source", "Chip", "Core")
    ]
    _, diagnostics = link([reading, *context])
    found = {(d.code, ".".join(map(str, d.where.path))) for d in diagnostics if "example" in d.where.file}

    assert {(code, path)} == found


@pytest.mark.parametrize(("formula", "reported"), [("2 x 4", False), ("2 x 5", True), ("two x 4", True)])
def test_formula_of_a_count(formula, reported):
    graph = beside(DOCUMENT.replace("2 x 4", formula))
    expected = ["value" if formula[0] == "2" else "derived"] if reported else []

    assert expected == [d.where.path[-1] for d in findings("TRN404", graph) if "example" in d.where.file]
