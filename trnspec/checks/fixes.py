"""Applies the edits of findings until no finding has one, and writes documents to be filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from attrs import frozen

from trnspec.checks.runner import Checked, check
from trnspec.checks.stubs import missing_source, stub_of
from trnspec.diagnostics import Diagnostic, Severity
from trnspec.loading.forms.claims import joined_sources
from trnspec.loading.forms.fits import fits_text, list_name, list_schema
from trnspec.loading.forms.price_rows import contents, list_text
from trnspec.loading.pipeline import LoadResult, load_document
from trnspec.loading.settings import Settings
from trnspec.loading.structure import plain
from trnspec.model.document import Node
from trnspec.plugins.api import Registry
from trnspec.yaml import read_text
from trnspec.yaml.edits import apply
from trnspec.yaml.layout import comments

_OF_WAIVERS = ("TRN304",)
_ROUNDS = 10
"""An edit can reveal another finding; no document needs more rounds than it has levels of mistakes."""


@frozen
class Fixed:
    """Documents after the edits.

    Attributes:
        checked: What is left to report.
        texts: The new texts of the files that changed.
        applied: The findings whose edits were applied, at their places of that time.
        stubs: New documents that are invalid until they are filled in, by file.
        lists: New lists of prices and of fits, by file, each with the files of the documents that it replaces.
    """

    checked: Checked
    texts: dict[str, str]
    applied: tuple[Diagnostic, ...]
    stubs: dict[str, str]
    lists: dict[str, tuple[str, tuple[str, ...]]]


def fix(
    results: Iterable[LoadResult],
    registry: Registry,
    settings: Settings,
    is_committed: Callable[[Sequence[str]], bool] = lambda _: False,
) -> Fixed:
    """Apply the edits of the findings in the targets, check again, and repeat until there are none.

    Nothing is written. An edit after which a file cannot be read is not applied.

    Args:
        results: The documents.
        registry: The codes and the rules.
        settings: The settings.
        is_committed: Whether git can restore some files, which are deleted only then.
    """
    current = list(results)
    texts: dict[str, str] = {}
    applied: list[Diagnostic] = []
    for _ in range(_ROUNDS):
        checked = check(current, registry, settings)
        deferred = _OF_WAIVERS if any(map(_hides, checked.report.diagnostics)) else ()
        by_file: dict[str, list[Diagnostic]] = {}
        for diagnostic in checked.report.diagnostics:
            if diagnostic.code not in deferred:
                by_file.setdefault(diagnostic.where.file, []).append(diagnostic)
        changed = False
        for index, result in enumerate(current):
            findings = by_file.get(result.document.file, []) if result.target else []
            text, edits = apply(result.document.text, [d.edit for d in findings if d.edit is not None])
            if not edits:
                continue
            document = read_text(text, result.document.file)
            if document.data is None:
                continue
            fresh = load_document(document, registry, target=True, plugin=result.plugin, layer=result.layer)
            current[index] = fresh
            texts[result.document.file] = text
            applied += [d for d in findings if d.edit in edits]
            changed = True
        if not changed:
            break
    else:
        checked = check(current, registry, settings)
    if joined := _joined(current, registry):
        current = [joined.get(r.document.file, r) for r in current]
        texts |= {file: result.document.text for file, result in joined.items()}
        checked = check(current, registry, settings)
    if lists := dict(_lists(current, registry, is_committed)):
        replaced = {file for _, files in lists.values() for file in files}
        current = [r for r in current if r.document.file not in replaced]
        current += [load_document(read_text(text, file), registry) for file, (text, _) in lists.items()]
        texts = {file: text for file, text in texts.items() if file not in replaced}
        checked = check(current, registry, settings)
    stubs = _stubs(checked, registry)
    if stubs:
        new = [load_document(read_text(text, file), registry) for file, text in stubs.items()]
        checked = check([*new, *current], registry, settings)
    return Fixed(checked, texts, tuple(applied), stubs, lists)


def _joined(results: Iterable[LoadResult], registry: Registry) -> dict[str, LoadResult]:
    """The targets in which claims that differ in their sources alone become one, by file."""
    joined = {}
    for result in results:
        document = result.document
        text = joined_sources(document.text) if result.target and result.node is not None else document.text
        if text != document.text:
            fresh = read_text(text, document.file)
            joined[document.file] = load_document(fresh, registry, plugin=result.plugin, layer=result.layer)
    return joined


def _lists(
    results: Iterable[LoadResult], registry: Registry, is_committed: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    """The list of prices or fits that states the same as documents in a folder of a server, or of a chip and a framework, and their files.

    There is none if a document has a comment or another thing that a list cannot have, if one of them is not a target,
    or if a list exists.
    """
    groups: dict[FilePath, list[LoadResult]] = {}
    for result in results:
        if result.node is not None and result.node.kind in _LISTED:
            name = _LISTED[result.node.kind][0](result.node.spec)
            groups.setdefault(FilePath(result.document.file).with_name(f"{name}.yaml"), []).append(result)
    for file, group in groups.items():
        nodes = sorted((r.node for r in group if r.node is not None), key=lambda node: node.name)
        _, text_of, contents_of = _LISTED[nodes[0].kind]
        files = tuple(result.document.file for result in group)
        of_list = load_document(read_text(text_of(nodes), str(file)), registry)
        before = {node.name: contents_of(node) for node in nodes}
        after = {r.node.name: contents_of(r.node) for r in of_list.parts if r.node is not None}
        if (
            all(result.target for result in group)
            and before == after
            and not any(c for r in group for c in comments(r.document.text) if "yaml-language-server:" not in c)
            and not file.exists()
            and is_committed(files)
        ):
            yield str(file), (of_list.document.text, files)


def _fits(nodes: Sequence[Node[Any]]) -> str:
    data: list[Any] = [node.document.data for node in nodes]
    return fits_text(data, list_schema(nodes[0].document.text))


_LISTED: Mapping[
    str, tuple[Callable[[Any], str], Callable[[Sequence[Node[Any]]], str], Callable[[Node[Any]], dict[str, Any]]]
] = {
    "Price": (lambda spec: f"{spec.server}-prices", list_text, contents),
    "Calibration": (lambda spec: list_name(spec.chip.name, spec.framework), _fits, plain),
}
"""The name of the list that has a document of a kind, its text for some documents, and what a document states."""


def _stubs(checked: Checked, registry: Registry) -> dict[str, str]:
    """The sources that targets in files refer to and that do not exist, as documents to be filled in."""
    stubs: dict[str, str] = {}
    for diagnostic in checked.report.diagnostics:
        name = missing_source(diagnostic.code, diagnostic.message, diagnostic.hint)
        if name and not diagnostic.where.file.startswith("<"):
            stub = stub_of(name, FilePath(diagnostic.where.file), registry)
            if stub is not None:
                stubs.setdefault(str(stub[0]), stub[1])
    return stubs


def _hides(diagnostic: Diagnostic) -> bool:
    """Whether a finding that a waiver accepts may be missing for it: an error of form or reference, or of a rule."""
    early = diagnostic.code.startswith(("TRN0", "TRN1", "TRN2"))
    return diagnostic.severity is Severity.ERROR and (early or diagnostic.code == "TRN900")
