"""The requests and notifications of an editor: what the server answers and publishes."""

import asyncio
import gc
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from tests.support.programs import ROOT, command
from trnspec.api import registry
from trnspec.loading.rewriting import formatted
from trnspec.lsp.server import create

CHIP, CORE, SERVER = "chips/trainium2", "cores/neuroncore-v3", "servers/trn2.48xlarge"


class Editor:
    """A project in an editor: the newest diagnostics of each file, and the warnings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.server = create()
        self.server.protocol.server_capabilities = types.ServerCapabilities()
        self.server.text_document_publish_diagnostics = self.keep
        self.server.window_show_message = lambda params: self.warnings.append(params.message)
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.versions: dict[str, int] = {}
        self.warnings: list[str] = []
        self.arrived = asyncio.Event()

    def keep(self, params: types.PublishDiagnosticsParams) -> None:
        assert params.version == self.versions.get(params.uri)
        self.diagnostics[params.uri] = params.diagnostics
        self.arrived.set()

    def uri(self, name: str) -> str:
        return (self.root / f"{name}.yaml").as_uri()

    def ask(self, request: str, params: Callable, name: str, *details):
        """Send a request, or a notification, on a document."""
        function = self.server.protocol.fm.features[f"textDocument/{request}"]
        return function(params(types.TextDocumentIdentifier(self.uri(name)), *details))

    async def write(self, name: str, text: str) -> None:
        """Open a document, or change it."""
        uri, features = self.uri(name), self.server.protocol.fm.features
        self.versions[uri] = version = self.versions.get(uri, 0) + 1
        if version == 1:
            item = types.TextDocumentItem(uri, "yaml", version, text)
            await features["textDocument/didOpen"](types.DidOpenTextDocumentParams(item))
        else:
            whole = [types.TextDocumentContentChangeWholeDocument(text)]
            identifier = types.VersionedTextDocumentIdentifier(version, uri)
            await features["textDocument/didChange"](types.DidChangeTextDocumentParams(identifier, whole))

    async def until(self, name: str, *codes: str) -> dict[str, types.Diagnostic]:
        """The diagnostics of a document by their codes, once they have these."""
        uri = self.uri(name)
        while uri not in self.diagnostics or {d.code for d in self.diagnostics[uri]} != set(codes):
            self.arrived.clear()
            await self.arrived.wait()
        return {d.code: d for d in self.diagnostics[uri]}


def at(text: str, words: str, offset: int = 0) -> types.Position:
    index = text.index(words) + offset
    return types.Position(text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1)


@pytest.fixture
def editor(tmp_path, monkeypatch):
    monkeypatch.setenv("TRNSPEC_PLUGINS", "none")
    monkeypatch.setattr("trnspec.lsp.server.IDLE", 0.02)
    root, threshold = tmp_path / "a project", gc.get_threshold()
    for name in (CHIP, CORE, SERVER):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "catalog" / f"{name}.yaml", root / f"{name}.yaml")
    yield Editor(root)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_requests(editor) -> None:
    """What an editor does with a project: findings that follow the text, hover, completion, references, renaming."""
    asyncio.run(asyncio.wait_for(_requests(editor), 60))


async def _requests(editor: Editor) -> None:
    ask = editor.ask
    text = (editor.root / f"{CHIP}.yaml").read_text(encoding="utf-8")
    wrong = text.replace("2.9 TB/sec", "2.3 TB/sec")

    # A wrong figure, found by comparing documents. Its server and the other chip are related places. What is asked before
    # the catalog is read is answered then: no editor asks again.
    await editor.write(CHIP, wrong)
    assert ask("hover", types.HoverParams, CHIP, at(wrong, "2.3 TB/sec")) is not None
    found = await editor.until(CHIP, "TRN402")
    assert types.Range(at(wrong, "2.3 TB"), at(wrong, "2.3 TB/sec", 10)) == found["TRN402"].range
    assert types.DiagnosticSeverity.Error == found["TRN402"].severity
    assert "trn2.48xlarge.yaml" in {Path(r.location.uri).name for r in found["TRN402"].related_information}

    # A misspelt key: found at once; the findings of before stay where their values are.
    misspelt = wrong.replace("  dies:", "# one more line\n  diess:")
    await editor.write(CHIP, misspelt)
    found = await editor.until(CHIP, "TRN101", "TRN402")
    assert at(misspelt, "2.3 TB") == found["TRN402"].range.start
    bare = [types.Diagnostic(d.range, d.message, code=d.code) for d in found.values()]  # as some editors return them
    titles = [
        [a.title for a in ask("codeAction", types.CodeActionParams, CHIP, d.range, types.CodeActionContext([d]))]
        for d in (*bare, *found.values())
    ]
    assert titles[:2] == titles[2:]
    assert ["Replace with dies"] == titles[[*found].index("TRN101")][:1]

    # What is typed is completed, hovered and navigated in the text that is not saved.
    typed = ask("completion", types.CompletionParams, CHIP, at(misspelt, "core: neuroncore", 16))
    assert not typed.is_incomplete
    item = next(i for i in typed.items if i.label == "neuroncore-v3")
    replaced = types.Range(at(misspelt, "core: neuroncore", 6), at(misspelt, "core: neuroncore", 16))
    assert types.TextEdit(replaced, "neuroncore-v3") == item.text_edit
    assert types.CompletionItemKind.Reference == item.kind
    await editor.write("project/new", "")
    begun = ask("completion", types.CompletionParams, "project/new", types.Position(0, 0))
    assert {"api_version", "kind", "metadata", "spec"} <= {item.label for item in begun.items}
    shown = ask("hover", types.HoverParams, CHIP, at(misspelt, "2.3 TB/sec")).contents.value
    assert "interval     [2.25, 2.35) TB/s" in shown
    assert "**TRN402 aggregate-mismatch**" in shown
    assert "**TRN" not in ask("hover", types.HoverParams, CHIP, at(misspelt, "24 GiB")).contents.value
    core = at(misspelt, "neuroncore-v3")
    (definition,) = ask("definition", types.DefinitionParams, CHIP, core)
    assert editor.uri(CORE) == definition.uri
    references = partial(types.ReferenceParams, types.ReferenceContext(include_declaration=False))
    assert {editor.uri(CHIP)} == {r.uri for r in ask("references", references, CHIP, core)}
    outline = ask("documentSymbol", types.DocumentSymbolParams, CHIP)
    assert ["api_version", "kind", "metadata", "spec", "claims"] == [s.name for s in outline]

    # The core is renamed in all files of the project, those that are not open too; its file gets the new name.
    whole = types.Range(core, at(misspelt, "neuroncore-v3", 13))
    for offset in (0, 12):
        inside = at(misspelt, "neuroncore-v3", offset)
        prepared = ask("prepareRename", types.PrepareRenameParams, CHIP, inside)
        assert types.PrepareRenamePlaceholder(whole, "neuroncore-v3") == prepared
    assert ask("prepareRename", types.PrepareRenameParams, CHIP, at(misspelt, "2.3 TB/sec")) is None
    *edits, renamed = ask("rename", types.RenameParams, CHIP, core, "my-core").document_changes
    versions = {e.text_document.uri: e.text_document.version for e in edits}
    assert {editor.uri(CHIP): 2, editor.uri(CORE): None} == versions
    assert (editor.uri(CORE), editor.uri("cores/my-core")) == (renamed.old_uri, renamed.new_uri)
    assert whole in [e.range for e in edits[0].edits + edits[1].edits]
    with pytest.raises(JsonRpcInvalidParams, match="another catalog"):
        ask("rename", types.RenameParams, CHIP, at(misspelt, "over: trainium1", 8), "my-chip")

    # Formatting is that of trnspec fmt.
    spaced = text.replace("  dies: {value: 2,", "  dies:   {value: 2,")
    await editor.write(CHIP, spaced)
    options = types.FormattingOptions(tab_size=2, insert_spaces=True)
    (edit,) = ask("formatting", types.DocumentFormattingParams, CHIP, options)
    assert (types.Position(0, 0), formatted(spaced, registry().kinds)) == (edit.range.start, edit.new_text)

    # The correct text has no findings, and neither has a file of another program.
    await editor.write(CHIP, text)
    await editor.until(CHIP)
    assert [] == ask("formatting", types.DocumentFormattingParams, CHIP, options)
    await editor.write("models/schema", "version: 2\nmodels: [{name: a}]\n")
    await editor.until("models/schema")
    assert ask("hover", types.HoverParams, "models/schema", core) is None

    # A document that is closed counts as it is on disk, as does a file that another program writes.
    await editor.write(CHIP, wrong)
    await editor.until(CHIP, "TRN402")
    del editor.versions[editor.uri(CHIP)]
    await ask("didClose", types.DidCloseTextDocumentParams, CHIP)
    assert [] == editor.diagnostics[editor.uri(CHIP)]
    (editor.root / f"{CHIP}.yaml").write_text(wrong, encoding="utf-8")
    await editor.write(SERVER, (editor.root / f"{SERVER}.yaml").read_text(encoding="utf-8"))
    await editor.until(CHIP, "TRN402")
    (editor.root / f"{CHIP}.yaml").write_text(text, encoding="utf-8")
    changed = editor.server.protocol.fm.features["workspace/didChangeWatchedFiles"]
    await changed(types.DidChangeWatchedFilesParams([]))
    await editor.until(CHIP)
    assert [] == editor.warnings


def test_requests_without_an_answer(editor) -> None:
    """A text that was not opened, one of another program, and one that cannot be parsed; settings that are wrong."""
    asyncio.run(asyncio.wait_for(_unanswered(editor), 60))


async def _unanswered(editor: Editor) -> None:
    (editor.root / "pyproject.toml").write_text('[tool.trnspec]\nselect = ["TRN999"]\n', encoding="utf-8")
    broken, foreign = "api_version: trnspec/v1\nkind: Chip\nmetadata: {name: x\n", "version: 2\nmodels: [{name: a}]\n"
    await editor.write("chips/x", broken)
    assert {"TRN004"} == {*await editor.until("chips/x", "TRN004")}
    await editor.write("other", foreign)
    await editor.until("other")
    begin, options = types.Position(2, 12), types.FormattingOptions(tab_size=2, insert_spaces=True)
    details = {
        "hover": (types.HoverParams, begin), "definition": (types.DefinitionParams, begin),
        "prepareRename": (types.PrepareRenameParams, begin), "formatting": (types.DocumentFormattingParams, options),
        "references": (partial(types.ReferenceParams, types.ReferenceContext(include_declaration=False)), begin),
        "rename": (partial(types.RenameParams, new_name="y"), begin), "documentSymbol": (types.DocumentSymbolParams,),
        "completion": (types.CompletionParams, begin),
        "codeAction": (types.CodeActionParams, types.Range(begin, begin), types.CodeActionContext([])),
    }  # fmt: skip
    answers = {
        name: [request for request, (params, *more) in details.items() if editor.ask(request, params, name, *more)]
        for name in ("chips/x", "other", "absent")
    }
    assert {"chips/x": ["hover", "completion"], "other": [], "absent": []} == answers

    # A file that is saved is compared with others again.
    text = (editor.root / f"{CHIP}.yaml").read_text(encoding="utf-8")
    await editor.write(CHIP, text)
    await editor.until(CHIP)
    assert ["trnspec: select: no code is or begins with 'TRN999'"] == [each.split(";")[0] for each in editor.warnings]
    editor.diagnostics.clear()
    await editor.ask("didSave", types.DidSaveTextDocumentParams, CHIP)
    await editor.until(CHIP)
    claimed = editor.ask("references", details["references"][0], CHIP, at(text, "96 GiB"))
    assert {editor.uri(CHIP)} == {location.uri for location in claimed}


def test_a_message_that_is_too_large_ends_the_server_with_one_line() -> None:
    announced = b"Content-Length: 999999999999\r\n\r\n{}"
    done = subprocess.run(command("lsp"), input=announced, capture_output=True, check=False, timeout=60)

    assert 2 == done.returncode
    assert b"trnspec: a message of 999,999,999,999 bytes is announced; at most 100,000,000 are read\n" == done.stderr
