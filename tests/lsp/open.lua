-- Opens a document with the server, writes its diagnostics to shown.json and applies the preferred fix.
local client_encoding = "utf-16"
local client = vim.lsp.start_client({
  name = "trnspec",
  cmd = {vim.env.PYTHON, "-m", "trnspec", "lsp"},
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
