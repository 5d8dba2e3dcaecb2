"""``trnspec edition``."""

import gzip

import pytest

from trnspec.catalog.versions.editions import verify
from trnspec.errors import EditionError


@pytest.fixture
def edition(here, edited):
    """Runs ``trnspec edition`` on a copy of the catalog without editions."""
    edited()
    return lambda *args: here("edition", *args, "--catalog", "mine")


@pytest.mark.slow
def test_freeze_list_verify(here, edition) -> None:
    assert "There are no editions" in edition("list").out
    assert "There are no editions" in edition("verify").out

    frozen = edition("freeze", "2026.11")
    file = here.folder / "mine" / "editions" / "2026.11.json.gz"
    made = verify(gzip.decompress(file.read_bytes()))

    assert frozen.status == 0
    assert f"{len(made.documents)} documents, sha256 {made.sha256}" in frozen.out
    assert "\n2026.11  " in edition("list").out
    assert f"edition 2026.11: {len(made.documents)} documents, unaltered\n" == edition("verify").out
    assert edition("verify").status == 0
    assert edition("freeze", "2026.11").status == 0

    text = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(text.replace(b"190 TFLOPS", b"191 TFLOPS")))
    result = edition("verify", "2026.11")

    assert result.status == 1
    assert "altered: hash mismatch of Chip trainium1" in result.out

    file.unlink()

    result = edition("verify")

    assert (1, "edition 2026.11 was released, but its file is missing\n") == (result.status, result.out)


def test_a_catalog_with_findings_is_not_frozen(here, edition, edited) -> None:
    edited("chips/trainium1", "bf16: 190 TFLOPS", "bf16: 210 TFLOPS")
    result = edition("freeze", "2026.11")

    assert result.status == 1
    assert "Nothing was frozen" in result.out
    assert not (here.folder / "mine" / "editions").exists()


@pytest.mark.slow
def test_result_of_the_audit_of_pages(here, edition) -> None:
    pages = here.folder / "pages"
    pages.mkdir()
    (pages / "neuron-trainium-2024-02.txt").write_text("line\n" * 16 + "2 cores\n32 GiB of memory\n")

    edition("freeze", "2026.11", "--pages", str(pages))
    file = here.folder / "mine" / "editions" / "2026.11.json.gz"
    text = gzip.decompress(file.read_bytes()).decode()
    audit = verify(text).audit
    counts = here("audit", "--pages", str(pages), "--catalog", "mine", "--format", "json").data

    assert audit == {"values": counts["values"], **counts["printed"]}
    assert 0 < audit["no"] < audit["values"]
    said = f"pages print {audit['values'] - audit['no']} of {audit['values']} values"
    assert said in edition("verify").out
    with pytest.raises(EditionError, match="altered"):
        verify(text.replace(f'"no": {audit["no"]}', '"no": 0'))


@pytest.mark.slow
def test_an_edition_that_was_not_entered(here, edition) -> None:
    edition("freeze", "2026.11")
    (here.folder / "mine" / "editions" / "RELEASED").unlink()
    result = edition("verify")

    assert result.status == 1
    assert "not in RELEASED" in result.out
    assert "not in RELEASED"[:16] in edition("list").out
