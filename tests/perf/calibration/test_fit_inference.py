"""Fits to times of tokens: what was put in is found again, and what the shipped calibrations say is what is fitted."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from attrs import evolve, fields_dict
from engine_catalogs import everything

from trnspec.errors import UsageError
from trnspec.loading.files import shipped as folder
from trnspec.model.calibration import Achieved, Calibration
from trnspec.perf.calibration.document import document, printed_values
from trnspec.perf.calibration.fit_inference import FIRST, LEAST, TOKEN, fit_inference, fitted, runs
from trnspec.perf.calibration.fit_range import fitted_on, inputs_of
from trnspec.perf.calibration.fit_training import COVERAGE
from trnspec.perf.calibration.measured_inference import OPTIMUM, InferenceCase, inference_cases
from trnspec.perf.calibration.measurements import records
from trnspec.perf.calibration.transfer import beyond
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of
from trnspec.perf.lowering.efficiency import IDEAL, Efficiency
from trnspec.perf.lowering.machine import machine
from trnspec.perf.serving.decode import decode_time
from trnspec.perf.serving.forward_pass import Serving
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import transformer

TRUE = Serving(
    matmul=0.4, attention=0.3, weights=0.7, cache=0.4, call=3e-5, step=1e-3, padding=0.6, request=8e-3, sample=2e-3
)


@pytest.fixture(scope="module")
def cases() -> list[InferenceCase]:
    rows = records(folder() / "measured" / "inference_neuron.csv")
    return [c for c in inference_cases(everything(), rows) if isinstance(c, InferenceCase)]


@pytest.fixture(scope="module")
def vendor(cases) -> list[InferenceCase]:
    return [c for c in cases if c.software != OPTIMUM]


@pytest.fixture(scope="module")
def found(vendor):
    return fit_inference(vendor)


@pytest.fixture(scope="module")
def carried(vendor):
    """The same fit, with the errors of what it says of a chip that it has not seen."""
    return fit_inference(vendor, "chip")


@pytest.fixture(scope="module")
def others(found, cases):
    """The errors of rows of other software, which none is fitted to, and their ranks."""
    some = [c for c in cases if c.software == OPTIMUM]
    rows = runs(some)
    return rows.token_times(found.serving) / rows.tpot - 1.0, [inputs_of(c)["ranks"] for c in some]


@pytest.fixture(scope="module")
def wide(found, others):
    """The fit as it is shipped: its interval is also that of the rows of other software."""
    return found.with_errors(*others)


def test_arrays_say_what_scalars_say(cases):
    whole = runs(cases)
    tokens, firsts = whole.token_times(TRUE), whole.first_token_times(TRUE)
    for i, case in enumerate(cases):
        serving = TRUE if case.host else evolve(TRUE, sample=0.0)
        on = transformer(case.dims), case.plan, machine(case.system, IDEAL, case.dtype), serving
        waiting = serve(*on).prefill_interference if case.interrupted else 0.0
        assert (decode_time(*on) + waiting, prefill(*on).total) == (tokens[i], firsts[i])


def computed(cases: list[InferenceCase]) -> list[InferenceCase]:
    """The same as if they had been measured on something that achieves TRUE."""
    whole = runs(cases)
    tokens, firsts = whole.token_times(TRUE), whole.first_token_times(TRUE)
    return [
        evolve(c, tpot=float(t), ttft=float(f) if c.ttft else 0.0)
        for c, t, f in zip(cases, tokens, firsts, strict=True)
    ]


def test_what_was_put_in_is_found_again(vendor):
    found = fit_inference(computed(vendor))

    assert {*TOKEN, *FIRST} - {"sample"} == set(found.names)
    # Nothing but what keeps numbers near the usual stands between them.
    assert max(found.summary(held_out=False)) < 0.02
    assert max(found.ttft.summary(held_out=False)) < 0.02
    assert found.summary(held_out=True)[0] < 0.01
    for name in ("weights", "cache", "request"):
        assert getattr(TRUE, name) == pytest.approx(getattr(found.serving, name), rel=0.15)


def test_picking_tokens_on_the_host_is_told_from_the_rest(cases):
    found = fitted(runs(computed(cases)))
    assert TRUE.sample == pytest.approx(found.sample, rel=0.02)


def test_the_vendors_rows(found, vendor):
    # The study of these rows came to 7.5 % and 4.5 %.
    mean, median, worst = found.summary(held_out=True)
    assert (0.0744, 0.0392, 0.297) == pytest.approx((mean, median, worst), rel=0.02)
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
    assert (some.token_times(rest) / some.tpot - 1.0).tolist() == carried.held_out[own].tolist()
    # Each chip is told to 7 to 8 % by the other, about as well as by its own rows of other models.
    assert 0.0747 == pytest.approx(carried.summary(held_out=True)[0], rel=0.02)
    with pytest.raises(UsageError, match="with rows of trainium1 only, errors on another chip cannot be estimated"):
        fit_inference([c for c in vendor if c.system.chip == "trainium1"], "chip")


def test_rows_of_few_models_are_left_out_by_configuration(cases):
    some = [c for c in cases if c.software == OPTIMUM]
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


@pytest.mark.parametrize("chip", ["trainium1", "inferentia2", "trainium2", "trainium3"])
def test_the_shipped_calibration_is_what_is_fitted(found, carried, others, chip):
    """Of a chip that no row is on the errors are those of a chip left out at a time."""
    found = carried if chip in {"trainium2", "trainium3"} else found
    wide = found.with_errors(*others)
    (node,) = [n for n in everything().of(Calibration) if n.name == f"{chip}-neuron-decode"]
    spec = node.spec
    assert ("inference_neuron.csv", "Transformers NeuronX") == (spec.data, spec.software)
    stated = {n: getattr(spec.achieved, n) for n in fields_dict(Achieved)}
    stated = {n: float(figure) for n, figure in stated.items() if figure is not None}
    fitted_ones = {n: float(getattr(found.serving, n)) for n in (*found.names, "causal")}
    # Other releases of scipy may end a little elsewhere.
    assert fitted_ones == pytest.approx(stated, rel=5e-3)
    for spread, of in ((spec.spread, wide), (spec.first, found.ttft)):
        told_of = [float(getattr(spread, n)) for n in ("mean", "median", "worst", "low", "high")]
        assert [*of.summary(held_out=True), of.low, of.high] == pytest.approx(told_of, rel=5e-3)
        assert (len(of.errors), COVERAGE) == (spread.rows, float(spread.coverage))


def test_the_document_is_one_that_the_catalog_reads(wide, vendor, cases):
    (node,) = [n for n in everything().of(Calibration) if n.name == "trainium1-neuron-decode"]
    text = document(
        wide, name=node.name, chip="trainium1", of="inference", software="Transformers NeuronX",
        source="neuron-benchmarks-2026-08", data="inference_neuron.csv", fitted=str(node.spec.fitted),
        schema="../../schemas/v1/calibration.schema.json",
        note="The interval and the errors include 15 rows that were not fitted.",
        framework="transformers-neuronx", era="2024", fitted_on=fitted_on(vendor), beyond=beyond(wide, vendor, {"x": [c for c in cases if c.software == OPTIMUM]}),
    )  # fmt: skip
    bare = re.compile(r"[0-9.]+")
    assert bare.sub("N", node.document.text) == bare.sub("N", text)


@pytest.mark.parametrize("chip", ["trainium1", "inferentia2"])
def test_the_engine_computes_with_it_what_the_fit_computed(found, vendor, chip):
    known = calibrated(everything(), chip, "inference")
    assert f"{chip}-neuron-decode" == known.name
    assert (0.9284, 2.774, 0.8) == (known.low, known.high, known.coverage)
    assert (0.6232, 2.86) == known.ttft_interval
    serving = serving_of(known)
    for case, error in zip(vendor, found.errors, strict=True):
        if case.system.chip == chip:
            numbers = machine(case.system, known.efficiency, case.dtype)
            time = decode_time(transformer(case.dims), case.plan, numbers, serving)
            assert case.tpot * (1.0 + error) == pytest.approx(time, rel=2e-3)


def test_every_number_of_serving_can_be_stated():
    assert set(fields_dict(Serving)) <= set(fields_dict(Achieved))
    assert set(fields_dict(Efficiency)) <= set(fields_dict(Achieved))


def test_training_reads_none_of_it():
    assert Serving() == calibrated(everything(), "trainium1", "training").serving
    assert Calibrated() == calibrated(everything(), "trainium1", "inference", "none")
    with pytest.raises(UsageError, match="trainium1-neuron-decode is for inference, not for training"):
        calibrated(everything(), "trainium1", "training", "trainium1-neuron-decode")


def test_what_is_told(found):
    assert {"matmul", "attention", "call", "step", "causal", "weights", "cache", "request", "padding"} == set(
        printed_values(found)
    )
