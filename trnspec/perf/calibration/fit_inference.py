"""Fits of serving efficiency to measured times per token and times to first token, and their errors on held-out rows.

Where all rows are small batches, the time of a call, the time of a step and the share of the memory bandwidth are not
identifiable separately: each is less certain than the times that they give together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_training import Fitted, Holdout, holdout_masks
from trnspec.perf.calibration.limits import limits
from trnspec.perf.calibration.solver import fit_parameters, selected, stacked
from trnspec.perf.lowering.efficiency import IDEAL, Efficiency
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.serving.decode import decode_time
from trnspec.perf.serving.forward_pass import Deployment, Serving
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import Transformer, transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trnspec.perf.calibration.measured_inference import InferenceCase

TOKEN: dict[str, float] = {"weights": 0.6, "cache": 0.5, "call": 4e-5, "step": 2e-3, "padding": 0.8, "sample": 1e-3}
"""Parameters that the time per output token depends on, with typical values."""

FIRST: dict[str, float] = {"matmul": 0.2, "attention": 0.3, "request": 1e-2}
"""Further parameters that the time to first token depends on, with typical values."""

SHARES = frozenset({"weights", "cache", "padding", "matmul", "attention"})
"""Parameters between 0 and 1; the others are positive."""

WEIGHT = 0.03
"""As in training, the residual of a parameter that is off by a factor of e; lower, since there are fewer parameters."""

LEAST = 8
"""Least number of rows: more than there are parameters."""

MODELS = 5
"""Number of models from which on rows are held out by model; below, by configuration."""


@frozen
class Runs:
    """Cases as arrays.

    Attributes:
        model: The transformers, one per row.
        plan: The deployments, one per row.
        machine: Compute and communication of a rank, one per row.
        tpot: Measured times per output token [s].
        ttft: Measured times to first token [s]; 0 where there is none.
        interrupted: Where prompts of other users are prefilled during decoding.
        host: Where tokens are sampled on the host.
        groups: For each row the group that it is held out with.
        chips: The chip of each row.
    """

    model: Transformer
    plan: Deployment
    machine: Machine
    tpot: Any
    ttft: Any
    interrupted: Any
    host: Any
    groups: tuple[str, ...] = field(repr=False)
    chips: tuple[str, ...] = field(repr=False)

    def token_times(self, serving: Serving) -> Any:
        """The computed times per output token [s], one per row."""
        serving = self._sampled(serving)
        times = decode_time(self.model, self.plan, self.machine, serving)
        if self.interrupted.any():
            interference = serve(self.model, self.plan, self.machine, serving).prefill_interference
            times = times + np.where(self.interrupted, interference, 0.0)
        return times

    def first_token_times(self, serving: Serving) -> Any:
        """The computed times to first token [s], one per row."""
        return prefill(self.model, self.plan, self.machine, self._sampled(serving)).total

    def rows(self, mask: Any) -> Runs:
        """Some of the rows."""
        return Runs(
            selected(self.model, mask),
            selected(self.plan, mask),
            selected(self.machine, mask),
            self.tpot[mask],
            self.ttft[mask],
            self.interrupted[mask],
            self.host[mask],
            *(tuple(g for g, kept in zip(each, mask, strict=True) if kept) for each in (self.groups, self.chips)),
        )

    def _sampled(self, serving: Serving) -> Serving:
        return attrs.evolve(serving, sample=np.where(self.host, serving.sample, 0.0))


def runs(cases: Sequence[InferenceCase], efficiency: Efficiency = IDEAL) -> Runs:
    """Cases as arrays.

    Args:
        cases: The measurements.
        efficiency: That of the machine; a fit has all of it in the serving efficiency.

    Raises:
        UsageError: There are none.
    """
    if not cases:
        raise UsageError("there are no rows to fit or to score")
    models = [c.model for c in cases]
    configurations = [f"{c.model} {c.system.name} {c.plan} {c.interrupted} {c.host}" for c in cases]
    return Runs(
        stacked([transformer(c.dims) for c in cases]),
        stacked([c.plan for c in cases]),
        stacked([machine(c.system, efficiency, c.dtype) for c in cases]),
        np.array([c.tpot for c in cases]),
        np.array([c.ttft for c in cases]),
        np.array([c.interrupted for c in cases]),
        np.array([c.host for c in cases]),
        tuple(models if len(set(models)) >= MODELS else configurations),
        tuple(c.system.chip for c in cases),
    )


@frozen
class FittedServing(Fitted):
    """The result of a fit to times per output token, whose errors are those of that time.

    Attributes:
        serving: The fitted serving efficiency; ``efficiency`` has the parameters that training has too.
        ttft: The same fit with the errors of times to first token, one per row that has one; ``None`` with too few.
    """

    serving: Serving
    ttft: Fitted | None


def fit_inference(cases: Sequence[InferenceCase], holdout: Holdout = "model") -> FittedServing:
    """Fits serving efficiency to cases, and for held-out errors to the cases outside each group.

    Args:
        cases: The measurements.
        holdout: What is held out together, see :func:`trnspec.perf.calibration.fit_training.holdout_masks`.

    Raises:
        UsageError: Too few rows, rows of too few chips, or scipy is not installed.
    """
    data = runs(cases)
    if len(cases) < LEAST:
        raise UsageError(f"{len(cases)} rows are too few to fit; expected at least {LEAST}")
    timed = data.ttft > 0.0
    scales = data.plan.tp * data.plan.pp
    serving = fitted(data)
    held_tpot, held_ttft = np.empty(len(cases)), np.empty(len(cases))
    for mask in holdout_masks(data.groups, [c.system.chip for c in cases], holdout):
        others = fitted(data.rows(~mask))
        unseen = data.rows(mask)
        held_tpot[mask] = unseen.token_times(others)
        held_ttft[mask] = unseen.first_token_times(others)
    efficiency = Efficiency(
        matmul=float(serving.matmul),
        attention=float(serving.attention),
        call=float(serving.call),
        step=float(serving.step),
    )
    ttft = None
    if timed.sum() >= LEAST:
        measured = data.ttft[timed]
        errors = (data.first_token_times(serving)[timed] / measured - 1.0, held_ttft[timed] / measured - 1.0)
        ttft = Fitted(efficiency, *errors, tuple(FIRST), scales=scales[timed])
    names = (*_free(data), *(FIRST if ttft is not None else ()))
    errors = (data.token_times(serving) / data.tpot - 1.0, held_tpot / data.tpot - 1.0)
    return FittedServing(efficiency, *errors, names, serving, ttft, scales=scales)


def _free(data: Runs) -> tuple[str, ...]:
    """The parameters that the times per output token depend on."""
    return tuple(name for name in TOKEN if name != "sample" or data.host.any())


def fitted(data: Runs) -> Serving:
    """Fits times per token, then times to first token, and both again where prefill interrupts decoding."""
    timed = data.ttft > 0.0
    enough = timed.sum() >= LEAST
    serving = Serving(**FIRST) if enough else Serving()
    prefilled = data.rows(timed)
    for _ in range(2 if enough and data.interrupted.any() else 1):
        serving = _solved(serving, {n: TOKEN[n] for n in _free(data)}, data.token_times, data.tpot, data.chips)
        if enough:
            serving = _solved(serving, FIRST, prefilled.first_token_times, prefilled.ttft, data.chips)
    return serving


def _solved(
    serving: Serving,
    typical: dict[str, float],
    times: Callable[[Serving], Any],
    measured: Any,
    chips: Sequence[str],
) -> Serving:
    """``serving`` with the parameters in ``typical`` fitted to measured times."""

    def log_errors(parameters: dict[str, float]) -> Any:
        return np.log(times(attrs.evolve(serving, **parameters)) / measured)

    parameters, _ = fit_parameters(typical, SHARES, log_errors, WEIGHT, limits(chips))
    return attrs.evolve(serving, **parameters)
