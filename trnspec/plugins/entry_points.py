"""Entry points of installed distributions: found without importing anything, and imported without waiting for ever.

``importlib.metadata`` would do the first in about five times the time; see ``docs/explanation/plugins.md``.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator


@frozen
class EntryPoint:
    """An installed entry point that has not been imported.

    Attributes:
        name: Its name.
        distribution: The distribution it belongs to.
        version: The version of that.
        value: Where its object is: ``package.module:object``.
    """

    name: str
    distribution: str
    version: str
    value: str

    def load(self) -> Any:
        """The object, imported now; it raises whatever the import raises."""
        from functools import reduce
        from importlib import import_module

        module, _, path = self.value.partition("[")[0].partition(":")
        return reduce(getattr, filter(None, path.strip().split(".")), import_module(module.strip()))


GROUP = "trnspec.plugins"
"""The entry-point group whose objects are plugins."""

CORE = ("trnspec", "trnspec.builtin:plugin")
"""Name and place of the plugin that trnspec itself is."""


def alone() -> bool:
    """Whether trnspec is the only plugin that is installed."""
    return all((f.name, f.value) == CORE for f in installed(GROUP))


def folders(group: str) -> list[FilePath]:
    """The metadata folders, on the path of this interpreter, of distributions whose entry points name the group."""
    found: list[FilePath] = []
    for place in dict.fromkeys(p or "." for p in sys.path):
        try:
            inside = sorted(e.path for e in os.scandir(place) if e.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue  # what cannot be listed holds nothing that could be imported; so does the standard library's zip
        for each in inside:
            try:
                with open(os.path.join(each, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123  # many files
                    text = file.read()
            except OSError:
                continue
            if group.encode() in text:
                found.append(FilePath(each))
    return found


def installed(group: str) -> list[EntryPoint]:
    """The entry points of a group that are installed, by name; none of them is imported."""
    found: dict[str, list[EntryPoint]] = {}
    for folder in folders(group):
        name, version = _called(folder)
        # The first on the path is the one that is imported.
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in found:
            text = (folder / "entry_points.txt").read_text(encoding="utf-8", errors="replace")
            found[key] = [EntryPoint(n, name, version, value) for n, value in _points(text, group)]
    return sorted((f for each in found.values() for f in each), key=lambda f: (f.name, f.distribution))


def _called(folder: FilePath) -> tuple[str, str]:
    """The name and the version of a distribution: from the head of its metadata, else from the name of the folder."""
    name, _, rest = folder.name.partition("-")
    said = {"name": name, "version": rest.rpartition(".")[0]}
    # importlib.metadata reads the whole of it as a message, which takes longer than to import most plugins.
    for file in ("METADATA", "PKG-INFO"):
        try:
            head = (folder / file).read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        except OSError:
            continue
        lines = (line.partition(":") for line in head.splitlines())
        said.update({key.lower(): value.strip() for key, _, value in lines if key.lower() in said})
        break
    return said["name"], said["version"]


def _points(text: str, wanted: str) -> Iterator[tuple[str, str]]:
    """The names and values of the entry points of the group."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif group == wanted and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


@frozen
class Outcome:
    """What the import of an entry point gave: an object, an error, or nothing in time."""

    seconds: float
    value: Any = None
    error: BaseException | None = None
    late: bool = False


class _Worker:
    """A thread that imports entry points one after the other, and is left behind when one takes too long.

    One thread for all, since to hand over from thread to thread takes longer than most imports.
    """

    def __init__(self, found: list[EntryPoint]) -> None:
        from threading import Event, Lock, Thread

        self._found = found
        self._lock = Lock()
        self._ended = Event()
        self._began = time.perf_counter()
        self._left_behind = False
        self._outcomes: list[Outcome] = []
        # A daemon: one that never comes back does not keep the process.
        Thread(target=self._work, name="trnspec plugins", daemon=True).start()

    def _work(self) -> None:
        for each in self._found:
            value: Any = None
            error: BaseException | None = None
            try:
                value = each.load()
            except BaseException as raised:  # noqa: BLE001  # also SystemExit: nothing in a plugin ends the run
                error = raised
            with self._lock:
                if self._left_behind:
                    return
                now = time.perf_counter()
                self._outcomes.append(Outcome(now - self._began, value, error))
                self._began = now
        self._ended.set()

    def outcomes(self, seconds: float) -> list[Outcome]:
        """The outcomes of all entry points, or of those up to the first that took longer than so many seconds."""
        left = seconds
        while not self._ended.wait(left):
            with self._lock:
                left = self._began + seconds - time.perf_counter()
                if left <= 0 and len(self._outcomes) < len(self._found):
                    self._left_behind = True
                    return [*self._outcomes, Outcome(seconds - left, late=True)]
            left = max(left, 0.0)
        return self._outcomes


def imported(found: list[EntryPoint], seconds: float) -> list[Outcome]:
    """What the import of each entry point gave, in their order."""
    outcomes: list[Outcome] = []
    out = sys.stdout
    # What a plugin prints while it is imported is not part of our output, which programs may read.
    sys.stdout = sys.stderr
    try:
        while len(outcomes) < len(found):
            outcomes += _Worker(found[len(outcomes) :]).outcomes(seconds)
    finally:
        sys.stdout = out
    return outcomes
