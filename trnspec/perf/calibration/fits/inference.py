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
from trnspec.perf.calibration.fits.limits import limits
from trnspec.perf.calibration.fits.prior import TYPICAL as NO_PRIOR
from trnspec.perf.calibration.fits.prior import Learned, Prior, is_share, posterior
from trnspec.perf.calibration.fits.solver import fit_parameters, selected, stacked
from trnspec.perf.calibration.fits.training import Fitted, Holdout, holdout_masks
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.lowering.system import IDEAL, Efficiency
from trnspec.perf.serving.decode import decode_time
from trnspec.perf.serving.forward_pass import Deployment, Serving
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import Transformer, transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.measured.inference import InferenceCase

TOKEN: dict[str, float] = {
    "weights": 0.7,
    "cache": 0.5,
    "single_core": 0.6,
    "call": 2e-5,
    "hop": 1e-6,
    "launch": 2e-5,
    "step": 2e-3,
    "padding": 0.8,
    "sample": 1e-3,
}
"""Parameters that the time per output token depends on, with typical values."""

FIRST: dict[str, float] = {"matmul": 0.5, "attention": 0.35, "score_passes": 4.0, "request": 2e-2, "matmul_passes": 1.5}
"""Further parameters that the time to first token depends on, with typical values.

The share of matrix multiplication is that of context passes in catalog/measured/device_profile_neuron.csv, of attention
that of flash attention in other software: rows of few models do not determine them apart from each other.
"""

ROOFS: dict[str, dict[str, float]] = {
    "dense": {"matmul": 1.0, "attention": 0.5, "weights": 0.3},
    # Attention is that of dense models; expert networks are narrower than kernels that were measured alone.
    "experts": {"attention": 0.5, "cache": 1.0, "weights": 0.3, "request": 0.5},
}
"""Residuals of parameters that kernels, or other models, determine better than few rows, in place of :data:`WEIGHT`."""

WEIGHT = 0.1
"""As in training, the residual of a parameter that is off by a factor of e."""

TOLERANCE = 1e-5
"""Relative change of the cost at which a fit ends; the parameters are then found to about 1 %."""

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
        queued: Prefills of other requests before that of a request, on average.
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
    queued: Any
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
        """The computed times to first token [s], one per row, after the prefills that are queued before."""
        return (1.0 + self.queued) * prefill(self.model, self.plan, self.machine, self._sampled(serving)).total

    def with_hop(self, hop: Any) -> Runs:
        """The same rows, where a step of a ring whose latency is not published takes some time [s]."""
        *inner, network = self.machine.levels
        step = hop + np.zeros(len(self.tpot))
        inner = [attrs.evolve(each, hop=np.where(each.hop > 0.0, each.hop, hop), step=step) for each in inner]
        return attrs.evolve(self, machine=attrs.evolve(self.machine, levels=(*inner, network)))

    def rows(self, mask: Any) -> Runs:
        """Some of the rows."""
        return Runs(
            selected(self.model, mask),
            selected(self.plan, mask),
            selected(self.machine, mask),
            self.tpot[mask],
            self.ttft[mask],
            self.queued[mask],
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
        np.array([c.queued for c in cases]),
        np.array([c.interrupted for c in cases]),
        np.array([c.host for c in cases]),
        tuple(models if len(set(models)) >= MODELS else configurations),
        tuple(c.system.chip for c in cases),
    )


@frozen
class Solved:
    """The parameters of a fit.

    Attributes:
        serving: The serving efficiency.
        hop: Time of a step of a collective [s], which the machine has.
        learned: What the rows add to the prior, by parameter.
    """

    serving: Serving
    hop: float
    learned: tuple[Learned, ...] = field(default=(), repr=False)

    def times(self, data: Runs) -> tuple[Any, Any]:
        """The computed times per output token and times to first token [s]."""
        data = data.with_hop(self.hop)
        return data.token_times(self.serving), data.first_token_times(self.serving)


@frozen
class FittedServing(Fitted):
    """The result of a fit to times per output token, whose errors are those of that time.

    Attributes:
        serving: The fitted serving efficiency; ``efficiency`` has the parameters that training has too.
        ttft: The same fit with the errors of times to first token, one per row that has one; ``None`` with too few.
    """

    serving: Serving
    ttft: Fitted | None

    @property
    def solved(self) -> Solved:
        """Its parameters."""
        return Solved(self.serving, self.efficiency.hop)


def fit_inference(cases: Sequence[InferenceCase], holdout: Holdout = "model", prior: Prior = NO_PRIOR) -> FittedServing:
    """Fits serving efficiency to cases, and for held-out errors to the cases outside each group.

    Args:
        cases: The measurements.
        holdout: What is held out together, see :func:`trnspec.perf.calibration.fits.training.holdout_masks`.
        prior: What is known before the rows.

    Raises:
        UsageError: Too few rows, rows of too few chips, or scipy is not installed.
    """
    data = runs(cases)
    least = _least(prior)
    if len(cases) < least:
        raise UsageError(f"{len(cases)} rows are too few to fit; expected at least {least}")
    timed = data.ttft > 0.0
    scales = data.plan.tp * data.plan.pp
    solved = fitted(data, prior)
    serving = solved.serving
    tpot, first = solved.times(data)
    held_tpot, held_ttft = np.empty(len(cases)), np.empty(len(cases))
    for mask in holdout_masks(data.groups, [c.system.chip for c in cases], holdout):
        held_tpot[mask], held_ttft[mask] = fitted(data.rows(~mask), prior).times(data.rows(mask))
    efficiency = Efficiency(
        matmul=float(serving.matmul),
        attention=float(serving.attention),
        matmul_passes=float(serving.matmul_passes),
        score_passes=float(serving.score_passes),
        call=float(serving.call),
        hop=solved.hop,
        step=float(serving.step),
    )
    ttft = None
    of_both: dict[str, Any] = {"prior": prior, "learned": solved.learned}
    if timed.sum() >= least:
        measured = data.ttft[timed]
        errors = (first[timed] / measured - 1.0, held_ttft[timed] / measured - 1.0)
        ttft = Fitted(efficiency, *errors, _of_prompts(data, prior), scales=scales[timed], **of_both)
    errors = (tpot / data.tpot - 1.0, held_tpot / data.tpot - 1.0)
    names = _names(data, prior)
    return FittedServing(efficiency, *errors, names, serving, ttft, scales=scales, **of_both)


def _free(data: Runs) -> tuple[str, ...]:
    """The parameters that the times per output token depend on."""
    plan = data.plan
    used = {
        "sample": data.host.any(),
        # A compiled graph reads whole buckets.
        "padding": (plan.compiled_keys == 0.0).any(),
        # With tensor parallelism the time of a layer is that of its collectives as well.
        "launch": (plan.tp == 1.0).any(),
        "call": (plan.tp > 1.0).any(),
        "hop": (plan.tp > 2.0).any(),
        "single_core": (plan.single_core > 0.0).any(),
    }
    return tuple(name for name in TOKEN if used.get(name, True))


def _least(prior: Prior) -> int:
    return 1 if prior.name else LEAST


def _of_prompts(data: Runs, prior: Prior) -> tuple[str, ...]:
    """The further parameters that the times to first token depend on; none where too few rows have one."""
    if (data.ttft > 0.0).sum() < _least(prior):
        return ()
    spilled = ((data.plan.flash == 0.0) & (data.ttft > 0.0)).any()
    return tuple(name for name in FIRST if name != "score_passes" or spilled)


_PARAMETERS = {f.name for f in attrs.fields(Serving)} | {"hop"}
"""Parameters that a fit may find; the calibration of a prior may state more, such as a rate in 8 bit."""


def _names(data: Runs, prior: Prior) -> tuple[str, ...]:
    named = prior.named({*_free(data), *_of_prompts(data, prior)}, TOKEN | FIRST)
    return tuple(name for name in named if name in _PARAMETERS)


def fitted(data: Runs, prior: Prior = NO_PRIOR) -> Solved:
    """Fits times per token and times to first token together; prefill interrupts decoding.

    Args:
        data: The rows; without any the result is the prior.
        prior: What is known before the rows.
    """
    timed = data.ttft > 0.0
    typical = prior.centers(_names(data, prior), TOKEN | FIRST)
    firsts_count = bool(_of_prompts(data, prior))

    def solved(parameters: dict[str, Any]) -> Solved:
        return Solved(Serving(**{n: x for n, x in parameters.items() if n != "hop"}), parameters.get("hop", 0.0))

    def log_errors(parameters: dict[str, Any]) -> Any:
        tokens, firsts = solved(parameters).times(data)
        errors = np.log(tokens / data.tpot)
        return np.concatenate([errors, np.log(firsts[..., timed] / data.ttft[timed])], -1) if firsts_count else errors

    if not len(data.tpot):
        return solved(typical)
    roofs = ROOFS["experts" if (data.model.routed > 0.0).any() else "dense"]
    weights = prior.residuals(tuple(typical), roofs, WEIGHT)
    shares = frozenset(filter(is_share, typical))
    centers = {name: min(max(value, 1e-9), 1.0 - 1e-9) if name in shares else value for name, value in typical.items()}
    parameters, jacobian = fit_parameters(centers, shares, log_errors, weights, limits(data.chips), tolerance=TOLERANCE)
    known = posterior(tuple(typical), jacobian, typical, [weights[n] for n in typical])
    return attrs.evolve(solved(parameters), learned=tuple(known.learned(parameters)))
