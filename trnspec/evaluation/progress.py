"""Evaluations that take long: their progress, which the caller chooses to show, and where their parts are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import define

if TYPE_CHECKING:  # it imports logging
    from concurrent.futures import Executor

Report = Callable[[int, int], None]
"""Called with the work done and the work in all, in any unit."""

_REPORT: ContextVar[Report | None] = ContextVar("report", default=None)


def report(done: int, total: int) -> None:
    """Reports progress to the caller of the evaluation, if it wants to know."""
    if (to := _REPORT.get()) is not None:
        to(done, total)


@contextmanager
def _within(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


reported = partial(_within, _REPORT)
"""A context in which the progress of evaluations is passed on to a :data:`Report`."""


@define
class SearchExecution:
    """Execution of a search.

    Attributes:
        executor: Evaluates the parts; ``None`` for this process.
        parts: Number of parts for an executor.
        interruptible: Whether ``KeyboardInterrupt`` ends the search with what was found.
        interrupted: Whether it has.
    """

    executor: Executor | None = None
    parts: int = 64
    interruptible: bool = False
    interrupted: bool = False


_DISTRIBUTION: ContextVar[SearchExecution | None] = ContextVar("distribution", default=None)


distributed = partial(_within, _DISTRIBUTION)
"""A context in which searches have a :class:`SearchExecution`."""


def current() -> SearchExecution:
    """The execution in effect; in this process unless :func:`distributed` sets another."""
    return _DISTRIBUTION.get() or SearchExecution()
