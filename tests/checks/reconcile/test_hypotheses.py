"""trnspec.checks.reconcile.hypotheses: each explanation where it is due, none where it is not."""

import re
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import frozen
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from tests.support import rules
from trnspec.checks.reconcile.hints import sentence
from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, _whole, explain, explain_case
from trnspec.checks.reconcile.relations import relations
from trnspec.checks.reconcile.sites import PartsTerm, Relation, Site
from trnspec.checks.reconcile.suspects import blamed, suspects
from trnspec.errors import QuantityError
from trnspec.graph.graph import Graph
from trnspec.model.core import Core
from trnspec.model.ref import Ref
from trnspec.quantities.quantity import Interval, Quantity, parse, render
from trnspec.yaml import read_text

TABLE = read_text(Path(__file__).with_name("causes.yaml").read_text("utf-8"), "causes.yaml").data["causes"]
TERMS = {
    "ultraserver": rules.of_ultraserver, "server": rules.of_server, "efa": rules.efa,
    "trn2": partial(rules.of_server, server="trn2.48xlarge"),
}  # fmt: skip


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['printed']} {row.get('expected', row.get('sum'))}")
def test_causes_of_a_difference(row: dict[str, Any]) -> None:
    """The table says what is printed and expected, and which causes are named."""
    at = tuple(row["at"].split()) if "at" in row else None
    name, _, part = row.get("sum", "").partition(" ")
    terms = [TERMS[name](**{"part": part} if part else {})] if name else []
    expected = [*(t.interval for t in terms), *(parse(e).interval for e in listed(row.get("expected", [])))]
    graph = rules.bare() if row.get("among") == "catalog" else Graph({})
    found = rules.causes(row["printed"], *expected, at=at, terms=terms, graph=graph)

    assert {c: text for c, text in row.get("names", {}).items() if c not in found or text not in found[c]} == {}
    assert not set(listed(row.get("lacks", []))) & set(found)
    assert set(found) == set(row.get("only", found))


@pytest.mark.parametrize(
    ("times", "printed", "named"),
    [(15, "4.5 TB/s", True), (17, "5.1 TB/s", True), (32, "9.6 TB/s", True), (64, "19.2 TB/s", True), (8, "2.4 TB/s", True),
     (4, "1.2 TB/s", True), (12, "3.6 TB/s", False), (14, "4.2 TB/s", False), (18, "5.4 TB/s", False), (1, "0.3 TB/s", False)],
)  # fmt: skip
def test_a_usual_slip_of_a_count_is_named_for_coarse_totals_too(times, printed, named):
    """One more or less than 16, twice, four times, a half or a fourth; of totals with a third of a part in their last digit."""
    graph = rules.put(rules.bare(), "trainium1", "memory.bandwidth", "300 GB/s")
    part = rules.of_server(graph, part="memory.bandwidth")
    found = rules.causes(printed, part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert (f"a wrong count: {printed} is {times} x 300 GB/s, not 16 x" in found.values()) is named


def test_a_part_of_another_dimension_is_no_part():
    """The clock of a tensor engine is multiplied to its rate, but no rate is a copy of a clock."""
    counts = (("neuroncore-v3", "engines.tensor.array.rows"), ("neuroncore-v3", "engines.tensor.array.columns"))
    clock = rules.term(rules.bare(), ("neuroncore-v3", "engines.tensor.clock"), *counts, factor=2)
    explanations = rules.causes(
        "2.4 GFLOPS", clock.interval, at=("neuroncore-v3", "engines.tensor.peak.dense.bf16"), terms=[clock]
    )

    assert explanations == {}


ONE, TWO, THREE, FOUR = (Explanation(w, w) for w in ("one", "two", "three", "four"))


@pytest.mark.parametrize(
    ("found", "explanations"),
    [
        ([], "none of the known causes closes the gap"),
        ([ONE], "likely cause: one"),
        ([ONE, TWO], "several causes would close the gap: one; or two"),
        ([ONE, TWO, THREE, FOUR], "several causes would close the gap: one; or two; or three; or 1 more"),
    ],
)
def test_the_sentence(found, explanations):
    assert explanations == sentence(found)


def test_a_count_that_closes_every_gap():
    graph = rules.put(rules.bare(), "trn1.32xlarge", "chips.count", 12)
    (suspect,) = suspects(relations(graph))

    assert suspect.site.key == ("trn1.32xlarge", ("spec", "chips", "count"), None)
    assert [Explanation("wrong-count", "a wrong count: 16 closes every gap")] == explain(suspect, graph)


def test_coarse_totals_leave_several_counts():
    graph = rules.put(
        rules.put(rules.bare(), "trn1.32xlarge", "chips.count", 3), "trainium1", "peak.dense.bf16", "2 TFLOPS"
    )
    total = rules.sites(rules.put(graph, "trn1.32xlarge", "stated.peak.dense.bf16", "30 TFLOPS"), *rules.SERVER_PEAK)[0]
    relation = Relation(total, (rules.of_server(graph),), "chips of a server")
    (suspect,) = suspects([relation, Relation(total, (rules.of_server(graph),), "once more")])
    counted = attrs.evolve(suspect, site=rules.sites(graph, "trn1.32xlarge", "chips.count")[0])

    expected = "a wrong count: any from 12 to 20 would close every gap"
    assert [Explanation("wrong-count", expected)] == explain(counted, graph)


@pytest.mark.parametrize(
    ("low", "high", "counts"),
    [
        (0, 3, range(1, 3)),
        (1, 51, range(1, 51)),
        (1, 52, range(0)),
        (Fraction(1, 2), Fraction(7, 2), range(1, 4)),
        (3, 3, range(3, 4)),
        (1, None, range(0)),
    ],
)
def test_the_counts_of_an_interval(low, high, counts):
    """Its upper end is not one of them; where there are more than 50, none are offered."""
    assert counts == _whole(Interval(Fraction(low), None if high is None else Fraction(high)))


def test_a_second_total_is_used_where_the_first_explains_nothing():
    shares = [
        (Fraction(1), parse("3,040 TFLOPS")),
        (Fraction(8), parse("900 TFLOPS")),
        (Fraction(16), parse("3,040 TFLOPS")),
    ]
    explanations = rules.causes(
        "3,040 TFLOPS", rules.interval("3,040 TFLOPS").scaled(Fraction(1, 16)), at=rules.PEAK, shares=shares
    )

    assert explanations["whole-for-part"] == "the total, 3,040 TFLOPS, was used for one part"


@pytest.mark.parametrize(
    ("changes", "sums"),
    [
        ({"cores.core": Ref("neuroncore-v3", Core)}, 5),
        (
            {
                "cores.core": Ref("neuroncore-v3", Core),
                **{f"tensor_peak.dense.{t}": None for t in ("tf32", "fp32", "fp16")},
            },
            2,
        ),
        # One wrong total, which another core would give too, is not a wrong reference.
        ({"sbuf": "56 MiB"}, 0),
    ],
)
def test_another_document_that_closes_several_gaps(changes, sums):
    """The core of another generation breaks several totals of a chip."""
    graph = rules.bare()
    for at, value in changes.items():
        graph = rules.put(graph, "trainium1", at, value)
    found = [e for suspect in blamed(graph) for e in explain(suspect, graph)[:1]]

    assert {e.id == "reference" for e in found} == {sums > 0}
    words = f"neuroncore-v3 for neuroncore-v2, with which {sums} failing sums hold"
    assert not sums or {e.sentence for e in found} == {words}


@pytest.mark.parametrize(("printed", "named"), [("3.2 TB/s", False), ("3.84 TB/s", True)])
def test_parts_are_rounded_by_little_before_they_are_multiplied(printed, named):
    """16 x 0.24 TB/s is printed for 16 x 236 GB/s, but not 16 x 0.2."""
    graph = rules.put(rules.bare(), "trainium1", "memory.bandwidth", "236 GB/s")
    part = rules.of_server(graph, part="memory.bandwidth")
    found = rules.causes(printed, part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert ("chained-rounding" in found) is named


@pytest.mark.parametrize(
    ("text", "factor", "low", "high"),
    [
        ("790 GB/s", Fraction(1, 10), "78.5", "79.5"),
        ("791 GB/s", Fraction(1, 10), "79.05", "79.15"),
        ("79 GB/s", Fraction(10), "785", "795"),
        ("up to 6 GB/s", Fraction(1, 2), "2.5", "3.5"),
    ],
)
def test_a_part_that_loses_no_digit_is_as_coarse_as_the_figure(text, factor, low, high) -> None:
    site = rules.sites(rules.bare(), "trainium2", "memory.bandwidth")[0]
    found = Mismatch(site, parse(text), (), (), (), Graph({})).times(factor)

    assert (Fraction(low) * 10**9, Fraction(high) * 10**9) == (found.low, found.high)


@pytest.mark.parametrize("text", ["up to 4.7 TB/s", "~4.7 TB/s", "4.7 TB/s", "0.3 TB/s", "up to 7 GB/s"])
def test_numbers_that_are_printed_so(text) -> None:
    """Half of a unit of the last digit more and less, whatever the qualifier."""
    quantity = parse(text)
    site = rules.sites(rules.bare(), "trainium2", "memory.bandwidth")[0]
    printed = Mismatch(site, quantity, (), (), (), Graph({})).printed

    if not text.startswith("~"):
        half = quantity.ulp * quantity.unit.factor / 2
        assert (quantity.value - half, quantity.value + half) == (printed.low, printed.high)
    else:
        assert quantity.interval == printed


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
    graph = Graph({n: rules.bare().named(n) for n in ("trn2-ultraserver", "trn2u.48xlarge", "trainium2")})
    graph = rules.put(graph, "trn2-ultraserver", "servers.count", servers)
    graph = rules.put(graph, "trn2u.48xlarge", "chips.count", chips)
    graph = rules.put(graph, "trainium2", "peak.dense.bf16", part)
    return rules.sites(graph, *rules.ULTRA_PEAK)[0], rules.of_ultraserver(graph)


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
    explanations = rules.causes(text, right)
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
