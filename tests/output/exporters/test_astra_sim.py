"""Networks of astra-sim: what its parser asserts of a file is asserted here."""

import math

import pytest

import trnspec
from tests.support.outputs import with_topology
from trnspec.yaml import read_text

CAT = trnspec.load()
GIB, GB = 2**30, 10**9


def network(name: str, catalog: trnspec.Catalog = CAT) -> dict:
    """The file as data, once it is known that the parser would take it."""
    data = read_text(catalog[name].export("astra-sim").text).data
    assert isinstance(data, dict)
    assert {"topology", "npus_count", "bandwidth", "latency"} == set(data)
    assert 1 == len({len(v) for v in data.values()})
    assert set(data["topology"]) <= {"Ring", "FullyConnected", "Switch"}
    assert all(isinstance(n, int) and n > 1 for n in data["npus_count"])
    assert all(b > 0 for b in data["bandwidth"])
    assert all(s >= 0 for s in data["latency"])
    assert catalog[name].chip_count == math.prod(data["npus_count"])
    return data


def rates(data: dict) -> list[float]:
    """In GB/s; the program counts 2 ** 30 bytes to what it calls a GB."""
    return [pytest.approx(b * GIB / GB) for b in data["bandwidth"]]


def test_a_torus_is_rings_of_rings() -> None:
    data = network("trn1.32xlarge")

    assert (["Ring", "Ring"], [4, 4], [0, 0]) == (data["topology"], data["npus_count"], data["latency"])
    assert [48, 48] == rates(data)


def test_the_dimension_between_servers_is_the_outermost() -> None:
    data = network("trn2-ultraserver")

    assert (["Ring"] * 3, [4, 4, 4]) == (data["topology"], data["npus_count"])
    assert [128, 128, 64] == rates(data)
    assert [1500, 1500, 1500] == data["latency"], (
        "in ns; the page speaks of nodes that are connected via NeuronLinks, too"
    )


def neighbours(data: dict) -> set[tuple[int, int]]:
    """The links of a file as astra-sim builds them: the first dimension changes the number by one."""
    found, step = set(), 1
    for block, size in zip(data["topology"], data["npus_count"], strict=True):
        for chip in range(math.prod(data["npus_count"])):
            place = chip // step % size
            others = [(place + 1) % size] if block == "Ring" else range(size)
            found |= {tuple(sorted((chip, chip + (o - place) * step))) for o in others if o != place}
        step *= size
    return found


@pytest.mark.parametrize(
    "shape", [("torus", [3, 4, 5]), ("torus", [2, 4]), ("ring", [6]), ("fully-connected", [5]), ("hypercube", [4])]
)
def test_the_links_are_those_of_the_structure(shape) -> None:
    changed = with_topology(*shape)
    edges = {(e.a, e.b) for e in changed["trn1.32xlarge"].topology.build().edges}

    assert edges == neighbours(network("trn1.32xlarge", changed))


def test_a_switch() -> None:
    changed = CAT.replace("trn3-gen1-server", {"fabric.bandwidth": "2,048 GB/s"})
    data = network("trn3-gen1-server", changed)

    assert (["Switch"], [16]) == (data["topology"], data["npus_count"])
    assert [1024] == rates(data)


def test_two_switches_with_direct_links() -> None:
    between = {"between_servers": {"link": "neuronlink-v4", "links_per_chip": 2}}
    data = network("trn3-gen1-ultraserver", CAT.replace("trn3-gen1-ultraserver", between))

    assert (["Switch", "FullyConnected"], [32, 2]) == (data["topology"], data["npus_count"])
    assert [1024, 128] == rates(data)


def test_a_pair_of_chips_is_no_ring() -> None:
    assert ["FullyConnected"] == network("trn1.32xlarge", with_topology("ring", [2]))["topology"]
    assert ["FullyConnected"] == network("trn1.32xlarge", with_topology("chain", [2]))["topology"]


def test_dimensions_of_one_are_left_out() -> None:
    assert [4] == network("trn1.32xlarge", with_topology("torus", [1, 4]))["npus_count"]
