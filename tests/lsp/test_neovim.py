"""The server in Neovim: a file with a wrong figure is opened, and the editor prints the diagnostics that it shows."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from running import ROOT

SCRIPT = """
local client = vim.lsp.start_client({
  name = "trnspec",
  cmd = {PYTHON, "-m", "trnspec", "lsp"},
  root_dir = vim.fn.getcwd(),
})
vim.lsp.buf_attach_client(0, client)
local function found()
  for _, each in ipairs(vim.diagnostic.get(0)) do
    if each.code == "TRN402" then return true end
  end
  return false
end
vim.wait(60000, found, 100)
local shown = {}
for _, each in ipairs(vim.diagnostic.get(0)) do
  table.insert(shown, {code = each.code, line = each.lnum, severity = each.severity, source = each.source})
end
local file = io.open("shown.json", "w")
file:write(vim.json.encode(shown))
file:close()
vim.cmd("qall!")
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim (nvim) is not installed")
def test_diagnostics(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TRNSPEC_PLUGINS", "none")
    text = (ROOT / "catalog" / "chips" / "trainium2.yaml").read_text(encoding="utf-8")
    file = tmp_path / "chips" / "trainium2.yaml"
    file.parent.mkdir()
    file.write_text(text.replace("2.9 TB/sec", "2.3 TB/sec"), encoding="utf-8")
    script = tmp_path / "open.lua"
    script.write_text(SCRIPT.replace("PYTHON", json.dumps(sys.executable)), encoding="utf-8")

    subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-i", "NONE", str(file), "-c", f"luafile {script}"],
        cwd=tmp_path,
        check=True,
        timeout=120,
        capture_output=True,
    )

    shown = json.loads((tmp_path / "shown.json").read_text(encoding="utf-8"))
    line = file.read_text(encoding="utf-8").split("\n").index("    bandwidth: 2.3 TB/sec")
    assert {"code": "TRN402", "line": line, "severity": 1, "source": "trnspec"} in shown
