"""The language server as an editor sees it: a process of its own, and a client that speaks the protocol."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.support.programs import ROOT, command, completed
from trnspec.api import registry
from trnspec.loading.rewriting import formatted

SECONDS = 60
DOCUMENTS = ("chips/trainium2", "cores/neuroncore-v3", "servers/trn2.48xlarge")


class Editor:
    """A client that keeps the newest diagnostics of each file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = LanguageClient("test", "1")
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.versions: dict[str, int] = {}
        self.arrived = asyncio.Event()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = list(params.diagnostics)
            self.arrived.set()

    async def start(self) -> types.ServerCapabilities:
        await self.client.start_io(sys.executable, "-m", "trnspec", "lsp", "--stdio")
        params = types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=self.root.as_uri())
        result = await self.client.initialize_async(params)
        self.client.initialized(types.InitializedParams())
        return result.capabilities

    async def stop(self) -> int | None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()
        return self.client._server.returncode

    def uri(self, name: str) -> str:
        return (self.root / f"{name}.yaml").as_uri()

    def write(self, name: str, text: str) -> None:
        """Open a document, or change it."""
        uri = self.uri(name)
        self.versions[uri] = version = self.versions.get(uri, 0) + 1
        if version == 1:
            item = types.TextDocumentItem(uri, "yaml", version, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            change = types.TextDocumentContentChangeWholeDocument(text)
            identifier = types.VersionedTextDocumentIdentifier(version, uri)
            self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))

    async def until(self, name: str, codes: set[str]) -> list[types.Diagnostic]:
        """The diagnostics of a document, once they have these codes."""
        while {d.code for d in self.diagnostics.get(self.uri(name), ())} != codes or self.uri(
            name
        ) not in self.diagnostics:
            self.arrived.clear()
            await asyncio.wait_for(self.arrived.wait(), SECONDS)
        return self.diagnostics[self.uri(name)]


def at(text: str, words: str, offset: int = 0) -> types.Position:
    index = text.index(words) + offset
    return types.Position(text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1)


@pytest.mark.slow
def test_session(tmp_path, monkeypatch) -> None:
    """What an editor does with a project: findings that follow the text, hover, completion, references, renaming."""
    monkeypatch.setenv("TRNSPEC_PLUGINS", "none")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    root = tmp_path / "a project"
    for name in DOCUMENTS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "catalog" / f"{name}.yaml", root / f"{name}.yaml")

    completed(asyncio.wait_for(_session(root), 2 * SECONDS))


async def _session(root: Path) -> None:
    editor = Editor(root)
    capabilities = await editor.start()
    client = editor.client
    chip = DOCUMENTS[0]
    text = (root / f"{chip}.yaml").read_text(encoding="utf-8")
    document = types.TextDocumentIdentifier(editor.uri(chip))
    wrong = text.replace("2.9 TB/sec", "2.3 TB/sec")

    assert types.TextDocumentSyncKind.Full == capabilities.text_document_sync.change

    # A wrong figure, found by comparing documents. Its server and the other chip are related places. What is asked before
    # the catalog is read is answered then: no editor asks again.
    editor.write(chip, wrong)
    early = await client.text_document_hover_async(types.HoverParams(document, at(wrong, "2.3 TB/sec")))
    assert early is not None
    found = {d.code: d for d in await editor.until(chip, {"TRN402", "TRN606"})}
    assert types.Range(at(wrong, "2.3 TB"), at(wrong, "2.3 TB/sec", 10)) == found["TRN402"].range
    assert types.DiagnosticSeverity.Error == found["TRN402"].severity
    related = {Path(r.location.uri).name for r in found["TRN402"].related_information}
    assert "trn2.48xlarge.yaml" in related

    # A misspelt key: found at once; the findings of before stay where their values are.
    misspelt = wrong.replace("  dies:", "# one more line\n  diess:")
    editor.write(chip, misspelt)
    found = {d.code: d for d in await editor.until(chip, {"TRN101", "TRN402", "TRN606"})}
    assert at(misspelt, "2.3 TB") == found["TRN402"].range.start
    context = types.CodeActionContext([found["TRN101"]])
    params = types.CodeActionParams(document, found["TRN101"].range, context)
    assert "Replace with dies" in {a.title for a in await client.text_document_code_action_async(params)}

    # What is typed is completed, hovered and navigated in the text that is not saved.
    completed = await client.text_document_completion_async(
        types.CompletionParams(document, at(misspelt, "core: neuroncore", 16))
    )
    assert {"neuroncore-v3"} <= {item.label for item in completed.items}
    shown = await client.text_document_hover_async(types.HoverParams(document, at(misspelt, "2.3 TB/sec")))
    assert "interval     [2.25, 2.35 TB/s)" in shown.contents.value
    assert "**TRN402 aggregate-mismatch**" in shown.contents.value
    core = at(misspelt, "neuroncore-v3")
    (definition,) = await client.text_document_definition_async(types.DefinitionParams(document, core))
    assert editor.uri(DOCUMENTS[1]) == definition.uri
    references = await client.text_document_references_async(
        types.ReferenceParams(types.ReferenceContext(include_declaration=False), document, core)
    )
    assert {editor.uri(chip)} == {r.uri for r in references}
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert ["api_version", "kind", "metadata", "spec", "claims"] == [s.name for s in symbols]

    # The core is renamed in all files of the project, those that are not open too.
    edit = await client.text_document_rename_async(types.RenameParams(document, core, "my-core"))
    assert {editor.uri(chip), editor.uri(DOCUMENTS[1])} == {
        c.text_document.uri for c in edit.document_changes if isinstance(c, types.TextDocumentEdit)
    }
    assert editor.uri("cores/my-core") == edit.document_changes[-1].new_uri

    # Formatting is that of trnspec fmt.
    spaced = text.replace("  dies: {value: 2,", "  dies:   {value: 2,")
    editor.write(chip, spaced)
    options = types.FormattingOptions(tab_size=2, insert_spaces=True)
    (edit,) = await client.text_document_formatting_async(types.DocumentFormattingParams(document, options))
    assert formatted(spaced, registry().kinds) == edit.new_text

    # The correct text has no findings, and neither has a file of another program.
    editor.write(chip, text)
    assert [] == await editor.until(chip, set())
    editor.write("models/schema", "version: 2\nmodels: [{name: a}]\n")
    assert [] == await editor.until("models/schema", set())
    assert 0 == await editor.stop()


def test_a_message_that_is_too_large_ends_the_server_with_one_line() -> None:
    done = subprocess.run(
        command("lsp"),
        input=b"Content-Length: 999999999999\r\n\r\n{}",
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )

    assert 2 == done.returncode
    assert b"trnspec: a message of 999,999,999,999 bytes is announced; at most 100,000,000 are read\n" == done.stderr
