"""A progress bar on standard error, for evaluations that report progress."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.evaluation.progress import Report


def _ignored(_done: int, _total: int) -> None:
    """Shows nothing."""


@contextmanager
def bar() -> Iterator[Report]:
    """A function that shows the work done and the work in all; it shows nothing where standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield _ignored
        return
    shown = None

    def advance(done: int, total: int) -> None:
        nonlocal shown
        if shown is None:
            shown = click.progressbar(length=total, file=sys.stderr)
            shown.__enter__()
        shown.update(done - shown.pos)

    try:
        yield advance
    finally:
        if shown is not None:
            shown.__exit__(None, None, None)
