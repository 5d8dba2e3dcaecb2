"""Formulas that name figures of documents: ``spec.network.bandwidth / 64``, ``efa-v3:spec.bandwidth.per_direction``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trnspec.diagnostics import did_you_mean
from trnspec.graph.graph import Graph, figure_at, references
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import dotted, leaves, steps_of, value_at
from trnspec.model.renames import current
from trnspec.model.sourced import origin_of
from trnspec.quantities.formula import FormulaError, evaluate
from trnspec.quantities.quantity import Interval
from trnspec.yaml import Path

_OPERAND = re.compile(r"(?:(?P<name>[a-z0-9][a-z0-9.-]*):)?(?P<path>spec(?:\.[A-Za-z0-9_-]+)+)")


class UnusableOperandError(FormulaError):
    """A formula names a document or a value that has errors, which are reported in the same run."""


def value_of(formula: str, node: Node[Any], graph: Graph, *, exact: bool = False) -> Interval:
    """The value of a formula of a document, in base units.

    Args:
        formula: A formula as in :mod:`trnspec.quantities.formula`, in which ``spec.PATH`` is a figure or a count of the
            same document, and ``NAME:spec.PATH`` one of another.
        node: The document.
        graph: The catalog.
        exact: Whether a figure is the number that it shows, without rounding.

    Raises:
        UnusableOperandError: It names a document or a value whose errors are reported in this run.
        FormulaError: The text does not follow the grammar, or it names a document or a path without a value.
    """

    def unusable(what: str, *, reported: bool) -> FormulaError:
        message = f"{what} has errors (in the formula {formula!r})"
        return UnusableOperandError(message) if reported else FormulaError(message, "fix that document first")

    def is_checked(name: str) -> bool:
        return graph.focus is None or name in graph.focus

    def operand(match: re.Match[str]) -> str:
        holder = _holder(match, node, graph)
        if holder is None and match["name"] in graph.broken:
            name = match["name"]
            # A reference to the document is reported in this one.
            raise unusable(name, reported=is_checked(name) or any(ref.name == name for _, _, ref in references(node)))
        if holder is None:
            hint = did_you_mean(match["name"], graph.aliases)
            raise FormulaError(f"no document is named {match['name']!r} (in the formula {formula!r})", hint)
        path = _path(match, holder)
        value = figure_at(holder, path)
        if isinstance(value, Figure):
            return value.value.text
        if isinstance(value, int):
            return str(int(value))
        if value is None and (value_at(holder.document.data, path) is not None or holder.document.rejects(path)):
            raise unusable(match[0], reported=is_checked(holder.name))
        hint = did_you_mean(match["path"], (dotted(at) for at, _, _ in leaves(holder.spec, ("spec",))))
        raise FormulaError(f"{holder.name} has no figure at {match['path']} (in the formula {formula!r})", hint)

    return evaluate(_OPERAND.sub(operand, formula), node.units, exact=exact)


def is_circular(formula: str, node: Node[Any], path: Path, graph: Graph) -> bool:
    """Whether a formula of a figure names that figure, itself or through the formulas of its operands."""
    pending = list(operands(formula, node, graph))
    seen: set[tuple[str, Path]] = set()
    while pending:
        holder, operand = pending.pop()
        if (holder.name, operand) == (node.name, path):
            return True
        if (holder.name, operand) in seen:
            continue
        seen.add((holder.name, operand))
        value = figure_at(holder, operand)
        origin = value if isinstance(value, Figure) else origin_of(value)
        if origin is not None and origin.derived is not None:
            pending += operands(origin.derived, holder, graph)
    return False


def operands(formula: str, node: Node[Any], graph: Graph) -> Iterator[tuple[Node[Any], Path]]:
    """The figures that a formula names, each with its document."""
    for match in _OPERAND.finditer(formula):
        holder = _holder(match, node, graph)
        if holder is not None:
            yield holder, _path(match, holder)


def _holder(match: re.Match[str], node: Node[Any], graph: Graph) -> Node[Any] | None:
    """The document of an operand."""
    return node if match["name"] is None else graph.lookup(match["name"])


def _path(match: re.Match[str], holder: Node[Any]) -> Path:
    """The path of a figure, a former one as the present one."""
    path = steps_of(match["path"])[1:]
    return ("spec", *current(holder.spec_class, path))
