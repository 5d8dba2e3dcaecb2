"""trnspec.checks.reconcile.hypotheses: each explanation where it is due, none where it is not."""

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.rules import (
    PEAK,
    SERVER_PEAK,
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
from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, _whole, explain
from trnspec.checks.reconcile.relations import relations
from trnspec.checks.reconcile.sites import Relation
from trnspec.checks.reconcile.suspects import blamed, suspects
from trnspec.graph.graph import Graph
from trnspec.model.core import Core
from trnspec.model.ref import Ref
from trnspec.quantities.quantity import Interval, parse
from trnspec.yaml import read_text

TABLE = read_text(Path(__file__).with_name("causes.yaml").read_text("utf-8"), "causes.yaml").data["causes"]
TERMS = {
    "ultraserver": of_ultraserver, "server": of_server, "efa": efa, "trn2": partial(of_server, server="trn2.48xlarge"),
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
    graph = bare() if row.get("among") == "catalog" else Graph({})
    found = causes(row["printed"], *expected, at=at, terms=terms, graph=graph)

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
    graph = put(bare(), "trainium1", "memory.bandwidth", "300 GB/s")
    part = of_server(graph, part="memory.bandwidth")
    found = causes(printed, part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

    assert (f"a wrong count: {printed} is {times} x 300 GB/s, not 16 x" in found.values()) is named


def test_a_part_of_another_dimension_is_no_part():
    """The clock of a tensor engine is multiplied to its rate, but no rate is a copy of a clock."""
    counts = (("neuroncore-v3", "engines.tensor.array.rows"), ("neuroncore-v3", "engines.tensor.array.columns"))
    clock = term(bare(), ("neuroncore-v3", "engines.tensor.clock"), *counts, factor=2)
    explanations = causes(
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
    graph = bare()
    for at, value in changes.items():
        graph = put(graph, "trainium1", at, value)
    found = [e for suspect in blamed(graph) for e in explain(suspect, graph)[:1]]

    assert {e.id == "reference" for e in found} == {sums > 0}
    words = f"neuroncore-v3 for neuroncore-v2, with which {sums} failing sums hold"
    assert not sums or {e.sentence for e in found} == {words}


@pytest.mark.parametrize(("printed", "named"), [("3.2 TB/s", False), ("3.84 TB/s", True)])
def test_parts_are_rounded_by_little_before_they_are_multiplied(printed, named):
    """16 x 0.24 TB/s is printed for 16 x 236 GB/s, but not 16 x 0.2."""
    graph = put(bare(), "trainium1", "memory.bandwidth", "236 GB/s")
    part = of_server(graph, part="memory.bandwidth")
    found = causes(printed, part.interval, at=("trn1.32xlarge", "stated.memory.bandwidth"), terms=[part])

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
    site = sites(bare(), "trainium2", "memory.bandwidth")[0]
    found = Mismatch(site, parse(text), (), (), (), Graph({})).times(factor)

    assert (Fraction(low) * 10**9, Fraction(high) * 10**9) == (found.low, found.high)


@pytest.mark.parametrize("text", ["up to 4.7 TB/s", "~4.7 TB/s", "4.7 TB/s", "0.3 TB/s", "up to 7 GB/s"])
def test_numbers_that_are_printed_so(text) -> None:
    """Half of a unit of the last digit more and less, whatever the qualifier."""
    quantity = parse(text)
    site = sites(bare(), "trainium2", "memory.bandwidth")[0]
    printed = Mismatch(site, quantity, (), (), (), Graph({})).printed

    if not text.startswith("~"):
        half = quantity.ulp * quantity.unit.factor / 2
        assert (quantity.value - half, quantity.value + half) == (printed.low, printed.high)
    else:
        assert quantity.interval == printed
