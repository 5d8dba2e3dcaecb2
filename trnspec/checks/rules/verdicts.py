"""Verdicts and the arithmetic of their reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from trnspec.checks.reconcile.relations import sums_of
from trnspec.checks.reconcile.sites import Site, operand_places
from trnspec.errors import QuantityError
from trnspec.graph.formulas import UnusableOperandError, value_of
from trnspec.graph.graph import Graph, at
from trnspec.model.document import Node
from trnspec.model.reflection import dotted, spread
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.formula import FormulaError, evaluate
from trnspec.quantities.quantity import Interval, Quantity, parse, render
from trnspec.quantities.units import Dimension, UnitTable
from trnspec.yaml import Path


@rule("TRN312", "rounding-mismatch", over=object, local=True)
def rounding_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A claim called rounded whose value is not a rounding of the adopted or computed figure.

    Why:
        The verdict says that both values are one figure with fewer digits, rounded or cut off, or computed from rounded
        factors. They then differ by at most one unit of the last digit, or by 1 %; any other difference needs another
        verdict.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB, bandwidth: 2.9 TB/s}
        claims:
          - at: spec.memory.bandwidth
            says: 2,400 GB/s
            source: neuron-trn2-2024-12
            verdict: rounded  #! TRN312
            reason: It has fewer digits.
        ```

    Instead:
        ```diff
        -    says: 2,400 GB/s
        +    says: 3 TB/s
        ```

    Source:
        ISO 80000-1:2022, annex B, rounding of numbers.
    """
    for index, claim in enumerate(node.claims):
        if claim.verdict != "rounded":
            continue
        for path in spread(claim.at):
            said = Site(node, path, index).value
            if not isinstance(said, Quantity):
                continue
            site = Site(node, path)
            value = site.value
            figure = value.interval if isinstance(value, Quantity) else None
            if figure is None:
                known = [r for r in sums_of(site, graph) if r.total.key == site.key and r.has_parts]
                figure = known[-1].expected if known else None
            if figure is not None and not _widened(said.loose, _TOLERANCE).overlaps(figure):
                shown = value if value is not None else render(figure.middle, said.unit, said.digits + 2)
                message = f"{said} is not a rounding of {shown}, the figure of {dotted(path)}"
                hint = "give another verdict: rejected, superseded or other-scope"
                yield Finding((*node.claim_path(index), "verdict"), message, hint)
                break


_TOLERANCE = Fraction(1, 100)
"""The relative difference that a product of rounded factors may have."""


def _widened(own: Interval, tolerance: Fraction = Fraction(0)) -> Interval:
    """The values of which digits were rounded or cut off, or that differ by a relative tolerance."""
    if own.high is None:
        return own
    up = max((own.high - own.low) / 2, own.high * tolerance)
    return Interval(own.low * (1 - tolerance), own.high + up)


_OPERATOR = re.compile(r"(?<=[0-9A-Za-z%)] )[x*/+\u00d7](?= )")
_NUMBER = re.compile(r"(?<![0-9A-Za-z.,])[0-9][0-9,]*(?:\.[0-9]+)?")
_RESULT = re.compile(r"\s*((?:~ ?)?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?: (?!per |percent)[A-Za-zµ]+(?:/[A-Za-zµ]+)*)?)")
_CLAUSE = re.compile(r"[;:.,]\s")


@rule("TRN314", "scope-mismatch", over=object, local=True)
def scope_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A claim of other scope whose value is not that of the quantity it is said to give.

    Why:
        ``other-scope`` states that a source is right, but gives another quantity than this attribute: one direction, one
        chip, the engines of the host too. ``scope`` names that quantity; where it is a formula of figures, the claim must
        have its value. Otherwise the claim has a wrong digit, or another verdict.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          memory: {capacity: 96 GiB}
          dma: {engines: 128, host_engines: 4}
        claims:
          - at: spec.dma.engines
            says: 134  #! TRN314
            source: neuron-driver-fca19f7
            verdict: other-scope
            scope: spec.dma.engines + spec.dma.host_engines
            reason: The driver counts the engines of the host too.
        ```

    Instead:
        ```diff
        -    says: 134
        +    says: 132
        ```

    Source:
        The definition of the verdict: it is right, but for another quantity than this attribute.
    """
    for index, claim in enumerate(node.claims):
        if claim.scope is None:
            continue
        base = node.claim_path(index)
        if claim.verdict != "other-scope":
            message = (
                f"scope is only stated of a claim with the verdict other-scope, not {claim.verdict or 'without one'}"
            )
            yield Finding((*base, "scope"), message, "correct the verdict, or remove scope")
            continue
        try:
            expected = value_of(claim.scope, node, graph)
        except UnusableOperandError:
            continue
        except FormulaError as error:
            if "spec." in claim.scope:
                hint = error.hint or "write for instance: spec.links.bandwidth.both / 2"
                yield Finding((*base, "scope"), str(error), hint)
            continue  # a name in words
        said = Site(node, spread(claim.at)[0], index)
        if said.value is not None and not expected.overlaps(said.interval):
            own, value = expected.middle, said.value
            shown = render(own, value.unit, value.digits + 1) if isinstance(value, Quantity) else f"{float(own):,.6g}"
            message = f"the claim is {value}, but its scope, {claim.scope}, is {shown}"
            see = (at(node, (*base, "scope"), text=claim.scope), *operand_places(claim.scope, node, graph))
            yield Finding((*base, "says"), message, "correct the claim, a figure of its scope, or the verdict", see)


@rule("TRN313", "arithmetic-mismatch", over=object, local=True)
def arithmetic_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A reason or a note with a calculation whose result is wrong.

    Why:
        A reader accepts a verdict because of its reason. A reason that calculates must calculate correctly, to the digits
        that it prints.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB}
        claims:
          - at: spec.links.bandwidth.both
            says: 640 GB/s
            source: neuron-trn2-2024-12
            verdict: other-scope
            reason: It counts one direction, 3 x 640 GB/s = 1,280 GB/s.  #! TRN313
        ```

    Instead:
        ```diff
        -    reason: It counts one direction, 3 x 640 GB/s = 1,280 GB/s.
        +    reason: It counts one direction, 2 x 640 GB/s = 1,280 GB/s.
        ```

    Source:
        The grammar of derived figures; see docs/reference/yaml.md.
    """
    for path, text in _remarks(node.document.data):
        if " = " not in text:
            continue
        for calculation, result, value in wrong_results(text, node.units):
            yield Finding(path, f"{calculation} = {result} is false", f"{calculation} is {value}")


def _remarks(data: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every reason and note in the plain data of a document, with its path; an invalid one has some that its node lacks."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data or ()):
        if isinstance(value, str):
            if key in ("reason", "note"):
                yield (*path, key), value
        elif isinstance(value, (dict, list)):
            yield from _remarks(value, (*path, key))


@lru_cache(maxsize=4096)
def wrong_results(text: str, units: UnitTable) -> tuple[tuple[str, str, str], ...]:
    """The calculations of a text whose result is wrong: the calculation, the printed result and the value.

    A calculation is a formula with at least one operator before an equals sign that a number follows. Texts that the
    grammar of formulas does not cover, such as differences and powers, are not checked.
    """
    wrong: list[tuple[str, str, str]] = []
    for match in re.finditer(r"(?<= )=(?= )", text):
        result = _RESULT.match(text, match.end())
        calculation = "" if result is None else _calculation(text[: match.start()].rstrip(), units)
        if result is None or not calculation:
            continue
        value = evaluate(calculation, units)
        printed = _parsed(result[1], units)
        if re.match(r" ?(?:%|per cent|percent)", text[result.end() :]):
            value = value.scaled(Fraction(100))
        operands_have_units = _has_unit(calculation, units)
        if printed is not None and not _agrees(printed, value, operands_have_units=operands_have_units):
            unit, digits = printed.unit, printed.digits + 1
            with_unit = operands_have_units and printed.dimension is not Dimension.RATIO
            shown = render(value.middle, unit, digits) if with_unit else f"{float(value.middle):,.{digits}g}"
            wrong.append((calculation, printed.text.removesuffix("x"), shown))
    return tuple(wrong)


def _agrees(printed: Quantity, value: Interval, *, operands_have_units: bool) -> bool:
    """Whether a result is that of a calculation; apart from a prefix of units unless both state their units."""
    results = (_widened(printed.interval), printed.loose)
    both_have_units = operands_have_units and printed.dimension is not Dimension.RATIO
    scales = (
        [Fraction(1)] if both_have_units else [Fraction(k) ** power for k in (1000, 1024) for power in range(-6, 7)]
    )
    return any(result.scaled(scale).overlaps(value) for result in results for scale in scales)


def _calculation(text: str, units: UnitTable) -> str:
    """The longest formula with an operator at the end of a text; empty if there is none."""
    clause = _CLAUSE.split(text.rsplit(" = ", maxsplit=1)[-1])[-1]
    for start in _NUMBER.finditer(clause):
        formula = clause[start.start() :]
        before = clause[: start.start()].rstrip()
        if before.endswith(("-", "^", "\u2212", "/", "*")) or not _OPERATOR.search(formula):
            continue
        try:
            evaluate(formula, units)
        except FormulaError:
            continue
        return formula
    return ""


def _parsed(result: str, units: UnitTable) -> Quantity | None:
    """The printed result, with its unit where the word after the number is one."""
    number, _, unit = result.strip().partition(" ")
    try:
        return parse(result.strip() if unit in units else f"{number}x", None, units)
    except QuantityError:
        return None


def _has_unit(calculation: str, units: UnitTable) -> bool:
    return any(word != "x" and word in units for word in re.findall(r"[A-Za-zµ]+(?:/[A-Za-zµ]+)*", calculation))
