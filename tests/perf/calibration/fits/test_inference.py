"""Fits to times of tokens: what was put in is found again, and what the shipped calibrations say is what is fitted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from attrs import evolve, fields_dict

from tests.support.engine import everything
from trnspec.errors import UsageError
from trnspec.loading.files import shipped as folder
from trnspec.model.calibration import Achieved, Calibration
from trnspec.perf.calibration.document import printed_values
from trnspec.perf.calibration.fits.inference import FIRST, LEAST, TOKEN, Solved, fit_inference, fitted, runs
from trnspec.perf.calibration.fits.training import COVERAGE
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measured.tables import records
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL, Efficiency
from trnspec.perf.serving.decode import decode_time
from trnspec.perf.serving.forward_pass import Serving
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import transformer

OPTIMUM = "optimum-neuron"
NAME = "transformers-neuronx-2024-inference"
TRUE = Serving(
    matmul=0.4,
    attention=0.3,
    weights=0.7,
    cache=0.4,
    call=3e-5,
    step=1e-3,
    request=8e-3,
    sample=2e-3,
    score_passes=6.0,
    matmul_passes=2.0,
)
HOP = 7e-7


@pytest.fixture(scope="module")
def cases() -> list[InferenceCase]:
    rows = records(folder() / "measured" / "inference_neuron.csv")
    return [c for c in inference_cases(everything(), rows) if isinstance(c, InferenceCase) and not c.encoded]


@pytest.fixture(scope="module")
def vendor(cases) -> list[InferenceCase]:
    return [c for c in cases if c.framework != OPTIMUM]


@pytest.fixture(scope="module")
def found(vendor):
    return fit_inference(vendor)


@pytest.fixture(scope="module")
def carried(vendor):
    """The same fit, with the errors of what it says of a chip that it has not seen."""
    return fit_inference(vendor, "chip")


def test_arrays_say_what_scalars_say(cases):
    whole = runs(cases)
    tokens, firsts = whole.token_times(TRUE), whole.first_token_times(TRUE)
    for i, case in enumerate(cases):
        serving = TRUE if case.host else evolve(TRUE, sample=0.0)
        on = transformer(case.dims), case.plan, machine(case.system, IDEAL, case.dtype), serving
        waiting = serve(*on).prefill_interference if case.interrupted else 0.0
        assert (decode_time(*on) + waiting, (1.0 + case.queued) * prefill(*on).total) == (tokens[i], firsts[i])


def test_steps_of_collectives_take_time(vendor):
    """As in a machine whose calibration has it: of two ranks one, of 32 on 16 chips one in the chip and 15 in the server."""
    whole = runs(vendor)
    machines = (whole.with_hop(HOP).machine, runs(vendor, Efficiency(hop=HOP)).machine)
    for one, other in zip(machines[0].levels[:2], machines[1].levels[:2], strict=True):
        assert (one.hop.tolist(), one.step.tolist()) == (other.hop.tolist(), other.step.tolist())
    tokens = (whole.with_hop(HOP).token_times(TRUE) - whole.token_times(TRUE)) / HOP
    case = vendor[0]
    assert (32.0, "trn1.32xlarge*1") == (case.plan.tp, case.system.name)
    # Two all-reduces of a layer, and the logits are gathered once.
    assert 16.0 * (4.0 * case.dims.layers + 1.0) == pytest.approx(tokens[0])


def computed(cases: list[InferenceCase]) -> list[InferenceCase]:
    """The same as if they had been measured on something that achieves TRUE."""
    tokens, firsts = Solved(TRUE, HOP).times(runs(cases))
    return [
        evolve(c, tpot=float(t), ttft=float(f) if c.ttft else 0.0)
        for c, t, f in zip(cases, tokens, firsts, strict=True)
    ]


def test_what_was_put_in_is_found_again(vendor):
    found = fit_inference(computed(vendor))

    # Compiled graphs read whole buckets; of 24 and 32 ranks, none with a stack of memory in common, layers wait for calls.
    assert {*TOKEN, *FIRST} - {"sample", "padding", "launch", "single_core"} == set(found.names)
    # Nothing but what keeps numbers near the usual is between them.
    assert max(found.summary(held_out=False)) < 0.02
    mean, _, worst = found.ttft.summary(held_out=False)
    assert (mean < 0.02, worst < 0.06) == (True, True)
    assert found.summary(held_out=True)[0] < 0.01
    for name in ("weights", "cache", "request"):
        assert getattr(TRUE, name) == pytest.approx(getattr(found.serving, name), rel=0.15)


def test_picking_tokens_on_the_host_is_distinguished_from_the_rest(cases):
    found = fitted(runs(computed(cases))).serving
    assert TRUE.sample == pytest.approx(found.sample, rel=0.02)


def test_the_vendors_rows(found, vendor):
    mean, median, worst = found.summary(held_out=True)
    assert (0.0771, 0.0547, 0.371) == pytest.approx((mean, median, worst), rel=0.02)
    assert mean < 0.09
    assert found.summary(held_out=False)[0] < mean
    assert "sample" not in found.names
    assert 46 == len(found.held_out) == len(found.ttft.held_out) == len(vendor)
    assert found.low < 1.0 < found.high
    off = np.array([1.0 / (1.0 + e) for e in found.held_out])
    assert 0.75 <= np.mean((found.low <= off) & (off <= found.high)) <= 0.85


def test_a_row_left_out_is_computed_without_its_model(vendor, found):
    # Whatever was measured of a model does not change what is computed for it.
    name = vendor[0].model
    changed = [evolve(c, tpot=3.0 * c.tpot, ttft=3.0 * c.ttft) if c.model == name else c for c in vendor]
    again = fit_inference(changed)
    for i, case in enumerate(changed):
        if case.model == name:
            assert vendor[i].tpot * (1.0 + found.held_out[i]) == pytest.approx(case.tpot * (1.0 + again.held_out[i]))
            assert vendor[i].ttft * (1.0 + found.ttft.held_out[i]) == pytest.approx(
                case.ttft * (1.0 + again.ttft.held_out[i])
            )


def test_a_chip_left_out_is_computed_without_its_rows(vendor, found, carried):
    """What carries over to the other chip: nothing that was measured of one changes what is computed for it."""
    assert found.serving == carried.serving
    assert {"trainium1", "inferentia2"} == {c.system.chip for c in vendor}
    own = [c.system.chip == "inferentia2" for c in vendor]
    rest = fitted(runs([c for c, out in zip(vendor, own, strict=True) if not out]))
    some = runs([c for c, out in zip(vendor, own, strict=True) if out])
    assert (rest.times(some)[0] / some.tpot - 1.0).tolist() == carried.held_out[own].tolist()
    # About as well as by its own rows of other models.
    assert carried.summary(held_out=True)[0] < 0.1
    with pytest.raises(UsageError, match="with rows of trainium1 only, errors on another chip cannot be estimated"):
        fit_inference([c for c in vendor if c.system.chip == "trainium1"], "chip")


def test_rows_of_few_models_are_left_out_by_configuration(cases):
    some = [c for c in cases if c.framework == OPTIMUM]
    groups = runs(some).groups
    assert 3 == len({c.model for c in some})
    assert [1, 1, 2, 2, 2, 2, 5] == sorted(Counter(groups).values())
    again = [c.id for c, g in zip(some, groups, strict=True) if g == groups[some.index(some[3])]]
    assert {f"optimum-trn1-8b-dp4-2025-09-22-{t}-synchronous" for t in ("07-53-25", "08-51-27")} == set(again)


def test_too_few_rows(vendor):
    with pytest.raises(UsageError, match=f"{LEAST - 1} rows are too few to fit; expected at least {LEAST}"):
        fit_inference(vendor[: LEAST - 1])
    with pytest.raises(UsageError, match="there are no rows"):
        runs([])


def test_without_times_to_the_first_token_prompts_are_not_fitted(vendor):
    found = fit_inference([evolve(c, ttft=0.0) for c in vendor])
    assert found.ttft is None
    assert not {*FIRST} & {*found.names}
    assert (1.0, 1.0, 0.0) == (found.serving.matmul, found.serving.attention, found.serving.request)


def test_experts_borrow_attention_and_cache_from_dense_models():
    """Two rows of one model with experts, whose times are twice the typical ones, leave these near their typical values."""
    rows = records(folder() / "measured" / "inference_neuron_2026.csv")
    some = [
        c for c in inference_cases(everything(), rows) if isinstance(c, InferenceCase) and c.dims.experts and c.tpot
    ]
    found = fitted(runs(some)).serving
    assert TOKEN["cache"] == pytest.approx(found.cache, rel=0.1)
    assert FIRST["attention"] == pytest.approx(found.attention, rel=0.1)


@pytest.mark.parametrize("chip", ["trainium1", "inferentia2"])
def test_the_shipped_calibration_is_what_is_fitted(found, vendor, chip):
    (node,) = [n for n in everything().of(Calibration) if n.name == f"{chip}-{NAME}"]
    spec = node.spec
    assert ("inference_neuron.csv", "Transformers NeuronX", "transformers-neuronx", "2024") == (
        spec.data, spec.software, spec.framework, spec.era,
    )  # fmt: skip
    stated = {n: getattr(spec.achieved, n) for n in fields_dict(Achieved)}
    stated = {n: float(figure) for n, figure in stated.items() if figure is not None}
    of = {n: float(getattr(found.serving if hasattr(found.serving, n) else found.efficiency, n)) for n in found.names}
    # Other releases of scipy may end a little elsewhere.
    assert of | {"causal": 1.0} == pytest.approx(stated, rel=2e-2)
    assert (46, COVERAGE) == (spec.spread.rows, float(spec.spread.coverage))
    assert found.summary(held_out=True) == pytest.approx(
        [float(getattr(spec.spread, n)) for n in ("mean", "median", "worst")], rel=2e-2
    )


@pytest.mark.parametrize("chip", ["trainium1", "inferentia2"])
def test_the_engine_computes_with_it_what_the_fit_computed(found, vendor, chip):
    known = calibrated(everything(), chip, "inference", framework="transformers-neuronx")
    assert f"{chip}-{NAME}" == known.name
    serving = serving_of(known)
    for case, error in zip(vendor, found.errors, strict=True):
        if case.system.chip == chip:
            numbers = machine(case.system, known.efficiency, case.dtype)
            time = decode_time(transformer(case.dims), case.plan, numbers, serving)
            assert case.tpot * (1.0 + error) == pytest.approx(time, rel=1e-2)


def test_every_number_of_serving_can_be_stated():
    assert set(fields_dict(Serving)) <= set(fields_dict(Achieved))
    assert set(fields_dict(Efficiency)) <= set(fields_dict(Achieved))


def test_training_reads_none_of_it():
    assert Serving() == calibrated(everything(), "trainium1", "training").serving
    assert Calibrated() == calibrated(everything(), "trainium1", "inference", "none")
    with pytest.raises(UsageError, match=f"trainium1-{NAME} is for inference, not for training"):
        calibrated(everything(), "trainium1", "training", f"trainium1-{NAME}")


def test_what_is_reported(found):
    names = {
        "matmul",
        "attention",
        "matmul_passes",
        "score_passes",
        "call",
        "hop",
        "step",
        "causal",
        "weights",
        "cache",
        "request",
    }
    assert names == set(printed_values(found))
