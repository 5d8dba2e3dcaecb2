"""Evaluation of a search in this process, or in parts by an executor."""

from __future__ import annotations

import hashlib
import itertools
import pickle
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trnspec.errors import UsageError
from trnspec.evaluation.progress import current, report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from trnspec.evaluators.searching.space import Search
    from trnspec.perf.sweep.reductions import Selected


def reduced(search: Search, first: int = 0, last: int | None = None) -> Selected:
    """What is kept of a range of a search, evaluated as :func:`trnspec.evaluation.progress.distributed` says; by default of all of it.

    Raises:
        UsageError: The executor lost its workers.
    """
    how = current()
    kept = search.selection.empty()
    ends = first, search.size if last is None else last
    try:
        if how.executor is None:
            _here(search, ends, kept)
        else:
            _elsewhere(search, ends, how.executor, how.parts, kept)
    except KeyboardInterrupt:
        if not how.interruptible:
            raise
        how.interrupted = True
    return kept


def _here(search: Search, ends: tuple[int, int], kept: Selected) -> None:
    done, size = 0, ends[1] - ends[0]

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(done, size)

    search.kept(*ends, advance, kept)


def _elsewhere(search: Search, ends: tuple[int, int], executor: Executor, parts: int, kept: Selected) -> None:
    packed = pickle.dumps(search)
    key = hashlib.sha256(packed).hexdigest()
    first, size = ends[0], ends[1] - ends[0]
    count = max(1, min(parts, size))
    cuts = [first + size * number // count for number in range(count + 1)]
    futures = {executor.submit(evaluated, key, packed, low, high): high - low for low, high in itertools.pairwise(cuts)}
    done = 0
    try:
        for future in as_completed(futures):
            try:
                kept.merge(future.result())
            except (OSError, RuntimeError) as error:
                raise UsageError(f"a worker failed: {type(error).__name__}: {error}") from error
            done += futures[future]
            report(done, size)
    finally:
        for future in futures:
            future.cancel()


def evaluated(key: str, packed: bytes, first: int, last: int) -> Selected:
    """What is kept of a range of the configurations of a search, in the process of a worker."""
    return _unpacked(key, packed).kept(first, last)


_UNPACKED: dict[str, Search] = {}


def _unpacked(key: str, packed: bytes) -> Search:
    """The search that was pickled, read once in a process."""
    if key not in _UNPACKED:
        _UNPACKED.clear()
        _UNPACKED[key] = pickle.loads(packed)  # noqa: S301  # from the process that submits the part
    return _UNPACKED[key]


RETRIES = 10
"""Times that a part is evaluated again if its worker is lost."""
TIMEOUT = "30s"
"""For the connection to the scheduler."""


@contextmanager
def executor(address: str) -> Iterator[tuple[Executor, int]]:
    """An executor of the workers of a scheduler, and their number.

    Raises:
        UsageError: Dask is not installed, or there is no scheduler at the address.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise UsageError(f"distributed is not installed ({error}); pip install 'trnspec[dask]'") from error
    try:
        client = distributed.Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(f"there is no Dask scheduler at {address}: {error}") from error
    with client:
        yield client.get_executor(retries=RETRIES), max(1, len(client.scheduler_info()["workers"]))
