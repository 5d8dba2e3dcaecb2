"""The command line in a folder of its own."""

from __future__ import annotations

import pytest

from tests.support.programs import Here


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    """The command line in this process, 80 columns wide; settings are not looked for above its folder."""
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / ".git").mkdir()
    return Here(tmp_path, monkeypatch, capsys)
