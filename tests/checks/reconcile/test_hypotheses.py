"""trnspec.checks.reconcile.hypotheses: each explanation where it is due, none where it is not."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest

from tests.support.rules import (
    BANDWIDTH,
    PEAK,
    SERVER_PEAK,
    ULTRA_EFA,
    ULTRA_PEAK,
    bare,
    causes,
    efa,
    interval,
    of_server,
    of_ultraserver,
    put,
    sites,
    term,
)
from trnspec.checks.reconcile.hints import sentence
from trnspec.checks.reconcile.hypotheses import Case, Explanation, _whole, explain, explain_case
from trnspec.checks.reconcile.relations import relations
from trnspec.checks.reconcile.sites import Relation
from trnspec.checks.reconcile.suspects import suspects
from trnspec.graph.graph import Graph
from trnspec.quantities.quantity import Interval, parse


def test_a_figure_without_a_lower_bound_is_not_scaled_at_will():
    """[0, 2 TB) scaled by a thousand contains everything; what counts is the number that is printed."""
    assert set(causes("~1 TB", "2,048 GiB")) == set()
    assert set(causes("up to 12 GB/s", "96 GB/s")) == set()
    assert set(causes("~2 GB", "2,000 GB")) == {"prefix"}


# Rounding and truncation.


@pytest.mark.parametrize(
    ("printed", "wanted", "digits"),
    [
        ("190 TFLOPS", "194 TFLOPS", "2 digits"),
        ("200 TFLOPS", "194 TFLOPS", "1 digit"),
        ("100 TFLOPS", "95 TFLOPS", "1 digit"),
        ("3,000 x", "3,040 x", "1 digit"),
    ],
)
def test_zeros_that_may_be_no_digits(printed, wanted, digits):
    assert f"only {digits} of {printed} " in causes(printed, wanted)["rounding"]


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        ("190 TFLOPS", "210 TFLOPS"),
        ("190 TFLOPS", "196 TFLOPS"),
        ("194 TFLOPS", "190 TFLOPS"),
        ("200.0 x", "202 x"),
        ("100 TFLOPS", "94 TFLOPS"),
    ],
)
def test_rounding_has_its_limits(printed, wanted):
    assert "rounding" not in causes(printed, wanted)


def test_two_roundings_of_one_figure_meet():
    """190 and 191 are both what 190.5 may be printed as; 190 and 192 are not."""
    assert "rounding" in causes("191 TFLOPS", "190 TFLOPS")
    assert "one-digit" not in causes("191 TFLOPS", "190 TFLOPS")
    assert "rounding" not in causes("192 TFLOPS", "190 TFLOPS")


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [("47 TFLOPS", "47.9 TFLOPS"), ("47 TFLOPS", "47.5 TFLOPS"), ("2.5 x", "2.58 x"), ("21 PFLOPS", "21.78 PFLOPS")],
)
def test_digits_that_were_cut_off(printed, wanted):
    assert {"truncation"} == set(causes(printed, wanted))


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        ("47 TFLOPS", "47.4 TFLOPS"),
        ("47 TFLOPS", "46.4 TFLOPS"),
        ("48 TFLOPS", "47.9 TFLOPS"),
        ("47 TFLOPS", "49 TFLOPS"),
    ],
)
def test_digits_that_were_not_cut_off(printed, wanted):
    assert "truncation" not in causes(printed, wanted)


def test_digits_cut_off_before_the_last_zeros():
    explanations = causes("3,200 TFLOPS", "3,280 TFLOPS")

    assert explanations["truncation"] == "truncation to 3,200 TFLOPS: the digits after its first 2 were cut off"
    assert "rounding" not in explanations


def test_a_rounded_total_of_rounded_groups():
    """4 x 10.7 PFLOPS is printed where 64 x 667 TFLOPS are 42.69."""
    explanations = causes("42.8 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert {"chained-rounding"} == set(explanations)
    assert (
        explanations["chained-rounding"]
        == "chained rounding: 4 x 10.7 PFLOPS, which was rounded before it was multiplied"
    )


def test_a_total_of_groups_that_were_cut_off():
    explanations = causes("42.4 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert (
        explanations["chained-rounding"]
        == "chained rounding: 4 x 10.6 PFLOPS, which was cut off before it was multiplied"
    )


def test_a_total_of_rounded_parts():
    """16 x 0.8 TB/s is printed where 16 x 820 GB/s are 13.12."""
    part = of_server(part="memory.bandwidth")
    explanations = causes("12.8 TB/s", part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert "16 x 0.8 TB/s" in explanations["chained-rounding"]


@pytest.mark.parametrize("printed", ["41.5 PFLOPS", "43.3 PFLOPS", "45.1 PFLOPS"])
def test_a_total_that_no_rounding_of_its_parts_gives(printed):
    explanations = causes(printed, of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "chained-rounding" not in explanations


# Units.


@pytest.mark.parametrize(
    ("printed", "wanted", "cause", "meant"),
    [
        ("820 GiB/s", "820 GB/s", "decimal-unit", "820 GB/s"),
        ("13,120 GiB/sec", "13.12 TB/s", "decimal-unit", "13,120 GB/s"),
        ("512 GB", "512 GiB", "decimal-unit", "512 GiB"),
        ("9.9 TB", "9.9 TiB", "decimal-unit", "9.9 TiB"),
        ("800 kB", "800 KiB", "decimal-unit", "800 KiB"),
        ("3,200 GB/s", "3,200 Gbit/s", "bit-byte", "3,200 Gbit/s"),
        ("3,200 Gbps", "3,200 GB/s", "bit-byte", "3,200 GB/s"),
        ("96 Gibit", "96 GiB", "bit-byte", "96 GiB"),
        ("820 MB/s", "820 GB/s", "prefix", "820 GB/s"),
        ("190 GFLOPS", "190 TFLOPS", "prefix", "190 TFLOPS"),
        ("2,563 PFLOPS", "2,563 TFLOPS", "prefix", "2,563 TFLOPS"),
        ("15 ms", "15 us", "prefix", "15 us"),
        ("up to 25 Gbps", ">= 25 GB/s", "bit-byte", "up to 25 GB/s"),
        ("1.299 TFLOPS", "1,299 TFLOPS", "thousands-point", "1,299 TFLOPS"),
        ("3.200 Gbps", "3,200 Gbps", "thousands-point", "3,200 Gbps"),
        ("27.648 GiB", "27,648 GiB", "thousands-point", "27,648 GiB"),
        ("96,000 GiB", "96 GiB", "prefix", "96 GiB"),
        ("76,294 MiB", "81,920 MiB", "decimal-unit", "81,920 MiB"),
        ("512,000 MiB", "524,288 MiB", "decimal-unit", "524,288 MiB"),
    ],
)
def test_hypothesis_of_another_unit(printed, wanted, cause, meant):
    assert f"{meant} was meant" in causes(printed, wanted)[cause]


@pytest.mark.parametrize(
    ("printed", "wanted", "cause"),
    [
        ("820 GiB/s", "830 GB/s", "decimal-unit"),
        ("12.299 TFLOPS", "1,299 TFLOPS", "thousands-point"),
        ("1.2990 TFLOPS", "1,299 TFLOPS", "thousands-point"),
        ("1.299 PFLOPS", "1,299 TFLOPS", "thousands-point"),
        ("800 GB/s", "820 GB/s", "decimal-unit"),
        ("76 GiB", "80 GiB", "decimal-unit"),
        ("505,000 MiB", "524,288 MiB", "decimal-unit"),
        ("820 Gbit/s", "820 MB/s", "bit-byte"),
        ("820 Gbit/s", "820 MB/s", "prefix"),
        ("820 MB/s", "830 GB/s", "prefix"),
        ("1 bit", "1 KiB", "decimal-unit"),
        ("512 MB", "512 GB", "decimal-unit"),
    ],
)
def test_no_other_unit_was_meant(printed, wanted, cause):
    assert cause not in causes(printed, wanted)


def test_a_decimal_and_a_binary_unit_are_distinguished_by_precision():
    """Three digits decide between GB and GiB; one digit does not, and then rounding alone explains it."""
    assert {"decimal-unit"} == set(causes("512 GB", "512 GiB"))
    assert "decimal-unit" not in causes("9 TB", "9 TiB")


# Slips of the pen.


@pytest.mark.parametrize(
    ("printed", "wanted", "words"),
    [
        ("19 TFLOPS", "190 TFLOPS", "too far left"),
        ("66.7 TFLOPS", "667 TFLOPS", "too far left"),
        ("6,670 TFLOPS", "667 TFLOPS", "too far right"),
    ],
)
def test_the_decimal_point(printed, wanted, words):
    assert words in causes(printed, wanted)["decimal-point"]


@pytest.mark.parametrize(("printed", "wanted"), [("19.0 x", "191 x"), ("66.7 x", "668 x"), ("667 x", "6.67 x")])
def test_not_the_decimal_point(printed, wanted):
    assert "decimal-point" not in causes(printed, wanted)


@pytest.mark.parametrize(
    ("printed", "wanted", "meant"),
    [
        ("1,636 GiB", "1,536 GiB", "1,536 GiB"),
        ("657 TFLOPS", "667 TFLOPS", "667 TFLOPS"),
        ("20.3 PFLOPS", "20,784 TFLOPS", "20.8 PFLOPS"),
        ("28 TB/s", "21 TB/s", "21 TB/s"),
        ("28 x", "25 x", "25x"),
        ("57 x", "51 x", "51x"),
        ("12 x", "14 x", "14x"),
    ],
)
def test_one_digit_differs(printed, wanted, meant):
    assert f"one digit differs from {meant}" == causes(printed, wanted)["one-digit"]


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        ("210 x", "190 x"),
        ("658 x", "677 x"),
        ("9 x", "4 x"),
        ("1,536 x", "536 x"),
        ("28.1 x", "21.02 x"),
        ("668 x", "666 x"),
    ],
)
def test_more_or_less_than_one_digit_differs(printed, wanted):
    assert (printed == "668 x") == ("one-digit" in causes(printed, wanted))
    assert "swapped-digits" not in causes(printed, wanted)


@pytest.mark.parametrize(
    ("printed", "wanted"), [("28 x", "26 x"), ("57 x", "52 x"), ("12 x", "13 x"), ("99 x", "90 x")]
)
def test_figures_of_two_digits_are_often_within_a_tenth(printed, wanted):
    assert "one-digit" not in causes(printed, wanted)


@pytest.mark.parametrize(
    ("printed", "wanted", "meant"),
    [
        ("1,356 GiB", "1,536 GiB", "1,536 GiB"),
        ("3,400 TFLOPS", "3,040 TFLOPS", "3,040 TFLOPS"),
        ("2.09 x", "2.90 x", "2.9x"),
    ],
)
def test_two_digits_are_swapped(printed, wanted, meant):
    explanations = causes(printed, wanted)

    assert f"two digits are swapped: {meant} was meant" == explanations["swapped-digits"]


@pytest.mark.parametrize(
    ("printed", "wanted"), [("1,635 x", "1,536 x"), ("1,653 x", "1,536 x"), ("3,410 x", "3,040 x")]
)
def test_distant_digits_are_not_swapped(printed, wanted):
    assert "swapped-digits" not in causes(printed, wanted)


# Directions.


@pytest.mark.parametrize(("printed", "cause"), [("512 GB/s", "one-direction"), ("2,048 GB/s", "both-directions")])
def test_directions(printed, cause):
    assert {cause} == set(causes(printed, "1,024 GB/s", at=BANDWIDTH))


@pytest.mark.parametrize("printed", ["520 GB/s", "2,000.0 GB/s", "256 GB/s"])
def test_not_a_direction(printed):
    assert not {"one-direction", "both-directions"} & set(causes(printed, "1,024 GB/s", at=BANDWIDTH))


@pytest.mark.parametrize("at", [("trainium1", "memory.bandwidth"), PEAK, ("trn1.32xlarge", "stated.memory.bandwidth")])
def test_memory_and_rates_have_no_directions(at):
    assert not {"one-direction", "both-directions"} & set(causes("410 GB/s", "820 GB/s", at=at))


# Parts, wholes and counts.


def test_the_figure_of_one_part():
    explanations = causes("3,200 Gbps", efa().interval, at=ULTRA_EFA, terms=[efa()])

    assert explanations["part-for-whole"] == "the figure of one part, 3,200 Gbps, was used for the whole"


def test_the_figure_of_one_group():
    explanations = causes("10.7 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert explanations["part-for-whole"] == "the figure of one group, 16 x 667 TFLOPS, was used for the whole"


def test_one_part_by_two_relations_is_reported_once():
    """One server of four is sixteen chips of 64: the totals of both disagree for one reason."""
    by_server = term(bare(), ("trn2u.48xlarge", "stated.peak.dense.bf16"), ("trn2-ultraserver", "servers.count"))
    case = Case(
        sites(bare(), *ULTRA_PEAK)[0],
        parse("10.7 PFLOPS"),
        (by_server.interval, of_ultraserver().interval),
        (by_server, of_ultraserver()),
        (),
        Graph({}),
    )

    assert sum(e.id == "part-for-whole" for e in explain_case(case)) == 1


@pytest.mark.parametrize("printed", ["667 GFLOPS", "3 PFLOPS", "21.3 PFLOPS"])
def test_not_the_figure_of_a_part(printed):
    explanations = causes(printed, of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "part-for-whole" not in explanations


def test_part_is_not_named_if_its_total_disagrees():
    """A part whose total disagrees with another relation explains nothing."""
    explanations = causes("3,200 Gbps", efa().interval, "14,000 Gbps", at=ULTRA_EFA, terms=[efa()])

    assert explanations == {}


def test_the_total_represents_one_part():
    share = (Fraction(16), parse("3,040 TFLOPS"))
    explanations = causes("3,040 TFLOPS", interval("3,040 TFLOPS").scaled(Fraction(1, 16)), at=PEAK, shares=[share])

    assert explanations["whole-for-part"] == "the total, 3,040 TFLOPS, was used for one part"


@pytest.mark.parametrize(("printed", "share"), [("3,400 TFLOPS", 16), ("3,040 TFLOPS", 8)])
def test_not_the_total(printed, share):
    shares = [(Fraction(share), parse("3,040 TFLOPS"))]
    explanations = causes(printed, interval("190 TFLOPS"), at=PEAK, shares=shares)

    assert "whole-for-part" not in explanations


def test_a_wrong_count():
    """12 chips were counted where there are 16; 9.84 is printed with two digits."""
    part = of_server(part="memory.bandwidth")
    explanations = causes("9.8 TB/s", part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert explanations == {"wrong-count": "a wrong count: 9.8 TB/s is 12 x 820 GB/s, not 16 x"}


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("3,100 TFLOPS", "no multiple"),
        ("2.09 PFLOPS", "nearly a multiple"),
        ("190 TFLOPS", "one part"),
    ],
)
def test_no_wrong_count(printed, why):
    explanations = causes(printed, of_server().interval, at=SERVER_PEAK, terms=[of_server()])
    expected = why == "nearly a multiple"

    assert expected == ("wrong-count" in explanations)


@pytest.mark.parametrize(
    ("times", "printed", "named"),
    [(15, "4.5 TB/s", True), (17, "5.1 TB/s", True), (32, "9.6 TB/s", True), (64, "19.2 TB/s", True), (8, "2.4 TB/s", True),
     (4, "1.2 TB/s", True), (12, "3.6 TB/s", False), (14, "4.2 TB/s", False), (18, "5.4 TB/s", False), (1, "0.3 TB/s", False)],
)  # fmt: skip
def test_a_usual_slip_of_a_count_is_named_for_coarse_totals_too(times, printed, named):
    """One more or less than 16, twice, four times, a half or a fourth; of totals with a third of a part in their last digit."""
    graph = put(bare(), "trainium1", "memory.bandwidth", "300 GB/s")
    part = of_server(graph, part="memory.bandwidth")
    found = causes(printed, part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert (f"a wrong count: {printed} is {times} x 300 GB/s, not 16 x" in found.values()) is named


def test_coarse_total_is_not_a_wrong_count():
    """20 PFLOPS of parts of 0.667 PFLOPS could be 30 of them, but one digit shows nothing."""
    explanations = causes("30 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "wrong-count" not in explanations


def test_unit_slip_is_not_a_wrong_count():
    """Bytes for bits is eight times as much, and a zero too many ten times."""
    assert "wrong-count" not in causes("12,800 GB/s", efa().interval, at=ULTRA_EFA, terms=[efa()])
    assert "wrong-count" not in causes("30,400 TFLOPS", of_server().interval, at=SERVER_PEAK, terms=[of_server()])


def test_memory_is_not_rounded_before_it_is_multiplied():
    """16 x 30 GiB are 480 GiB, but nothing rounds 32 GiB."""
    part = of_server(part="memory.capacity")
    explanations = causes("480 GiB", part.interval, at=("trn1.32xlarge", "stated.memory.capacity"), terms=[part])

    assert {"wrong-count"} == set(explanations)


def test_the_figure_of_a_group_is_no_wrong_count():
    explanations = causes("10,672 TFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert {"part-for-whole"} == set(explanations)


def test_a_part_of_another_dimension_is_no_part():
    """The clock of a tensor engine is multiplied to its rate, but no rate is a copy of a clock."""
    counts = (("neuroncore-v3", "engines.tensor.array.rows"), ("neuroncore-v3", "engines.tensor.array.columns"))
    clock = term(bare(), ("neuroncore-v3", "engines.tensor.clock"), *counts, factor=2)
    explanations = causes(
        "2.4 GFLOPS", clock.interval, at=("neuroncore-v3", "engines.tensor.peak.dense.bf16"), terms=[clock]
    )

    assert explanations == {}


# How they are explanations.


def test_agreeing_figure_has_no_explanation():
    assert causes("190 TFLOPS", "190 TFLOPS", at=PEAK, graph=bare()) == {}
    assert causes("1 TB/s", "820 GB/s", at=("trainium1", "dma.bandwidth"), graph=bare()) == {}


def test_no_explanation_without_expected_value():
    assert causes("190 TFLOPS", at=PEAK, graph=bare()) == {}


def test_all_that_is_expected_must_be_met():
    assert {"decimal-unit"} == set(causes("820 GiB/s", "820 GB/s", "0.82 TB/s"))
    assert causes("820 GiB/s", "820 GB/s", "900 GB/s") == {}


def test_bound_is_explained_as_a_figure():
    """A bound admits everything below it, but it is a copy of one part only if it prints the part's digits."""
    explanations = causes("up to 3,200 Gbps", efa().interval, at=ULTRA_EFA, terms=[efa()])
    other = causes("up to 9,000 Gbps", efa().interval, at=ULTRA_EFA, terms=[efa()])

    assert "part-for-whole" in explanations
    assert "part-for-whole" not in other


ONE, TWO, THREE, FOUR = (Explanation(w, w) for w in ("one", "two", "three", "four"))


@pytest.mark.parametrize(
    ("found", "explanations"),
    [
        ([], "none of the usual causes closes the gap"),
        ([ONE], "likely cause: one"),
        ([ONE, TWO], "several causes would close the gap: one; or two"),
        ([ONE, TWO, THREE, FOUR], "several causes would close the gap: one; or two; or three; or 1 more"),
    ],
)
def test_the_sentence(found, explanations):
    assert explanations == sentence(found)


# Counts.


def test_a_count_that_closes_every_gap():
    graph = put(bare(), "trn1.32xlarge", "chips.count", 12)
    (suspect,) = suspects(relations(graph))

    assert suspect.site.key == ("trn1.32xlarge", ("spec", "chips", "count"), None)
    assert [Explanation("wrong-count", "a wrong count: 16 closes every gap")] == explain(suspect, graph)


def test_coarse_totals_leave_several_counts():
    graph = put(put(bare(), "trn1.32xlarge", "chips.count", 3), "trainium1", "peak.dense.bf16", "2 TFLOPS")
    total = sites(put(graph, "trn1.32xlarge", "stated.peak.dense.bf16", "30 TFLOPS"), *SERVER_PEAK)[0]
    relation = Relation(total, (of_server(graph),), "chips of a server")
    (suspect,) = suspects([relation, Relation(total, (of_server(graph),), "once more")])
    counted = attrs.evolve(suspect, site=sites(graph, "trn1.32xlarge", "chips.count")[0])

    expected = "a wrong count: any from 12 to 20 would close every gap"
    assert [Explanation("wrong-count", expected)] == explain(counted, graph)


def test_fraction_is_not_a_count():
    total = sites(put(bare(), "trn1.32xlarge", "stated.peak.dense.bf16", "3,135.0 TFLOPS"), *SERVER_PEAK)[0]
    (suspect,) = suspects([Relation(total, (of_server(),), "chips of a server")])
    counted = attrs.evolve(suspect, site=sites(bare(), "trn1.32xlarge", "chips.count")[0])

    assert explain(counted, bare()) == []


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
    explanations = causes("3,040 TFLOPS", interval("3,040 TFLOPS").scaled(Fraction(1, 16)), at=PEAK, shares=shares)

    assert explanations["whole-for-part"] == "the total, 3,040 TFLOPS, was used for one part"
