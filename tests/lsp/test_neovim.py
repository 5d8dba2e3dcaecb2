"""The server in Neovim: a file with mistakes is opened; the editor shows them, applies a code action, and formats."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.support.programs import ROOT

SCRIPT = """
local client_encoding = "utf-16"
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
-- What "QuickCheck fix" does for the misspelt key.
for _, each in ipairs(vim.diagnostic.get(0)) do
  if each.code == "TRN101" then
    local params = vim.lsp.util.make_range_params()
    params.range = each.user_data.lsp.range or {
      start = {line = each.lnum, character = each.col},
      ["end"] = {line = each.end_lnum, character = each.end_col},
    }
    params.context = {diagnostics = {{
      range = params.range, message = each.message, code = each.code, severity = each.severity, source = each.source,
    }}}
    local answers = vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 60000)
    for _, answer in pairs(answers) do
      for _, action in ipairs(answer.result) do
        if action.isPreferred then vim.lsp.util.apply_workspace_edit(action.edit, client_encoding) end
      end
    end
  end
end
vim.cmd("write! fixed.yaml")
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
    wrong = text.replace("2.9 TB/sec", "2.3 TB/sec")
    file.write_text(wrong.replace("  dies:", "  diess:"), encoding="utf-8")
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
    assert wrong == (tmp_path / "fixed.yaml").read_text(encoding="utf-8")
