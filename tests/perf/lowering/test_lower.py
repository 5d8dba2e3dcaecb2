"""Servers of a catalog as numbers: ranks, rates and levels of links by hand, and what is refused."""

import math
import re

import pytest

from tests.support.engine import everything, reason_and_place, refusal, shipped
from tests.support.rules import document, graph, source
from trnspec.errors import RefusalError, UnknownNameError, UsageError
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import UNKNOWN, LoweredSystem

GIB = 2.0**30
INF = math.inf
NAMES = tuple(sorted(n.name for kind in (Server, UltraServer) for n in everything().of(kind)))


def levels(system: LoweredSystem) -> list[tuple[str, float, float, float]]:
    return [(level.name, level.ranks, level.rate, level.latency) for level in system.levels]


BY_HAND = {
    # Two cores a chip share 820 GB/s, which every byte crosses twice; 384 GB/s a chip is both directions of four links;
    # 800 Gbit/s of 32 ranks.
    "trn1.32xlarge*32": (512, 1024, 91.75e12, 95e12, 16 * GIB, 410e9, [
        ("chip", 2, 820e9 / 2 / 2, 0), ("server", 32, 384e9 / 2 / 2, 0), ("network", INF, 800e9 / 8 / 32, 0)]),
    "trn1n.32xlarge*2": (32, 64, 91.75e12, 95e12, 16 * GIB, 410e9, [
        ("chip", 2, 820e9 / 2 / 2, 0), ("server", 32, 384e9 / 2 / 2, 0), ("network", INF, 1600e9 / 8 / 32, 0)]),
    # Logical cores of two: four ranks a chip; 1,024 GB/s a chip, 1 to 2 us a hop.
    "trn2.48xlarge": (16, 64, 8 * 128 * 128 * 2 * 2.4e9 / 4, 667e12 / 4, 24 * GIB, 725e9, [
        ("chip", 4, 2.9e12 / 4 / 2, 0), ("server", 64, 1024e9 / 2 / 4, 1.5e-6)]),
    # Beyond: 256 GB/s a chip between servers, 3.2 Tbit/s of a server's 64 ranks at 15 us.
    "u-trn2x64*2": (128, 512, 8 * 128 * 128 * 2 * 2.4e9 / 4, 667e12 / 4, 24 * GIB, 725e9, [
        ("chip", 4, 2.9e12 / 4 / 2, 0), ("server", 64, 1024e9 / 2 / 4, 1.5e-6), ("ultraserver", 256, 256e9 / 2 / 4, 1.5e-6),
        ("network", INF, 3.2e12 / 8 / 64, 15e-6)]),
    # One switched fabric for the whole UltraServer: 2,048 GB/s a chip.
    "trn3-gen1-ultraserver": (64, 256, 8 * 128 * 128 * 2 * 2.4e9 / 4, 671e12 / 4, 36 * GIB, 1.225e12, [
        ("chip", 4, 4.9e12 / 4 / 2, 0), ("ultraserver", 256, 2048e9 / 2 / 4, 0)]),
    "trn3-gen2-ultraserver": (144, 576, 8 * 128 * 128 * 2 * 2.4e9 / 4, 671e12 / 4, 36 * GIB, 1.225e12, [
        ("chip", 4, 4.9e12 / 4 / 2, 0), ("ultraserver", 576, 2048e9 / 2 / 4, 0)]),
    # Elsewhere a rank is a chip: 1.8 TB/s both ways.
    "gb200-nvl72": (72, 72, 2.5e15, 2.5e15, 189_471 * 2**20, 8e12, [("ultraserver", 72, 900e9, 0)]),
    "inf2.48xlarge": (12, 24, 91.75e12, 95e12, 16 * GIB, 410e9, [
        ("chip", 2, 820e9 / 2 / 2, 0), ("server", 24, 192e9 / 2 / 2, 0)]),
    # Without elastic fabric the network is that of the instance: 200 Gbit/s of four ranks, at no latency that is known.
    "trn2.3xlarge*4": (4, 16, 8 * 128 * 128 * 2 * 2.4e9 / 4, 667e12 / 4, 24 * GIB, 725e9, [
        ("chip", 4, 2.9e12 / 4 / 2, 0), ("network", INF, 200e9 / 8 / 4, 0)]),
    "trainium1": (1, 2, 91.75e12, 95e12, 16 * GIB, 410e9, [("chip", 2, 820e9 / 2 / 2, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("on", BY_HAND)
def test_by_hand(on):
    chips, ranks, rate, published, capacity, bandwidth, links = BY_HAND[on]
    system = lower(everything(), on)
    assert (on, chips, ranks) == (system.name, system.chips, system.ranks)
    for expected, actual in (
        (rate, system.rate("bf16")),
        (published, system.published["bf16"]),
        (capacity, system.capacity),
        (bandwidth, system.bandwidth),
    ):
        assert math.isclose(expected, actual, rel_tol=1e-3 if "trn3" in on or "trn2" in on else 1e-12)
    assert [x[:2] for x in links] == [x[:2] for x in levels(system)]
    for expected, actual in zip(links, levels(system), strict=True):
        assert math.isclose(expected[2], actual[2], rel_tol=1e-12)
        assert expected[3] == actual[3]


def ordered(slow: LoweredSystem, value: LoweredSystem, fast: LoweredSystem) -> None:
    """No figure of the slow end is better than its value, none of the fast end worse."""
    for ends in ((s.rates, s.published) for s in (slow, value, fast)):
        assert all(set(value.rates) >= set(e) for e in ends)
    for dtype in value.rates:
        assert slow.rates[dtype] <= value.rates[dtype] <= fast.rates[dtype]
    for name in ("capacity", "bandwidth", "host_memory"):
        assert getattr(slow, name) <= getattr(value, name) <= getattr(fast, name)
    for s, v, f in zip(slow.levels, value.levels, fast.levels, strict=True):
        assert (s.name, s.ranks, s.place) == (v.name, v.ranks, v.place) == (f.name, f.ranks, f.place)
        assert s.rate <= v.rate <= f.rate
        assert s.latency >= v.latency >= f.latency


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 4])
def test_every_server(name, count):
    system = lower(everything(), f"{name}*{count}")
    node = everything().named(name)
    servers = node.spec.servers.count if node.kind == "UltraServer" else 1
    chips = (everything().find(node.spec.servers.server).spec if node.kind == "UltraServer" else node.spec).chips.count
    assert (servers * count, servers * count * chips) == (system.servers, system.chips)
    assert system.ranks == system.chips * system.ranks_per_chip
    ranks = [level.ranks for level in system.levels]
    assert sorted(set(ranks)) == ranks
    # The widest level holds all ranks; several are linked by a network, and one by itself never is.
    assert ((ranks or [1.0])[-1] == INF) == (count > 1)
    assert ([r for r in ranks if r != INF] or [1.0])[-1] == system.ranks / count
    assert system.capacity > 0
    assert system.bandwidth > 0
    assert all(level.place.split()[0] in everything() for level in system.levels)
    assert {b.of for b in system.figures_used} <= set(everything().nodes)
    ordered(system.ends[0], system, system.ends[1])


def test_a_fabric_without_a_rate_has_that_of_its_links():
    reported = "{value: %s, source: s}"
    chip = (
        f"spec: {{memory: {{capacity: {reported % '16 GiB'}, bandwidth: {reported % '100 GB/s'}}},"
        f" peak: {{dense: {{bf16: {reported % '1 TFLOPS'}}}}}}}"
    )
    server = (
        "spec: {chips: {chip: c, count: 4}, host: {vcpus: 8},"
        " fabric: {link: l, topology: {shape: ring, dimensions: [4]}, links_per_chip: 2}}"
    )
    for says, expected in (("per_direction", 2 * 10e9), ("both", 2 * 5e9)):
        link = f"spec: {{connects: chips, bandwidth: {{{says}: {reported % '10 GB/s'}}}}}"
        found = graph(
            source("s", "2026-01-01"), document("Chip", "c", chip), document("Link", "l", link),
            document("Server", "v", server),
        )  # fmt: skip
        assert [("server", 4.0, expected, 0.0)] == levels(lower(found, "v"))
        assert "l spec.bandwidth" == lower(found, "v").levels[0].place


LNC = {
    ("trn2.48xlarge", None): (2, 64, 157.275e12),
    ("trn2.48xlarge", 2): (2, 64, 157.275e12),
    ("trn2.48xlarge", 1): (1, 128, 157.275e12 / 2),
    ("trn1.32xlarge", 1): (1, 32, 91.75e12),
}


@pytest.mark.parametrize(("on", "lnc"), LNC)
def test_logical_cores(on, lnc):
    system = lower(everything(), on, lnc=lnc)
    size, ranks, rate = LNC[on, lnc]
    assert (size, ranks) == (system.lnc, system.ranks)
    assert math.isclose(rate, system.rate("bf16"), rel_tol=1e-3)
    assert ranks == system.levels[-1].ranks
    # A chip has what it has, however many ranks share it.
    assert (384e9 if on == "trn1.32xlarge" else 1024e9) / 2 * 16 == system.levels[-1].rate * ranks


@pytest.mark.parametrize(("on", "lnc"), [("trn1.32xlarge", 2), ("trn2.48xlarge", 3), ("trn2.48xlarge", 0)])
def test_logical_cores_that_are_not_made(on, lnc):
    assert ("logical-cores", "lnc") == reason_and_place(lower, everything(), on, lnc=lnc)


SOME = {
    # Ranks of a unit of each level when only some chips are used; without the network where one unit holds them.
    ("trn1.32xlarge", 4): (1, [2, 8]),
    ("trn1.32xlarge", 16): (1, [2, 32]),
    ("trn1.32xlarge*2", 16): (1, [2, 32]),
    ("trn1.32xlarge*2", 20): (2, [2, 20, INF]),
    ("trn1.32xlarge*4", 33): (3, [2, 22, INF]),
    ("trn1.32xlarge*4", 45): (3, [2, 30, INF]),
    ("trn2-ultraserver", 40): (4, [4, 40, 160]),
    ("trn2-ultraserver", 24): (2, [4, 48, 96]),
    ("trn2-ultraserver*2", 80): (8, [4, 40, 160, INF]),
    ("trn2-ultraserver*4", 48): (3, [4, 64, 192]),
    ("trn3-gen2-ultraserver", 6): (2, [4, 24]),
    ("trn2.3xlarge*4", 3): (3, [4, INF]),
    ("dgx-h100*2", 12): (2, [6, INF]),
    ("dgx-h100", 1): (1, [1]),
}


@pytest.mark.parametrize(("on", "chips"), SOME)
def test_some_chips(on, chips):
    servers, ranks = SOME[on, chips]
    whole, system = lower(everything(), on), lower(everything(), on, chips=chips)
    assert (chips, servers, ranks) == (system.chips, system.servers, [level.ranks for level in system.levels])
    assert chips * whole.ranks_per_chip == system.ranks
    rates = {level.name: level.rate for level in whole.levels}
    assert all(rates[level.name] == level.rate for level in system.levels)
    assert system.ends is not None
    ordered(system.ends[0], system, system.ends[1])


@pytest.mark.parametrize(
    ("on", "chips"),
    [("trn1.32xlarge", 17), ("trn1.32xlarge", 0), ("trn1.32xlarge", -16), ("trn1.32xlarge*2", 17), ("trainium1", 2),
     ("trn1.32xlarge*4", 34), ("trn1.32xlarge*32", 17), ("dgx-h100*2", 13), ("trn1.32xlarge*99999", 1_599_983)],
)  # fmt: skip
def test_some_chips_that_are_not_taken_evenly(on, chips):
    """17 chips of two servers were 34 ranks, 17 of each: half a chip."""
    refused = refusal(lower, everything(), on, chips=chips)
    assert ("chip-count", "chips") == (refused.reason, refused.place)
    assert str(chips) in str(refused)


@pytest.mark.parametrize(
    ("on", "reported"),
    [
        ("", "is not a system"), ("trn1.32xlarge*0", "is not a system"), ("trn1.32xlarge*", "is not a system"),
        ("trn1.32xlarge*-1", "is not a system"), ("trn1.32xlarge*1.5", "is not a system"),
        ("trn1.32xlarge*2*2", "is not a system"), ("TRN1.32XLARGE", "is not a system"),
        ("trn1.32xlarge*1" + 400 * "0", "is not a system"), ("trn1.32xlarge\n*2\nx", "is not a system"),
        ("neuronlink-v2", "has no chips"), ("llama-3.1-8b", "has no chips"),
    ],
)  # fmt: skip
def test_refuses_names_that_are_not_systems(on, reported):
    with pytest.raises(UsageError, match=reported):
        lower(everything(), on)


def test_links_between_chips_alone_are_not_known():
    with pytest.raises(RefusalError, match="a chip, and how 2 of them are linked is not known") as refused:
        lower(everything(), "trainium1*2")
    assert refused.value.reason == "unknown-topology"


@pytest.mark.parametrize(
    ("on", "meant"),
    [
        ("TRN1.32xlarge*32", ["trn1.32xlarge*32"]), ("TRN1.32XLARGE", ["trn1.32xlarge"]),
        (" Trn1.32xlarge * 4 ", ["trn1.32xlarge * 4"]), ("Trainium2", ["trainium2"]),
        ("trn1_32xlarge*2", ["trn1.32xlarge*2", "trn1n.32xlarge*2", "trn1.2xlarge*2"]),
        ("ZZZ*2", []), ("TRN1.32xlarge*0", []), ("A" * 5000, []),
    ],
)  # fmt: skip
def test_hints_for_misspelt_systems(on, meant):
    """Names are in small letters; the hint keeps how many, and each of its systems is one."""
    with pytest.raises(UsageError, match="is not a system") as refused:
        lower(everything(), on)
    _, _, hint = str(refused.value).partition("; ")
    assert meant == re.findall(r"'([^']+)'", hint)
    assert meant or hint == "write a name, and how many: trn1.32xlarge*32"
    for each in meant:
        assert lower(everything(), each).chips > 0


def test_a_name_that_is_not_there():
    with pytest.raises(UnknownNameError, match=r"trn1\.32xlarge"):
        lower(everything(), "trn1.32xlarg")


def test_logical_cores_of_a_gpu():
    with pytest.raises(UsageError, match="lnc means nothing"):
        lower(everything(), "dgx-h100", lnc=1)


def test_a_type_without_a_rate():
    with pytest.raises(RefusalError, match="no published dense rate for fp4") as refused:
        lower(everything(), "trn1.32xlarge").rate("fp4")
    assert ("unknown-figure", "trainium1 spec.peak.dense.fp4") == (refused.value.reason, refused.value.place)
    assert "bf16" in refused.value.hint


def test_basis():
    """What was read, as printed, with its source, its date and what others say of it."""
    found = {(b.of, b.at): b for b in lower(everything(), "trn2-ultraserver*2").figures_used}
    assert {("trn2u.48xlarge", "fabric.bandwidth.both"), ("trn2-ultraserver", "between_servers.bandwidth.both")} <= set(
        found
    )
    assert ("efa-v3", "latency") in found
    capacity = found["trainium2", "memory.capacity"]
    assert "96 GiB" == capacity.says
    assert capacity.source in everything()
    assert any(r.startswith("96 GB, rejected (") for r in capacity.conflicting)
    assert found["trainium2", "tensor_peak.dense.bf16"].source.startswith("derived: ")
    of = lower(everything(), "trn1.32xlarge").figures_used_for("bandwidth", "both")
    assert [("trainium1", "memory.bandwidth"), ("trn1.32xlarge", "fabric.bandwidth.both")] == [(b.of, b.at) for b in of]


def test_memory_of_the_host():
    assert 2048 * GIB == lower(everything(), "trn2.48xlarge").host_memory
    # Of a chip alone there is none, and where it is not published it is unknown.
    assert UNKNOWN == lower(everything(), "trainium2").host_memory


def test_elastic_fabric_is_before_the_network_of_the_instance():
    slower = shipped().replace("trn1.32xlarge", {"network.peak": "100 Gbps"}).graph
    assert levels(lower(everything(), "trn1.32xlarge*2")) == levels(lower(slower, "trn1.32xlarge*2"))
