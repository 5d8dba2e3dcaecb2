"""The evaluator of collectives: what it answers, what it rests on, and what it refuses."""

import pytest

import trnspec
from tests.support.evaluations import keywords
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.runner import unsound
from trnspec.evaluators.collective import run as collective_
from trnspec.model.calibration import Calibration

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
        *("ring", "bidirectional-ring", "rings-both-ways", "recursive", "direct", "direct-one-step", "torus"),
    } == rows.keys()
    assert {"ring": 30.0, "bidirectional-ring": 16.0, "recursive": 8.0, "direct": 2.0, "direct-one-step": 1.0} == {
        name: row["steps"] for name, row in rows.items() if name not in ("torus", "rings-both-ways")
    }
    assert {"recursive": "rdh", "direct": "mesh", "rings-both-ways": "kangaring"} == {
        name: row["neuron_name"] for name, row in rows.items() if row["neuron_name"]
    }
    assert all(row["share_of_bound"] <= 100 * (1 + 1e-12) for row in rows.values())


@pytest.mark.parametrize("size", ["64", "", "64 GB/s"])
def test_refuses_invalid_size(size):
    with pytest.raises(UsageError, match=r"^size: .*; write it such as 64 MiB"):
        run(CAT, kind="broadcast", size=size, on="trn2.48xlarge")


CALIBRATION = """
api_version: trnspec/v1
kind: Calibration
metadata: {name: mine, title: Collectives on Trn1, source: neuron-nccom-test-2026-08}
spec:
  chip: trainium1
  of: collectives
  software: Neuron
  fitted: 2026-11-22
  data: mine.csv
  achieved: {call: 55 us, link: 0.5x, hop: 2 us}
  spread: {rows: 12, mean: 0.1x, median: 0.1x, worst: 0.3x, coverage: 0.8x, low: 0.9x, high: 1.2x}
"""


def test_a_calibration_without_protocols_is_one(tmp_path):
    (tmp_path / "mine.yaml").write_text(CALIBRATION, encoding="utf-8")
    catalog = trnspec.load([str(tmp_path)])
    given = {"kind": "all-gather", "on": "trn1.32xlarge", "ranks": 16, "stride": 2}
    small, large = (run(catalog, size=size, calibration="mine", **given) for size in ("1 KiB", "1 GiB"))
    bound = ideal(catalog, size="1 GiB", **given)

    # A call and a step, and 15/16 of the buffer at half of 96 GB/s.
    assert near(57e-6 + 2 * 15 / 16 * 1024 / 96e9) == small["time"]
    assert near(57e-6 + 2 * 15 / 16 * GIB / 96e9) == large["time"]
    # 384 GB/s is between 383.5 and 384.5.
    answer = large.answer("time")
    assert answer.low == pytest.approx(0.9 * (57e-6 + 2 * 15 / 16 * GIB / 96e9 * 384 / 384.5), rel=1e-9)
    assert answer.high == pytest.approx(1.2 * (57e-6 + 2 * 15 / 16 * GIB / 96e9 * 384 / 383.5), rel=1e-9)
    # A bound has no losses.
    assert bound["bound"] == large["bound"]
    assert [] == list(unsound(large, "collective"))


def test_launches_of_the_host():
    given = {"kind": "all-reduce", "size": "1 MiB", "on": "trn2.48xlarge"}
    device, eager, waited = (run(CAT, launch=launch, **given)["time"] for launch in ("graph", "eager", "synchronous"))
    achieved = next(n.spec.achieved for n in CAT.graph.of(Calibration) if n.name == "trainium2-nccom-2026-collectives")

    copied = float(achieved.copies) * 2**20 / 725e9
    assert near(max(device, float(achieved.host)) + copied) == eager
    assert near(device + float(achieved.wait)) == waited


def test_ten_to_the_ninth_chips_are_refused_before_they_are_built(tmp_path):
    (tmp_path / "huge.yaml").write_text(
        """
api_version: trnspec/v1
kind: Server
metadata: {name: huge, title: Huge, source: neuron-trn2-2026-08}
spec:
  chips: {chip: trainium2, count: 1000000000}
  fabric: {link: neuronlink-v3, topology: {shape: torus, dimensions: [1000, 1000, 1000]}, links_per_chip: 6}
""",
        encoding="utf-8",
    )
    catalog = trnspec.load([str(tmp_path)])

    for given in ({"on": "huge"}, {"on": "huge", "ranks": 8}, {"on": "trn2.48xlarge*999999"}):
        with pytest.raises(RefusalError) as caught:
            run(catalog, kind="all-reduce", size="1 GiB", **given)
        assert ("too-large", "ranks") == (caught.value.reason, caught.value.place)
