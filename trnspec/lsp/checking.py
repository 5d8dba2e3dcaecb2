"""The findings of a document in the editor, in two stages.

After each change come the findings of the reader, of the schema, on references, and those of the rules over single
documents, in the context of the whole catalog: a few milliseconds for one document. The rules that compare documents
follow once typing pauses; together the result is that of ``trnspec validate``. Until then their earlier findings are shown
where the values are now, unless the value itself was edited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import evolve, frozen

from trnspec.checks.reconcile.hypotheses import extra_hypotheses
from trnspec.checks.runner import apply_waivers, check, finished, run
from trnspec.diagnostics import Diagnostic, Location
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import LoadResult, link, text_at
from trnspec.loading.settings import Settings
from trnspec.lsp.documents import OpenDocuments, Surroundings
from trnspec.model.document import Node
from trnspec.plugins.api import Rule
from trnspec.yaml import Document, Problem

_STALE_WAIVER = "TRN304"
"""Known only after every rule has run."""


class StoppedError(Exception):
    """The documents have changed while they were checked."""


@frozen
class QuickCheck:
    """One document in the context of its catalog, and its findings so far.

    Attributes:
        result: The document.
        graph: The catalog with the document as it is in the editor.
        diagnostics: The findings of the first stage.
    """

    result: LoadResult
    graph: Graph
    diagnostics: tuple[Diagnostic, ...]

    @property
    def document(self) -> Document:
        """The text with its positions."""
        return self.result.document

    @property
    def node(self) -> Node[Any] | None:
        """The document, if it is valid enough to be used."""
        return self.result.node


def syntax(documents: OpenDocuments, file: str) -> tuple[Diagnostic, ...]:
    """The findings of the reader and the schema alone, while the catalog is not read yet."""
    _, diagnostics = link([documents.target(file)])
    return tuple(finished(d, documents.known, Settings()) for d in diagnostics if not d.code.startswith("TRN2"))


def quick(documents: OpenDocuments, file: str) -> QuickCheck:
    """The first stage: one document, its references, and the rules over single documents."""
    known = documents.known
    around = documents.surroundings(file)
    result = documents.target(file)
    graph, diagnostics = link([result, *_others(around, {file})], targets_only=True)
    diagnostics = [d for d in diagnostics if _is_in(d, {file})]
    node = result.node
    if node is not None and graph.nodes.get(node.name) is node:
        with extra_hypotheses(known.explanations):
            diagnostics += run(known.rules, graph, known, only=node)
    diagnostics, _ = apply_waivers(diagnostics, graph)
    shown = _shown((d for d in diagnostics if d.code != _STALE_WAIVER), documents, around)
    return QuickCheck(result, graph, tuple(shown))


def full(documents: OpenDocuments, files: Iterable[str], stopped: Callable[[], bool]) -> tuple[Diagnostic, ...]:
    """Both stages for some documents of one catalog: what ``trnspec validate`` reports.

    Raises:
        StoppedError: ``stopped`` returned true between two rules.
    """
    targets = list(files)
    around = documents.surroundings(targets[0], refresh=True)

    def rules() -> Iterator[Rule]:
        for rule in documents.known.rules:
            if stopped():
                raise StoppedError
            yield rule

    results = [*(documents.target(file) for file in targets), *_others(around, set(targets))]
    return check(results, documents.known, around.settings, rules()).report.diagnostics


def carried(
    before: Iterable[Diagnostic], old: Document, new: QuickCheck, documents: OpenDocuments
) -> tuple[Diagnostic, ...]:
    """The findings of rules that compare documents, where their values are now; without those whose value was edited."""
    comparing = {r.code.id for r in documents.known.rules if r.is_over_graph} | {_STALE_WAIVER}
    own = new.document.file
    moved = []
    for diagnostic in before:
        if diagnostic.where.file != own:
            if any(see.file == own for see in diagnostic.see):
                see = tuple(_moved(each, own, new.document) for each in diagnostic.see)
                moved.append(evolve(diagnostic, see=see))
        elif diagnostic.code in comparing and (path := diagnostic.where.path) in new.document.places:
            key = diagnostic.where.place != old.place(path)
            problem = Problem(diagnostic.code, "", new.document.place(path, key=key), path=path)
            text = text_at(new.document, problem)
            if text == diagnostic.where.text:
                where = evolve(diagnostic.where, place=problem.place, text=text)
                # The places of an edit are those of the text before.
                moved.append(evolve(diagnostic, where=where, edit=None))
    return tuple(moved)


def _moved(where: Location, own: str, document: Document) -> Location:
    if where.file != own or where.path not in document.places:
        return where
    return evolve(where, place=document.place(where.path))


def _others(around: Surroundings, targets: set[str]) -> Iterator[LoadResult]:
    return (result for file, result in around.results.items() if file not in targets)


def _is_in(diagnostic: Diagnostic, files: set[str]) -> bool:
    return any(where.file in files for where in (diagnostic.where, *diagnostic.see))


def _shown(diagnostics: Iterable[Diagnostic], documents: OpenDocuments, around: Surroundings) -> Iterator[Diagnostic]:
    settings = around.settings
    return (finished(d, documents.known, settings) for d in diagnostics if settings.reports(d.code))
