"""Containment of code of a plugin: where its output goes, how long it may take, and how its errors are reported.

An error is one line that names the plugin, with the traceback on request.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from traceback import FrameSummary
from typing import Any, TypeVar

from trnspec.errors import TrnspecError, UsageError
from trnspec.plugins.selection import CORE, TRACEBACK

T = TypeVar("T")

RULE_SECONDS = 10.0
"""Seconds that one call of a function of a plugin may take, unless TRNSPEC_RULE_SECONDS is set."""

MOST_FINDINGS = 1_000
"""Findings of one call of a rule of a plugin that are kept; the rule is then stopped."""


class TimeLimitError(BaseException):
    """Code of a plugin took too long. Not an ``Exception``, so that the plugin does not catch it by accident."""


def seconds_of(variable: str, default: float, environ: Mapping[str, str] = os.environ) -> float:
    """A limit in seconds: that of an environment variable, or the default.

    Raises:
        UsageError: The variable is not a number above 0 and up to 3600.
    """
    text = environ.get(variable, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text, re.ASCII) or not 0 < float(text) <= 3600:
        raise UsageError(f"{variable} is a number of seconds above 0 and up to 3600, not {text!r}")
    return float(text)


def call_seconds() -> float:
    """Seconds that one call of a function of a plugin may take: TRNSPEC_RULE_SECONDS, or :data:`RULE_SECONDS`."""
    return seconds_of("TRNSPEC_RULE_SECONDS", RULE_SECONDS)


@contextmanager
def contained(seconds: float | None = None) -> Iterator[None]:
    """A context for code of a plugin: what it prints goes to standard error, and it has a limited time.

    Standard output belongs to the result of the command. Both apply in the main thread only: standard output is one for
    all threads, and the limit needs a signal. The limit also needs a system with interval timers, and does not interrupt
    a C function that does not return.

    Args:
        seconds: The limit; ``None`` for none.

    Raises:
        TimeLimitError: The code took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with redirect_stdout(sys.stderr):
        if seconds is None or not hasattr(signal, "setitimer"):
            yield
            return

        def expire(_signal: int, _frame: object) -> None:
            raise TimeLimitError(f"it took longer than {seconds:g} s")

        handler = signal.signal(signal.SIGALRM, expire)
        remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            # A timer of the caller, such as that of a test runner, runs on.
            signal.setitimer(signal.ITIMER_REAL, remaining, interval)
            signal.signal(signal.SIGALRM, handler)


@contextmanager
def guarded(what: str, provider: str) -> Iterator[None]:
    """A context for a function of a plugin: contained, and what it raises becomes one error that names it.

    Args:
        what: What is called: ``the exporter json``.
        provider: Its plugin, as the registry describes it.

    Raises:
        UsageError: It took too long, or raised another error than a :class:`TrnspecError`.
    """
    try:
        with contained(None if provider == CORE[0] else call_seconds()):
            yield
    except (TrnspecError, KeyboardInterrupt):
        raise
    except BaseException as error:
        print_traceback(error)
        raise UsageError(f"{what} of {provider} failed: {described(error)}") from error


def called(what: str, provider: str, function: Callable[..., Any], returns: type[T], *args: Any, **options: Any) -> T:
    """The result of a function of a plugin; see :func:`guarded`.

    Raises:
        UsageError: It failed, or returned a value of another class.
    """
    with guarded(what, provider):
        result = function(*args, **options)
    if not isinstance(result, returns):
        article = "an" if returns.__name__[0] in "AEIOU" else "a"
        of = type(result).__name__
        raise UsageError(f"{what} of {provider} returned a {of}; {article} {returns.__name__} is expected")
    return result


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
