"""What holds while one command runs: the plugins it may use, and where warnings of them go."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trnspec.plugins.selection import ONLY, TELL, TRACEBACK

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plugins(only: tuple[str, ...] | None, *, traceback: bool | None = None) -> Iterator[None]:
    """Use only the plugins of these names, or what the environment says; warnings go to standard error, one line each.

    Args:
        only: Names of plugins, none of them for no plugin; ``None`` leaves the choice to the environment.
        traceback: Print the tracebacks of errors in plugins; ``None`` leaves the choice to the environment.
    """
    wanted = ONLY.set(only)
    traced = TRACEBACK.set(TRACEBACK.get() if traceback is None else traceback)
    tell = TELL.set(lambda text: click.echo(f"trnspec: warning: {text}", err=True))
    try:
        yield
    finally:
        ONLY.reset(wanted)
        TRACEBACK.reset(traced)
        TELL.reset(tell)
