"""Distribution of an evaluation of many configurations: set by the caller, read by the evaluator."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from attrs import define

if TYPE_CHECKING:
    from collections.abc import Iterator


@define
class Distribution:
    """How a search is evaluated.

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


_DISTRIBUTION: ContextVar[Distribution | None] = ContextVar("distribution", default=None)


@contextmanager
def distributed(how: Distribution) -> Iterator[None]:
    """Evaluates in this context in some way."""
    token = _DISTRIBUTION.set(how)
    try:
        yield
    finally:
        _DISTRIBUTION.reset(token)


def current() -> Distribution:
    """How to evaluate here; in this process unless :func:`distributed` says otherwise."""
    return _DISTRIBUTION.get() or Distribution()
