"""A limit for what could run away: far above what it takes on a slow machine, and far below quadratic time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Fails after that much processor time, where the system has such a timer."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> NoReturn:
        raise AssertionError(f"still running after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
