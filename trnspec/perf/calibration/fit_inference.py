"""Fits what is achieved in serving to measured times of tokens, and tells how far rows it has not seen lie from it.

The time of a call, that of a step and the share of device memory's rate explain much of each other where all rows are
small batches: each alone is less certain than the times that they give together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_training import OUTLYING, Fitted, Holdout, holdout_masks
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
"""What the time of a token tells about, and where a fit begins and what it stays near where rows do not tell."""

FIRST: dict[str, float] = {"matmul": 0.2, "attention": 0.02, "request": 1e-2}
"""What the time to the first token tells about beside that."""

SHARES = frozenset({"weights", "cache", "padding", "matmul", "attention"})
"""What lies between 0 and 1; the others are above 0."""

WEIGHT = 0.03
"""As of training, what it costs to leave the usual by a factor of e; less, for there are fewer numbers than there."""

LEAST = 8
"""Rows that are the least to fit to: more than there are numbers to find."""

MODELS = 5
"""Models from which on rows are left out a model at a time; below, a configuration at a time."""


@frozen
class Runs:
    """Cases as arrays.

    Attributes:
        model: The transformers, a row each.
        plan: The deployments.
        machine: What their ranks compute with.
        token: The measured times per output token, in s.
        first: The measured times to the first token, in s; 0 where there is none.
        interrupted: Where the prompts of others are computed in between.
        host: Where tokens are picked on the host.
        groups: For each row, what it is left out together with.
    """

    model: Transformer
    plan: Deployment
    machine: Machine
    token: Any
    first: Any
    interrupted: Any
    host: Any
    groups: tuple[str, ...] = field(repr=False)

    def tokens(self, serving: Serving) -> Any:
        """The computed times per output token, in s."""
        serving = self._picked(serving)
        found = decode_time(self.model, self.plan, self.machine, serving)
        if self.interrupted.any():
            waiting = serve(self.model, self.plan, self.machine, serving).prefill_interference
            found = found + np.where(self.interrupted, waiting, 0.0)
        return found

    def firsts(self, serving: Serving) -> Any:
        """The computed times to the first token, in s, of every row."""
        return prefill(self.model, self.plan, self.machine, self._picked(serving)).total

    def rows(self, chosen: Any) -> Runs:
        """Some of the rows, chosen by a mask."""
        return Runs(
            _chosen(self.model, chosen),
            _chosen(self.plan, chosen),
            _chosen(self.machine, chosen),
            self.token[chosen],
            self.first[chosen],
            self.interrupted[chosen],
            self.host[chosen],
            tuple(g for g, kept in zip(self.groups, chosen, strict=True) if kept),
        )

    def _picked(self, serving: Serving) -> Serving:
        return attrs.evolve(serving, sample=np.where(self.host, serving.sample, 0.0))


def runs(cases: Sequence[InferenceCase]) -> Runs:
    """Cases as arrays.

    Raises:
        UsageError: There are none.
    """
    if not cases:
        raise UsageError("there are no rows to fit or to score")
    models = [c.model for c in cases]
    alike = [f"{c.model} {c.system.name} {c.plan} {c.interrupted} {c.host}" for c in cases]
    return Runs(
        _stacked([transformer(c.dims) for c in cases]),
        _stacked([c.plan for c in cases]),
        _stacked([machine(c.system, IDEAL, c.dtype) for c in cases]),
        np.array([c.token for c in cases]),
        np.array([c.first for c in cases]),
        np.array([c.interrupted for c in cases]),
        np.array([c.host for c in cases]),
        tuple(models if len(set(models)) >= MODELS else alike),
    )


def _stacked(values: Sequence[Any]) -> Any:
    kind = type(values[0])
    return kind(**{f.name: np.array([getattr(v, f.name) for v in values], float) for f in attrs.fields(kind)})


def _chosen(value: Any, rows: Any) -> Any:
    return type(value)(**{f.name: getattr(value, f.name)[rows] for f in attrs.fields(type(value))})


@frozen
class FittedServing(Fitted):
    """What a fit to times of tokens found; the errors are of the time per output token.

    Attributes:
        serving: What is achieved, all of it; ``efficiency`` has what training knows too.
        first: The same fit beside the times to the first token: its errors have an element for each row that has one;
            none where too few have.
    """

    serving: Serving
    first: Fitted | None


def fit_inference(cases: Sequence[InferenceCase], apart: Holdout = "model") -> FittedServing:
    """Fits to some cases; every group of them is also computed from a fit to the others.

    Args:
        cases: The measurements.
        apart: What is left out together: see :func:`trnspec.perf.calibration.fit_training.holdout_masks`.

    Raises:
        UsageError: There are too few rows, or of too few chips, or scipy is not installed.
    """
    whole = runs(cases)
    if len(cases) < LEAST:
        raise UsageError(f"{len(cases)} rows are too few to fit; {LEAST} is the least")
    timed = whole.first > 0.0
    serving = fitted(whole)
    tokens, firsts = np.empty(len(cases)), np.empty(len(cases))
    for out in holdout_masks(whole.groups, [c.system.chip for c in cases], apart):
        rest = fitted(whole.rows(~out))
        some = whole.rows(out)
        tokens[out] = some.tokens(rest)
        firsts[out] = some.firsts(rest)
    efficiency = Efficiency(
        matmul=float(serving.matmul),
        attention=float(serving.attention),
        call=float(serving.call),
        step=float(serving.step),
    )
    first = None
    if timed.sum() >= LEAST:
        measured = whole.first[timed]
        errors = (whole.firsts(serving)[timed] / measured - 1.0, firsts[timed] / measured - 1.0)
        first = Fitted(efficiency, *errors, tuple(FIRST))
    names = (*_free(whole), *(FIRST if first is not None else ()))
    errors = (whole.tokens(serving) / whole.token - 1.0, tokens / whole.token - 1.0)
    return FittedServing(efficiency, *errors, names, serving, first)


def _free(whole: Runs) -> tuple[str, ...]:
    """What the times of tokens can tell anything about."""
    return tuple(name for name in TOKEN if name != "sample" or whole.host.any())


def fitted(whole: Runs) -> Serving:
    """What some rows say: first of tokens, then of prompts with that, and again where prompts interrupt tokens."""
    timed = whole.first > 0.0
    enough = timed.sum() >= LEAST
    serving = Serving(**FIRST) if enough else Serving()
    some = whole.rows(timed)
    for _ in range(2 if enough and whole.interrupted.any() else 1):
        serving = _moved(serving, {n: TOKEN[n] for n in _free(whole)}, whole.tokens, whole.token)
        if enough:
            serving = _moved(serving, FIRST, some.firsts, some.first)
    return serving


def _moved(serving: Serving, typical: dict[str, float], times: Callable[[Serving], Any], measured: Any) -> Serving:
    """What is achieved, with some of its numbers moved to where the computed times are nearest to the measured ones."""
    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise UsageError("fitting needs scipy; install trnspec with the extra calibrate") from error
    begin = np.array([_free_of_bounds(n, value) for n, value in typical.items()])

    def at(x: Any) -> Serving:
        return attrs.evolve(serving, **{n: _back(n, float(v)) for n, v in zip(typical, x, strict=True)})

    def errors(x: Any) -> Any:
        return np.concatenate([np.log(times(at(x)) / measured), WEIGHT * (x - begin)])

    return at(least_squares(errors, begin, loss="soft_l1", f_scale=OUTLYING).x)


def _free_of_bounds(name: str, value: float) -> float:
    return float(np.log(value / (1.0 - value))) if name in SHARES else float(np.log(value))


def _back(name: str, at: float) -> float:
    return float(1.0 / (1.0 + np.exp(-at))) if name in SHARES else float(np.exp(at))
