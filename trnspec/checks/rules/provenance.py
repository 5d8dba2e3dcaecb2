"""Sources of figures, and verdicts on claims that disagree."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from datetime import date
from typing import Any

from attrs import evolve

from trnspec.checks.reconcile.conflicts import conflict_finding, conflicts
from trnspec.checks.reconcile.hints import Budget
from trnspec.checks.reconcile.relations import AGREES, sums_by_source
from trnspec.checks.reconcile.sites import Site
from trnspec.checks.reconcile.suspects import blamed
from trnspec.checks.rules.derived import disagreement
from trnspec.diagnostics import Severity
from trnspec.errors import QuantityError
from trnspec.graph.graph import Graph
from trnspec.model.annotations import Date
from trnspec.model.document import Claim, Node
from trnspec.model.reflection import (
    ChoiceShape,
    FigureShape,
    ListShape,
    NumberShape,
    ObjectShape,
    TextShape,
    dotted,
    shape_at,
    shape_of,
    spread,
)
from trnspec.model.rounded import count_of
from trnspec.model.source import Source
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Quantity, parse
from trnspec.yaml import Path

_PLACEHOLDER = re.compile(r"\W*(?:(?:todo|tbd|tba|fixme|xxx|n/a|none|unknown|reason)\W*)?", re.IGNORECASE)
"""A reason that was not written yet."""


_MOST_UNSOURCED = 3
"""Figures without a source that are reported one by one; of more the document's own source is missing."""


@rule("TRN301", "unsourced-figure", over=object, local=True)
def unsourced_figure(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure without a source.

    Why:
        A figure without a source cannot be checked, dated or superseded.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}  #! TRN301
          memory:
            capacity: 32 GiB  #! TRN301
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        ```

    Source:
        Wilkinson et al.: The FAIR Guiding Principles, Scientific Data 3 (2016), principle R1.2.
    """
    rejects = node.document.rejects
    if node.metadata.source is not None or rejects(("metadata", "source")):
        return
    unsourced = {
        path: figure
        for path, figure in graph.figures(node).items()
        if figure.source is None and figure.derived is None and not rejects((*path, "source"))
    }
    hint = "name one in metadata.source, or write {value: ..., source: ...}; use derived: for a computed figure"
    if len(unsourced) > _MOST_UNSOURCED:
        message = f"{len(unsourced)} figures are without a source, such as {dotted(next(iter(unsourced)))}"
        yield Finding(("metadata",), message, hint, key=True)
        return
    for path, figure in unsourced.items():
        yield Finding(path, f"{dotted(path)} is {figure}, without a source", hint)


@rule("TRN302", "misplaced-claim", over=object, local=True)
def misplaced_claim(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A claim about a figure that documents of its kind cannot have, or of another dimension than the figure.

    Why:
        A claim has the path of the figure that it contradicts or supports; a claim with an invalid path has no effect.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.memory.capacty  #! TRN302
            says: 32 GB
            source: neuron-trainium-2024-02
        ```

    Instead:
        ```diff
        -  - at: spec.memory.capacty
        -    says: 32 GB
        +  - at: spec.memory.capacity
        +    says: 32 GiB
        ```

    Source:
        The design of trnspec: a claim and its figure have the same path.
    """
    for index, claim in enumerate(node.claims):
        base = node.claim_path(index)
        paths = spread(claim.at)
        if missing := [dotted(path) for path in paths if shape_at(type(node.spec), path[1:]) is None]:
            yield Finding((*base, "at"), f"a {node.kind} has no {' and no '.join(missing)}", "the path is misspelt")
        # One finding, also for a claim about several figures.
        if fault := next((f for path in paths if (f := _misplaced(node, claim, path)) is not None), None):
            key, message, hint = fault
            yield Finding((*base, key), message, hint)


def _misplaced(node: Node[Any], claim: Claim, path: Path) -> tuple[str, str, str] | None:
    """The fault of a claim on a path: the key of the claim, a message and a hint; ``None`` for a valid claim."""
    shape = shape_at(type(node.spec), path[1:])
    if isinstance(shape, FigureShape):
        try:
            parse(str(claim.says), shape.dimension, node.units)
        except QuantityError as error:
            return "says", f"{error} (a claim on {dotted(path)})", error.hint
    elif (isinstance(shape, NumberShape) or isinstance(claim.says, int)) and count_of(claim.says) is None:
        return "says", f"{claim.says!r} is not a count", f"{dotted(path)} is a count: write 16"
    elif shape is not None and not isinstance(shape, (ChoiceShape, ListShape, NumberShape, ObjectShape, TextShape)):
        return "at", f"{dotted(path)} cannot have claims", "claims are about figures"
    return None


@rule("TRN303", "conflict-without-verdict", local=True)
def conflict_without_verdict(graph: Graph) -> Iterator[Finding]:
    """Two figures for one thing that contradict each other, without a verdict.

    Why:
        Without a verdict every reader has to resolve the conflict again. A verdict other than "agrees" needs a reason.

        A claim is compared with the adopted figure or, if there is none, with the computed one. If there is neither,
        claims are compared with each other, and each contradicting pair is reported at the claim with the lower
        precedence: that of a third party rather than of a publisher, else the older one, for equal dates the one of the
        farther rank. Words are not compared.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.peak.dense.bf16
            says: 210 TFLOPS  #! TRN303
            source: neuron-trn1-2023-02
          - at: spec.memory.stacks.capacity
            says: 16 GB  #! TRN303
            source: neuron-trn1-2023-02
          - at: spec.memory.stacks.capacity
            says: 16 GiB
            source: neuron-trn1-2026-08
        ```

    Instead:
        ```diff
             source: neuron-trn1-2023-02
        +    verdict: superseded
        +    reason: The vendor lowered the rate in 2023-04.
             source: neuron-trn1-2023-02
        +    verdict: rejected
        +    reason: Device memory is counted in binary units.
        ```

    Source:
        JCGM 100:2008, Guide to the expression of uncertainty in measurement, 4.3: judgements must be stated.
    """
    for node in graph.focused():
        for index, claim in enumerate(node.claims):
            if claim.verdict not in AGREES and _PLACEHOLDER.fullmatch(claim.reason or ""):
                path = (*node.claim_path(index), "verdict")
                given = f" but {claim.reason!r}" if claim.reason else ""
                yield Finding(path, f"the verdict {claim.verdict!r} has no reason{given}", "add reason: ...", node=node)
    budget = Budget()
    for suspect in blamed(graph):
        if suspect.is_claim:
            finding = disagreement(suspect, graph, budget)
            yield evolve(finding, hint=f"add a verdict and a reason; {finding.hint}")
    for conflict in conflicts(graph):
        yield conflict_finding(conflict, graph, budget)


@rule("TRN305", "superseded-figure", over=object, local=True)
def superseded_figure(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """An adopted figure that a claim with the same value calls superseded, rejected or unresolved.

    Why:
        A verdict that is not followed is worse than none: a reader of the claim assumes that the conflict was resolved.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          peak:
            dense:
              bf16: 210 TFLOPS  #! TRN305
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.peak.dense.bf16
            says: 210 TFLOPS
            source: neuron-trn1-2022-10
            verdict: superseded
            reason: The vendor lowered the rate.
        ```

    Instead:
        ```diff
        -metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        +metadata: {name: example, title: Example, source: neuron-trainium-2026-08}
        -      bf16: 210 TFLOPS
        +      bf16: 190 TFLOPS
        -    reason: The vendor lowered the rate.
        +    reason: The vendor lowered the rate in 2023-04.
        ```

    Source:
        The design of trnspec: one value is adopted; the conflicting values are claims with a verdict and a reason.
    """
    for index, claim in enumerate(node.claims):
        if claim.verdict not in ("superseded", "rejected", "unresolved"):
            continue
        for path in spread(claim.at):
            adopted, said = Site(node, path).value, Site(node, path, index).value
            if _is_same(adopted, said):
                message = f"{dotted(path)} is {adopted}, which the claim of {claim.source} calls {claim.verdict}"
                see = (Site(node, path, index).location,)
                yield Finding(path, message, "adopt another figure, or change the verdict", see)


def _is_same(one: Quantity | int | None, other: Quantity | int | None) -> bool:
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return one.same_value(other)
    return one is not None and one == other


@rule("TRN306", "impossible-date", over=object, local=True)
def impossible_date(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A date that does not exist, or one before 1970.

    Why:
        Most conflicts between figures are resolved by date; an invalid date cannot be compared.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: example, title: Example}
        spec: {publisher: Somebody, as_of: 2023-02-30, rank: third-party}  #! TRN306
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: example, title: Example}
        spec: {publisher: Somebody, as_of: 2023-02-28, rank: third-party}
        ```

    Source:
        ISO 8601-1:2019, 5.2.2, calendar dates.
    """
    cls: Any = type(node.spec)
    for name in _dates_of(cls):
        text = getattr(node.spec, name)
        path = ("spec", name)
        if text is None:
            continue
        # A source has a stricter rule, TRN307.
        if text < _EARLIEST and not isinstance(node.spec, Source):
            yield Finding(path, f"{text} is before {_EARLIEST}", "correct the year")
        if len(text) < len("2023-02-28"):
            continue
        try:
            date.fromisoformat(text)
        except ValueError as error:
            yield Finding(path, f"{text} is not a day: {error}", "write the month only if the day is not known")


_EARLIEST = "1970"
"""No document is about an older product."""


@functools.cache
def _dates_of(spec: Any) -> tuple[str, ...]:
    """The fields of a class that hold dates."""
    return tuple(name for name, member in ObjectShape(spec).fields.items() if member.shape == _DATE)


_DATE = shape_of(Date)


@rule("TRN403", "self-contradiction", severity=Severity.WARNING, local=True)
def self_contradiction(graph: Graph) -> Iterator[Finding]:
    """A source whose own figures do not add up, without a verdict on the wrong one.

    Why:
        An outdated page can still be consistent (16 x 210 = 3,360); of a page that contradicts itself neither figure can be
        trusted. The sums are therefore also checked among the figures of each source.

    Example:
        ```yaml
        # file: sources/a-page.yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: a-page, title: A page}
        spec: {publisher: Somebody, as_of: 2023-02-28, rank: third-party}
        # file: chips/part.yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: part, title: Part, source: neuron-trainium-2026-08}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.peak.dense.bf16
            says: 210 TFLOPS
            source: a-page
            verdict: superseded
            reason: It is the older rate.
        # file: servers/whole.yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: whole, title: Whole, source: neuron-trainium-2026-08}
        spec:
          chips: {chip: part, count: 16}
        claims:
          - at: spec.stated.peak.dense.bf16
            says: 3,380 TFLOPS  #! TRN403
            source: a-page
            verdict: superseded
            reason: It is the older rate.
        ```

    Instead:
        ```diff
        -    says: 3,380 TFLOPS
        +    says: 3,360 TFLOPS
        ```

    Source:
        The Trn1 page of 2023-02, which is outdated and consistent, and the Trn2 page of 2024-12, whose EFA row is not.
    """
    found = sums_by_source(graph)
    for source in graph.of(Source):
        for relation in found.get(source.name, ()):
            if relation.holds or any(_judged(s) for s in relation.sites):
                continue
            if all(s.claim is None for s in relation.sites):
                continue  # among adopted figures, which is TRN402
            total = relation.total
            message = f"{source.name} has {total.value} for {dotted(total.path[1:])}, but also {relation.terms[0]}"
            see = tuple(s.location for s in relation.sites[1:])
            yield Finding(total.place, message, "one of its figures needs a verdict", see, total.node)


def _judged(site: Site) -> bool:
    """True for a claim whose verdict already states that it does not agree."""
    return site.claim is not None and site.node.claims[site.claim].verdict in ("rejected", "other-scope", "unresolved")
