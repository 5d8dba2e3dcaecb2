"""docs/how-to/check-a-machine.md: its blocks run."""

from __future__ import annotations

import re

from docs_runner import Runner, blocks
from running import ROOT, Here

PAGE = ROOT / "docs" / "how-to" / "check-a-machine.md"


def test_every_block(tmp_path, monkeypatch, capsys) -> None:
    """In order, in one namespace."""
    monkeypatch.delenv("COLUMNS", raising=False)
    (output,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "neuron-ls.json").write_text(output)
    runner = Runner(Here(tmp_path, monkeypatch, capsys))

    assert blocks(PAGE)

    for block in blocks(PAGE):
        runner.run(block)
