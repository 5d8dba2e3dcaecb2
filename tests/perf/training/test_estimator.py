"""One model on one system: step, interval and memory, and what is refused."""

import pytest
from attrs import evolve

from tests.support.engine import everything, reason_and_place, refusal, shipped
from trnspec.errors import RefusalError, UnknownNameError
from trnspec.perf.lowering.calibrated import Calibrated
from trnspec.perf.training.estimator import prepare
from trnspec.perf.training.step import step
from trnspec.perf.work.layout import Layout

ON = "trn1.32xlarge*32"
LAYOUT = Layout(tp=32, dp=32, zero=1, seq=8192, global_batch=1024)


@pytest.fixture(scope="module")
def bound():
    return prepare(shipped().graph, "llama-3.1-8b", ON, calibration="none")


@pytest.fixture(scope="module")
def fitted():
    return prepare(shipped().graph, "llama-3.1-8b", ON)


def test_interval_holds_the_step(bound, fitted):
    for estimator in (bound, fitted):
        low, high = estimator.interval(LAYOUT)
        assert 0.0 < low < estimator.step(LAYOUT).total < high
    # The digits alone leave less open than the measurements.
    assert bound.interval(LAYOUT)[1] / bound.interval(LAYOUT)[0] < 1.05
    low, high = fitted.interval(LAYOUT)
    slow, fast = (step(fitted.model, LAYOUT, end).total for end in fitted.ends)
    assert (fast * fitted.calibration.low, slow * fitted.calibration.high) == (low, high)


@pytest.mark.parametrize(("low", "high"), [(1.1, 1.3), (0.5, 0.9)])
def test_interval_holds_the_step_even_where_a_calibration_is_off(bound, low, high):
    found = evolve(bound, calibration=Calibrated("x", low=low, high=high, coverage=0.8)).interval(LAYOUT)
    assert found[0] <= bound.step(LAYOUT).total <= found[1]


def test_a_layout_that_cannot_be(bound):
    refused = refusal(bound.step, evolve(LAYOUT, dp=16))
    assert ("rank-count", "dp", "dp 32") == (refused.reason, refused.place, refused.hint)


UNKNOWN = {
    ("hgx-b200*2", 16): ("hgx-b200 spec.network.bandwidth", "network"),
    ("trn3-gen1-server", 8): ("trn3-gen1-server spec.fabric.bandwidth", "server"),
}


@pytest.mark.parametrize(("on", "tp"), UNKNOWN)
def test_a_link_without_a_rate(on, tp):
    made = prepare(everything(), "llama-3.1-8b", on, calibration="none")
    place, level = UNKNOWN[on, tp]
    with pytest.raises(RefusalError, match=f"level {level}") as refused:
        made.step(Layout(tp=tp, dp=int(made.system.ranks) // tp, seq=4096, global_batch=64))
    assert ("unknown-figure", place) == (refused.value.reason, refused.value.place)


def test_a_link_without_a_rate_that_is_not_needed():
    """Four ranks are one chip, whose memory they exchange through."""
    made = prepare(shipped().graph, "llama-3.2-1b", "trn3-gen1-server", chips=1)
    assert made.step(Layout(tp=4, seq=4096, global_batch=64)).total > 0.0


def test_names():
    with pytest.raises(UnknownNameError, match=r"no model is named 'llama-3\.1-8'; .*llama-3\.1-8b"):
        prepare(shipped().graph, "llama-3.1-8", ON)
    with pytest.raises(UnknownNameError, match="no model is named 'trainium1'"):
        prepare(shipped().graph, "trainium1", ON)
    for node in (n for n in shipped().graph if n.kind == "Model" and n.metadata.aliases):
        for alias in node.metadata.aliases:
            assert node.name == prepare(shipped().graph, alias, "trainium1").name


def test_a_type_without_a_rate():
    assert ("unknown-figure", "trainium1 spec.peak.dense.mxfp8") == reason_and_place(
        prepare, shipped().graph, "llama-3.1-8b", ON, dtype="mxfp8"
    )
