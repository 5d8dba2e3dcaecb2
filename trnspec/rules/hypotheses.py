"""Why two figures disagree: the usual explanations, each tried by arithmetic.

A hypothesis is a sentence and a test.  It is printed only when it closes the gap: when the figure, changed as the
hypothesis says, agrees with what the broken relations expect of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

from attrs import frozen

from trnspec.graph import Graph, figure_at
from trnspec.model.figure import Figure
from trnspec.model.shape import dotted
from trnspec.quantity import Interval, Quantity, parse, render
from trnspec.rules.blame import Suspect
from trnspec.rules.relations import claimed_paths
from trnspec.rules.sites import Site, Term
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


@frozen
class Case:
    """A figure that disagrees, and what it should agree with.

    Attributes:
        site: Where the figure stands.
        quantity: What it says.
        wanted: What each broken relation expects of it, in base units.
        terms: The terms it should be the sum of, when it is a total.
        shares: The totals that it should be a part of, each with how many parts the total has.
        graph: Where the figures of others are.
    """

    site: Site
    quantity: Quantity
    wanted: tuple[Interval, ...]
    terms: tuple[Term, ...]
    shares: tuple[tuple[Fraction, Quantity], ...]
    graph: Graph

    def closes(self, interval: Interval) -> bool:
        """True when the figure, if it were this, would agree with all that is expected."""
        return bool(self.wanted) and all(interval.overlaps(w) for w in self.wanted)


def explain(suspect: Suspect, graph: Graph) -> list[Explanation]:
    """The explanations that close the gap, the most telling first; empty when none does."""
    value = suspect.site.value
    if isinstance(value, int):
        return list(_count(suspect, value))
    assert value is not None  # a suspect is a site of a relation
    terms: list[Term] = []
    shares: list[tuple[Fraction, Quantity]] = []
    for relation in suspect.failing:
        if suspect.site.key == relation.total.key:
            terms += relation.terms if len(relation.terms) == 1 else ()
            continue
        for term in relation.terms:
            total = relation.total.value
            if suspect.site.key == term.part.key and isinstance(total, Quantity):
                shares.append((term.times, total))
    case = Case(suspect.site, value, tuple(suspect.expected), tuple(terms), tuple(shares), graph)
    return tried(case)


def tried(case: Case) -> list[Explanation]:
    """Every hypothesis that closes the gap of a case, each sentence once."""
    found = [e for hypothesis in _HYPOTHESES for e in hypothesis(case)]
    return list({e.sentence: e for e in found}.values())


def _zeros(case: Case) -> Iterator[Explanation]:
    quantity = case.quantity
    if quantity.min_digits < quantity.digits and case.closes(quantity.loose):
        digits = "1 digit" if quantity.min_digits == 1 else f"{quantity.min_digits} digits"
        verb = "is" if quantity.min_digits == 1 else "are"
        yield Explanation("rounding", f"rounding, if only {digits} of {quantity} {verb} significant")


def _truncation(case: Case) -> Iterator[Explanation]:
    quantity = case.quantity
    step = quantity.ulp * quantity.unit.factor
    if case.closes(Interval(quantity.value, quantity.value + step)):
        yield Explanation("truncation", f"truncation: digits after {quantity} were cut off, not rounded")
    elif quantity.min_digits < quantity.digits:
        step *= 10 ** (quantity.digits - quantity.min_digits)
        if case.closes(Interval(quantity.value, quantity.value + step)):
            yield Explanation("truncation", f"truncation to {quantity}: the digits after its first were cut off")


def _chained(case: Case) -> Iterator[Explanation]:
    """The total of rounded totals: 4 x 10.7 where 10.7 was itself rounded."""
    quantity = case.quantity
    for term in case.terms:
        if len(term.counts) < 2 or not isinstance(term.part.value, Quantity):  # noqa: PLR2004  # two levels of parts
            continue
        outer = term.counts[0].value
        assert isinstance(outer, int)  # counts are
        group = term.part.value.value * term.times / outer
        for digits in range(1, 6):
            text = render(group, quantity.unit, digits)
            rounded = parse(text)
            for cut, word in ((rounded, "rounded"), (_cut(group, rounded), "cut off")):
                if cut.value != group and cut.value * outer in quantity.interval:
                    sentence = f"chained rounding: {outer} x {cut}, which was {word} before it was multiplied"
                    yield Explanation("chained-rounding", sentence)
                    return


def _cut(value: Fraction, like: Quantity) -> Quantity:
    """A value cut off, not rounded, at the last digit of a printed one."""
    step = like.ulp * 10 ** (like.digits - like.min_digits) * like.unit.factor
    return parse(render(value // step * step, like.unit, like.digits))


def _units(case: Case) -> Iterator[Explanation]:
    quantity = case.quantity
    spelling = _number(quantity)
    for unit in UNITS:
        if unit.dimension is not quantity.dimension or unit.symbol == quantity.unit.symbol:
            continue
        if not case.closes(quantity.interval.scaled(unit.factor / quantity.unit.factor)):
            continue
        ratio = unit.factor / quantity.unit.factor
        meant = f"{spelling} {unit.symbol} was meant"
        if _binary(unit) != _binary(quantity.unit) and Fraction(1, 2) < ratio < 2:  # noqa: PLR2004  # a twin
            yield Explanation("decimal-unit", f"a decimal for a binary unit or the reverse: {meant}")
        elif ratio in (8, Fraction(1, 8)):
            yield Explanation("bit-byte", f"bits for bytes or the reverse: {meant}")
        else:
            yield Explanation("prefix", f"a wrong unit prefix: {meant}")


def _number(quantity: Quantity) -> str:
    """The printed number without its unit."""
    return quantity.text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµμ/").rstrip() or quantity.text


def _binary(unit: Unit) -> bool:
    return unit.symbol[1:2] == "i"


def _point(case: Case) -> Iterator[Explanation]:
    for factor, words in ((Fraction(10), "one place too far left"), (Fraction(1, 10), "one place too far right")):
        if case.closes(case.quantity.interval.scaled(factor)):
            yield Explanation("decimal-point", f"the decimal point is {words}, or a zero is missing or too many")


def _direction(case: Case) -> Iterator[Explanation]:
    if not {"bandwidth", "per_direction", "both"}.intersection(case.site.path) or "memory" in case.site.path:
        return
    if case.closes(case.quantity.interval.scaled(2)):
        yield Explanation("one-direction", f"one direction for both: 2 x {case.quantity} closes the gap")
    if case.closes(case.quantity.interval.scaled(Fraction(1, 2))):
        yield Explanation("both-directions", f"both directions for one: half of {case.quantity} closes the gap")


def _part(case: Case) -> Iterator[Explanation]:
    for term in case.terms:
        value = term.part.value
        if not isinstance(value, Quantity):
            continue
        groups: list[tuple[Fraction, str]] = [(Fraction(1), f"of one part, {value},")]
        if len(term.counts) > 1:
            inner = term.counts[-1].value
            assert isinstance(inner, int)  # counts are
            groups.append((Fraction(inner), f"of one group, {inner} x {value},"))
        for times, words in groups:
            if term.times != times and case.quantity.interval.overlaps(value.interval.scaled(times)):
                yield Explanation("part-for-whole", f"the figure {words} stands for the whole")
    for times, total in case.shares:
        if times != 1 and case.quantity.interval.overlaps(total.interval):
            yield Explanation("whole-for-part", f"the total, {total}, stands for one part")


def _wrong_count(case: Case) -> Iterator[Explanation]:
    for term in case.terms:
        part = term.part.value
        if not isinstance(part, Quantity) or part.value == 0 or not term.counts:
            continue
        times = round(case.quantity.value / part.value)
        if times > 1 and times != term.times and part.value * times in case.quantity.interval:
            yield Explanation("wrong-count", f"a wrong count: {case.quantity} is {times} x {part}, not {term.times} x")


def _other_figure(case: Case) -> Iterator[Explanation]:
    """The figure of another row, kind of rate, older claim or generation stands here."""
    homes = [(term.part, term.times) for term in case.terms]
    homes.append((case.site, Fraction(1)))
    for home, times in homes:
        for id, words, figure in _others(home, case.graph):
            if figure.dimension is case.quantity.dimension and not case.closes(figure.interval.scaled(times)):
                if figure.interval.scaled(times).overlaps(case.quantity.interval):
                    formula = f"{times} x {figure}" if times != 1 else str(figure)
                    yield Explanation(id, f"{words}: {formula}")


def _others(site: Site, graph: Graph) -> Iterator[tuple[str, str, Quantity]]:
    for path, figure in graph.figures(site.node).items():
        if path == site.path or path[-1] in ("value",):
            continue
        if path[1:2] == site.path[1:2] and path[:-2] == site.path[:-2]:
            if path[-2] != site.path[-2]:
                yield "dense-sparse", f"the {path[-2]} rate of {path[-1]} stands here", figure.value
            else:
                yield "swapped-row", f"the figure of {path[-1]} stands here", figure.value
        elif {path[1], site.path[1]} == {"peak", "tensor_peak"} and path[2:] == site.path[2:]:
            words = "the tensor engines alone" if path[1] == "tensor_peak" else "all engines together"
            yield "tensor-engine", f"the rate of {words} stands here", figure.value
    yield from _claims(site)
    for other in graph.of(type(site.node.spec)):
        found = figure_at(other, site.path)
        if other is not site.node and isinstance(found, Figure):
            yield "neighbour", f"the figure of {other.name} stands here", found.value


def _claims(site: Site) -> Iterator[tuple[str, str, Quantity]]:
    """What others say of a figure; sources that print the same and were judged alike are told together."""
    told: dict[tuple[str, str], list[str]] = {}
    quantities: dict[str, Quantity] = {}
    for index, claim in enumerate(site.node.claims):
        said = Site(site.node, site.path, index).value
        if index != site.claim and isinstance(said, Quantity) and site.path in claimed_paths(claim.at):
            told.setdefault((said.text, claim.verdict or "agrees"), []).append(claim.source.name)
            quantities[said.text] = said
    for (text, verdict), sources in told.items():
        others = f" and {len(sources) - 1} other{'' if len(sources) == 2 else 's'}" if len(sources) > 1 else ""  # noqa: PLR2004  # one other
        verb = "say" if others else "says"
        words = f"what {sources[0]}{others} {verb} of {dotted(site.path[1:])} ({verdict})"
        yield "older-claim", words, quantities[text]


def _slip(case: Case) -> Iterator[Explanation]:
    """One digit differs from what is expected, or two neighbours are swapped."""
    quantity = case.quantity
    low = max((w.low for w in case.wanted), default=Fraction(0))
    high = min((w.high for w in case.wanted if w.high is not None), default=None)
    if high is None or high < low:
        return
    step = quantity.ulp * quantity.unit.factor
    printed = str(int(quantity.value / step))
    meant = str(int((low + high) / 2 / step + Fraction(1, 2)))
    if len(printed) != len(meant) or printed == meant or not case.closes(Interval.point(int(meant) * step)):
        return
    differing = [i for i, (a, b) in enumerate(zip(printed, meant, strict=True)) if a != b]
    text = render(int(meant) * step, quantity.unit, len(meant))
    if len(differing) == 1 and len(meant) > 1:
        yield Explanation("one-digit", f"one digit differs from {text}")
    elif len(differing) == 2 and differing[1] == differing[0] + 1 and sorted(printed) == sorted(meant):  # noqa: PLR2004
        yield Explanation("swapped-digits", f"two digits are swapped: {text} was meant")


_HYPOTHESES: tuple[Callable[[Case], Iterator[Explanation]], ...] = (
    _zeros,
    _truncation,
    _chained,
    _units,
    _point,
    _direction,
    _part,
    _other_figure,
    _wrong_count,
    _slip,
)


def _count(suspect: Suspect, own: int) -> Iterator[Explanation]:
    """The whole number that the broken relations would accept instead, if most of them accept one."""
    wanted = suspect.expected
    votes = Counter(n for w in wanted for n in {round(w.low), round(w.low if w.high is None else w.high)} if n in w)
    for number, count in votes.most_common(1):
        if number != own and 2 * count > len(wanted):
            gaps = "every gap" if count == len(wanted) else f"{count} of {len(wanted)} gaps"
            yield Explanation("wrong-count", f"a wrong count: {number} closes {gaps}")


def sentence(found: list[Explanation]) -> str:
    """The hint: the likely cause, the fact that several fit, or the fact that none does."""
    if not found:
        return "none of the usual causes closes the gap"
    if len(found) == 1:
        return f"likely cause: {found[0].sentence}"
    told = "; or ".join(e.sentence for e in found[:MOST_TOLD])
    more = f"; and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
    return f"several causes would close the gap: {told}{more}"


MOST_TOLD = 3
"""How many explanations a hint tells; the audit lists all."""
