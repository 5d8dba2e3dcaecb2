"""docs/how-to/edit-without-loss.md: its blocks run."""

from __future__ import annotations

from docs_runner import Runner, blocks
from running import ROOT, Here

PAGE = ROOT / "docs" / "how-to" / "edit-without-loss.md"


def test_every_block(tmp_path, monkeypatch, capsys) -> None:
    """In order, in one namespace."""
    monkeypatch.delenv("COLUMNS", raising=False)
    runner = Runner(Here(tmp_path, monkeypatch, capsys))

    assert blocks(PAGE)

    for block in blocks(PAGE):
        runner.run(block)
