"""Why two figures disagree: the usual explanations, each tried by arithmetic.

A hypothesis is a sentence and a test.  It is printed only when it closes the gap: when the figure, changed as the
hypothesis says, agrees with what every broken relation expects of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.graph import Graph, figure_at
from trnspec.model.figure import Figure
from trnspec.model.shape import dotted
from trnspec.quantity import Interval, Quantity, parse, render
from trnspec.errors import QuantityError
from trnspec.rules.blame import Suspect
from trnspec.rules.relations import Relation, Site
from trnspec.source import Path
from trnspec.units import UNITS, Unit


@frozen
class Explanation:
    """A hypothesis that the arithmetic supports.

    Attributes:
        id: One word for programs, ``decimal-unit``.
        sentence: For people, beginning in lower case.
    """

    id: str
    sentence: str


def expected(suspect: Suspect) -> list[Interval]:
    """What each broken relation expects of the suspect, in base units."""
    return [_expected(relation, suspect.site) for relation in suspect.failing]


def _expected(relation: Relation, site: Site) -> Interval:
    if site.key == relation.total.key:
        return relation.expected
    if site.key == relation.part.key:
        return relation.total.interval.scaled(Fraction(1, relation.times))
    own = site.value
    assert isinstance(own, int)  # what is neither total nor part is a count
    return relation.total.interval.ratio(relation.part.interval.scaled(Fraction(relation.times, own)))


def explain(suspect: Suspect, graph: Graph) -> list[Explanation]:
    """The explanations that close the gap, the most telling first; empty when none does."""
    value = suspect.site.value
    if isinstance(value, int):
        return list(_count(suspect))
    found: list[Explanation] = []
    assert value is not None
    wanted = expected(suspect)
    for hypothesis in _HYPOTHESES:
        found += hypothesis(suspect, value.value, wanted, graph)
    return list({e.sentence: e for e in found}.values())


def _closes(interval: Interval, wanted: list[Interval]) -> bool:
    return all(interval.overlaps(w) for w in wanted)


def _with_unit(quantity: Quantity, unit: Unit) -> Interval:
    return quantity.interval.scaled(unit.factor / quantity.unit.factor)


def _zeros(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    if quantity.min_digits < quantity.digits and _closes(quantity.loose, wanted):
        yield Explanation(
            "rounding", f"rounding, if only {quantity.min_digits} digits of {quantity} are significant"
        )


def _truncation(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    step = quantity.ulp * quantity.unit.factor
    if _closes(Interval(quantity.value, quantity.value + step), wanted):
        yield Explanation("truncation", f"truncation: the digits after {quantity} were cut off, not rounded")


def _chained(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    """The total of rounded totals: 4 x 10.7 where 10.7 was itself rounded."""
    for relation in suspect.failing:
        if suspect.site.key != relation.total.key or len(relation.counts) < 2:  # noqa: PLR2004  # two levels of parts
            continue
        outer, inner = relation.counts[0].value, relation.times
        part = relation.part.value
        assert isinstance(outer, int)
        if not isinstance(part, Figure):
            continue
        group = part.value.value * (inner // outer)
        for digits in range(1, 6):
            text = render(group, quantity.unit, digits)
            rounded = parse(text)
            if rounded.value != group and (rounded.value * outer) in quantity.interval:
                yield Explanation(
                    "chained-rounding", f"chained rounding: {outer} x {text}, which was rounded before it was multiplied"
                )
                return


def _units(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    for unit in UNITS:
        if unit.dimension is not quantity.dimension or unit.symbol == quantity.unit.symbol:
            continue
        if not _closes(_with_unit(quantity, unit), wanted):
            continue
        number = quantity.text[: -len(quantity.unit.symbol)].strip() if quantity.text.endswith(
            quantity.unit.symbol
        ) else f"{float(quantity.number):g}"
        ratio = unit.factor / quantity.unit.factor
        meant = f"{number} {unit.symbol} was meant"
        if _binary(unit) != _binary(quantity.unit):
            yield Explanation("decimal-unit", f"a decimal for a binary unit or the reverse: {meant}")
        elif ratio in (8, Fraction(1, 8)):
            yield Explanation("bit-byte", f"bits for bytes or the reverse: {meant}")
        else:
            yield Explanation("prefix", f"a wrong prefix: {meant}")


def _binary(unit: Unit) -> bool:
    return "i" in unit.symbol[:2]


def _direction(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    if suspect.site.path[-1] not in ("bandwidth", "per_direction", "both"):
        return
    if _closes(quantity.interval.scaled(2), wanted):
        yield Explanation("one-direction", f"one direction for both: 2 x {quantity} closes the gap")
    if _closes(quantity.interval.scaled(Fraction(1, 2)), wanted):
        yield Explanation("both-directions", f"both directions for one: half of {quantity} closes the gap")


def _part(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    for relation in suspect.failing:
        if relation.times == 1:
            continue
        if suspect.site.key == relation.total.key and quantity.interval.overlaps(relation.part.interval):
            yield Explanation("part-for-whole", f"the figure of one part stands for the whole: {relation.part.value}")
        if suspect.site.key == relation.part.key and quantity.interval.overlaps(relation.total.interval):
            yield Explanation("whole-for-part", f"the total stands for one part: {relation.total.value}")


def _wrong_count(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    for relation in suspect.failing:
        part = relation.part.interval
        if suspect.site.key != relation.total.key or part.high in (None, 0) or part.low == 0:
            continue
        ratio = quantity.interval.ratio(part)
        assert ratio.high is not None
        low, high = -(-ratio.low.numerator // ratio.low.denominator), ratio.high.numerator // ratio.high.denominator
        if low == high and low > 1 and low != relation.times:
            yield Explanation(
                "wrong-count", f"a wrong count: {quantity} is {low} x {relation.part.value}, not {relation.times} x"
            )


def _other_figure(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    """The figure of another row, kind of rate, older claim or generation stands here."""
    for relation in suspect.failing:
        on_total = suspect.site.key == relation.total.key
        home = relation.part if on_total else suspect.site
        times = relation.times if on_total else 1
        for id, words, figure in _others(home, graph):
            if figure.dimension is quantity.dimension and figure.interval.scaled(times).overlaps(quantity.interval):
                formula = f"{times} x {figure}" if times > 1 else str(figure)
                yield Explanation(id, f"{words}: {formula}")


def _others(site: Site, graph: Graph) -> Iterator[tuple[str, str, Quantity]]:
    for path, figure in graph.figures(site.node).items():
        if path != site.path and path[:-2] == site.path[:-2] and path[1] == site.path[1]:
            other_kind = path[-2] != site.path[-2]
            id = "dense-sparse" if other_kind else "swapped-row"
            words = "the sparse and the dense rate are swapped" if other_kind else f"the figure of {path[-1]} stands here"
            yield id, words, figure.value
    for index, claim in enumerate(site.node.claims):
        if claim_says(site.node, index, site.path) is not None:
            quantity = claim_says(site.node, index, site.path)
            assert quantity is not None
            yield "older-claim", f"what {claim.source} says of {dotted(site.path[1:])} ({claim.verdict or 'agrees'})", quantity
    for other in graph.of(type(site.node.spec)):
        found = figure_at(other, site.path)
        if other is not site.node and isinstance(found, Figure):
            yield "neighbour", f"the figure of {other.name}", found.value


def claim_says(node: Any, index: int, path: Path) -> Quantity | None:
    """The quantity that the claim at ``index`` gives for a path, or ``None``."""
    from trnspec.model.shape import spread

    claim = node.claims[index]
    try:
        if path in spread(claim.at) and isinstance(claim.says, str):
            return parse(claim.says)
    except (ValueError, QuantityError):
        return None
    return None


def _slip(suspect: Suspect, quantity: Quantity, wanted: list[Interval], graph: Graph) -> Iterator[Explanation]:
    """One digit differs from what is expected, or two neighbours are swapped."""
    target = wanted[0]
    if target.high is None:
        return
    middle = (target.low + target.high) / 2 / quantity.unit.factor / quantity.ulp
    printed = str(int(quantity.number / quantity.ulp))
    meant = str(int(middle + Fraction(1, 2)))
    if len(printed) != len(meant) or printed == meant:
        return
    differing = [i for i, (a, b) in enumerate(zip(printed, meant, strict=True)) if a != b]
    if not _closes(Interval.point(Fraction(int(meant)) * quantity.ulp * quantity.unit.factor), wanted):
        return
    text = render(Fraction(int(meant)) * quantity.ulp * quantity.unit.factor, quantity.unit, len(meant))
    if len(differing) == 1:
        yield Explanation("one-digit", f"one digit differs from {text}")
    elif len(differing) == 2 and differing[1] == differing[0] + 1 and sorted(printed) == sorted(meant):  # noqa: PLR2004
        yield Explanation("swapped-digits", f"two digits are swapped: {text} was meant")


Hypothesis = Callable[[Suspect, Quantity, list[Interval], Graph], Iterator[Explanation]]
_HYPOTHESES: tuple[Hypothesis, ...] = (
    _zeros,
    _truncation,
    _chained,
    _units,
    _direction,
    _part,
    _other_figure,
    _wrong_count,
    _slip,
)


def _count(suspect: Suspect) -> Iterator[Explanation]:
    """The whole number that every broken relation would accept instead, if there is one."""
    low = max(-(-w.low.numerator // w.low.denominator) for w in expected(suspect))
    highs = [w.high.numerator // w.high.denominator for w in expected(suspect) if w.high is not None]
    if highs and low == min(highs) and low != suspect.site.value:
        yield Explanation("wrong-count", f"a wrong count: {low} closes every gap")


def sentence(found: list[Explanation]) -> str:
    """The hint: the likely cause, the fact that several fit, or the fact that none does."""
    if not found:
        return "none of the usual causes closes the gap"
    if len(found) == 1:
        return f"likely cause: {found[0].sentence}"
    return "several causes would close the gap: " + "; or ".join(e.sentence for e in found)
