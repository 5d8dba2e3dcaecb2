"""A progress bar with rate and remaining time on standard error, for evaluations that report progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from trnspec.evaluation.progress import Report

_UPDATE = 0.1
"""Seconds between two updates."""


def _ignored(_done: int, _total: int) -> None:
    """Shows nothing."""


@contextmanager
def bar() -> Iterator[Report]:
    """A function that shows the work done and the work in all; it shows nothing where standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield _ignored
        return
    shown: Any = None
    began = last = time.monotonic()

    def advance(done: int, total: int) -> None:
        nonlocal shown, last
        now = time.monotonic()
        if shown is None:
            shown = click.progressbar(length=total, file=sys.stderr, item_show_func=lambda text: text)
            shown.__enter__()
        elif now < last + _UPDATE and done < total:
            return
        last = now
        shown.update(done - shown.pos, rate(done / (now - began)) if now > began else "")

    try:
        yield advance
    finally:
        if shown is not None:
            shown.__exit__(None, None, None)


def rate(number: float) -> str:
    """A number per second: ``12.3 M/s``."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {prefix}/s"
    return f"{number:.3g} /s"
