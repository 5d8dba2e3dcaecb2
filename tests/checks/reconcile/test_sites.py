"""trnspec.checks.reconcile.sites: what is at a site, and what a relation expects of each of its sides."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import bare, interval, put, sites, term
from trnspec.checks.reconcile.sites import PartsTerm, Relation
from trnspec.graph.graph import Graph
from trnspec.quantities.quantity import Interval, parse

SERVER = "trn1.32xlarge"


def relation(graph: Graph | None = None) -> Relation:
    graph = graph or bare()
    (total,) = sites(graph, SERVER, "stated.peak.dense.bf16")
    part = term(graph, ("trainium1", "peak.dense.bf16"), (SERVER, "chips.count"))
    return Relation(total, (part,), "chips of a server")


def links(inner: str, outer: str, total: str) -> Relation:
    """A sum of two terms."""
    graph = put(bare(), "trn2-ultraserver", "fabric.bandwidth.both", inner)
    graph = put(graph, "trn2-ultraserver", "between_servers.bandwidth.both", outer)
    graph = put(graph, "trainium2", "links.bandwidth.both", total)
    terms = tuple(
        PartsTerm((), s)
        for s in sites(graph, "trn2-ultraserver", "fabric.bandwidth.both", "between_servers.bandwidth.both")
    )
    return Relation(sites(graph, "trainium2", "links.bandwidth.both")[0], terms, "links")


def test_expected_value_of_one_term():
    found = links("1,024 GB/s", "256 GB/s", "1,280 GB/s")
    (_, inner, outer) = found.sites

    assert found.holds
    assert Interval(Fraction(1_279_500_000_000 - 256_500_000_000), Fraction(1_280_500_000_000 - 255_500_000_000)) == (
        found.expects(inner)
    )
    assert parse("256 GB/s").value in found.expects(outer)


def test_expected_values_are_not_negative():
    """The other term alone is more than the whole: no value of this one would do."""
    found = links("1,024 GB/s", "256 GB/s", "512 GB/s")
    (_, inner, outer) = found.sites

    assert not found.holds
    assert found.expects(outer) is None
    assert found.expects(inner) is not None


def test_bounds_expect_bounds():
    found = links(">= 1,024 GB/s", "256 GB/s", "1,280 GB/s")
    at_least = links("1,024 GB/s", "256 GB/s", ">= 1,280 GB/s")

    assert found.holds
    assert found.expects(found.sites[2]) is None
    assert at_least.expects(at_least.sites[1]).high is None


def test_a_relation_needs_all_its_sides_in_one_dimension():
    graph = bare()
    missing = Relation(sites(graph, "trn1.2xlarge", "fabric.bandwidth.both")[0], relation().terms, "x")
    other = Relation(sites(graph, SERVER, "fabric.bandwidth.both")[0], relation().terms, "x")
    counts = Relation(sites(graph, SERVER, "stated.cores")[0], relation().terms, "x")

    assert not missing.is_stated
    assert not other.is_stated
    assert not counts.is_stated
    assert Relation(other.total, other.terms, "x", across=True).is_stated


@given(st.integers(1, 40), st.integers(1, 9999), st.integers(1, 99_999))
def test_side_equal_to_the_expected_value_holds(count, part, total):
    """Whatever the three figures are: putting what is expected in place of one of them makes the relation hold."""
    graph = put(_few(), SERVER, "chips.count", count)
    graph = put(
        put(graph, "trainium1", "peak.dense.bf16", f"{part} GFLOPS"),
        SERVER,
        "stated.peak.dense.bf16",
        f"{total} GFLOPS",
    )
    found = relation(graph)
    of_part, of_total = found.expects(found.terms[0].part), found.expects(found.total)

    assert found.holds == of_part.overlaps(found.terms[0].part.interval)
    assert found.holds == of_total.overlaps(found.total.interval)
    assert of_part.scaled(count) == found.total.interval
    if found.holds:
        assert (
            count in found.expects(found.terms[0].counts[0])
            or Fraction(count) == found.expects(found.terms[0].counts[0]).high
        )


def _few() -> Graph:
    return Graph({n: bare().named(n) for n in (SERVER, "trainium1")})


def test_expected_value_of_each_side():
    found = relation()
    total, count, part = found.sites

    assert interval("190 TFLOPS").scaled(16) == found.expects(total)
    assert interval("3,040 TFLOPS").scaled(Fraction(1, 16)) == found.expects(part)
    assert interval("3,040 TFLOPS").ratio(interval("190 TFLOPS")) == found.expects(count)
    assert found.expects(sites(bare(), "trainium2", "cores.count")[0]) is None
