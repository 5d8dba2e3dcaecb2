"""The server: connects the functions of this package to the protocol.

After a change, the findings of the first stage are published at once. When typing pauses, all rules run in a thread, and
stop between two rules if the document changes again.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath
from typing import Any, BinaryIO

from attrs import define, field, frozen
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path

from trnspec._version import __version__
from trnspec.api import registry
from trnspec.diagnostics import Diagnostic
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.rewriting import formatted
from trnspec.lsp import actions, checking, completion, navigation, symbols
from trnspec.lsp.documents import OpenDocuments, file_of, kind_in
from trnspec.lsp.hover import code_text, hover
from trnspec.lsp.messages import by_file
from trnspec.lsp.navigation import TextLocation
from trnspec.lsp.positions import Spot, TextLines, spot_at
from trnspec.model.document import Node
from trnspec.yaml import Document, Place
from trnspec.yaml.layout import LayoutError

IDLE = 0.25
"""Time without a change until the rules that compare documents run [s]."""

_LONG = 200_000
"""The characters of a document that is checked only when typing pauses."""

_MOST_BYTES = 100_000_000
"""The size of a message from the editor; a document has at most 1 MB."""

_SWITCH = 0.0005
"""Thread switch interval [s]; with the default of 5 ms, rules in a thread double the time of a keystroke."""

_OBJECTS = 100_000
"""The number of new objects that starts a garbage collection; a collection takes as long as a check."""

_SORTS = {
    "key": types.CompletionItemKind.Field,
    "word": types.CompletionItemKind.EnumMember,
    "name": types.CompletionItemKind.Reference,
    "unit": types.CompletionItemKind.Unit,
    "path": types.CompletionItemKind.Property,
    "code": types.CompletionItemKind.Constant,
}


@define
class _Opened:
    """A document in the editor.

    Attributes:
        uri: Its address, as the editor names it.
        version: Its version in the editor.
        quick: The result of the first stage.
        compared: The findings of all rules, and the document that they were found in.
        published: What was last published for it.
        task: The check that is under way.
        stop: Stops the rules that are under way.
    """

    uri: str
    version: int
    quick: checking.QuickCheck | None = None
    compared: tuple[tuple[Diagnostic, ...], Document] | None = None
    published: list[types.Diagnostic] = field(factory=list)
    task: asyncio.Task[None] | None = None
    stop: threading.Event = field(factory=threading.Event)


@frozen
class NamedSpot:
    """A position in a document, and the document that is named there.

    Attributes:
        quick: The document as it was checked.
        node: The document.
        place: The position.
        spot: What is there.
        named: The document that is named there, if any.
    """

    quick: checking.QuickCheck
    node: Node[Any]
    place: Place
    spot: Spot
    named: Node[Any] | None


class TrnspecServer(LanguageServer):
    """The language server of trnspec."""

    def __init__(self) -> None:
        # A document is sent as a whole after each change: lines of the protocol are not those of str.splitlines.
        super().__init__("trnspec", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.documents = OpenDocuments(registry())
        self.opened: dict[str, _Opened] = {}
        self.elsewhere: dict[FilePath, set[str]] = {}
        self.worker = ThreadPoolExecutor(1)
        self._warned: set[str] = set()

    def lines(self, file: str) -> TextLines:
        """The lines of a document of the session, or of another file, such as a table."""
        text = self.documents.texts.get(file)
        if text is None:
            try:
                text = FilePath(file).read_text(encoding="utf-8-sig", errors="replace")
            except OSError:
                text = ""
        encoding = self.server_capabilities.position_encoding or "utf-16"
        return TextLines.of(text, str(getattr(encoding, "value", encoding)))

    def uri(self, file: str) -> str:
        """The address of a file; that of the editor for a document in the editor."""
        opened = self.opened.get(file)
        return opened.uri if opened is not None else from_fs_path(file) or ""

    def changed(self, uri: str, version: int, text: str) -> None:
        """Check a document that was opened or changed."""
        file = file_of(uri)
        opened = self.opened.setdefault(file, _Opened(uri, version))
        opened.version = version
        self.documents.texts[file] = text.removeprefix("\ufeff")
        self.schedule(file, opened, idle=IDLE)

    def schedule(self, file: str, opened: _Opened, idle: float) -> None:
        """Start the check of a document, and stop the one that is under way."""
        if opened.task is not None:
            opened.task.cancel()
        opened.stop.set()
        opened.stop = threading.Event()
        opened.task = asyncio.get_running_loop().create_task(self._check(file, opened, opened.stop, idle))

    async def _check(self, file: str, opened: _Opened, stop: threading.Event, idle: float) -> None:
        text = self.documents.texts[file]
        # Another change may have arrived already, and will while a long document is typed in.
        await asyncio.sleep(0 if len(text) < _LONG else IDLE)
        try:
            if not self.documents.concerns(text):
                opened.quick = opened.compared = None
                self._publish(file, opened, [])
                return
            if not self.documents.is_ready(file):
                self._publish(file, opened, checking.syntax(self.documents, file))
                await asyncio.get_running_loop().run_in_executor(self.worker, self._prepare, file)
            self._quick(file, opened)
            await asyncio.sleep(idle)
            await self._full(file, stop)
        except UsageError as error:
            self._warn(str(error))

    def _prepare(self, file: str) -> None:
        if not self.documents.is_ready(file):
            self.documents.surroundings(file)
            # What was read stays; collecting it again and again would interrupt typing.
            gc.collect()
            gc.freeze()
            gc.set_threshold(_OBJECTS)

    def _quick(self, file: str, opened: _Opened) -> checking.QuickCheck:
        quick = checking.quick(self.documents, file)
        opened.quick = quick
        self._warn(self.documents.surroundings(file).warning)
        found = quick.diagnostics
        if opened.compared is not None:
            found += checking.carried(*opened.compared, quick, self.documents)
        self._publish(file, opened, found)
        return quick

    async def _full(self, file: str, stop: threading.Event) -> None:
        root = self.documents.root(file)
        texts = {
            other: self.documents.texts[other]
            for other in self.opened
            if self.documents.root(other) == root and self.documents.concerns(self.documents.texts[other])
        }
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self.worker, checking.full, self.documents, [*texts], stop.is_set)
        except checking.StoppedError:
            return
        messages = by_file(found, texts, self.lines, self.documents.known.codes)
        for other, text in texts.items():
            opened = self.opened.get(other)
            if opened is None or self.documents.texts.get(other) != text:
                continue  # its own check follows
            quick = opened.quick
            if quick is None or quick.document.text != text:
                quick = opened.quick = checking.quick(self.documents, other)
            opened.compared = (found, quick.document)
            self._send(other, opened, messages[other])
        others = {name: each for name, each in messages.items() if name not in self.opened}
        for name in self.elsewhere.get(root, set()) - set(others) - set(self.opened):
            self._notify(from_fs_path(name) or "", [], None)
        for name, each in others.items():
            self._notify(from_fs_path(name) or "", each, None)
        self.elsewhere[root] = set(others)

    def _publish(self, file: str, opened: _Opened, found: Iterable[Diagnostic]) -> None:
        self._send(file, opened, by_file(found, [file], self.lines, self.documents.known.codes)[file])

    def _send(self, file: str, opened: _Opened, messages: list[types.Diagnostic]) -> None:
        if self.opened.get(file) is opened:
            opened.published = messages
            self._notify(opened.uri, messages, opened.version)

    def _notify(self, uri: str, messages: list[types.Diagnostic], version: int | None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, messages, version))

    def _warn(self, message: str) -> None:
        if message and message not in self._warned:
            self._warned.add(message)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"trnspec: {message}"))

    def close(self, uri: str) -> None:
        """Forget the text of a document that was closed: the file counts again."""
        file = file_of(uri)
        opened = self.opened.pop(file, None)
        self.documents.texts.pop(file, None)
        if opened is not None:
            opened.stop.set()
            if opened.task is not None:
                opened.task.cancel()
        self._notify(uri, [], None)

    def recheck(self) -> None:
        """Check all documents again, after files have changed."""
        for file, opened in self.opened.items():
            self.schedule(file, opened, idle=0)

    def current(self, uri: str) -> tuple[str, checking.QuickCheck] | None:
        """A document as it is in the editor; ``None`` for one that is not of trnspec, or without its catalog."""
        file = file_of(uri)
        opened = self.opened.get(file)
        if opened is None:
            return None
        text = self.documents.texts[file]
        if not self.documents.concerns(text):
            return None
        if not self.documents.is_ready(file):
            # Editors do not ask again: the answer waits for the catalog, about a second after the first file is opened.
            try:
                self.worker.submit(self._prepare, file).result()
            except UsageError:
                return None  # its own check says why
        if opened.quick is None or opened.quick.document.text != text:
            opened.quick = checking.quick(self.documents, file)
        return file, opened.quick

    def spot(self, uri: str, position: types.Position) -> tuple[checking.QuickCheck, Place, Spot] | None:
        """A document, and what is at a position of it."""
        current = self.current(uri)
        if current is None:
            return None
        file, quick = current
        place = self.lines(file).place(position)
        spot = spot_at(quick.document, place)
        return None if spot is None else (quick, place, spot)

    def named(self, uri: str, position: types.Position) -> NamedSpot | None:
        """A usable document, what is at a position of it, and the document that is named there."""
        at = self.spot(uri, position)
        if at is None or at[0].node is None:
            return None
        quick, place, spot = at
        assert quick.node is not None
        return NamedSpot(quick, quick.node, place, spot, navigation.named_at(spot, place, quick.node, quick.graph))

    def spec(self, text: str) -> type | None:
        """The class of the kind that a text states."""
        kind = self.documents.known.kinds.get(kind_in(text))
        return None if kind is None else kind.spec

    def locations(self, sites: Iterable[TextLocation]) -> list[types.Location]:
        """Places in files as locations of the protocol."""
        return [types.Location(self.uri(s.file), self.lines(s.file).range(s.place, s.end)) for s in sites]


def create() -> TrnspecServer:  # noqa: C901, PLR0915  # one function for each request
    """A server with all its features."""
    server = TrnspecServer()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(ls: TrnspecServer, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        ls.changed(item.uri, item.version, item.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(ls: TrnspecServer, params: types.DidChangeTextDocumentParams) -> None:
        item = params.text_document
        ls.changed(item.uri, item.version, params.content_changes[-1].text)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(ls: TrnspecServer, params: types.DidSaveTextDocumentParams) -> None:
        opened = ls.opened.get(file := file_of(params.text_document.uri))
        if opened is not None:
            ls.schedule(file, opened, idle=0)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(ls: TrnspecServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.close(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(ls: TrnspecServer, params: types.DidChangeWatchedFilesParams) -> None:  # noqa: ARG001
        ls.recheck()

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def on_hover(ls: TrnspecServer, params: types.HoverParams) -> types.Hover | None:
        at = ls.spot(params.text_document.uri, params.position)
        if at is None:
            return None
        quick, _, spot = at
        known = ls.documents.known
        text = hover(spot, ls.spec(quick.document.text), quick.node, quick.graph, known.units)
        file = quick.document.file
        codes = [str(d.code) for d in ls.opened[file].published if _within(d.range, params.position)]
        parts = [text, *(code_text(known.codes[code]) for code in dict.fromkeys(codes) if code in known.codes)]
        parts = [part for part in parts if part]
        if not parts:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts)))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[" ", ".", "{", "-"]))
    def on_completion(ls: TrnspecServer, params: types.CompletionParams) -> types.CompletionList | None:
        current = ls.current(params.text_document.uri)
        file = file_of(params.text_document.uri)
        if current is None and ":" in ls.documents.texts.get(file, ":"):
            return None  # of another program; a document that is begun has no key yet
        lines = ls.lines(file)
        place = lines.place(params.position)
        result = completion.complete(lines.texts, place, current[1].graph if current else Graph({}), ls.documents.known)
        begin = params.position.character - lines.units(result.typed)
        replaced = types.Range(types.Position(params.position.line, max(begin, 0)), params.position)
        return types.CompletionList(is_incomplete=False, items=[_item(item, replaced) for item in result.items])

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def on_definition(ls: TrnspecServer, params: types.DefinitionParams) -> list[types.Location]:
        at = ls.named(params.text_document.uri, params.position)
        if at is None:
            return []
        return ls.locations(navigation.definition(at.spot, at.named, at.node))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def on_references(ls: TrnspecServer, params: types.ReferenceParams) -> list[types.Location]:
        at = ls.named(params.text_document.uri, params.position)
        if at is None:
            return []
        if at.named is not None:
            return ls.locations(navigation.uses(at.named, at.quick.graph))
        return ls.locations(navigation.claims_on(at.spot.path, at.node))

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def on_prepare_rename(
        ls: TrnspecServer, params: types.PrepareRenameParams
    ) -> types.PrepareRenamePlaceholder | None:
        at = ls.named(params.text_document.uri, params.position)
        if at is None or at.named is None:
            return None
        name, lines = at.named.name, ls.lines(at.node.document.file)
        begin = lines[at.place.line].rfind(name, 0, at.place.column - 1 + len(name)) + 1
        # A reference by another name is not changed.
        site = navigation.TextLocation(at.node.document.file, Place(at.place.line, begin), name)
        return types.PrepareRenamePlaceholder(lines.range(site.place, site.end), name) if begin else None

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def on_rename(ls: TrnspecServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
        at = ls.named(params.text_document.uri, params.position)
        return None if at is None or at.named is None else _renamed(ls, at.quick, at.named, params.new_name)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def on_symbols(ls: TrnspecServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        current = ls.current(params.text_document.uri)
        return [] if current is None else symbols.symbols(current[1].document, ls.lines(current[0]))

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def on_formatting(ls: TrnspecServer, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        file = file_of(params.text_document.uri)
        text = ls.documents.texts.get(file, "")
        if not ls.documents.concerns(text):
            return []
        try:
            new = formatted(text, ls.documents.known.kinds)
        except LayoutError:
            return []  # its findings say why
        lines = ls.lines(file)
        end = lines.position(Place(len(lines.texts), len(lines.texts[-1]) + 1))
        return [] if new == text else [types.TextEdit(types.Range(types.Position(0, 0), end), new)]

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite]),
    )
    def on_code_action(ls: TrnspecServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        current = ls.current(uri)
        if current is None:
            return []
        file, quick = current
        lines, document = ls.lines(file), quick.document
        result: list[types.CodeAction] = []
        for diagnostic in params.context.diagnostics:
            # Some editors do not return the data of a diagnostic.
            known = next((d for d in ls.opened[file].published if _same(d, diagnostic)), diagnostic)
            result += actions.fixes(known, uri, lines)
            result += actions.new_source(known, uri, ls.documents.known)
            result += actions.waiver(known, uri, document, lines)
        spot = spot_at(document, lines.place(params.range.start))
        result += actions.claim(spot, ls.spec(document.text), uri, document, lines)
        return result

    return server


def _same(one: types.Diagnostic, other: types.Diagnostic) -> bool:
    return (one.code, one.range, one.message) == (other.code, other.range, other.message)


def _within(range_: types.Range, position: types.Position) -> bool:
    begin, at, end = ((p.line, p.character) for p in (range_.start, position, range_.end))
    return begin <= at <= end


def _item(item: completion.Item, replaced: types.Range) -> types.CompletionItem:
    return types.CompletionItem(
        label=item.label,
        kind=_SORTS[item.sort],
        detail=item.detail or None,
        documentation=types.MarkupContent(types.MarkupKind.Markdown, item.text) if item.text else None,
        filter_text=item.label,
        text_edit=types.TextEdit(replaced, item.insert or item.label),
    )


def _renamed(ls: TrnspecServer, quick: checking.QuickCheck, named: Node[Any], new: str) -> types.WorkspaceEdit:
    """The edits of all files, and the new name of the file of the document."""
    root = ls.documents.root(named.document.file)
    around = ls.documents.surroundings(quick.document.file).results
    # A document of another catalog, such as the shipped one, is not for this project to edit.
    fixed = {f: "is in another catalog" for f in around if ls.documents.root(f) != root}
    try:
        sites = navigation.renamed(named, new, quick.graph, fixed)
    except UsageError as error:
        raise JsonRpcInvalidParams(str(error)) from error
    edits: dict[str, list[Any]] = {}
    for site in sites:
        edit = types.TextEdit(ls.lines(site.file).range(site.place, site.end), new)
        edits.setdefault(site.file, []).append(edit)
    changes: list[Any] = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(
                ls.uri(file), ls.opened[file].version if file in ls.opened else None
            ),
            each,
        )
        for file, each in edits.items()
    ]
    file = FilePath(named.document.file)
    if file.stem == named.name:
        changes.append(types.RenameFile(ls.uri(str(file)), from_fs_path(str(file.with_stem(new))) or ""))
    return types.WorkspaceEdit(document_changes=changes)


def run(stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
    """Serve on standard input and output until the editor ends.

    Output of plugins goes to standard error, because standard output belongs to the protocol.
    """
    logging.getLogger("pygls").setLevel(logging.ERROR)
    sys.setswitchinterval(_SWITCH)
    source, sink = stdin or sys.stdin.buffer, stdout or sys.stdout.buffer
    sys.stdout = sys.stderr
    create().start_io(_Input(source), sink)  # type: ignore[arg-type]  # pygls only calls these two methods


class _Input:
    """Standard input with a limit of the size of a message."""

    def __init__(self, stream: BinaryIO) -> None:
        self.readline = stream.readline
        self._stream = stream

    def read(self, count: int) -> bytes:
        """The next bytes.

        Raises:
            UsageError: The header of the message states more than :data:`_MOST_BYTES`.
        """
        if count > _MOST_BYTES:
            raise UsageError(f"a message of {count:,} bytes is announced; at most {_MOST_BYTES:,} are read")
        return self._stream.read(count)
