"""Dominance between collectives that contain each other; scattered broadcasts and sends."""

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import tests.perf.oracles.closed_forms as c
from tests.perf.collectives.conftest import GIB, KINDS, near, on, servers, system, timings
from tests.support.explicit import Explicit
from trnspec.errors import RefusalError
from trnspec.perf.collectives.algorithms import plans
from trnspec.perf.collectives.bounds import bound
from trnspec.perf.collectives.groups import group
from trnspec.perf.collectives.groups import group_of as explicit_group
from trnspec.perf.collectives.schedules import SCATTERS, reversed_schedule, schedule_names
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Mesh, Ring, Torus
from trnspec.topology.switched import Switched, SwitchLevel

PARTS = (
    ("broadcast", ("all-reduce",)),
    ("reduce-scatter", ("all-reduce",)),
    ("all-gather", ("all-reduce",)),
    ("all-reduce", ("reduce-scatter", "all-gather")),
    ("reduce-scatter", ("all-to-all",)),
    ("all-gather", ("all-to-all",)),
    ("send", ("broadcast",)),
)
"""A collective, and those which do what it does when they follow each other, and more."""

SHAPES = st.one_of(
    st.builds(Ring, st.integers(2, 9)),
    st.builds(Chain, st.integers(2, 9)),
    st.builds(Hypercube, st.integers(1, 4)),
    st.builds(FullyConnected, st.integers(2, 9)),
    st.integers(2, 9).map(lambda n: Switched(n, (SwitchLevel(n),))),
    st.builds(
        Torus, st.lists(st.integers(2, 5), min_size=2, max_size=3).map(tuple).filter(lambda d: len(d) < 3 or 5 not in d)
    ),
    st.builds(Mesh, st.tuples(st.integers(2, 4), st.integers(2, 4))),
    st.just(Explicit([[1, 2], [0, 2, 3], [0, 1], [1]])),
)
SCATTERED = [(name, n) for n in (2, 3, 4, 5, 8, 16) for name in schedule_names("broadcast", n) if name in SCATTERS]


def fastest(where, of, size):
    return {kind: timings(where, of, kind, size)[0].time for kind in KINDS}


def broken(where, of, size):
    """What is slower than what contains it, and what is faster than nothing can be."""
    found = fastest(where, of, size)
    slow = [
        (part, whole, found[part], sum(found[w] for w in whole))
        for part, whole in PARTS
        if found[part] > sum(found[w] for w in whole) * (1 + 1e-12)
    ]
    fast = [(kind, t) for kind, t in found.items() if bound(where, of, kind, size).time > t * (1 + 1e-12)]
    return slow + fast


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(servers()),
    count=st.sampled_from(["", "*2", "*3", "*4", "*16"]),
    ranks=st.none() | st.integers(2, 96),
    stride=st.sampled_from([1, 1, 1, 2, 3, 4, 8, 16]),
    size=st.floats(1.0, 2.0**34),
)
def test_no_collective_is_slower_than_one_that_contains_it(name, count, ranks, stride, size):
    where = system(name + count)
    try:
        of = group(where, ranks if ranks is not None or where.ranks <= 256 else int(where.ranks_per_chip) * 8, stride)
        wrong = broken(where, of, size)
    except RefusalError as refusal:
        event(refusal.reason)
        if refusal.reason not in ("rank-count", "unknown-figure", "unknown-topology"):
            raise
        return

    assert [] == wrong


@settings(max_examples=30, deadline=None)
@given(
    shape=SHAPES,
    per_chip=st.sampled_from([1.0, 2.0, 3.0]),
    latency=st.sampled_from([0.0, 3.0]),
    ranks=st.integers(2, 30),
    stride=st.integers(1, 5),
    size=st.floats(1.0, 1e6),
)
def test_dominance_on_every_shape(shape, per_chip, latency, ranks, stride, size):
    where = on(shape, degree=4.0, per_chip=per_chip, latency=latency)
    try:
        of = group(where, ranks, stride)
    except RefusalError as refusal:
        event(refusal.reason)
        return

    assert [] == broken(where, of, size)


def test_groups_that_lie_differently_are_no_torus():
    # Chips 0, 1, 3, 4 are a square of neighbours; those of the next group, 0, 2, 3, 5, are not.
    where = on(Mesh((3, 3)), degree=4.0, per_chip=2.0)
    together, alone = group(where, 4, 3), explicit_group(where, (0, 3, 6, 9))

    assert [] == broken(where, together, GIB)
    assert [False, True] == [
        "torus" in {t.algorithm for t in timings(where, of, "all-reduce", GIB)} for of in (together, alone)
    ]


@pytest.mark.parametrize(
    "name", ["trn2.48xlarge*4", "trn2-ultraserver", "trn1.32xlarge*4", "p5.48xlarge*4", "inf2.48xlarge"]
)
def test_whole_systems_broadcast_and_send_no_slower_than_they_reduce(name):
    where = system(name)

    assert [] == broken(where, group(where), GIB)


@pytest.mark.parametrize(("name", "n"), SCATTERED)
def test_scatter_sends_each_rank_its_part(name, n):
    held = {0: 1.0} | dict.fromkeys(range(1, n), 0.0)
    for _, sends in SCATTERS[name](n):
        for a, b, share in sends:
            # What is passed on within a phase comes in its earlier steps.
            held[a] -= share
            held[b] += share
        assert all(share >= -1e-15 for share in held.values())

    assert pytest.approx(dict.fromkeys(range(n), 1 / n)) == held
    gathered = dict.fromkeys(range(n), 1 / n)
    for _, sends in reversed_schedule(SCATTERS[name](n)):
        for a, b, share in sends:
            gathered[a] -= share
            gathered[b] += share
    assert pytest.approx({0: 1.0} | dict.fromkeys(range(1, n), 0.0), abs=1e-15) == gathered


@pytest.mark.parametrize("kind", ["broadcast", "send"])
def test_chains_both_ways_on_all_rounds_attain_all_links(kind):
    ring, torus = on(Ring(6)), on(Torus((4, 4)), degree=4.0)
    for where, links in ((ring, 2), (torus, 4)):
        times = {t.algorithm: t.time for t in timings(where, group(where), kind, GIB)}
        assert near(GIB / links / 10.0) == times["pipelined-both-ways"]
        assert near(bound(where, group(where), kind, GIB).time) == times["pipelined-both-ways"]


def test_the_network_carries_an_equal_part_from_each_rank_of_the_sending_server():
    where = system("trn1.32xlarge*4")
    inner, link, outer = (level.rate for level in where.levels)
    chip = c.taken("direct", "all-reduce", GIB, 2, 0.0, inner)
    fabric = c.torus("all-reduce", GIB, (4, 4), 0.0, link * 2 / 4)
    found = {t.algorithm: dict((*t.transfers, *t.overlapped)) for t in timings(where, group(where), "broadcast", GIB)}
    expected = {
        "direct": c.taken("direct", "all-reduce", GIB / 32, 4, 0.0, outer),
        "pipelined": c.pipelined_broadcast(GIB / 32, 4, 0.0, outer),
        "tree": c.tree_broadcast(GIB / 32, 4, 0.0, outer),
    }

    for name, network in expected.items():
        assert {"chip": near(chip), "fabric": near(fabric), "network": near(network)} == found[f"direct+torus+{name}"]


@pytest.mark.parametrize("kind", ["all-reduce", "broadcast"])
def test_holder_of_the_whole_buffer_sends_it_whole(kind):
    where = system("trn1.32xlarge*4")
    parts = {p.name: (p.parts, dict(p.phases[-1].loads)["network"]) for p in plans(where, group(where), kind)}

    assert (1.0, 1.5) == parts["direct-one-step+direct"]
    assert (2.0, 0.75) == parts["direct+direct-one-step+direct"]
    assert (32.0, 1.5 / 32) == parts["direct+torus+direct"]


def test_rank_list_starts_at_the_root():
    where = on(Chain(4))
    # From the middle of the chain both ways; from its end all the way.
    found = {
        ranks: next(
            t.time for t in timings(where, explicit_group(where, ranks), "broadcast", GIB) if t.algorithm == "direct"
        )
        for ranks in ((0, 1, 2, 3), (1, 0, 2, 3))
    }

    assert near(GIB * (0.75 + 1.0) / 10.0) == found[0, 1, 2, 3]
    assert near(GIB * (0.5 + 1.0) / 10.0) == found[1, 0, 2, 3]


def test_a_send_that_ends_on_the_chip_where_it_begins_stays_among_ranks():
    where = on(Ring(3), per_chip=2.0)
    names = {t.algorithm for t in timings(where, explicit_group(where, (0, 2, 3, 4, 5, 1)), "send", GIB)}

    assert "send" in names
    assert not any("+" in name for name in names)
