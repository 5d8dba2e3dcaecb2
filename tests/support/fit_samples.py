"""Training steps with times that are known, because they were computed: what a fit must find again."""

from __future__ import annotations

import random

from attrs import evolve
from dims_by_hand import GPT_3, LLAMA_3_8B, LLAMA_3_70B, gpt, llama
from engine_samples import SYSTEMS

from trnspec.perf.calibration.fits.training import batch
from trnspec.perf.calibration.measured.training import Case
from trnspec.perf.lowering.efficiency import Efficiency
from trnspec.perf.work.layout import Layout

LONG = 8192.0
"""Tokens of the longest sequence; whoever trained with it had as many positions."""

MODELS = {
    "gpt-1b": evolve(gpt(24, 2048, 16), context=LONG), "gpt-22b": evolve(gpt(48, 6144, 64), context=LONG),
    "gpt-175b": evolve(GPT_3, context=LONG), "llama-8b": LLAMA_3_8B,
    "llama-70b": LLAMA_3_70B, "llama-7b": llama(32, 4096, 32, 32, 11008, 32000),
}  # fmt: skip

TRUE = Efficiency(
    matmul=0.72, attention=0.45, matmul_passes=1.0, hidden_passes=6.0, head_passes=25.0, optimizer_passes=1.5,
    forward=3e-4, backward=1e-4, server=0.6, network=0.55, call=4e-5, hop=4e-6, network_hop=3e-5, send=2e-5,
    overlap=0.5, exposed=0.15, tensor_overlap=0.3, step=2e-3, causal=1.0,
)  # fmt: skip
"""What is achieved; none of it is where a fit begins."""

WRITTEN = evolve(TRUE, causal=0.0, score_passes=5.0)
"""The same, where attention writes its scores, and computes all of them."""


def cases(count: int, efficiency: Efficiency, *, noise: float = 0.0, seed: int = 7, flash: bool = True) -> list[Case]:
    """So many steps at random, the same every time, with times that are off by a normal error of their logarithm."""
    draw = random.Random(seed)
    made = []
    for i in range(count):
        # Of ranks that are alone on their chip, and of two on each.
        which = draw.choice([0, 3])
        system = evolve(SYSTEMS[which], name=f"system-{which}")
        name = draw.choice(sorted(MODELS))
        tp, pp = draw.choice([1, 2, 4, 8]), draw.choice([1, 1, 2, 4])
        dp = int(system.ranks) // (tp * pp)
        layout = Layout(
            tp=tp, pp=pp, dp=dp, zero=draw.choice([0, 1, 3]), seq=draw.choice([1024, 2048, 8192]),
            global_batch=dp * draw.choice([4, 8, 16]), recompute=draw.choice(["none", "selective", "full"]),
            sequence_parallel=tp > 1, overlap=draw.random() < 0.5, uneven=True, flash=flash,
        )  # fmt: skip
        made.append(
            Case(
                id=f"{i}",
                model=name,
                dims=MODELS[name],
                system=system,
                layout=layout,
                dtype="bf16",
                seconds=1.0,
                memory=0.0,
            )
        )
    times = batch(made).times(efficiency)
    factors = [2.718281828459045 ** draw.gauss(0.0, noise) for _ in made]
    return [evolve(c, seconds=float(t) * f) for c, t, f in zip(made, times, factors, strict=True)]
