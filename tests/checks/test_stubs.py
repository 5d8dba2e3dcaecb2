"""trnspec.checks.stubs: sources that are referred to and do not exist, and the documents to be filled in."""

from pathlib import Path

import pytest

from tests.support.rules import KNOWN
from trnspec.checks.runner import check
from trnspec.checks.stubs import missing_source, stub_of
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.model.document_text import stub_text
from trnspec.model.source import Source
from trnspec.yaml import read_text

NAME = "acme-chip-2026-10"
MISSING = f"no Source is named '{NAME}'"


@pytest.mark.parametrize(
    ("code", "message", "hint", "name"),
    [
        ("TRN201", MISSING, "", NAME),
        ("TRN201", f"{MISSING}\nsecond line", "", NAME),
        ("TRN201", f"first line\n{MISSING}", "", ""),
        ("TRN202", MISSING, "", ""),
        ("TRN201", "no Chip is named 'acme'", "", ""),
        # Names that may be this one with a mistake; other digits are another date.
        ("TRN201", MISSING, "did you mean 'acme-chips-2026-10'?", ""),
        ("TRN201", MISSING, "did you mean 'other', 'acme-chips-2026-10'?", ""),
        ("TRN201", MISSING, "did you mean 'acme-chip-2026-10-b'?", ""),
        ("TRN201", MISSING, "did you mean 'acme-chip-2026-11'?", NAME),
        ("TRN201", MISSING, "did you mean 'neuron-2026-10'?", NAME),
    ],
)
def test_the_name_of_a_missing_source(code: str, message: str, hint: str, name: str) -> None:
    assert missing_source(code, message, hint) == name


def test_a_stub(tmp_path: Path) -> None:
    """In the folder of sources of the catalog; invalid at its empty fields, and at nothing else."""
    chip = tmp_path / "chips" / "acme.yaml"
    chip.parent.mkdir()
    found = stub_of(NAME, chip, KNOWN)

    assert found is not None
    file, text = found
    assert file == tmp_path / "sources" / f"{NAME}.yaml"
    comment, _, stub = text.partition("\n")
    assert comment == "# Not checked by anyone yet: this document is invalid until its empty fields are filled in."
    assert stub == stub_text("Source", Source, {"name": NAME, "title": None}, {})
    lines = text.splitlines()
    report = check([load_document(read_text(text, str(file)), KNOWN)], KNOWN, Settings(select=("TRN1", "TRN2"))).report
    assert {d.where.place.line for d in report.diagnostics if d.where.place} <= {
        number for number, line in enumerate(lines, 1) if "REQUIRED" in line
    }
    assert report.diagnostics


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "sources" / f"{NAME}.yaml"
    file.parent.mkdir()
    file.touch()

    assert stub_of(NAME, tmp_path / "chips" / "acme.yaml", KNOWN) is None
