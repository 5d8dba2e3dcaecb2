"""Algorithms on declared topologies, compared with closed forms and with lower bounds."""

import pytest
from attrs import evolve
from hypothesis import event, given, settings
from hypothesis import strategies as st

import tests.perf.oracles.closed_forms as c
import trnspec
from tests.perf.collectives.made_systems import on, system, timings
from tests.support.explicit import Explicit
from trnspec.errors import RefusalError
from trnspec.perf.collectives.algorithms import _network, plans
from trnspec.perf.collectives.bounds import bound, bus_factor
from trnspec.perf.collectives.groups import NETWORK, Rates, fabric_level, group
from trnspec.perf.collectives.groups import group_of as explicit_group
from trnspec.perf.collectives.timing import fastest
from trnspec.perf.lowering.system import UNKNOWN
from trnspec.topology.shapes import Chain, FullyConnected, GridShape, Hypercube, Mesh, Ring, Torus
from trnspec.topology.switched import Switched, SwitchLevel

GIB = 2.0**30
PASSES = ["all-reduce", "all-gather", "reduce-scatter"]
KINDS = [*PASSES, "all-to-all", "broadcast", "send"]
SYSTEMS = [
    *("trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge"),
    *("trn3-gen1-server", "trn3-gen2-server", "trn2-ultraserver", "trn3-gen1-ultraserver", "trn3-gen2-ultraserver"),
    *("trn1.2xlarge*4", "trn1.32xlarge*4", "trn2-ultraserver*2"),
    *("inf1.6xlarge", "inf1.24xlarge", "inf2.24xlarge", "inf2.48xlarge"),
]
LINKED = [
    *("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge", "trn2-ultraserver", "trn2-ultraserver*2"),
    *("trn1.32xlarge*4", "inf1.6xlarge", "inf1.24xlarge", "inf2.24xlarge", "inf2.48xlarge"),
]


def near(value):
    return pytest.approx(value, rel=1e-12, abs=0.0)


def takes(where, kind, algorithm, size=GIB, of=None):
    of = of or group(where)
    found = timings(where, of, kind, size)
    return next(t for t in found if t.algorithm == algorithm).time


def test_every_system_of_the_catalog_is_tried():
    """All that have a network; of some sizes only the name and the number of chips are known."""
    shipped = trnspec.load()
    servers = {n for n, s in shipped.servers.items() if s.fabric is not None or s.network is not None}

    assert {*servers, *shipped.ultraservers} <= {*SYSTEMS}


def test_the_systems_with_links_of_known_rates():
    grids = {n for n in SYSTEMS if (v := fabric_level(system(n))) is not None and isinstance(v.shape, GridShape)}

    assert {*LINKED} == grids


@pytest.mark.parametrize("kind", [*PASSES, "all-to-all"])
@pytest.mark.parametrize("n", [3, 4, 5, 12])
def test_rings_are_the_closed_forms(kind, n):
    ring = on(Ring(n), latency=0.5)

    for name in ("ring", "bidirectional-ring"):
        assert near(c.taken(name, kind, GIB, n, 0.5, 10.0)) == takes(ring, kind, name)


@pytest.mark.parametrize("kind", PASSES)
@pytest.mark.parametrize("dims", [(4, 4), (2, 4), (3, 5), (4, 4, 4)])
def test_a_torus_is_the_closed_form(kind, dims):
    degree = sum(1.0 if k == 2 else 2.0 for k in dims)
    torus = on(Torus(dims), degree=degree)

    assert near(c.torus(kind, GIB, dims, 0.0, 10.0)) == takes(torus, kind, "torus")


@pytest.mark.parametrize("dims", [(4,), (4, 4), (2, 8), (3, 5), (4, 4, 4)])
def test_torus_all_to_all_load_equals_closed_form(dims):
    degree = sum(1.0 if k == 2 else 2.0 for k in dims)

    assert near(c.torus("all-to-all", GIB, dims, 0.0, 10.0)) == takes(
        on(Torus(dims), degree=degree), "all-to-all", "direct"
    )


@pytest.mark.parametrize("shape", [Hypercube(4), Torus((4, 4))])
@pytest.mark.parametrize("kind", PASSES)
def test_halving_and_doubling_uses_all_links_of_a_hypercube(shape, kind):
    assert near(c.taken("recursive", kind, GIB, 16, 2.0, 40.0)) == takes(
        on(shape, degree=4.0, latency=2.0), kind, "recursive"
    )


@pytest.mark.parametrize(
    "where",
    [on(FullyConnected(8), degree=7.0), on(Switched(8, (SwitchLevel(8),)), degree=7.0)],
    ids=["full", "switched"],
)
def test_direct_exchange_is_the_closed_form(where):
    assert near(c.taken("direct", "all-gather", GIB, 8, 0.0, 70.0)) == takes(where, "all-gather", "direct")
    assert near(c.taken("direct", "all-to-all", GIB, 8, 0.0, 70.0)) == takes(where, "all-to-all", "direct")
    assert near(7 * GIB / 70.0) == takes(where, "all-reduce", "direct-one-step")


def test_published_times_of_rings_and_tori():
    """A 4x4x4 pod slice of TPU v4, bf16[1024, 4096], 90 GB/s an axis both ways: 46.60 us and 186.41 us with every block counted.

    Four TPU v5e in a row, bf16[2048, 8192], 45 GB/s a link each way: 377 us where the row is closed to a ring (with 34e6
    bytes), 560 us where it is not.
    """
    array, row = 2.0 * 1024 * 4096, 2.0 * 2048 * 8192
    square, ring = on(Torus((4, 4)), degree=4.0, link=45e9), on(Ring(4), link=45e9)

    assert takes(square, "all-gather", "torus", array) * 16 / 15 == pytest.approx(46.60e-6, rel=1e-4)
    assert takes(ring, "all-reduce", "bidirectional-ring", array) * 4 / 3 == pytest.approx(186.41e-6, rel=1e-4)
    assert takes(ring, "all-gather", "bidirectional-ring", row) * 4 / 3 * 34e6 / row == pytest.approx(
        377.8e-6, rel=1e-3
    )
    assert takes(on(Chain(4), link=45e9), "all-gather", "ring", row) == pytest.approx(559e-6, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_bus_factors(kind):
    assert [bus_factor(kind, float(n)) for n in (1, 2, 8, 64)] == [c.sent(kind, n) for n in (1, 2, 8, 64)]


def test_broadcast_and_send_along_a_chain():
    chain = on(Chain(4), latency=3.0)

    assert near(c.pipelined_broadcast(100.0, 4, 3.0, 10.0)) == takes(chain, "broadcast", "pipelined", 100.0)
    assert near(c.tree_broadcast(100.0, 4, 3.0, 10.0)) == takes(chain, "broadcast", "tree", 100.0)
    assert near(3.0 + 10.0) == takes(chain, "send", "send", 100.0)


def test_a_chain_turns_a_ring_back_over_its_own_links():
    # One way round uses each link once in each direction; both ways round twice.
    assert near(c.taken("ring", "all-gather", GIB, 6, 0.0, 10.0)) == takes(on(Chain(6)), "all-gather", "ring")
    assert near(c.taken("ring", "all-gather", GIB, 6, 0.0, 10.0)) == takes(
        on(Chain(6)), "all-gather", "bidirectional-ring"
    )


def test_two_rounds_without_a_common_link_attain_all_links_of_a_torus():
    torus = on(Torus((4, 4)), degree=4.0)

    assert near(c.sent("all-reduce", 16) * GIB / 40.0) == takes(torus, "all-reduce", "rings-both-ways")


def test_stages_overlap_and_the_slowest_counts():
    where = system("trn1.32xlarge*4")
    inner, link, outer = (level.rate for level in where.levels)
    fabric = c.torus("all-reduce", GIB, (4, 4), 0.0, link * 2 / 4)
    chip = c.taken("direct", "all-reduce", GIB, 2, 0.0, inner)
    network = c.taken("ring", "all-reduce", GIB / 32, 4, 0.0, outer)

    found = next(t for t in timings(where, group(where), "all-reduce", GIB) if t.algorithm == "direct+torus+ring")

    assert near(max(chip, fabric, network)) == found.time == found.transfer
    assert (("network", near(network)),) == found.transfers
    assert (("chip", near(chip)), ("fabric", near(fabric))) == found.overlapped
    assert near(network * 32) == takes(where, "all-reduce", "ring", of=group(where, 4, 32))


def test_an_ultraserver_has_slower_links_from_server_to_server():
    rates = Rates(system("trn2-ultraserver"))

    assert (64e9, 128e9, 128e9) == (rates("axis0"), rates("axis1"), rates("axis2"))


def test_rates_agree_with_those_of_the_declared_links():
    found = {}
    for name in SYSTEMS:
        level = fabric_level(system(name))
        if level is None or not isinstance(level.shape, GridShape):
            continue
        for number, axis in enumerate(level.shape.axes):
            if axis.rate is not None and axis.links:
                found[name, number] = (axis.rate, Rates(system(name))(f"axis{number}"))

    assert len(found) > 8
    assert {key: near(rate) for key, (rate, _) in found.items()} == {key: made for key, (_, made) in found.items()}


def test_groups_at_the_same_time_share_links_and_a_list_works_alone():
    where = system("trn2.48xlarge")
    together, alone = group(where, 16, 4), explicit_group(where, range(0, 64, 4))

    assert 4 == len(together.siblings)
    one, four = (
        next(t for t in timings(where, of, "all-reduce", GIB) if t.algorithm == "torus") for of in (alone, together)
    )

    assert near(4 * one.transfer) == four.transfer
    # Eight steps of 1 to 2 us.
    assert near(8 * 1.5e-6) == one.latency == four.latency


@pytest.mark.parametrize(
    ("size", "stride", "starts"),
    [(2, 8, 32), (2, 40, 24), (3, 1, 21), (64, 1, 1), (1, 1, 64)],
)
def test_how_many_groups_tile_a_server(size, stride, starts):
    of = group(system("trn2.48xlarge"), size, stride)

    assert starts == len(of.siblings)
    members = [rank for s in of.siblings for rank in s]
    assert len(set(members)) == len(members)


def test_groups_of_neighbours_keep_to_their_own_row():
    where = system("trn2.48xlarge")
    of = group(where, 16, 1)

    assert [tuple(range(b, b + 16)) for b in (0, 16, 32, 48)] == list(of.siblings)
    chip = c.taken("direct", "all-reduce", GIB, 4, 0.0, where.levels[0].rate)
    expected = max(chip, c.taken("bidirectional-ring", "all-reduce", GIB, 4, 0.0, 128e9)) + 4 * 1.5e-6
    assert near(expected) == takes(where, "all-reduce", "direct+bidirectional-ring", of=of)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LINKED)
def test_no_collective_is_faster_than_the_bisection(name, kind):
    where = system(name)
    level = fabric_level(where)
    cut = level.shape.bisection("rate")
    # The first and the last rank may lie on the same side: then a send crosses nothing.
    inside = kind == "send" and (0 in cut.cut) == (level.shape.nodes - 1 in cut.cut)
    least = 0.0 if inside else c.bisection_bound(kind, GIB, int(level.ranks), cut.rate)

    assert all(least <= t.time * (1 + 1e-12) for t in timings(where, group(where, int(level.ranks)), kind, GIB))


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(SYSTEMS), kind=st.sampled_from(KINDS), size=st.integers(1, 64), stride=st.integers(1, 40))
def test_no_algorithm_of_any_group_is_faster_than_the_bound(name, kind, size, stride):
    where = system(name)
    try:
        of = group(where, size, stride)
        found = timings(where, of, kind, GIB)
    except RefusalError as refusal:
        event(refusal.reason)
        if refusal.reason not in ("rank-count", "unknown-figure"):
            raise
        return
    least = bound(where, of, kind, GIB)

    assert found
    assert all(least.time <= t.time * (1 + 1e-12) for t in found), least
    assert all(near(t.time) == t.latency + sum(s for _, s in t.transfers) for t in found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shape",
    [Mesh((3, 4)), Torus((3, 4)), Explicit([[1, 2], [0, 2, 3], [0, 1], [1]]), FullyConnected(5), Hypercube(3), Ring(2)],
    ids=str,
)
def test_other_shapes_keep_their_bounds(shape, kind):
    where = on(shape, degree=3.0, per_chip=2.0)
    of = group(where)
    least = bound(where, of, kind, GIB).time

    assert 0.0 < least
    assert all(least <= t.time * (1 + 1e-12) for t in timings(where, of, kind, GIB))


@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_rates_and_half_the_latency_take_exactly_half(kind):
    slow = system("trn2-ultraserver*2")
    fast = evolve(slow, levels=tuple(evolve(v, rate=v.rate * 2, latency=v.latency / 2) for v in slow.levels))

    before, after = (timings(s, group(s), kind, GIB) for s in (slow, fast))

    assert {t.algorithm: t.time / 2 for t in before} == {t.algorithm: t.time for t in after}


@pytest.mark.parametrize("kind", KINDS)
def test_one_rank_takes_no_time(kind):
    where = system("trn2.48xlarge")
    (only,) = timings(where, group(where, 1), kind, GIB)

    assert (0.0, 0.0, ()) == (only.time, only.steps, only.transfers)
    assert 0.0 == bound(where, group(where, 1), kind, GIB).time


def test_an_unknown_rate_is_refused_by_its_place_and_not_needed_within_a_chip():
    where = system("trn3-gen1-server")

    with pytest.raises(RefusalError) as caught:
        timings(where, group(where), "all-reduce", GIB)

    assert ("unknown-figure", "trn3-gen1-server spec.fabric.bandwidth") == (caught.value.reason, caught.value.place)
    assert timings(where, group(where, 4), "all-reduce", GIB)


def test_only_the_links_that_are_used_need_a_rate():
    known = system("trn2-ultraserver")
    *inner, outer = known.levels
    unknown = evolve(known, levels=(*inner, evolve(outer, rate=UNKNOWN)))

    assert timings(known, group(known, 64), "all-gather", GIB) == timings(
        unknown, group(unknown, 64), "all-gather", GIB
    )
    with pytest.raises(RefusalError) as caught:
        timings(unknown, group(unknown), "all-gather", GIB)
    assert outer.place == caught.value.place


@pytest.mark.parametrize("nodes", [3, 5])
def test_a_topology_of_another_number_of_chips_is_refused(nodes):
    made = on(Ring(4))
    other = evolve(made, levels=(evolve(made.levels[0], shape=Ring(nodes)),))

    with pytest.raises(RefusalError) as caught:
        plans(other, group(other), "all-reduce")

    assert ("unknown-topology", "on") == (caught.value.reason, caught.value.place)


def test_chips_whose_links_are_not_declared_are_refused():
    made = on(Ring(4))
    bare = evolve(made, levels=(evolve(made.levels[0], shape=None),))

    with pytest.raises(RefusalError) as caught:
        plans(bare, group(bare), "all-reduce")

    assert ("unknown-topology", "p") == (caught.value.reason, caught.value.place)


@pytest.mark.parametrize(
    ("size", "stride", "place"), [(65, 1, "ranks"), (0, 1, "ranks"), (2, 64, "ranks"), (2, 0, "stride")]
)
def test_more_ranks_than_there_are_are_refused(size, stride, place):
    with pytest.raises(RefusalError) as caught:
        group(system("trn2.48xlarge"), size, stride)

    assert ("rank-count", place) == (caught.value.reason, caught.value.place)


def test_a_group_that_lies_unevenly_on_fabrics_is_refused():
    where = system("trn1.32xlarge*4")

    for ask in (
        lambda: group(where, 48),
        lambda: explicit_group(where, (0, 1, 32)),
    ):
        with pytest.raises(RefusalError) as caught:
            ask()
        assert "rank-count" == caught.value.reason


def test_an_algorithm_can_be_named():
    where = system("trn2.48xlarge")
    found = timings(where, group(where), "all-reduce", GIB)

    assert found[0] == fastest(found)
    assert "direct+torus" == fastest(found, "torus").algorithm
    assert "recursive" in fastest(found, "RDH").algorithm.split("+")
    assert "rings-both-ways" == fastest(found, "kangaring").algorithm
    assert "direct" == fastest(found, "mesh").algorithm
    with pytest.raises(RefusalError) as caught:
        fastest(found, "carousel")
    assert "unknown-algorithm" == caught.value.reason
    assert "direct+torus" in caught.value.hint


FACTORS = st.lists(st.sampled_from([1.0, 1.5, 2.0, 16.0]), min_size=4, max_size=4)


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(
        ["trn2.48xlarge", "trn2-ultraserver", "trn2-ultraserver*2", "p5.48xlarge*2", "trn1.32xlarge*4"]
    ),
    kind=st.sampled_from(KINDS),
    size=st.sampled_from([0.0, 1024.0, GIB]),
    rates=FACTORS,
    latencies=FACTORS,
)
def test_faster_links_and_shorter_latencies_are_never_slower(name, kind, size, rates, latencies):
    slow = system(name)
    levels = (
        evolve(v, rate=v.rate * r, latency=v.latency / a)
        for v, r, a in zip(slow.levels, rates, latencies, strict=False)
    )
    fast = evolve(slow, levels=tuple(levels))
    of = group(slow)

    before, after = (timings(s, of, kind, size)[0].time for s in (slow, fast))
    assert after <= before * (1 + 1e-12)
    assert bound(fast, of, kind, size).time <= bound(slow, of, kind, size).time * (1 + 1e-12)


def test_switches_that_reduce_are_used_in_a_fabric_and_in_a_network():
    made = on(Switched(8, (SwitchLevel(8),)), link=10.0, degree=1.0, latency=2.0)
    (level,) = made.levels
    reducing = evolve(made, levels=(evolve(level, reduces=True),))

    assert "in-network" not in {t.algorithm for t in timings(made, group(made), "all-reduce", GIB)}
    assert near(GIB * 1.125 / 10.0 + 4.0) == takes(reducing, "all-reduce", "in-network")
    assert near(GIB / 10.0 + 2.0) == takes(reducing, "broadcast", "in-network")
    assert near(GIB / 10.0 + 2.0) == bound(reducing, group(reducing), "all-reduce", GIB).time
    assert near(GIB * 1.75 / 10.0 + 2.0) == bound(made, group(made), "all-reduce", GIB).time
    # The parts of a reduce-scatter and of an all-gather are the same with such switches.
    for kind in ("all-gather", "reduce-scatter", "all-to-all"):
        assert timings(made, group(made), kind, GIB) == timings(reducing, group(reducing), kind, GIB)
    assert {t.algorithm for t in timings(reducing, group(reducing), "all-reduce", GIB)} >= {
        "in-network",
        "direct",
        "ring",
    }


def test_a_network_that_reduces_carries_each_part_once():
    plain = system("p5.48xlarge*4")
    *inner, network = plain.levels
    reducing = evolve(plain, levels=(*inner, evolve(network, reduces=True)))
    least, most = (bound(s, group(s), "all-reduce", GIB).time for s in (reducing, plain))
    found = next(t for t in timings(reducing, group(reducing), "all-reduce", GIB) if t.algorithm == "direct+in-network")

    # 400 GB/s of eight ranks: S once, or 2 x 3/4 S; once is less than what the links of a chip carry.
    assert near(GIB / 400e9) == dict((*found.transfers, *found.overlapped))["network"]
    assert (near(GIB / 400e9), near(1.5 * GIB / 400e9)) == (least, most)


def test_an_ideal_send_from_server_to_server_uses_both_fabrics_at_once():
    where = system("p5.48xlarge*2")
    scattered = next(t for t in timings(where, group(where), "send", GIB) if t.algorithm == "direct+send")

    # Scattered in one server while the other gathers.
    assert near(7 / 8 * GIB / 450e9) == dict((*scattered.transfers, *scattered.overlapped))["fabric"]


@pytest.mark.parametrize(
    ("kind", "name", "steps", "load", "behind"),
    [
        ("all-reduce", "ring", 14.0, 2 * 7 / 8 / 4, 0.0),
        ("all-gather", "ring", 7.0, 7 / 8 / 4, 0.0),
        ("all-reduce", "recursive", 6.0, 2 * 7 / 8 / 4, 0.0),
        ("all-reduce", "direct", 2.0, 2 * 7 / 8 / 4, 0.0),
        # All-to-all: the whole buffer of each rank, half of it over and over.
        ("all-to-all", "ring", 7.0, 7 / 2, 0.0),
        ("all-to-all", "recursive", 3.0, 3 / 2, 0.0),
        ("all-to-all", "direct", 1.0, 7 / 8, 0.0),
        ("broadcast", "tree", 3.0, 3 / 4, 0.0),
        ("broadcast", "ring", 14.0, 2 * 7 / 8 / 4, 0.0),
        ("broadcast", "pipelined", 0.0, 1 / 4, 6.0),
        ("broadcast", "in-network", 1.0, 1 / 4, 0.0),
        ("all-reduce", "in-network", 2.0, 1 / 4, 0.0),
        ("send", "send", 1.0, 1 / 4, 0.0),
    ],
)
def test_the_stage_between_eight_fabrics(kind, name, steps, load, behind):
    """Each rank carries a quarter of the buffer."""
    (phase,) = _network(kind, 8.0, 4.0, name).phases

    assert (phase.stage, phase.steps, phase.behind) == ("network", steps, behind)
    assert phase.loads == ((NETWORK, near(load)),)
