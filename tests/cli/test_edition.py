"""``trnspec edition``."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from tests.support.programs import ROOT, Here
from trnspec.catalog.versions.editions import verify
from trnspec.errors import EditionError


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    shutil.copytree(ROOT / "catalog", tmp_path / "copy", ignore=shutil.ignore_patterns("editions"))
    return Here(tmp_path, monkeypatch, capsys)


def edition(here: Here, *args: str):
    return here("edition", *args, "--catalog", "copy")


def test_freeze_list_verify(here) -> None:
    """From nothing to an edition that is found out when it is altered."""
    assert "There are no editions" in edition(here, "list").out
    assert "There are no editions" in edition(here, "verify").out

    frozen = edition(here, "freeze", "2026.11")
    file = here.folder / "copy" / "editions" / "2026.11.json.gz"
    made = verify(gzip.decompress(file.read_bytes()))

    assert frozen.status == 0
    assert f"{len(made.documents)} documents, sha256 {made.sha256}" in frozen.out
    assert edition(here, "list").out.startswith("2026.11 ")
    assert f"edition 2026.11: {len(made.documents)} documents, unaltered\n" == edition(here, "verify").out
    assert edition(here, "verify").status == 0
    assert edition(here, "freeze", "2026.11").status == 0

    text = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(text.replace(b"190 TFLOPS", b"191 TFLOPS")))
    result = edition(here, "verify", "2026.11")

    assert result.status == 1
    assert "altered: hash mismatch of Chip trainium1" in result.out

    file.unlink()

    result = edition(here, "verify")

    assert (1, "edition 2026.11 was released, but its file is missing\n") == (result.status, result.out)


def test_edition_ignores_formatting(here) -> None:
    """A comment more and a figure in its long form give the same bytes."""
    edition(here, "freeze", "2026.11")
    chip = here.folder / "copy" / "chips" / "trainium1.yaml"
    text = chip.read_text(encoding="utf-8")

    assert "    capacity: 32 GiB\n" in text

    chip.write_text(
        text.replace("    capacity: 32 GiB\n", "    capacity: {value: '32 GiB'}  # why not\n"), encoding="utf-8"
    )

    assert edition(here, "freeze", "2026.11").status == 0


def test_other_contents_need_another_name(here) -> None:
    edition(here, "freeze", "2026.11")
    chip = here.folder / "copy" / "chips" / "trainium1.yaml"
    chip.write_text(
        chip.read_text(encoding="utf-8").replace("title: AWS Trainium", "title: Trainium"), encoding="utf-8"
    )
    refused = edition(here, "freeze", "2026.11")

    assert (2, "") == (refused.status, refused.out)
    assert "use another name, such as 2026.11.1" in refused.err
    assert edition(here, "freeze", "2026.11.1").status == 0


def test_a_catalog_with_findings_is_not_frozen(here) -> None:
    chip = here.folder / "copy" / "chips" / "trainium1.yaml"
    chip.write_text(chip.read_text(encoding="utf-8").replace("bf16: 190 TFLOPS", "bf16: 210 TFLOPS"), encoding="utf-8")
    result = edition(here, "freeze", "2026.11")

    assert result.status == 1
    assert "Nothing was frozen" in result.out
    assert not (here.folder / "copy" / "editions").exists()


def test_an_edition_that_was_not_entered(here) -> None:
    edition(here, "freeze", "2026.11")
    (here.folder / "copy" / "editions" / "RELEASED").unlink()
    result = edition(here, "verify")

    assert result.status == 1
    assert "not in RELEASED" in result.out
    assert "not in RELEASED"[:16] in edition(here, "list").out


def test_json(here) -> None:
    edition(here, "freeze", "2026.11")
    data = json.loads(edition(here, "list", "--format", "json").out)

    assert ["2026.11"] == [e["name"] for e in data["editions"]]


def test_result_of_the_audit_of_pages(here) -> None:
    """It is a part of the edition: another number is an alteration."""
    pages = here.folder / "pages"
    pages.mkdir()
    (pages / "neuron-trainium-2024-02.txt").write_text("line\n" * 16 + "2 cores\n32 GiB of memory\n")

    edition(here, "freeze", "2026.11", "--pages", str(pages))
    file = here.folder / "copy" / "editions" / "2026.11.json.gz"
    text = gzip.decompress(file.read_bytes()).decode()
    audit = verify(text).audit
    counts = json.loads(here("audit", "--pages", str(pages), "--catalog", "copy", "--format", "json").out)

    assert audit == {"values": counts["values"], **counts["printed"]}
    assert 0 < audit["no"] < audit["values"]
    said = f"pages print {audit['values'] - audit['no']} of {audit['values']} values"
    assert said in edition(here, "verify").out
    with pytest.raises(EditionError, match="altered"):
        verify(text.replace(f'"no": {audit["no"]}', '"no": 0'))
