"""The evaluator of memory: what it needs, whether it fits, what would make it fit, and what it refuses."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from tests.support.engine import refusal
from tests.support.evaluations import keywords, parts, table
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.runner import unsound
from trnspec.evaluators.fit import PARTS
from trnspec.evaluators.memory import run as memory_

run = keywords(memory_)

CATALOG = trnspec.load()
GIB = 2**30
LLAMA = {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "seq": 8192}


def asked(catalog=CATALOG, **question) -> Evaluation:
    """An evaluation that is sound."""
    found = run(catalog, **question)
    assert [] == list(unsound(found, "memory"))
    return found


def test_training_on_one_server():
    found = asked(**LLAMA, tp=4, zero=1, sequence_parallel=False)
    each = parts(found, "total")
    assert tuple(each) == tuple(PARTS)
    # 65 norms of 4,096 are whole on each of the four ranks, and sixteen replicas share the optimizer.
    held = (8_030_261_248 - 65 * 4096) / 4 + 65 * 4096
    assert (2 * held, 2 * held, 12 * held / 16) == (each["weights"], each["gradients"], each["optimizer"])
    # Four h whole; queries, output, keys and values 2.5 h and the network 3 f split in four.
    layer = 2 * 8192 * (4 * 4096 + (2.5 * 4096 + 3 * 14336) / 4)
    assert 32 * layer == each["activations"]
    assert math.isclose(
        8192 * 8 + 8192 * 4 * 4096 + 4 * 8192 * 128256 / 4, each["embeddings_and_logits"], rel_tol=1e-12
    )
    assert (24 * GIB, False) == (found["capacity"], found["fits"])
    assert 24 * GIB - found["total"] == found["free"]
    assert found.answer("free").note.startswith("missing ")
    assert (16, 1) == (found.inputs["dp"], found.inputs["microbatches"])


def test_changes_that_fit():
    found = asked(**LLAMA, tp=4, zero=1, sequence_parallel=False)
    single = {row[0]: row[3] for row in table(found, "Single changes").rows}
    assert {
        "tp 4 -> 8": True, "pp 1 -> 2": True, "cp 1 -> 2": True, "zero 1 -> 2": True,
        "recompute none -> operators": True, "sequence_parallel no -> yes": True, "offload none -> optimizer": False,
    } == single  # fmt: skip
    ways = table(found, "Changes that fit").rows
    assert "smallest change that fits: " + ways[0][0] == found.bottleneck.split("; ")[2]
    assert all(row[3] and row[1] <= 24 * GIB and row[1] + row[2] == 24 * GIB for row in ways)
    # What is advised is what one then finds.
    for change, total, *_ in ways:
        (name, _, _, value), changed = change.split(), {"tp": 4, "zero": 1, "sequence_parallel": False}
        typed = {"yes": True}.get(value, int(value) if value.isdigit() else value)
        microbatches = {"microbatches": 16 // asked(**LLAMA, **{**changed, name: typed}).inputs["dp"]}
        again = asked(**LLAMA, **{**changed, name: typed, **microbatches})
        assert (total, True) == (again["total"], again["fits"]), change


@pytest.mark.parametrize(
    ("question", "end"),
    [
        # Of 405,853,388,800 parameters in 24 GiB, and in 16 GiB.
        ({"model": "llama-3.1-405b"}, "on 64 ranks: weights, gradients and optimizer alone need 252 ranks"),
        ({"model": "llama-3.1-405b", "on": "trn1.32xlarge", "mode": "inference"}, "on 32 ranks: weights alone need 48 ranks"),
        ({"seq": 2**22, "chips": 2}, "no change of up to 3 inputs fits on 8 ranks"),
    ],
)  # fmt: skip
def test_nothing_fits(question, end):
    assert asked(**LLAMA | {"tp": 8} | question).bottleneck.endswith(end)


def test_stages_of_a_pipeline():
    found = asked(model="llama-3.1-70b", on="trn2.48xlarge*4", seq=8192, tp=8, pp=4, microbatches=2)
    rows = table(found, "Memory per rank by pipeline stage")
    # The two in the middle hold as many layers, and nothing else.
    assert ("0", "1-2", "3") == tuple(row[0] for row in rows.rows)
    assert found["total"] == max(row[1] for row in rows.rows)
    assert all(math.isclose(row[1], math.fsum(row[2:-1]), rel_tol=1e-12) for row in rows.rows)
    # No more than two microbatches are in flight, so that the first three stages keep as much, the last half of it.
    kept = [dict(zip(rows.columns, row, strict=True))["activations"] for row in rows.rows]
    assert kept[0] == kept[1] == 2 * kept[2]


def test_inference_keeps_weights_and_cache():
    question = {**LLAMA, "mode": "inference", "tp": 8, "dp": 8, "batch": 8, "context": 4096}
    found, narrow = asked(**question), asked(**question, kv_dtype="fp8")
    each = parts(found, "total")
    assert {"weights", "activations", "embeddings_and_logits", "cache", "reserve"} == {
        name for name, value in each.items() if value
    }
    # Eight sequences a replica, one of eight heads a rank.
    assert 8 * 4096 * 131_072 / 8 == each["cache"] == 2 * parts(narrow, "total")["cache"]
    assert ("fp8", 8192) == (narrow.inputs["kv_dtype"], narrow.inputs["prefill"])
    sixteen = asked(**{**question, "tp": 16, "dp": 4, "batch": 16})
    # Twice as many sequences per replica, and no more heads to split.
    assert 2 * each["cache"] == parts(sixteen, "total")["cache"]


@pytest.mark.parametrize(
    ("question", "reason", "place"),
    [
        ({"schedule": "zb2p"}, "schedule", "schedule"),
        ({"model": "bert-large", "seq": 513}, "context", "seq"),
        ({"model": "gpt2", "mode": "inference", "seq": 1024, "context": 1025, "tp": 4}, "context", "context"),
        ({"model": "gpt2", "mode": "inference", "seq": 1024, "prefill": 1025, "tp": 4}, "context", "prefill"),
        ({"pp": 8, "interleave": 2, "microbatches": 9}, "microbatches-not-divisible", "microbatches"),
    ],
)
def test_refusals(question, reason, place):
    caught = refusal(run, CATALOG, **{**LLAMA, **question})
    assert (reason, place) == (caught.reason, caught.place), caught


def test_the_digits_of_the_capacity_may_leave_it_open():
    found = asked(**LLAMA, tp=4)
    assert (95.5 * GIB / 4, 96.5 * GIB / 4) == (found.answer("capacity").low, found.answer("capacity").high)
    # Between 23.875 and 24.125 GiB, the 96 GiB of a chip may be too little or not.
    question = {**LLAMA, "mode": "inference", "tp": 8, "dp": 8, "prefill": 1}
    base = asked(**question, context=0)["total"]
    context = int((24.05 * GIB - base) // (131_072 / 8))
    assert "rounding of the capacity" in asked(**question, context=context).answer("fits").note
    assert "rounding of the capacity" not in asked(**question, context=0).answer("fits").note


@settings(max_examples=15, deadline=None)
@given(st.integers(4, 400), st.sampled_from([1, 2, 4, 8]), st.sampled_from(["none", "full"]))
def test_more_memory_is_never_less_feasible(gib, tp, recompute):
    def fits(size: int) -> bool:
        catalog = CATALOG.replace("trainium2", {"memory.capacity": f"{size} GiB"})
        return bool(run(catalog, **LLAMA, tp=tp, recompute=recompute)["fits"])

    assert fits(gib) <= fits(gib + 1) <= fits(10 * gib)


def test_stages_of_different_length() -> None:
    """61 layers on 8 stages need --uneven, which the hint names; the memory is that of the evaluator training."""
    given = {"model": "deepseek-v3", "on": "trn2.48xlarge*16", "seq": 4096, "tp": 8, "pp": 8, "ep": 8, "zero": 1}
    caught = refusal(trnspec.evaluate, "memory", CATALOG, **given)
    found = trnspec.evaluate("memory", CATALOG, **given, uneven=True, microbatches=8)
    step = trnspec.evaluate("training", CATALOG, **given, uneven=True, global_batch=8 * 16, must_fit=False)

    assert ("layers-not-divisible", True) == (caught.reason, "uneven=True" in caught.hint)
    assert found["total"] == step["memory"]
    assert "stages of 7 and 8 layers; the longest decides" in {a.value for a in step.assumptions}
