"""trnspec.rules.hypotheses: each explanation where it is due, none where it is not."""

from __future__ import annotations

import re
from fractions import Fraction

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rules_world import bare, causes, claim, interval, put, shipped, sites, term

from trnspec.graph import Graph
from trnspec.quantity import Interval, parse, render
from trnspec.rules.blame import suspects
from trnspec.rules.hypotheses import Case, Explanation, explain, sentence, tried
from trnspec.rules.relations import relations
from trnspec.rules.sites import Relation, Site, Term

BANDWIDTH = ("trn2.48xlarge", "fabric.bandwidth")
PEAK = ("trainium1", "peak.dense.bf16")
FP32 = ("trainium1", "peak.dense.fp32")
SERVER_PEAK = ("trn1.32xlarge", "stated.peak.dense.bf16")
ULTRA_PEAK = ("trn2-ultraserver", "stated.peak.dense.bf16")
ULTRA_EFA = ("trn2-ultraserver", "stated.efa.bandwidth")


def of_server(graph: Graph | None = None, part: str = "peak.dense.bf16", server: str = "trn1.32xlarge") -> Term:
    graph = graph or bare()
    chip = graph.named(server).spec.chips.chip.name
    return term(graph, (chip, part), (server, "chips.count"))


def of_ultraserver(graph: Graph | None = None, part: str = "peak.dense.bf16") -> Term:
    counts = (("trn2-ultraserver", "servers.count"), ("trn2u.48xlarge", "chips.count"))
    return term(graph or bare(), ("trainium2", part), *counts)


def efa() -> Term:
    return term(bare(), ("trn2u.48xlarge", "efa.bandwidth"), ("trn2-ultraserver", "servers.count"))


# Rounding and truncation.


@pytest.mark.parametrize(
    ("printed", "wanted", "digits"),
    [
        ("190 TFLOPS", "194 TFLOPS", "2 digits"),
        ("200 TFLOPS", "194 TFLOPS", "1 digit"),
        ("3,000 x", "3,040 x", "1 digit"),
    ],
)
def test_zeros_that_may_be_no_digits(printed, wanted, digits):
    assert f"only {digits} of {printed} " in causes(printed, wanted)["rounding"]


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [("190 TFLOPS", "210 TFLOPS"), ("190 TFLOPS", "196 TFLOPS"), ("194 TFLOPS", "190 TFLOPS"), ("200.0 x", "202 x")],
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
    told = causes("3,200 TFLOPS", "3,280 TFLOPS")

    assert "truncation to 3,200 TFLOPS: the digits after its first 2 were cut off" == told["truncation"]
    assert "rounding" not in told


def test_a_rounded_total_of_rounded_groups():
    """4 x 10.7 PFLOPS is printed where 64 x 667 TFLOPS are 42.69."""
    told = causes("42.8 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert {"chained-rounding"} == set(told)
    assert "chained rounding: 4 x 10.7 PFLOPS, which was rounded before it was multiplied" == told["chained-rounding"]


def test_a_total_of_groups_that_were_cut_off():
    told = causes("42.4 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "chained rounding: 4 x 10.6 PFLOPS, which was cut off before it was multiplied" == told["chained-rounding"]


def test_a_total_of_rounded_parts():
    """16 x 0.8 TB/s is printed where 16 x 820 GB/s are 13.12."""
    part = of_server(part="memory.bandwidth")
    told = causes("12.8 TB/s", part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert "16 x 0.8 TB/s" in told["chained-rounding"]


@pytest.mark.parametrize("printed", ["41.5 PFLOPS", "43.3 PFLOPS", "45.1 PFLOPS"])
def test_a_total_that_no_rounding_of_its_parts_gives(printed):
    told = causes(printed, of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "chained-rounding" not in told


# Units.


@pytest.mark.parametrize(
    ("printed", "wanted", "id", "meant"),
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
    ],
)
def test_another_unit_was_meant(printed, wanted, id, meant):
    assert f"{meant} was meant" in causes(printed, wanted)[id]


@pytest.mark.parametrize(
    ("printed", "wanted", "id"),
    [
        ("820 GiB/s", "830 GB/s", "decimal-unit"),
        ("820 Gbit/s", "820 MB/s", "bit-byte"),
        ("820 Gbit/s", "820 MB/s", "prefix"),
        ("820 MB/s", "830 GB/s", "prefix"),
        ("1 bit", "1 KiB", "decimal-unit"),
        ("512 MB", "512 GB", "decimal-unit"),
    ],
)
def test_no_other_unit_was_meant(printed, wanted, id):
    assert id not in causes(printed, wanted)


def test_a_decimal_and_a_binary_unit_are_told_apart_by_precision():
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
    ],
)
def test_one_digit_differs(printed, wanted, meant):
    assert f"one digit differs from {meant}" == causes(printed, wanted)["one-digit"]


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [("210 x", "190 x"), ("658 x", "677 x"), ("9 x", "4 x"), ("1,536 x", "536 x"), ("28.1 x", "21.02 x"), ("668 x", "666 x")],
)
def test_more_or_less_than_one_digit_differs(printed, wanted):
    assert ("668 x" == printed) == ("one-digit" in causes(printed, wanted))
    assert "swapped-digits" not in causes(printed, wanted)


@pytest.mark.parametrize(
    ("printed", "wanted", "meant"),
    [
        ("1,356 GiB", "1,536 GiB", "1,536 GiB"),
        ("3,400 TFLOPS", "3,040 TFLOPS", "3,040 TFLOPS"),
        ("2.09 x", "2.90 x", "2.9x"),
    ],
)
def test_two_digits_are_swapped(printed, wanted, meant):
    told = causes(printed, wanted)

    assert f"two digits are swapped: {meant} was meant" == told["swapped-digits"]


@pytest.mark.parametrize(
    ("printed", "wanted"), [("1,635 x", "1,536 x"), ("1,653 x", "1,536 x"), ("3,410 x", "3,040 x")]
)
def test_digits_that_are_no_neighbours_are_not_swapped(printed, wanted):
    assert "swapped-digits" not in causes(printed, wanted)


# Directions.


@pytest.mark.parametrize(("printed", "id"), [("512 GB/s", "one-direction"), ("2,048 GB/s", "both-directions")])
def test_directions(printed, id):
    assert {id} == set(causes(printed, "1,024 GB/s", at=BANDWIDTH))


@pytest.mark.parametrize("printed", ["520 GB/s", "2,000.0 GB/s", "256 GB/s"])
def test_not_a_direction(printed):
    assert not {"one-direction", "both-directions"} & set(causes(printed, "1,024 GB/s", at=BANDWIDTH))


@pytest.mark.parametrize("at", [("trainium1", "memory.bandwidth"), PEAK, ("trn1.32xlarge", "stated.memory.bandwidth")])
def test_memory_and_rates_have_no_directions(at):
    assert not {"one-direction", "both-directions"} & set(causes("410 GB/s", "820 GB/s", at=at))


# Parts, wholes and counts.


def test_the_figure_of_one_part():
    told = causes("3,200 Gbps", efa().interval, at=ULTRA_EFA, terms=[efa()])

    assert "the figure of one part, 3,200 Gbps, stands for the whole" == told["part-for-whole"]


def test_the_figure_of_one_group():
    told = causes("10.7 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "the figure of one group, 16 x 667 TFLOPS, stands for the whole" == told["part-for-whole"]


def test_one_part_by_two_relations_is_told_once():
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

    assert 1 == sum(e.id == "part-for-whole" for e in tried(case))


@pytest.mark.parametrize("printed", ["667 GFLOPS", "3 PFLOPS", "21.3 PFLOPS"])
def test_not_the_figure_of_a_part(printed):
    told = causes(printed, of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "part-for-whole" not in told


def test_a_part_is_not_named_where_its_total_would_not_do_either():
    """A part whose total disagrees with another relation explains nothing."""
    told = causes("3,200 Gbps", efa().interval, "14,000 Gbps", at=ULTRA_EFA, terms=[efa()])

    assert {} == told


def test_the_total_stands_for_one_part():
    share = (Fraction(16), parse("3,040 TFLOPS"))
    told = causes("3,040 TFLOPS", interval("3,040 TFLOPS").scaled(Fraction(1, 16)), at=PEAK, shares=[share])

    assert "the total, 3,040 TFLOPS, stands for one part" == told["whole-for-part"]


@pytest.mark.parametrize(("printed", "share"), [("3,400 TFLOPS", 16), ("3,040 TFLOPS", 8)])
def test_not_the_total(printed, share):
    shares = [(Fraction(share), parse("3,040 TFLOPS"))]
    told = causes(printed, interval("190 TFLOPS"), at=PEAK, shares=shares)

    assert "whole-for-part" not in told


def test_a_wrong_count():
    """12 chips were counted where there are 16; 9.84 is printed with two digits."""
    part = of_server(part="memory.bandwidth")
    told = causes("9.8 TB/s", part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert {"wrong-count": "a wrong count: 9.8 TB/s is 12 x 820 GB/s, not 16 x"} == told


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("3,100 TFLOPS", "no multiple"),
        ("2.09 PFLOPS", "nearly a multiple"),
        ("190 TFLOPS", "one part"),
    ],
)
def test_no_wrong_count(printed, why):
    told = causes(printed, of_server().interval, at=SERVER_PEAK, terms=[of_server()])
    expected = why == "nearly a multiple"

    assert expected == ("wrong-count" in told)


def test_a_coarse_total_is_no_multiple():
    """20 PFLOPS of parts of 0.667 PFLOPS could be 30 of them, but one digit shows nothing."""
    told = causes("30 PFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert "wrong-count" not in told


def test_the_figure_of_a_group_is_no_wrong_count():
    told = causes("10,672 TFLOPS", of_ultraserver().interval, at=ULTRA_PEAK, terms=[of_ultraserver()])

    assert {"part-for-whole"} == set(told)


def test_a_part_of_another_dimension_is_no_part():
    """The clock of a tensor engine is multiplied to its rate, but no rate is a copy of a clock."""
    counts = (("neuroncore-v3", "engines.tensor.array.rows"), ("neuroncore-v3", "engines.tensor.array.columns"))
    clock = term(bare(), ("neuroncore-v3", "engines.tensor.clock"), *counts, factor=2)
    told = causes("2.4 GFLOPS", clock.interval, at=("neuroncore-v3", "engines.tensor.peak.dense.bf16"), terms=[clock])

    assert {} == told


# The figures of others.


def test_the_dense_rate_stands_for_the_sparse_one():
    told = causes("667 TFLOPS", "2,563 TFLOPS", at=("trainium2", "peak.sparse.bf16"), graph=bare())

    assert "the dense rate of bf16 stands here: 667 TFLOPS" == told["dense-sparse"]


def test_the_sparse_total_stands_for_the_dense_one():
    part = of_server(server="trn2.48xlarge")
    site = sites(bare(), "trn2.48xlarge", "stated.peak.dense.bf16")[0]
    told = tried(Case(site, parse("41.0 PFLOPS"), (part.interval,), (part,), (), bare()))

    assert [Explanation("dense-sparse", "the sparse rate of bf16 stands here: 16 x 2,563 TFLOPS")] == told


def test_the_sparse_rate_of_another_type_is_not_named():
    """Four types share the sparse rate; only that of the same type is told."""
    told = [
        e
        for e in tried(_case(bare(), ("trainium2", "peak.dense.bf16"), "2,563 TFLOPS", "667 TFLOPS"))
        if e.id == "dense-sparse"
    ]

    assert [Explanation("dense-sparse", "the sparse rate of bf16 stands here: 2,563 TFLOPS")] == told


def _case(graph: Graph, at: tuple[str, str], printed: str, *wanted: str, **more: tuple[Term, ...]) -> Case:
    expected = tuple(parse(w).interval for w in wanted)
    return Case(sites(graph, *at)[0], parse(printed), expected, more.get("terms", ()), (), graph)


def test_memory_has_no_sparse_rate():
    """Host memory in the column of device memory is another row, not another kind of rate."""
    told = causes("8,192 GiB", "6,144 GiB", at=("trn2-ultraserver", "stated.memory.capacity"), graph=bare())

    assert "dense-sparse" not in told
    assert "the figure of stated.host.memory stands here: 8,192 GiB" == told["swapped-row"]


def test_the_figure_of_another_row():
    told = causes("47.5 TFLOPS", "190 TFLOPS", at=PEAK, graph=bare())

    assert "the figure of fp32 stands here: 47.5 TFLOPS" == told["swapped-row"]


def test_rows_that_share_a_figure_are_told_together():
    told = [e.sentence for e in tried(_case(bare(), FP32, "190 TFLOPS", "47.5 TFLOPS")) if e.id == "swapped-row"]

    assert ["the figure of tf32 and 3 others stands here: 190 TFLOPS"] == told


@pytest.mark.parametrize("printed", ["100 TFLOPS", "380 GFLOPS"])
def test_no_other_row(printed):
    assert not {"swapped-row", "dense-sparse", "neighbour"} & set(causes(printed, "190 TFLOPS", at=PEAK, graph=bare()))


def test_the_tensor_engines_alone():
    told = causes("629.1 TFLOPS", "667 TFLOPS", at=("trainium2", "peak.dense.bf16"), graph=bare())

    assert "the rate of the tensor engines alone stands here: 629.1 TFLOPS" == told["tensor-engine"]


def test_all_engines_where_the_tensor_engines_belong():
    told = causes("667 TFLOPS", "629.1 TFLOPS", at=("trainium2", "tensor_peak.dense.bf16"), graph=bare())

    assert "the rate of all engines together stands here: 667 TFLOPS" == told["tensor-engine"]


def test_a_total_of_the_tensor_engines_alone():
    part = of_server(server="trn2.48xlarge")
    told = causes(
        "10,066 TFLOPS", part.interval, at=("trn2.48xlarge", "stated.peak.dense.bf16"), terms=[part], graph=bare()
    )

    assert "the rate of the tensor engines alone stands here: 16 x 629.1 TFLOPS" == told["tensor-engine"]


def test_tensor_engines_of_another_type_are_not_named():
    told = causes("629.1 TFLOPS", "181 TFLOPS", at=("trainium2", "peak.dense.fp32"), graph=bare())

    assert "tensor-engine" not in told


def test_an_older_claim():
    graph = claim(bare(), "trainium1", "spec.peak.dense.bf16", "210 TFLOPS", verdict="superseded", reason="Lowered.")
    told = causes("210 TFLOPS", "190 TFLOPS", at=sites(graph, *PEAK)[0], graph=graph)

    assert "what neuron-trn1-2023-02 says of peak.dense.bf16 (superseded): 210 TFLOPS" == told["older-claim"]


def test_sources_that_print_the_same_are_told_together():
    graph = bare()
    for source in ("neuron-trn1-2023-02", "neuron-trn1-2022-10", "neuron-trainium-2023-04"):
        graph = claim(graph, "trainium1", "spec.peak.dense.bf16", "210 TFLOPS", source=source, verdict="superseded")
    told = causes("210 TFLOPS", "190 TFLOPS", at=sites(graph, *PEAK)[0], graph=graph)

    expected = "what neuron-trn1-2023-02 and 2 others say of peak.dense.bf16 (superseded): 210 TFLOPS"
    assert expected == told["older-claim"]


def test_a_claim_does_not_explain_itself():
    """The only source of a figure is no explanation of it."""
    graph = claim(bare(), "trainium1", "spec.peak.dense.bf16", "210 TFLOPS")
    index = len(graph.named("trainium1").claims) - 1
    own = Site(graph.named("trainium1"), sites(graph, *PEAK)[0].path, index)
    relation = Relation(own, (Term((), sites(graph, *PEAK)[0]),), "another source")
    (suspect,) = suspects([relation])

    assert own.key == suspect.site.key
    assert [] == explain(suspect, graph)


def test_a_claim_on_another_figure_is_no_older_claim():
    graph = claim(bare(), "trainium1", "spec.peak.dense.int8", "420 TOPS")
    told = causes("420 TFLOPS", "190 TFLOPS", at=sites(graph, *PEAK)[0], graph=graph)

    assert "older-claim" not in told


def test_the_total_of_an_older_claim():
    """16 x 210 TFLOPS is printed where the chip has 190 by now."""
    graph = claim(bare(), "trainium1", "spec.peak.dense.bf16", "210 TFLOPS", verdict="superseded", reason="Lowered.")
    part = of_server(graph)
    told = causes("3,360 TFLOPS", part.interval, at=sites(graph, *SERVER_PEAK)[0], terms=[part], graph=graph)

    assert "older-claim" in told
    assert told["older-claim"].endswith(": 16 x 210 TFLOPS")


def test_a_neighbouring_generation():
    told = causes("190 TFLOPS", "667 TFLOPS", at=("trainium2", "peak.dense.bf16"), graph=bare())

    assert "the figure of trainium1 stands here: 190 TFLOPS" == told["neighbour"]


def test_no_neighbour_has_it():
    told = causes("200.0 TFLOPS", "667 TFLOPS", at=("trainium2", "peak.dense.bf16"), graph=bare())

    assert "neighbour" not in told


def test_a_neighbour_that_would_be_right_explains_nothing():
    """trn2u.48xlarge has the same EFA as trn2.48xlarge: that it does is no reason for another figure."""
    told = causes("3,100 Gbps", "3,200 Gbps", at=("trn2.48xlarge", "efa.bandwidth"), graph=bare())

    assert "neighbour" not in told


# How they are told.


def test_no_gap_needs_no_explanation():
    assert {} == causes("190 TFLOPS", "190 TFLOPS", at=PEAK, graph=bare())
    assert {} == causes("1 TB/s", "820 GB/s", at=("trainium1", "dma.bandwidth"), graph=bare())


def test_nothing_is_explained_where_nothing_is_expected():
    assert {} == causes("190 TFLOPS", at=PEAK, graph=bare())


def test_all_that_is_expected_must_be_met():
    assert {"decimal-unit"} == set(causes("820 GiB/s", "820 GB/s", "0.82 TB/s"))
    assert {} == causes("820 GiB/s", "820 GB/s", "900 GB/s")


def test_a_bound_is_a_figure_too():
    """A bound admits everything below it, but it is a copy of one part only if it prints the part's digits."""
    told = causes("up to 3,200 Gbps", efa().interval, at=ULTRA_EFA, terms=[efa()])
    other = causes("up to 9,000 Gbps", efa().interval, at=ULTRA_EFA, terms=[efa()])

    assert "part-for-whole" in told
    assert "part-for-whole" not in other


ONE, TWO, THREE, FOUR = (Explanation(w, w) for w in ("one", "two", "three", "four"))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([], "none of the usual causes closes the gap"),
        ([ONE], "likely cause: one"),
        ([ONE, TWO], "several causes would close the gap: one; or two"),
        ([ONE, TWO, THREE, FOUR], "several causes would close the gap: one; or two; or three; and 1 more"),
    ],
)
def test_the_sentence(found, told):
    assert told == sentence(found)


# Counts.


def test_a_count_that_closes_every_gap():
    graph = put(bare(), "trn1.32xlarge", "chips.count", 12)
    (suspect,) = suspects(relations(graph))

    assert ("trn1.32xlarge", ("spec", "chips", "count"), None) == suspect.site.key
    assert [Explanation("wrong-count", "a wrong count: 16 closes every gap")] == explain(suspect, graph)


def test_coarse_totals_leave_several_counts():
    graph = put(put(bare(), "trn1.32xlarge", "chips.count", 3), "trainium1", "peak.dense.bf16", "2 TFLOPS")
    total = sites(put(graph, "trn1.32xlarge", "stated.peak.dense.bf16", "30 TFLOPS"), *SERVER_PEAK)[0]
    relation = Relation(total, (of_server(graph),), "chips of a server")
    (suspect,) = suspects([relation, Relation(total, (of_server(graph),), "once more")])
    counted = attrs.evolve(suspect, site=sites(graph, "trn1.32xlarge", "chips.count")[0])

    expected = "a wrong count: any from 12 to 20 would close every gap"
    assert [Explanation("wrong-count", expected)] == explain(counted, graph)


def test_no_whole_number_is_no_count():
    total = sites(put(bare(), "trn1.32xlarge", "stated.peak.dense.bf16", "3,135.0 TFLOPS"), *SERVER_PEAK)[0]
    (suspect,) = suspects([Relation(total, (of_server(),), "chips of a server")])
    counted = attrs.evolve(suspect, site=sites(bare(), "trn1.32xlarge", "chips.count")[0])

    assert [] == explain(counted, bare())


# What was found in the published pages.


def gap(graph: Graph, name: str, at: str) -> set[str]:
    """The explanations of whatever is wrong at a place of a graph: its figure, or its newest claim."""
    found = [
        s for s in suspects(relations(graph)) if s.site.node.name == name and s.site.path[1:] == tuple(at.split("."))
    ]
    assert len(found) == 1
    return {e.id for e in explain(found[0], graph)}


@pytest.mark.parametrize(
    ("name", "at", "says", "expected"),
    [
        pytest.param("trainium1", "peak.dense.bf16", "210 TFLOPS", {"older-claim"}, id="A1"),
        pytest.param("trainium1", "peak.dense.fp32", "52.5 TFLOPS", {"older-claim"}, id="A2"),
        pytest.param("trn1.32xlarge", "stated.peak.dense.bf16", "3,360 TFLOPS", {"older-claim"}, id="A4"),
        pytest.param("trn1.32xlarge", "stated.peak.dense.fp32", "840 TFLOPS", {"older-claim"}, id="A4 FP32"),
        pytest.param("trainium1", "memory.bandwidth", "820 GiB/s", {"decimal-unit", "older-claim"}, id="A5"),
        pytest.param("trainium1", "memory.capacity", "32 GB", {"decimal-unit", "older-claim"}, id="A7"),
        pytest.param("trn1.32xlarge", "stated.memory.capacity", "512 GB", {"decimal-unit"}, id="A7 server"),
        pytest.param(
            "trn3-gen1-ultraserver", "fabric.bandwidth", "2,048 GiB/s", {"decimal-unit", "older-claim"}, id="A14"
        ),
        pytest.param(
            "trn2.48xlarge", "stated.peak.dense.fp8", "20 PFLOPS", {"truncation", "older-claim"}, id="A21 FP8"
        ),
        pytest.param(
            "trn2.48xlarge", "stated.peak.dense.bf16", "10 PFLOPS", {"truncation", "older-claim"}, id="A21 BF16"
        ),
        pytest.param(
            "trn2.48xlarge", "stated.peak.sparse.bf16", "40 PFLOPS", {"truncation", "older-claim"}, id="A21 sparse"
        ),
    ],
)
def test_a_published_figure_as_one_more_claim(name, at, says, expected):
    """The figure is claimed without a verdict, beside what the catalog records of it already."""
    graph = claim(shipped(), name, f"spec.{at}", says, source="glennklockwood-trainium2")

    assert expected <= gap(graph, name, at)


@pytest.mark.parametrize(
    ("name", "at", "says", "expected"),
    [
        pytest.param("trn1.32xlarge", "stated.memory.bandwidth", "13,120 GiB/sec", {"decimal-unit"}, id="A6"),
        pytest.param("trn2-ultraserver", "stated.efa.bandwidth", "3,200 Gbps", {"part-for-whole"}, id="A11"),
        pytest.param(
            "trn3-gen2-ultraserver", "stated.memory.capacity", "20 TB", {"decimal-unit", "rounding"}, id="A13"
        ),
        pytest.param("trn2-ultraserver", "stated.peak.dense.bf16", "42.8 PFLOPS", {"chained-rounding"}, id="B30"),
        pytest.param("trn2-ultraserver", "stated.peak.dense.bf16", "40 PFLOPS", {"chained-rounding"}, id="A21 four"),
        pytest.param(
            "trn2-ultraserver", "stated.peak.dense.fp8", "80 PFLOPS", {"chained-rounding"}, id="A21 four, FP8"
        ),
    ],
)
def test_a_published_total_against_its_parts(name, at, says, expected):
    """The figure stands as adopted, without any claims that could tell on it."""
    graph = bare()
    steps = at.split(".")
    if graph.named(name).spec.stated is None or _missing(graph, name, steps):
        graph = claim(graph, name, f"spec.{at}", says)
    else:
        graph = put(graph, name, at, says)

    assert expected <= gap(graph, name, at)


def _missing(graph: Graph, name: str, steps: list[str]) -> bool:
    value = graph.named(name).spec
    for step in steps:
        value = getattr(value, step, None)
    return value is None


def test_a3_47_for_47_5():
    """47.5 rounds to 48, so 47 was cut off; that the two intervals overlap all the same is not the reason."""
    assert {"truncation"} == set(causes("47 TFLOPS", "47.5 TFLOPS", at=FP32, graph=bare()))
    assert {"truncation"} == set(causes("~47 TFLOPS", "47.5 TFLOPS", at=FP32, graph=bare()))


def test_a12_efa_per_chip():
    """50 Gbps a chip is a quarter of 200: the UltraServer's figure is that of one server of four."""
    by_chip = efa().interval.scaled(Fraction(1, 64))

    assert not by_chip.overlaps(interval("3,200 Gbps").scaled(Fraction(1, 64)))
    assert by_chip.overlaps(interval("200 Gbps"))


def test_a18_hosts_do_not_scale_with_chips():
    """12 and 16 vCPUs, 128 and 192 GiB a chip: no relation forces them to be equal, so nothing is to be explained."""
    totals = {r.total.path[2:] for r in relations(shipped()) if r.level.startswith("chips of")}

    assert not [path for path in totals if "host" in path]


@pytest.mark.parametrize(("over", "ratio"), [("dense.bf16", "3.84x"), ("dense.fp8", "1.97x")])
def test_a19_one_sparse_figure_over_two_dense_ones(over, ratio):
    """Sparsity gives four times the 16-bit rate and twice that of FP8; both are far from rounding of each other."""
    sparse, dense = sites(bare(), "trainium2", "peak.sparse.bf16", f"peak.{over}")

    assert sparse.interval.ratio(dense.interval).overlaps(parse(ratio).interval)


def test_a20_fp32_is_no_quarter_of_bf16():
    """181 is no rounding of 667 / 4, and none of the usual causes makes it one."""
    quarter = interval("667 TFLOPS").scaled(Fraction(1, 4))

    assert {} == causes("181 TFLOPS", quarter, at=("trainium2", "peak.dense.fp32"), graph=bare())


def test_a22_a_word_is_no_figure():
    """ "Yes" and "N/A" in a column of figures take part in no relation."""
    graph = claim(shipped(), "trn1.32xlarge", "spec.fabric.bandwidth", "Yes")

    assert [] == suspects(relations(graph))


def test_a28_one_digit_overlaps_with_nearly_anything():
    """1 TB/s of DMA is [0.5, 1.5): neither 0.82 nor 0.87 needs an explanation."""
    assert {} == causes("1 TB/s", "820 GB/s", "0.87 TB/s", at=("trainium1", "dma.bandwidth"), graph=bare())


# Whatever is told is true.

UNITS = ["TFLOPS", "GFLOPS", "PFLOPS"]


@st.composite
def totals(draw):
    """A total of groups of parts, with what may have been printed of it and how."""
    servers, chips = draw(st.sampled_from([(1, 16), (4, 16), (36, 4), (2, 8), (1, 1)]))
    part = parse(f"{draw(st.integers(10, 9999)) / draw(st.sampled_from([1, 10, 100])):,} TFLOPS")
    right = part.value * servers * chips
    how = draw(
        st.sampled_from(
            ["noise", "cut", "loose", "part", "group", "chain", "prefix", "point", "count", "digit", "swap"]
        )
    )
    digits = draw(st.integers(2, 5))
    unit = draw(st.sampled_from(UNITS))
    text = render(right, unit, digits)
    if how == "noise":
        text = render(right * draw(st.fractions(Fraction(1, 30), 30, max_denominator=50)), unit, digits)
    elif how == "cut":
        step = Fraction(10) ** draw(st.integers(10, 15))
        text = render(right // step * step, unit, 6)
    elif how == "loose":
        text = render(right, unit, 1)
    elif how == "part":
        text = render(part.value, unit, digits)
    elif how == "group":
        text = render(part.value * chips, unit, digits)
    elif how == "chain":
        text = render(parse(render(part.value * chips, "PFLOPS", draw(st.integers(1, 4)))).value * servers, unit, 6)
    elif how == "prefix":
        text = text.replace(unit, draw(st.sampled_from(UNITS)))
    elif how == "point":
        text = render(right * draw(st.sampled_from([10, Fraction(1, 10)])), unit, digits)
    elif how == "count":
        text = render(part.value * draw(st.integers(1, 150)), unit, digits)
    elif how in ("digit", "swap"):
        places = [i for i, c in enumerate(text) if c.isdigit()]
        at = draw(st.integers(0, len(places) - 1))
        chars = list(text)
        if how == "digit":
            chars[places[at]] = draw(st.sampled_from("123456789"))
        else:
            other = places[max(at - 1, 0)]
            chars[places[at]], chars[other] = chars[other], chars[places[at]]
        text = "".join(chars)
    return servers, chips, part.text, text, how


def world(servers: int, chips: int, part: str) -> tuple[Site, Term]:
    """An UltraServer of so many servers of so many chips, and nothing else."""
    graph = Graph({n: bare().named(n) for n in ("trn2-ultraserver", "trn2u.48xlarge", "trainium2")})
    graph = put(graph, "trn2-ultraserver", "servers.count", servers)
    graph = put(graph, "trn2u.48xlarge", "chips.count", chips)
    graph = put(graph, "trainium2", "peak.dense.bf16", part)
    return sites(graph, *ULTRA_PEAK)[0], of_ultraserver(graph)


@settings(max_examples=600, deadline=None)
@given(totals())
def test_whatever_is_told_closes_the_gap(drawn):
    """Each sentence is read again, and what it says is computed by plain arithmetic on the digits."""
    servers, chips, part, text, how = drawn
    try:
        printed = parse(text)
    except ValueError:
        assume(False)
    assume(printed.value > 0)
    site, whole = world(servers, chips, part)
    one = parse(part)
    half = one.ulp * one.unit.factor / 2
    low, high = ((one.value + sign * half) * servers * chips for sign in (-1, 1))
    case = Case(site, printed, (Interval(low, high),), (whole,), (), Graph({}))
    told = tried(case)
    ulp = printed.ulp * printed.unit.factor
    mine = (printed.value - ulp / 2, printed.value + ulp / 2)

    def meet(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> bool:
        return a[0] < b[1] and b[0] < a[1]

    overlap = meet(mine, (low, high))
    for found in told:
        assert not overlap or found.id == "truncation"
        check = CHECKS[found.id]
        assert check(found.sentence, printed, mine, (low, high), (servers, chips, one.value), meet), (found, drawn)
    if how == "group" and not overlap and one.value * chips == printed.value and servers > 1:
        assert "part-for-whole" in {e.id for e in told}
    near = [Fraction(1000) ** power for power in (-2, -1, 1, 2)]
    if how == "prefix" and not overlap and any(meet(_stretched(mine, printed, n), (low, high)) for n in near):
        assert "prefix" in {e.id for e in told}


def _stretched(mine, printed, factor):
    return (mine[0] * factor, mine[1] * factor)


def _rounding(sentence, printed, mine, wanted, parts, meet):
    zeros = len(printed.text.split()[0].replace(",", "")) - len(printed.text.split()[0].replace(",", "").rstrip("0"))
    ulp = printed.ulp * printed.unit.factor * (10**zeros if "." not in printed.text else 1)
    loose = (printed.value - ulp / 2, printed.value + ulp / 2)
    return meet(loose, wanted) or mine[0] == wanted[1] or mine[1] == wanted[0]


def _truncation(sentence, printed, mine, wanted, parts, meet):
    zeros = printed.digits - printed.min_digits if "first" in sentence else 0
    step = printed.ulp * printed.unit.factor * 10**zeros
    lowest = max(wanted[0], printed.value)
    return lowest < wanted[1] and lowest // step * step == printed.value


def _chained(sentence, printed, mine, wanted, parts, meet):
    outer, cut = re.match(r"chained rounding: (\d+) x (.*), which", sentence).groups()
    servers, chips, one = parts
    group = servers * chips * one / int(outer)
    near = abs(parse(cut).value - group) <= 10 * parse(cut).ulp * parse(cut).unit.factor * 10 ** (
        parse(cut).digits - parse(cut).min_digits
    )
    return int(outer) in (servers, servers * chips) and near and mine[0] <= int(outer) * parse(cut).value < mine[1]


def _prefix(sentence, printed, mine, wanted, parts, meet):
    meant = parse(re.search(r": (.*) was meant", sentence)[1])
    return meant.number == printed.number and meet(_stretched(mine, printed, meant.value / printed.value), wanted)


def _point(sentence, printed, mine, wanted, parts, meet):
    return meet(_stretched(mine, printed, 10 if "left" in sentence else Fraction(1, 10)), wanted)


def _part(sentence, printed, mine, wanted, parts, meet):
    servers, chips, one = parts
    share = servers * chips if "one part" in sentence else servers
    return share > 1 and meet(_stretched(mine, printed, share), wanted)


def _count(sentence, printed, mine, wanted, parts, meet):
    times = int(re.search(r" is (\d+) x ", sentence)[1])
    servers, chips, one = parts
    return times != servers * chips and mine[0] <= times * one < mine[1]


def _digits(sentence, printed, mine, wanted, parts, meet):
    meant = parse(re.search(r"(?:from|swapped:) (.*?)(?: was meant)?$", sentence)[1])
    ulp = printed.ulp * printed.unit.factor
    a, b = str(int(printed.value / ulp)), str(int(meant.value / ulp))
    differing = [i for i in range(len(a)) if a[i] != b[i]]
    alike = len(a) == len(b) and (len(differing) == 1 or (len(differing) == 2 and sorted(a) == sorted(b)))
    return alike and meet((meant.value - ulp / 2, meant.value + ulp / 2), wanted)


def _other(sentence, printed, mine, wanted, parts, meet):
    times, text = re.search(r": (?:(\d+) x )?([^:]*)$", sentence).groups()
    figure, times = parse(text), int(times or 1)
    half = figure.ulp * figure.unit.factor / 2
    theirs = ((figure.value - half) * times, (figure.value + half) * times)
    return times in (1, parts[0] * parts[1]) and meet(theirs, mine) and not meet(theirs, wanted)


CHECKS = {
    "swapped-row": _other,
    "dense-sparse": _other,
    "tensor-engine": _other,
    "rounding": _rounding,
    "truncation": _truncation,
    "chained-rounding": _chained,
    "prefix": _prefix,
    "decimal-point": _point,
    "part-for-whole": _part,
    "wrong-count": _count,
    "one-digit": _digits,
    "swapped-digits": _digits,
}

SIZES = ["B", "bit", "KiB", "kB", "GB", "GiB", "Gbit", "Gibit", "TB", "TiB"]


@given(st.integers(1, 9999), st.sampled_from(SIZES), st.sampled_from(SIZES))
def test_a_unit_is_named_only_if_it_closes_the_gap(value, printed, meant):
    """The figure in the named unit overlaps with what was meant; the right unit is among those that are named."""
    text, right = f"{value} {printed}", f"{value} {meant}"
    told = causes(text, right)
    named = {re.search(r": (.*) was meant", told[i])[1] for i in ("decimal-unit", "bit-byte", "prefix") if i in told}

    assert all(parse(n).interval.overlaps(parse(right).interval) for n in named)
    if not parse(text).interval.overlaps(parse(right).interval) and value >= 100 and _one_slip(printed, meant):
        assert right in named


def _one_slip(a: str, b: str) -> bool:
    (x, i, p), (y, j, q) = (re.fullmatch(r"([kKGT]?)(i?)(B|bit)", u).groups() for u in (a, b))
    letter, binary, root = x.upper() != y.upper(), i != j, p != q
    return root + (letter or binary) == 1 if letter or root else binary
