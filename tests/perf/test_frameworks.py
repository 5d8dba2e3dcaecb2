"""One vocabulary of frameworks: the same names in training, inference and for collectives."""

import re
import typing
from pathlib import Path

import pytest
import trnspec_nvidia

import trnspec
from tests.support.engine import refusal
from tests.support.programs import ROOT
from trnspec.errors import UsageError
from trnspec.evaluation.inputs import fields_of
from trnspec.evaluation.questions import FrameworkName, ServingSchedule
from trnspec.evaluators.collective import CollectiveQuestion
from trnspec.evaluators.deployment import InferenceQuestion
from trnspec.evaluators.memory import MemoryQuestion
from trnspec.evaluators.searching.question import SearchQuestion
from trnspec.evaluators.software import SERVING_DEFAULTS
from trnspec.evaluators.training import TrainingQuestion
from trnspec.perf.frameworks import FRAMEWORKS, PHASES, SERVING, check_framework, size
from trnspec.perf.lowering.calibrated import Calibration

ON = {"model": "llama-3.1-8b", "on": "trn2.48xlarge"}
QUESTIONS = {
    TrainingQuestion: "training", MemoryQuestion: "training", SearchQuestion: "training", InferenceQuestion: "inference",
    CollectiveQuestion: "collectives",
}  # fmt: skip


def test_choices() -> None:
    for question, phase in QUESTIONS.items():
        option = next(one for one in fields_of(question) if one.name == "framework")
        assert option.choices == typing.get_args(FrameworkName) == tuple(FRAMEWORKS)
        named = set(re.findall(r"[\w-]+", option.help))
        assert {*PHASES[phase]} == named & {*FRAMEWORKS}


def test_every_framework_has_a_part_somewhere() -> None:
    for name in FRAMEWORKS:
        for phase, names in PHASES.items():
            if name in names:
                check_framework(name, phase)
            else:
                caught = refusal(check_framework, name, phase)
                assert ("framework", "framework") == (caught.reason, caught.place)
                assert f"nothing of {phase}" in str(caught)
        assert any(name in names for names in PHASES.values())
    with pytest.raises(UsageError, match="did you mean 'megatron'"):
        check_framework("megatrom", "training")


def test_the_hint_begins_with_the_same_library(catalog) -> None:
    assert refusal(trnspec.evaluate, "inference", catalog, **ON, framework="nxd").hint.startswith(
        "a framework of inference: nxd-inference, "
    )


def test_calibrations_name_them() -> None:
    folders = [ROOT / "catalog", Path(trnspec_nvidia.__file__).parent / "catalog"]
    named = {node.spec.framework for node in trnspec.load(folders).graph.of(Calibration)} - {None}

    assert {"torch"} >= named - {*FRAMEWORKS}


OPTIONS = {one.name: one for one in fields_of(ServingSchedule)}
BY_FRAMEWORK = {"context_buckets", "batch_buckets", "tile"}
"""Options whose value follows from the smallest bucket, or from the chip."""


@pytest.mark.parametrize("name", SERVING)
def test_each_setting_is_a_value_of_an_option_that_is_unset(name):
    for option, setting in SERVING[name].settings.items():
        assert OPTIONS[option].default is None
        if option not in BY_FRAMEWORK:
            assert setting.value == OPTIONS[option].check(setting.value)
        assert setting.origin


def test_defaults_are_values_of_options():
    assert {n: OPTIONS[n].check(v) for n, v in SERVING_DEFAULTS.items()} == SERVING_DEFAULTS


def test_sizes() -> None:
    assert [0.0, 4 * 2**30, 5.0, 100.0, 0.5] == [size(t, "x", 100.0) for t in (" 0", "4 GiB", "5%", "100 %", "0.5%")]
    for text, whole in (("5%", None), ("100.1%", 100.0), ("~4 GiB", None), ("4", None)):
        with pytest.raises(UsageError, match=r"^x is "):
            size(text, "x", whole)
