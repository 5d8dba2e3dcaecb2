"""The server in Neovim: a file with mistakes is opened; the editor shows them, applies a code action, and formats."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.programs import ROOT

SCRIPT = ROOT / "tests" / "lsp" / "open.lua"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim (nvim) is not installed")
def test_diagnostics(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TRNSPEC_PLUGINS", "none")
    text = (ROOT / "catalog" / "chips" / "trainium2.yaml").read_text(encoding="utf-8")
    file = tmp_path / "chips" / "trainium2.yaml"
    file.parent.mkdir()
    wrong = text.replace("2.9 TB/sec", "2.3 TB/sec")
    file.write_text(wrong.replace("  dies:", "  diess:"), encoding="utf-8")

    subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-i", "NONE", str(file), "-c", f"luafile {SCRIPT}"],
        cwd=tmp_path,
        check=True,
        timeout=120,
        capture_output=True,
    )

    shown = json.loads((tmp_path / "shown.json").read_text(encoding="utf-8"))
    line = file.read_text(encoding="utf-8").split("\n").index("    bandwidth: 2.3 TB/sec")
    assert {"code": "TRN402", "line": line, "severity": 1, "source": "trnspec"} in shown
    assert wrong == (tmp_path / "fixed.yaml").read_text(encoding="utf-8")
