"""Entry points of installed distributions, and their import with a time limit."""

from __future__ import annotations

import time
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from attrs import frozen

from trnspec.plugins.failures import TimeLimitError, contained
from trnspec.plugins.selection import CORE, GROUP


def installed() -> list[EntryPoint]:
    """The installed plugins by name and distribution, without trnspec itself; none of them is imported."""
    others = [e for e in entry_points(group=GROUP) if (e.name, e.value) != CORE]
    return sorted(others, key=lambda e: (e.name, distribution(e)))


def distribution(entry: EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution of an entry point; empty where its metadata lack them."""
    if entry.dist is None:
        return "", ""
    try:
        metadata = entry.dist.metadata.json
    except OSError:  # of importlib_metadata, which replaces the finder of Python when another package imports it
        return "", ""
    return str(metadata.get("name", "")), str(metadata.get("version", ""))


@frozen
class ImportOutcome:
    """The result of the import of an entry point: an object or an error, a :class:`TimeLimitError` among them."""

    seconds: float
    value: Any
    error: BaseException | None

    @property
    def is_late(self) -> bool:
        """Whether the import was stopped by the time limit."""
        return isinstance(self.error, TimeLimitError)


def imported(entry: EntryPoint, seconds: float) -> ImportOutcome:
    """The outcome of the import of an entry point within a time limit."""
    began = time.perf_counter()
    value: Any = None
    error: BaseException | None = None
    try:
        with contained(seconds):
            value = entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as raised:  # noqa: BLE001  # SystemExit too: no plugin ends the run
        error = raised
    return ImportOutcome(time.perf_counter() - began, value, error)
