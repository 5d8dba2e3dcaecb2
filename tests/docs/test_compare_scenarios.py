"""docs/how-to/compare-scenarios.md: its blocks run on the file that it shows."""

from __future__ import annotations

import re

from docs_runner import Runner, blocks
from running import ROOT, Here

PAGE = ROOT / "docs" / "how-to" / "compare-scenarios.md"


def test_every_block(tmp_path, monkeypatch, capsys) -> None:
    """In order; the broken file has two of its lines changed."""
    monkeypatch.delenv("COLUMNS", raising=False)
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "serving.yaml").write_text(text)
    (tmp_path / "broken.yaml").write_text(text.replace("kv_dtype", "kv_type").replace("4 TB/s", "4 TB"))
    runner = Runner(Here(tmp_path, monkeypatch, capsys))

    assert len(blocks(PAGE)) == 3
    for block in blocks(PAGE):
        runner.run(block)
