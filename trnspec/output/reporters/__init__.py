"""A report as text, JSON, SARIF, GitHub annotations or JUnit XML: the table of formats, and nothing heavier.

A reporter is a pure function from a report to a text without a newline at its end.  Each stands in a module of its
own, imported when it is asked for, so that a run which prints text does not pay for XML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from trnspec.diagnostics import Report

Reporter = Callable[..., str]
"""``reporter(report, *, color=False, ...) -> str``; it ignores the options that mean nothing in its format."""

_MODULES = {
    "text": "trnspec.output.reporters.text",
    "json": "trnspec.output.reporters.json_",
    "sarif": "trnspec.output.reporters.sarif",
    "github": "trnspec.output.reporters.github",
    "junit": "trnspec.output.reporters.junit",
}

FORMATS: tuple[str, ...] = tuple(_MODULES)
"""The names of the formats, the one for people first."""


class _Stream(Protocol):
    """What :func:`use_color` asks of a stream."""

    def isatty(self) -> bool: ...


def reporter(format: str) -> Reporter:
    """The reporter of that name; ``UsageError`` lists the names otherwise."""
    try:
        module = _MODULES[format]
    except KeyError:
        raise UsageError(f"{format!r} is not a report format; write one of {', '.join(FORMATS)}") from None
    found: Reporter = import_module(module).report
    return found


def render(
    report: Report,
    format: str,
    *,
    color: bool = False,
    width: int | None = None,
    texts: Mapping[str, str] | None = None,
    docs: str = "",
    when: datetime | None = None,
) -> str:
    """The report in one of :data:`FORMATS`, without a newline at its end.

    Args:
        report: What was found.
        format: One of :data:`FORMATS`; ``UsageError`` otherwise.
        color: Colour the text with ANSI sequences; see :func:`use_color`.
        width: How many columns a source line may take in the text; longer ones are cut around the finding.
        texts: File name -> its text, as the findings name the file; the text format then shows the source line.
        docs: The web address under which each code has its page, ``docs + "/TRN402"``; no links without it.
        when: When the run took place; JUnit XML carries it, and leaves it out when it is not given.
    """
    return reporter(format)(report, color=color, width=width, texts=texts, docs=docs, when=when)


def use_color(stream: _Stream, environ: Mapping[str, str]) -> bool:
    """Whether text that goes to ``stream`` should be coloured.

    A ``NO_COLOR`` that is not empty says no, else a ``FORCE_COLOR`` that is not empty says yes, else it is a question
    of whether a terminal that knows colours listens.
    """
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"
