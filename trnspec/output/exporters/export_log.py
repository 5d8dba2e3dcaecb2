"""The record of an export: every catalog figure it uses and every assumption it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from trnspec.errors import UsageError
from trnspec.graph.composition import chips
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated, conflicting, figures
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.reflection import FigureShape, dotted, shape_at
from trnspec.output.exporters.exported import Export, ExportAssumption, ExportError, Reason, Used
from trnspec.quantities.quantity import Qualifier
from trnspec.quantities.units import UNITS, Dimension
from trnspec.text_table import escape

Number = int | float

HALF = "both directions are taken to carry the same, so one carries half"


def number(value: Fraction) -> Number:
    """The nearest JSON or YAML number; an integer stays an integer."""
    return value.numerator if value.denominator == 1 else float(value)


def in_unit(value: Fraction, unit: str) -> Number:
    """A value in base units as a number in a unit; rounded once."""
    return number(value / UNITS.unit(unit).factor)


class ExportLog:
    """The figures used and the assumptions made so far by the export of one document.

    Attributes:
        graph: The documents.
        node: The exported document.
        format: The name of the format, for messages.
        instead: The figures to use in place of unknown ones: a path of the same document by field of the export.
    """

    def __init__(self, graph: Graph, node: Node[Any], format: str, instead: Mapping[str, str] | None = None) -> None:
        self.graph = graph
        self.node = node
        self.format = format
        self.instead = dict(instead or {})
        self._replaced: set[str] = set()
        self._assumptions: dict[ExportAssumption, None] = {}
        self._used: dict[Used, None] = {}
        self._figures: dict[str, dict[str, Stated]] = {}

    def chip(self) -> tuple[int, Node[Chip]]:
        """The number of chips of the document, and the chip; :class:`ExportError` if it has none."""
        counted = chips(self.graph, self.node)
        if counted is None:
            raise self.refused("no-chips", "it has no chips; name a server or an UltraServer")
        return counted

    def find(self, node: Node[Any], path: str) -> Stated | None:
        """The figure at a dotted path of a document, or ``None``; it does not count as used."""
        if node.name not in self._figures:
            self._figures[node.name] = dict(figures(self.graph, node))
        return self._figures[node.name].get(path)

    def use(self, field: str, figure: Stated) -> Fraction:
        """The exact value of a figure in base units; notes and conflicts become assumptions."""
        self._used[Used(field, figure.value.text, figure.of, figure.at, figure.source_name, figure.as_of)] = None
        which = f"{figure.value.text} ({figure.of} {figure.at})"
        if figure.derived is not None:
            self.assume(field, f"{which} is not published; it is derived: {figure.derived}")
        if figure.note:
            self.assume(field, f"{which}: {' '.join(figure.note.split()).rstrip('.')}")
        if figure.value.qualifier is not Qualifier.EXACT:
            self.assume(field, f"{which} is used as an exact value, without its {figure.value.qualifier.value!r}")
        for other in figure.conflicting:
            if other.verdict == "unresolved":
                self.assume(field, f"{which}: {other.source} says {other.says}, and the conflict is unresolved")
        return figure.value.value

    def need(self, field: str, node: Node[Any], path: str, published: Sequence[str] = ()) -> Fraction:
        """The value of a figure that the format requires.

        Args:
            field: The field of the export.
            node: The document that states it.
            path: Its path in the document.
            published: The paths of figures of the document that can replace it.

        Raises:
            ExportError: The document does not state it; the message lists the claims and the published alternatives.
        """
        figure = self.find(node, path)
        if figure is None:
            return self.replace(field, node, (path,), published)
        return self.use(field, figure)

    def replace(
        self,
        field: str,
        node: Node[Any],
        paths: Sequence[str],
        published: Sequence[str] = (),
        dimension: Dimension | None = None,
    ) -> Fraction:
        """The value of the figure that the caller of the export chose in place of an unknown one; an assumption.

        Args:
            field: The field of the export.
            node: The document that would state the figure, and that states the chosen one.
            paths: The paths of the unknown figure; any one of several would do.
            published: The paths of figures of the document that can replace it.
            dimension: The dimension of the figure; by default that of the first path.

        Raises:
            ExportError: None is chosen; the message lists the claims and the published alternatives.
            UsageError: The document does not state the chosen figure, or it has another dimension.
        """
        chosen = self.instead.get(field)
        if chosen is None:
            raise self.unknown(field, node, *paths, published=published)
        figure = self.find(node, chosen)
        if figure is None:
            raise UsageError(f"--use {field}={chosen}: {node.name} has no known figure at {chosen}")
        wanted = dimension or _dimension(node, paths[0])
        if wanted not in (None, figure.value.dimension):
            raise UsageError(f"--use {field}={chosen}: {figure.value.text} is no {wanted.word}")
        self._replaced.add(field)
        unknown = " or ".join(paths)
        self.assume(field, f"{chosen} of {node.name} is used in place of {unknown}, which is not known")
        value = self.use(field, figure)
        if not (paths[0].endswith(".per_direction") and chosen.endswith(".both")):
            return value
        self.assume(field, HALF)
        return value / 2

    def assume(self, field: str, says: str) -> None:
        """Record an assumption: something that is not in the catalog."""
        self._assumptions[ExportAssumption(field, says)] = None

    def unknown(self, field: str, node: Node[Any], *paths: str, published: Sequence[str] = ()) -> ExportError:
        """The error for a figure that is not adopted, with its claims and the figures that can replace it.

        Any one of several paths would do.
        """
        claimed = [
            f"{r.says} ({r.source}, {r.verdict})"
            for at, values in conflicting(self.graph, node).items()
            if f"{dotted(at[1:])}.".startswith(tuple(f"{path}." for path in paths))
            for r in values
        ]
        claims = f"; claims: {', '.join(claimed)}" if claimed else ""
        known = {path: self.find(node, path) for path in published}
        offers = [
            f"--use '{field}={path}' takes the published {figure.value.text}"
            for path, figure in known.items()
            if figure
        ]
        hint = "; ".join([*offers, "an overlay can supply it (--overlay FILE)"])
        return self.refused(
            "unknown-figure", f"{field} needs {' or '.join(paths)} of {node.name}, which is not known{claims}; {hint}"
        )

    def refused(self, reason: Reason, message: str) -> ExportError:
        """The error with a reason."""
        return ExportError(reason, f"{self.node.name} cannot be exported to {self.format}: {message}")

    def export(self, text: str) -> Export:
        """The finished export.

        Raises:
            UsageError: A figure was to be replaced that is known, or that the format does not need.
        """
        unused = sorted(self.instead.keys() - self._replaced)
        if unused:
            lacking = ", ".join(sorted(self._replaced)) or "none"
            raise UsageError(
                f"--use {unused[0]}={self.instead[unused[0]]}: the export of {self.node.name} to {self.format} lacks no"
                f" figure for {unused[0]}; fields that lack one: {lacking}"
            )
        return Export(text, self.assumptions, self.used)

    @property
    def assumptions(self) -> tuple[ExportAssumption, ...]:
        """The assumptions so far, in order, each once."""
        return tuple(self._assumptions)

    @property
    def used(self) -> tuple[Used, ...]:
        """The figures used so far, in order, each once."""
        return tuple(self._used)

    @property
    def notes(self) -> list[str]:
        """The assumptions and the figures so far, a line each."""
        return [*(f"Assumption: {a}" for a in self.assumptions), *(f"Figure: {u}" for u in self.used)]

    def comments(self, head: str) -> list[str]:
        """The lines of comment at the top of a YAML file: the head, the document, the assumptions and the figures."""
        lines = [
            f"# {escape(line)}" for line in (head, f"{self.node.name}: {self.node.metadata.title}", "", "Assumptions:")
        ]
        lines += [f"# - {escape(str(a))}" for a in self.assumptions]
        return [*lines, "#", "# Figures:", *(f"# - {escape(str(u))}" for u in self.used), ""]


def _dimension(node: Node[Any], path: str) -> Dimension | None:
    shape = shape_at(type(node.spec), tuple(path.split(".")))
    return shape.dimension if isinstance(shape, FigureShape) else None
