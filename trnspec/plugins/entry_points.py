"""Entry points of installed distributions: found without importing anything, and imported with a time limit.

``importlib.metadata`` takes about five times as long to find them; see ``docs/explanation/plugins.md``.
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
        value: The place of its object: ``package.module:object``.
    """

    name: str
    distribution: str
    version: str
    value: str

    def load(self) -> Any:
        """The object, imported now; raises whatever the import raises."""
        from functools import reduce
        from importlib import import_module

        module, _, path = self.value.partition("[")[0].partition(":")
        return reduce(getattr, filter(None, path.strip().split(".")), import_module(module.strip()))


GROUP = "trnspec.plugins"
"""The entry-point group whose objects are plugins."""

CORE = ("trnspec", "trnspec.builtin:plugin")
"""Name and place of trnspec's own plugin."""


def alone() -> bool:
    """Whether no other plugin than trnspec itself is installed."""
    return all((f.name, f.value) == CORE for f in installed(GROUP))


def folders(group: str) -> list[FilePath]:
    """The metadata folders, on the path of this interpreter, of distributions whose entry points name the group."""
    matches: list[FilePath] = []
    for place in dict.fromkeys(p or "." for p in sys.path):
        try:
            inside = sorted(e.path for e in os.scandir(place) if e.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue  # not a folder, such as the zip file of the standard library, or not readable
        for each in inside:
            try:
                with open(os.path.join(each, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123  # many files
                    text = file.read()
            except OSError:
                continue
            if group.encode() in text:
                matches.append(FilePath(each))
    return matches


def installed(group: str) -> list[EntryPoint]:
    """The installed entry points of a group, by name; none of them is imported."""
    by_distribution: dict[str, list[EntryPoint]] = {}
    for folder in folders(group):
        name, version = _called(folder)
        # The first on the path is the one that is imported.
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in by_distribution:
            text = (folder / "entry_points.txt").read_text(encoding="utf-8", errors="replace")
            by_distribution[key] = [EntryPoint(n, name, version, value) for n, value in _points(text, group)]
    return sorted((f for points in by_distribution.values() for f in points), key=lambda f: (f.name, f.distribution))


def _called(folder: FilePath) -> tuple[str, str]:
    """The name and version of a distribution: from its metadata headers, else from the name of the folder."""
    name, _, rest = folder.name.partition("-")
    headers = {"name": name, "version": rest.rpartition(".")[0]}
    # importlib.metadata parses the whole file as a message, which takes longer than importing most plugins.
    for file in ("METADATA", "PKG-INFO"):
        try:
            head = (folder / file).read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        except OSError:
            continue
        lines = (line.partition(":") for line in head.splitlines())
        headers.update({key.lower(): value.strip() for key, _, value in lines if key.lower() in headers})
        break
    return headers["name"], headers["version"]


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
    """The result of the import of an entry point: an object, an error, or a timeout."""

    seconds: float
    value: Any = None
    error: BaseException | None = None
    late: bool = False


class _Worker:
    """A thread that imports entry points one after the other, and is abandoned when one takes too long.

    One thread for all: switching threads takes longer than most imports.
    """

    def __init__(self, entry_points: list[EntryPoint]) -> None:
        from threading import Event, Lock, Thread

        self._entry_points = entry_points
        self._lock = Lock()
        self._ended = Event()
        self._began = time.perf_counter()
        self._abandoned = False
        self._outcomes: list[Outcome] = []
        # A daemon, so that an import that never ends does not keep the process alive.
        Thread(target=self._work, name="trnspec plugins", daemon=True).start()

    def _work(self) -> None:
        for each in self._entry_points:
            value: Any = None
            error: BaseException | None = None
            try:
                value = each.load()
            except BaseException as raised:  # noqa: BLE001  # SystemExit too: no plugin ends the run
                error = raised
            with self._lock:
                if self._abandoned:
                    return
                now = time.perf_counter()
                self._outcomes.append(Outcome(now - self._began, value, error))
                self._began = now
        self._ended.set()

    def outcomes(self, seconds: float) -> list[Outcome]:
        """The outcomes of all entry points, or up to the first that takes longer than the limit."""
        left = seconds
        while not self._ended.wait(left):
            with self._lock:
                left = self._began + seconds - time.perf_counter()
                if left <= 0 and len(self._outcomes) < len(self._entry_points):
                    self._abandoned = True
                    return [*self._outcomes, Outcome(seconds - left, late=True)]
            left = max(left, 0.0)
        return self._outcomes


def imported(entry_points: list[EntryPoint], seconds: float) -> list[Outcome]:
    """The outcome of the import of each entry point, in their order; ``seconds`` limits each import."""
    outcomes: list[Outcome] = []
    out = sys.stdout
    # Output of an import goes to standard error: programs read standard output.
    sys.stdout = sys.stderr
    try:
        while len(outcomes) < len(entry_points):
            outcomes += _Worker(entry_points[len(outcomes) :]).outcomes(seconds)
    finally:
        sys.stdout = out
    return outcomes
