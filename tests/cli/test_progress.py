"""The progress bar of evaluations: on a terminal only, and on standard error."""

from __future__ import annotations

import io

import pytest

from trnspec.cli import progress
from trnspec.evaluation.progress import report, reported


class Terminal(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_reported_progress_is_shown(monkeypatch, terminal):
    stream = Terminal(terminal=terminal)
    monkeypatch.setattr(progress.sys, "stderr", stream)
    with progress.bar() as advance, reported(advance):
        for done in (1, 5, 10):
            report(done, 10)
    assert terminal == ("100%" in stream.getvalue())
    if not terminal:
        assert stream.getvalue() == ""
    # Nothing is shown outside.
    before = stream.getvalue()
    report(1, 10)
    assert before == stream.getvalue()
