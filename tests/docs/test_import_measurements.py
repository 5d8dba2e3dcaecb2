"""docs/how-to/import-measurements.md: its blocks run."""

from __future__ import annotations

import shutil

from docs_runner import Runner, blocks
from running import DATA, ROOT, Here

PAGE = ROOT / "docs" / "how-to" / "import-measurements.md"


def test_every_block(tmp_path, monkeypatch, capsys) -> None:
    """In order, in one namespace."""
    monkeypatch.delenv("COLUMNS", raising=False)
    for name, log in (("run", "nccom_all_gather"), ("train", "nxd")):
        shutil.copy(DATA / "imports" / f"{log}.log", tmp_path / f"{name}.log")
    runner = Runner(Here(tmp_path, monkeypatch, capsys))

    assert blocks(PAGE)

    for block in blocks(PAGE):
        runner.run(block)
