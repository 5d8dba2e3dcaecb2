"""Parts of one run in processes of their own.

Each part is computed by a fork of this process, which ends with it: it has everything that this process knows, and what
it needs of memory is free again afterwards. A part whose process ends without a result is left to the caller, so that
killed processes and exhausted memory change nothing but the time.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from trnspec.cache import observer
from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

T = TypeVar("T")
R = TypeVar("R")

VARIABLE = "TRNSPEC_JOBS"
"""The environment variable with the number of processes."""

MOST = 8
"""The most processes unless a number is given: what is left is done by one."""

LIMIT = 256
"""The most processes that can be given."""

LEAST = 300
"""The least number of documents for which processes are started."""

LARGEST = 250
"""The most documents of one part, which bounds the memory of a process."""

FIRST = 16
"""The documents that the main process takes first: what they import and cache, all others inherit."""


def number_of(given: int | None, environ: Mapping[str, str] = os.environ) -> int:
    """The number of processes: a given one, that of TRNSPEC_JOBS, or one for each core that this process may use.

    Raises:
        UsageError: The variable is not a positive number.
    """
    text = environ.get(VARIABLE, "").strip()
    if given is None and text:
        if not text.isascii() or not text.isdigit() or not 0 < int(text) <= LIMIT:
            raise UsageError(f"{VARIABLE} is a number of processes from 1 to {LIMIT}, not {text!r}")
        given = int(text)
    if not _can_fork():
        return 1
    return min(len(os.sched_getaffinity(0)), MOST) if given is None else given


def _can_fork() -> bool:
    """Whether a fork is safe: on Linux, without other threads. Libraries of macOS do not survive it."""
    if sys.platform != "linux":
        return False
    try:
        with observer.unobserved():
            return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  # a Path would list it in the same way
    except OSError:
        return False


def parts_of(items: Sequence[T], jobs: int) -> list[Sequence[T]]:
    """Parts of some items: a small one for the main process, then several for each other process.

    Neighbours are in different parts, so that all parts are about equally expensive.
    """
    steps = max(1, len(items) // FIRST)
    first, rest = items[::steps], [item for index, item in enumerate(items) if index % steps]
    number = max(-(-len(rest) // LARGEST), _ROUNDS * jobs)
    return [first, *(part for start in range(number) if (part := rest[start::number]))]


_ROUNDS = 3
"""The least number of parts for each process: the last one to end should not be alone for long."""


def each(function: Callable[[T], R], parts: Sequence[T], jobs: int) -> Iterator[tuple[int, R | None]]:
    """The results of a function for each part, as they are finished.

    Args:
        function: Called in a fork of this process at the time when the part is started. Its result is pickled.
        parts: The arguments.
        jobs: The number of processes at a time.

    Yields:
        The index of a part, and its result; ``None`` if its process ended without one.
    """
    # Imported here: a run that checks one file needs none of them.
    import selectors
    import signal

    with observer.unobserved():
        selector = selectors.DefaultSelector()
    running: dict[int, tuple[int, int, list[bytes]]] = {}
    begun = 0
    try:
        while begun < len(parts) or running:
            while begun < len(parts) and len(running) < jobs:
                # An interrupt must find the new process in the list.
                mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
                try:
                    if started := _start(function, parts[begun], list(running), mask):
                        child, pipe = started
                        running[pipe] = (begun, child, [])
                        selector.register(pipe, selectors.EVENT_READ)
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                begun += 1
                if started is None:
                    yield begun - 1, None
            for key, _ in selector.select() if running else ():
                index, child, chunks = running[key.fd]
                if chunk := os.read(key.fd, _CHUNK):
                    chunks.append(chunk)
                    continue
                selector.unregister(key.fd)
                os.close(key.fd)
                del running[key.fd]
                ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                yield index, None if ended else _received(b"".join(chunks))
    finally:
        selector.close()
        for pipe, (_, child, _) in running.items():
            os.close(pipe)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


_CHUNK = 1 << 20


def _start(function: Callable[[T], R], part: T, others: list[int], mask: Iterable[int]) -> tuple[int, int] | None:
    """A process for one part, and the pipe that its result is read from; ``None`` if there can be no more of either."""
    import gc
    import pickle
    import signal

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    read = write = -1
    try:
        read, write = os.pipe()
        with observer.unobserved():
            child = os.fork()
    except OSError:
        for end in (read, write):
            if end >= 0:
                os.close(end)
        return None
    if child:
        os.close(write)
        return child, read
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the main process reports it
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        gc.disable()  # it would write to every object that the processes share
        for pipe in (read, *others):
            os.close(pipe)
        observer.forked()
        raw = pickle.dumps((function(part), observer.recorded()), pickle.HIGHEST_PROTOCOL)
        view = memoryview(raw)
        while view:
            view = view[os.write(write, view) :]
        if sys.stderr is not None:
            sys.stderr.flush()
        status = 0
    finally:
        os._exit(status)  # without the exit handlers of the main process, and without a traceback


def _received(raw: bytes) -> Any:
    """The result that a process has written; the files that it has opened are added to those of this process."""
    import pickle

    try:
        result, record = pickle.loads(raw)  # noqa: S301  # of a fork
    except Exception:  # noqa: BLE001  # an object of a plugin may fail in any way
        return None
    observer.add(record)
    return result
