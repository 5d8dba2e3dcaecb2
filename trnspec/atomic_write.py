"""Atomic writing of files: all of them are replaced, or none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as FilePath


def write(files: Mapping[FilePath, bytes]) -> None:
    """Write some files and create their folders. If one cannot be written, existing files stay unchanged.

    A device, such as ``/dev/stdout``, is written to and not replaced.

    Raises:
        OSError: A file cannot be written.
    """
    import tempfile
    from pathlib import Path as FilePath

    devices = {file: contents for file, contents in files.items() if _device(file)}
    pending: list[tuple[FilePath, FilePath]] = []
    try:
        for file, contents in files.items():
            if file in devices:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                number, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(file)) from error
            pending.append((FilePath(temporary), file))
            with os.fdopen(number, "wb") as stream:
                stream.write(contents)
                stream.flush()
                os.fsync(stream.fileno())
            # mkstemp creates files that only their owner can read.
            FilePath(temporary).chmod(0o666 & ~_mask())
        for file in files:
            if file.is_dir():
                raise IsADirectoryError(21, os.strerror(21), str(file))
        while pending:
            temporary_file, file = pending[0]
            temporary_file.replace(file)
            pending.pop(0)
        for file, contents in devices.items():
            with file.open("wb") as stream:
                stream.write(contents)
    finally:
        for temporary_file, _ in pending:
            temporary_file.unlink(missing_ok=True)


def _device(file: FilePath) -> bool:
    """Whether the path is a device, which a new file must not replace."""
    return file.exists() and not file.is_file() and not file.is_dir()


def _mask() -> int:
    """The umask of this process; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
