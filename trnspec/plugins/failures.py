"""Errors raised by code of a plugin: one line that names the plugin, and the traceback on request."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from trnspec.plugins.selection import TRACEBACK

if TYPE_CHECKING:
    from collections.abc import Callable
    from traceback import FrameSummary
    from typing import Any


def described(error: BaseException) -> str:
    """The type and the message of an error on one line; also where its message raises."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  # __str__ of a plugin's error may raise anything
        text = "its message cannot be shown"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def origin(error: BaseException, function: Callable[..., Any]) -> FrameSummary | None:
    """The last frame of the traceback that is in the package of a function; ``None`` where there is none."""
    package = _package(getattr(function, "__module__", None))
    frames = zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True)
    own = [summary for (frame, _), summary in frames if _package(frame.f_globals.get("__name__")) == package]
    return own[-1] if own else None


def _package(module: object) -> str:
    return str(module).partition(".")[0]


def print_traceback(error: BaseException) -> None:
    """Print the traceback on standard error if ``--traceback`` or TRNSPEC_TRACEBACK=1 is set."""
    wanted = TRACEBACK.get()
    if wanted if wanted is not None else os.environ.get("TRNSPEC_TRACEBACK", "").strip() not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)
