"""What every test may use: a place for measurements, which are shown at the end of the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import pytest
from hypothesis import settings

# How long an example takes says something about the machine, which others use as well.
settings.register_profile("trnspec", settings(), deadline=None)
settings.load_profile("trnspec")

# A test that starts the command line checks anew; those of the cache itself turn it on.
os.environ["TRNSPEC_NO_CACHE"] = "1"

Tell = Callable[[str, Iterable[str]], None]

_TOLD = "told at the end of the run"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Shows lines under a title at the end of the run, whether or not the test passes."""

    def keep(title: str, lines: Iterable[str]) -> None:
        # A property of the test's report: it also comes back from the processes of pytest-xdist.
        record_property(_TOLD, [title, *lines])

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, lines in getattr(report, "user_properties", ()):
                if name == _TOLD:
                    terminalreporter.section(lines[0])
                    for line in lines[1:]:
                        terminalreporter.line(line)
