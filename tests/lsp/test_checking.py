"""Findings of a text in the editor, in two stages."""

from pathlib import Path

import pytest

from tests.lsp.conftest import CHIP, edited, session
from tests.support.rules import document, source
from trnspec.api import registry, validate
from trnspec.diagnostics import Diagnostic, Location, Severity
from trnspec.lsp.checking import StoppedError, carried, full, syntax
from trnspec.lsp.documents import OpenDocuments, canonical
from trnspec.yaml import Place

WRONG = ("2.9 TB/sec", "2.3 TB/sec")


@pytest.fixture
def texts():
    yield session().texts
    session().texts.clear()


def line_of(part: str, file: str = CHIP) -> int:
    """The line on which a part of the text of a file first is: lines move when the catalog gets facts."""
    text = Path(file).read_text(encoding="utf-8")
    return text[: text.index(part)].count("\n") + 1


def codes(diagnostics) -> set[str]:
    return {d.code for d in diagnostics}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (*WRONG, None),  # found by comparing documents, in the second stage
        ("2.9 TB/sec", "2.9 TB", "TRN112"),
        ("core: neuroncore-v3", "core: neuroncore-v33", "TRN201"),
        ("core: neuroncore-v3", "core: trainium1", "TRN202"),
        ("  dies:", "  died:", "TRN101"),
        ("value: 157.3 TFLOPS", "value: 150 TFLOPS", "TRN404"),
        ("spec:\n", "spec: {\n", "TRN004"),
    ],
)
def test_first_stage(old, new, code) -> None:
    """Syntax, types, references and the rules over single documents, of the text and not of the file."""
    assert ({code} if code else set()) == codes(edited(old, new).diagnostics)


@pytest.mark.slow
def test_resolved_findings_equal_validate(texts, tmp_path) -> None:
    texts[CHIP] = Path(CHIP).read_text(encoding="utf-8").replace(*WRONG)
    found = full(session(), [CHIP], lambda: False)
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "trainium2.yaml").write_text(texts[CHIP], encoding="utf-8")
    expected = validate([str(tmp_path / "chips" / "trainium2.yaml")]).report.diagnostics

    assert {("TRN402", line_of(WRONG[0]))} == {(d.code, d.where.place.line) for d in found}
    assert {(d.code, d.where.place, d.message) for d in expected} == {(d.code, d.where.place, d.message) for d in found}


def test_a_file_that_another_program_writes_counts_in_the_second_stage(tmp_path) -> None:
    chip, page = tmp_path / "chips" / "odd.yaml", tmp_path / "sources" / "page.yaml"
    for file in (chip, page):
        file.parent.mkdir()
    chip.write_text(document("Chip", "odd", "spec: {memory: {capacity: 1 GiB}}", "source: page"), encoding="utf-8")
    documents = OpenDocuments(registry())
    assert "TRN201" in codes(full(documents, [canonical(chip)], lambda: False))
    assert documents.surroundings(canonical(chip)) is documents.surroundings(canonical(chip))

    page.write_text(source("page", "2026-01-01"), encoding="utf-8")
    assert "TRN201" not in codes(full(documents, [canonical(chip)], lambda: False))


def test_it_stops(texts) -> None:
    texts[CHIP] = Path(CHIP).read_text(encoding="utf-8")
    with pytest.raises(StoppedError):
        full(session(), [CHIP], lambda: True)


def test_findings_of_the_second_stage_move_with_their_values(texts) -> None:
    before = edited(*WRONG)
    texts[CHIP] = before.document.text
    found = full(session(), [CHIP], lambda: False)
    texts.clear()
    text = Path(CHIP).read_text(encoding="utf-8")
    moved = edited(text, "# one\n# two\n" + text.replace(*WRONG))
    fixed = edited()

    def places(now):
        return {
            (d.code, d.where.place.line, d.where.place.column)
            for d in carried(found, before.document, now, session())
            if d.where.file == CHIP
        }

    column = next(line.index(WRONG[1]) for line in before.document.text.split("\n") if WRONG[1] in line) + 1
    assert {("TRN402", line_of(WRONG[0]), column)} == places(before)
    assert {("TRN402", line_of(WRONG[0]) + 2, column)} == places(moved)
    assert set() == places(fixed)


def test_findings_of_other_files_move_where_they_name_this_one() -> None:
    """Those that name only others are found again when the catalog is checked."""
    path, text = ("spec", "memory", "capacity"), Path(CHIP).read_text(encoding="utf-8")
    before, now = edited(), edited(text, f"# one\n{text}")
    here, other = Location(CHIP, before.document.place(path), path), Location("other.yaml", Place(7, 1), path)
    found = [Diagnostic("TRN402", Severity.ERROR, "", other, see=see) for see in ((other, here), (here,), (other,))]
    line = here.place.line + 1

    moved = carried(found, before.document, now, session())
    assert [[7, line], [line]] == [[see.place.line for see in each.see] for each in moved]


def test_before_the_catalog_is_read(texts) -> None:
    """Syntax and types: what needs no other document."""
    texts[CHIP] = Path(CHIP).read_text(encoding="utf-8").replace("2.9 TB/sec", "2.9 TB")

    assert {"TRN112"} == codes(syntax(session(), CHIP))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api_version: trnspec/v1\n", True),
        ("kind: Chip\n", True),
        ("version: 2\nmodels: []\n", False),
        ("kind: Deployment\napiVersion: v1\n", False),
        ("", False),
    ],
)
def test_other_yaml_files_are_left_alone(text, expected) -> None:
    assert expected == session().concerns(text)
