"""The time of a call on a device: device events around batches of calls, after a warm-up; the median of the batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from attrs import frozen

from trnspec.measure.device import Device, torch

MOST_CALLS = 10_000
"""Calls of a batch at most."""


@frozen(kw_only=True)
class Effort:
    """Durations of a measurement.

    Attributes:
        warmup: Calls before the first batch: compilation, caches, and clocks.
        batches: Batches whose median is the result.
        least: Least time of a batch [s], so that the events themselves and the launch of the first call count little.
    """

    warmup: int = 5
    batches: int = 15
    least: float = 5e-3


QUICK = Effort(warmup=1, batches=3, least=0.0)
"""For tests: the times are right to an order of magnitude."""


@frozen(kw_only=True)
class Timing:
    """A measured time.

    Attributes:
        seconds: Median time of a call [s].
        low: Of the fastest batch [s].
        high: Of the slowest batch [s].
        calls: Calls of a batch.
        batches: Batches.
    """

    seconds: float
    low: float
    high: float
    calls: int
    batches: int

    @property
    def note(self) -> str:
        """Method of the measurement."""
        spread = f"{1e6 * self.low:.4g} to {1e6 * self.high:.4g} us"
        return f"median of {self.batches} batches of {self.calls} calls; {spread}"


def measured(call: Callable[[], object], device: Device, effort: Effort) -> Timing:
    """The time of a call.

    Calls of a batch follow each other without synchronisation, so that a call shorter than its launch takes the time of the launch.

    Args:
        call: What to time; its result is dropped.
        device: Where it runs.
        effort: How long.
    """
    for _ in range(effort.warmup):
        call()
    device.synchronize()
    once = _batch(call, device, 1)
    calls = min(max(1, round(effort.least / max(once, 1e-9))), MOST_CALLS)
    times = [_batch(call, device, calls) / calls for _ in range(effort.batches)]
    return Timing(seconds=median(times), low=min(times), high=max(times), calls=calls, batches=len(times))


def _batch(call: Callable[[], object], device: Device, calls: int) -> float:
    """The time of some calls [s]."""
    if device.kind == "cuda":
        events = [torch().cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        for _ in range(calls):
            call()
        events[1].record()
        device.synchronize()
        return float(events[0].elapsed_time(events[1])) * 1e-3
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - begin
