"""The evaluator of collectives: what it answers, what it rests on, and what it refuses."""

import pytest
from evaluator_samples import keywords

import trnspec
from trnspec.errors import QuantityError, UnknownNameError
from trnspec.evaluation.inputs import inputs
from trnspec.evaluation.result import RefusalError
from trnspec.evaluation.runner import unsound
from trnspec.evaluators.collective import run as collective_

run = keywords(collective_)

CAT = trnspec.load()
GIB = 2.0**30
KINDS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"]
ON = ["trn1.2xlarge", "trn1.32xlarge", "trn2-ultraserver", "trn3-gen2-ultraserver", "trn1.32xlarge*4"]


def near(value):
    return pytest.approx(value, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("size", ["64 MiB", "0 B"])
def test_what_it_gives_is_sound(kind, on, size):
    assert [] == list(unsound(run(CAT, kind=kind, size=size, on=on), "collective"))


@pytest.mark.parametrize("kind", KINDS)
def test_one_rank_exchanges_nothing(kind):
    found = run(CAT, kind=kind, size="1 GiB", on="trn2.48xlarge", ranks=1)

    assert [] == list(unsound(found, "collective"))
    assert (0.0, 0.0, "none", "") == (found["time"], found["bound"], found["algorithm"], found.bottleneck)
    assert {"time", "bound", "algorithm", "steps"} == {a.name for a in found.answers}


def test_a_ring_of_one_rank_a_chip_on_a_torus():
    # One rank of each of 16 chips, the three others' groups at the same time: a quarter of 4 links of 128 GB/s.
    found = run(CAT, kind="all-reduce", size="1 GiB", on="trn2.48xlarge", ranks=16, stride=4, algorithm="torus")

    assert near(4 * 3.932160e-3) == found["time"]
    assert near(GIB / (4 * 3.932160e-3)) == found["algorithm_bandwidth"]
    assert near(128e9) == found["bus_bandwidth"]
    assert near(100.0) == found["share_of_bound"]
    assert ("torus", 8.0) == (found["algorithm"], found["steps"])
    assert "network-bound: bandwidth over the links between chips" == found.bottleneck


def test_parts_by_level_and_what_binds():
    found = run(CAT, kind="all-reduce", size="1 GiB", on="trn1.32xlarge*4", algorithm="torus")

    assert ["latency", "chip_bandwidth", "fabric_bandwidth", "network_bandwidth"] == [p.name for p in found.parts]
    # 2 x 3/4 x (1 GiB / 32) at 100 GB/s / 32.
    assert near(1.5 * GIB / 100e9) == found.parts[3].value
    assert near(found["time"]) == sum(p.value for p in found.parts)
    assert "network-bound: bandwidth over the network" == found.bottleneck


def test_what_waits_for_device_memory_says_so():
    found = run(CAT, kind="all-reduce", size="1 GiB", on="trn2.48xlarge")

    assert "HBM-bound: bandwidth between ranks of one chip, through its memory" == found.bottleneck
    assert {("trainium2", "memory.bandwidth"), ("trn2.48xlarge", "fabric.bandwidth")} == {
        (b.of, b.at) for b in found.figures_used
    }


def test_small_messages_wait_for_the_published_latency():
    found = run(CAT, kind="all-reduce", size="1 KiB", on="trn2.48xlarge*4")

    assert f"latency-bound: {found['steps']:g} steps" == found.bottleneck
    # Two steps over the network of 15 us each are the least.
    assert near(30e-6) == next(p.value for p in found.parts if p.name == "latency")
    assert ("efa-v3", "latency") in {(b.of, b.at) for b in found.figures_used}


def test_it_is_a_bound_from_the_digits():
    found = run(CAT, kind="all-gather", size="1 GiB", on="trn1.2xlarge")
    answer, rate = found.answer("time"), found.answer("bus_bandwidth")

    # 820 GB/s is between 815 and 825, or 819.5 and 820.5; how much of it is lost nobody knows.
    assert pytest.approx(GIB / 2 / 205e9, rel=1e-12) == answer.value
    assert (pytest.approx(answer.value * 820 / 820.5, rel=1e-12), None) == (answer.low, answer.high)
    assert (None, pytest.approx(rate.value * 820.5 / 820, rel=1e-12)) == (rate.low, rate.high)


def test_all_algorithms_are_told_the_fastest_first():
    (table,) = run(CAT, kind="all-reduce", size="1 GiB", on="trn2.48xlarge", ranks=16, stride=4).tables
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


def test_what_is_assumed_is_told():
    found = run(CAT, kind="all-to-all", size="1 GiB", on="trn3-gen2-ultraserver")

    assert {"calibration", "groups_at_once", "lnc", "routing", "exchange_in_a_chip", "size"} == {
        a.name for a in found.assumptions
    }
    assert "non-blocking" in next(a.why for a in found.assumptions if a.name == "routing")


def test_the_question_is_told_with_its_defaults():
    found = run(CAT, kind="send", size="1 MiB", on="trn2.48xlarge", lnc=1)

    assert {
        "kind": "send",
        "size": "1 MiB",
        "on": "trn2.48xlarge",
        "chips": None,
        "ranks": 128,
        "stride": 1,
        "algorithm": None,
        "lnc": 1,
    } == dict(found.inputs)


@pytest.mark.parametrize(
    ("given", "reason", "place"),
    [
        ({"on": "trn3-gen2-server"}, "unknown-figure", "trn3-gen2-server spec.fabric.bandwidth"),
        ({"ranks": 1000}, "rank-count", "ranks"),
        ({"algorithm": "carousel"}, "unknown-algorithm", "algorithm"),
        ({"on": "trn1.32xlarge", "lnc": 2}, "logical-cores", "lnc"),
    ],
)
def test_refusals_have_a_reason_and_a_place(given, reason, place):
    with pytest.raises(RefusalError) as caught:
        run(CAT, **{"kind": "all-reduce", "size": "1 MiB", "on": "trn2.48xlarge", **given})

    assert (reason, place) == (caught.value.reason, caught.value.place)


def test_a_size_is_a_quantity_of_information():
    with pytest.raises(QuantityError) as caught:
        run(CAT, kind="all-reduce", size="64 GB/s", on="trn2.48xlarge")

    assert "dimension" == caught.value.reason


@pytest.mark.parametrize("size", ["64MiB", "64", "", "64 GB/s"])
def test_what_is_no_size_is_told_with_its_place_and_an_example(size):
    with pytest.raises(QuantityError, match=r"^size: .*; write it such as 64 MiB$"):
        run(CAT, kind="broadcast", size=size, on="trn2.48xlarge")


@pytest.mark.parametrize("size", ["~64 MiB", "up to 64 MiB"])
def test_what_may_be_many_sizes_is_refused(size):
    with pytest.raises(RefusalError) as caught:
        run(CAT, kind="broadcast", size=size, on="trn2.48xlarge")

    assert ("not-exact", "size") == (caught.value.reason, caught.value.place)


@pytest.mark.parametrize(("ranks", "words"), [(1, "among 1 rank of"), (2, "among 2 ranks of")])
def test_one_rank_is_told_in_the_singular(ranks, words):
    assert words in run(CAT, kind="broadcast", size="0 MiB", on="trn2.48xlarge", ranks=ranks).title


@pytest.mark.parametrize(("kind", "told"), [("broadcast", "scatters"), ("send", "gathers"), ("all-reduce", "")])
def test_a_buffer_that_is_spread_on_the_way_is_told(kind, told):
    found = run(CAT, kind=kind, size="1 GiB", on="trn2.48xlarge*4")
    whole = run(CAT, kind=kind, size="1 GiB", on="trn2.48xlarge*4", ranks=64)

    assert [told] * bool(told) == [told for a in found.assumptions if a.name == "spread" and told in a.why]
    # On one server chains carry the whole buffer.
    assert "spread" not in {a.name for a in whole.assumptions}


def test_a_broadcast_over_the_network_uses_all_ranks_of_a_server():
    broadcast, reduced = (run(CAT, kind=k, size="1 GiB", on="trn2.48xlarge*4") for k in ("broadcast", "all-reduce"))

    assert broadcast["time"] < reduced["time"]
    # S / 64 ranks, each at 400 GB/s / 64.
    assert near(GIB / 400e9) == next(p.value for p in broadcast.parts if p.name == "network_bandwidth")


def test_an_unknown_system_is_named():
    with pytest.raises(UnknownNameError, match=r"trn1\.32xlarge"):
        run(CAT, kind="all-reduce", size="1 MiB", on="trn1.32xlrge")


def test_every_input_is_explained():
    assert {"kind", "size", "on", "chips", "ranks", "stride", "algorithm", "lnc"} == {
        i.name for i in inputs(collective_, "collective") if i.help
    }
