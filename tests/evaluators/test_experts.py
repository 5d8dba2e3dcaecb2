"""The inputs about experts, in training, memory and search: what they change, what is resolved, what is refused."""

import pytest

import trnspec
from tests.support.evaluations import assumed, parts
from trnspec.errors import RefusalError
from trnspec.evaluators.training import EXPERT_INPUTS

CAT = trnspec.load()
ON = {"on": "trn2.48xlarge*4", "model": "mixtral-8x7b", "seq": 4096}
STEP = {**ON, "global_batch": 256, "must_fit": False, "calibration": "none"}


def asked(evaluator: str, **inputs):
    return trnspec.evaluate(evaluator, CAT, **inputs)


def test_whole_experts() -> None:
    split = asked("training", **STEP, tp=4, ep=8, expert_overlap=False)
    whole = asked("training", **STEP, tp=4, ep=8, expert_tp=1, expert_overlap=False)

    assert (split.inputs["expert_tp"], whole.inputs["expert_tp"]) == (4, 1)
    assert parts(whole, "step_time")["tensor"] < parts(split, "step_time")["tensor"]
    assert whole["memory"] > split["memory"]
    # Four times the ranks of expert parallelism, so the same weights of experts on each.
    memory = [asked("memory", **ON, tp=4, ep=ep, expert_tp=t) for ep, t in ((2, None), (8, 1))]
    assert {p.value for m in memory for p in m.parts if p.name == "weights"} == {memory[0].parts[0].value}


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
