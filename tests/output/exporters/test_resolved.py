"""Documents as JSON."""

import json

import pytest

import trnspec
from tests.support.rules import document
from trnspec.output.exporters import export
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS

CAT = trnspec.load()


def resolved(name: str, catalog: trnspec.Catalog = CAT) -> dict:
    (made,) = json.loads(catalog[name].export("json").text)["documents"]
    return made


def figures(value: object, at: str = ""):
    """Every figure of a file with its path."""
    if isinstance(value, dict):
        if "printed" in value:
            yield at, value
            return
        for key, inner in value.items():
            yield from figures(inner, f"{at}.{key}".lstrip("."))


def test_references_are_replaced() -> None:
    made = resolved("trn2-ultraserver")
    server = made["spec"]["servers"]["server"]
    chip = server["spec"]["chips"]["chip"]

    assert ("Server", "trn2u.48xlarge", 4) == (server["kind"], server["name"], made["spec"]["servers"]["count"])
    assert ("Chip", "trainium2", 16) == (chip["kind"], chip["name"], server["spec"]["chips"]["count"])
    assert "neuroncore-v3" == chip["spec"]["cores"]["core"]["name"]
    assert "neuronlink-v3-z" == made["spec"]["between_servers"]["link"]["name"]


def test_resolved_figure_has_value_source_and_interval() -> None:
    assert {
        "value": 2_900_000_000_000,
        "unit": "B/s",
        "printed": "2.9 TB/sec",
        "interval": [2_850_000_000_000, 2_950_000_000_000],
        "scope": "per chip",
        "source": "neuron-trainium2-2026-08",
        "as_of": "2026-08-21",
    } == {k: v for k, v in resolved("trainium2")["spec"]["memory"]["bandwidth"].items() if k != "conflicting"}


def test_totals_are_computed() -> None:
    made = resolved("trn2-ultraserver")["totals"]

    assert (64, 512) == (made["chips"], made["cores"])
    memory = made["memory.capacity"]
    assert (6144 * 2**30, "B", "64 x 96 GiB of trainium2") == (memory["value"], memory["unit"], memory["derived"])
    for path in ("peak.dense.bf16", "memory.bandwidth", "sbuf"):
        assert float(CAT["trn2-ultraserver"].total(path)) == made[path]["value"]
    assert float(CAT["trn2u.48xlarge"].figure("network.bandwidth")) * 4 == made["network.bandwidth"]["value"]


@pytest.fixture(scope="module")
def everything() -> dict:
    return json.loads(CAT.export().text)


def test_values_equal_their_printed_quantities(everything) -> None:
    """In every figure of the file the value is the printed one in base units, within its own interval."""
    found = [(at, f) for d in everything["documents"] for at, f in figures({"spec": d["spec"]})]

    assert len(found) > 1000
    for at, figure in found:
        quantity = parse(figure["printed"])
        low, high = figure["interval"]
        assert float(quantity.value) == figure["value"], at
        assert UNITS.unit(figure["unit"]).factor == 1, at
        assert low <= figure["value"], at
        assert high is None or figure["value"] <= high, at


def test_every_source_that_is_named_is_reported(everything) -> None:
    def named(value: object):
        if isinstance(value, dict):
            if isinstance(value.get("source"), str):
                yield value["source"], value.get("as_of")
            for inner in value.values():
                yield from named(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from named(inner)

    cited = set(named(everything["documents"]))
    assert {name for name, _ in cited} == set(everything["sources"])
    assert all(as_of in (None, everything["sources"][name]["as_of"]) for name, as_of in cited)


def test_a_reference_that_leads_nowhere_stays_a_name() -> None:
    from trnspec.api import registry
    from trnspec.loading.pipeline import link, load_document
    from trnspec.yaml import read_text

    text = document("Server", "lost", "spec: {chips: {chip: nobody, count: 2}}")
    known = link([load_document(read_text(text, "lost.yaml"), registry())])[0]
    (made,) = json.loads(export("json", known.named("lost"), known).text)["documents"]

    assert ("nobody", False) == (made["spec"]["chips"]["chip"], "totals" in made)
