"""Closed forms against known values: golden figures, published ratios, hand-computed cases."""

import numpy as np
import pytest

import tests.perf.oracles.closed_forms as c
from trnspec.topology.shapes import Ring, Torus

MIB, GIB = 2.0**20, 2.0**30
INF = float("inf")


def near(value):
    return pytest.approx(value, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(("n", "factor"), [(8.0, 1.75), (16.0, 1.875), (64.0, 1.96875), (1.0, 0.0)])
def test_bus_factor_of_an_all_reduce(n, factor):
    assert factor == c.bus_factor("all-reduce", n)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-to-all"])
def test_bus_factor_of_one_pass(kind):
    assert 0.9375 == c.bus_factor(kind, 16.0)
    assert 0.0 == c.bus_factor(kind, 1.0)


@pytest.mark.parametrize("kind", ["broadcast", "send"])
def test_bus_factor_of_one_to_others(kind):
    assert 1.0 == c.bus_factor(kind, 16.0)


def test_ring_and_recursive_all_reduce_of_16():
    # 2 x 15 steps of 10 us, or 2 x 4; and 1.875 x 64 MiB at 50 GB/s.
    assert near(2.8165824e-3) == c.ring_all_reduce(64 * MIB, 16.0, 10e-6, 50e9)
    assert near(2.5965824e-3) == c.recursive_all_reduce(64 * MIB, 16.0, 10e-6, 50e9)


def test_a_torus_uses_all_four_links():
    rates = (128e9, 128e9)

    assert near(3.932160e-3) == c.torus_all_reduce(GIB, (4.0, 4.0), 0.0, rates)
    assert near(1.966080e-3) == c.torus_all_gather(GIB, (4.0, 4.0), 0.0, rates)
    assert near(1.966080e-3) == c.torus_reduce_scatter(GIB, (4.0, 4.0), 0.0, rates)
    assert near(c.injection_bound("all-reduce", GIB, 16.0, 4 * 128e9)) == c.torus_all_reduce(
        GIB, (4.0, 4.0), 0.0, rates
    )


def test_a_ring_of_16_one_way_and_both_ways():
    assert near(7.864320e-3) == c.bidirectional_ring_all_reduce(GIB, 16.0, 0.0, 128e9)
    assert near(15.728640e-3) == c.ring_all_reduce(GIB, 16.0, 0.0, 128e9)


@pytest.mark.parametrize(
    ("shape", "hops"), [(Ring(16), 4.0), (Torus((4, 4)), 2.0), (Torus((4, 4, 4)), 3.0), (Torus((8, 8)), 4.0)]
)
def test_mean_hops(shape, hops):
    assert hops == shape.mean_hops(self_included=True)


def test_all_to_all_is_a_half_and_a_quarter_of_the_all_gather_of_the_same_array():
    # Every rank holds a 16th of the array; a published quarter leaves out the rank's own block: V / (2 beta) in all.
    array, n, beta = GIB, 16.0, 45e9

    assert near(c.ring_all_gather(array, n, 0.0, beta) / 2) == c.ring_all_to_all(array / n, n, 0.0, beta)
    assert near(array / (2 * beta) / 4) == c.bidirectional_ring_all_to_all(array / n, n, 0.0, beta)


def test_published_v4p_times_are_those_of_whole_buffers():
    # A 4x4x4 pod slice, bf16[1024, 4096], 90 GB/s an axis both ways: 46.60 us and 186.41 us with every block counted.
    array, one_way = 2.0 * 1024 * 4096, 9e10 / 2

    gather = c.torus_all_gather(array, (4.0, 4.0), 0.0, (one_way, one_way))
    reduce = c.bidirectional_ring_all_reduce(array, 4.0, 0.0, one_way)

    assert pytest.approx(46.60e-6, rel=1e-4) == gather * 16 / 15
    assert pytest.approx(186.41e-6, rel=1e-4) == reduce * 4 / 3


def test_published_v5e_times_of_four_in_a_row():
    # bf16[2048, 8192] over four chips, 45 GB/s a link each way: 377 us as printed where the row is closed to a ring (with
    # 34e6 bytes, every block counted), 560 us where it is not, since blocks go three hops one way; 680 us were measured.
    array, link = 2.0 * 2048 * 8192, 45e9
    ring, row = c.bidirectional_ring_all_gather(array, 4.0, 0.0, link), c.ring_all_gather(array, 4.0, 0.0, link)

    assert pytest.approx(377.8e-6, rel=1e-3) == ring * 4 / 3 * 34e6 / array
    assert near(3 * array / 4 / link) == row
    assert ("559", True) == (f"{1e6 * row:.0f}", row < 680e-6)
    # bf16[256, 256]: three hops of a microsecond each, and sending; 8 us were measured.
    small = c.ring_all_gather(2.0 * 256 * 256, 4.0, 1e-6, link)
    assert near(3e-6 + 3 * 2.0 * 256 * 64 / link) == small
    assert 3e-6 < small < 8e-6


@pytest.mark.parametrize(("busbw", "across"), [(377.34e9, 36.52e9), (381.80e9, 36.95e9)])
def test_hierarchical_all_reduce_needs_a_published_rate_across_servers(busbw, across):
    # 32 accelerators in 4 servers of 8: the rate that takes as long as the bus bandwidth says.
    time = c.bus_factor("all-reduce", 32.0) * GIB / busbw
    (_, inside), (_, outside) = c.hierarchical_parts("all-reduce", GIB, (8.0, 4.0), (0.0, 0.0), (INF, 1.0))

    assert 0.0 == inside
    assert pytest.approx(across, rel=2e-4) == outside / time
    assert near(busbw * 3 / 31) == outside / time


ONE_RANK = [
    c.ring_all_gather,
    c.ring_reduce_scatter,
    c.ring_all_reduce,
    c.ring_all_to_all,
    c.bidirectional_ring_all_gather,
    c.bidirectional_ring_reduce_scatter,
    c.bidirectional_ring_all_reduce,
    c.bidirectional_ring_all_to_all,
    c.recursive_all_gather,
    c.recursive_reduce_scatter,
    c.recursive_all_reduce,
    c.recursive_all_to_all,
    c.direct_all_gather,
    c.direct_reduce_scatter,
    c.direct_all_reduce,
    c.direct_all_reduce_one_step,
    c.direct_all_to_all,
    c.tree_broadcast,
    c.pipelined_broadcast,
]
STEPS_OF_16 = [15, 15, 30, 15, 8, 8, 16, 8, 4, 4, 8, 4, 1, 1, 2, 1, 1, 4, 15]


@pytest.mark.parametrize("form", ONE_RANK, ids=lambda f: f.__name__)
def test_one_rank_takes_no_time(form):
    assert 0.0 == form(GIB, 1.0, 1e-6, 1e9)


@pytest.mark.parametrize(("form", "steps"), list(zip(ONE_RANK, STEPS_OF_16, strict=True)))
def test_zero_bytes_take_the_latency_of_the_steps(form, steps):
    assert steps * 2.0 == form(0.0, 16.0, 2.0, 1e9)


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"])
@pytest.mark.parametrize("steps", ["ring", "recursive", "direct"])
def test_level_of_one_rank_takes_no_time_and_needs_no_rate(kind, steps):
    assert 0.0 == c.hierarchical(kind, GIB, (1.0, 1.0), (1.0, 1.0), (0.0, 0.0), steps)
    alone = c.hierarchical(kind, GIB, (4.0,), (1e-6,), (1e9,), steps)
    assert alone == c.hierarchical(kind, GIB, (1.0, 4.0, 1.0), (1.0, 1e-6, 1.0), (0.0, 1e9, 0.0), steps)


def test_crossed_level_needs_its_rate():
    with pytest.raises(ZeroDivisionError):
        c.hierarchical("all-reduce", GIB, (2.0, 2.0), (0.0, 0.0), (1e9, 0.0))


def test_three_levels_by_hand():
    # S = 24: inside 1/2 of 24 at 2; then 2/3 of 12 at 1; then 3/4 of 4 at 1; and 1 + 2 + 3 steps of 10.
    gather = 12 / 2 + 8 / 1 + 3 / 1 + 60

    arguments = (24.0, (2.0, 3.0, 4.0), (10.0, 10.0, 10.0), (2.0, 1.0, 1.0))

    assert gather == c.hierarchical("all-gather", *arguments)
    assert gather == c.hierarchical("reduce-scatter", *arguments)
    assert 2 * gather == c.hierarchical("all-reduce", *arguments)
    # An all-to-all sends 1/2, 2/3 and 3/4 of the whole 24.
    assert 12 / 2 + 16 + 18 + 60 == c.hierarchical("all-to-all", *arguments)
    assert 12 / 2 + 8 + 3 + 10 * (1 + 2 + 2) == c.hierarchical("all-gather", *arguments, "recursive")
    assert 12 / 2 + 8 + 3 + 30 == c.hierarchical("all-gather", *arguments, "direct")
    assert (1 * (10 + 12)) + 2 * (10 + 24) + 2 * (10 + 24) == c.hierarchical("broadcast", *arguments)


@pytest.mark.parametrize(
    ("group", "stride", "levels", "factors"),
    [
        (32.0, 1.0, (2.0, 32.0, INF), (2.0, 16.0, 1.0)),
        (32.0, 32.0, (2.0, 32.0, INF), (1.0, 1.0, 32.0)),
        (64.0, 4.0, (2.0, 32.0, INF), (1.0, 8.0, 8.0)),
        (1.0, 7.0, (2.0, 32.0, INF), (1.0, 1.0, 1.0)),
        (8.0, 1.0, (2.0, 32.0, INF), (2.0, 4.0, 1.0)),
        # 6 over units of 4: the fullest has 4, two units are spanned; 5 apart, a unit of 32 holds up to 7.
        (6.0, 1.0, (4.0, INF), (4.0, 2.0)),
        (10.0, 5.0, (2.0, 32.0, INF), (1.0, 7.0, 2.0)),
    ],
)
def test_members_of_each_level(group, stride, levels, factors):
    assert factors == c.members(group, stride, levels)


def test_members_of_many_groups_at_once():
    group, stride = np.array([32.0, 32.0, 64.0, 6.0]), np.array([1.0, 32.0, 4.0, 1.0])

    found = np.array(c.members(group, stride, (2.0, 32.0, INF))).T.tolist()

    assert [list(c.members(float(g), float(s), (2.0, 32.0, INF))) for g, s in zip(group, stride, strict=True)] == found


@pytest.mark.parametrize(("n", "steps"), [(2.0, 1.0), (3.0, 2.0), (5.0, 3.0), (8.0, 3.0), (9.0, 4.0)])
def test_recursive_steps_are_rounded_up(n, steps):
    assert steps == c.recursive_all_gather(0.0, n, 1.0, 1.0)
    assert 2 * steps == c.recursive_all_reduce(0.0, n, 1.0, 1.0)


def test_a_pair_has_one_link():
    assert 0.5 == c.bidirectional_ring_all_gather(1.0, 2.0, 0.0, 1.0)
    assert 0.5 == c.bidirectional_ring_all_to_all(1.0, 2.0, 0.0, 1.0)
    assert 0.5 == c.torus_all_to_all(1.0, (2.0,), 0.0, (1.0,))


def test_the_best_number_of_pieces():
    # 10 more ranks behind the first two, S / beta = 1000, alpha = 1: brute force over the pieces.
    brute = min((m + 10) * (1 + 1000 / m) for m in range(1, 2000))

    assert near(brute) == c.pipelined_broadcast(1000.0, 12.0, 1.0, 1.0)
    assert 1000.0 == c.pipelined_broadcast(1000.0, 12.0, 0.0, 1.0)
    assert 1001.0 == c.pipelined_broadcast(1000.0, 2.0, 1.0, 1.0)


def test_send():
    assert 3 * 2.0 + 5.0 == c.send(10.0, 3.0, 2.0, 2.0)
    assert 0.0 == c.send(10.0, 0.0, 2.0, 2.0)


@pytest.mark.parametrize("dims", [(4.0,), (4.0, 4.0), (4.0, 4.0, 4.0), (2.0, 8.0), (8.0, 4.0)])
def test_all_to_all_on_a_torus_attains_its_bisection(dims):
    rates = (3.0,) * len(dims)
    cut = Torus(tuple(map(int, dims)), (3.0,)).bisection("rate").rate
    n = float(np.prod(dims))

    assert near(c.bisection_bound("all-to-all", 7.0, n, cut)) == c.torus_all_to_all(7.0, dims, 0.0, rates)


def test_bisection_bounds_by_hand():
    assert 5.0 == c.bisection_bound("all-reduce", 10.0, 4.0, 2.0)
    assert 2.5 == c.bisection_bound("all-gather", 10.0, 4.0, 2.0)
    assert near(3.0) == c.bisection_bound("reduce-scatter", 10.0, 5.0, 2.0)
    assert 5.0 == c.bisection_bound("all-to-all", 10.0, 4.0, 2.0)
    assert 5.0 == c.bisection_bound("broadcast", 10.0, 4.0, 2.0)
    assert 0.0 == c.bisection_bound("all-reduce", 10.0, 1.0, 2.0)


def test_shares_of_a_torus_with_an_axis_of_two():
    """Over one link 2 / (2 - 1) x 1, over the two of a ring of four 4 / (4 - 1) x 2; nothing on an axis of one."""
    assert (pytest.approx(3 / 7), pytest.approx(4 / 7), 0.0) == c.torus_shares((2.0, 4.0, 1.0), (10.0, 10.0, 10.0))
