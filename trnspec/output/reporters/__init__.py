"""Reporters: a report as text, JSON, SARIF, GitHub annotations, JUnit XML, or in the format of a plugin.

A reporter is a function from a report to a text without a newline at its end. The formats are the reporters of the
registry; each is imported when it is used, so that a run which prints text does not import XML.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from attrs import evolve

from trnspec.diagnostics import Location, Report
from trnspec.plugins.api import loaded
from trnspec.plugins.discovery import installed
from trnspec.plugins.failures import called


class _Stream(Protocol):
    """Interface of a stream that :func:`use_color` needs."""

    def isatty(self) -> bool: ...


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
    """The report in one format, without a newline at its end.

    Files below the working directory are named relative to it.

    Args:
        report: The findings.
        format: The name of a reporter: ``text``, ``json``, ``sarif``, ``github``, ``junit``, or that of a plugin.
        color: Colour the text with ANSI sequences; see :func:`use_color`.
        width: Columns for a source line in the text; longer lines are cut around the finding.
        texts: File name -> text, as the findings name the file; the text format then shows the source line.
        docs: The web address under which each code has its page, ``docs + "/TRN402"``; no links without it.
        when: The time of the run, for JUnit XML.

    Raises:
        UsageError: There is no such format, or the reporter raised an error or did not return a text.
    """
    registry = installed().registry
    chosen = registry.reporter(format)
    what, provider = f"the reporter {chosen.name}", registry.provider(chosen)
    named = None if texts is None else {_relative(file): text for file, text in texts.items()}
    options = {"color": color, "width": width, "texts": named, "docs": docs, "when": when}
    return called(what, provider, loaded(f"{what} of {provider}", chosen.run), str, _with_relative(report), **options)


def _relative(file: str) -> str:
    return file.removeprefix(os.path.join(os.getcwd(), ""))  # noqa: PTH109, PTH118  # a final separator


def _with_relative(report: Report) -> Report:
    def near(place: Location) -> Location:
        return evolve(place, file=_relative(place.file))

    named = (evolve(d, where=near(d.where), see=tuple(map(near, d.see))) for d in report.diagnostics)
    return evolve(report, diagnostics=tuple(named))


def use_color(stream: _Stream, environ: Mapping[str, str]) -> bool:
    """Whether text for ``stream`` is coloured.

    A non-empty ``NO_COLOR`` turns colour off; else a non-empty ``FORCE_COLOR`` turns it on; else a terminal that supports
    colour gets it.
    """
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"
