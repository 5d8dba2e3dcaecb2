"""The result of a run of ``trnspec validate`` that would repeat an earlier one, printed again.

An entry holds what the run printed and the state of everything that it read: the content of each file, the names in each
folder, the modules, the installed distributions. It is used only while all of that is unchanged. This module imports
nothing beyond what starting Python imports, because it runs before everything else.
"""

from __future__ import annotations

import marshal
import os
import sys

from trnspec._version import __version__

try:
    from _blake2 import blake2b  # hashlib would also load OpenSSL
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FORMAT = 2
"""Changes with the structure of an entry."""

VARIABLE = "TRNSPEC_NO_CACHE"
"""The environment variable that turns the cache off, unless it is empty or 0."""

_COMMAND = "validate"
_OPTION = "--no-cache"
DIGEST = 16
"""Length of a hash."""


def digest(*parts: bytes) -> bytes:
    """A hash of some bytes."""
    value = blake2b(digest_size=DIGEST)
    for part in parts:
        value.update(len(part).to_bytes(8, "little"))
        value.update(part)
    return value.digest()


def hashed(raw: bytes) -> bytes:
    """The hash of the content of a file."""
    return blake2b(raw, digest_size=DIGEST).digest()


def is_allowed(arguments: list[str], environ: Mapping[str, str]) -> bool:
    """Whether a command line may use what earlier runs have stored."""
    return _OPTION not in arguments and environ.get(VARIABLE, "").strip() in ("", "0")


def is_enabled(arguments: list[str], environ: Mapping[str, str]) -> bool:
    """Whether a command line may use the cache of verdicts."""
    return _COMMAND in arguments and "-" not in arguments and is_allowed(arguments, environ)  # - is standard input


def folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """The folder of the entries, in the cache folder of the user as platformdirs defines it; empty if there is none."""
    home = os.path.expanduser("~")
    if platform == "win32":
        root = environ.get("LOCALAPPDATA", "") and os.path.join(environ["LOCALAPPDATA"], "trnspec", "trnspec", "Cache")
    elif platform == "darwin":
        root = os.path.join(home, "Library", "Caches", "trnspec")
    else:
        root = os.path.join(environ.get("XDG_CACHE_HOME", "").strip() or os.path.join(home, ".cache"), "trnspec")
    return os.path.join(root, f"verdicts-{FORMAT}") if os.path.isabs(root) else ""


def key(arguments: list[str], environ: Mapping[str, str]) -> bytes:
    """What distinguishes two runs before any file is read: arguments, folder, settings, interpreter, day."""
    import time

    names = sorted(n for n in environ if n.startswith(("TRNSPEC_", "PYTHON", "LC_")))
    names += ["LANG", "NO_COLOR", "FORCE_COLOR", "TERM", "HOME"]
    stream = sys.stdout
    parts = [
        *arguments,
        "",
        os.getcwd(),
        *(f"{name}={environ.get(name)}" for name in names),
        f"{__version__} {FORMAT} {sys.version} {sys.executable} {sys.flags}",
        f"{stream.isatty()} {stream.encoding}",
        # A source must not be dated in the future, so a verdict is one of its day.
        time.strftime("%Y-%m-%d"),
        *sys.path,
    ]
    return digest(*(p.encode("utf-8", "surrogateescape") for p in parts))


def content(path: str) -> tuple[bytes, tuple[int, ...]]:
    """The hash of a file, and its state before it was read; an empty hash where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return b"", ()
    try:
        status = os.fstat(descriptor)
        value = blake2b(digest_size=DIGEST)
        if status.st_mode & 0o170000 != 0o100000:
            return b"", ()
        left = status.st_size
        while chunk := os.read(descriptor, min(left + 1, 1 << 20)):
            value.update(chunk)
            left -= len(chunk)
            if left <= 0:
                break
        return value.digest(), state(status)
    except OSError:
        return b"", ()
    finally:
        os.close(descriptor)


def state(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file is written or replaced."""
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev)


def state_of(path: str) -> tuple[int, ...]:
    """The state of a file; empty if there is none."""
    try:
        return state(os.stat(path))
    except (OSError, ValueError):
        return ()


def change_of(path: str) -> tuple[int, ...]:
    """The state of a file with the time of its last change, which no program can set; empty if there is none.

    On Windows there is no such time.
    """
    try:
        return change(os.stat(path))
    except (OSError, ValueError):
        return ()


def change(status: os.stat_result) -> tuple[int, ...]:
    """The state of a file with the time of its last change, which no program can set; empty on Windows."""
    if sys.platform == "win32":
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev, status.st_ctime_ns)


def stamp(path: str) -> tuple[int, ...]:
    """Time and size of a file of code, as Python compares them for its compiled files; empty if there is none."""
    return state_of(path)[:2]


def names(path: str) -> bytes:
    """A hash of the names in a folder, with what each of them is; empty if it cannot be listed."""
    try:
        with os.scandir(path) as inside:
            kinds = sorted(f"{entry.name}\0{_kind(entry)}" for entry in inside if entry.name != "__pycache__")
    except (OSError, ValueError):
        return b""
    return digest(*(k.encode("utf-8", "surrogateescape") for k in kinds))


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        link = "l" if entry.is_symlink() else ""
        return link + ("d" if entry.is_dir() else "f" if entry.is_file() else "-")
    except OSError:
        return "?"


def distributions(path: list[str]) -> bytes:
    """A hash of the installed distributions, and of the state of their entry points and versions."""
    stamps: list[str] = []
    for place in dict.fromkeys(p or "." for p in path):
        try:
            with os.scandir(place) as inside:
                folders = sorted(e.path for e in inside if e.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        for each in folders:
            points = stamp(os.path.join(each, "entry_points.txt"))
            version = points and (stamp(os.path.join(each, "METADATA")) or stamp(os.path.join(each, "PKG-INFO")))
            stamps.append(f"{each} {points} {version}")
    return digest(*(s.encode("utf-8", "surrogateescape") for s in stamps))


def settings_files(folder: str) -> Iterator[str]:
    """The files at and above a folder whose existence decides which settings apply."""
    while True:
        for name in ("trnspec.toml", "pyproject.toml", ".git"):
            yield os.path.join(folder, name)
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def existing(folder: str) -> bytes:
    """A hash of which files of settings exist at and above a folder."""
    return digest(*(str(os.path.exists(file)).encode() for file in settings_files(folder)))


def settled(state: tuple[int, ...]) -> tuple[int, ...]:
    """A state that any later change alters; empty for a file that was written just now, so that it is hashed."""
    import time

    return state if state and time.time_ns() - max(state[0], state[-1]) > _SETTLED else ()


_SETTLED = 100_000_000
"""A file that was written less than this number of nanoseconds ago may change without another time."""


def is_same(file: str, digest: bytes, state: tuple[int, ...]) -> bool:
    """Whether a file has the content of that hash; one of the same state is not read."""
    return (state != () and change_of(file) == state) or content(file)[0] == digest


def changed(entry: Mapping[str, Any]) -> list[str] | None:
    """The files that have another content than a verdict depends on; ``None`` if anything else is different."""
    files = entry["files"]
    named = [file for file in map(os.path.abspath, sys.argv[1:]) if file in files]
    if (
        # First what has changed most likely: the files on the command line.
        all(is_same(file, *files[file]) for file in named)
        and entry["distributions"] == distributions(sys.path)
        and entry["settings"] == existing(os.getcwd())
        and all(stamp(file) == known for file, known in entry["modules"].items())
        and all(names(path) == known for path, known in entry["folders"].items())
    ):
        return [file for file, (hash_, state) in files.items() if not is_same(file, hash_, state)]
    return None


def read(file: str) -> dict[str, Any] | None:
    """An entry; ``None`` if there is none, or if it is damaged or not the user's own."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as stream:
            if hasattr(os, "getuid") and os.fstat(descriptor).st_uid != os.getuid():
                return None
            raw = stream.read()
    except OSError:
        return None
    if len(raw) <= DIGEST or digest(raw[DIGEST:]) != raw[:DIGEST]:
        return None
    entry: dict[str, Any] = marshal.loads(raw[DIGEST:])
    return entry


def packed(entry: Mapping[Any, Any]) -> bytes:
    """The content of the file of an entry."""
    raw = marshal.dumps(dict(entry))
    return digest(raw) + raw


edited: dict[str, tuple[str, ...]] = {}
"""The files that have changed since the same run found nothing, with the names of their documents then.

Empty if there is no such run, or if anything else has changed; without names for a file that is not a document.
"""


def replay(arguments: list[str]) -> int | None:
    """Print what the same run printed before, if nothing it depends on has changed.

    Returns:
        The exit status of that run; ``None`` if there is no such run, so that it has to be done.
    """
    edited.clear()
    if not is_enabled(arguments, os.environ) or sys.stdout is None:
        return None
    place = folder()
    if not place:
        return None
    try:
        file = os.path.join(place, key(arguments, os.environ).hex())
        entry = read(file)
        different = None if entry is None else changed(entry)
        if entry is None or different is None:
            return None
        if different:
            edited.update({each: entry["documents"].get(each, ()) for each in different})
            return None
        text, status = str(entry["text"]), int(entry["status"])
    except (OSError, KeyError, ValueError, TypeError, EOFError):
        return None
    try:
        os.utime(file)  # entries that are used stay
    except OSError:
        pass
    stream: Any = sys.stdout
    stream.reconfigure(errors="backslashreplace")
    stream.write(text)
    stream.flush()
    return status
