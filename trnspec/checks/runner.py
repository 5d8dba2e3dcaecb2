"""Run the rules over a graph, and apply waivers and settings to their findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count
from typing import Any

from attrs import define, evolve, field, frozen

from trnspec.checks.reconcile.hypotheses import extra_hypotheses
from trnspec.diagnostics import Diagnostic, Location, Report, Severity, present_id
from trnspec.graph.graph import Graph, UnresolvedError, at
from trnspec.loading.pipeline import LoadResult, link, text_at
from trnspec.loading.settings import Settings
from trnspec.model.document import Node, Waiver
from trnspec.model.reflection import spread
from trnspec.plugins.api import Finding, Registry, Rule
from trnspec.plugins.failures import (
    MOST_FINDINGS,
    TimeLimitError,
    call_seconds,
    contained,
    described,
    origin,
    print_traceback,
)
from trnspec.plugins.selection import CORE
from trnspec.yaml import Path, Place, Problem
from trnspec.yaml.edits import removal


@frozen
class Checked:
    """A graph with its findings.

    Attributes:
        graph: The documents that can be used.
        report: The findings.
        texts: The texts of the files that the findings point into.
        consequences: Findings that follow from an error among these; they are reported where that is accepted.
    """

    graph: Graph
    report: Report
    texts: Mapping[str, str] = field(repr=False)
    consequences: tuple[Diagnostic, ...] = ()


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
) -> list[Diagnostic]:
    """Findings of some rules in a graph; a rule that raises becomes a finding (TRN900).

    Args:
        rules: The rules.
        graph: The documents; a local rule is run on those of its scope.
        registry: Names the plugin of a rule that raises.
        only: Run the rules over single documents alone, for this one.
    """
    rules = list(rules)
    own = {id(r) for p in registry.plugins if p.name == CORE[0] for r in p.rules} if registry is not None else None
    limited: tuple[Any, ...] = (partial(contained, call_seconds()), MOST_FINDINGS)
    runs = [
        RuleRun(rule, graph, registry, *((nullcontext,) if own is None or id(rule) in own else limited))
        for rule in rules
    ]
    scope = graph.scope if only is None else None
    # One document after another, so that what several rules use is still cached: figures and positions.
    for node in graph if only is None else (only,):
        for each in runs:
            if (scope is None or not each.rule.local or node.name in scope) and each.rule.concerns(node):
                each.on(node)
    for each in runs if only is None else ():
        if each.rule.is_over_graph:
            each.on(None)
    return list(_said_once(diagnostic for each in runs for diagnostic in each.diagnostics))


def _said_once(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Findings without those that repeat one for another source of the same claim."""
    seen = set()
    for diagnostic in diagnostics:
        where = diagnostic.where
        if where.path[:1] == ("claims",) and where.path[2:] != ("source",):
            key = (diagnostic.code, where.file, where.place, diagnostic.message)
            if key in seen:
                continue
            seen.add(key)
        yield diagnostic


@define
class RuleRun:
    """A rule, and its findings in one run; ``most`` is a limit for one call."""

    rule: Rule
    graph: Graph
    registry: Registry | None
    context: Callable[[], AbstractContextManager[Any]]
    most: int | None = None
    diagnostics: list[Diagnostic] = field(factory=list)
    stopped: bool = False

    def on(self, node: Node[Any] | None) -> None:
        """Run the rule on a document, or on the graph; an error that it raises becomes a finding."""
        if self.stopped:
            return
        try:
            with self.context():
                _extend(self.diagnostics, self.rule, node, self.graph, self.most)
        except UnresolvedError:
            pass  # the reference that cannot be resolved is reported where it is written
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # a defect of a rule, sys.exit() too, is a finding
            print_traceback(error)
            # A rule without end would take as long for every other document.
            self.stopped = isinstance(error, (TimeLimitError, _TooManyError))
            self.diagnostics.append(_of_error(self.rule, error, None if self.stopped else node, self.registry))


def check_node(rule: Rule, node: Node[Any], graph: Graph, registry: Registry) -> list[Diagnostic]:
    """Findings of one rule in one document, which need not be part of the graph."""
    diagnostics: list[Diagnostic] = []
    _extend(diagnostics, rule, node, graph)
    return [finished(d, registry, Settings()) for d in diagnostics]


class _TooManyError(Exception):
    """A rule does not stop to yield findings."""


def _extend(
    diagnostics: list[Diagnostic], rule: Rule, node: Node[Any] | None, graph: Graph, most: int | None = None
) -> None:
    """Add what a rule finds, up to an error that it raises."""
    finding: Any  # a plugin may yield anything
    for number, finding in enumerate(rule.check(graph) if node is None else rule.check(node, graph)):
        if number == most:
            raise _TooManyError(f"it has more than {most:,} findings in one call; the first are kept")
        if not isinstance(finding, Finding) or not isinstance(finding.path, tuple):
            example = 'Finding(("spec", "memory"), "message")'
            raise TypeError(f"it yields {finding!r}; {example} is expected, with a tuple of steps as path")
        diagnostics.append(_of_finding(rule, finding, finding.node or node))


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


def failed_rule(diagnostic: Diagnostic) -> str:
    """The code of the rule of a TRN900."""
    return diagnostic.message.split()[1]


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
    """The findings that no waiver accepts, with findings on waivers that suppress nothing; and the waived findings.

    A waiver of a code that is not in ``codes`` may be one of a plugin that is not installed; it has no edit. Of a rule that
    failed, it is not known which waivers suppress nothing.
    """
    nodes: dict[str, Node[Any]] = {n.document.file: n for n in graph}
    used: set[tuple[str, int]] = set()
    kept: list[Diagnostic] = []
    waived: list[Diagnostic] = []
    diagnostics = list(diagnostics)
    failed = {failed_rule(d) for d in diagnostics if d.code == "TRN900"}
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
        invalid = {path[2] for path in node.document.rejected if path[:2] == ("metadata", "allow") and len(path) > 2}
        positions = (position for position in count() if position not in invalid)
        for index, (position, waiver) in enumerate(zip(positions, node.metadata.allow, strict=False)):
            if (node.name, index) not in used and waiver.code not in failed:
                path: Path = ("metadata", "allow", position)
                message = f"this waiver of {waiver.code} suppresses nothing"
                edit = removal(node.document, path) if present_id(waiver.code) in codes else None
                kept.append(Diagnostic("TRN304", Severity.WARNING, message, at(node, path), "remove it", edit=edit))
    return kept, waived


def _accepts(waiver: Waiver, diagnostic: Diagnostic) -> bool:
    if present_id(waiver.code) != diagnostic.code:
        return False
    if diagnostic.code.startswith(("TRN00", "TRN01", "TRN1")):
        return False  # the value is not in the catalog, whatever the reason
    if waiver.at is None:
        return True
    return any(diagnostic.where.path[: len(path)] == path for path in spread(waiver.at))


def check(
    results: Iterable[LoadResult],
    registry: Registry,
    settings: Settings = Settings(),  # noqa: B008  # a frozen value
    rules: Iterable[Rule] | None = None,
) -> Checked:
    """Link the documents, run the rules, apply waivers and settings."""
    results = list(results)
    rules = registry.rules if rules is None else rules
    targets = {r.document.file for r in results if r.target}
    graph, diagnostics = link(results)
    # The findings on other documents are not reported, unless they point into a target.
    whole = all(r.target for r in results)
    names = {node.name for node in graph if node.target} | {n for n, file in graph.broken.items() if file in targets}
    scoped = graph if whole else graph.focused_on(names)
    with extra_hypotheses(registry.explanations):
        diagnostics += run(rules, scoped, registry)
    diagnostics, waived = apply_waivers(diagnostics, graph, registry.codes)
    shown = [finished(d, registry, settings) for d in diagnostics if settings.reports(d.code) and _concerns(d, targets)]
    kept, consequences = causes(shown)
    accepted = sum(1 for d in waived if settings.reports(d.code) and _concerns(d, targets))
    checked: dict[str, int] = {}
    for node in graph:
        if node.target:
            checked[node.kind] = checked.get(node.kind, 0) + 1
    report = Report(
        tuple(kept),
        checked=checked,
        files=sum(1 for r in results if r.target),
        waived=accepted,
        codes=tuple(registry.codes.values()),
    )
    return Checked(graph, report, {r.document.file: r.document.text for r in results}, tuple(consequences))


def causes(diagnostics: Sequence[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The findings that do not follow from an error among them, and those that do.

    The latter refer to a document that has errors; or to a value at which there is an error of a code that precedes theirs in
    :data:`_CAUSES`; or are not errors, and point at a value with an error.
    """
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    files = {d.where.file for d in errors if d.code != "TRN203"}
    # A value that its form makes invalid is in no graph; the doubts about a text are about other characters of it.
    values = {(d.where.file, d.where.place) for d in errors if not d.code.startswith(_OF_TEXTS)}
    rank = {code: number for number, code in enumerate(_CAUSES)}
    causing: dict[tuple[str, Place | None], int] = {}
    for d in errors:
        for where in (d.where, *(d.see if d.code in _EITHER else ())) if d.code in rank else ():
            place = (where.file, where.place)
            causing[place] = min(rank[d.code], causing.get(place, len(rank)))

    def follows(one: Diagnostic) -> bool:
        places = [(where.file, where.place) for where in (one.where, *one.see)]
        own = rank.get(one.code, len(rank))
        return (
            any(place is None and file in files for file, place in places[1:])
            or (one.code != _UNSOURCED and any(causing.get(place, own) < own for place in places))
            or not (one.severity is Severity.ERROR or one.code.startswith(_OF_TEXTS) or values.isdisjoint(places))
        )

    return [d for d in diagnostics if not follows(d)], [d for d in diagnostics if follows(d)]


_OF_TEXTS = ("TRN0", "TRN1")

_CAUSES = (
    *("TRN306", "TRN307", "TRN616"),  # a date that does not exist or contradicts a name, a figure of 0
    *("TRN201", "TRN205"),  # a name
    *("TRN402", "TRN608", "TRN303", "TRN611"),  # a figure that sums, its row, other sources or its name contradict
    *("TRN501", "TRN503", "TRN310", "TRN502"),  # a topology, a date of launch, a number of links
    *("TRN406", "TRN405", "TRN408"),  # a dimension of a model
    "TRN702",  # a cell
)
"""The codes of findings that name the value that is wrong, the most certain first."""

_EITHER = ("TRN303", "TRN405")
"""Those of findings of which any place may be the wrong one: a claim or a figure, a dimension or the number of parameters."""


_UNSOURCED = "TRN301"
"""The code of a figure without a source, which follows from no other error."""


def _concerns(diagnostic: Diagnostic, targets: set[str]) -> bool:
    """Whether a finding is in a target file, or refers to one."""
    return any(where.file in targets or where.file == "<catalog>" for where in (diagnostic.where, *diagnostic.see))


def finished(diagnostic: Diagnostic, registry: Registry, settings: Settings) -> Diagnostic:
    """A finding with the severity that the settings give it, and the name of its code."""
    code = registry.codes.get(diagnostic.code)
    default = code.severity if code is not None else diagnostic.severity
    return evolve(
        diagnostic,
        severity=settings.severity_of(diagnostic.code, default),
        name=code.name if code is not None else "",
    )
