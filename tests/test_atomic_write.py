"""trnspec.atomic_write: all files or none."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from trnspec.atomic_write import write


def everything(folder) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_files_and_folders(tmp_path) -> None:
    (tmp_path / "old").write_bytes(b"before")
    write({tmp_path / "old": b"after", tmp_path / "a" / "b" / "new": b"\x00\r\n"})

    assert {"old": b"after", "a/b/new": b"\x00\r\n"} == everything(tmp_path)


@pytest.mark.parametrize("blocked", ["folder", "old/new"])
def test_none_where_one_cannot_be(tmp_path, blocked) -> None:
    """The last file cannot be written: a folder has its name, or a file stands where its folder should."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "old").write_bytes(b"before")
    with pytest.raises(OSError, match=r"folder|old"):
        write({tmp_path / "new": b"new", tmp_path / "old": b"after", tmp_path / blocked: b"never"})

    assert {"old": b"before"} == everything(tmp_path)


def test_permissions(tmp_path) -> None:
    """They are those of any new file of this person."""
    code = "import os, pathlib, sys; from trnspec.atomic_write import write; os.umask(0o027); write({pathlib.Path(sys.argv[1]): b''})"
    subprocess.run([sys.executable, "-c", code, tmp_path / "new"], check=True, timeout=60)

    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_what_is_no_file_stays_what_it_is(tmp_path) -> None:
    """A pipe gets what is written, and is not replaced by a file: root could replace a device so."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write({pipe: b"through", tmp_path / "file": b"beside"})

    assert b"through" == reader.communicate(timeout=60)[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert b"beside" == (tmp_path / "file").read_bytes()


def test_the_name_in_an_error_is_that_of_the_file(tmp_path) -> None:
    place = Path("/proc/no-such-place.json")
    if not place.parent.is_dir():
        pytest.skip("there is no /proc")
    with pytest.raises(OSError, match="no-such-place") as caught:
        write({place: b""})

    assert str(place) == caught.value.filename
