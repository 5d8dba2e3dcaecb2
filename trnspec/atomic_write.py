"""Writing files: each is whole under its name or not there, and none is written unless all can be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as FilePath


def write(files: Mapping[FilePath, bytes]) -> None:
    """Write some files; their folders are made. Where one cannot be written, those that were there stay as they were.

    What is there and is neither file nor folder, such as ``/dev/stdout``, is written to and stays what it is.

    Raises:
        OSError: A file cannot be written.
    """
    import tempfile
    from pathlib import Path as FilePath

    devices = {file: contents for file, contents in files.items() if _device(file)}
    waiting: list[tuple[FilePath, FilePath]] = []
    try:
        for file, contents in files.items():
            if file in devices:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                number, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(file)) from error
            waiting.append((FilePath(temporary), file))
            with os.fdopen(number, "wb") as stream:
                stream.write(contents)
                stream.flush()
                os.fsync(stream.fileno())
            # mkstemp makes files for one person alone.
            FilePath(temporary).chmod(0o666 & ~_mask())
        for file in files:
            if file.is_dir():
                raise IsADirectoryError(21, os.strerror(21), str(file))
        while waiting:
            temporary_file, file = waiting[0]
            temporary_file.replace(file)
            waiting.pop(0)
        for file, contents in devices.items():
            with file.open("wb") as stream:
                stream.write(contents)
    finally:
        for temporary_file, _ in waiting:
            temporary_file.unlink(missing_ok=True)


def _device(file: FilePath) -> bool:
    """Whether something is there that a new file must not take the place of."""
    return file.exists() and not file.is_file() and not file.is_dir()


def _mask() -> int:
    """What this process takes away from the permissions of new files; there is no way to ask but to set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
