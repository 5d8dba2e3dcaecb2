"""The figures whose value is not that of their formula; see :mod:`trnspec.quantities.formula`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from trnspec.checks.reconcile.hypotheses import Case, explain_case, sentence
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.formulas import value_of
from trnspec.model.reflection import ObjectShape, dotted, leaves
from trnspec.model.sourced import origin_of
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.formula import FormulaError
from trnspec.quantities.quantity import Interval, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@rule("TRN404", "derived-mismatch", over=object, local=True)
def derived_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure or count that differs from the result of its formula.

    Why:
        A derived figure is only as good as its formula. When an operand changes, the figure must change too. A printed
        figure may name in ``check`` the figures that it follows from. Operands are printed quantities, or figures of this
        document (``spec.network.bandwidth``) and of others (``efa-v3:spec.bandwidth.per_direction``).

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
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example, title: Example}
        spec:
          connects: chips
          bandwidth:
            both:
              value: 96 GB/s
              derived: 384 GB/s / 4 links
        ```

    Source:
        Moore, Kearfott, Cloud: Introduction to Interval Analysis (2009), chapter 5, for functions of intervals.
    """
    for path, figure in graph.figures(node).items():
        for key in ("derived", "check"):
            formula = getattr(figure, key)
            if formula is None:
                continue
            try:
                result = value_of(formula, node, graph)
            except FormulaError as error:
                yield Finding((*path, key), str(error), "write for instance: 8 x 128 x 128 x 2 x 2.4 GHz")
                continue
            if not result.overlaps(figure.value.interval):
                middle = result.low if result.high is None else (result.low + result.high) / 2
                shown = render(middle, figure.value.unit, figure.value.digits + 1)
                message = f"{dotted(path)} is {figure}, but {formula} is {shown}"
                causes = explain_case(Case(Site(node, path), figure.value, (result,), (), (), graph))
                hint = f"{sentence(causes)}; or update the formula" if causes else "update the figure or its formula"
                yield Finding((*path, "value"), message, hint)
    for path, _, value in leaves(node.spec, ObjectShape(type(node.spec)), ("spec",)):
        origin = origin_of(value)
        if origin is None or origin.derived is None:
            continue
        try:
            result = value_of(origin.derived, node, graph)
        except FormulaError as error:
            yield Finding((*path, "derived"), str(error), "write for instance: 2 x 16")
            continue
        if not isinstance(value, int) or not result.overlaps(Interval.point(Fraction(value))):
            shown = f"{float(result.low):,.6g}"
            message = f"{dotted(path)} is {value}, but {origin.derived} is {shown}"
            yield Finding((*path, "value"), message, "update the count or its formula")
