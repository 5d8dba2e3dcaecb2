"""Records which files a run opens and which folders it lists, and stores its verdict with their state.

The record comes from Python's audit events, so that it contains what a rule of a plugin reads as well. What a file
contained is hashed at the end; a run during which one of them changed is not stored.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager

from trnspec.cache import verdicts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

MOST_ENTRIES = 500
MOST_BYTES = 64 * 2**20
MOST_TEXT = 4 * 2**20
"""Limits of the number of entries, of their total size, and of the output of one run."""

_SETTLED = 100_000_000
"""A file that was written less than this number of nanoseconds before it was read may change without a new time."""

_EFFECTS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec", "socket.connect", "urllib.Request")
"""Events of runs that depend on more than files."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Observer:
    """The files and folders of one run.

    Attributes:
        files: The files that were opened, with their state before.
        folders: The folders that were listed, with the hash of their names before.
        known: The files whose content is known without reading them, with its hash and their state.
        modules: The files of modules that only other processes of the run have imported, with time and size.
        reason: Why the run cannot be stored; empty if it can.
        is_busy: Whether events are ignored at present.
        imported: In a fork, the names of the modules that were imported before.
    """

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, ...]] = {}
        self.folders: dict[str, bytes] = {}
        self.known: dict[str, tuple[bytes, tuple[int, ...]]] = {}
        self.modules: dict[str, tuple[int, ...]] = {}
        self.reason = ""
        self.began = time.time_ns()
        self.is_busy = False
        self.imported: frozenset[str] = frozenset()

    def event(self, name: str, arguments: tuple[Any, ...]) -> None:
        """One audit event."""
        if self.is_busy or self.reason:
            return
        self.is_busy = True
        try:
            if name == "open":
                self._open(*arguments)
            elif name in ("os.listdir", "os.scandir"):
                path = os.path.abspath(os.fsdecode(arguments[0] if arguments[0] is not None else "."))
                if path not in self.folders and not _is_code(path):
                    self.folders[path] = verdicts.names(path)
            elif name in _EFFECTS:
                self.reason = name
        except (OSError, TypeError, ValueError) as error:
            self.reason = f"{name}: {error}"
        finally:
            self.is_busy = False

    def _open(self, path: Any, mode: str | None, flags: int | None) -> None:
        if isinstance(path, int):
            return  # a descriptor that was opened before
        file = os.path.abspath(os.fsdecode(path))
        if _is_code(file) or file in self.files:
            return
        if (flags is not None and flags & _WRITING) or (mode is not None and set(mode) & set("wax+")):
            self.reason = f"{file} is written"
            return
        before = self.files[file] = verdicts.state_of(file)
        if before and time.time_ns() - before[0] < _SETTLED:
            self.reason = f"{file} was written just now"


def _is_code(path: str) -> bool:
    """Whether a path is covered by the modules, by the distributions, or by the version of Python."""
    folder, name = os.path.split(path)
    return (
        name.endswith((".py", ".so", ".pyd"))
        or "__pycache__" in path
        or (sys.pycache_prefix is not None and path.startswith(os.path.join(sys.pycache_prefix, "")))
        or path in _python_path()
        or (path.startswith(_STANDARD) and not _is_installed(path))
        or folder.endswith((".dist-info", ".egg-info"))
    )


_paths: dict[tuple[str, ...], frozenset[str]] = {}


def _python_path() -> frozenset[str]:
    key = tuple(sys.path)
    if key not in _paths:
        _paths[key] = frozenset(os.path.abspath(p or ".") for p in key)
    return _paths[key]


def _is_installed(path: str) -> bool:
    """Whether a path below the standard library belongs to an installed distribution."""
    return f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path


_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


_current: Observer | None = None
_hooked = False


def _hook(name: str, arguments: tuple[Any, ...]) -> None:
    if _current is not None:
        _current.event(name, arguments)


def start(arguments: list[str]) -> None:
    """Observe this process from now on, if the command line may use the cache."""
    global _current, _hooked  # noqa: PLW0603  # an audit hook cannot be removed
    if not verdicts.is_enabled(arguments, os.environ) or sys.stdout is None:
        return
    _current = Observer()
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True


def stop() -> None:
    """End the observation."""
    global _current  # noqa: PLW0603  # see above
    _current = None


@contextmanager
def unobserved() -> Iterator[None]:
    """Files that are opened meanwhile do not belong to the run: they are caches themselves."""
    observer = _current
    if observer is None:
        yield
        return
    observer.is_busy = True
    try:
        yield
    finally:
        observer.is_busy = False


def depend(file: str, digest: bytes, state: tuple[int, ...]) -> None:
    """The run depends on a file that it does not open, because its content is known.

    Args:
        file: The absolute path of the file.
        digest: The hash of its content.
        state: Its state, as :func:`trnspec.cache.verdicts.change_of` gives it.
    """
    if _current is not None:
        _current.known[file] = (digest, state)


def forked() -> None:
    """Begin the record of a fork of this process."""
    global _current  # noqa: PLW0603  # see above
    if _current is not None:
        _current = Observer()
        _current.imported = frozenset(sys.modules)


def recorded() -> Observer | None:
    """The record of a fork; ``None`` if the run is not observed."""
    if _current is not None:
        new = (module for name, module in list(sys.modules.items()) if name not in _current.imported)
        _current.modules = dict(_files_of(new))
    return _current


def add(other: Observer | None) -> None:
    """Add the record of a fork to that of this process."""
    if _current is not None and other is not None:
        _current.files = other.files | _current.files
        _current.folders = other.folders | _current.folders
        _current.known = other.known | _current.known
        _current.modules |= other.modules
        _current.reason = _current.reason or other.reason


def store(arguments: list[str], text: str, status: int, documents: Mapping[str, tuple[str, ...]] | None = None) -> str:
    """Store what a run printed; without an error wherever that is not possible.

    Args:
        arguments: The command line.
        text: What it printed.
        status: Its exit status.
        documents: The names of the document in each file, if nothing was found in any of them.

    Returns:
        Why it was not stored, or an empty text.
    """
    observer = _current
    stop()
    if observer is None:
        return "the cache is not used"
    reason = observer.reason or _unsettled(observer)
    place = verdicts.folder()
    if reason or not place or len(text) > MOST_TEXT:
        return reason or "there is no folder, or the output is too long"
    files, reason = _contents(observer)
    if reason:
        return reason
    entry: dict[str, Any] = {
        "text": text,
        "status": status,
        "distributions": verdicts.distributions(sys.path),
        "settings": verdicts.existing(os.getcwd()),
        "modules": dict(_modules()) | observer.modules,
        "folders": observer.folders,
        "files": files,
        "documents": dict(documents or {}),
    }
    try:
        write(place, verdicts.key(arguments, os.environ).hex(), [verdicts.packed(entry)])
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _contents(observer: Observer) -> tuple[dict[str, tuple[bytes, tuple[int, ...]]], str]:
    """The hash and the state of each file that a run depends on, and why it cannot be stored."""
    files: dict[str, tuple[bytes, tuple[int, ...]]] = {}
    identities: list[tuple[int, ...]] = []
    for file, (digest, state) in observer.known.items():
        if file not in observer.files:
            if (verdicts.change_of(file) != state) if state else (verdicts.content(file)[0] != digest):
                return {}, f"{file} changed"
            files[file] = digest, verdicts.settled(state)
            identities.append(state[2:4])
    for file, before in observer.files.items():
        state = verdicts.settled(verdicts.change_of(file))
        digest, after = verdicts.content(file)
        files[file] = digest, state
        if before and after != before:
            return {}, f"{file} changed"
        identities.append(after[2:])
    identities = [identity for identity in identities if identity]
    return files, "" if len(set(identities)) == len(identities) else "a file has two names"


def _unsettled(observer: Observer) -> str:
    modules = (*_modules(), *observer.modules.items())
    return next((f for f, (time, _) in modules if time > observer.began - _SETTLED), "")


def _modules() -> Iterator[tuple[str, tuple[int, ...]]]:
    """The files of all modules outside the standard library, with time and size."""
    return _files_of(list(sys.modules.values()))


def _files_of(modules: Iterable[Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for module in modules:
        file = getattr(module, "__dict__", {}).get("__file__")  # without importing one that is deferred
        if isinstance(file, str) and (not file.startswith(_STANDARD) or _is_installed(file)):
            stamp = verdicts.stamp(os.path.abspath(file))
            if stamp:
                yield os.path.abspath(file), stamp


def write(folder: str, name: str, parts: Iterable[bytes], most: int = MOST_BYTES) -> None:
    """Write an entry as a whole or not at all, and remove the oldest ones beyond the limits."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.writelines(parts)
        os.replace(temporary, os.path.join(folder, name))
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise
    prune(folder, most)


def prune(folder: str, most: int = MOST_BYTES) -> None:
    """Remove the entries that were not used for the longest time, until the limits are met."""
    entries = []
    with os.scandir(folder) as inside:
        for entry in inside:
            try:
                status = entry.stat()
            except OSError:
                continue  # another run has removed it
            entries.append((-status.st_mtime_ns, status.st_size, entry.path))
    total = 0
    for number, (_, size, path) in enumerate(sorted(entries)):
        total += size
        if number >= MOST_ENTRIES or total > most:
            try:
                os.unlink(path)
            except OSError:
                continue
