"""One fault is one finding, at its place: what follows from it is left out."""

import shutil
from pathlib import Path

import pytest

from trnspec.api import validate
from trnspec.loading.files import shipped
from trnspec.yaml import read_text

FAULTS = read_text(Path(__file__).with_name("one_fault.yaml").read_text("utf-8"), "one_fault.yaml").data["faults"]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory) -> Path:
    return shutil.copytree(shipped(), tmp_path_factory.mktemp("one") / "catalog")


@pytest.mark.parametrize(("name", "old", "new", "code"), FAULTS, ids=[f"{name}: {new}" for name, _, new, _ in FAULTS])
def test_one_fault_is_one_finding(catalog: Path, name: str, old: str, new: str, code: str) -> None:
    file = catalog / name
    text = file.read_text("utf-8")
    before, found, after = text.partition(old)
    assert found
    file.write_text(before + new + after, "utf-8")
    findings = validate([str(catalog)]).report.diagnostics
    file.write_text(text, "utf-8")

    line = before.count("\n") + 1 + (code == "TRN015")
    assert [(d.code, Path(d.where.file).name, d.where.place and d.where.place.line) for d in findings] == [
        (code, file.name, line)
    ]
