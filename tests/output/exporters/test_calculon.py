"""Systems of calculon.

The package of that name on PyPI is another one (producers and consumers), so its loader is not at hand; what it asserts
of a system file (calculon/system.py, processor.py, memory.py and network.py) is asserted here.
"""

import json

import pytest

import trnspec
from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog

CAT = trnspec.load()
ALL = Catalog(everything())
FP32 = {"vector.tflops": "peak.dense.fp32"}
GPUS = ["p4d.24xlarge", "p5.48xlarge", "dgx-b300", "gb200-nvl72"]
NAMES = ["trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge", "trn2-ultraserver"]
NAMES += ["trn3-gen1-ultraserver", "trn3-gen2-ultraserver"]

TYPES = {"float8", "float16", "float32", "bfloat16"}
NETWORK = {"bandwidth", "efficiency", "size", "latency", "ops", "must_be_filled", "processor_usage"}
OPS = {"p2p", "reduce_scatter", "all_gather", "all_reduce"}


def system(name: str, catalog: trnspec.Catalog = CAT) -> dict:
    return json.loads(catalog[name].export("calculon").text)


def check_curve(curve: list[list[float]]) -> None:
    """From the largest size down to 0, so that every size is covered."""
    sizes = [size for size, _ in curve]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 0
    assert all(0 < share <= 1 for _, share in curve)


@pytest.mark.parametrize("name", [*NAMES, *GPUS])
def test_the_loader_would_take_it(name) -> None:
    made = json.loads(ALL[name].export("calculon", use=FP32 if name in GPUS else None).text)

    assert {"matrix", "vector", "mem1", "mem2", "processing_mode", "networks", "trnspec"} == set(made)
    assert made["processing_mode"] in ("roofline", "no_overlap")
    assert set(made["matrix"]) == set(made["vector"]) <= TYPES
    for engine in (*made["matrix"].values(), *made["vector"].values()):
        assert {"tflops", "gflops_efficiency"} == set(engine)
        assert engine["tflops"] > 0
        check_curve(engine["gflops_efficiency"])
    assert (made["mem2"]["GiB"], made["mem2"]["GBps"]) == (0, 1)  # there is none
    for memory in (made["mem1"], made["mem2"]):
        assert {"GiB", "GBps", "MB_efficiency"} == set(memory)
        assert memory["GBps"] > 0, "it divides by it"
        check_curve(memory["MB_efficiency"])
    assert [network["must_be_filled"] for network in made["networks"]] == [True, False][: len(made["networks"])]
    for network in made["networks"]:
        assert NETWORK == set(network)
        assert network["bandwidth"] > 0
        assert 0 < network["efficiency"] <= 1
        assert network["size"] >= 0
        assert 0 <= network["processor_usage"] < 1
        assert OPS == set(network["ops"])
        for op, (scalar, offset) in network["ops"].items():
            assert scalar > 0
            assert (offset is None) == (op == "p2p")
    assert [ALL[name].chip_count, 65536] == [n["size"] for n in made["networks"]]


def test_trn2() -> None:
    made = system("trn2-ultraserver")

    rates = {"float8": 1258.3, "float16": 629.1, "bfloat16": 629.1, "float32": 157.3}
    assert rates == {t: e["tflops"] for t, e in made["matrix"].items()}
    assert {8} == {e["tflops"] for e in made["vector"].values()}, "eight cores of 1.0 TFLOPS"
    assert (96, 2900) == (made["mem1"]["GiB"], made["mem1"]["GBps"])
    assert [(640, 1.5e-6), (25, 15e-6)] == [(n["bandwidth"], n["latency"]) for n in made["networks"]]


def test_ring_traffic_equals_closed_form() -> None:
    """It multiplies by the scalar and then adds some of n parts: 2 (n - 1) / n for an all-reduce of a ring."""
    ops = system("trn1.32xlarge")["networks"][0]["ops"]

    def sent(op: str, n: int) -> float:
        scalar, offset = ops[op]
        return scalar + scalar / n * (offset or 0)

    assert [2 * 15 / 16, 15 / 16, 15 / 16, 1] == [
        pytest.approx(sent(op, 16)) for op in ("all_reduce", "reduce_scatter", "all_gather", "p2p")
    ]


def test_the_printed_rate_where_no_other_is_known() -> None:
    changed = CAT.replace("trainium2", {"tensor_peak": None})
    made = changed["trn2.48xlarge"].export("calculon")

    assert 667 == json.loads(made.text)["matrix"]["bfloat16"]["tflops"]
    assert any(a.field == "matrix.bfloat16.tflops" and "the rate of all engines" in a.says for a in made.assumptions)
    assert not any("the rate of all engines" in a.says for a in CAT["trn2.48xlarge"].export("calculon").assumptions)


def test_the_alternative_is_used_and_recorded() -> None:
    made = ALL["p5.48xlarge"].export("calculon", use=FP32)

    assert {67} == {e["tflops"] for e in json.loads(made.text)["vector"].values()}
    assert ["67 TFLOPS"] == [u.text for u in made.used if u.field == "vector.tflops"]
    says = "peak.dense.fp32 of h100-sxm is used in place of the vector rate of the cores, which is not known"
    assert says in {a.says for a in made.assumptions if a.field == "vector.tflops"}


def test_a_type_without_a_rate_is_left_out_and_reported() -> None:
    made = CAT["trn3-gen1-ultraserver"].export("calculon")

    assert "float8" not in json.loads(made.text)["matrix"]
    assert "matrix.float8: omitted: the fp8 rate of trainium3 is not known" in map(str, made.assumptions)
