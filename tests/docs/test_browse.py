"""docs/how-to/browse-the-catalog.md: its blocks run."""

from __future__ import annotations

import pytest
from docs_runner import Runner, blocks
from running import ROOT, Here

PAGE = ROOT / "docs" / "how-to" / "browse-the-catalog.md"


@pytest.mark.slow
def test_every_block(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    runner = Runner(Here(tmp_path, monkeypatch, capsys))

    assert blocks(PAGE)

    for block in blocks(PAGE):
        runner.run(block)
