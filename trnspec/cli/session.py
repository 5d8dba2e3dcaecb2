"""The context of one command: the plugins in use, and where their warnings go."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from trnspec.plugins.selection import ONLY, REPORT, TRACEBACK
from trnspec.text_table import visible

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plugins(only: tuple[str, ...] | None, *, traceback: bool | None = None) -> Iterator[None]:
    """Use only these plugins, or those of the environment; warnings go to standard error, one line each.

    Args:
        only: Names of plugins, empty for no plugin; ``None`` leaves the choice to the environment.
        traceback: Print the tracebacks of errors in plugins; ``None`` leaves the choice to the environment.
    """
    wanted = ONLY.set(only)
    traced = TRACEBACK.set(TRACEBACK.get() if traceback is None else traceback)
    token = REPORT.set(lambda text: click.echo(f"trnspec: warning: {visible(text)}", err=True))
    try:
        yield
    finally:
        ONLY.reset(wanted)
        TRACEBACK.reset(traced)
        REPORT.reset(token)
