"""trnspec.checks.reconcile.hypotheses: whatever is explanations is true, by an arithmetic of the test's own."""

import re
from fractions import Fraction

from attrs import frozen
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from tests.support.rules import ULTRA_PEAK, bare, causes, of_ultraserver, put, sites
from trnspec.checks.reconcile.hypotheses import Mismatch, explain_case
from trnspec.checks.reconcile.sites import PartsTerm, Site
from trnspec.errors import QuantityError
from trnspec.graph.graph import Graph
from trnspec.quantities.quantity import Interval, Quantity, parse, render

UNITS = ["TFLOPS", "GFLOPS", "PFLOPS"]


@st.composite
def totals(draw):
    """A total of groups of parts, with what may have been printed of it and how."""
    servers, chips = draw(st.sampled_from([(1, 16), (4, 16), (36, 4), (2, 8), (1, 1)]))
    part = parse(f"{draw(st.integers(10, 9999)) / draw(st.sampled_from([1, 10, 100])):,} TFLOPS")
    right = part.value * servers * chips
    how = draw(st.sampled_from(["cut", "group", "chain", "prefix", "slip", "other"]))
    digits = draw(st.integers(2, 5))
    unit = draw(st.sampled_from(UNITS))
    text = render(right, unit, digits)
    if how == "cut":
        step = Fraction(10) ** draw(st.integers(10, 15))
        text = render(right // step * step, unit, 6)
    elif how == "group":
        text = render(part.value * chips, unit, digits)
    elif how == "chain":
        text = render(parse(render(part.value * chips, "PFLOPS", draw(st.integers(1, 4)))).value * servers, unit, 6)
    elif how == "prefix":
        text = text.replace(unit, draw(st.sampled_from(UNITS)))
    elif how == "slip":
        text = _slip(text, draw(st.integers(0, 9)), draw(st.sampled_from("123456789")))
    elif how == "other":
        times = st.fractions(Fraction(1, 30), 30, max_denominator=50)
        other = st.sampled_from(
            [10, Fraction(1, 10), Fraction(1, servers * chips), Fraction(servers - 1 or 3, servers)]
        )
        text = render(right * draw(times | other), unit, draw(st.integers(1, 5)))
    return servers, chips, part.text, text, how


def _slip(text: str, at: int, digit: str) -> str:
    """Another digit at a place, or the digit before it when it is the same."""
    places = [i for i, c in enumerate(text) if c.isdigit()]
    here = places[at % len(places)]
    chars = list(text)
    if chars[here] == digit:
        before = places[at % len(places) - 1]
        chars[here], chars[before] = chars[before], chars[here]
    else:
        chars[here] = digit
    return "".join(chars)


def world(servers: int, chips: int, part: str) -> tuple[Site, PartsTerm]:
    """An UltraServer of a number of servers of a number of chips, and nothing else."""
    graph = Graph({n: bare().named(n) for n in ("trn2-ultraserver", "trn2u.48xlarge", "trainium2")})
    graph = put(graph, "trn2-ultraserver", "servers.count", servers)
    graph = put(graph, "trn2u.48xlarge", "chips.count", chips)
    graph = put(graph, "trainium2", "peak.dense.bf16", part)
    return sites(graph, *ULTRA_PEAK)[0], of_ultraserver(graph)


Bounds = tuple[Fraction, Fraction]


@frozen
class Facts:
    """All numbers of a case, in base units: what is printed, what it represents, what is wanted, the parts."""

    printed: Quantity
    mine: Bounds
    wanted: Bounds
    servers: int
    chips: int
    one: Fraction

    @property
    def ulp(self) -> Fraction:
        return self.printed.ulp * self.printed.unit.factor

    def closes(self, factor: Fraction | int) -> bool:
        """The printed figure, times a factor, agrees with what is wanted."""
        return meet((self.mine[0] * factor, self.mine[1] * factor), self.wanted)

    def quotient_closes(self, divisor: int) -> bool:
        """The same for a quotient, which is as coarse as the figure if it loses no digit: 79 from 790."""
        quotient = self.printed.value / divisor
        if (quotient / self.ulp).denominator != 1:
            return self.closes(Fraction(1, divisor))
        return meet((quotient - self.ulp / 2, quotient + self.ulp / 2), self.wanted)


def meet(a: Bounds, b: Bounds) -> bool:
    return a[0] < b[1] and b[0] < a[1]


@settings(max_examples=150, deadline=None)
@given(totals())
def test_reported_causes_close_the_gap(drawn):
    """Each sentence is read again, and what it says is computed by plain arithmetic on the digits."""
    servers, chips, part, text, how = drawn
    try:
        printed = parse(text)
    except QuantityError:
        reject()
    assume(printed.value > 0)
    site, whole = world(servers, chips, part)
    one = parse(part)
    half, ulp = one.ulp * one.unit.factor / 2, printed.ulp * printed.unit.factor
    wanted = ((one.value - half) * servers * chips, (one.value + half) * servers * chips)
    facts = Facts(printed, (printed.value - ulp / 2, printed.value + ulp / 2), wanted, servers, chips, one.value)
    explanations = explain_case(Mismatch(site, printed, (Interval(*wanted),), (whole,), (), Graph({})))
    gap = not facts.closes(1)

    assert gap or {e.id for e in explanations} <= {"truncation"}
    assert [e for e in explanations if not CHECKS[e.id](e.sentence, facts)] == []
    if gap and how == "group" and servers > 1 and one.value * chips == printed.value:
        assert "part-for-whole" in {e.id for e in explanations}
    if gap and any(facts.closes(Fraction(1000) ** power) for power in (-2, -1, 1, 2)):
        assert {"prefix", "thousands-point"} & {e.id for e in explanations}
    if gap and (facts.closes(10) or facts.closes(Fraction(1, 10))):
        assert "decimal-point" in {e.id for e in explanations}


def _rounding(_, facts):
    digits = facts.printed.text.split()[0].replace(",", "")
    zeros = 0 if "." in digits else len(digits) - len(digits.rstrip("0"))
    reach = facts.ulp * 10**zeros / 2
    loose = (facts.printed.value - reach, facts.printed.value + reach)
    return meet(loose, facts.wanted) or facts.mine[0] == facts.wanted[1] or facts.mine[1] == facts.wanted[0]


def _truncation(sentence, facts):
    zeros = facts.printed.digits - facts.printed.min_digits if "first" in sentence else 0
    step = facts.ulp * 10**zeros
    least = max(facts.wanted[0], facts.printed.value)
    return least < facts.wanted[1] and least // step * step == facts.printed.value


def _chained(sentence, facts):
    outer, text, how = re.match(r"chained rounding: (\d+) x (.*), which was (.*) before", sentence).groups()
    group, cut = facts.servers * facts.chips * facts.one / int(outer), parse(text).value
    up = Fraction(1, 2) if how == "rounded" else 0
    steps = [Fraction(10) ** power for power in range(9, 19)]
    by_rule = any((group / step + up) // 1 * step == cut != group for step in steps)
    known = int(outer) in (facts.servers, facts.servers * facts.chips)
    return known and by_rule and facts.mine[0] <= int(outer) * cut < facts.mine[1]


def _prefix(sentence, facts):
    meant = parse(re.search(r": (.*) was meant", sentence)[1])
    return meant.number == facts.printed.number and facts.closes(meant.value / facts.printed.value)


def _thousands(sentence, facts):
    meant = parse(re.search(r": (.*) was meant", sentence)[1])
    return meant.value == facts.printed.value * 1000 and facts.closes(1000)


def _point(sentence, facts):
    return facts.closes(10) if "left" in sentence else facts.quotient_closes(10)


def _part(sentence, facts):
    share = facts.servers * facts.chips if "one part" in sentence else facts.servers
    return share > 1 and facts.closes(share)


def _count(sentence, facts):
    times = int(re.search(r" is (\d+) x ", sentence)[1])
    return times != facts.servers * facts.chips and facts.mine[0] <= times * facts.one < facts.mine[1]


def _digits(sentence, facts):
    meant = parse(re.search(r"(?:from|swapped:) (.*?)(?: was meant)?$", sentence)[1])
    a, b = str(int(facts.printed.value / facts.ulp)), str(int(meant.value / facts.ulp))
    differing = [i for i in range(len(a)) if a[i] != b[i]] if len(a) == len(b) else []
    alike = len(differing) == 1 or (len(differing) == 2 and sorted(a) == sorted(b))
    return alike and meet((meant.value - facts.ulp / 2, meant.value + facts.ulp / 2), facts.wanted)


def _other(sentence, facts):
    times, text = re.search(r": (?:(\d+) x )?([^:]*)$", sentence).groups()
    figure, times = parse(text), int(times or 1)
    half = figure.ulp * figure.unit.factor / 2
    theirs = ((figure.value - half) * times, (figure.value + half) * times)
    known = times in (1, facts.servers * facts.chips)
    return known and meet(theirs, facts.mine) and not meet(theirs, facts.wanted)


CHECKS = {
    "swapped-row": _other,
    "dense-sparse": _other,
    "tensor-engine": _other,
    "rounding": _rounding,
    "truncation": _truncation,
    "chained-rounding": _chained,
    "prefix": _prefix,
    "thousands-point": _thousands,
    "decimal-point": _point,
    "part-for-whole": _part,
    "wrong-count": _count,
    "one-digit": _digits,
    "swapped-digits": _digits,
    "doubled": lambda _, facts: facts.quotient_closes(2),
    "halved": lambda _, facts: facts.closes(2),
}

SIZES = ["B", "bit", "KiB", "kB", "GB", "GiB", "Gbit", "Gibit", "TB", "TiB"]


@given(st.integers(1, 9999), st.sampled_from(SIZES), st.sampled_from(SIZES))
def test_a_unit_is_named_only_if_it_closes_the_gap(value, printed, meant):
    """The figure in the named unit overlaps with what was meant; the right unit is among those that are named."""
    text, right = f"{value} {printed}", f"{value} {meant}"
    explanations = causes(text, right)
    named = {
        re.search(r": (.*) was meant", explanations[i])[1]
        for i in ("decimal-unit", "bit-byte", "prefix")
        if i in explanations
    }

    assert all(parse(n).interval.overlaps(parse(right).interval) for n in named)
    if not parse(text).interval.overlaps(parse(right).interval) and value >= 100 and _one_slip(printed, meant):
        assert right in named


def _one_slip(a: str, b: str) -> bool:
    (x, i, p), (y, j, q) = (re.fullmatch(r"([kKGT]?)(i?)(B|bit)", u).groups() for u in (a, b))
    letter, binary, root = x.upper() != y.upper(), i != j, p != q
    return root + (letter or binary) == 1 if letter or root else binary
