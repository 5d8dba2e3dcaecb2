"""``trnspec schema``: the schemas that editors use."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pytest
from jsonschema import Draft202012Validator

from tests.plugins.acme_kinds import install
from tests.support.programs import ROOT, Site
from trnspec.api import registry
from trnspec.model.json_schema import document_schema
from trnspec.yaml import read_file

KINDS = registry().kinds


@pytest.mark.parametrize("name", ["Chip", "chip", "ultraserver"])
def test_schema_of_a_kind(here, name) -> None:
    """It is the file in ``schemas/``."""
    done = here("schema", name)

    assert (0, "") == (done.status, done.err)
    assert (ROOT / "schemas" / "v1" / f"{name.lower()}.schema.json").read_text(encoding="utf-8") == done.out


@pytest.mark.parametrize("name", ["Chip", "source"])
def test_modeline(here, name) -> None:
    """It names a file, which is the schema."""
    line = here("schema", name, "--modeline").out.strip()
    start = "# yaml-language-server: $schema=file://"

    assert line.startswith(start)
    assert Path(unquote(line.removeprefix(start))).read_text(encoding="utf-8") == here("schema", name).out


def test_list(here) -> None:
    assert [[k.name, f"{k.folder}/"] for k in KINDS.values()] == [
        line.split() for line in here("schema").out.splitlines()
    ]


def test_all(here) -> None:
    done = here("schema", "--all", "made")
    files = {f.name: json.loads(f.read_text(encoding="utf-8")) for f in (here.folder / "made").iterdir()}

    assert (0, "", f"wrote {len(KINDS)} schemas to made\n") == (done.status, done.out, done.err)
    assert {f"{k.name.lower()}.schema.json": document_schema(k.name, k.spec) for k in KINDS.values()} == files


def test_kinds_of_plugins(tmp_path) -> None:
    """The schema of a kind of a plugin, and its fields by ``explain``."""
    site = Site(tmp_path / "site")
    install(site)
    schema = json.loads(site.run("schema", "rack").out)
    page = site.run("explain", "Rack.servers").out

    assert ("Rack", {"const": "Rack", "description": schema["description"]}) == (
        schema["title"],
        schema["properties"]["kind"],
    )
    assert ["servers.server*  name of a Server", "servers.count*  integer >= 1"] == [
        line.strip() for line in page.splitlines() if line.startswith("  servers.")
    ]


def test_combined(here) -> None:
    """It accepts the documents of the shipped catalog, and rejects what the schema of a kind rejects."""
    done = here("schema", "--combined")
    schema = json.loads(done.out)
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


def test_every_pattern_has_words() -> None:
    """An editor shows them, and not the regular expression."""

    def nodes(value):
        if isinstance(value, dict):
            yield value
            for each in value.values():
                yield from nodes(each)
        elif isinstance(value, list):
            for each in value:
                yield from nodes(each)

    patterns = [
        n for k in KINDS.values() for n in nodes(document_schema(k.name, k.spec)) if type(n.get("pattern")) is str
    ]

    assert patterns
    assert [] == [n["pattern"] for n in patterns if not n.get("errorMessage")]
    assert [] == [n["errorMessage"] for n in patterns if len(n["errorMessage"]) > 120]
