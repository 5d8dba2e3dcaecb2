"""``trnspec schema``: the schemas that editors use."""

import json

import pytest
from jsonschema import Draft202012Validator

from tests.support.programs import ROOT
from trnspec.api import registry
from trnspec.model.json_schema import document_schema
from trnspec.yaml import read_file

KINDS = registry().kinds


@pytest.mark.parametrize("name", ["Chip", "chip", "ultraserver"])
def test_schema_of_a_kind(here, name) -> None:
    done = here("schema", name)

    assert (0, "") == (done.status, done.err)
    assert (ROOT / "schemas" / "v1" / f"{name.lower()}.schema.json").read_text(encoding="utf-8") == done.out


def test_list(here) -> None:
    assert [[k.name, f"{k.folder}/"] for k in KINDS.values()] == [
        line.split() for line in here("schema").out.splitlines()
    ]


def test_all(here) -> None:
    done = here("schema", "--all", "made")
    files = {f.name: json.loads(f.read_text(encoding="utf-8")) for f in (here.folder / "made").iterdir()}

    assert (0, "", f"wrote {len(KINDS)} schemas to made\n") == (done.status, done.out, done.err)
    assert {f"{k.name.lower()}.schema.json": document_schema(k.name, k.spec) for k in KINDS.values()} == files


def test_combined(here) -> None:
    """It accepts the documents of the shipped catalog, and rejects what the schema of a kind rejects."""
    done = here("schema", "--combined")
    schema = done.data
    validator = Draft202012Validator(schema)
    Draft202012Validator.check_schema(schema)

    assert (0, "") == (done.status, done.err)
    assert list(KINDS) == schema["properties"]["kind"]["enum"]
    for folder in ("chips", "servers", "sources", "clusters"):
        data = read_file(next((ROOT / "catalog" / folder).glob("*.yaml"))).data
        assert [] == list(validator.iter_errors(data))
        assert not validator.is_valid({**data, "spec": {**data["spec"], "wings": 2}})
        assert not validator.is_valid({**data, "kind": "Nothing"})
        assert not validator.is_valid({key: value for key, value in data.items() if key != "kind"})
