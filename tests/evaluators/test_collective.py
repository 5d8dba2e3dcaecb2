"""The evaluator of collectives: what it answers, what it rests on, and what it refuses."""

import re

import pytest

import trnspec
from tests.support.evaluations import keywords
from trnspec.errors import UsageError
from trnspec.evaluators.collective import run as collective_
from trnspec.evaluators.inference import run as inference_
from trnspec.evaluators.training import run as training_
from trnspec.model.calibration import Calibration
from trnspec.perf.lowering.calibrated import calibrated

run = keywords(collective_)

CAT = trnspec.load()
GIB = 2.0**30


def ideal(catalog, **given):
    return run(catalog, calibration="none", **given)


def near(value):
    return pytest.approx(value, rel=1e-12, abs=0.0)


def test_a_ring_of_one_rank_a_chip_on_a_torus():
    # One rank of each of 16 chips, the three others' groups at the same time: a quarter of 4 links of 128 GB/s.
    found = run(CAT, kind="all-reduce", size="1 GiB", on="trn2.48xlarge", ranks=16, stride=4, algorithm="torus")

    # Eight steps of 1.5 us, and of any algorithm one.
    transfer = 4 * 3.932160e-3
    assert near(transfer + 8 * 1.5e-6) == found["time"]
    assert near(GIB / found["time"]) == found["algorithm_bandwidth"]
    assert near(GIB / found["time"] * 15 / 8) == found["bus_bandwidth"]
    assert near(transfer + 1.5e-6) == found["bound"]
    assert near(100.0 * found["bound"] / found["time"]) == found["share_of_bound"]
    assert ("torus", 8.0) == (found["algorithm"], found["steps"])
    assert "network-bound: bandwidth over the links between chips" == found.bottleneck


def test_the_slowest_stage_counts_and_the_others_are_named():
    found = run(CAT, kind="all-reduce", size="1 GiB", on="trn1.32xlarge*4", algorithm="torus")

    assert ["latency", "network_bandwidth"] == [p.name for p in found.parts]
    # 2 x 3/4 x (1 GiB / 32) at 100 GB/s / 32.
    assert near(1.5 * GIB / 100e9) == found.parts[1].value == found["time"]
    assert all(words in found.parts[1].note for words in ("through its memory: ", "links between chips: "))
    assert "network-bound: bandwidth over the network" == found.bottleneck


def test_it_is_a_bound_from_the_digits():
    found = ideal(CAT, kind="all-gather", size="1 GiB", on="trn1.2xlarge")
    answer, rate = found.answer("time"), found.answer("bus_bandwidth")

    # 820 GB/s is between 815 and 825, or 819.5 and 820.5; how much of it is lost no source knows.
    assert pytest.approx(GIB / 2 / 205e9, rel=1e-12) == answer.value
    assert (pytest.approx(answer.value * 820 / 820.5, rel=1e-12), None) == (answer.low, answer.high)
    assert (None, pytest.approx(rate.value * 820.5 / 820, rel=1e-12)) == (rate.low, rate.high)


def test_all_algorithms_are_reported_the_fastest_first():
    (table,) = ideal(CAT, kind="all-reduce", size="1 GiB", on="trn2.48xlarge", ranks=16, stride=4).tables
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    times = [row[1] for row in table.rows]

    assert sorted(times) == times
    assert {
        *("ring", "bidirectional-ring", "rings-both-ways", "recursive", "direct", "direct-one-step", "torus")
    } == rows.keys()
    assert {"ring": 30.0, "bidirectional-ring": 16.0, "recursive": 8.0, "direct": 2.0, "direct-one-step": 1.0} == {
        name: row["steps"] for name, row in rows.items() if name not in ("torus", "rings-both-ways")
    }
    assert {"recursive": "rdh", "direct": "mesh", "rings-both-ways": "kangaring"} == {
        name: row["neuron_name"] for name, row in rows.items() if row["neuron_name"]
    }
    assert all(row["share_of_bound"] <= 100 * (1 + 1e-12) for row in rows.values())


@pytest.mark.parametrize(
    ("kind", "sent"), [("all-reduce", 2 * 15 / 16), ("all-gather", 15 / 16), ("all-to-all", 2.0), ("broadcast", None)]
)
def test_the_time_that_training_and_inference_count(kind, sent):
    """A hop, and what is sent at 128 GB/s, a quarter of 4 links."""
    for catalog in (CAT, CAT.replace("trainium2", {"memory.bandwidth": None})):
        found = ideal(catalog, kind=kind, size="1 GiB", on="trn2.48xlarge", ranks=16, stride=4)
        values = [a.value for a in found.assumptions if a.name == "time_by_level"]
        known = catalog is CAT and sent is not None
        assert ([f"{1e3 * (1.5e-6 + sent * GIB / 128e9):.4g} ms"] if known else []) == values


@pytest.mark.parametrize(("algorithm", "protocol"), [("rdh", "RDH"), ("recursive", "RDH"), ("ring", "KangaRing")])
def test_a_measured_protocol_is_found_by_its_name_and_by_its_algorithm(algorithm, protocol):
    found = run(CAT, kind="all-reduce", size="1 MiB", on="trn2.48xlarge", ranks=32, algorithm=algorithm)

    assert ("all-reduce of 1 MiB among 32 ranks of trn2.48xlarge", protocol) == (found.title, found["algorithm"])


@pytest.mark.parametrize("size", ["64", "", "64 GB/s"])
def test_refuses_invalid_size(size):
    with pytest.raises(UsageError, match=r"^size: .*; write it such as 64 MiB"):
        run(CAT, kind="broadcast", size=size, on="trn2.48xlarge")


def test_launches_of_the_host():
    given = {"kind": "all-reduce", "size": "1 MiB", "on": "trn2.48xlarge"}
    device, eager, waited = (run(CAT, launch=launch, **given)["time"] for launch in ("graph", "eager", "synchronous"))
    achieved = next(n.spec.achieved for n in CAT.graph.of(Calibration) if n.name == "trainium2-nccom-2026-collectives")

    copied = float(achieved.copies) * 2**20 / 725e9
    assert near(max(device, float(achieved.host)) + copied) == eager
    assert near(device + float(achieved.wait)) == waited


collective, inference, training = (keywords(f) for f in (collective_, inference_, training_))
SERVED = {"model": "llama-3.1-70b", "on": "trn2.48xlarge", "tp": 32, "batch": 16}
TRAINED = {"model": "llama-3.1-8b", "on": "trn1.32xlarge*4", "tp": 8, "seq": 4096, "global_batch": 64, "zero": 1}


def both(found) -> tuple[float, float, str]:
    """The time by the calibration of the step and by that of collectives [us], and the name of the latter."""
    row = next(a for a in found.assumptions if a.name == "tensor_all_reduce")
    match = re.search(r"; ([\d.e+]+) us by ([\w.-]+) \((\w+)\)", row.why)
    return float(row.value.removesuffix(" us")), float(match[1]), match[2]


def test_a_decode_step():
    counted, measured, name = both(inference(CAT, **SERVED))
    # 16 tokens of 8,192 elements of 2 bytes.
    alone = collective(CAT, kind="all-reduce", size="256 KiB", on="trn2.48xlarge", ranks=32)

    assert "trainium2-nccom-2026-collectives" == name
    assert measured == pytest.approx(1e6 * alone["time"], rel=5e-3)
    fixed = calibrated(CAT.graph, "trainium2", "inference", experts=False).efficiency.call
    assert counted >= 1e6 * fixed * (1 - 5e-3) > 0.0


@pytest.mark.parametrize(("evaluate", "given", "size"), [(training, TRAINED, "32 MiB"), (inference, SERVED, "256 KiB")])
def test_the_same_two_times_in_both_directions(evaluate, given, size):
    counted, measured, name = both(evaluate(CAT, **given))
    alone = collective(CAT, kind="all-reduce", size=size, on=given["on"], ranks=given["tp"])
    row = next(
        a for a in alone.assumptions if a.name == f"time_in_{'training' if evaluate is training else 'inference'}"
    )

    assert float(row.value.removesuffix(" us")) == counted
    assert row.why.endswith(f"here {measured:.3g} us by {name}")
