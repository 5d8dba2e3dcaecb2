"""Execution traces of a training step: the files of every rank, their groups, and the network."""

import json
from typing import Any

import pytest

import trnspec
from tests.support.engine import refusal
from trnspec.evaluators.traces import _traffic, execution, step_passes
from trnspec.evaluators.training import TrainingQuestion
from trnspec.output.chakra import parsed
from trnspec.perf.lowering.lower import lower
from trnspec.yaml import read_text

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

CATALOG = trnspec.load()
GIVEN: dict[str, Any] = {
    "model": "llama-3.1-8b", "on": "trn1.32xlarge", "seq": 4096, "global_batch": 8, "tp": 8, "pp": 2, "must_fit": False,
    "calibration": "none", "sequence_parallel": False,
}  # fmt: skip


def files(**more: Any) -> dict[str, bytes]:
    return execution(CATALOG, TrainingQuestion(**(GIVEN | more)))


def attributes(node: Any) -> dict[str, Any]:
    return {a.name: getattr(a, a.WhichOneof("value")) for a in node.attr}


@pytest.fixture(scope="module")
def found() -> dict[str, bytes]:
    return files()


def test_computation_is_that_of_the_evaluation(found) -> None:
    evaluation = trnspec.evaluate("training", CATALOG, **GIVEN)
    parts = {p.name: p.value for p in evaluation.parts if p.of == "step_time"}
    computed = [1e-6 * sum(n.duration_micros for n in parsed(found[f"{rank}.et"])) for rank in (0, 31)]

    assert parts["compute"] + parts["optimizer"] == pytest.approx(computed[0], abs=5e-7)
    assert parts["compute"] + parts["optimizer"] + parts["head"] == pytest.approx(computed[1], abs=5e-7)


def test_all_reduces_are_those_of_the_layers(found) -> None:
    """Four of 4096 tokens of 4096 elements of 2 B in each of 16 layers, for each of 4 microbatches."""
    sizes = [
        a["comm_size"]
        for a in map(attributes, parsed(found["5.et"]))
        if a.get("comm_type") == 0 and a["pg_name"] != "0"
    ]
    groups = json.loads(found["groups.json"])
    of_layers = [size for size in sizes if size == 4096 * 4096 * 2]

    assert 4 * 16 * 4 == len(of_layers)
    assert [0, 1, 2, 3, 4, 5, 6, 7] in groups.values()
    assert [5, 13] in groups.values()
    assert [21, 29] in groups.values()


def test_messages_have_two_sides(found) -> None:
    sent, received = ({tuple(sorted(attributes(n).items())) for r in ranks for n in parsed(found[f"{r}.et"]) if n.type == kind}
                      for ranks, kind in ((range(16), 5), (range(16, 32), 6)))  # fmt: skip

    assert sent
    assert received == sent


def test_refused() -> None:
    assert refusal(files, on="trn1.32xlarge*64", tp=1, pp=1, global_batch=2**20).reason == "too-many-events"


@pytest.mark.parametrize("tp", [1, 2, 8, 32])
def test_traffic(tp: int) -> None:
    """Bytes of Llama 3.1 8B by hand: 4,096 wide, 8 heads of 128 for keys and values, 14,336 in between, 2 B each."""
    question = TrainingQuestion(**GIVEN | {"tp": tp, "pp": 1, "microbatch": 2, "global_batch": 64})
    _, estimator, layout, _ = step_passes(CATALOG, question)
    traffic = _traffic(estimator, layout)
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096

    assert traffic.hidden == 2 * 4096 * 4096 * 2
    assert traffic.keys == pytest.approx(2 * 4096 * 2 * 1024 * 2 / min(tp, 8))
    assert traffic.weights == pytest.approx((layer * 2 / tp, 0.0), rel=1e-3)
    assert traffic.ends == pytest.approx((128256 * 4096 * 2 / tp, 128256 * 4096 * 2 / tp), rel=1e-3)
    assert (traffic.copies, traffic.results, traffic.layers) == (0.0, 2.0, (32.0,))
    assert traffic.groups["tensor"] == (tp, 1)
    assert traffic.groups["replicas"] == (layout.dp, tp)


def test_traffic_of_experts() -> None:
    """Mixtral 8x7B by hand: a rank of TP 4, CP 2 and EP 2 has 1/8 of 8 experts and sends 2 copies of 1/4 of its tokens."""
    given = GIVEN | {"model": "mixtral-8x7b", "on": "trn1.32xlarge*2", "global_batch": 16, "tp": 4, "cp": 2, "ep": 2}
    _, estimator, layout, _ = step_passes(
        CATALOG, TrainingQuestion(**given | {"zero": 1, "recompute": "full", "optimizer": "adam-fp32-grads"})
    )
    traffic = _traffic(estimator, layout)

    assert traffic.hidden == 2048 * 4096 * 2
    assert (traffic.copies, traffic.keys) == (2 * traffic.hidden / 4, 2048 * 2 * 1024 * 2 / 4)
    assert traffic.weights[1] == 8 * 3 * 4096 * 14336 * 2 / 8
    assert traffic.ends == (32000 * 4096 * 2 / 4, 32000 * 4096 * 2 / 4)
    assert (traffic.layers, traffic.gradient, traffic.again) == ((16.0, 16.0), 2.0, 1.0)
    assert (traffic.zero, traffic.sequence) == (1, False)
    assert traffic.groups == {
        "tensor": (4, 1), "context": (2, 4), "experts": (2, 4), "replicas": (8, 4), "expert-replicas": (4, 8),
    }  # fmt: skip


def test_the_system_of_the_simulator(found) -> None:
    rings = {
        f"{name}-implementation": ["ring", "ring"]
        for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    }
    network = read_text(found["network.yml"]).data
    lowered = lower(CATALOG.graph, "trn1.32xlarge")
    levels = [level for level in lowered.levels if level.rate]

    assert json.loads(found["system.json"]) == rings | {
        "scheduling-policy": "FIFO", "endpoint-delay": 0, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
        "collective-optimization": "localBWAware", "local-mem-bw": 1_000_000, "boost-mode": 0,
    }  # fmt: skip
    assert (network["topology"], network["npus_count"]) == (["Switch", "Switch"], [2, 16])
    assert network["bandwidth"] == pytest.approx([level.rate / 2**30 for level in levels[:2]], rel=1e-5)
    assert network["latency"] == pytest.approx([1e9 * level.latency for level in levels[:2]], rel=1e-5)
