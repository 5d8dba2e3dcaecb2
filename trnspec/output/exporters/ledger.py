"""Keeping account: every figure that goes into an export, and everything that had to be assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.graph.composition import chips
from trnspec.graph.provenance import Stated, conflicting, figures
from trnspec.model.reflection import dotted
from trnspec.output.exporters.exported import Assumption, Export, ExportError, Used
from trnspec.quantities.quantity import Qualifier
from trnspec.quantities.units import UNITS

if TYPE_CHECKING:
    from fractions import Fraction

    from trnspec.graph.graph import Graph
    from trnspec.model.chip import Chip
    from trnspec.model.document import Node
    from trnspec.output.exporters.exported import Reason

Number = int | float


def number(value: Fraction) -> Number:
    """The nearest number that JSON and YAML can hold; a whole one stays whole."""
    return value.numerator if value.denominator == 1 else float(value)


def in_unit(value: Fraction, unit: str) -> Number:
    """A value in base units as a number in a unit; the conversion is exact up to the last rounding."""
    return number(value / UNITS.unit(unit).factor)


class Ledger:
    """What one export of one document has used and assumed so far.

    Attributes:
        graph: Where the documents are.
        node: The document that is exported.
        format: The form it is exported to, for messages.
    """

    def __init__(self, graph: Graph, node: Node[Any], format: str) -> None:
        self.graph = graph
        self.node = node
        self.format = format
        self._assumptions: dict[Assumption, None] = {}
        self._used: dict[Used, None] = {}
        self._figures: dict[str, dict[str, Stated]] = {}

    def chip(self) -> tuple[int, Node[Chip]]:
        """How many chips the document has, and which; :class:`ExportError` where it has none."""
        found = chips(self.graph, self.node)
        if found is None:
            raise self.refused("no-chips", "it has no chips; name a server or an UltraServer")
        return found

    def find(self, node: Node[Any], path: str) -> Stated | None:
        """The figure at a dotted path of a document, or ``None``; looking is not using."""
        if node.name not in self._figures:
            self._figures[node.name] = dict(figures(self.graph, node))
        return self._figures[node.name].get(path)

    def use(self, field: str, figure: Stated) -> Fraction:
        """The value of a figure in base units, exact; what a reader should know of it is told as an assumption."""
        self._used[Used(field, figure.value.text, figure.of, figure.at, figure.source_name, figure.as_of)] = None
        which = f"{figure.value.text} ({figure.of} {figure.at})"
        if figure.derived is not None:
            self.assume(field, f"{which} is printed by nobody; it is derived: {figure.derived}")
        if figure.note:
            self.assume(field, f"{which}: {' '.join(figure.note.split()).rstrip('.')}")
        if figure.value.qualifier is not Qualifier.EXACT:
            self.assume(field, f"{which} is taken as the value itself, without its {figure.value.qualifier.value!r}")
        for rival in figure.conflicting:
            if rival.verdict == "unresolved":
                self.assume(field, f"{which}: {rival.source} says {rival.says}, and nobody can tell yet who is right")
        return figure.value.value

    def need(self, field: str, node: Node[Any], path: str) -> Fraction:
        """The value of a figure that the form cannot do without.

        Raises:
            ExportError: The document states none; the message says what others claim.
        """
        figure = self.find(node, path)
        if figure is None:
            raise self.unknown(field, node, path)
        return self.use(field, figure)

    def assume(self, field: str, says: str) -> None:
        """Note something that the catalog does not say."""
        self._assumptions[Assumption(field, says)] = None

    def unknown(self, field: str, node: Node[Any], path: str) -> ExportError:
        """The refusal for a figure that is not adopted, with what is claimed of it."""
        claimed = [
            f"{r.says} ({r.source}, {r.verdict})"
            for at, found in conflicting(self.graph, node).items()
            if f"{dotted(at[1:])}.".startswith(f"{path}.")
            for r in found
        ]
        told = f"; claimed are {', '.join(claimed)}" if claimed else ""
        hint = "an overlay can give it (--overlay FILE)"
        return self.refused("unknown-figure", f"{field} needs {path} of {node.name}, which is not known{told}; {hint}")

    def refused(self, reason: Reason, message: str) -> ExportError:
        """The refusal for a reason."""
        return ExportError(reason, f"{self.node.name} cannot be exported to {self.format}: {message}")

    def export(self, text: str) -> Export:
        """The finished export."""
        return Export(text, self.assumptions, self.used)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What was assumed so far, in order, each once."""
        return tuple(self._assumptions)

    @property
    def used(self) -> tuple[Used, ...]:
        """The figures used so far, in order, each once."""
        return tuple(self._used)
