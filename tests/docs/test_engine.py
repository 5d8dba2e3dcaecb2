"""docs/reference/engine.md: every block shows what it prints."""

from __future__ import annotations

from docs_runner import Runner, blocks
from running import ROOT, Here

PAGE = ROOT / "docs" / "reference" / "engine.md"


def test_every_block(tmp_path, monkeypatch, capsys) -> None:
    """In order, in one namespace: later blocks use what earlier ones have made."""
    runner = Runner(Here(tmp_path, monkeypatch, capsys))
    found = blocks(PAGE)

    assert len(found) == PAGE.read_text(encoding="utf-8").count("\n```") // 2
    for block in found:
        runner.run(block)
