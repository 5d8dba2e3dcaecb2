"""Code actions: the spelling that a hint proposes, a waiver, a claim to fill in, a new source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from trnspec.checks.stubs import missing_source, stub_of
from trnspec.lsp.documents import file_of
from trnspec.lsp.positions import Spot, TextLines
from trnspec.model.document import PathText
from trnspec.model.reflection import (
    ChoiceShape,
    FigureShape,
    NumberShape,
    TextShape,
    dotted,
    shape_in_document,
    shape_of,
)
from trnspec.plugins.api import Registry
from trnspec.yaml import Document, Edit, Path, Place
from trnspec.yaml.edits import item

_SPELLINGS = re.compile(r"did you mean .*\?")
_UNIT = re.compile(r'unknown unit "([^"]+)"')
_MOST = 60
"""The length of a replacement that is shown as a title."""
_REASON = "State why this is accepted."

_path_shape = shape_of(PathText)
assert isinstance(_path_shape, TextShape)
assert _path_shape.pattern is not None
_PATH = re.compile(_path_shape.pattern.regex)


def fixes(diagnostic: types.Diagnostic, uri: str, lines: TextLines) -> Iterator[types.CodeAction]:
    """The edit of a finding, as ``trnspec fix`` applies it; without one, the spellings that its hint proposes."""
    data: Any = diagnostic.data or {}
    if edit := data.get("edit"):
        new = edit["text"]
        short = new and "\n" not in new and len(new) <= _MOST
        title = f"Replace with {new}" if short else f"Fix {diagnostic.code}: {data.get('hint') or diagnostic.message}"
        # Lines and columns are as in the messages of the command line.
        where = lines.range(Place(*edit["start"]), Place(*edit["end"]))
        yield _action(title, uri, types.TextEdit(where, new), diagnostic, preferred=True)
        return
    match = _SPELLINGS.search(str(data.get("hint", "")))
    begin, end = diagnostic.range.start, diagnostic.range.end
    if match is None or begin.line != end.line or not data.get("text"):
        return
    old = lines[begin.line + 1][lines.place(begin).column - 1 : lines.place(end).column - 1]
    unit = _UNIT.search(diagnostic.message)
    if unit is not None:
        # Of a figure, the unit alone.
        names = {name: old.replace(unit[1], name, 1) for name in re.findall(r'"([^"]+)"', match[0]) if unit[1] in old}
    else:
        quote = old[:1] if old[:1] in {"'", '"'} else ""
        names = {name: f"{quote}{name}{quote}" for name in re.findall(r"'([^']+)'", match[0])}
    for name, new in names.items():
        edit = types.TextEdit(diagnostic.range, new)
        yield _action(f"Replace with {name}", uri, edit, diagnostic, preferred=len(names) == 1)


def new_source(diagnostic: types.Diagnostic, uri: str, known: Registry) -> Iterator[types.CodeAction]:
    """A document for a source that is referred to and does not exist, to be filled in."""
    # Also for a name that may be misspelt: the author chooses.
    name = missing_source(str(diagnostic.code), diagnostic.message, "")
    stub = stub_of(name, FilePath(to_fs_path(uri) or ""), known) if name else None
    if stub is None:
        return
    file, text = stub
    address = from_fs_path(str(file)) or ""
    start = types.Position(0, 0)
    changes: list[types.CreateFile | types.RenameFile | types.DeleteFile | types.TextDocumentEdit] = [
        types.CreateFile(address, options=types.CreateFileOptions(ignore_if_exists=True)),
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(address), [types.TextEdit(types.Range(start, start), text)]
        ),
    ]
    yield types.CodeAction(
        title=f"Create {file.parent.name}/{file.name}",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        edit=types.WorkspaceEdit(document_changes=changes),
    )


def waiver(diagnostic: types.Diagnostic, uri: str, document: Document, lines: TextLines) -> Iterator[types.CodeAction]:
    """A waiver of a finding of a rule, with a reason to be written."""
    data: Any = diagnostic.data or {}
    if not data.get("rule") or file_of(uri) != document.file:
        return
    at = dotted(tuple(data.get("path", ()))).removesuffix(".value")
    where = f"at: {at}, " if _PATH.fullmatch(at) else ""
    insertion = item(document, ("metadata", "allow"), f"{{code: {diagnostic.code}, {where}reason: {_REASON}}}")
    if insertion is not None:
        yield _action(f"Accept {diagnostic.code} here with a waiver", uri, _inserted(insertion, lines), diagnostic)


def claim(
    spot: Spot | None, spec: type | None, uri: str, document: Document, lines: TextLines
) -> Iterator[types.CodeAction]:
    """A claim on the figure at a position, to be filled in."""
    if spot is None or spec is None:
        return
    path: Path = spot.path
    while len(path) > 1 and not isinstance(
        shape_in_document(spec, path), (FigureShape, NumberShape, ChoiceShape, TextShape)
    ):
        path = path[:-1]
    above = shape_in_document(spec, path[:-1])
    if isinstance(above, FigureShape):
        path = path[:-1]
    at = dotted(path)
    shape = shape_in_document(spec, path)
    if isinstance(shape, TextShape) or not _PATH.fullmatch(at):
        return
    insertion = item(document, ("claims",), f"at: {at}", "says:", "source:", "where:")
    if insertion is not None:
        yield _action(f"Add a claim of another source on {at.removeprefix('spec.')}", uri, _inserted(insertion, lines))


def _action(
    title: str,
    uri: str,
    edit: types.TextEdit,
    diagnostic: types.Diagnostic | None = None,
    *,
    preferred: bool | None = None,
) -> types.CodeAction:
    """An action that edits one place: the fix of a finding, or a rewrite."""
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.RefactorRewrite if diagnostic is None else types.CodeActionKind.QuickFix,
        diagnostics=None if diagnostic is None else [diagnostic],
        is_preferred=preferred,
        edit=types.WorkspaceEdit(changes={uri: [edit]}),
    )


def _inserted(edit: Edit, lines: TextLines) -> types.TextEdit:
    return types.TextEdit(lines.range(edit.start, edit.end), edit.text)
