"""trnspec.loading.structure: strict as JSON is, every refusal with its path, and back to plain data."""

from typing import Any

import pytest
from cattrs import Converter

from tests.support.schema import Part, Sampler, normal, unplaced
from tests.support.tables import tables
from trnspec.api import registry, validate
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.forms.claims import one_for_each_source
from trnspec.loading.pipeline import load_document
from trnspec.loading.structure import StructureError, plain, structure
from trnspec.model.link import Lanes, Link
from trnspec.model.ref import Ref
from trnspec.model.reflection import shape_of
from trnspec.quantities.quantity import parse
from trnspec.yaml import read_file

TABLES = tables(__file__)

CATALOG = [*documents_in(shipped())]
HEAD: dict[str, Any] = {"api_version": "trnspec/v1", "metadata": {"name": "x", "title": "X"}}


def link(spec: Any, /, **more: Any) -> Any:
    data = {**HEAD, "kind": "Link", "spec": spec, **more}
    return structure("Link", Link, unplaced(data), data)


def sampler(**spec: Any) -> Any:
    data = {**HEAD, "kind": "Sampler", "spec": {"flag": True, "figure": "5 GB/s", **spec}}
    return structure("Sampler", Sampler, unplaced(data), data)


def refused(make: Any, *args: Any, **kwargs: Any) -> set[tuple[str, str]]:
    with pytest.raises(StructureError) as caught:
        make(*args, **kwargs)
    assert all(r.message in str(caught.value) for r in caught.value.rejections)
    return {(".".join(map(str, r.path)), r.message) for r in caught.value.rejections}


def test_a_document_becomes_a_node():
    claim = {"at": "spec.latency", "says": 14, "source": "page"}
    node = link({"connects": "chips", "lanes": {"count": 8, "rate": "32 Gbit/s"}, "other": {}}, claims=[claim])
    assert (node.kind, node.name, node.target, node.positions) == ("Link", "x", True, ())
    assert type(node.spec) is Link
    lanes = node.spec.lanes
    assert type(lanes) is Lanes
    assert (lanes.count, lanes.rate.value, lanes.rate.source) == (8, parse("32 Gbit/s"), None)
    assert (node.claims[0].says, node.claims[0].source) == (14, Ref("page"))
    assert node.document.file == "example.yaml"


def test_every_shape():
    spec = sampler(
        maybe=False,
        share=3,
        shares=[1, 2.5],
        least=-3,
        either=4,
        part={"size": 1, "inner": {"size": 2}},
        names={"a": "page"},
        lists={"a": ["x"], "b": []},
        nested=[[1], []],
        rates={"a": {"bf16": "1 TFLOPS"}},
        any="3x",
    ).spec
    assert spec.part == Part(size=1, inner=Part(size=2))
    assert (spec.share, type(spec.share)) == (3.0, float)
    assert (spec.shares, spec.nested, spec.lists) == ((1.0, 2.5), ((1,), ()), {"a": ("x",), "b": ()})
    assert (spec.maybe, spec.least, spec.either, spec.word) == (False, -3, 4, "first")
    assert spec.names == {"a": Ref("page")}
    assert spec.rates["a"].bf16.value == parse("1 TFLOPS")
    assert spec.any.value == parse("3x")


@pytest.mark.parametrize(("spec", "path"), TABLES["refusals_have_paths"], ids=str)
def test_refusals_have_paths(spec, path):
    assert {p for p, _ in refused(sampler, **spec)} == {f"spec.{path}"}


def test_every_refusal_is_reported_in_one_go():
    none = "null is not a value"
    assert refused(sampler, maybe=None, flag=None) == {
        ("spec.maybe", f"{none}: leave the key out"),
        ("spec.flag", none),
    }
    claim = {"at": "spec.latency", "says": None, "source": "page", "x": 1}
    found = refused(link, {"connects": "chip", "lanes": {}, "latency": "15 GB", "x": 1}, claims=[claim, 3], more={})
    assert {path for path, _ in found} == {
        "spec.connects", "spec.lanes.count", "spec.latency", "spec.x", "claims.0.says", "claims.0.x", "claims.1",
        "more",
    }  # fmt: skip
    assert ("spec.lanes.count", "count is missing") in found
    assert ("spec.connects", "'chip' is not one of chips, servers") in found
    assert ("more", "more is not a key of a document") in found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"api_version": "trnspec/v2"}, {("api_version", "api_version is not trnspec/v1")}),
        ({"kind": "Chip"}, {("kind", "kind is not Link")}),
        ({"kind": None}, {("kind", "kind is not Link")}),
        ({"metadata": None}, {("metadata", "None is not a mapping")}),
        ({"metadata": {}}, {("metadata.name", "name is missing"), ("metadata.title", "title is missing")}),
        ({"metadata": {"name": "x", "title": "\x1b"}}, {("metadata.title", "'\\x1b' holds a control character")}),
        ({"spec": []}, {("spec", "[] is not a mapping")}),
        ({"spec": {"connects": "chips", "lanes": {"count": "8"}}}, {("spec.lanes.count", "'8' is not a whole number")}),
        ({"spec": {"connects": "chips", "latency": 15}}, {("spec.latency", "a number alone has no unit")}),
        ({"claims": None}, {("claims", "None is not a list")}),
        ({"claims": {}}, {("claims", "{} is not a list")}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_the_envelope(change, expected):
    assert refused(link, {"connects": "chips"}, **change) == expected


@pytest.mark.parametrize("file", CATALOG, ids=lambda f: f.stem)
def test_every_catalog_file_comes_back(file):
    """With a claim for each source, where a claim of the file names several."""
    document = one_for_each_source(read_file(file))
    assert document.data is not None
    node = load_document(read_file(file), registry()).node
    assert node is not None
    assert normal(node.kind, plain(node)) == normal(node.kind, document.data)


def test_cattrs_structures_every_part_of_a_valid_file(monkeypatch, tmp_path) -> None:
    """Of a document without problems as of any other: there is no second way from data to classes."""
    structured = []
    of_cattrs = Converter.structure
    monkeypatch.setattr(
        Converter, "structure", lambda self, *given: structured.append(given) or of_cattrs(self, *given)
    )
    # Shipped documents are parsed once in a process of tests.
    file = tmp_path / "trainium2.yaml"
    file.write_text((shipped() / "chips" / "trainium2.yaml").read_text("utf-8") + "# a copy\n", "utf-8")
    checked = validate(file)

    assert not checked.report.diagnostics
    spec, document = checked.graph.nodes["trainium2"].spec, checked.graph.nodes["trainium2"].document.data
    assert any(data is document["spec"] and shape is shape_of(type(spec)) for data, shape in structured)
