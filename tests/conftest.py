"""What every test may use: a place for measurements, which are shown at the end of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

Tell = Callable[[str, Iterable[str]], None]

_TOLD = pytest.StashKey[dict[str, list[str]]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Shows lines under a title at the end of the run, whether or not the test passes."""

    def keep(title: str, lines: Iterable[str]) -> None:
        request.config.stash.setdefault(_TOLD, {})[title] = list(lines)

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for title, lines in config.stash.get(_TOLD, {}).items():
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.line(line)
