"""Bounds of power: what the types of one power, the chips of a system, and their rates say about it."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.checks.reconcile.quoted import QuoteConflict, blamed, half_precision
from trnspec.graph.composition import chips
from trnspec.graph.graph import cached_by_graph
from trnspec.graph.quotes import Draw, draws
from trnspec.model.chip import Chip
from trnspec.model.document import Node  # read at run time
from trnspec.model.quotes import Power

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.checks.reconcile.quoted import Range
    from trnspec.graph.graph import Graph
    from trnspec.model.quotes import PowerType

OF_MAXIMUM: dict[PowerType, Range] = {
    "maximum": (1.0, 1.0),
    "tdp": (0.5, 1.02),
    "configurable-tdp": (0.25, 1.25),
    "typical": (0.2, 1.0),
    "measured": (0.05, 1.1),
    "nameplate": (1.0, 3.0),
}
"""Powers by type, as a share of the maximum of the same chip or system. Limits can be set to a fourth; power supplies are
redundant, so their sum may be three times what is drawn."""

OF_CHIPS: dict[str, Range] = {"system": (1.25, 2.6), "rack": (1.1, 2.6)}
"""Maximum power of a system over the design power of its chips, by scope: 1.59 to 2.03 for servers and 1.41 for racks
that are known."""

OF_PACKAGE = ("package", "board")
"""The scopes of a chip; the others are those of a system."""

PER_WATT: Range = (0.3, 4.0)
"""Dense 16-bit rate of a chip over its design power in TFLOPS/W: 0.42 for V100 to 2.27 for B300."""

DIGITS = 1.02
"""Ratio of two powers that should be equal: of two and more digits."""


@frozen(eq=False)
class KnownPower:
    """A power with what determines it.

    Attributes:
        draw: The power.
        subject: The chip or system.
        count: Its number of chips.
        chip: The chip.
        scope: What is included.
        value: In W.
    """

    draw: Draw
    subject: Node[Any]
    count: int
    chip: Node[Chip]
    scope: str
    value: float

    @property
    def document(self) -> Node[Any]:
        """The document that states it."""
        return self.draw.document

    def __str__(self) -> str:
        return f"{self.draw.figure.value} {self.draw.type} of {self.subject.name}"


PowerConflict = QuoteConflict[KnownPower]


@cached_by_graph
def power_conflicts(graph: Graph) -> tuple[PowerConflict, ...]:
    """One conflict for each power to blame: first the one that contradicts most others. Several rules use them."""
    known = tuple(_known(graph))
    return tuple(_blamed([*_types(known), *_systems(known), *_rates(known)]))


def _known(graph: Graph) -> Iterator[KnownPower]:
    subjects: dict[str, Node[Any]] = {n.name: n for n in graph.of(Chip) if n.spec.power is not None}
    for document in graph.of(Power):
        subject = graph.find(document.spec.of)
        if subject is not None:
            subjects[subject.name] = subject
    for subject in subjects.values():
        counted = chips(graph, subject)
        if counted is None:
            continue
        is_chip = isinstance(subject.spec, Chip)
        for draw in draws(graph, subject):
            value = float(draw.figure.value.value)
            scope = getattr(draw.document.spec, "scope", None)
            if scope is None or (scope in OF_PACKAGE) is not is_chip:  # TRN801 reports a scope that does not fit
                scope = "package" if is_chip else "system"
            if value > 0:
                yield KnownPower(draw, subject, counted[0], counted[1], scope, value)


def _types(known: tuple[KnownPower, ...]) -> Iterator[PowerConflict]:
    """Two powers of one chip or system, of one scope."""
    for one, other in combinations(known, 2):
        if one.subject is not other.subject or one.scope != other.scope:
            continue
        is_same = one.draw.type == other.draw.type
        spec, second = one.document.spec, other.document.spec
        if is_same and (_conditions(spec) != _conditions(second) or one.draw.type in ("typical", "measured")):
            continue  # of two loads, limits or regions
        low, high = 1.0, 1.0
        if not is_same:
            (less, more), (small, large) = OF_MAXIMUM[one.draw.type], OF_MAXIMUM[other.draw.type]
            low, high = less / large, more / small
        yield from _outside(
            "TRN806" if is_same else "TRN804", one, other, (low, high), "type" if not is_same else "digits"
        )


def _conditions(spec: Any) -> tuple[str | None, str | None]:
    return getattr(spec, "region", None), getattr(spec, "load", None)


_BOUNDING = ("tdp", "maximum", "nameplate")


def _systems(known: tuple[KnownPower, ...]) -> Iterator[PowerConflict]:
    """The power of a system against that of its chips: it must exceed their sum."""
    of_chips = {k.subject.name: k for k in known if isinstance(k.subject.spec, Chip) and k.draw.type in _BOUNDING[:2]}
    for one in known:
        chip = of_chips.get(one.chip.name)
        if chip is None or isinstance(one.subject.spec, Chip):
            continue
        low, high = OF_CHIPS[one.scope]
        if one.draw.type not in _BOUNDING:
            low = 0.1
        elif one.draw.type == "nameplate":
            high *= OF_MAXIMUM["nameplate"][1]
        yield from _outside("TRN813", one, chip, (low * one.count, high * one.count), f"{one.count} chips and the rest")


def _outside(code: str, one: KnownPower, other: KnownPower, ratio: Range, why: str) -> Iterator[PowerConflict]:
    low, high = ratio[0] * other.value / DIGITS, ratio[1] * other.value * DIGITS
    if not low <= one.value <= high:
        yield PowerConflict(code, one, other, (low, high), why)


def _rates(known: tuple[KnownPower, ...]) -> Iterator[PowerConflict]:
    """Powers of chips per rate that no known chip has."""
    for one in known:
        tera = half_precision(one.chip) / 1e12
        if not isinstance(one.subject.spec, Chip) or not tera:
            continue
        low, high = tera / PER_WATT[1], tera / PER_WATT[0]
        if one.draw.type not in _BOUNDING:
            low *= OF_MAXIMUM[one.draw.type][0]
        if not low <= one.value <= high:
            yield PowerConflict("TRN805", one, None, (low, high), f"{tera:,.4g} TFLOPS of 16-bit numbers")


def _blamed(conflicts: list[PowerConflict]) -> Iterator[PowerConflict]:
    """One conflict for each power to blame; of two, the one that fewer claims agree with, then that of a system."""

    def wrong(most: list[KnownPower]) -> KnownPower:
        return min(most, key=lambda k: (_supported(k), isinstance(k.subject.spec, Chip), k.document.name))

    def narrowest(one: PowerConflict) -> tuple[float, bool, str]:
        low, high = one.bounds or (1.0, 1.0)
        return high / low, one.other is None, one.code

    yield from blamed(conflicts, wrong, narrowest)


def _supported(known: KnownPower) -> int:
    return sum(c.verdict in ("agrees", "rounded") for c in known.draw.figure.conflicting)
