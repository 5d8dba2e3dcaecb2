"""The page on charts: its blocks run."""

from __future__ import annotations

import pytest
from docs_runner import Runner, blocks
from running import ROOT, Here

pytest.importorskip("matplotlib", reason="charts need matplotlib, the extra plot")


def test_every_block(tmp_path, monkeypatch, capsys) -> None:
    """In order, in one namespace; each file is written."""
    monkeypatch.delenv("COLUMNS", raising=False)
    runner = Runner(Here(tmp_path, monkeypatch, capsys))
    for block in blocks(ROOT / "docs" / "how-to" / "draw-charts.md"):
        runner.run(block)

    assert {"memory", "step", "roofline", "bandwidth", "servers", "groups"} == {f.stem for f in tmp_path.iterdir()}
