"""The files of a git revision, read into memory: the working tree is not touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path as FilePath

from trnspec.errors import UsageError


def files(revision: str, folder: str, where: FilePath) -> dict[str, bytes]:
    """The files below a folder of a revision, by their paths below that folder.

    Args:
        revision: Whatever git takes for one: ``HEAD~3``, ``v0.1.0``, a hash.
        folder: From the top of the repository: ``catalog``.
        where: A folder in the repository.

    Raises:
        UsageError: Git is not installed, this is no repository, or it has no such revision or folder.
    """
    top = FilePath(os.fsdecode(_git(where, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    # A name that begins with a hyphen would be an option to any other command.
    commit = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", told=revision)
    tree = f"{commit.decode().strip()}:{folder.strip('/')}"
    # Submodules and links are not files of the catalog.
    listed = _git(top, "ls-tree", "-r", "-z", tree, told=f"{revision}:{folder}").split(b"\0")
    entries = [(line.split(b"\t", 1)[1], line.split()[2]) for line in listed if line.startswith(b"100")]
    raw = _git(top, "cat-file", "--batch", given=b"".join(hash_ + b"\n" for _, hash_ in entries))
    found: dict[str, bytes] = {}
    at = 0
    for path, _ in entries:
        header_end = raw.index(b"\n", at)
        size = int(raw[at:header_end].split()[2])
        found[os.fsdecode(path)] = raw[header_end + 1 : header_end + 1 + size]
        at = header_end + 1 + size + 1
    return found


def _git(where: FilePath, *arguments: str, given: bytes = b"", told: str | None = None) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603  # git, with arguments of our own
            ["git", "-C", os.fspath(where), *arguments],  # noqa: S607  # the user's git, wherever it is
            input=given,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, so no revision can be read") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        what = "git cannot be asked" if told is None else f"git has no {told!r} here"
        raise UsageError(f"{what}: {said[0]}" if said else what)
    return done.stdout
