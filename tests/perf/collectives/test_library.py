"""Protocols of a collective library: steps and loads of their algorithms, and the fastest of them."""

import numpy as np
import pytest

from tests.perf.collectives.conftest import KINDS, near
from tests.support.engine import everything
from trnspec.perf.collectives.library import Library, LibraryProtocol, launched, shape, time_of, timed
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL, collective_time, group, machine

MIB = 2.0**20
ALGORITHMS = ("ring", "recursive", "direct", "one-shot", "in-network")
LL = LibraryProtocol(name="LL", algorithm="ring", call=4e-6, hop=1e-6, network_hop=2e-5, link=0.05, network=0.05)
SIMPLE = LibraryProtocol(name="Simple", algorithm="ring", call=2e-5, hop=1e-6, network_hop=3e-5, link=0.8, network=0.6)
NVLS = LibraryProtocol(name="NVLS", algorithm="in-network", kinds=("all-reduce",), call=5e-5, link=0.9)
NCCL = Library(protocols=(LL, SIMPLE, NVLS), host=3e-5, wait=2e-5, copies=2.0)


def rank(name):
    return machine(lower(everything(), name), IDEAL, "bf16")


@pytest.mark.parametrize(
    ("on", "kind", "algorithm", "steps", "network_steps", "local", "network"),
    [
        ("p5.48xlarge", "all-reduce", "ring", 14.0, 0.0, 14 / 8, 0.0),
        ("p5.48xlarge", "all-gather", "ring", 7.0, 0.0, 7 / 8, 0.0),
        ("p5.48xlarge", "reduce-scatter", "ring", 7.0, 0.0, 7 / 8, 0.0),
        ("p5.48xlarge", "all-reduce", "recursive", 6.0, 0.0, 14 / 8, 0.0),
        ("p5.48xlarge", "all-reduce", "direct", 2.0, 0.0, 14 / 8, 0.0),
        ("p5.48xlarge", "all-reduce", "one-shot", 7.0, 0.0, 7.0, 0.0),
        ("p5.48xlarge", "all-reduce", "in-network", 2.0, 0.0, 9 / 8, 0.0),
        ("p5.48xlarge", "all-to-all", "direct", 3.0, 0.0, 7 / 8, 0.0),
        ("p5.48xlarge", "broadcast", "ring", 7.0, 0.0, 1.0, 0.0),
        ("p5.48xlarge", "send", "direct", 1.0, 0.0, 1.0, 0.0),
        # A tree over four servers, whose ranks each carry an eighth of the buffer: 2 (1/8 - 1/32).
        ("p5.48xlarge*4", "all-reduce", "ring", 14.0, 4.0, 14 / 8, 2 * 3 / 32),
        ("p5.48xlarge*4", "all-gather", "ring", 7.0, 3.0, 7 / 8, 3 / 32),
        # Switches reduce within servers only.
        ("p5.48xlarge*4", "all-reduce", "in-network", 2.0, 4.0, 9 / 8, 2 * 3 / 32),
        ("p5.48xlarge*4", "all-to-all", "direct", 3.0, 2.0, 7 / 32, 24 / 32),
        ("p5.48xlarge*4", "send", "direct", 0.0, 1.0, 0.0, 1.0),
    ],
)
def test_steps_and_loads(on, kind, algorithm, steps, network_steps, local, network):
    numbers = rank(on)
    at = shape(numbers, kind, algorithm, float(numbers.ranks), 1.0)

    assert (steps, network_steps) == (at.steps, at.network_steps)
    assert (near(local / 450e9), near(network / 50e9)) == (at.local, at.network)


@pytest.mark.parametrize("on", ["trn2.48xlarge", "trn1.32xlarge*4", "p5.48xlarge*2", "trn2-ultraserver"])
def test_loads_are_those_of_training_and_inference(on):
    """One collective model: without losses a ring has the time that steps count for its bytes."""
    numbers = rank(on)
    n = float(numbers.ranks)
    cost = group(numbers, n, 1.0)
    for kind, passes in (("all-reduce", 2.0), ("all-gather", 1.0)):
        at = shape(numbers, kind, "ring", n, 1.0)
        counted = collective_time(numbers, cost, MIB, passes) - passes * cost.latency
        ring = 2.0 * cost.allgather_s_per_byte * MIB if kind == "all-reduce" else counted
        assert near(ring) == MIB * max(at.local, at.network)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_arrays_have_the_bits_of_single_numbers(kind, algorithm):
    numbers = rank("trn2-ultraserver*2")
    n, stride = np.array([2.0, 4.0, 64.0, 256.0, 512.0]), np.array([1.0, 4.0, 1.0, 1.0, 1.0])
    size = np.array([1.0, 512.0, MIB, 3e7, 2.0**30])
    together = time_of(SIMPLE, shape(numbers, kind, algorithm, n, stride), size)

    assert [
        float(time_of(SIMPLE, shape(numbers, kind, algorithm, *each), s))
        for *each, s in zip(n.tolist(), stride.tolist(), size.tolist(), strict=True)
    ] == together.tolist()


def test_the_fastest_protocol_is_used():
    numbers = rank("p5.48xlarge")
    used = {s: timed(NCCL, numbers, "all-reduce", 8.0, 1.0, s)[0] for s in (512.0, 16 * MIB, 2.0**30)}

    assert {512.0: "LL", 16 * MIB: "NVLS", 2.0**30: "NVLS"} == {s: t.protocol.name for s, t in used.items()}
    assert near(18e-6 + 14 / 8 * 512.0 / 450e9 / 0.05) == used[512.0].time
    # Switches of Trn2 do not reduce, and NVLS is for an all-reduce only.
    assert {"LL", "Simple"} == {
        t.protocol.name for t in timed(NCCL, rank("trn2.48xlarge"), "all-reduce", 64.0, 1.0, 1.0)
    }
    assert {"LL", "Simple"} == {t.protocol.name for t in timed(NCCL, numbers, "all-gather", 8.0, 1.0, 1.0)}
    assert () == timed(NCCL, numbers, "all-to-all", 8.0, 1.0, 1.0)


def test_a_rank_own_part_passes_its_links_too():
    numbers = rank("p5.48xlarge")
    at = shape(numbers, "all-gather", "ring", 2.0, 1.0)
    own = LibraryProtocol(name="Simple", algorithm="ring", own=0.6)

    assert near((0.5 + 0.6 * 0.5) * MIB / 450e9) == time_of(own, at, MIB)


def test_launches():
    numbers = rank("p5.48xlarge")
    byte = 1.0 / 3.35e12

    assert 5e-6 == launched(NCCL, "graph", 5e-6, MIB, byte)
    assert near(3e-5 + 2 * MIB / 3.35e12) == launched(NCCL, "eager", 5e-6, MIB, byte)
    assert near(4e-5 + 2 * MIB / 3.35e12) == launched(NCCL, "eager", 4e-5, MIB, byte)
    assert 25e-6 == launched(NCCL, "synchronous", 5e-6, MIB, byte)
    assert float(numbers.seconds_per_byte) == near(byte)


@pytest.mark.parametrize(("on", "n", "steps"), [("p5.48xlarge", 8.0, 14.0), ("p5.48xlarge*4", 32.0, 18.0)])
def test_times_by_protocol(on, n, steps):
    found = timed(NCCL, rank(on), "all-reduce", n, 1.0, 64 * MIB)
    at = shape(rank(on), "all-reduce", "ring", n, 1.0)

    assert {each.steps for each in found if each.protocol.algorithm == "ring"} == {steps}
    assert [each.time for each in found] == sorted(each.time for each in found)
    for each in found:
        if each.protocol.algorithm == "ring":
            assert each.time == pytest.approx(float(time_of(each.protocol, at, 64 * MIB)), rel=1e-12)
            assert each.latency == float(time_of(each.protocol, at, 0.0))
            assert each.network is bool(at.network / each.protocol.network > at.local / each.protocol.link)
