"""trnspec.loading.files: which files are documents, and which catalog a file lies in."""

import os
from pathlib import Path

import pytest

from tests.support.programs import ROOT, written
from trnspec.api import registry
from trnspec.loading.files import documents_among, documents_below, documents_in, is_ours, root_of, schemas, shipped
from trnspec.loading.selection import Selection, choose
from trnspec.loading.settings import Settings

FOLDERS = ("chips", "servers")


def test_shipped_folders() -> None:
    """In a checkout the catalog and the schemas are the folders at the top."""
    assert (shipped(), schemas()) == (ROOT / "catalog", ROOT / "schemas")


def test_files_in_a_fixed_order(tmp_path: Path, monkeypatch) -> None:
    """Both endings count, in any case; hidden files and folders, other endings and links to folders do not."""
    for name in ("b.yaml", "a.yml", ".c.yaml", "d.json", "z/E.YAML", "y/f.yaml", ".hidden/g.yaml", "x.yaml/h.yaml"):
        written(tmp_path / name, "")
    (tmp_path / "w").symlink_to(tmp_path / "z")

    found = [f.relative_to(tmp_path).as_posix() for f in documents_in(tmp_path)]

    assert found == ["a.yml", "b.yaml", "x.yaml/h.yaml", "y/f.yaml", "z/E.YAML"]
    monkeypatch.chdir(tmp_path)
    assert found == list(documents_below("."))


@pytest.mark.parametrize(
    ("file", "root"),
    [("c/chips/x.yaml", "c"), ("c/servers/x.yaml", "c"), ("c/x.yaml", "c"), ("c/chips/old/x.yaml", "c/chips/old")],
)
def test_root_of(file, root) -> None:
    assert Path(root).absolute() == root_of(Path(file), FOLDERS)


def test_a_named_file_is_in_no_layer(tmp_path: Path) -> None:
    """Also where its own catalog names it again."""
    named, other = tmp_path / "chips" / "a.yaml", tmp_path / "b.yaml"
    named.parent.mkdir()
    named.touch()
    other.touch()

    found = choose(["-", str(named), str(named)], FOLDERS, [], Settings())

    assert found == Selection((str(named),), stdin=True, context=(str(other),), layers={str(other): 1})


OURS = (
    "api_version: trnspec/v1\n", "# a comment\napi_version: 'trnspec/v9'\nkind: Pod\n",
    "kind: Chip\nmetadata: {name: a}\nspec: {}\n", "kind: Chpi\nspec: {}\n",
    "api_version: trnspek/v1\nkind: Chip\nspec: {}\n", "api_version: v1\nkind: Chip\nspec: {}\n",
    "apiversion: trnspec/v1\nkind: Chip\nmetadata:\n  name: a\n",
    "apiVersion: trnspek/v1\nkind: Chip\nmetadata:\n  name: a\n", "version: trnspec/v1\n",
    "{kind: Chip, 'metadata': {name: a}, spec: {}}\n", "---\n  kind: 'Source'\n  metadata:\n    name: a\n",
    "api_version:\n  trnspec/v1\nkind: Chip\n", "? api_version\n: !!str trnspec/v1\n", "- api_version: trnspec/v1\n",
    "api_version: trnspec\n", "knd: chips\nmetdata: {name: a}\n", "Kind: Chip\nMetadata: {name: a}\nSpec: {}\n",
)  # fmt: skip

OF_OTHERS = (
    "", "- kind: Chip\n  spec: {}\n", "version: 2\nmodels: []\n",
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}\n",
    "apiVersion: cluster.x-k8s.io/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n",
    "version: 1\nkind: pipeline\nspec:\n  stages: []\n", "on: push\njobs:\n  one:\n    kind: Chip\n    spec: {}\n",
    "kind: Chip\n", "# api_version: trnspec/v1\nrepo: https://example.org/trnspec/v1\n",
    "{{- if .Values.a }}\napiVersion: v1\nkind: Service\nspec: {}\n{{- end }}\n",
)  # fmt: skip


@pytest.mark.parametrize("text", OURS)
def test_documents_with_a_wrong_version(text) -> None:
    assert is_ours(text, registry().kinds)


@pytest.mark.parametrize("text", OF_OTHERS)
def test_texts_of_other_programs(text) -> None:
    assert not is_ours(text, registry().kinds)


def named(*paths: Path, catalogs: tuple[Path, ...] = ()) -> list[str]:
    return [p.name for p in documents_among(paths, registry().kinds, catalogs)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-8-sig"])
def test_a_document_in_another_encoding(tmp_path: Path, encoding) -> None:
    (tmp_path / "a.yaml").write_bytes("api_version: trnspec/v1\nkind: Chip\nmetadata: {title: Ä}\n".encode(encoding))

    assert named(tmp_path) == ["a.yaml"]


def test_files_in_a_folder_that_holds_documents(tmp_path: Path) -> None:
    """A file that is empty or not UTF-8, and one with a block of a document; in the settings' catalogs, every file."""
    for folder in ("hardware", "hardware/chips", "models"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
        (tmp_path / folder / "mkdocs.yml").write_text("site_name: a\n")
        (tmp_path / folder / "block.yaml").write_text("spec: {}\n")
        (tmp_path / folder / "empty.yaml").write_text(" \n")
        (tmp_path / folder / "service.yaml").write_text("apiVersion: v1\nkind: Service\nspec: {}\n")

    assert named(tmp_path) == []
    assert named(tmp_path / "hardware", catalogs=(tmp_path / "hardware",)) == [
        "block.yaml", "bytes.yaml", "empty.yaml", "mkdocs.yml", "service.yaml",
    ]  # fmt: skip

    for folder in ("hardware", "hardware/chips"):
        (tmp_path / folder / "own.yaml").write_text("api_version: trnspec/v1\n")

    assert named(tmp_path / "models") == []
    assert named(tmp_path / "hardware") == [
        "block.yaml", "bytes.yaml", "empty.yaml", "own.yaml", "block.yaml", "bytes.yaml", "empty.yaml", "own.yaml",
    ]  # fmt: skip


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")

    assert named(tmp_path) == ["pipe.yaml"]
