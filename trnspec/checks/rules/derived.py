"""Figures that differ from what others give: sums of parts, formulas (:mod:`trnspec.quantities.formula`), and ratios."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

from trnspec.checks.reconcile.hints import Budget, sentence
from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, explain, explain_case, other_parts
from trnspec.checks.reconcile.lookalikes import relatives_agree
from trnspec.checks.reconcile.relations import AGREES, is_supported
from trnspec.checks.reconcile.sites import CLAIM, Relation, Site, operand_places
from trnspec.checks.reconcile.suspects import Suspect, blamed
from trnspec.diagnostics import Severity
from trnspec.graph.formulas import UnusableOperandError, is_circular, value_of
from trnspec.graph.graph import Graph, at, references
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import dotted, leaves, shape_at, spread
from trnspec.model.sourced import origin_of
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.formula import FormulaError, dimension
from trnspec.quantities.quantity import Interval, Quantity, render, significant
from trnspec.text_table import plural
from trnspec.yaml import Path
from trnspec.yaml.edits import cut_text, quoting


@rule("TRN402", "aggregate-mismatch", local=True)
def aggregate_mismatch(graph: Graph) -> Iterator[Finding]:
    """A total that its parts do not add up to.

    Why:
        A page prints the figure of a chip and, in another table, the total of the server.  One of the two is often
        older, counted otherwise, or in another unit, and a plan that copies the wrong one is wrong.  The figures are
        compared as intervals, so that rounding is never reported; when several totals fail because of one figure, that
        figure is reported once.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chips: {chip: trainium1, count: 16}
          stated:
            memory: {capacity: 480 GiB}  #! TRN402
        ```

    Instead:
        ```diff
        -    memory: {capacity: 480 GiB}
        +    memory: {capacity: 512 GiB}
        ```

    Source:
        Moore, Kearfott, Cloud: Introduction to Interval Analysis (2009), chapter 2, for the arithmetic.
    """
    budget = Budget()
    wrong: set[tuple[str, str]] = set()
    for suspect in blamed(graph):
        if suspect.is_claim:
            continue
        whole, part = suspect.failing[0].total.node, suspect.failing[0].terms[0].part.node
        if (whole.name, part.name) in wrong:
            continue  # reported once, for all sums of the two
        finding = _wrong_part(suspect, whole, part, graph)
        if finding is not None:
            wrong.add((whole.name, part.name))
        yield finding or disagreement(suspect, graph, budget)


def _wrong_part(suspect: Suspect, whole: Node[Any], part: Node[Any], graph: Graph) -> Finding | None:
    """The finding of a reference to a document with which several sums fail, and hold with one other document alone."""
    others = list(other_parts(suspect, graph))
    paths = [path for path, _, ref in references(whole) if path[0] == "spec" and graph.find(ref) is part]
    if len(others) != 1 or len(paths) != 1:
        return None
    (other, sums), relation = others[0], suspect.failing[0]
    message = f"{sums} totals of {whole.name} are not those of {part.name}: {relation.total} is {relation.total.value}"
    message += f", but {_arithmetic(relation, relation.total)}"
    see = tuple(dict.fromkeys(s.location for s in relation.sites))
    return Finding(paths[0], message, f"likely cause: {part.name} for {other.name}, with which they hold", see, whole)


def disagreement(suspect: Suspect, graph: Graph, budget: Budget) -> Finding:
    """The finding for a suspect: both values, the other places, and the likely cause."""
    site, relation = suspect.site, suspect.failing[0]
    message = f"{site} is {site.value}, but {_arithmetic(relation, site)}"
    sums = sum(not r.is_claim for r in suspect.failing[1:])
    claims = sum(r.is_claim for r in suspect.failing[1:])
    more = [plural(n, f"more {word}") for n, word in ((sums, "total"), (claims, "source")) if n]
    if more:
        message += f"; {' and '.join(more)} disagree{'s' if sums + claims == 1 else ''} with it"
    places = dict.fromkeys(s.location for r in suspect.failing for s in r.sites if s.key != site.key)
    hint = budget.sentence(site.node, lambda: explain(suspect, graph))
    return Finding(site.place, message, hint, tuple(places)[:MOST_PLACES], node=site.node)


MOST_PLACES = 6
"""The maximum number of other places that a finding lists; a figure of a chip may be used in fifty."""


def _arithmetic(relation: Relation, site: Site) -> str:
    """The calculation that the site contradicts, solved for the site."""
    if site.key == relation.total.key:
        terms = " + ".join(str(t) for t in relation.terms)
        shown = _in_unit(relation.expected, site.value, [t.part.value for t in relation.terms])
        return f"{terms} = {shown} ({relation.level})" if relation.level != CLAIM else f"{terms} is adopted"
    wanted = relation.expects(site)
    total = f"{relation.total} is {relation.total.value}"
    if relation.is_claim or wanted is None:
        return total
    return f"{total}, which needs {_in_unit(wanted, site.value, [relation.total.value])} here ({relation.level})"


def _in_unit(interval: Interval, like: Quantity | int | None, others: list[Quantity | int | None]) -> str:
    """An expected interval in the unit of what it is compared with, to as many digits as it has."""
    middle = interval.middle
    if not isinstance(like, Quantity):
        whole = round(middle)
        return f"{whole:,}" if whole in interval else significant(middle, 4)
    digits = max([4, like.digits, *(o.digits + 1 for o in others if isinstance(o, Quantity))])
    least = "at least " if interval.high is None else ""
    return least + render(middle, like.unit, digits)


@rule("TRN404", "derived-mismatch", over=object, local=True)
def derived_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure or count that differs from the result of its formula.

    Why:
        A derived figure is only as good as its formula. When an operand changes, the figure must change too: it is the
        result for the operands as printed, rounded to its own digits. A printed figure may name in ``check`` the figures
        that it follows from; it may differ by the rounding of its operands. Operands are printed quantities, or figures
        of this document (``spec.network.bandwidth``) and of others (``efa-v3:spec.bandwidth.per_direction``).

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example, title: Example}
        spec:
          connects: chips
          bandwidth:
            both:
              value: 98 GB/s  #! TRN404
              derived: 384 GB/s / 4 links
        ```

    Instead:
        ```diff
        -      value: 98 GB/s
        +      value: 96 GB/s
        ```

    Source:
        Moore, Kearfott, Cloud: Introduction to Interval Analysis (2009), chapter 5, for functions of intervals.
    """
    for path, key, formula, value in _formulas(node, graph):
        try:
            result = _result(formula, node, path, graph, exact=key == "derived")
        except UnusableOperandError:
            continue
        except FormulaError as error:
            example = "8 x 128 x 128 x 2 x 2.4 GHz" if isinstance(value, Figure) else "2 x 16"
            yield Finding((*path, key), str(error), error.hint or f"write for instance: {example}")
            continue
        if isinstance(value, Figure):
            if (found := dimension(formula, node.units)) not in (None, value.value.dimension):
                message = f"{formula} measures {found.word}, but {value.value} measures {value.value.dimension.word}"
                yield Finding((*path, key), message, "correct the unit in the formula, or that of the figure")
            elif not result.overlaps(value.value.interval):
                yield _mismatch(Site(node, path), value, key, result, graph)
        elif not isinstance(value, int) or not result.overlaps(Interval.point(Fraction(value))):
            message = f"{dotted(path)} is {value}, but {formula} is {float(result.middle):,.6g}"
            see = (at(node, (*path, key), text=f"the formula: {formula}"), *operand_places(formula, node, graph))
            yield Finding((*path, "value"), message, "update the count or its formula", see)


def _formulas(node: Node[Any], graph: Graph) -> Iterator[tuple[Path, str, str, Any]]:
    """The formulas of figures, then of counts: the path, the key, the formula and the value."""
    for path, figure in graph.figures(node).items():
        for key in ("derived", "check"):
            if (formula := getattr(figure, key)) is not None:
                yield path, key, formula, figure
    for path, _, value in leaves(node.spec, ("spec",)):
        origin = origin_of(value)
        if origin is not None and origin.derived is not None:
            yield path, "derived", origin.derived, value


def _mismatch(site: Site, figure: Figure, key: str, result: Interval, graph: Graph) -> Finding:
    """The finding for a figure and its formula: at the formula where others agree with the figure."""
    node, path, formula = site.node, site.path, getattr(figure, key)
    shown = render(result.middle, figure.value.unit, figure.value.digits + 1)
    message = f"{dotted(path)} is {figure}, but {formula} is {shown}"
    if cut := cut_text(node.document, (*path, key)):
        message = f"the comma in {cut} ends the formula {formula}"
        place = node.document.place((*path, key))
        edit = None if place is None else quoting(node.document, place, cut)
        return Finding((*path, key), message, f'quote it: "{cut}"', edit=edit)
    operands_at = operand_places(formula, node, graph)
    cause = next(iter(_corrected(formula, site, graph, exact=key == "derived")), None)
    causes = explain_case(Mismatch(site, figure.value, (result,), (), (), graph))
    # Others that agree by rounding with the figure agree with the result too.
    is_rounded = value_of(formula, node, graph).overlaps(site.interval)
    agree = not is_rounded and (
        is_supported(graph, node.name, path) or (cause is not None and relatives_agree(site, graph))
    )
    is_exact = cause is not None and cause.id == "formula"
    if agree or (is_exact and (not causes or _is_by_chance(causes[0], figure.value.value, result.middle))):
        hint = f"likely cause: {cause.sentence}" if cause else "update the formula"
        hint += f"; other figures agree with {figure}" if agree else "; or update the figure"
        see = (at(node, (*path, "value"), text=f"the figure: {figure}"), *operands_at)
        return Finding((*path, key), message, hint, see)
    hint = f"{sentence(causes)}; or update the formula" if causes else "update the figure or its formula"
    see = (at(node, (*path, key), text=f"the formula: {formula}"), *operands_at)
    return Finding((*path, "value"), message, hint, see)


_ROUNDED = Fraction(1, 1000)
"""Relative difference of a figure from its formula that rounded operands cause."""


def _is_by_chance(cause: Explanation, value: Fraction, result: Fraction) -> bool:
    """Whether a cause closes the gap by the margins of rounding, as a figure of another document often does."""
    tens = (value * 10, value / 10)
    return cause.id == "neighbour" or (
        cause.id == "decimal-point" and not any(abs(ten - result) <= result * _ROUNDED for ten in tens)
    )


_LITERAL = re.compile(r"(?<![\w.:,-])[0-9][0-9,]*(?:\.[0-9]+)?(?![\w.,])")


def _corrected(formula: str, site: Site, graph: Graph, *, exact: bool) -> list[Explanation]:
    """The formulas with one other digit that give a figure; before those that give it by the margins of rounding only."""
    value, found = site.value, list[Explanation]()
    if not isinstance(value, Quantity):
        return []
    for literal in _LITERAL.finditer(formula):
        for place, digit in itertools.product(range(*literal.span()), "0123456789"):
            if formula[place] == digit or not formula[place].isdigit():
                continue
            other = f"{formula[:place]}{digit}{formula[place + 1 :]}"
            with suppress(FormulaError):
                result = value_of(other, site.node, graph, exact=exact)
                if result.overlaps(site.interval):
                    meant = other[slice(*literal.span())]
                    off = abs(result.middle - value.value)
                    is_exact = result.middle in site.interval or off <= value.value * _ROUNDED
                    id_ = "formula" if is_exact else "rounded-formula"
                    found.append(Explanation(id_, f"{meant} for {literal[0]} in the formula gives {value}"))
    return sorted(found, key=lambda e: e.id != "formula")


def _result(formula: str, node: Node[Any], path: Path, graph: Graph, *, exact: bool) -> Interval:
    """The value of the formula of a figure; ``FormulaError`` also where it leads back to the figure itself."""
    if is_circular(formula, node, path, graph):
        raise FormulaError(f"{formula} leads back to {dotted(path)}; a formula names the figures that it follows from")
    return value_of(formula, node, graph, exact=exact)


@rule("TRN606", "ratio-mismatch", over=Chip, severity=Severity.WARNING, local=True)
def ratio_mismatch(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """A printed ratio that contradicts the figures.

    Why:
        "3.4x faster" is computed once and then copied; when a figure is corrected, the ratio often is not. The verdict
        states whether the ratio is outdated or is based on other figures than the adopted ones.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB}
          ratios:
            - of: spec.peak.dense.bf16
              over: trainium1
              says: 3.0x  #! TRN606
              source: neuron-trainium2-2026-08
        ```

    Instead:
        ```diff
        -      says: 3.0x
        +      says: 3.5x
        ```

    Source:
        Moore, Kearfott, Cloud: Introduction to Interval Analysis (2009), 2.3, for quotients of intervals.
    """
    for index, ratio in enumerate(chip.spec.ratios):
        older = graph.find(ratio.over)
        if ratio.verdict not in AGREES or older is None:
            continue
        for path in spread(ratio.of):
            if shape_at(Chip, path[1:]) is None:
                yield Finding(("spec", "ratios", index, "of"), f"a Chip has no {dotted(path)}", "the path is misspelt")
            new, old = Site(chip, path), Site(older, path)
            if new.value is None or old.value is None or old.interval.low == 0:
                continue
            given = new.interval.ratio(old.interval)
            if not given.overlaps(ratio.says.value.interval):
                message = f"{ratio.source} has {ratio.says}, but {new.value} over {old.value} is {render(given.middle, 'x', 3)}"
                see = (new.location, at(older, path, text=old.location.text))
                yield Finding(("spec", "ratios", index, "says"), message, "add a verdict and a reason", see)
