"""Texts to a checked graph, told once: read, structure, link, check.

Every stage reports and passes on what is sound, so one run shows everything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.diagnostics import Diagnostic, Location, Report, Severity, did_you_mean
from trnspec.graph import Graph, NodeProblem, UnresolvedError, at, build
from trnspec.model.document import API_VERSION, Node, Waiver
from trnspec.model.kinds import HOUSE
from trnspec.model.shape import dotted, spread
from trnspec.settings import Settings
from trnspec.source import Document, Path, Problem
from trnspec.structure import StructureError, structure

if TYPE_CHECKING:
    from trnspec.plugin import Finding, Kind, Registry, Rule
    from trnspec.units import UnitTable


@frozen
class Reading:
    """What one text gave.

    Attributes:
        document: The text with its places.
        node: The document, when it is sound enough to use.
        problems: What is wrong with the text or with its form.
        name: Its name, or that of its file when not even that can be read.
        target: True for a text that the caller asked to check, sound or not.
        plugin: The plugin whose catalog it lies in; empty for a file of the user, and where no plugin has a catalog.
        layer: Which catalog it is of, the nearest to the user first; a document stands in for those of later layers.
    """

    document: Document
    node: Node[Any] | None
    problems: tuple[Problem, ...]
    name: str
    target: bool = True
    plugin: str = ""
    layer: int = 0


def read(document: Document, registry: Registry, *, target: bool = True, plugin: str = "", layer: int = 0) -> Reading:
    """The node in a text, and what is wrong with it."""
    found = _read(document, registry, target=target)
    return evolve(found, plugin=plugin, layer=layer) if plugin or layer else found


def _read(document: Document, registry: Registry, *, target: bool) -> Reading:
    problems = list(document.problems)
    data = document.data
    name = _name(document)
    if data is None:
        return Reading(document, None, tuple(problems), name, target)
    kind, problem = _kind(document, data, registry)
    if kind is None:
        return Reading(document, None, (*problems, *([problem] if problem else [])), name, target)
    node: Node[Any] | None
    try:
        node = structure(kind.name, kind.spec, document, data, registry.units)
    except StructureError as refused:
        node, found = _mend(kind, document, data, refused, registry.units)
        problems += found
    folder = "" if kind.name in HOUSE else kind.folder
    if node is not None and (folder or not target):
        node = evolve(node, target=target, folder=folder)
    return Reading(document, node, tuple(problems), name, target)


def _name(document: Document) -> str:
    """What others call a document, sound or not: a reference to it is not "dangling"."""
    metadata = (document.data or {}).get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else os.path.splitext(os.path.basename(document.file))[0]  # noqa: PTH119, PTH122  # many files


def _kind(document: Document, data: Mapping[str, Any], registry: Registry) -> tuple[Kind | None, Problem | None]:
    """The kind of a document, or what is wrong with its first two lines."""
    for key, known in (("api_version", [API_VERSION]), ("kind", list(registry.kinds))):
        value = data.get(key)
        if value in known:
            continue
        if (key,) in document.refused:
            return None, None
        expected = " or ".join(known) if len(known) < 3 else "one of " + ", ".join(known)
        if key not in data:
            place = document.place(())
            return None, Problem("TRN102", f"the document has no {key!r}", place, f"add {key}: {expected}", ())
        hint = (did_you_mean(value, known) if isinstance(value, str) else "") or f"known: {', '.join(known)}"
        return None, Problem("TRN107", f"{value!r} at {key} is not {expected}", document.place((key,)), hint, (key,))
    return registry.kinds[str(data["kind"])], None


def _mend(
    kind: Kind, document: Document, data: Mapping[str, Any], refused: StructureError, units: UnitTable
) -> tuple[Node[Any] | None, list[Problem]]:
    """What the schema says of a document that the classes refused, and the node of its sound rest."""
    # Imported here: a sound file never pays for jsonschema.
    from trnspec.schema.check import check
    from trnspec.schema.prune import prune

    unsound = check(kind.name, kind.spec, document, data, units)
    if not unsound and not document.refused:
        return None, [
            Problem("TRN190", f"{r.message} (at {dotted(r.path) or 'the top'})", document.place(r.path), "", r.path)
            for r in refused.refusals
        ]
    rest, positions = prune(kind.spec, data, [*(u.drop for u in unsound), *_lost(document)])
    problems = [u.problem for u in unsound]
    if rest is None:
        return None, problems
    try:
        node: Node[Any] = structure(kind.name, kind.spec, document, rest, units)
    except StructureError:
        return None, problems
    return evolve(node, positions=positions), problems


def _lost(document: Document) -> Iterable[Path]:
    """What the reader refused: its place stands empty, and a merge key leaves a whole mapping in doubt."""
    return (path[:-1] if path[-1] == "<<" else path for path in document.refused if path)


def settle(readings: Iterable[Reading]) -> tuple[list[Reading], list[NodeProblem]]:
    """The readings that count: a document of a plugin takes the place of another only where it says so.

    Returns:
        The readings without those that are replaced and those that are refused, and why the latter are.
    """
    readings = list(readings)
    if not any(r.plugin for r in readings):
        return readings, []
    from trnspec.additions import HOUSE, replaces

    house = [r for r in readings if r.plugin == HOUSE and r.node is not None]
    taken = {n: r for r in house if r.node is not None for n in (r.node.name, *r.node.metadata.aliases)}
    gone: set[int] = set()
    problems: list[NodeProblem] = []
    # In the order of the plugins, which is that of their names, whichever of them is checked.
    for reading in sorted((r for r in readings if r.plugin not in ("", HOUSE)), key=lambda r: r.plugin):
        node = reading.node
        if node is None:
            continue
        names = (node.name, *node.metadata.aliases)
        other = next((taken[n] for n in names if n in taken), None)
        if other is not None and other.node is not None and (other.plugin != reading.plugin):
            found = list(replaces(node, other.node, other.plugin))
            problems += found
            gone.add(id(reading) if found else id(other))
            if found:
                continue
        for name in names:
            taken[name] = reading
    return [r for r in readings if id(r) not in gone], problems


@frozen
class Checked:
    """A graph with everything that was found in it.

    Attributes:
        graph: The sound documents.
        report: What was found.
        texts: The texts of the files that findings point into.
    """

    graph: Graph
    report: Report
    texts: Mapping[str, str] = field(repr=False)


def link(readings: Iterable[Reading], *, hides: bool = True) -> tuple[Graph, list[Diagnostic]]:
    """The graph of some readings, and all that is wrong so far, unfiltered.

    A document of the context that has the name of an earlier one is what that one stands in for; so is every document
    that has the name of a sound one of an earlier layer.

    Args:
        readings: Targets first, and in the order of their layers.
        hides: Whether a document that is too unsound to use hides those of the context that have its name, so that
            whoever refers to it is told.
    """
    every = list(readings)
    readings, refused = settle(every)
    nodes: list[Node[Any]] = []
    targets = {r.node.name for r in readings if r.node is not None and r.target}
    broken: dict[str, str] = {}
    nearest: dict[str, int] = {}
    for reading in readings:
        node = reading.node
        if node is None:
            broken.setdefault(reading.name, reading.document.file)
        elif nearest.setdefault(node.name, reading.layer) == reading.layer and (
            reading.target or not ((hides and node.name in broken) or targets & {node.name, *node.metadata.aliases})
        ):
            nodes.append(node)
    if not hides:
        broken = {name: file for name, file in broken.items() if name not in nearest}
    graph, problems = build(nodes, broken)
    found = [_diagnostic(p, r.document) for r in every for p in r.problems]
    found += [
        evolve(_diagnostic(p.problem, p.node.document), see=p.see)
        for p in (*refused, *problems)
        # Whoever mends a broken document need not read of all the others that refer to it.
        if p.node.target or p.problem.code != "TRN203"
    ]
    return graph, found


def _diagnostic(problem: Problem, document: Document) -> Diagnostic:
    text = _text_at(document, problem)
    where = Location(document.file, problem.place, problem.path, text)
    see = (Location(document.file, problem.see, problem.path, "the first one"),) if problem.see else ()
    return Diagnostic(problem.code, Severity.ERROR, problem.message, where, problem.hint, see)


def _text_at(document: Document, problem: Problem) -> str:
    """The text that stands at a problem, when it is one line: what a caret underlines."""
    span = document.places.get(problem.path)
    if span is None or problem.place is None or not document.text:
        return ""
    if span.key == problem.place and problem.path:
        return str(problem.path[-1])
    if span.value == problem.place and span.end.line == span.value.line:
        lines = document.text.splitlines()
        if span.value.line <= len(lines):
            return lines[span.value.line - 1][span.value.column - 1 : span.end.column - 1]
    return ""


def faults(
    found: Iterable[Diagnostic], graph: Graph, registry: Registry, settings: Settings
) -> list[tuple[Diagnostic, bool]]:
    """The errors that :func:`link` found, in reading order, each with whether its document is left out of the graph.

    Settings can hide an error of a document that is used, but not that a document is not there.
    """
    used = {node.document.file for node in graph}
    made = sorted((_finished(d, registry, settings) for d in found if d.code != "TRN203"), key=lambda d: d.order)
    told = [(d, d.where.file not in used) for d in made]
    return [(d, lost) for d, lost in told if lost or (d.severity is Severity.ERROR and settings.reports(d.code))]


def run(rules: Iterable[Rule], graph: Graph) -> list[Diagnostic]:
    """What some rules find in a graph; a rule that raises becomes a finding."""
    found: list[Diagnostic] = []
    for rule in rules:
        if rule.over is None:
            found += _run(rule, None, graph)
        else:
            for node in graph:
                if isinstance(node.spec, rule.over):
                    found += _run(rule, node, graph)
    return found


def _run(rule: Rule, node: Node[Any] | None, graph: Graph) -> Iterable[Diagnostic]:
    try:
        for finding in rule.check(graph) if node is None else rule.check(node, graph):
            yield _of_finding(rule, finding, finding.node or node)
    except UnresolvedError:
        return  # the reference that leads nowhere has been reported where it stands
    except Exception as error:  # noqa: BLE001  # any mistake of a rule is a finding, never the end of the run
        file = node.document.file if node is not None else "<catalog>"
        message = f"rule {rule.code.id} {rule.code.name} failed: {type(error).__name__}: {error}"
        yield Diagnostic("TRN900", Severity.ERROR, message, Location(file), "report this to the author of the rule")


def _of_finding(rule: Rule, finding: Finding, node: Node[Any] | None) -> Diagnostic:
    where = Location("<catalog>")
    if node is not None:
        document = node.document
        place = document.place(finding.path, key=finding.key)
        text = _text_at(document, Problem(rule.code.id, finding.message, place, path=finding.path))
        where = Location(document.file, place, finding.path, text)
    return Diagnostic(rule.code.id, rule.code.severity, finding.message, where, finding.hint, finding.see)


def waive(diagnostics: Iterable[Diagnostic], graph: Graph) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The findings that no waiver accepts, with those on waivers that accept nothing; and the accepted ones."""
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
    every: list[Node[Any]] = list(graph)
    for node in every:
        for index, waiver in enumerate(node.metadata.allow):
            if (node.name, index) not in used:
                path: Path = ("metadata", "allow", index)
                message = f"this waiver of {waiver.code} suppresses nothing"
                kept.append(Diagnostic("TRN304", Severity.WARNING, message, at(node, path), "remove it"))
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


def check(readings: Iterable[Reading], registry: Registry, settings: Settings = Settings()) -> Checked:  # noqa: B008  # a frozen value
    """The whole of it: link, run every rule, apply waivers and settings."""
    readings = list(readings)
    targets = {r.document.file for r in readings if r.target}
    graph, found = link(readings)
    if registry.explanations:
        from trnspec.rules.hypotheses import also

        with also(registry.explanations):
            found += run(registry.rules, graph)
    else:
        found += run(registry.rules, graph)
    found, waived = waive(found, graph)
    shown = [_finished(d, registry, settings) for d in found if settings.reports(d.code) and _concerns(d, targets)]
    checked: dict[str, int] = {}
    for node in graph:
        if node.target:
            checked[node.kind] = checked.get(node.kind, 0) + 1
    report = Report(
        tuple(shown),
        checked=checked,
        files=sum(1 for r in readings if r.target),
        waived=sum(1 for d in waived if settings.reports(d.code) and _concerns(d, targets)),
        codes=tuple(registry.codes.values()),
    )
    return Checked(graph, report, {r.document.file: r.document.text for r in readings})


def _concerns(diagnostic: Diagnostic, targets: set[str]) -> bool:
    """True for a finding in a file that was named, or that such a file takes part in."""
    return any(where.file in targets or where.file == "<catalog>" for where in (diagnostic.where, *diagnostic.see))


def _finished(diagnostic: Diagnostic, registry: Registry, settings: Settings) -> Diagnostic:
    code = registry.codes.get(diagnostic.code)
    usual = code.severity if code is not None else diagnostic.severity
    return evolve(
        diagnostic,
        severity=settings.severity_of(diagnostic.code, usual),
        name=code.name if code is not None else "",
    )
