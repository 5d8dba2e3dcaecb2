"""Writing files: each is whole under its name or not there, and none is written unless all can be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as FilePath


def write(files: Mapping[FilePath, bytes]) -> None:
    """Write some files; their folders are made. Where one cannot be written, those that were there stay as they were.

    Raises:
        OSError: A file cannot be written.
    """
    import tempfile
    from pathlib import Path as FilePath

    waiting: list[tuple[FilePath, FilePath]] = []
    try:
        for file, contents in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            number, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
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
    finally:
        for temporary_file, _ in waiting:
            temporary_file.unlink(missing_ok=True)


def _mask() -> int:
    """What this process takes away from the permissions of new files; there is no way to ask but to set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
