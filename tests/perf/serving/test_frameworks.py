"""The table of serving frameworks: its names are choices, and its settings options."""

from __future__ import annotations

import pytest

from trnspec.evaluation.inputs import fields_of
from trnspec.evaluation.questions import ServingSchedule
from trnspec.evaluators.software import SERVING_DEFAULTS
from trnspec.perf.frameworks import SERVING

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
