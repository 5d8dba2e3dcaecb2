"""The files of a git revision, read into memory; the working tree is not changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path as FilePath

from trnspec.errors import UsageError


def files(revision: str, folder: str, where: FilePath) -> dict[str, bytes]:
    """The files below a folder of a revision, by their paths below that folder.

    Args:
        revision: A revision in any notation of git: ``HEAD~3``, ``v0.1.0``, a hash.
        folder: The folder, relative to the top of the repository: ``catalog``.
        where: A folder in the repository.

    Raises:
        UsageError: Git is not installed, ``where`` is not in a repository, or it has no such revision or folder.
    """
    top = FilePath(os.fsdecode(_git(where, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    # --end-of-options: a revision that begins with a hyphen is not an option.
    commit = _git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", subject=revision
    )
    tree = f"{commit.decode().strip()}:{folder.strip('/')}"
    # Only regular files: no submodules, no links.
    listing = _git(top, "ls-tree", "-r", "-z", tree, subject=f"{revision}:{folder}").split(b"\0")
    entries = [(line.partition(b"\t")[2], line.split()[2]) for line in listing if line.startswith(b"100")]
    raw = _git(top, "cat-file", "--batch", input=b"".join(hash_ + b"\n" for _, hash_ in entries))
    contents: dict[str, bytes] = {}
    at = 0
    for path, _ in entries:
        header_end = raw.index(b"\n", at)
        size = int(raw[at:header_end].split()[2])
        contents[os.fsdecode(path)] = raw[header_end + 1 : header_end + 1 + size]
        at = header_end + 1 + size + 1
    return contents


def is_committed(paths: Sequence[str]) -> bool:
    """Whether git has the present content of some files of one folder, so that it can restore them."""
    where = FilePath(paths[0]).parent
    names = [FilePath(path).name for path in paths]
    try:
        tracked = _git(where, "ls-files", "-z", "--", *names).split(b"\0")
        changed = _git(where, "status", "--porcelain", "-z", "--", *names)
    except UsageError:
        return False
    return not changed and {*map(os.fsdecode, filter(None, tracked))} == {*names}


def _git(where: FilePath, *arguments: str, input: bytes = b"", subject: str | None = None) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603  # git, with a fixed command
            ["git", "-C", os.fspath(where), *arguments],  # noqa: S607  # the git of the user's PATH
            input=input,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, and reading a revision needs it") from None
    if done.returncode:
        output = done.stderr.decode(errors="replace").strip().splitlines()
        message = "git failed" if subject is None else f"git has no {subject!r} here"
        raise UsageError(f"{message}: {output[0]}" if output else message)
    return done.stdout
