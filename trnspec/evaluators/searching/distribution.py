"""How a search is evaluated: in this process, or in parts by an executor; and what is kept if it is interrupted."""

from __future__ import annotations

import hashlib
import pickle
from concurrent.futures import CancelledError, Executor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.evaluation.progress import report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.evaluators.searching.space import Search
    from trnspec.perf.searching.selection import Kept


@frozen
class Distribution:
    """How a search is evaluated.

    Attributes:
        executor: Evaluates the parts; ``None`` for this process.
        parts: Number of parts for an executor.
        interruptible: Whether ``KeyboardInterrupt`` ends the search with what was found.
    """

    executor: Executor | None = None
    parts: int = 64
    interruptible: bool = False


_DISTRIBUTION: ContextVar[Distribution] = ContextVar("distribution", default=Distribution())  # noqa: B039  # frozen


@contextmanager
def distributed(how: Distribution) -> Iterator[None]:
    """Evaluates the searches of this context in some way."""
    token = _DISTRIBUTION.set(how)
    try:
        yield
    finally:
        _DISTRIBUTION.reset(token)


def reduced(search: Search) -> Kept:
    """What is kept of all configurations of a search, evaluated as :func:`distributed` says.

    Raises:
        UsageError: The executor lost its workers.
    """
    how = _DISTRIBUTION.get()
    kept = search.selection.empty()
    try:
        if how.executor is None:
            _here(search, kept)
        else:
            _elsewhere(search, how.executor, how.parts, kept)
    except KeyboardInterrupt:
        if not how.interruptible:
            raise
    return kept


def _here(search: Search, kept: Kept) -> None:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(done, search.size)

    search.kept(0, search.size, advance, kept)


def _elsewhere(search: Search, executor: Executor, parts: int, kept: Kept) -> None:
    packed = pickle.dumps(search)
    key = hashlib.sha256(packed).hexdigest()
    count = max(1, min(parts, search.size))
    ranges = [search.part(number, count) for number in range(1, count + 1)]
    futures = {executor.submit(evaluated, key, packed, first, last): last - first for first, last in ranges}
    done = 0
    try:
        for future in as_completed(futures):
            try:
                kept.merge(future.result())
            except CancelledError:
                raise
            except (OSError, RuntimeError) as error:
                raise UsageError(f"a worker failed: {type(error).__name__}: {error}") from error
            done += futures[future]
            report(done, search.size)
    finally:
        for future in futures:
            future.cancel()


def evaluated(key: str, packed: bytes, first: int, last: int) -> Kept:
    """What is kept of a range of the configurations of a search, in the process of a worker."""
    return _unpacked(key, packed).kept(first, last)


_UNPACKED: dict[str, Search] = {}


def _unpacked(key: str, packed: bytes) -> Search:
    """The search that was pickled, read once in a process."""
    if key not in _UNPACKED:
        _UNPACKED.clear()
        _UNPACKED[key] = pickle.loads(packed)  # noqa: S301  # from the process that submits the part
    return _UNPACKED[key]
