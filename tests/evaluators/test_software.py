"""Settings of frameworks; stated inputs take precedence."""

import attrs
import pytest

from tests.support.engine import shipped
from tests.support.evaluations import keywords
from trnspec.errors import UsageError
from trnspec.evaluators.memory import run as memory_
from trnspec.evaluators.training import run as training_
from trnspec.perf.frameworks import SETTINGS, TRAINING, runtime, size

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
