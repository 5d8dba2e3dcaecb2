"""Replicas of the queueing model with times that are linear in the number of requests."""

from __future__ import annotations

import numpy as np

from trnspec.perf.serving.load import Replica


def replica(
    prompt: float = 0.08,
    base: float = 0.01,
    each: float = 0.0005,
    most: int = 64,
    output: int = 200,
    shared: float = 0.0,
) -> Replica:
    steps = base + each * np.arange(1.0, most + 1.0)
    return Replica(prompt=prompt, prompt_squared=prompt**2, first=0.0, steps=steps, output=float(output), shared=shared)
