"""Runs the rules over a graph, and applies waivers and settings to their findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import define, evolve, field, frozen

from trnspec.diagnostics import Diagnostic, Location, Report, Severity
from trnspec.graph.graph import Graph, UnresolvedError, at
from trnspec.loading import processes
from trnspec.loading.pipeline import link, text_at
from trnspec.loading.settings import Settings
from trnspec.model.reflection import spread
from trnspec.plugins.api import Registry, Rule
from trnspec.plugins.entry_points import CORE
from trnspec.plugins.failures import (
    RULE_SECONDS,
    TimeLimitError,
    contained,
    described,
    origin,
    print_traceback,
    seconds_of,
)
from trnspec.plugins.selection import TRACEBACK
from trnspec.yaml import Path, Place, Problem
from trnspec.yaml.edits import removal

if TYPE_CHECKING:
    from trnspec.loading.pipeline import Reading
    from trnspec.model.document import Node, Waiver
    from trnspec.plugins.api import Finding
    from trnspec.yaml import Document


@frozen
class Checked:
    """A graph with its findings.

    Attributes:
        graph: The documents that can be used.
        report: The findings.
        texts: The texts of the files that the findings point into.
        is_spotless: Whether nothing was found, settings and waivers apart.
    """

    graph: Graph
    report: Report
    texts: Mapping[str, str] = field(repr=False)
    is_spotless: bool = False


def document_errors(
    diagnostics: Iterable[Diagnostic], graph: Graph, registry: Registry, settings: Settings
) -> list[tuple[Diagnostic, bool]]:
    """The errors that :func:`link` found, in reading order, each with whether its document is left out of the graph.

    Settings can hide an error of a document that is used, but not that a document is left out.
    """
    used = {node.document.file for node in graph}
    ordered = sorted(
        (finished(d, registry, settings) for d in diagnostics if d.code != "TRN203"), key=lambda d: d.order
    )
    errors = [(d, d.where.file not in used) for d in ordered]
    return [(d, lost) for d, lost in errors if lost or (d.severity is Severity.ERROR and settings.reports(d.code))]


def run(
    rules: Iterable[Rule],
    graph: Graph,
    registry: Registry | None = None,
    only: Node[Any] | None = None,
    jobs: int = 1,
) -> list[Diagnostic]:
    """What some rules find in a graph; a rule that raises becomes a finding (TRN900).

    Args:
        rules: The rules.
        graph: The documents; a local rule is run on those of its scope.
        registry: Names the plugin of a rule that raises.
        only: Run the rules over single documents alone, for this one.
        jobs: The number of processes for many documents.
    """
    rules = list(rules)
    own = {id(r) for p in registry.plugins if p.name == CORE[0] for r in p.rules} if registry is not None else None
    seconds = seconds_of("TRNSPEC_RULE_SECONDS", RULE_SECONDS)
    runs = [
        _Run(rule, graph, registry, nullcontext if own is None or id(rule) in own else partial(contained, seconds))
        for rule in rules
    ]
    scope = graph.scope
    checked = [node for node in graph if scope is None or node.name in scope] if only is None else [only]
    runs = [each for each in runs if each.rule.is_needed(checked)]
    if jobs > 1 and only is None and len(checked) >= processes.LEAST:
        left = _in_parts(runs, checked, graph, jobs)
    else:
        left = runs
    concerned = _by_document(left, scope if only is None else None)
    for node in graph if only is None else checked:
        for each in concerned(node):
            each.on(node)
    for each in left if only is None else ():
        if each.rule.is_over_graph:
            each.on(None)
    return [diagnostic for each in runs for diagnostic in each.diagnostics]


def _by_document(runs: Iterable[_Run], scope: AbstractSet[str] | None) -> Callable[[Node[Any]], list[_Run]]:
    """The rules to run on a document, of those that are not over the graph; the local ones only in a scope.

    They are run on one document after another, so that what several rules use is still known: figures and positions.
    """
    concerned: dict[tuple[str, bool], list[_Run]] = {}

    def of(node: Node[Any]) -> list[_Run]:
        key = (node.kind, scope is None or node.name in scope)
        if key not in concerned:
            candidates = (each for each in runs if not each.rule.is_over_graph and (key[1] or not each.rule.local))
            concerned[key] = [each for each in candidates if each.rule.concerns(node)]
        return concerned[key]

    return of


@define
class _Run:
    """One rule in one run, and what it finds."""

    rule: Rule
    graph: Graph
    registry: Registry | None
    context: Callable[[], AbstractContextManager[Any]]
    diagnostics: list[Diagnostic] = field(factory=list)
    stopped: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether it raised an error."""
        return any(diagnostic.code == "TRN900" for diagnostic in self.diagnostics)

    def on(self, node: Node[Any] | None) -> None:
        """Run the rule on a document, or on the graph; an error that it raises becomes a finding."""
        if self.stopped:
            return
        try:
            with self.context():
                _extend(self.diagnostics, self.rule, node, self.graph)
        except UnresolvedError:
            pass  # the reference that cannot be resolved is reported where it is written
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # a defect of a rule, sys.exit() too, is a finding
            print_traceback(error)
            # A rule without end would take as long for every other document.
            self.stopped = isinstance(error, TimeLimitError)
            self.diagnostics.append(_of_error(self.rule, error, None if self.stopped else node, self.registry))


def _in_parts(runs: list[_Run], checked: list[Node[Any]], graph: Graph, jobs: int) -> list[_Run]:
    """Run the local rules in several processes, each with a part of the documents.

    A rule over the graph is run with the part as its focus. All that it can find points into the documents that these
    findings point into, and with those as its focus it is run by this process.

    Args:
        runs: The rules, which receive their findings.
        checked: The documents.
        graph: All documents.
        jobs: The number of processes.

    Returns:
        The rules that are still to be run on everything: those that are not local, and those that failed.
    """
    local = [each for each in runs if each.rule.local]
    names = {node.document.file: node.name for node in graph}
    failed: set[int] = set()
    first, *others = processes.parts_of(checked, jobs)

    def of_part(part: Sequence[Node[Any]]) -> _Part:
        return _of_part(local, part, graph, names, failed)

    results = [of_part(first)]
    failed.update(results[0].failed)
    for index, received in processes.each(of_part, others, jobs):
        results.append(of_part(others[index]) if received is None else received)
        failed.update(results[-1].failed)
    concerned: set[str] = set().union(*(found for result in results for found in result.names.values()))
    view = _focused(graph, concerned)
    order = {node.name: index for index, node in enumerate(checked)}
    for number, each in enumerate(local):
        if number in failed:
            continue
        if not each.rule.is_over_graph:
            found = [one for result in results for one in result.findings.get(number, ())]
            each.diagnostics.extend(diagnostic for _, diagnostic in sorted(found, key=lambda one: order[one[0]]))
        elif any(result.names.get(number) for result in results):
            again = evolve(each, graph=view, diagnostics=[])
            again.on(None)
            if again.has_failed:
                failed.add(number)
            else:
                each.diagnostics.extend(d for d in again.diagnostics if _pointed(d, names) & concerned)
    unfinished = {id(local[number]) for number in failed}
    return [each for each in runs if not each.rule.local or id(each) in unfinished]


class _Part(NamedTuple):
    """What the local rules find with a part of the documents, by the number of the rule.

    Attributes:
        findings: Of rules over documents: each with the name of its document.
        names: Of rules over the graph: the documents that their findings point into.
        failed: The rules that failed.
    """

    findings: dict[int, list[tuple[str, Diagnostic]]]
    names: dict[int, set[str]]
    failed: set[int]


def _of_part(
    local: list[_Run], part: Sequence[Node[Any]], graph: Graph, names: Mapping[str, str], failed: Collection[int]
) -> _Part:
    """Run the local rules with some documents, without those that failed with others."""
    result = _Part({}, {}, set(failed))
    runs = {number: evolve(each, diagnostics=[]) for number, each in enumerate(local) if number not in failed}
    numbers = {id(each): number for number, each in runs.items()}
    concerned = _by_document(runs.values(), None)
    view = _focused(graph, (node.name for node in part))
    token = TRACEBACK.set(False)  # what fails is run again
    try:
        for node in part:
            for each in concerned(node):
                each.on(node)
                if each.diagnostics:
                    found = result.findings.setdefault(numbers[id(each)], [])
                    found += [(node.name, diagnostic) for diagnostic in each.diagnostics]
                    if each.has_failed:
                        result.failed.add(numbers[id(each)])
                        each.stopped = True
                    each.diagnostics.clear()
        for number, each in runs.items():
            if each.rule.is_over_graph:
                each.graph = view
                each.on(None)
                places = [_pointed(diagnostic, names) for diagnostic in each.diagnostics]
                result.names[number] = set().union(*places)
                if each.has_failed or not all(places):
                    result.failed.add(number)
    finally:
        TRACEBACK.reset(token)
    return result


def _focused(graph: Graph, names: Iterable[str]) -> Graph:
    return graph.focused_on(names if graph.focus is None else graph.focus & set(names))


def _pointed(diagnostic: Diagnostic, names: Mapping[str, str]) -> set[str]:
    """The documents that a finding points into, of the names by file."""
    return {names[where.file] for where in (diagnostic.where, *diagnostic.see) if where.file in names}


def check_node(rule: Rule, node: Node[Any], graph: Graph, registry: Registry) -> list[Diagnostic]:
    """What one rule finds in one document, which need not be part of the graph."""
    diagnostics: list[Diagnostic] = []
    _extend(diagnostics, rule, node, graph)
    return [finished(d, registry, Settings()) for d in diagnostics]


def _extend(diagnostics: list[Diagnostic], rule: Rule, node: Node[Any] | None, graph: Graph) -> None:
    """Add what a rule finds, up to an error that it raises."""
    for finding in rule.check(graph) if node is None else rule.check(node, graph):
        diagnostics.append(_of_finding(rule, finding, finding.node or node))  # noqa: PERF401  # keep those before an error


def _of_error(rule: Rule, error: BaseException, node: Node[Any] | None, registry: Registry | None) -> Diagnostic:
    """TRN900: the rule, its plugin, and the line of the rule's code that raised."""
    name = f"rule {rule.code.id} {rule.code.name}"
    if registry is not None:
        name += f" of {registry.provider(rule)}"
    frame = origin(error, rule.check)
    see: tuple[Location, ...] = ()
    failed = "failed"
    hint = "report this to the author of the rule; --traceback prints the traceback"
    if frame is not None and frame.lineno is not None:
        # Python counts columns from 0.
        place = Place(frame.lineno, (frame.colno or 0) + 1)
        see = (Location(frame.filename, place, text=(frame.line or "").strip()),)
        failed = f"failed at {frame.filename}:{frame.lineno}"
    where = Location("<catalog>" if node is None else node.document.file)
    return Diagnostic("TRN900", Severity.ERROR, f"{name} {failed}: {described(error)}", where, hint, see)


def _of_finding(rule: Rule, finding: Finding, node: Node[Any] | None) -> Diagnostic:
    where = Location("<catalog>")
    if node is not None:
        document = node.document
        place = document.place(finding.path, key=finding.key)
        text = text_at(document, Problem(rule.code.id, finding.message, place, path=finding.path))
        where = Location(document.file, place, finding.path, text)
    see, edit = finding.see, finding.edit
    if finding.where is not None:
        where, see, edit = finding.where, (where, *see), None
    return Diagnostic(rule.code.id, rule.code.severity, finding.message, where, finding.hint, see, edit=edit)


def apply_waivers(
    diagnostics: Iterable[Diagnostic], graph: Graph, codes: Collection[str] = ()
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The findings that no waiver accepts, with findings on idle waivers; and the waived findings.

    A waiver of a code that is not in ``codes`` may be one of a plugin that is not installed; it has no edit.
    """
    nodes: dict[str, Node[Any]] = {n.document.file: n for n in graph}
    used: set[tuple[str, int]] = set()
    kept: list[Diagnostic] = []
    waived: list[Diagnostic] = []
    for diagnostic in diagnostics:
        node = nodes.get(diagnostic.where.file)
        matching = [] if node is None else [i for i, w in enumerate(node.metadata.allow) if _accepts(w, diagnostic)]
        if node is not None and matching:
            used |= {(node.name, i) for i in matching}
            waived.append(diagnostic)
        else:
            kept.append(diagnostic)
    every: list[Node[Any]] = [n for n in graph if n.target]
    for node in every:
        for index, waiver in enumerate(node.metadata.allow):
            if (node.name, index) not in used:
                path: Path = ("metadata", "allow", index)
                message = f"this waiver of {waiver.code} suppresses nothing"
                edit = removal(node.document, path) if waiver.code in codes else None
                kept.append(Diagnostic("TRN304", Severity.WARNING, message, at(node, path), "remove it", edit=edit))
    return kept, waived


def _accepts(waiver: Waiver, diagnostic: Diagnostic) -> bool:
    if waiver.code != diagnostic.code:
        return False
    if waiver.at is None:
        return True
    try:
        return any(diagnostic.where.path[: len(path)] == path for path in spread(waiver.at))
    except ValueError:
        return False


def check(
    readings: Iterable[Reading],
    registry: Registry,
    settings: Settings = Settings(),  # noqa: B008  # a frozen value
    rules: Iterable[Rule] | None = None,
    edited: Mapping[str, tuple[str, ...]] | None = None,
    jobs: int = 1,
) -> Checked:
    """Link the documents, run the rules, apply waivers and settings.

    Args:
        readings: The documents.
        registry: The codes and the rules.
        settings: The settings.
        rules: The rules to run; those of the registry if omitted.
        edited: The absolute paths of the files that have changed since the same documents were spotless, with the names
            of their documents then.
        jobs: The number of processes for many documents.
    """
    readings = list(readings)
    if edited and (again := _still_spotless(readings, registry, edited)) is not None:
        return again
    rules = registry.rules if rules is None else rules
    targets = {r.document.file for r in readings if r.target}
    graph, diagnostics = link(readings)
    # The findings on other documents are not reported, unless they point into a target.
    whole = all(r.target for r in readings)
    scoped = graph if whole else graph.focused_on(node.name for node in graph if node.target)
    if registry.explanations:
        from trnspec.checks.reconcile.hypotheses import extra_hypotheses

        with extra_hypotheses(registry.explanations):
            diagnostics += run(rules, scoped, registry, jobs=jobs)
    else:
        diagnostics += run(rules, scoped, registry, jobs=jobs)
    diagnostics, waived = apply_waivers(diagnostics, graph, registry.codes)
    is_spotless = not any(_concerns(d, targets) for d in (*diagnostics, *waived))
    shown = [finished(d, registry, settings) for d in diagnostics if settings.reports(d.code) and _concerns(d, targets)]
    accepted = sum(1 for d in waived if settings.reports(d.code) and _concerns(d, targets))
    return _checked(graph, readings, registry, shown, accepted, is_spotless=is_spotless)


def _checked(  # the parts of a report
    graph: Graph,
    readings: list[Reading],
    registry: Registry,
    shown: list[Diagnostic],
    waived: int,
    *,
    is_spotless: bool,
) -> Checked:
    checked: dict[str, int] = {}
    for node in graph:
        if node.target:
            checked[node.kind] = checked.get(node.kind, 0) + 1
    report = Report(
        tuple(shown),
        checked=checked,
        files=sum(1 for r in readings if r.target),
        waived=waived,
        codes=tuple(registry.codes.values()),
    )
    return Checked(graph, report, _Texts({r.document.file: r.document for r in readings}), is_spotless)


def _still_spotless(
    readings: list[Reading], registry: Registry, edited: Mapping[str, tuple[str, ...]]
) -> Checked | None:
    """The result of a check, if all documents were spotless and nothing is found after some were edited.

    What a rule finds in a document can have changed only if it, or one that it refers to, directly or through others, was
    edited: local rules are run on those. A rule over the graph that is not local can compare any two documents, so it is
    run on all if one of its kind is among those.
    """
    changed: list[Reading] = []
    file_names = set(map(os.path.basename, edited))
    for reading in readings:
        file = reading.document.file
        if os.path.basename(file) not in file_names or (before := edited.get(os.path.abspath(file))) is None:  # noqa: PTH100, PTH119  # many files
            continue
        node = reading.node
        # Under another name, other documents may refer to another document now.
        if node is None or reading.plugin or node.metadata.allow or (node.name, *node.aliases) != before:
            return None
        changed.append(reading)
    if len(changed) != len(edited):
        return None
    names = {reading.name for reading in changed}
    graph, diagnostics = link(readings, edited=names)
    targets = {r.document.file for r in readings if r.target}
    if any(_concerns(d, targets) for d in diagnostics):
        return None
    affected = graph.using(names)
    scoped = graph.focused_on(affected)
    checked = [node for node in graph if node.name in affected]
    local = [rule for rule in registry.rules if rule.local]
    comparing = [rule for rule in registry.rules if not rule.local and rule.is_needed(checked)]
    if any(_concerns(d, targets) for d in (*run(local, scoped, registry), *run(comparing, graph, registry))):
        return None
    return _checked(graph, readings, registry, [], 0, is_spotless=True)


class _Texts(Mapping[str, str]):
    """The texts of documents by file, of which those of earlier runs are read when they are first used."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents

    def __getitem__(self, file: str) -> str:
        return self._documents[file].text

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents)

    def __len__(self) -> int:
        return len(self._documents)


def _concerns(diagnostic: Diagnostic, targets: set[str]) -> bool:
    """Whether a finding is in a target file, or refers to one."""
    return any(where.file in targets or where.file == "<catalog>" for where in (diagnostic.where, *diagnostic.see))


def finished(diagnostic: Diagnostic, registry: Registry, settings: Settings) -> Diagnostic:
    """A finding with the severity that the settings give it, and the name of its code."""
    code = registry.codes.get(diagnostic.code)
    usual = code.severity if code is not None else diagnostic.severity
    return evolve(
        diagnostic,
        severity=settings.severity_of(diagnostic.code, usual),
        name=code.name if code is not None else "",
    )
