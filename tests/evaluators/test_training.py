"""The evaluator of training: a step with its parts, its bottleneck, the figures used, and every refusal."""

import math

import pytest

from tests.support.engine import everything, reason_and_place, shipped
from tests.support.evaluations import assumed, keywords, parts
from trnspec.api import evaluate
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.runner import unsound
from trnspec.evaluators.training import EXPERT_INPUTS, TrainingQuestion, layout_of
from trnspec.evaluators.training import run as training_
from trnspec.perf.training.estimator import prepare
from trnspec.perf.training.step import PARTS
from trnspec.perf.work.layout import Layout

GIB = 2**30
ISSUE = {
    "model": "llama-3.1-8b", "on": "trn1.32xlarge*32", "tp": 32, "dp": 32, "zero": 1, "seq": 8192,
    "global_batch": 1024,
}  # fmt: skip


def asked(catalog: Catalog | None = None, **question) -> Evaluation:
    """An evaluation that is sound."""
    found = evaluate("training", shipped() if catalog is None else catalog, **question)
    assert [] == list(unsound(found, "training"))
    return found


def test_answers():
    found = asked(**ISSUE)
    assert [
        "step_time", "throughput", "throughput_per_chip", "mfu", "hfu", "work", "memory", "capacity", "fits",
    ] == [a.name for a in found.answers]  # fmt: skip
    time, tokens = found["step_time"], 1024 * 8192
    assert math.isclose(tokens / time, found["throughput"], rel_tol=1e-12)
    assert math.isclose(tokens / time / 512, found["throughput_per_chip"], rel_tol=1e-12)
    # Three passes through the matrices, and the causal half of 12 L h s.
    layer = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    work = tokens * (6 * (32 * layer + 4096 * 128256) + 6 * 32 * 4096 * 8192)
    assert math.isclose(work, found["work"], rel_tol=1e-12)
    assert math.isclose(100 * work / (time * 512 * 190e12), found["mfu"], rel_tol=1e-9)
    assert found["hfu"] == found["mfu"]
    assert not {"expert_tp", "capacity_factor"} & found.inputs.keys()
    assert (16 * GIB, True) == (found["capacity"], found["fits"])


def test_without_a_calibration_it_is_a_bound():
    found, bound = asked(**ISSUE), asked(**ISSUE, calibration="none")
    assert "ideal (no losses): lower bound on time" == bound.answer("step_time").note
    assert bound["step_time"] < found["step_time"]
    assert bound["mfu"] < 100.0
    # How much longer it takes no source knows.
    ends = {a.name: (a.low is None, a.high is None) for a in bound.answers if (a.low, a.high) != (None, None)}
    rates = ("throughput", "throughput_per_chip", "mfu", "hfu")
    assert {"step_time": (False, True), **dict.fromkeys(rates, (True, False))} == ends
    assert 0.9 * bound["step_time"] < bound.answer("step_time").low < bound["step_time"]
    assert bound["mfu"] < bound.answer("mfu").high < 1.1 * bound["mfu"]


def test_training_evaluation_equals_engine():
    made = prepare(shipped().graph, "llama-3.1-8b", "trn1.32xlarge*32")
    layout = Layout(tp=32, dp=32, zero=1, seq=8192, global_batch=1024, sequence_parallel=True)
    found = asked(**ISSUE)
    assert made.step(layout).total == found["step_time"]
    assert made.interval(layout) == (found.answer("step_time").low, found.answer("step_time").high)
    assert made.memory(layout).total == pytest.approx(found["memory"], rel=1e-12)
    assert {n: v for n in PARTS if (v := getattr(made.step(layout), n))} == parts(found, "step_time")


def test_the_framework_chooses_the_calibration():
    catalog = Catalog(everything())
    question = {"model": "llama-3.1-8b", "on": "p4de.24xlarge", "seq": 2048, "global_batch": 64, "must_fit": False}

    def described(**more):
        found = asked(catalog, **question, **more)
        return found.inputs["calibration"], next((a.value for a in found.assumptions if a.name == "framework"), None)

    assert ("a100-80gb-llm-foundry", None) == described(framework="llm-foundry")
    assert ("a100-80gb-megatron-2022", None) == described(framework="megatron")
    assert (
        "a100-80gb-megatron-2022",
        "unstated; calibrated on Megatron-DeepSpeed: adam-fp32-grads, 32-bit gradients, flash attention",
    ) == described(calibration="a100-80gb-megatron-2022")
    software = described(calibration="a100-80gb-llm-foundry")[1]
    assert "unstated; calibrated on LLM Foundry: adam, 16-bit gradients, flash attention" == software


def test_refuses_layouts_that_do_not_fit():
    big = {**ISSUE, "model": "llama-3.1-405b"}
    with pytest.raises(RefusalError, match=r"a rank needs .* GiB, most of it for") as refused:
        asked(**big)
    assert ("does-not-fit", "memory") == (refused.value.reason, refused.value.place)
    assert "must_fit=False" in refused.value.hint
    found = asked(**big, must_fit=False)
    assert found["fits"] is False
    assert found["memory"] > found["capacity"]
    assert found.bottleneck.startswith("does not fit: a rank needs")
    assert found["step_time"] > asked(**ISSUE)["step_time"]


REFUSED = [
    ({"model": "bert-large", "tp": 1, "dp": None, "seq": 513}, "context", "seq"),
    ({"model": "gpt2", "tp": 1, "dp": None, "seq": 4096}, "context", "seq"),
    *(({"offload": "optimizer", "host_link": text}, "not-exact", "host_link") for text in (
        "~16 GB/s", ">= 16 GB/s", "<= 16 GB/s", "up to 16 GB/s", "over 16 GB/s")),
    *(({"offload": what, "host_link": "0 GB/s"}, "not-positive", "host_link") for what in ("optimizer", "none")),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "reason", "place"), REFUSED, ids=lambda x: str(x)[:40])
def test_refused(changed, reason, place):
    question = {k: v for k, v in {**ISSUE, **changed}.items() if v is not None}
    assert (reason, place) == reason_and_place(asked, **question)


@pytest.mark.parametrize("text", ["fast", "16", "16 GB", ""])
def test_misused(text):
    with pytest.raises(UsageError, match="host_link: ") as refused:
        asked(**ISSUE, offload="optimizer", host_link=text)
    assert not isinstance(refused.value, RefusalError)


run = keywords(training_)

LLAMA = {
    "model": "llama-3.1-8b", "on": "trn1.32xlarge*32", "tp": 32, "dp": 32, "seq": 8192, "global_batch": 1024,
    "calibration": "none", "must_fit": False,
}  # fmt: skip
SLOW = "1 MB/s"
"""So slow that next to nothing hides."""


def parts_of_offload(found):
    return {(p.of, p.name): p.value for p in found.parts}


@pytest.mark.parametrize("what", ["optimizer", "activations", "weights"])
def test_offload_time_is_size_over_rate(what):
    """Optimizer: gradients out and weights in, once. Activations out and in, weights in twice and gradients out, each time."""
    plain, moved = run(shipped(), **LLAMA), run(shipped(), **LLAMA, offload=what, host_link=SLOW)
    here, there = parts_of_offload(plain), parts_of_offload(moved)
    held = {n: here["memory", n] for n in ("weights", "gradients", "optimizer", "activations")}
    bytes_ = {
        "optimizer": held["optimizer"] / 12 * (2 + 2),
        "activations": 32 * 2 * held["activations"],
        "weights": 32 * (2 * held["weights"] + held["gradients"]),
    }[what]
    expected = bytes_ / 1e6 - there["step_time", "compute"]

    assert math.isclose(expected, there["step_time", "offload"], rel_tol=1e-12)
    assert math.isclose(plain["step_time"] + expected, moved["step_time"], rel_tol=1e-12)
    assert moved["memory"] < plain["memory"]


def test_fast_offload_is_hidden():
    moved = run(shipped(), **LLAMA, offload="optimizer", host_link="1 TB/s")

    assert ("step_time", "offload") not in parts_of_offload(moved)
    assert run(shipped(), **LLAMA)["step_time"] == moved["step_time"]


@pytest.mark.parametrize(
    ("split", "given"),
    [
        (True, {"seq": 8192, "tp": 8, "cp": 2}),
        (False, {"seq": 8192, "tp": 1}),
        (False, {"seq": 8190, "tp": 8, "cp": 2}),
        (True, {"seq": 8190, "tp": 8, "cp": 2, "sequence_parallel": True}),
        (False, {"seq": 8192, "tp": 8, "cp": 2, "sequence_parallel": False}),
    ],
)
def test_where_the_sequence_is_split_by_default(split, given):
    question = TrainingQuestion(model="llama-3.1-8b", on="trn1.32xlarge", global_batch=8, **given)

    assert split == layout_of(question, 32).sequence_parallel


# Experts.

EXPERTS_ON = {"on": "trn2.48xlarge*4", "model": "mixtral-8x7b", "seq": 4096}
EXPERT_STEP = {**EXPERTS_ON, "global_batch": 256, "must_fit": False, "calibration": "none"}


def test_whole_experts() -> None:
    split = asked(**EXPERT_STEP, tp=4, ep=8, expert_overlap=False)
    whole = asked(**EXPERT_STEP, tp=4, ep=8, expert_tp=1, expert_overlap=False)

    assert (split.inputs["expert_tp"], whole.inputs["expert_tp"]) == (4, 1)
    assert parts(whole, "step_time")["tensor"] < parts(split, "step_time")["tensor"]
    assert whole["memory"] > split["memory"]
    # Four times the ranks of expert parallelism, so the same weights of experts on each.
    memory = [evaluate("memory", shipped(), **EXPERTS_ON, tp=4, ep=ep, expert_tp=t) for ep, t in ((2, None), (8, 1))]
    assert {p.value for m in memory for p in m.parts if p.name == "weights"} == {memory[0].parts[0].value}


def test_dense_models_do_not_use_them() -> None:
    dense = EXPERT_STEP | {"model": "llama-3.1-8b", "tp": 4}
    plain = asked(**dense)
    found = asked(**dense, imbalance=1.2, dispatch="per-copy")

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
    question = EXPERT_STEP if evaluator == "training" else EXPERTS_ON
    assert reason_and_place(evaluate, evaluator, shipped(), **question, **more) == ("experts-not-divisible", place)
