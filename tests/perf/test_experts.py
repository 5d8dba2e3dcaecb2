"""Copies of tokens on their way to experts, against a count of every choice of experts."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve

from tests.support.engine import system
from trnspec.perf.experts import byte_time, copies, exchange, reach
from trnspec.perf.lowering.machine import IDEAL, machine
from trnspec.perf.ops import power

PER_COPY, PER_NODE = 0.0, 1.0


def levels(*ranks: float) -> object:
    """A machine with a chip, a server and an UltraServer of given numbers of ranks, and a network."""
    names = ("chip", "server", "ultraserver")
    inner = tuple((name, n, 1e9, 0.0) for name, n in zip(names, ranks, strict=True))
    return machine(system((*inner, ("network", float("inf"), 1e9, 0.0)), 256), IDEAL, "bf16")


def counted(n: int, sizes: tuple[int, ...], k: int) -> tuple[list[Fraction], list[Fraction]]:
    """Copies of the token of rank 0 that each level carries, per copy and per node: the mean over all choices of k ranks.

    Per node a copy goes to each unit that is visited, to the rank with the place of the sender, and from there inside.
    """
    bounds = [1, *(min(n, size) for size in sizes), n]
    direct, handed_on = ([Fraction(0)] * (len(bounds) - 1) for _ in range(2))
    for choice in itertools.product(range(n), repeat=k):
        for i, (near, far) in enumerate(itertools.pairwise(bounds)):
            # Level i connects the units of level i - 1 within a unit of level i.
            direct[i] += sum(rank // near != 0 and rank // far == 0 for rank in choice)
            units = {rank // near for rank in choice}
            # A copy is in that unit of each larger one that has the sender's place, here the first.
            handed_on[i] += sum(unit % (far // near) != 0 for unit in units)
    return [c / n**k for c in direct], [c / n**k for c in handed_on]


@pytest.mark.parametrize("sizes", [(1, 2, 4), (2, 4, 4), (2, 2, 8), (1, 1, 1), (8, 8, 8), (1, 8, 16)])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_traffic_per_level_equals_counted_messages(sizes, k) -> None:
    links = exchange(levels(*map(float, sizes)), 8.0, 1.0)
    direct, handed_on = counted(8, sizes, k)
    for i in range(4):
        alone = evolve(links, bytes=tuple(float(i == j) for j in range(4)))

        assert byte_time(alone, float(k), PER_COPY) == pytest.approx(float(direct[i]), abs=1e-15)
        assert byte_time(alone, float(k), PER_NODE) == pytest.approx(float(handed_on[i]), abs=1e-15)


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_routing_to_some_nodes(limit) -> None:
    """The mean over all choices of nodes, and of experts among theirs; one copy for each node, and for each rank inside."""
    nodes, each, k = 4, 2, 3
    far = ranks = Fraction(0)
    for chosen in (groups := list(itertools.combinations(range(nodes), limit))):
        of_these = [node * each + i for node in chosen for i in range(each)]
        for choice in (choices := list(itertools.product(of_these, repeat=k))):
            share = Fraction(1, len(groups) * len(choices))
            far += len({rank // each for rank in choice} - {0}) * share
            ranks += len(set(choice)) * share
    unit = (("server", float(each), 1e9, 0.0), ("network", float("inf"), 1.0, 0.0))
    links = exchange(machine(system(unit, nodes * each), IDEAL, "bf16"), float(nodes * each), 1.0)
    within = reach(links, float(limit))

    assert within == limit / nodes
    assert byte_time(links, float(k), PER_NODE, within) == pytest.approx(float(far), rel=1e-12)
    assert copies(float(nodes * each), float(k), PER_NODE, within) == pytest.approx(float(ranks), rel=1e-12)
    assert byte_time(links, float(k), PER_COPY, within) == byte_time(links, float(k), PER_COPY)


@pytest.mark.parametrize("n", [0.0, 1.0, 2.0, 7.0, 8.0, 63.0])
def test_a_power_with_few_digits(n) -> None:
    base = np.array([0.0, 0.25, 0.96875, 1.0])

    assert (power(base, np.full(4, n), 6) == power(base, np.full(4, n))).all()
    assert (power(base, np.full(4, n), 6) == [power(b, n) for b in base.tolist()]).all()
    assert power(0.5, n) == 0.5**n
