"""``trnspec validate``: what is checked, formats, options, settings, exit status."""

import io
import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.programs import MARKS, ROOT, SOUND, WRONG, Site, command, marks
from trnspec.api import validate


@pytest.fixture
def here(here_bad):
    return here_bad


def test_default_target_is_the_shipped_catalog(here) -> None:
    result = here("validate", "--format", "json")
    files = len(list((ROOT / "catalog").rglob("*.yaml")))

    assert (0, files) == (result.status, json.loads(result.out)["summary"]["files"])


@pytest.mark.parametrize(("text", "status"), [(SOUND, 0), (WRONG, 1), ("", 1), ("\0", 1)])
def test_standard_input(here, monkeypatch, text, status) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    result = here("validate", "-", "--format", "json")

    assert (status, "") == (result.status, result.err)
    assert ({"<stdin>"} if status else set()) == {d["file"] for d in json.loads(result.out)["diagnostics"]}


def test_endless_standard_input(tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            command("validate", "-", "--format", "json"), cwd=tmp_path, stdin=endless, capture_output=True, check=False
        )

    assert {("TRN012", None)} == marks(done.stdout.decode())


def test_junit(here) -> None:
    (here.folder / "bad" / "wire.yaml").write_text(SOUND.replace("chips", "Straße"), encoding="utf-8")
    text = here("validate", "bad", "--format", "junit").out

    assert text.isascii()
    assert "Straße" in "".join(ET.fromstring(text).itertext())


@pytest.mark.parametrize("kind", ["text", "json", "sarif", "github", "junit"])
@pytest.mark.parametrize(("path", "status"), [("wire.yaml", 0), ("bad", 1)])
def test_status_is_the_same_in_every_format(here, kind, path, status) -> None:
    assert status == here("validate", path, "--format", kind).status


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (["--select", "trn4,TRN102"], {"TRN102"}),
        (["--select", "TRN4", "--select", "TRN101"], {"TRN101"}),
        (["--ignore", "TRN1"], set()),
        (["--select", "TRN1", "--ignore", "TRN102"], {"TRN101"}),
    ],
)
def test_select_and_ignore(here, args, codes) -> None:
    result = here("validate", "bad", "--format", "json", *args)

    assert (codes, bool(codes)) == ({c for c, _ in marks(result.out)}, bool(result.status))


@pytest.mark.parametrize(("level", "status"), [("info", 0), ("warning", 1), ("ERROR", 1)])
def test_severity(here, level, status) -> None:
    result = here("validate", "bad", "--format", "json", "--severity", f"TRN1={level}")

    assert (status, {level.lower()}) == (result.status, {d["severity"] for d in json.loads(result.out)["diagnostics"]})


def test_catalog(here) -> None:
    (here.folder / "mine" / "links").mkdir(parents=True)
    (here.folder / "mine" / "links" / "wire.yaml").write_text(SOUND)
    chip = (ROOT / "catalog" / "chips" / "trainium1.yaml").read_text(encoding="utf-8")
    (here.folder / "bad" / "wire.yaml").unlink()
    (here.folder / "bad" / "trainium1.yaml").write_text(chip.replace("neuronlink-v2", "wire"), encoding="utf-8")
    args = ("validate", "bad/trainium1.yaml", "--select", "TRN201", "--format", "json")

    assert {"TRN201"} == {c for c, _ in marks(here(*args).out)}
    assert set() == marks(here(*args, "--catalog", "mine").out)


def test_table(here) -> None:
    result = here("validate", "--table")
    rows = {line.split()[0]: line for line in result.out.splitlines() if line}

    assert result.status == 0
    assert "16 x trainium1" in rows["trn1.32xlarge"]
    assert ["3.04", "512", "13.12"] == rows["trn1.32xlarge"].split()[-3:]
    assert "no findings" in result.out.splitlines()[-1]


SHIPPED = sum(validate().report.checked.values())
"""The documents of the shipped catalog; those of a list are several in one file."""


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
    more = here("validate", "--table", *options)

    assert (0, f"{SHIPPED + 1} documents checked, no findings.") == (more.status, more.out.splitlines()[-1])

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
