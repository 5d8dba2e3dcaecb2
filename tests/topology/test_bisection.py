"""Cuts into halves: the search against all cuts, and when a bound is met."""

import random

import pytest

from trnspec.topology.bisection import ALL_CUTS_UP_TO, bisection, is_met
from trnspec.topology.fabric import Edge, FabricGraph


def drawn(chips: int, seed: int) -> FabricGraph:
    """A ring with one more link a chip, each of another rate."""
    draw = random.Random(seed)
    ring = [(chip, (chip + 1) % chips) for chip in range(chips)]
    more = [(chip, (chip + draw.randrange(2, chips - 1)) % chips) for chip in range(chips)]
    return FabricGraph(chips, tuple(Edge(a, b, float(draw.randrange(1, 20))) for a, b in [*ring, *more]))


@pytest.mark.parametrize(
    ("bound", "links", "rate", "by", "met"),
    [
        (7.1, 8, 0.0, "links", True), (7.0, 8, 0.0, "links", False), (8.0, 8, 0.0, "links", True), (8 + 1e-9, 8, 0.0, "links", True),
        (8 + 1e-9, 9, 0.0, "links", False), (1e12, 0, 1e12, "rate", True), (1e12 * (1 - 5e-9), 0, 1e12, "rate", False),
        (1e12 * (1 - 5e-10), 0, 1e12, "rate", True), (2.0, 0, 1.0, "rate", True), (8.0, 9, 8.0, "rate", True),
    ],
)  # fmt: skip
def test_bound_is_met(bound, links, rate, by, met) -> None:
    assert met is is_met(bound, links, rate, by)


@pytest.mark.parametrize("by", ["links", "rate"])
@pytest.mark.parametrize("seed", range(6))
def test_search_finds_the_best_of_all_cuts(by, seed, monkeypatch) -> None:
    fabric = drawn(ALL_CUTS_UP_TO - 2, seed)
    exact = bisection(fabric, by)
    monkeypatch.setattr("trnspec.topology.bisection.ALL_CUTS_UP_TO", 0)
    searched = bisection(fabric, by)

    assert ("all cuts", "local search") == (exact.method, searched.method)
    assert (exact.links, exact.rate) == (searched.links, searched.rate)


def test_widths_of_large_fabrics() -> None:
    """No narrower cut is known; a search that finds a wider one is worse."""
    fabrics = [drawn(64, seed) for seed in range(6)]

    assert [23, 22, 20, 23, 21, 20] == [bisection(fabric, "links").links for fabric in fabrics]
    assert [154, 186, 145, 193, 172, 144] == [bisection(fabric, "rate").rate for fabric in fabrics]
