"""Edits that change nothing, or add what is known: the rules report none of them.

Edits of different places are made in one copy of the catalog and checked together, since none of them may be reported.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from trnspec.api import validate
from trnspec.loading.files import shipped
from trnspec.yaml import read_text

KINDS: dict[str, list[list[Any]]] = read_text(
    Path(__file__).with_name("legitimate_edits.yaml").read_text("utf-8"), "legitimate_edits.yaml"
).data["kinds"]


def make(catalog: Path, name: str, old: Any, new: str = "") -> None:
    """Make an edit of a file: a text for another, one more claim, or a new file."""
    if isinstance(old, dict):
        old, new = "claims:\n", f"claims:\n  - {json.dumps(old)}\n"
    file = catalog / name
    if not new:
        file.write_text(old, encoding="utf-8")
        return
    text = file.read_text(encoding="utf-8")

    assert old in text, (name, old)

    file.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize("first", [True, False], ids=["one half", "other half"])
def test_edits_of_many_documents(tmp_path: Path, *, first: bool) -> None:
    """All edits of half of the kinds together."""
    catalog = shutil.copytree(shipped(), tmp_path / "catalog")
    for index, kind in enumerate(KINDS.values()):
        for edit in kind if (index % 2 == 0) is first else ():
            make(catalog, *edit)

    assert [(d.code, d.where.file, d.message) for d in validate([str(catalog)]).report.diagnostics] == []
