"""Common explanations of a disagreement between two figures, each checked by arithmetic.

A hypothesis is a sentence and a test. It is reported only if it closes the gap: the figure, changed as the hypothesis
states, agrees with the value that the failing relations expect.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from math import ceil, floor
from typing import Any

from attrs import evolve, frozen

from trnspec.checks.reconcile.lookalikes import is_related, lookalikes
from trnspec.checks.reconcile.relations import failing
from trnspec.checks.reconcile.sites import PartsTerm, Relation, Site
from trnspec.checks.reconcile.suspects import Suspect
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.model.document import Node
from trnspec.plugins.failures import call_seconds, contained
from trnspec.quantities.quantity import Interval, Qualifier, Quantity, parse, render
from trnspec.quantities.units import Dimension, Unit


@frozen
class Explanation:
    """A hypothesis that the arithmetic supports.

    Attributes:
        id: An identifier, such as ``decimal-unit``.
        sentence: The explanation in words; it begins in lower case.
    """

    id: str
    sentence: str


_EXTRA: ContextVar[tuple[Callable[[Mismatch], Iterator[Explanation]], ...]] = ContextVar(
    "trnspec_hypotheses", default=()
)


@frozen
class Mismatch:
    """A figure that disagrees, and the values that it should agree with.

    Attributes:
        site: The path of the figure.
        quantity: Its value.
        expected: The interval that each failing relation expects, in base units.
        terms: The terms of the sum, if the figure is a total.
        shares: The totals that the figure is a part of, each with its number of parts.
        graph: The graph, for figures of other documents.
    """

    site: Site
    quantity: Quantity
    expected: tuple[Interval, ...]
    terms: tuple[PartsTerm, ...]
    shares: tuple[tuple[Fraction, Quantity], ...]
    graph: Graph

    def consistent_with(self, interval: Interval) -> bool:
        """True if a figure with this interval would agree with all expected values."""
        return bool(self.expected) and all(interval.overlaps(w) for w in self.expected)

    def fits(self, interval: Interval) -> bool:
        """True if it closes the gap, and does so by more than the margins of rounding of two figures.

        Coarse figures overlap often by chance: 18 GB and 16 GiB do, although neither is a rounding of the other.
        """
        return self.consistent_with(interval) and any(
            w.low == 0 or w.high is None or w.middle in interval or interval.middle in w for w in self.expected
        )

    def cut_from(self, interval: Interval) -> bool:
        """True if it closes the gap, and contains an expected value and not only its margin: 10 is not cut from 20."""
        return self.consistent_with(interval) and any(w.middle in interval for w in self.expected)

    def times(self, factor: Fraction) -> Interval:
        """The figure times a factor; a part that loses no digit is as coarse as the figure: 79 from 790."""
        quantity, printed = self.quantity, self.printed
        step = quantity.ulp * quantity.unit.factor
        value = quantity.value * factor
        if factor > 1 or printed.high is None or (value / step).denominator != 1:
            return printed.scaled(factor)
        half = (printed.high - printed.low) / 2
        return Interval(max(value - half, Fraction(0)), value + half)

    @property
    def printed(self) -> Interval:
        """The numbers that would be printed with these digits; a bound such as "up to 4.7" is read as 4.7.

        The interval of such a figure begins at 0 or has no end, and so does that of "~1": scaled by a large enough
        factor it would agree with every expected value.
        """
        quantity = self.quantity
        own = quantity.interval
        if own.high is None or own.low == 0:
            half = quantity.ulp * quantity.unit.factor / 2
            own = Interval(max(quantity.value - half, Fraction(0)), quantity.value + half)
        return own

    def looks_like(self, interval: Interval) -> bool:
        """True if the printed digits can represent one of these numbers."""
        return self.printed.overlaps(interval)


def explain(suspect: Suspect, graph: Graph) -> list[Explanation]:
    """The explanations that close the gap, the most specific first; empty if none does."""
    value = suspect.site.value
    found = list(_reference(suspect, graph))
    if isinstance(value, int):
        return [*found, *_count(suspect, value)]
    assert value is not None  # a suspect is a site of a relation
    return [*found, *explain_case(case_of(suspect.site, value, suspect.expected, suspect.failing, graph))]


def case_of(
    site: Site, quantity: Quantity, wanted: Iterable[Interval], relations: Iterable[Relation], graph: Graph
) -> Mismatch:
    """The case of a figure, with the parts and the totals that it has in some relations."""
    terms: list[PartsTerm] = []
    shares: list[tuple[Fraction, Quantity]] = []
    for relation in relations:
        total = relation.total.value
        if site.key == relation.total.key:
            terms += relation.terms if len(relation.terms) == 1 else ()
        elif isinstance(total, Quantity):
            shares += [(term.times, total) for term in relation.terms if term.part.key == site.key]
    return Mismatch(site, quantity, tuple(wanted), tuple(terms), tuple(shares), graph)


def explain_case(case: Mismatch) -> list[Explanation]:
    """Every hypothesis that closes the gap of a case, each sentence once.

    If rounding alone explains the difference there is no gap, and only truncation is evaluated.
    """
    if not case.expected:
        return []
    gap = not case.consistent_with(case.quantity.interval)
    explanations = [
        e for hypothesis in (_HYPOTHESES if gap else (_truncation, _truncated_zeros)) for e in hypothesis(case)
    ]
    if gap:
        explanations += [e for hypothesis in _EXTRA.get() for e in _guarded(hypothesis, case)]
    return list({e.sentence: e for e in explanations}.values())


@contextmanager
def extra_hypotheses(hypotheses: tuple[Callable[[Mismatch], Iterator[Explanation]], ...]) -> Iterator[None]:
    """A context in which the hypotheses of plugins are evaluated after the built-in ones."""
    token = _EXTRA.set(hypotheses)
    try:
        yield
    finally:
        _EXTRA.reset(token)


def _guarded(hypothesis: Callable[[Mismatch], Iterator[Explanation]], case: Mismatch) -> list[Explanation]:
    try:
        with contained(call_seconds()):
            return list(hypothesis(case))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # an exception in a plugin must not hide the finding
        name = f"{hypothesis.__module__}.{getattr(hypothesis, '__qualname__', hypothesis)}"
        return [Explanation("failed", f"unknown; the hypothesis {name} failed: {type(error).__name__}: {error}")]


def _zeros(case: Mismatch) -> Iterator[Explanation]:
    quantity = case.quantity
    loose = quantity.loose
    if quantity.min_digits == 1 and loose.high is not None and str(quantity.number.numerator).rstrip("0") == "1":
        # Numbers from 50 to 95 have one digit, too, and are not rounded to 100.
        loose = Interval(max(loose.low, quantity.value * Fraction(19, 20)), loose.high)
    if quantity.min_digits < quantity.digits and case.consistent_with(loose):
        count = quantity.min_digits
        digits, verb = ("1 digit", "is") if count == 1 else (f"{count} digits", "are")
        yield Explanation("rounding", f"rounding, if only {digits} of {quantity} {verb} significant")
    elif case.expected and all(quantity.interval.gap(w) == 0 for w in case.expected):
        yield Explanation("rounding", f"rounding: the interval of {quantity} begins where the expected one ends")


def _truncation(case: Mismatch) -> Iterator[Explanation]:
    quantity = case.quantity
    step = quantity.ulp * quantity.unit.factor
    if any(w.middle < quantity.value + step / 2 for w in case.expected):
        return  # rounding would print the same, or less
    cut = _cut_off(quantity, step)
    if case.consistent_with(cut) if quantity.digits > 1 else case.cut_from(cut):
        yield Explanation("truncation", f"truncation: digits after {quantity} were cut off, not rounded")


def _truncated_zeros(case: Mismatch) -> Iterator[Explanation]:
    """The same hypothesis for zeros that may not be significant: less specific, because it is a wide interval."""
    quantity = case.quantity
    step = quantity.ulp * quantity.unit.factor
    if _spelled(quantity.unit)[1]:
        return  # capacities in binary units are not rounded
    if quantity.min_digits < quantity.digits and not case.consistent_with(quantity.loose):
        if any(_truncation(case)):
            return
        step *= 10 ** (quantity.digits - quantity.min_digits)
        if case.cut_from(_cut_off(quantity, step)):
            words = f"truncation to {quantity}: the digits after its first {quantity.min_digits} were cut off"
            yield Explanation("truncation", words)


def _cut_off(quantity: Quantity, step: Fraction) -> Interval:
    """The numbers that give this quantity when the digits below ``step`` are cut off."""
    return Interval(quantity.value, quantity.value + step)


def _alike(case: Mismatch) -> Iterator[tuple[PartsTerm, Quantity]]:
    """The terms that would close the gap, each with its part, if part and total have the same dimension."""
    for term in case.terms:
        part = term.part.value
        if (
            isinstance(part, Quantity)
            and part.dimension is case.quantity.dimension
            and case.consistent_with(term.interval)
        ):
            yield term, part


def _chained(case: Mismatch) -> Iterator[Explanation]:
    """The total was computed from rounded parts or groups: 4 x 10.7, where 10.7 was already rounded."""
    quantity = case.quantity
    if _spelled(quantity.unit)[1]:
        return  # capacities in binary units are not rounded
    for term, part in _alike(case):
        for outer, group in _groups(term, part):
            for digits in range(1, 6):
                rounded = parse(render(group, quantity.unit, digits), None, quantity.table)
                for cut, word in ((rounded, "rounded"), (_cut(group, rounded), "cut off")):
                    is_near = 0 < abs(cut.value - group) <= group * _ROUGH
                    if is_near and case.looks_like(Interval.point(cut.value * outer)):
                        sentence = f"chained rounding: {outer} x {cut}, which was {word} before it was multiplied"
                        yield Explanation("chained-rounding", sentence)
                        return


_ROUGH = Fraction(7, 100)
"""The most by which rounding changes a figure before it is multiplied: published are 10.7 cut to 10, but not 2.2 to 2."""


def _groups(term: PartsTerm, part: Quantity) -> Iterator[tuple[Fraction, Fraction]]:
    """The number of groups of parts and the value of one group, from the largest groups to single parts."""
    outer = term.factor
    for count in term.counts:
        value = count.value
        assert isinstance(value, int)  # a count is an integer
        outer *= value
        if outer != 1:
            yield outer, part.value * term.times / outer


def _cut(value: Fraction, like: Quantity) -> Quantity:
    """A value cut off, not rounded, at the last digit of a printed one."""
    step = like.ulp * 10 ** (like.digits - like.min_digits) * like.unit.factor
    return parse(render(value // step * step, like.unit, like.digits), None, like.table)


_THOUSANDS = re.compile(r"[^0-9]*[1-9][0-9]{0,2}\.[0-9]{3}(?![0-9])")


def _thousands(case: Mismatch) -> Iterator[Explanation]:
    """A point where the number has a comma: 1.299 TFLOPS for 1,299 TFLOPS."""
    meant = with_comma(case.quantity)
    if meant and case.consistent_with(case.printed.scaled(1000)):
        yield Explanation("thousands-point", f"a point for the comma of thousands: {meant} was meant")


def with_comma(quantity: Quantity) -> str:
    """A figure with a comma in place of a point before three digits: 1,299 for 1.299; empty if it has none."""
    return quantity.text.replace(".", ",", 1) if _THOUSANDS.match(quantity.text) else ""


def _binary(case: Mismatch) -> Iterator[Explanation]:
    """A capacity in binary units that was computed with powers of 1,000: 512,000 MiB for 524,288 MiB."""
    quantity, printed = case.quantity, case.printed
    if quantity.dimension is not Dimension.INFORMATION or not _spelled(quantity.unit)[1] or any(_units(case)):
        return
    for factor in (Fraction(1000), Fraction(1, 1000)) if quantity.value else ():
        if case.fits(printed.scaled(factor)):
            meant = render(quantity.value * factor, quantity.unit, quantity.digits)
            yield Explanation("prefix", f"a factor of 1,000: {meant} was meant")
    for power in (-3, -2, -1, 1, 2, 3):
        # Figures of few digits overlap by chance.
        if quantity.digits >= len("125") and case.cut_from(printed.scaled(Fraction(1024, 1000) ** power)):
            meant = render(case.expected[0].middle, quantity.unit, quantity.digits)
            yield Explanation("decimal-unit", f"powers of 1,000 for those of 1,024, or the reverse: {meant} was meant")
            return


def _units(case: Mismatch) -> Iterator[Explanation]:
    quantity = case.quantity
    if any(_thousands(case)) or not quantity.value:
        return  # the same digits with another prefix; 0 is 0 in each unit
    own = _spelled(quantity.unit)
    for unit in quantity.table:
        if unit.dimension is not quantity.dimension or unit == quantity.unit:
            continue
        meant_interval = case.printed.scaled(unit.factor / quantity.unit.factor)
        if not case.consistent_with(meant_interval):
            continue
        meant = f"{number(quantity)} {unit.symbol} was meant"
        letter, binary, root = _spelled(unit)
        if (letter, root) == (own[0], own[2]):
            # Decimal and binary units differ by a few percent, as coarse figures do by chance.
            if not case.fits(meant_interval):
                continue
            yield Explanation("decimal-unit", f"a decimal for a binary unit or the reverse: {meant}")
        elif (letter, binary) == own[:2]:
            yield Explanation("bit-byte", f"bits for bytes or the reverse: {meant}")
        elif root == own[2]:
            yield Explanation("prefix", f"a wrong unit prefix: {meant}")


def _spelled(unit: Unit) -> tuple[str, bool, str]:
    """The letter of the prefix, whether the prefix is binary, and the rest: ``("G", True, "B/s")``."""
    if unit.dimension not in (Dimension.INFORMATION, Dimension.BANDWIDTH):
        return unit.symbol, False, ""
    at = unit.symbol.find("bit" if "bit" in unit.symbol else "B")
    if at < 0:  # a unit of a plugin, without a known prefix
        return unit.symbol, False, ""
    prefix = unit.symbol[:at]
    return prefix[:1].upper(), prefix.endswith("i"), unit.symbol[at:]


def number(quantity: Quantity) -> str:
    """The text before the unit: ``~13,120`` of ``~13,120 GiB/sec``."""
    return quantity.text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ\u00b5\u03bc/").rstrip()


_TWO, _TEN = Fraction(2), Fraction(10)


def _point(case: Mismatch) -> Iterator[Explanation]:
    for factor, words in ((_TEN, "one place too far left"), (1 / _TEN, "one place too far right")):
        if case.consistent_with(case.times(factor)):
            yield Explanation("decimal-point", f"the decimal point is {words}, or a zero is missing or superfluous")


_DIRECTED = frozenset({"bandwidth", "per_direction", "both", "per_server", "rate"})


def _direction(case: Mismatch) -> Iterator[Explanation]:
    if not _DIRECTED.intersection(case.site.path) or "memory" in case.site.path:
        return
    if case.fits(case.times(_TWO)):
        yield Explanation("one-direction", f"one direction instead of both: 2 x {case.quantity} closes the gap")
    if case.fits(case.times(1 / _TWO)):
        yield Explanation("both-directions", f"both directions instead of one: half of {case.quantity} closes the gap")


def _part(case: Mismatch) -> Iterator[Explanation]:
    shares: set[Fraction] = set()
    for term, part in _alike(case):
        for share, group in _groups(term, part):
            # A copy has no more digits: 91.75 is not the figure of a part of 92.
            is_finer = case.quantity.digits > part.digits and case.quantity.value != group
            # One server of four is 16 of 64 chips: the same figure, from two relations.
            if share in shares or is_finer or not case.looks_like(part.interval.scaled(term.times / share)):
                continue
            shares.add(share)
            many = term.times / share
            words = f"one part, {part}" if group == part.value else f"one group, {many} x {part}"
            yield Explanation("part-for-whole", f"the figure of {words}, was used for the whole")
    for times, total in case.shares:
        if times == 1 or not case.consistent_with(total.interval.scaled(1 / times)):
            continue
        if case.looks_like(total.interval):
            yield Explanation("whole-for-part", f"the total, {total}, was used for one part")


def _wrong_count(case: Mismatch, *, near: bool = False) -> Iterator[Explanation]:
    """Another number of parts; ``near``: a count that is written by mistake, one more or less, twice or half as many."""
    quantity = case.quantity
    if any(_units(case)) or any(_point(case)):
        return  # a factor of 8 or 10 is an error of the unit or of the decimal point
    for term, part in _alike(case):
        high = quantity.interval.high
        # A total that is as coarse as its part is always a multiple of it.
        coarse = 2 if near else 4
        if part.value == 0 or not term.counts or high is None or coarse * (high - quantity.interval.low) > part.value:
            continue
        times = round(quantity.value / part.value)
        known = {1, term.times, *(term.times / share for share, _ in _groups(term, part))}
        is_near = times in _near(term)
        if (
            is_near is near
            and (is_near or term.times / 2 <= times <= term.times * 2)
            and times not in known
            and case.looks_like(Interval.point(part.value * times))
        ):
            yield Explanation("wrong-count", f"a wrong count: {quantity} is {times} x {part}, not {term.times} x")


def _near(term: PartsTerm) -> set[Fraction]:
    """The counts that are written by mistake: one more or less of any part, twice or half as many."""
    counts: set[Fraction] = set()
    for count in term.counts:
        value = count.value
        if isinstance(value, int):
            others = (value - 1, value + 1, 2 * value, 4 * value, Fraction(value, 2), Fraction(value, 4))
            counts |= {term.times / value * other for other in others if other > 0}
    return counts


def _copied(case: Mismatch, kind: str) -> Iterator[Explanation]:
    """The figure of another row, kind of rate, older claim or document was used, or one to compute the total from.

    Args:
        case: The figure.
        kind: ``own`` for such a figure, ``part`` for one of the parts; of a document of another family ``exact`` for one
            with the same digits, at least three, and ``distant`` for the others.
    """
    # The same digits explain more than digits that would be rounded to these.
    own = sorted(_others(case, case.site, Fraction(1)), key=lambda each: not each[1])
    heads = {e.sentence.partition(":")[0] for e, _ in own}
    found = [("own", e, same) for e, same in own]
    for term, _ in _alike(case):
        # The same row of the parts and of the totals is one explanation.
        for e, same in _others(case, term.part, term.times):
            if (head := e.sentence.partition(":")[0]) not in heads:
                heads.add(head)
                found.append(("part", e, same))
    for place, e, same in found:
        if e.id != "distant":
            yield from [e] if place == kind else ()
        elif kind == ("exact" if same and case.quantity.min_digits >= _BY_CHANCE else "distant"):
            yield evolve(e, id="neighbour")


_BY_CHANCE = 3
"""Digits from which two figures are seldom equal by chance."""


def _others(case: Mismatch, home: Site, times: Fraction) -> Iterator[tuple[Explanation, bool]]:
    """The figures that could have been used at a place, each with whether it has the same digits."""
    for other in lookalikes(home, case.site, case.graph):
        interval = other.quantity.interval.scaled(times)
        if other.quantity.dimension is not case.quantity.dimension or case.consistent_with(interval):
            continue
        value = other.quantity.value * times
        if case.looks_like(Interval.point(value)):
            formula = f"{times} x {other.quantity}" if times != 1 else str(other.quantity)
            yield Explanation(other.id, f"{other.words}: {formula}"), value == case.quantity.value


def _doubled(case: Mismatch) -> Iterator[Explanation]:
    quantity = case.quantity
    if any(_direction(case)) or quantity.qualifier is not Qualifier.EXACT:
        return
    if case.fits(case.times(1 / _TWO)):
        yield Explanation("doubled", f"counted twice: half of {quantity} closes the gap")
    if case.fits(case.times(_TWO)):
        yield Explanation("halved", f"only half of it: 2 x {quantity} closes the gap")


def _slip(case: Mismatch) -> Iterator[Explanation]:
    """Two adjacent digits are swapped, or one digit is another: at one place only, and not the last by one."""
    quantity = case.quantity
    if not case.expected or any(quantity.interval.gap(w) == 0 for w in case.expected):
        return
    step = quantity.ulp * quantity.unit.factor
    printed = str(int(quantity.value / step))

    def closing(digits: str) -> bool:
        value = int(digits) * step
        return digits[0] != "0" and case.consistent_with(Interval(value - step / 2, value + step / 2))

    for i in range(len(printed) - 1):
        swapped = printed[:i] + printed[i + 1] + printed[i] + printed[i + 2 :]
        if swapped != printed and closing(swapped):
            text = render(int(swapped) * step, quantity.unit, len(swapped))
            yield Explanation("swapped-digits", f"two digits are swapped: {text} was meant")
    if len(printed) == 1:
        return
    changed = [
        (i, one) for i in range(len(printed)) for digit in "0123456789"
        if digit != printed[i] and closing(one := printed[:i] + digit + printed[i + 1 :])
    ]  # fmt: skip
    # A last digit that differs by one is a matter of rounding, and two-digit figures are often within a tenth.
    least = int(printed) // 10 if len(printed) == 2 else 1
    near = any(abs(int(one) - int(printed)) <= least for _, one in changed)
    if changed and len({i for i, _ in changed}) == 1 and not near:
        text = render(int(changed[0][1]) * step, quantity.unit, len(printed))
        yield Explanation("one-digit", f"one digit differs from {text}")


_HYPOTHESES: tuple[Callable[[Mismatch], Iterator[Explanation]], ...] = (
    _thousands,
    _units,
    _binary,
    _zeros,
    _truncation,
    _point,
    _direction,
    _part,
    functools.partial(_copied, kind="own"),
    functools.partial(_wrong_count, near=True),
    _chained,
    functools.partial(_copied, kind="part"),
    _truncated_zeros,
    _doubled,
    functools.partial(_copied, kind="exact"),
    _slip,
    _wrong_count,
    functools.partial(_copied, kind="distant"),
)


def _reference(suspect: Suspect, graph: Graph) -> Iterator[Explanation]:
    """Another document of the family as the part: the sums of the two documents that fail would hold with it."""
    part = suspect.failing[0].terms[0].part.node
    for other, sums in other_parts(suspect, graph):
        yield Explanation("reference", f"{part.name} for {other.name}, with which {sums} failing sums hold")


def other_parts(suspect: Suspect, graph: Graph) -> Iterator[tuple[Node[Any], int]]:
    """The documents with which, as the part, the sums of the first relation's documents hold; and the number of these."""
    whole, term = suspect.failing[0].total.node, suspect.failing[0].terms[0]
    part = term.part.node
    sums = _failing_between(graph).get((whole.name, part.name), ())
    if whole is part or len(sums) < _SEVERAL:
        return  # another value of one figure is as likely
    for other in graph.of(type(part.spec)):
        if other is not part and is_related(other.name, term.part):
            others = [evolve(r, terms=(evolve(r.terms[0], part=Site(other, r.terms[0].part.path)),)) for r in sums]
            stated = [relation for relation in others if relation.is_stated]
            if len(stated) >= _SEVERAL and all(relation.holds for relation in stated):
                yield other, len(stated)


_SEVERAL = 2
"""Sums that fail for one wrong reference, at least."""


@cached_by_graph
def _failing_between(graph: Graph) -> dict[tuple[str, str], list[Relation]]:
    """The sums of one term that fail, by the documents of the total and of the part."""
    found: dict[tuple[str, str], list[Relation]] = {}
    for relation in failing(graph):
        if len(relation.terms) == 1:
            found.setdefault((relation.total.node.name, relation.terms[0].part.node.name), []).append(relation)
    return found


def _count(suspect: Suspect, own: int) -> Iterator[Explanation]:
    """The integers that the failing relations would accept instead, if most of them accept one."""
    wanted = suspect.expected
    votes = Counter(n for w in wanted for n in _whole(w) if n != own)
    most = max(votes.values(), default=0)
    best = sorted(n for n, count in votes.items() if count == most)
    if 2 * most > len(wanted):
        gaps = "every gap" if most == len(wanted) else f"{most} of {len(wanted)} gaps"
        counts = f"{best[0]} closes" if len(best) == 1 else f"any from {best[0]} to {best[-1]} would close"
        yield Explanation("wrong-count", f"a wrong count: {counts} {gaps}")


def _whole(interval: Interval) -> range:
    """The integers from 1 in an interval; none if there are more than ``MOST_COUNTS``."""
    first = max(ceil(interval.low), 1)
    if interval.high is None or interval.high - first > MOST_COUNTS:
        return range(0)
    last = floor(interval.high)
    return range(first, last + 1 if Fraction(last) in interval else last)


MOST_COUNTS = 50
"""The most counts that are considered; a coarse figure allows many."""
