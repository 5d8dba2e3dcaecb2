"""trnspec.atomic_write: all files or none."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from trnspec.atomic_write import create, locked, write


def everything(folder) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_files_and_folders(tmp_path) -> None:
    (tmp_path / "old").write_bytes(b"before")
    write({tmp_path / "old": b"after", tmp_path / "a" / "b" / "new": b"\x00\r\n"})

    assert {"old": b"after", "a/b/new": b"\x00\r\n"} == everything(tmp_path)


@pytest.mark.parametrize("blocked", ["folder", "old/new"])
def test_none_where_one_cannot_be(tmp_path, blocked) -> None:
    """The last file cannot be written: a folder has its name, or a file is where its folder should."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "old").write_bytes(b"before")
    with pytest.raises(OSError, match=r"folder|old") as caught:
        write({tmp_path / "new": b"new", tmp_path / "old": b"after", tmp_path / blocked: b"never"})

    assert {"old": b"before"} == everything(tmp_path)
    assert caught.value.errno == {"folder": errno.EISDIR}.get(blocked, errno.EEXIST)


def test_permissions(tmp_path) -> None:
    """They are those of any new file of this person."""
    code = "import os, pathlib, sys; from trnspec.atomic_write import write; os.umask(0o026); write({pathlib.Path(sys.argv[1]): b''})"
    subprocess.run([sys.executable, "-c", code, tmp_path / "new"], check=True, timeout=60)

    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_special_files_are_kept(tmp_path) -> None:
    """A pipe gets what is written, and is not replaced by a file: root could replace a device so."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write({pipe: b"through", tmp_path / "file": b"beside"})

    assert b"through" == reader.communicate(timeout=60)[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert b"beside" == (tmp_path / "file").read_bytes()


CALLS = ["mkdir", "mkstemp", "write", "fsync", "chmod", "replace"]
"""Every call of a write that can fail."""


def _failing(monkeypatch, call: str, error: BaseException, number: int) -> None:
    """Let the ``number``-th call of a kind raise an error."""
    count = 0

    def raising(function):
        def run(*args, **more):
            nonlocal count
            count += 1
            if count == number:
                raise error
            return function(*args, **more)

        return run

    if call == "write":
        opened = os.fdopen

        class Stream:
            def __init__(self, *args) -> None:
                self._stream = opened(*args)
                self.write = raising(self._stream.write)
                self.flush, self.fileno = self._stream.flush, self._stream.fileno

            def __enter__(self):
                return self

            def __exit__(self, *args) -> None:
                self._stream.close()

        monkeypatch.setattr(os, "fdopen", Stream)
        return
    of = {"mkstemp": tempfile, "fsync": os}.get(call, Path)
    monkeypatch.setattr(of, call, raising(getattr(of, call)))


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("call", CALLS)
def test_every_call_may_fail(tmp_path, monkeypatch, call, code, number) -> None:
    """Old or new contents, no temporary file, and an error that names the file."""
    one, two = tmp_path / "a" / "one", tmp_path / "b" / "two"
    for file in (one, two):
        file.parent.mkdir()
        file.write_bytes(b"old")
    with monkeypatch.context() as patched:
        _failing(patched, call, OSError(code, os.strerror(code)), number)
        with pytest.raises(OSError, match=r"one|two") as caught:
            write({one: b"new", two: b"new"})

    assert (code, str([one, two][number - 1])) == (caught.value.errno, caught.value.filename)
    renamed = call == "replace" and number == 2  # the first file was replaced already
    assert {"a/one": b"new" if renamed else b"old", "b/two": b"old"} == everything(tmp_path)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_at_every_call(tmp_path, monkeypatch, call, number) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"old")
    with monkeypatch.context() as patched:
        _failing(patched, call, KeyboardInterrupt(), number)
        with pytest.raises(KeyboardInterrupt):
            write({one: b"new", two: b"new"})

    assert everything(tmp_path) in ({"one": b"old"}, {"one": b"new"})


KILLED = """
import os, pathlib, signal, sys, tempfile
from trnspec.atomic_write import write

call, folder = sys.argv[1], pathlib.Path(sys.argv[2])
def kill(*args, **more):
    os.kill(os.getpid(), signal.SIGKILL)
of = {"mkstemp": tempfile, "fsync": os, "write": os}.get(call, pathlib.Path)
setattr(of, "fdopen" if call == "write" else call, kill)
write({folder / "one": b"new"})
"""


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_every_call(tmp_path, call) -> None:
    """The file is whole; what is left is deleted by the next write, an hour later."""
    (tmp_path / "one").write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, call, tmp_path], check=False, timeout=60)

    assert -9 == done.returncode
    left = [p for p in tmp_path.iterdir() if p.name != "one"]
    assert (b"old", len(left)) == ((tmp_path / "one").read_bytes(), int(call not in ("mkdir", "mkstemp")))
    for file in left:
        os.utime(file, (time.time() - 7200,) * 2)
    write({tmp_path / "one": b"newer"})
    assert {"one": b"newer"} == everything(tmp_path)


def test_a_temporary_file_of_a_running_process_stays(tmp_path, monkeypatch) -> None:
    for name, seconds in ((".one.trnspec-abc", 3600.0), (".one.trnspec-old", 3599.5), (".two.trnspec-abc", 0.0)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (seconds, seconds))
    monkeypatch.setattr("time.time", lambda: 7200.0)
    write({tmp_path / "one": b"new"})

    assert {".one.trnspec-abc", ".two.trnspec-abc", "one"} == everything(tmp_path).keys()


def test_permissions_of_an_existing_file_stay(tmp_path) -> None:
    (tmp_path / "one").write_bytes(b"old")
    (tmp_path / "one").chmod(0o755)
    write({tmp_path / "one": b"new"})

    assert (0o755, b"new") == ((tmp_path / "one").stat().st_mode & 0o777, (tmp_path / "one").read_bytes())


@pytest.mark.skipif(os.name != "posix", reason="folders are synced on POSIX only")
def test_files_and_then_their_folders_are_synced(tmp_path, monkeypatch) -> None:
    sync, synced = os.fsync, list[bool]()
    monkeypatch.setattr(os, "fsync", lambda n: (synced.append(stat.S_ISDIR(os.fstat(n).st_mode)), sync(n)))
    write({tmp_path / "one": b"1", tmp_path / "two": b"2"})

    assert (2, True) == (synced.count(False), synced[-1])


def test_create_replaces_nothing(tmp_path) -> None:
    create(tmp_path / "one", b"new")
    with pytest.raises(FileExistsError, match="one"):
        create(tmp_path / "one", b"newer")

    assert {"one": b"new"} == everything(tmp_path)


def test_one_process_at_a_time(tmp_path) -> None:
    """A lock is held by one process, and ends with it."""
    fcntl = pytest.importorskip("fcntl")
    holder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    begin = time.monotonic()
    with pytest.raises(TimeoutError, match="another process") as caught, locked(tmp_path, 0.1):
        pass
    assert (errno.ETIMEDOUT, True) == (caught.value.errno, time.monotonic() - begin >= 0.1)
    os.close(holder)
    with locked(tmp_path, 0.1):
        pass
