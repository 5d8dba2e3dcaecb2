"""Searches of fits: derivatives by all parameters from one call, and the minima that they lead to."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from tests.perf.oracles.fits import TRUE, cases
from trnspec.perf.calibration.fits.prior import scale
from trnspec.perf.calibration.fits.solver import STEP, derivatives, fit_parameters, minimize
from trnspec.perf.calibration.fits.training import Pooled, batch, solved

X = np.linspace(0.1, 2.0, 12)


def line(parameters):
    return np.log((parameters["rate"] * X + parameters["start"]) / (0.7 * X + 0.2))


def test_derivatives_are_those_of_single_differences():
    def errors(at):
        return np.log(np.exp(at[0]) * X + np.exp(at[1]))

    at = np.array([-0.3, 0.4])
    by_hand = [(errors(at + STEP * side) - errors(at)) / STEP for side in np.eye(2)]
    assert np.allclose(np.transpose(by_hand), derivatives(errors, at), rtol=1e-6)
    exact = np.transpose([np.exp(at[0]) * X, np.exp(at[1]) + 0.0 * X]) / np.exp(errors(at))[:, None]
    assert np.allclose(exact, derivatives(errors, at), rtol=1e-4)


def test_parameters_are_found_with_few_calls():
    calls = []

    def errors(parameters):
        calls.append(1)
        return line(parameters)

    ends = dict.fromkeys(("rate", "start"), (0.01, 0.99))
    weights = dict.fromkeys(ends, 1e-4)
    found, _ = fit_parameters({"rate": 0.5, "start": 0.5}, frozenset({"rate"}), errors, weights, ends)
    assert pytest.approx({"rate": 0.7, "start": 0.2}, rel=1e-3) == found
    # Each step takes one call for the derivatives by all parameters, and one for the step.
    assert len(calls) < 40


def test_times_of_several_sets_of_parameters_at_once():
    """The same bits as one set after the other, on several systems and eras."""
    some = cases(12, TRUE)
    chips = [evolve(c, system=evolve(c.system, chip=f"chip-{i % 2}", name=f"{i % 2}")) for i, c in enumerate(some)]
    data = batch([evolve(c, era=str(2020 + i % 3)) for i, c in enumerate(chips)], ("2020", "2022"))
    sets = [{"matmul": 0.3, "call": -10.0, "server": 1.0}, {"matmul": 0.8, "call": -11.0, "server": 0.5}]
    own = {("chip-0", "matmul"): 0.2, ("2022", "matmul"): -0.1}
    columns = {n: np.array([[each[n]] for each in sets]) for n in sets[0]}
    assert [data.times(Pooled(each, own)).tolist() for each in sets] == data.times(Pooled(columns, own)).tolist()


def test_a_fit_to_several_chips_ends_at_a_minimum():
    """Where the derivatives by what a chip has of its own were not those of its rows, it would end elsewhere."""
    some = [
        evolve(c, system=evolve(c.system, chip=f"chip-{i % 2}", name=f"{i % 2}")) for i, c in enumerate(cases(40, TRUE))
    ]
    slower = [evolve(c, seconds=c.seconds * (1.3 if c.system.chip == "chip-0" else 1.0)) for c in some]
    data = batch(slower)
    fitted = solved(data)
    keys = [key for key in fitted.own if key[1] == "matmul"]
    assert {"chip-0", "chip-1"} == {chip for chip, _ in keys}

    def cost(own):
        errors = np.log(data.times(evolve(fitted, own=fitted.own | own)) / data.seconds)
        robust = 0.01 * 2.0 * (np.sqrt(1.0 + (errors * data.weights / 0.1) ** 2) - 1.0)
        return float(robust.sum() + sum(0.01 * 2.0 * (np.sqrt(1.0 + (3.0 * v) ** 2) - 1.0) for v in own.values()))

    least = minimize(lambda at: [np.sqrt(cost(dict(zip(keys, at, strict=True))))], [fitted.own[k] for k in keys]).x
    assert np.allclose([fitted.own[k] for k in keys], least, atol=0.05)
    assert scale("matmul", fitted.of("chip-1").matmul) > scale("matmul", fitted.of("chip-0").matmul)
