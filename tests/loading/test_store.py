"""trnspec.loading.store: a document is loaded again when its content has changed, and only then."""

import os
from pathlib import Path

import pytest

from tests.support.programs import SOUND
from trnspec.api import registry
from trnspec.loading.pipeline import load_document
from trnspec.loading.store import DocumentStore
from trnspec.yaml import read_file


@pytest.fixture
def store() -> DocumentStore:
    return DocumentStore(registry())


def test_an_unchanged_document_is_the_same_object(store, tmp_path: Path) -> None:
    file = tmp_path / "wire.yaml"
    file.write_text(SOUND)
    first = store.load(str(file), target=False)
    os.utime(file, (1, 1))

    assert store.load(str(file), target=False) is first
    assert store.load(str(file), target=False, layer=1).layer == 1
    assert store.load(str(file)).target


def test_a_changed_document_is_loaded_again(store, tmp_path: Path) -> None:
    """Also one of the same size and time."""
    file = tmp_path / "wire.yaml"
    file.write_text(SOUND)
    status = file.stat()
    titles = [store.load(str(file)).node.metadata.title]
    file.write_text(SOUND.replace("A wire", "B wire"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    titles.append(store.load(str(file)).node.metadata.title)
    store.texts[str(file)] = SOUND.replace("A wire", "C wire")
    titles.append(store.load(str(file)).node.metadata.title)
    del store.texts[str(file)]
    titles.append(store.load(str(file)).node.metadata.title)

    assert titles == ["A wire", "B wire", "C wire", "B wire"]


@pytest.mark.parametrize("name", ["sound.yaml", "missing.yaml", "folder.yaml", "pipe.yaml", "large.yaml", "bytes.yaml"])
def test_the_result_is_that_of_reading_the_file(store, tmp_path: Path, name: str) -> None:
    (tmp_path / "sound.yaml").write_text(SOUND)
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_text("# " + "x" * 1_000_000)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    expected = load_document(read_file(tmp_path / name), registry())
    assert store.load(str(tmp_path / name)).problems == expected.problems
