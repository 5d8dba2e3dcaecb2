"""Atomic writing of files: all of them are replaced, or none; and a lock for a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath

_MARK = ".trnspec-"
"""Part of the name of a temporary file, ``.NAME.trnspec-XXXXXXXX``."""

_STALE = 3600
"""The age in seconds from which a temporary file is that of a process that was killed."""


def write(files: Mapping[FilePath, bytes]) -> None:
    """Write some files and create their folders. If one cannot be written, existing files stay unchanged.

    Each file is written under a temporary name in its folder, flushed to disk and renamed. A file that exists keeps its
    permissions. A device, such as ``/dev/stdout``, is written to and not replaced. A process that is killed may leave a
    temporary file, which the next write of the same file deletes after an hour.

    Raises:
        OSError: A file cannot be written; the error names it.
    """
    devices = {file: contents for file, contents in files.items() if _device(file)}
    pending: list[tuple[FilePath, FilePath]] = []
    try:
        for file, contents in files.items():
            if file not in devices:
                with _naming(file):
                    file.parent.mkdir(parents=True, exist_ok=True)
                    _remove_stale(file)
                    _temporary(file, contents, pending)
        for file in files:
            if file.is_dir():
                raise IsADirectoryError(21, os.strerror(21), str(file))
        while pending:
            temporary, file = pending[0]
            with _naming(file):
                temporary.replace(file)
                pending.pop(0)
                _sync(file.parent)
        for file, contents in devices.items():
            with _naming(file), file.open("wb") as stream:
                stream.write(contents)
    finally:
        for temporary, _ in pending:
            temporary.unlink(missing_ok=True)


def create(file: FilePath, contents: bytes) -> None:
    """Write a new file, all of it or nothing; unlike :func:`write`, it never replaces one.

    Raises:
        FileExistsError: The file exists.
        OSError: It cannot be written; the error names it.
    """
    pending: list[tuple[FilePath, FilePath]] = []
    with _naming(file):
        _remove_stale(file)
        try:
            _temporary(file, contents, pending)
            # A link fails where the file exists; a rename would replace it.
            file.hardlink_to(pending[0][0])
            _sync(file.parent)
        finally:
            for temporary, _ in pending:
                temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: FilePath, seconds: float = 30.0) -> Iterator[None]:
    """A context in which no other process holds the lock of a folder; the lock ends with the process.

    Where the system or the file system has no locks, there is none.

    Raises:
        TimeoutError: Another process held the lock for longer than ``seconds``.
    """
    try:
        import fcntl
    except ImportError:  # not POSIX
        yield
        return
    with _naming(folder):
        number = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError(110, f"another process has locked it for {seconds:g} s", str(folder)) from None
                time.sleep(0.05)
                continue
            except OSError:  # a file system without locks
                pass
            break
        yield
    finally:
        os.close(number)


def _temporary(file: FilePath, contents: bytes, pending: list[tuple[FilePath, FilePath]]) -> None:
    """Write a temporary file with the contents and the permissions of a file, and add both to ``pending``."""
    import tempfile
    from pathlib import Path as FilePath

    number, name = tempfile.mkstemp(prefix=f".{file.name}{_MARK}", dir=file.parent)
    temporary = FilePath(name)
    pending.append((temporary, file))
    with os.fdopen(number, "wb") as stream:
        stream.write(contents)
        stream.flush()
        os.fsync(stream.fileno())
    # mkstemp creates files that only their owner can read.
    temporary.chmod(file.stat().st_mode & 0o777 if file.is_file() else 0o666 & ~_mask())


@contextmanager
def _naming(file: FilePath) -> Iterator[None]:
    """Makes every error of the system name the file, instead of a temporary one or none."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(file)) from error


def _remove_stale(file: FilePath) -> None:
    """Delete the temporary files of processes that were killed while they wrote a file."""
    limit = time.time() - _STALE
    prefix = f".{file.name}{_MARK}"
    with suppress(OSError):
        for other in file.parent.iterdir():
            if other.name.startswith(prefix) and other.stat().st_mtime < limit:
                other.unlink()


def _sync(folder: FilePath) -> None:
    """Write the entries of a folder to disk, so that a renamed file survives a power failure."""
    if os.name != "posix":
        return
    with suppress(OSError):  # some file systems cannot; the file itself was synced
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _device(file: FilePath) -> bool:
    """Whether the path is a device, which a new file must not replace."""
    return file.exists() and not file.is_file() and not file.is_dir()


def _mask() -> int:
    """The umask of this process; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
