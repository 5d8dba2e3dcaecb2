"""``trnspec validate``: which catalogs are checked, and which are there for names alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.programs import MARKS, ROOT, SOUND, WRONG, Here, Site, marks
from trnspec.api import validate

SHIPPED = sum(validate().report.checked.values())
"""The documents of the shipped catalog; those of a list are several in one file."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch, capsys) -> Here:
    """The command line in a folder with a sound file; settings are not looked for above it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "wire.yaml").write_text(SOUND)
    return Here(tmp_path, monkeypatch, capsys)


def catalog_of(folder: Path, text: str) -> Path:
    """A catalog with one document in it."""
    (folder / "links").mkdir(parents=True)
    (folder / "links" / "wire.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("how", ["named", "configured", "both"])
def test_without_files_every_catalog_is_checked(here, how) -> None:
    catalog_of(here.folder / "mine", SOUND)
    if how != "named":
        (here.folder / "trnspec.toml").write_text('catalogs = ["mine"]')
    options = [] if how == "configured" else ["--catalog", "mine"]
    alone, more = here("validate", "--catalog", here.folder / "mine", "--format", "json"), here("validate", *options)
    files = len(list((ROOT / "catalog").rglob("*.yaml")))

    assert (0, f"{SHIPPED + 1} documents checked, no findings.\n") == (more.status, more.out)
    assert files + 1 == json.loads(alone.out)["summary"]["files"]
    assert f"{SHIPPED + 1} documents checked" in here("validate", "--table", *options).out

    (here.folder / "mine" / "links" / "wire.yaml").write_text(WRONG)
    result = here("validate", "--format", "json", *options)

    assert (1, MARKS) == (result.status, marks(result.out))


def test_with_files_they_alone_are_checked(here) -> None:
    """What pre-commit does: a catalog beside them is there for names, and its findings are not theirs."""
    catalog_of(here.folder / "mine", WRONG)
    (here.folder / "trnspec.toml").write_text('catalogs = ["mine"]')
    result = here("validate", "wire.yaml", "--catalog", "mine")

    assert (0, "1 document checked, no findings.\n", "") == (result.status, result.out, result.err)


def test_a_catalog_replaces_the_shipped_one(here) -> None:
    text = (ROOT / "catalog" / "links" / "efa.yaml").read_text()
    folder = catalog_of(here.folder / "mine", SOUND)
    (folder / "links" / "efa.yaml").write_text(text)

    assert set() == marks(here("validate", "--catalog", "mine", "--format", "json").out)

    (folder / "links" / "again.yaml").write_text(text)
    found = json.loads(here("validate", "--catalog", "mine", "--format", "json").out)["diagnostics"]

    assert {("mine/links/efa.yaml", "TRN204"), ("mine/links/again.yaml", "TRN205")} == {
        (d["file"], d["code"]) for d in found
    }


def test_catalogs_of_plugins_are_checked(tmp_path) -> None:
    site = Site(tmp_path / "site")
    folder = site.catalog("acme", {"links/wire.yaml": SOUND})

    assert f"{SHIPPED + 1} documents checked, no findings.\n" == site.run("validate").out
    assert f"{SHIPPED} documents checked, no findings.\n" == site.run("--no-plugins", "validate").out

    (folder / "links" / "wire.yaml").write_text(WRONG)
    result = site.run("validate", "--format", "json")

    assert (1, MARKS) == (result.status, marks(result.out))
