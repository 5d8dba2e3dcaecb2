"""A figure: a printed quantity with its source."""

from __future__ import annotations

from typing import ClassVar, cast

from attrs import evolve, field, frozen

from trnspec.model.annotations import Text
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.quantities.amount import Amount
from trnspec.quantities.arithmetic import Measured
from trnspec.quantities.formula import FormulaError, evaluate
from trnspec.quantities.quantity import Interval, Qualifier, Quantity
from trnspec.short_repr import ShortRepr


@frozen(repr=False)
class ConflictingValue(ShortRepr):
    """The value that another source gives for a figure.

    Attributes:
        says: As printed.
        source: The name of the source.
        as_of: Its date.
        where: The location in it.
        verdict: The verdict on it.
        reason: The reason for the verdict.
    """

    says: str
    source: str
    as_of: str
    where: str = ""
    verdict: str = "agrees"
    reason: str = ""


# mypy assumes that attrs generates the comparisons unless configured otherwise.
@frozen(kw_only=True, order=False)
class Figure(Measured):
    """A quantity as printed, with its provenance.

    In YAML a figure is a text, ``820 GB/s``, or a mapping if it has a source of its own, is derived or needs a note.
    In Python ``float(figure)`` is in base units (B, B/s, FLOPS, s), arithmetic gives amounts, and comparisons accept
    texts: ``figure > "3 TB/s"``. ``figure == other`` compares all attributes; ``figure.amount == other.amount`` compares
    values. ``format(figure, ".2f")`` applies the format to the number and keeps the unit.

    The figures of a catalog are of the subclass :class:`~trnspec.graph.provenance.Stated`, in which the properties
    from ``of`` to ``conflicting`` have values. Elsewhere they are empty.

    Attributes:
        value: The quantity as printed, with its unit. Example: 820 GB/s
        source: Its source, if it is not the source of the document. Example: neuron-trainium-2024-02
        where: The location in the source. Example: line 24
        derived: The formula of a figure that no source prints: it is computed and never shown as published.
        check: A formula of other figures that gives this printed one. Example: spec.network.bandwidth / 64
        note: A remark for readers of the figure.
    """

    SOURCED: ClassVar[bool] = False

    value: Quantity
    source: Ref[Source] | None = None
    where: Text | None = None
    derived: Text | None = None
    check: Text | None = None
    note: Text | None = None
    _computed: Interval | None = field(init=False, eq=False, repr=False)

    of = ""
    """The name of the document that states it."""
    at = ""
    """Its path in the document: ``peak.dense.bf16``."""
    scope = ""
    """The unit of hardware and the conditions it applies to: ``per chip, dense``."""
    source_name = ""
    """The name of its source; empty for a derived figure and for one without source."""
    cited = ""
    """The name of its source, marked if that has no address."""
    source_title = ""
    """The title of its source."""
    as_of = ""
    """The date of its source."""
    conflicting = cast("tuple[ConflictingValue, ...]", ())
    """The values that other sources give."""

    @property
    def amount(self) -> Amount:
        """The exact value with its dimension and interval."""
        return evolve(Amount.of(self.value), interval=self.interval)

    def __float__(self) -> float:
        """The value in base units."""
        return float(self.value.value)

    @property
    def interval(self) -> Interval:
        """The values that the figure may have, in base units.

        Of a printed figure those that are printed with these digits; of a derived one those that its formula gives for
        the digits of its operands (interval arithmetic), however many digits it is printed with.
        """
        return self.value.interval if self._computed is None else self._computed

    @_computed.default
    def _of_formula(self) -> Interval | None:
        """The values that the formula gives; ``None`` where the digits count."""
        # A bound or an approximate value is stated as such, whatever its formula gives.
        if self.derived is None or self.value.qualifier is not Qualifier.EXACT:
            return None
        try:
            inputs = evaluate(self.derived, self.value.table)
        except FormulaError:
            return None
        if not inputs.overlaps(self.value.interval):
            return None
        # The value itself is rounded, and a formula of counts is exact.
        high = None if inputs.high is None else max(inputs.high, self.value.value)
        return Interval(min(inputs.low, self.value.value), high)

    def __str__(self) -> str:
        return self.value.text

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __repr__(self) -> str:
        return f"<Figure {self.value}>"
