"""trnspec.loading.forms.fits: lists of fits as Calibration documents, and back."""

from pathlib import Path

import pytest

from tests.support.programs import ROOT, git, written
from tests.support.rules import KNOWN
from trnspec.api import validate
from trnspec.loading.files import documents_in
from trnspec.loading.forms.fits import fits_text, list_schema
from trnspec.loading.pipeline import load_document
from trnspec.loading.structure import plain
from trnspec.model.document_text import document_text
from trnspec.yaml import read_file, read_text

LISTS = sorted(f for root in ROOT.glob("**/catalog/calibrations") for f in documents_in(root) if "/." not in str(f))
LIST = ROOT / "catalog/calibrations/trainium2-nxd-inference-calibrations.yaml"
TEXT = LIST.read_text(encoding="utf-8")
DENSE, EXPERTS = (f"trainium2-nxd-inference-2026-{models}-inference" for models in ("dense", "experts"))


def alone(part) -> str:
    """A calibration of a list as a document of its own."""
    data = part.document.data
    schema = "../../schemas/v1/calibration.schema.json"
    return document_text("Calibration", data["metadata"], data["spec"], schema)


@pytest.mark.parametrize("file", LISTS, ids=lambda f: f.stem)
def test_shipped_lists_are_as_written(file) -> None:
    """The documents that a list is read as are written as the same list; each is valid alone, and states the same."""
    result = load_document(read_file(str(file)), KNOWN)
    schema = result.document.text.partition("$schema=")[2].partition("\n")[0]

    assert result.document.text == fits_text([part.document.data for part in result.parts], schema)
    assert () == result.problems
    for part in result.parts:
        assert plain(part.node) == plain(load_document(read_text(alone(part)), KNOWN).node)


def test_values_of_the_list_and_of_a_fit() -> None:
    """A fit has the values of the list that it does not state, and of a prior its values."""
    dense, experts = (part.node for part in load_document(read_file(str(LIST)), KNOWN).parts)

    assert (dense.name, dense.metadata.title, dense.metadata.source.name) == (
        DENSE, "NxD Inference, inference", "neuronstuff-48c4bc5",
    )  # fmt: skip
    assert [n.spec.software for n in (dense, experts)] == ["NxD Inference", "NxD Inference and Optimum Neuron"]
    assert dense.spec.prior.values == experts.spec.prior.values
    assert dense.spec.prior.learned != experts.spec.prior.learned


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("models: dense", "models: dens", [("TRN104", 31)]),
        ("      models: dense", "      models: dense\n      unknown: 1", [("TRN101", 32)]),
        ("      software: NxD Inference\n", "", [("TRN102", 28)]),  # neither the fit nor the list states it
        ('  era: "2026"', "  era: [a]", [("TRN103", 12)]),  # one value of the text, of two documents
        (EXPERTS, DENSE, [("TRN204", 91)]),
        ("name: trainium2-nxd-inference-calibrations", "name: another", [("TRN205", 5)]),
    ],
)
def test_findings_are_at_the_values_of_the_list(tmp_path: Path, old, new, expected) -> None:
    written(tmp_path / "calibrations" / LIST.name, TEXT.replace(old, new, 1))

    found = validate([tmp_path]).report.diagnostics

    assert [(d.code, d.where.place.line) for d in found] == expected


@pytest.fixture
def documents(here):
    """A git repository with the calibrations of the list as documents of their own."""
    folder = here.folder / "calibrations"
    folder.mkdir()
    for part in load_document(read_file(str(LIST)), KNOWN).parts:
        (folder / f"{part.name}.yaml").write_text(alone(part), encoding="utf-8")
    git(here.folder, "init", "-q")
    git(here.folder, "add", ".")
    git(here.folder, "commit", "-qm", "fits")
    return folder


def test_fix_makes_lists_of_documents(here, documents) -> None:
    done = here("fix", "calibrations")

    assert (0, "") == (done.status, done.err)
    assert {LIST.name: TEXT} == {f.name: f.read_text(encoding="utf-8") for f in documents.iterdir()}


def test_fix_leaves_a_title_that_a_list_cannot_have(here, documents) -> None:
    file = documents / f"{DENSE}.yaml"
    file.write_text(file.read_text().replace('"NxD Inference, inference"', "Mine"))
    git(here.folder, "commit", "-qam", "b")

    here("fix", "calibrations")

    assert {f"{DENSE}.yaml", f"{EXPERTS}.yaml"} == {f.name for f in documents.iterdir()}


def test_schema_of_a_list() -> None:
    found = list_schema("# yaml-language-server: $schema=../v1/calibration.schema.json\n")
    assert found == "../v1/calibrationlist.schema.json"
    assert not list_schema("api_version: trnspec/v1\n")
