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


def test_the_space_before_the_unit_of_a_size_may_be_missing() -> None:
    spaced, unspaced = (run(CAT, kind="all-reduce", size=size, on="trn1.32xlarge") for size in ("64 MiB", "64MiB"))
    assert unspaced.title == spaced.title
    assert unspaced.answers == spaced.answers


@pytest.mark.parametrize("size", ["64", "", "64 GB/s"])
def test_refuses_invalid_size(size):
    with pytest.raises(UsageError, match=r"^size: .*; write it such as 64 MiB"):
        run(CAT, kind="broadcast", size=size, on="trn2.48xlarge")


@pytest.mark.parametrize(("kind", "reported"), [("broadcast", "scatters"), ("send", "gathers"), ("all-reduce", "")])
def test_a_buffer_that_is_spread_on_the_way_is_reported(kind, reported):
    found = ideal(CAT, kind=kind, size="1 GiB", on="trn2.48xlarge*4")
    whole = ideal(CAT, kind=kind, size="1 GiB", on="trn2.48xlarge*4", ranks=64)

    assert [reported] * bool(reported) == [
        reported for a in found.assumptions if a.name == "spread" and reported in a.why
    ]
    # On one server chains carry the whole buffer.
    assert "spread" not in {a.name for a in whole.assumptions}


def assumption(found, name):
    return next(a for a in found.assumptions if a.name == name)


def test_latency_per_level_and_missing_levels():
    found = ideal(CAT, kind="all-reduce", size="1 KiB", on="trn2-ultraserver*2")
    without = ideal(CAT, kind="all-reduce", size="1 KiB", on="trn1.32xlarge*2")

    assert "fabric 1.5 us, network 15 us" == assumption(found, "latency").value
    assert "trainium2, between its ranks" in assumption(found, "latency").why
    assert "0" == assumption(without, "latency").value
    assert all(
        place in assumption(without, "latency").why for place in ("neuronlink-v2 spec.latency", "efa spec.latency")
    )


@pytest.mark.parametrize(("size", "marked"), [("1 KiB", True), ("1023 KiB", True), ("1 MiB", False), ("1 GiB", False)])
def test_a_small_size_without_latency_is_marked_as_a_bound(size, marked):
    found = ideal(CAT, kind="all-reduce", size=size, on="trn1.32xlarge")

    assert marked == ("below 1 MiB" in found.answer("time").note)
    assert marked == found.bottleneck.startswith("latency-bound: below 1 MiB")


@pytest.mark.parametrize(("kind", "on"), [("all-reduce", "trn1.32xlarge"), ("all-gather", "trn2.48xlarge*4")])
def test_the_time_of_training_and_inference_is_beside_it(kind, on):
    found = ideal(CAT, kind=kind, size="64 MiB", on=on)
    row = assumption(found, "time_by_level")

    # The same to the digits that are shown, except that a fast algorithm may have more steps than one for each level.
    assert float(row.value.removesuffix(" ms")) == pytest.approx(1e3 * found["time"], rel=5e-2)
    assert f"here {1e3 * found['time']:.4g} ms" in row.why


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


@pytest.mark.parametrize(
    ("given", "kind", "inputs_outside"),
    [
        ({}, "estimate", []),
        ({"size": "1 KiB"}, "extrapolated", ["size"]),
        ({"kind": "all-to-all"}, "extrapolated", ["kind"]),
        ({"on": "trn2.48xlarge*4"}, "extrapolated", ["ranks", "servers"]),
        ({"on": "trn1.32xlarge"}, "transferred", []),
    ],
)
def test_kind_of_evidence(given, kind, inputs_outside):
    found = run(CAT, **{"kind": "all-reduce", "size": "64 MiB", "on": "trn2.48xlarge"} | given)

    assert kind == found.evidence.kind == found.answer("time").kind
    assert inputs_outside == sorted(o.input for o in found.evidence.outside)
    assert [] == list(unsound(found, "collective"))


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


def test_8960_chips_of_a_declared_torus(tmp_path):
    (tmp_path / "pod.yaml").write_text(
        """
api_version: trnspec/v1
kind: Server
metadata: {name: pod, title: A torus, source: neuron-trn2-2026-08}
spec:
  chips: {chip: trainium2, count: 8960}
  fabric: {link: neuronlink-v3, topology: {shape: torus, dimensions: [16, 20, 28]}, links_per_chip: 6}
""",
        encoding="utf-8",
    )
    found = run(trnspec.load([str(tmp_path)]), kind="all-to-all", size="1 GiB", on="pod", ranks=8960, stride=4)

    # Four groups at once, one rank of each chip; 1/4 of all blocks crosses 2 x 16 x 20 links each way.
    assert near(4 * GIB * 8960 / 4 / (2 * 16 * 20) / 128e9 + 1.5e-6) == found["bound"]
