"""The command line. Each command is a module, which is imported when it is called."""

from __future__ import annotations

import atexit
import gc
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from trnspec.plugins.builtin_commands import COMMANDS

if TYPE_CHECKING:  # they import click
    from trnspec.cli.dispatch import group, main

__all__ = ["COMMANDS", "group", "main", "prepare"]


def __getattr__(name: str) -> Any:
    """The group of commands and its entry point, which import click."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trnspec.cli import dispatch

    return getattr(dispatch, name)


def prepare() -> None:
    """Set up a process that runs one command."""
    atexit.register(_leave_garbage)
    # A character that the terminal or file cannot encode is written as an escape instead of failing.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _leave_garbage() -> None:
    # DuckDB prints warnings for objects that are not collected.
    if "duckdb" not in sys.modules:
        gc.freeze()
