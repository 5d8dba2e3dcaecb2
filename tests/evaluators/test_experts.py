"""The inputs about experts, in training, memory and search: what they change, what is resolved, what is refused."""

from __future__ import annotations

import itertools

import pytest

import trnspec
from tests.support.evaluations import assumed, parts
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluators.searching.training import LAYOUT
from trnspec.evaluators.training import EXPERT_INPUTS

CAT = trnspec.load()
ON = {"on": "trn2.48xlarge*4", "model": "mixtral-8x7b", "seq": 4096}
STEP = {**ON, "global_batch": 256, "must_fit": False, "calibration": "none"}


def asked(evaluator: str, **inputs):
    return trnspec.evaluate(evaluator, CAT, **inputs)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("per-node", True)),
        ({"dispatch": "per-copy"}, ("per-copy", True)),
        ({"expert_overlap": False}, ("per-node", False)),
        ({"calibration": "trainium1-neuron"}, ("per-node", True)),
        ({"calibration": "trainium1-neuron", "dispatch": "per-copy", "expert_overlap": False}, ("per-copy", False)),
    ],
)
def test_how_tokens_get_to_experts(given, expected) -> None:
    """Ideal times have the least traffic; those of a calibration what its rows are computed with."""
    found = asked("training", **STEP | given, tp=4, ep=8)

    assert (found.inputs["dispatch"], found.inputs["expert_overlap"]) == expected
    assert assumed(found)["dispatch"] == f"{expected[0]}, {'overlapped' if expected[1] else 'exposed'}"
    # Overlapped it is hidden without losses; a calibration has how much is.
    exposed = "expert" in parts(found, "step_time")
    assert exposed or expected[1]
    assert not exposed or not expected[1] or found.inputs["calibration"] != "none"


def test_whole_experts() -> None:
    split = asked("training", **STEP, tp=4, ep=8, expert_overlap=False)
    whole = asked("training", **STEP, tp=4, ep=8, expert_tp=1, expert_overlap=False)

    assert (split.inputs["expert_tp"], whole.inputs["expert_tp"]) == (4, 1)
    assert parts(whole, "step_time")["tensor"] < parts(split, "step_time")["tensor"]
    assert whole["memory"] > split["memory"]
    # Four times the ranks of expert parallelism, so the same weights of experts on each.
    memory = [asked("memory", **ON, tp=4, ep=ep, expert_tp=t) for ep, t in ((2, None), (8, 1))]
    assert {p.value for m in memory for p in m.parts if p.name == "weights"} == {memory[0].parts[0].value}


def test_load_of_experts() -> None:
    even = asked("training", **STEP, tp=4, ep=8)
    uneven, padded = (
        asked("training", **STEP, tp=4, ep=8, **more) for more in ({"imbalance": 1.2}, {"capacity_factor": 1.2})
    )

    assert uneven["step_time"] == padded["step_time"] > even["step_time"]
    assert uneven["memory"] == padded["memory"] > even["memory"]
    assert assumed(even)["experts"] == "balanced load"
    assert "1.2" in assumed(uneven)["experts"]
    assert "1.2" in assumed(padded)["experts"]
    both = asked("training", **STEP, tp=4, ep=8, imbalance=2.0, capacity_factor=1.2)
    assert both["step_time"] == padded["step_time"]
    assert assumed(both)["imbalance"] == "not used"
    more = [asked("memory", **ON, tp=4, ep=8, **m)["total"] for m in ({}, {"imbalance": 1.2}, {"capacity_factor": 1.2})]
    assert more[0] < more[1] == more[2]


def test_dense_models_do_not_use_them() -> None:
    dense = STEP | {"model": "llama-3.1-8b", "tp": 4}
    plain = asked("training", **dense)
    found = asked("training", **dense, imbalance=1.2, dispatch="per-copy")

    assert found["step_time"] == plain["step_time"]
    assert not {*EXPERT_INPUTS} & {*plain.inputs, *found.inputs}
    assert not {"dispatch", "experts"} & {*assumed(plain)}
    assert assumed(found)["not_used"] == "imbalance, dispatch"


@pytest.mark.parametrize(
    ("evaluator", "more", "place"),
    [
        ("training", {"tp": 4, "ep": 8, "expert_tp": 3}, "expert_tp"),
        ("training", {"tp": 8, "ep": 64}, "ep"),
        ("memory", {"tp": 4, "ep": 8, "expert_tp": 8}, "expert_tp"),
    ],
)
def test_refuses_invalid_expert_layouts(evaluator, more, place) -> None:
    question = STEP if evaluator == "training" else ON
    with pytest.raises(RefusalError) as refused:
        asked(evaluator, **question, **more)
    assert (refused.value.reason, refused.value.place) == ("experts-not-divisible", place)


@pytest.mark.parametrize(
    "more", [{"imbalance": 0.9}, {"capacity_factor": 0.0}, {"expert_tp": 0}, {"dispatch": "per-rank"}]
)
def test_refuses_invalid_expert_options(more) -> None:
    with pytest.raises(UsageError, match=next(iter(more))):
        asked("training", **STEP, **more)


def test_search_finds_whole_and_split_experts() -> None:
    """A small system: the fastest of all layouts, each by the evaluator of one."""
    question = {"model": "gpt-oss-20b", "on": "trn2.48xlarge", "seq": 1024, "global_batch": 256, "calibration": "none"}
    fixed = {"microbatch": 1, "schedule": "1f1b"}
    found = asked("search", **question, microbatch=(1,), schedule=("1f1b",), top=5)
    table = found.tables[0]
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]

    assert "expert_tp" in table.columns
    for row in rows:
        one = asked(
            "training",
            **question,
            **{name: row[name] for name in LAYOUT if name not in {"step_time", "mfu", "memory"}},
        )
        assert (one["step_time"], one["memory"]) == (row["step_time"], row["memory"])
    fastest = []
    for tp, ep, expert_tp, zero in itertools.product((1, 2, 4, 8), (1, 2, 4, 8, 16, 32), (None, 1), (1, 2, 3)):
        try:
            one = asked("training", **question, **fixed, tp=tp, ep=ep, expert_tp=expert_tp, zero=zero)
        except RefusalError:
            continue
        fastest.append(one["step_time"])
    assert rows[0]["step_time"] <= min(fastest)
    given = asked("search", **question, microbatch=(1,), schedule=("1f1b",), top=3, expert_tp=2)
    chosen = given.tables[0].columns.index("expert_tp")
    assert {row[chosen] for row in given.tables[0].rows} == {2}
    assert given["step_time"] >= found["step_time"]


def test_search_of_a_dense_model_has_no_experts() -> None:
    found = asked("search", model="llama-3.2-1b", on="trn1.2xlarge", seq=1024, global_batch=8, top=1)

    assert "expert_tp" not in found.tables[0].columns
    assert "dispatch" not in assumed(found)
