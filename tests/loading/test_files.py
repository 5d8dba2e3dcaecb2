"""trnspec.loading.files: which files are documents, and which catalog a file lies in."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import ROOT

from trnspec.loading.files import documents_in, root_of, schemas, shipped

FOLDERS = ("chips", "servers")


def test_shipped_folders() -> None:
    """In a checkout the catalog and the schemas are the folders at the top."""
    assert (shipped(), schemas()) == (ROOT / "catalog", ROOT / "schemas")


def test_files_in_a_fixed_order(tmp_path: Path) -> None:
    """Both endings count; hidden files and folders, other endings and links to folders do not."""
    for name in ("b.yaml", "a.yml", ".c.yaml", "d.json", "z/e.yaml", "y/f.yaml", ".hidden/g.yaml", "x.yaml/h.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "w").symlink_to(tmp_path / "z")

    found = [f.relative_to(tmp_path).as_posix() for f in documents_in(tmp_path)]

    assert found == ["a.yml", "b.yaml", "x.yaml/h.yaml", "y/f.yaml", "z/e.yaml"]


def test_no_folder_holds_no_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert [*documents_in(tmp_path / "none"), *documents_in(tmp_path / "file")] == []


@pytest.mark.parametrize(
    ("file", "root"),
    [("c/chips/x.yaml", "c"), ("c/servers/x.yaml", "c"), ("c/x.yaml", "c"), ("c/chips/old/x.yaml", "c/chips/old")],
)
def test_root_of(file, root) -> None:
    assert Path(root).absolute() == root_of(Path(file), FOLDERS)


def test_root_of_a_bare_name(tmp_path: Path, monkeypatch) -> None:
    """From inside the folder of a kind the root is still above it."""
    (tmp_path / "chips").mkdir()
    monkeypatch.chdir(tmp_path / "chips")

    assert tmp_path == root_of(Path("x.yaml"), FOLDERS)
