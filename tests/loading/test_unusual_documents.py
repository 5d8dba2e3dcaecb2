"""Valid documents in rare forms have no findings, and a file of any spelling of the suffix is checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trnspec.api import validate
from trnspec.yaml import read_text

TABLE = Path(__file__).with_name("unusual_documents.yaml")
DOCUMENTS: Mapping[str, Any] = read_text(TABLE.read_text("utf-8"), TABLE.name).data
TEXT = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: example, title: Example}\nspec: {connects: chips}\n"


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The codes found in each document, all of them in one folder."""
    folder = tmp_path_factory.mktemp("catalog")
    for name, case in DOCUMENTS.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = case["text"].replace("\n", case.get("ends", "\n"))
        file.write_bytes(("\ufeff" * case.get("mark", False) + text).encode())
    found: dict[str, list[str]] = {name: [] for name in DOCUMENTS}
    for diagnostic in validate([str(folder)]).report.diagnostics:
        found[Path(diagnostic.where.file).relative_to(folder).as_posix()].append(diagnostic.code)
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_valid_document_has_no_findings(name: str, findings: dict[str, list[str]]) -> None:
    assert findings[name] == DOCUMENTS[name].get("finds", [])


@pytest.mark.parametrize("suffix", ["yaml", "yml", "YAML", "YML", "Yaml"])
@pytest.mark.parametrize("other", [True, False], ids=["another file", "alone"])
def test_a_suffix_in_capitals_is_not_skipped(tmp_path: Path, suffix: str, *, other: bool) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / f"example.{suffix}").write_text(TEXT.replace("connects", "conects"), encoding="utf-8")
    if other:
        (tmp_path / "links" / "valid.yaml").write_text(TEXT.replace("example", "valid"), encoding="utf-8")

    report = validate([str(tmp_path)]).report

    assert [(d.code, Path(d.where.file).suffix) for d in report.diagnostics] == [("TRN102", f".{suffix}")]
