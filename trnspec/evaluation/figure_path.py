"""Figures of a catalog by the text that names them: ``trn2.48xlarge.network.bandwidth``.

It is the name of a document and a path below its ``spec``. Sensitivities, targets and assumptions use it for figures and
for calibrated parameters alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import attrs
from attrs import evolve, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import TrnspecError, UnknownNameError, UsageError
from trnspec.evaluation.result import Evaluation
from trnspec.graph import paths
from trnspec.graph.graph import Graph
from trnspec.graph.totals import terms
from trnspec.model.calibration import SERVING_SHARES, SHARES, Calibration
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.ref import indefinite
from trnspec.model.reflection import FigureShape, NumberShape, Shape, dotted, shape_at, value_at, with_value
from trnspec.model.renames import current
from trnspec.yaml import Path

_FLAGS = ("causal",)
"""Parameters of a calibration that choose between two formulas, 0 or 1; a change of 1 % means nothing for them."""

_SHARES = SHARES | SERVING_SHARES
"""Parameters of a calibration that are shares: none is above 1."""


class CatalogLike(Protocol):
    """A catalog, as far as an evaluation under other figures needs it; it is an attrs class."""

    @property
    def graph(self) -> Graph:
        """The documents."""

    @property
    def edition(self) -> str | None:
        """The edition; nothing for the working edition."""

    @property
    def as_of(self) -> str | None:
        """The date."""

    def replace(self, name: str, changes: Mapping[str, Any]) -> CatalogLike:
        """The catalog with other values in one document."""


@frozen
class FigurePath:
    """A path of a document.

    Attributes:
        node: The document.
        steps: The path below ``spec``.
        shape: What is there: a figure, a count, ...
    """

    node: Node[Any]
    steps: Path
    shape: Shape

    @property
    def at(self) -> str:
        """The path below ``spec``, dotted."""
        return dotted(self.steps)

    @property
    def figure(self) -> Figure | None:
        """The figure there; ``None`` where the document has none."""
        value = value_at(self.node.spec, self.steps)
        return value if isinstance(value, Figure) else None

    @property
    def most(self) -> float:
        """The largest value it can have, in base units: 1 for a calibrated share."""
        return 1.0 if isinstance(self.node.spec, Calibration) and self.steps[-1] in _SHARES else math.inf

    def __str__(self) -> str:
        return f"{self.node.name}.{self.at}"


def figure_path(graph: Graph, text: str) -> FigurePath:
    """The path that a text names.

    Args:
        graph: The catalog.
        text: Document and path, such as ``trn2.48xlarge.network.bandwidth``; ``spec.`` before the path may be written.

    Raises:
        UnknownNameError: There is no such document, or its kind has no such path; the message suggests the nearest.
        UsageError: The path is a total over parts, or a path of a part; the message names the figure of the part. Or it
            is neither a figure nor a count.
    """
    node, rest = _document(graph, text)
    kind = type(node.spec)
    steps: Path = current(kind, tuple(int(s) if s.isdigit() else s for s in rest.split(".")), groups=False)
    shape = shape_at(kind, steps)
    if shape is None or (paths.place(graph, kind, rest) is None and _misspelled(graph, kind, rest)):
        raise _elsewhere(graph, node, rest)
    if isinstance(shape, (FigureShape, NumberShape)):
        return FigurePath(node, steps, shape)
    inner = [p for p in paths.paths(graph, kind) if p.startswith(f"{rest}.")]
    hint = f"; write one of {', '.join(f'{node.name}.{p}' for p in inner)}" if inner else ""
    raise UsageError(f"{node.name}.{rest} is not a figure{hint}")


def _document(graph: Graph, text: str) -> tuple[Node[Any], str]:
    """The document, whose name may have dots in it, and the rest of a text."""
    words = text.strip().split(".")
    for count in range(len(words), 0, -1):
        name = ".".join(words[:count])
        if name in graph:
            rest = ".".join(words[count:]).removeprefix("spec.")
            if not rest:
                raise UsageError(f"{text!r} is a document; write a figure of it, such as {name}.memory.bandwidth")
            return graph.named(name), rest
    starts = [".".join(words[:count]) for count in range(1, min(len(words), 4) + 1)]
    hint = next(filter(None, (did_you_mean(start, graph.aliases) for start in reversed(starts))), "")
    hint = hint or "write NAME.PATH, such as trainium2.memory.bandwidth"
    raise UnknownNameError(f"{text!r} does not begin with the name of a document; {hint}")


def _misspelled(graph: Graph, kind: type[Any], rest: str) -> str:
    return did_you_mean(rest, paths.paths(graph, kind))


def _elsewhere(graph: Graph, node: Node[Any], rest: str) -> TrnspecError:
    """The error for a path that a kind has no figure at: a total, a path of a part, or a spelling mistake."""
    kind = type(node.spec)
    place = paths.place(graph, kind, rest)
    value = None if place is None else place.read(node)
    if place is not None and place.total:
        summands = terms(graph, node, ("spec", *rest.split("."))) or ()
        names = " or ".join(f"{t.part.name}.{rest}" for t in summands) or f"the {rest} of its parts"
        return UsageError(f"{node.name}.{rest} is computed from its chips; write {names}")
    if value is not None and value.part is not None and value.part is not node:
        at = next((dotted(p[1:]) for p, f in graph.figures(value.part).items() if f is value.figure), "")
        return UsageError(f"{node.name}.{rest} is a figure of {value.part.name}; write {value.part.name}.{at}")
    hint = paths.unknown_path(graph, kind, rest)
    hint = hint or _misspelled(graph, kind, rest) or f"trnspec show {node.name} lists its figures"
    return UnknownNameError(f"{indefinite(node.kind)} has no {rest}; {hint}")


def figures_of(evaluation: Evaluation, graph: Graph) -> tuple[FigurePath, ...]:
    """The catalog figures that an evaluation uses, then the parameters of its calibrations; each once.

    A figure of 0 is left out, and so is a count: neither can be changed by a share of itself.
    """
    named = [(used.of, used.at) for used in evaluation.figures_used]
    for node in calibrations(evaluation, graph):
        names = (f.name for f in attrs.fields(type(node.spec.achieved)))
        named += [(node.name, f"achieved.{name}") for name in names if name not in _FLAGS]
    found: dict[str, FigurePath] = {}
    for of, at in named:
        if of not in graph:
            continue
        node = graph.named(of)
        steps: Path = tuple(int(s) if s.isdigit() else s for s in at.split("."))
        shape = shape_at(type(node.spec), steps)
        if isinstance(shape, FigureShape):
            path = FigurePath(node, steps, shape)
            if path.figure is not None and path.figure.value.value:
                found[str(path)] = path
    return tuple(found.values())


def calibrations(evaluation: Evaluation, graph: Graph) -> tuple[Node[Calibration], ...]:
    """The calibrations that an evaluation names in its inputs or assumptions."""
    texts = [*evaluation.inputs.values(), *(a.value for a in evaluation.assumptions)]
    names = {n.name: n for n in graph.of(Calibration)}
    return tuple(names[t] for t in dict.fromkeys(texts) if isinstance(t, str) and t in names)


def scaled(catalog: Any, path: FigurePath, factor: Fraction, text: str = "") -> Any:
    """A catalog in which one figure, with its interval, is multiplied by a number.

    Args:
        catalog: A catalog in which the path has a figure.
        path: The figure.
        factor: The number.
        text: The new text of the figure; unchanged if empty, which only evaluations that are not shown may have.
    """
    figure = path.figure
    assert figure is not None
    quantity = figure.value
    number, ulp = quantity.number * factor, quantity.ulp * factor
    quantity = evolve(quantity, text=text or quantity.text, number=number, ulp=ulp)
    graph = catalog.graph
    node = graph.named(path.node.name)
    spec = with_value(node.spec, path.steps, evolve(figure, value=quantity))
    return evolve(catalog, graph=graph.replace(node.name, spec))
