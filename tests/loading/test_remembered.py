"""The data of documents that earlier runs read: the same as of the documents, whatever was done to either."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trnspec.loading.files import documents_in, shipped
from trnspec.loading.remembered import Documents, remembered
from trnspec.yaml import Document, read_file, reader


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRNSPEC_NO_CACHE", raising=False)
    monkeypatch.setattr("sys.argv", ["trnspec", "validate", "x.yaml"])
    return tmp_path / "cache" / "trnspec" / "documents-1"


def _parts(document: Document) -> tuple[object, ...]:
    return repr(document.data), dict(document.places), document.problems, document.text, document.rejected


def test_documents_are_the_same(cache: Path) -> None:
    files = list(documents_in(shipped() / "chips"))
    expected = [_parts(read_file(file)) for file in files]
    for known in (False, True):
        with remembered():
            assert isinstance(reader.memory, Documents)
            assert bool(reader.memory.get(files[0].read_bytes(), str(files[0]))) is known
            assert [_parts(read_file(file)) for file in files] == expected
        assert reader.memory is None
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"a: 1\n",
        b"a: 1",
        b"\xef\xbb\xbfa: 1\n",
        b"a: \xff\n",
        b"a: 1\r\n",
        b"a: 1\na: 2\n",
        b"a: yes\n",
        b"a: \xc3\xa4\n",
    ],
)
def test_changes_are_seen(cache: Path, tmp_path: Path, text: bytes) -> None:  # sets the environment
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 5\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    with remembered():
        read_file(file)
    file.write_bytes(text)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    expected = _parts(read_file(file))
    for _ in range(2):
        with remembered():
            assert _parts(read_file(file)) == expected


def test_damaged_files_are_not_used(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 5\n")
    with remembered():
        read_file(file)
    (pack,) = cache.iterdir()
    pack.write_bytes(pack.read_bytes()[:-1] + b"?")
    with remembered():
        assert read_file(file).data == {"a": 5}


def test_nothing_is_kept_without_the_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a: 5\n")
    monkeypatch.setattr("sys.argv", ["trnspec", "validate", "x.yaml", "--no-cache"])
    with remembered():
        read_file(tmp_path / "a.yaml")
    assert not cache.exists()
