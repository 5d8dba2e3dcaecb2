"""Fits of serving efficiency to measured times per token and times to first token; prefill interrupts decoding.

Where all rows are small batches, the time of a call, the time of a step and the share of the memory bandwidth are not
identifiable separately: each is less certain than the times that they give together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fits.fit import FitModel
from trnspec.perf.calibration.fits.limits import limits
from trnspec.perf.calibration.fits.prior import FitPrior
from trnspec.perf.calibration.fits.search import Space, stacked
from trnspec.perf.calibration.measured.case import Part
from trnspec.perf.calibration.measured.inference import InferenceCase
from trnspec.perf.lowering.machine import IDEAL, Efficiency, Machine, machine
from trnspec.perf.serving.decode import decode_time
from trnspec.perf.serving.forward_pass import Deployment, Serving
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import Transformer, transformer

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

LEAST = 8
"""Least number of rows: more than there are parameters."""

MODELS = 5
"""Number of models from which on rows are held out by model; below, by configuration."""


@frozen
class InferenceRuns:
    """Cases as arrays.

    Attributes:
        model: The transformers, one per row.
        plan: The deployments, one per row.
        machine: Compute and communication of a rank, one per row.
        queued: Prefills of other requests before that of a request, on average.
        interrupted: Where prompts of other users are prefilled during decoding.
        host: Where tokens are sampled on the host.
    """

    model: Transformer
    plan: Deployment
    machine: Machine
    queued: Any
    interrupted: Any
    host: Any = field(repr=False)

    def times(self, values: Mapping[str, Any]) -> dict[Part, Any]:
        """The computed times per output token, and times to first token after the prefills that are queued before [s].

        Args:
            values: Serving efficiency; of a fit also ``hop``, the time of a step of a ring whose latency is not published.
        """
        serving = Serving(**{name: value for name, value in values.items() if name != "hop"})
        machine = self.machine
        if "hop" in values:
            hop = values["hop"]
            *inner, network = machine.levels
            step = hop + np.zeros(len(self.host))
            inner = [attrs.evolve(each, hop=np.where(each.hop > 0.0, each.hop, hop), step=step) for each in inner]
            machine = attrs.evolve(machine, levels=(*inner, network))
        serving = attrs.evolve(serving, sample=np.where(self.host, serving.sample, 0.0))
        tokens = decode_time(self.model, self.plan, machine, serving)
        if self.interrupted.any():
            interference = serve(self.model, self.plan, machine, serving).prefill_interference
            tokens = tokens + np.where(self.interrupted, interference, 0.0)
        first = prefill(self.model, self.plan, machine, serving).total
        return {"tpot": tokens, "ttft": (1.0 + self.queued) * first}


def runs(cases: Sequence[InferenceCase], efficiency: Efficiency = IDEAL) -> InferenceRuns:
    """Cases as arrays.

    Args:
        cases: The measurements.
        efficiency: That of the machine; a fit has all of it in the serving efficiency.

    Raises:
        UsageError: There are none.
    """
    if not cases:
        raise UsageError("there are no rows to fit or to score")
    return InferenceRuns(
        stacked([transformer(c.dims) for c in cases]),
        stacked([c.plan for c in cases]),
        stacked([machine(c.system, efficiency, c.dtype) for c in cases]),
        *(np.array([getattr(c, name) for c in cases]) for name in ("queued", "interrupted", "host")),
    )


def folds(cases: Sequence[InferenceCase]) -> list[str]:
    """The group that each row is held out with: its model, or its configuration where there are few models."""
    models = [c.model for c in cases]
    if len(set(models)) >= MODELS:
        return models
    return [f"{c.model} {c.system.name} {c.plan} {c.interrupted} {c.host}" for c in cases]


def free(cases: Sequence[InferenceCase]) -> tuple[str, ...]:
    """The parameters that the times per output token depend on."""
    plans = [c.plan for c in cases]
    used = {
        "sample": any(c.host for c in cases),
        # A compiled graph reads whole buckets.
        "padding": any(p.compiled_keys == 0.0 for p in plans),
        # With tensor parallelism the time of a layer is that of its collectives as well.
        "launch": any(p.tp == 1.0 for p in plans),
        "call": any(p.tp > 1.0 for p in plans),
        "hop": any(p.tp > 2.0 for p in plans),
        "single_core": any(p.single_core > 0.0 for p in plans),
    }
    return tuple(name for name in TOKEN if used.get(name, True))


def _of_prompts(cases: Sequence[InferenceCase], prior: FitPrior) -> tuple[str, ...]:
    """The further parameters that the times to first token depend on; none where too few rows have one."""
    timed = [c for c in cases if c.ttft]
    if len(timed) < (1 if prior.name else LEAST):
        return ()
    spilled = any(c.plan.flash == 0.0 for c in timed)
    return tuple(name for name in FIRST if name != "score_passes" or spilled)


_PARAMETERS = {f.name for f in attrs.fields(Serving)} | {"hop"}
"""Parameters that a fit may find; the calibration of a prior may state more, such as a rate in 8 bit."""


def _space(cases: Sequence[InferenceCase], prior: FitPrior) -> Space:
    named = prior.named({*free(cases), *_of_prompts(cases, prior)}, TOKEN | FIRST)
    names = tuple(name for name in named if name in _PARAMETERS)
    roofs = ROOFS["experts" if any(transformer(c.dims).routed for c in cases) else "dense"]
    return Space(
        typical=prior.centers(names, TOKEN | FIRST), pulls=prior.residuals(names, roofs, WEIGHT),
        limits=limits(c.chip for c in cases), fixed={"causal": 1.0},
    )  # fmt: skip


MODEL = FitModel(
    parts=("tpot", "ttft"), least=LEAST, columns=runs, space=_space, groups=lambda case: {"chip": case.chip}, folds=folds,
    warm=False,
)  # fmt: skip
