"""Progress of an evaluation that takes long: the evaluator reports, and the caller chooses what is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Report = Callable[[int, int], None]
"""Called with the work done and the work in all, in any unit."""

_REPORT: ContextVar[Report | None] = ContextVar("report", default=None)


def report(done: int, total: int) -> None:
    """Reports progress to the caller of the evaluation, if it wants to know."""
    if (to := _REPORT.get()) is not None:
        to(done, total)


@contextmanager
def reported(to: Report) -> Iterator[None]:
    """Passes the progress of evaluations in this context on."""
    token = _REPORT.set(to)
    try:
        yield
    finally:
        _REPORT.reset(token)
