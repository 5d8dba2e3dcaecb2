"""Settings of frameworks; stated inputs take precedence."""

from __future__ import annotations

import attrs
import pytest

from tests.support.engine import shipped
from tests.support.evaluations import keywords
from trnspec.errors import UsageError
from trnspec.evaluators.memory import run as memory_
from trnspec.evaluators.training import run as training_
from trnspec.perf.frameworks import ALLOCATED, SETTINGS, TRAINING, Runtime, runtime, size
from trnspec.perf.sweep.batch import Top, estimators, rows, sweep
from trnspec.perf.training.estimator import prepare
from trnspec.perf.work.layout import Layout

memory, training = keywords(memory_), keywords(training_)
GIB = 2.0**30
QUESTION = {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "seq": 8192, "tp": 8}
STEP = {**QUESTION, "global_batch": 64}


@pytest.mark.parametrize("name", TRAINING)
def test_framework_defaults_fill_unset_inputs(name) -> None:
    profile = attrs.asdict(TRAINING[name])
    found = training(shipped(), **STEP, framework=name, must_fit=False)
    assert profile == {n: found.inputs[n] for n in profile}
    by_name = {a.name: (a.value, a.why) for a in found.assumptions}
    for setting, value in profile.items():
        shown, why = by_name[setting]
        assert why.endswith(f"framework {name}"), setting
        assert shown == {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def test_stated_option_overrides_framework() -> None:
    stated = {
        "optimizer": "sgd-momentum", "zero": 2, "recompute": "none", "overlap": True, "flash": False, "fused_loss": True,
        "gathered_inputs": False, "bucket": "3 GB", "reserve": "7 GiB",
    }  # fmt: skip
    assert set(stated) == set(SETTINGS)
    found = training(shipped(), **STEP, framework="torchtitan", **stated, must_fit=False)
    assert stated == {n: found.inputs[n] for n in stated}
    assert not {a.name for a in found.assumptions if a.why.endswith("framework torchtitan")}
    assert 7 * GIB == next(p.value for p in found.parts if p.name == "reserve")


def test_fits_includes_the_reserve() -> None:
    bare, default = memory(shipped(), **QUESTION, reserve="0 B"), memory(shipped(), **QUESTION)
    assert bare["total"] + 0.05 * 24 * GIB == default["total"] == sum(p.value for p in default.parts)
    between = (24 * GIB - bare["total"]) / GIB
    less, more = (memory(shipped(), **QUESTION, reserve=f"{between + x:.6f} GiB") for x in (-0.01, 0.01))
    assert (True, False) == (less["fits"], more["fits"])
    assert less["free"] > 0 > more["free"]
    assert memory(shipped(), **QUESTION, mode="inference", reserve="50%")["total"] > 12 * GIB


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4 GiB", 4 * GIB), ("0 B", 0.0), ("1024 MB", 1.024e9), ("5%", 1.2 * GIB), (" 2.5 % ", 0.6 * GIB), ("100%", 24 * GIB)],
)  # fmt: skip
def test_sizes(text, expected) -> None:
    assert expected == pytest.approx(size(text, "reserve", 24 * GIB), rel=1e-15)


@pytest.mark.parametrize("text", ["", "4", "-1 GiB", "101%", "~4 GiB", "up to 4 GiB", "4 GB/s", "five", "nan GiB", "%"])
def test_refuses_invalid_size(text) -> None:
    with pytest.raises(UsageError, match=r"reserve is .* expected a size"):
        training(shipped(), **STEP, reserve=text)


def test_a_share_of_a_bucket_is_refused() -> None:
    with pytest.raises(UsageError, match="bucket is '5%'"):
        memory(shipped(), **QUESTION, bucket="5%")
    with pytest.raises(UsageError, match="unknown framework 'jax'"):
        runtime(1e9, framework="jax")


def test_sweeps_and_batches_follow_the_framework() -> None:
    plain = estimators(shipped().graph, ["llama-3.1-8b"], ["trn2.48xlarge"])
    titan = estimators(shipped().graph, ["llama-3.1-8b"], ["trn2.48xlarge"], framework="torchtitan")
    axes = {"tp": 8, "seq": 8192, "global_batch": 64, "sequence_parallel": True}
    ((_, layout),) = sweep(titan, keep=Top(1), **axes).layouts()
    assert ("adam-fsdp", 3, "operators", False) == (layout.optimizer, layout.zero, layout.recompute, layout.fused_loss)
    one = rows(titan, 0, memory=True, dp=8, **axes)
    expected = titan[0].memory(layout)
    assert (titan[0].step(layout).total, expected.total) == (one.time[0], one.memory[0])
    assert expected.reserve == 0.05 * 24 * GIB
    # A stated value wins, and estimators of two frameworks have no common default.
    assert 0.0 < rows(titan, 0, recompute="none", dp=8, **axes).time[0] < one.time[0]
    with pytest.raises(UsageError, match="estimators of different frameworks: none, torchtitan"):
        rows((*plain, *titan), 0, dp=8, **axes)


def test_gathered_inputs_and_buckets_take_memory() -> None:
    node = {"dtype": "bf16", "reserve": "0 B"}
    layout = Layout(tp=8, dp=8, zero=1, seq=8192, global_batch=8, sequence_parallel=True)
    plain, gathered, bucket = (
        prepare(shipped().graph, "llama-3.1-8b", "trn2.48xlarge", **node, **more).memory(layout)
        for more in ({}, {"gathered_inputs": True}, {"bucket": "1 GB"})
    )
    # Two inputs of a layer, whole instead of an eighth.
    assert 32 * 2 * 8192 * 4096 * 2 * 7 / 8 == gathered.activations - plain.activations
    assert 1e9 == bucket.buffers - plain.buffers
    # Buckets are no larger than the gradients, and there are none on a single replica.
    most = prepare(shipped().graph, "llama-3.1-8b", "trn2.48xlarge", **node, bucket="1 TB").memory(layout)
    assert most.gradients == most.buffers - plain.buffers
    assert Runtime() == ALLOCATED
