"""Algorithms on declared topologies, compared with closed forms and with lower bounds."""

import pytest
from attrs import evolve
from hypothesis import event, given, settings
from hypothesis import strategies as st

import tests.perf.oracles.closed_forms as c
from tests.perf.collectives.conftest import GIB, KINDS, PASSES, near, on, servers, system, timings
from tests.support.engine import reason_and_place, refusal
from trnspec.errors import RefusalError
from trnspec.perf.collectives.algorithms import plans
from trnspec.perf.collectives.bounds import bound, bus_factor
from trnspec.perf.collectives.groups import LinkRates, fabric_level, group
from trnspec.perf.collectives.groups import group_of as explicit_group
from trnspec.perf.collectives.timing import fastest
from trnspec.perf.lowering.machine import UNKNOWN
from trnspec.topology.shapes import Chain, FullyConnected, GridShape, Hypercube, Ring, Torus
from trnspec.topology.switched import Switched, SwitchLevel

SYSTEMS = [*servers(), "trn1.2xlarge*4", "trn1.32xlarge*4", "trn2-ultraserver*2"]
LINKED = [
    *("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge", "trn2-ultraserver", "trn2-ultraserver*2"),
    *("trn1.32xlarge*4", "inf1.6xlarge", "inf1.24xlarge", "inf2.24xlarge", "inf2.48xlarge"),
]
"""Grids whose links have a published rate."""


def takes(where, kind, algorithm, size=GIB, of=None):
    return next(t for t in timings(where, of or group(where), kind, size) if t.algorithm == algorithm).time


def torus(dims):
    return on(Torus(dims), degree=sum(1.0 if k == 2 else 2.0 for k in dims))


def closed_forms():
    """The name of a case, a system, a collective, an algorithm, and its time."""
    for n in (3, 4, 5, 12):
        for name in ("ring", "bidirectional-ring"):
            for kind in (*PASSES, "all-to-all", "broadcast"):
                # A broadcast is a scatter and an all-gather.
                counted = "all-reduce" if kind == "broadcast" else kind
                expected = c.taken(name, counted, GIB, n, 0.5, 10.0)
                yield f"{kind} on a ring of {n}", on(Ring(n), latency=0.5), kind, name, expected
    for dims in ((4,), (2, 4), (2, 8), (3, 5), (4, 4), (4, 4, 4)):
        for kind in (*(PASSES if len(dims) > 1 else ()), "all-to-all"):
            algorithm = "direct" if kind == "all-to-all" else "torus"
            yield f"{kind} on torus {dims}", torus(dims), kind, algorithm, c.torus(kind, GIB, dims, 0.0, 10.0)
    for shape in (Hypercube(4), Torus((4, 4))):
        cube = on(shape, degree=4.0, latency=2.0)
        for kind in PASSES:
            yield f"{kind} on {shape}", cube, kind, "recursive", c.taken("recursive", kind, GIB, 16, 2.0, 40.0)
    for shape in (FullyConnected(8), Switched(8, (SwitchLevel(8),))):
        for kind in ("all-gather", "all-to-all"):
            expected = c.taken("direct", kind, GIB, 8, 0.0, 70.0)
            yield f"{kind} on {shape}", on(shape, degree=7.0), kind, "direct", expected
        yield f"all-reduce on {shape}", on(shape, degree=7.0), "all-reduce", "direct-one-step", 7 * GIB / 70.0
    chain = on(Chain(4), latency=0.03 * GIB)
    yield "broadcast on a chain", chain, "broadcast", "pipelined", c.pipelined_broadcast(GIB, 4, 0.03 * GIB, 10.0)
    yield "broadcast on a chain", chain, "broadcast", "tree", c.tree_broadcast(GIB, 4, 0.03 * GIB, 10.0)
    yield "send on a chain", chain, "send", "send", 0.03 * GIB + GIB / 10.0
    # A chain turns a ring back over its own links: one way round uses each once in each direction, both ways round twice.
    for name in ("ring", "bidirectional-ring"):
        yield "chain", on(Chain(6)), "all-gather", name, c.taken("ring", "all-gather", GIB, 6, 0.0, 10.0)
    # Two rounds without a common link attain all links.
    yield "torus", torus((4, 4)), "all-reduce", "rings-both-ways", c.sent("all-reduce", 16) * GIB / 40.0


@pytest.mark.parametrize(
    ("where", "kind", "algorithm", "expected"),
    [pytest.param(*case, id=f"{name}, {case[2]}") for name, *case in closed_forms()],
)
def test_algorithm_takes_its_closed_form(where, kind, algorithm, expected):
    assert near(expected) == takes(where, kind, algorithm)


def test_published_times_of_rings_and_tori():
    """A 4x4x4 pod slice of TPU v4, bf16[1024, 4096], 90 GB/s an axis both ways: 46.60 us and 186.41 us with every block counted.

    Four TPU v5e in a row, bf16[2048, 8192], 45 GB/s a link each way: 377 us where the row is closed to a ring (with 34e6
    bytes), 560 us where it is not.
    """
    array, row = 2.0 * 1024 * 4096, 2.0 * 2048 * 8192
    square, ring = on(Torus((4, 4)), degree=4.0, link=45e9), on(Ring(4), link=45e9)

    assert takes(square, "all-gather", "torus", array) * 16 / 15 == pytest.approx(46.60e-6, rel=1e-4)
    assert takes(ring, "all-reduce", "bidirectional-ring", array) * 4 / 3 == pytest.approx(186.41e-6, rel=1e-4)
    gathered = takes(ring, "all-gather", "bidirectional-ring", row) * 4 / 3 * 34e6 / row
    assert gathered == pytest.approx(377.8e-6, rel=1e-3)
    assert takes(on(Chain(4), link=45e9), "all-gather", "ring", row) == pytest.approx(559e-6, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_bus_factors(kind):
    assert [bus_factor(kind, float(n)) for n in (1, 2, 8, 64)] == [c.sent(kind, n) for n in (1, 2, 8, 64)]


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


def test_rates_agree_with_those_of_the_declared_links():
    found, linked = {}, set()
    for name in SYSTEMS:
        level = fabric_level(system(name))
        if level is None or not isinstance(level.shape, GridShape):
            continue
        linked.add(name)
        for number, axis in enumerate(level.shape.axes):
            if axis.rate is not None and axis.links:
                found[name, number] = (axis.rate, LinkRates(system(name))(f"axis{number}"))

    assert linked <= {*LINKED}
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


def test_groups_of_neighbours_keep_to_their_own_row():
    where = system("trn2.48xlarge")
    of = group(where, 16, 1)

    assert [tuple(range(b, b + 16)) for b in (0, 16, 32, 48)] == list(of.siblings)
    chip = c.taken("direct", "all-reduce", GIB, 4, 0.0, where.levels[0].rate)
    expected = max(chip, c.taken("bidirectional-ring", "all-reduce", GIB, 4, 0.0, 128e9)) + 4 * 1.5e-6
    assert near(expected) == takes(where, "all-reduce", "direct+bidirectional-ring", of=of)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(SYSTEMS), kind=st.sampled_from(KINDS), size=st.integers(1, 64), stride=st.integers(1, 40))
def test_no_algorithm_of_any_group_is_faster_than_the_bound(name, kind, size, stride):
    where = system(name)
    try:
        of = group(where, size, stride)
        found = timings(where, of, kind, GIB)
    except RefusalError as refusal:
        event(refusal.reason)
        if refusal.reason not in ("rank-count", "unknown-figure", "unknown-topology"):
            raise
        return
    least = bound(where, of, kind, GIB)

    assert found
    assert all(least.time <= t.time * (1 + 1e-12) for t in found), least
    assert all(near(t.time) == t.latency + sum(s for _, s in t.transfers) for t in found)


@pytest.mark.parametrize("kind", KINDS)
def test_one_rank_takes_no_time(kind):
    where = system("trn2.48xlarge")
    (only,) = timings(where, group(where, 1), kind, GIB)

    assert (0.0, 0.0, ()) == (only.time, only.steps, only.transfers)
    assert 0.0 == bound(where, group(where, 1), kind, GIB).time


def test_only_the_links_that_are_used_need_a_rate():
    known, chips = system("trn2-ultraserver"), system("trn3-gen1-server")
    *inner, outer = known.levels
    unknown = evolve(known, levels=(*inner, evolve(outer, rate=UNKNOWN)))

    assert timings(chips, group(chips, 4), "all-reduce", GIB)
    some = [timings(where, group(where, 64), "all-gather", GIB) for where in (known, unknown)]
    assert some[0] == some[1]
    for where, place in ((chips, "trn3-gen1-server spec.fabric.bandwidth"), (unknown, outer.place)):
        assert ("unknown-figure", place) == reason_and_place(timings, where, group(where), "all-gather", GIB)


def shaped(shape):
    """A ring of four chips that is declared as another shape."""
    made = on(Ring(4))
    return evolve(made, levels=(evolve(made.levels[0], shape=shape),))


@pytest.mark.parametrize(
    ("request_", "reason", "place"),
    [
        # A topology of another number of chips, and none.
        (lambda: plans(shaped(Ring(3)), group(shaped(Ring(3))), "all-reduce"), "unknown-topology", "on"),
        (lambda: plans(shaped(Ring(5)), group(shaped(Ring(5))), "all-reduce"), "unknown-topology", "on"),
        (lambda: plans(shaped(None), group(shaped(None)), "all-reduce"), "unknown-topology", "p"),
        (lambda: group(system("trn2.48xlarge"), 65, 1), "rank-count", "ranks"),
        (lambda: group(system("trn2.48xlarge"), 0, 1), "rank-count", "ranks"),
        (lambda: group(system("trn2.48xlarge"), 2, 64), "rank-count", "ranks"),
        (lambda: group(system("trn2.48xlarge"), 2, 0), "rank-count", "stride"),
        # Groups that lie unevenly on fabrics.
        (lambda: group(system("trn1.32xlarge*4"), 48), "rank-count", "ranks"),
        (lambda: explicit_group(system("trn1.32xlarge*4"), (0, 1, 32)), "rank-count", "ranks"),
    ],
)
def test_refused(request_, reason, place):
    assert (reason, place) == reason_and_place(request_)


def test_an_algorithm_can_be_named():
    where = system("trn2.48xlarge")
    found = timings(where, group(where), "all-reduce", GIB)

    assert found[0] == fastest(found)
    assert "direct+torus" == fastest(found, "torus").algorithm
    assert "recursive" in fastest(found, "RDH").algorithm.split("+")
    assert "rings-both-ways" == fastest(found, "kangaring").algorithm
    assert "direct" == fastest(found, "mesh").algorithm
    caught = refusal(fastest, found, "carousel")
    assert "unknown-algorithm" == caught.reason
    assert "direct+torus" in caught.hint


FACTORS = st.lists(st.sampled_from([1.0, 1.5, 2.0, 16.0]), min_size=4, max_size=4)


@pytest.mark.slow
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
    factors = zip(slow.levels, rates, latencies, strict=False)
    fast = evolve(slow, levels=tuple(evolve(v, rate=v.rate * r, latency=v.latency / a) for v, r, a in factors))
    of = group(slow)

    before, after = (timings(s, of, kind, size)[0].time for s in (slow, fast))
    assert after <= before * (1 + 1e-12)
    assert bound(fast, of, kind, size).time <= bound(slow, of, kind, size).time * (1 + 1e-12)


def test_switches_that_reduce_are_used_in_a_fabric():
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
    algorithms = {t.algorithm for t in timings(reducing, group(reducing), "all-reduce", GIB)}
    assert algorithms >= {"in-network", "direct", "ring"}


def test_a_network_that_reduces_carries_each_part_once():
    plain = system("p5.48xlarge*4")
    *inner, network = plain.levels
    reducing = evolve(plain, levels=(*inner, evolve(network, reduces=True)))
    least, most = (bound(s, group(s), "all-reduce", GIB).time for s in (reducing, plain))
    found = next(t for t in timings(reducing, group(reducing), "all-reduce", GIB) if t.algorithm == "direct+in-network")

    # 400 GB/s of eight ranks: S once, or 2 x 3/4 S; once is less than what the links of a chip carry.
    assert near(GIB / 400e9) == dict((*found.transfers, *found.overlapped))["network"]
    assert (near(GIB / 400e9), near(1.5 * GIB / 400e9)) == (least, most)


@pytest.mark.parametrize(
    ("kind", "name", "steps", "load"),
    [
        ("all-gather", "ring", 7.0, 7 / 8 / 4),
        # All-to-all: the whole buffer of each rank, half of it over and over.
        ("all-to-all", "ring", 7.0, 7 / 2),
        ("all-to-all", "recursive", 3.0, 3 / 2),
        ("all-to-all", "direct", 1.0, 7 / 8),
        ("broadcast", "tree", 3.0, 3 / 4),
        ("send", "send", 1.0, 1 / 4),
    ],
)
def test_the_stage_between_eight_fabrics(kind, name, steps, load):
    """Each rank carries a quarter of the buffer."""
    where = system("trn2.3xlarge*8")
    phase = next(p for p in plans(where, group(where), kind) if p.name == f"direct+{name}").phases[-1]

    assert (phase.stage, phase.steps, dict(phase.loads)) == ("network", steps, {"network": near(load)})
