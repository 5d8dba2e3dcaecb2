"""trnspec.model.json_schema: the schemas are standard ones, they are up to date, and the catalog is valid under them."""

import json
import os
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen, make_class
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from tests.support.schema import KINDS, texts
from trnspec.api import registry
from trnspec.errors import QuantityError
from trnspec.loading.files import documents_in, shipped
from trnspec.model.fields import AnyFigure, Bandwidth
from trnspec.model.json_schema import DIALECT, any_pattern, document_schema
from trnspec.model.reflection import field_docs
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS, Dimension
from trnspec.yaml import read_file

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = sorted((ROOT / "schemas" / "v1").glob("*.schema.json"))
CATALOG = sorted((ROOT / "catalog").rglob("*.yaml"))
EACH = pytest.mark.parametrize("kind", KINDS)


def committed(kind: str) -> dict[str, Any]:
    return json.loads((ROOT / "schemas" / "v1" / f"{kind.lower()}.schema.json").read_text("utf-8"))


def test_the_committed_schemas_are_those_that_are_generated(monkeypatch):
    """Byte for byte; ``make docs`` writes them, with that of the rows of ``eval accuracy``."""
    monkeypatch.syspath_prepend(ROOT / "docs")  # as where it is run as a program
    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))["files"]()
    schemas = {file: text for file, text in made.items() if file.suffix == ".json"}
    names = {*registry().kinds, "accuracy"}
    assert {file.name for file in schemas} == {f"{name.lower()}.schema.json" for name in names}
    assert {file.name for file in SCHEMAS} - {file.name for file in schemas} == {"report.schema.json"}
    assert {file: file.read_text("utf-8") for file in schemas} == schemas


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda f: f.name)
def test_every_schema_is_valid_under_the_metaschema(file):
    schema = json.loads(file.read_text("utf-8"))
    assert schema["$schema"] == DIALECT == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("file", CATALOG, ids=lambda f: f.stem)
def test_every_catalog_file_is_valid_under_its_committed_schema(file):
    """With plain jsonschema, as any other program would do it, and as the first line says to editors."""
    document = read_file(file)
    assert document.data is not None
    schema = committed(str(document.data["kind"]))
    errors = [(list(e.absolute_path), e.message) for e in Draft202012Validator(schema).iter_errors(document.data)]
    assert errors == []
    first = document.text.split("\n", 1)[0]
    start = "# yaml-language-server: $schema="
    assert first.startswith(start)
    named = Path(os.path.normpath(file.parent / first.removeprefix(start)))
    assert named == ROOT / "schemas" / "v1" / f"{str(document.data['kind']).lower()}.schema.json"


def test_the_catalog_is_the_shipped_one_and_has_every_kind():
    assert sorted(documents_in(shipped())) == CATALOG
    kinds = {str((read_file(f).data or {})["kind"]) for f in CATALOG}
    # Scenarios are questions of users about the catalog; prices and fits are items of lists.
    assert kinds == set(registry().kinds) - {"Scenarios", "Price", "Calibration"}
    assert {f.parent.name for f in CATALOG} == {k.folder for k in registry().kinds.values()} - {"scenarios"}


@EACH
def test_every_mapping_with_known_keys_is_closed_and_described(kind):
    schema = document_schema(kind, KINDS[kind])
    assert schema["description"]
    for name, definition in schema["$defs"].items():
        assert definition["description"], name
        for part in (definition, *definition.get("anyOf", ())):
            if "properties" in part:
                assert part["additionalProperties"] is False
                assert set(part["required"]) <= set(part["properties"])
                assert all(p["description"] for p in part["properties"].values())


@EACH
def test_every_definition_is_used(kind):
    schema = document_schema(kind, KINDS[kind])
    text = json.dumps(schema)
    assert {name for name in schema["$defs"] if f'"#/$defs/{name}"' not in text} == set()
    assert list(schema["$defs"]) == sorted(schema["$defs"])


def test_two_classes_of_one_name_do_not_take_each_others_place():
    """A plugin may well have a class that is called as one of ours is."""
    one, two = (make_class("Same", {name: field(type=int)}, frozen=True, kw_only=True) for name in ("left", "right"))
    spec = make_class("Both", {"a": field(type=one), "b": field(type=two)}, frozen=True, kw_only=True)
    schema = document_schema("Both", spec)
    head = {"api_version": "trnspec/v1", "kind": "Both", "metadata": {"name": "x", "title": "X"}}
    valid = Draft202012Validator(schema).is_valid
    assert valid({**head, "spec": {"a": {"left": 1}, "b": {"right": 1}}})
    assert not valid({**head, "spec": {"a": {"left": 1}, "b": {"left": 1}}})


@frozen(kw_only=True)
class Explained:
    """A class whose first sentence
    has two lines.

    And more.

    Attributes:
        short: Short.
        long: Long, in
            two lines. Example: 5
            GB/s
        odd: It has: a colon. And two sentences. Example: a: b
        bare: Example-like words are no example.

    Something else:
        other: Not an attribute.
    """  # it has two lines  # noqa: D205  # it has two lines

    short: str
    long: Bandwidth
    odd: str
    bare: Mapping[str, AnyFigure] = field(factory=dict)


def test_attribute_descriptions_from_docstrings():
    assert field_docs(Explained) == {
        "short": ("Short.", None),
        "long": ("Long, in two lines.", "5 GB/s"),
        "odd": ("It has: a colon. And two sentences.", "a: b"),
        "bare": ("Example-like words are no example.", None),
    }
    schema = document_schema("Explained", Explained)
    assert schema["description"] == "A class whose first sentence has two lines."
    assert schema["properties"]["kind"]["description"] == schema["description"]


@settings(max_examples=60, deadline=None)
@given(texts(any_pattern()))
def test_any_pattern_matches_only_figures(text):
    assert parse(text).text == text


@pytest.mark.parametrize("dimension", Dimension, ids=lambda d: d.name)
def test_any_pattern_accepts_units_and_rejects_other_text(dimension):
    valid = Draft202012Validator({"type": "string", "pattern": any_pattern()}).is_valid
    for unit in UNITS.spellings(dimension):
        assert valid(f"5 {unit}")
        for wrong in (f"5 {unit}\n", f" 5 {unit}", f"5 {unit} ", f"x5 {unit}", f"5  {unit}"):
            assert not valid(wrong)
            with pytest.raises(QuantityError):
                parse(wrong)
