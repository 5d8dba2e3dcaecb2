"""The pages on plans: their blocks run."""

from __future__ import annotations

import pytest
from docs_runner import Runner, blocks
from running import ROOT, Here

PAGES = ("plan-a-training-run.md", "size-a-serving-fleet.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_block(page, tmp_path, monkeypatch, capsys) -> None:
    """In order, in one namespace."""
    monkeypatch.delenv("COLUMNS", raising=False)
    runner = Runner(Here(tmp_path, monkeypatch, capsys))
    found = list(blocks(ROOT / "docs" / "how-to" / page))

    assert len(found) >= 2
    for block in found:
        runner.run(block)
