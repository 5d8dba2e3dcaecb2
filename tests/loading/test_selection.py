"""trnspec.loading.selection: which files are checked, and what their names resolve against."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from trnspec.api import Selection, registry, select, validate
from trnspec.errors import UsageError
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.settings import Settings

KNOWN = registry()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch) -> Path:
    """A copy of some folders of the shipped catalog; its folder is the current one."""
    for folder in ("chips", "links", "servers"):
        shutil.copytree(ROOT / "catalog" / folder, tmp_path / "copy" / folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "copy"


def chosen(*paths: str) -> Selection:
    return select(paths, KNOWN, Settings())


def test_default_target_is_the_shipped_catalog() -> None:
    found = chosen()

    assert tuple(map(str, documents_in(shipped()))) == found.targets
    assert (found.stdin, found.context) == (False, ())


def test_paths_stay_as_given(copy: Path) -> None:
    found = chosen("copy/chips", str(copy / "links" / "efa.yaml"))

    assert {f"copy/chips/trainium{n}.yaml" for n in (1, 2, 3, 4)} | {str(copy / "links" / "efa.yaml")} == {
        *found.targets
    }
    assert copy / "servers" / "trn1.32xlarge.yaml" in map(Path, found.context)


def test_one_file_by_many_paths(copy: Path) -> None:
    """It is checked once, under the first of them."""
    (copy.parent / "link").symlink_to(copy)
    paths = [
        "copy/links/efa.yaml",
        "./copy/links/efa.yaml",
        "copy/chips/../links/efa.yaml",
        str(copy / "links" / "efa.yaml"),
        "link/links/efa.yaml",
    ]

    assert ("copy/links/efa.yaml",) == chosen(*paths).targets
    assert validate(paths).report.files == 1


def test_hidden_and_strange_neighbours_are_no_context(tmp_path: Path) -> None:
    """Beside a named file only regular files count, and those that cannot be read harm nothing."""
    text = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: mine, title: T}\nspec: {connects: chips}\n"
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / ".mine.yaml").write_text(text)
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "broken.yaml").write_bytes(b"\xff\x00")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "link.yaml").symlink_to("nowhere")
    found = chosen(str(tmp_path / "mine.yaml"))

    assert {"broken.yaml"} == {f.name for f in map(Path, found.context) if f.parent == tmp_path}
    assert () == tuple(validate([str(tmp_path / "mine.yaml")]).report.diagnostics)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nope.yaml", "nope.yaml does not exist"),
        ("file.yaml/x.yaml", "file.yaml/x.yaml cannot be read: Not a directory"),
        ("link.yaml", "link.yaml is a broken link"),
        ("loop.yaml", "loop.yaml cannot be read: Too many levels of symbolic links"),
        ("empty", "empty holds no .yaml files"),
        ("x" * 300 + ".yaml", "cannot be read: File name too long"),
        ("a\0b", "cannot be read: .*embedded null"),
    ],
)
def test_paths_that_cannot_be_meant(tmp_path: Path, monkeypatch, path, message) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.yaml").write_text("")
    Path("link.yaml").symlink_to("nowhere")
    Path("loop.yaml").symlink_to("loop.yaml")

    with pytest.raises(UsageError, match=message):
        chosen(path)


def test_catalog_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="is not a folder"):
        select([], KNOWN, Settings(catalogs=(tmp_path / "file",)))
    with pytest.raises(UsageError, match="does not exist"):
        select([], KNOWN, Settings(catalogs=(tmp_path / "none",)))
