"""Hamiltonian rings without a common link."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trnspec.topology.fabric import Edge, FabricGraph
from trnspec.topology.rings import hamiltonian_rings
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Mesh, Ring, Shape, Single, Torus
from trnspec.topology.switched import Switched, SwitchLevel


def check(fabric: FabricGraph, rings: tuple[tuple[int, ...], ...]) -> None:
    """Every ring passes each chip once over links that no other ring uses."""
    used = [tuple(sorted(pair)) for ring in rings for pair in zip(ring, (*ring[1:], ring[0]), strict=True)]
    assert all(sorted(ring) == [*range(fabric.nodes)] for ring in rings)
    assert not Counter(used) - Counter((e.a, e.b) for e in fabric.edges)


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        (Torus((4, 4)), 2), (Torus((4, 4, 4)), 3), (Torus((8, 8)), 2), (Torus((3, 5)), 2), (Torus((2, 4)), 1),
        (Ring(12), 1), (Chain(6), 0), (Single(), 0), (Ring(2), 0), (Hypercube(4), 2), (Hypercube(5), 2),
        (Mesh((4, 4)), 1), (Mesh((3, 4)), 1), (Mesh((3, 3)), 0), (FullyConnected(4), 1), (FullyConnected(7), 3),
        (FullyConnected(8), 3), (Switched(8, (SwitchLevel(8),)), 0),
    ],
    ids=str,
)  # fmt: skip
def test_ring_count(shape: Shape, count: int) -> None:
    fabric = shape.build()
    found = hamiltonian_rings(fabric)
    assert count == len(found)
    check(fabric, found)


def test_no_ring_is_proven_by_search() -> None:
    """The Petersen graph is regular and has no Hamiltonian ring, which only a search can tell."""
    outer = [Edge(k, (k + 1) % 5) for k in range(5)]
    inner = [Edge(5 + k, 5 + (k + 2) % 5) for k in range(5)]
    fabric = FabricGraph(10, (*outer, *inner, *(Edge(k, k + 5) for k in range(5))))
    assert hamiltonian_rings(fabric) == ()


def test_a_bridge_is_used_once() -> None:
    """Two groups of five chips, each linked to each other, and two links between them: a ring uses both."""
    groups = [Edge(k + a, k + b) for k in (0, 5) for b in range(5) for a in range(b)]
    fabric = FabricGraph(10, (*groups, Edge(0, 5), Edge(1, 6)))
    found = hamiltonian_rings(fabric)
    assert len(found) == 1
    check(fabric, found)


def test_a_later_search_finds_a_ring() -> None:
    """The first of the short searches does not end."""
    draw = random.Random(35)
    pairs = {tuple(sorted((v, draw.randrange(30)))) for v in range(30) for _ in range(2)}
    fabric = FabricGraph(30, tuple(Edge(a, b) for a, b in sorted(pairs) if a != b))
    found = hamiltonian_rings(fabric)
    assert len(found) == 1
    check(fabric, found)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(3, 6), min_size=1, max_size=3).filter(lambda d: len(d) < 3 or d[0] * d[1] * d[2] <= 80))
def test_every_torus_splits_into_rings(dims: list[int]) -> None:
    fabric = Torus(tuple(dims)).build()
    found = hamiltonian_rings(fabric)
    assert len(dims) == len(found)
    check(fabric, found)
