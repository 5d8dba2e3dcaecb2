"""The physical limits of what a fit may find: one table, with reasons.

A parameter outside its limits has taken the place of a cost that the model lacks, and misleads wherever that cost is not
the same.  ``docs/explanation/performance/calibration.md`` has the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log

from attrs import frozen


@frozen
class ParameterLimits:
    """The limits of a parameter.

    Attributes:
        low: The least value.
        high: The largest value.
        reason: Why a value outside is not physical.
    """

    low: float
    high: float
    reason: str


_SHARE = "the share of a computation: between nothing and all of it"
_KERNEL = "unfused kernels read and write each tensor a few times"
_COLLECTIVE = "large collectives reach 0.67 and more of the links (catalog/measured/collectives_nccl.csv), small ones about half of it"

LIMITS: Mapping[str, ParameterLimits] = {
    "matmul": ParameterLimits(
        0.05, 0.94, "the best measured kernel of any chip reaches 0.94 (catalog/measured/matmul.csv)"
    ),
    "matmul_fp8": ParameterLimits(0.05, 0.94, "as for matmul; with the quantization of activations it is less"),
    "matmul_fp4": ParameterLimits(0.05, 0.94, "as for matmul_fp8"),
    "attention": ParameterLimits(
        0.1, 0.8, "FlashAttention-2 reaches 0.35 to 0.73, FlashAttention-3 0.75; below 0.1 it is memory traffic"
    ),
    "matmul_passes": ParameterLimits(0.01, 10.0, _KERNEL),
    "hidden_passes": ParameterLimits(0.1, 40.0, _KERNEL),
    "score_passes": ParameterLimits(0.1, 20.0, _KERNEL),
    "head_passes": ParameterLimits(
        0.1, 60.0, "14 bytes per logit are kept unfused; each is written and read a few times"
    ),
    "optimizer_passes": ParameterLimits(0.01, 10.0, _KERNEL),
    "forward": ParameterLimits(1e-6, 5e-3, "a layer launches at most some hundred kernels of about 10 us"),
    "backward": ParameterLimits(1e-6, 5e-3, "a layer launches at most some hundred kernels of about 10 us"),
    "server": ParameterLimits(0.3, 0.98, _COLLECTIVE),
    "ultraserver": ParameterLimits(0.3, 0.98, _COLLECTIVE),
    "network": ParameterLimits(0.1, 0.98, "as for server; per-parameter gathers reach less of a network"),
    "call": ParameterLimits(1e-6, 1e-4, "the smallest measured all-reduce over two servers takes 65 us in all"),
    "hop": ParameterLimits(1e-7, 5e-5, "a step within a server takes microseconds"),
    "network_hop": ParameterLimits(1e-6, 2e-4, "a step over a network takes tens of microseconds"),
    "send": ParameterLimits(1e-6, 1e-3, "a message between stages"),
    "overlap": ParameterLimits(0.01, 0.99, _SHARE),
    "exposed": ParameterLimits(0.01, 0.99, _SHARE),
    "tensor_overlap": ParameterLimits(0.01, 0.99, _SHARE),
    "pipeline_overlap": ParameterLimits(0.01, 0.99, _SHARE),
    "exchange": ParameterLimits(0.1, 0.98, _COLLECTIVE),
    "dispatch": ParameterLimits(
        1e-6, 2e-3, "sorting and permuting tokens takes some tens of kernels, and at most a synchronisation"
    ),
    "expert_overlap": ParameterLimits(0.01, 0.99, _SHARE),
    "step": ParameterLimits(1e-6, 0.1, "the host's work in a step"),
    "weights": ParameterLimits(0.2, 0.95, "device memory streams at no more than about 0.95 of its published rate"),
    "cache": ParameterLimits(0.05, 0.95, "device memory streams at no more than about 0.95 of its published rate"),
    "single_core": ParameterLimits(
        0.2, 0.99, "part of what two cores reach; one has half of the engines and of the DMA queues"
    ),
    "padding": ParameterLimits(0.01, 0.99, "a share of the unused capacity"),
    "sample": ParameterLimits(1e-6, 2e-2, "picking a token on the host"),
    "request": ParameterLimits(1e-5, 0.2, "the host's work in a prefill"),
    "link": ParameterLimits(0.05, 0.95, "messages of decoding are small"),
    "additive": ParameterLimits(0.0, 1.0, "none or all of the shorter of computing and reading"),
    "launch": ParameterLimits(1e-6, 1e-3, "a layer runs some ten kernels of 2 to 10 us in a graph, more without"),
    "queue": ParameterLimits(0.0, 1.0, "of the other requests in flight, none or all"),
    "response": ParameterLimits(1e-3, 0.5, "client, tokenizer and scheduler"),
}
"""The limits of every parameter that a fit finds."""

COLLECTIVE: Mapping[str, ParameterLimits] = {
    "call": ParameterLimits(
        1e-6, 1e-4, "a kernel takes microseconds to start; the shortest measured collective takes 2.4 us in all"
    ),
    "hop": ParameterLimits(
        2e-8, 5e-5, "a step within a server takes microseconds, one more flag of a kernel tens of nanoseconds"
    ),
    "network_hop": ParameterLimits(
        1e-6, 3e-4, "a step over a network takes tens of microseconds, with whole chunks up to hundreds"
    ),
    "link": ParameterLimits(
        0.01, 0.98, "a protocol with a flag in every 8 bytes reaches some percent of the links, the best nearly all"
    ),
    "network": ParameterLimits(
        0.001, 0.98, "as for links; with flags and small messages less than a percent of a fast network"
    ),
    "own": ParameterLimits(0.01, 1.0, "a rank's own part passes its links at most once in addition"),
    "host": ParameterLimits(1e-6, 2e-4, "launching a call takes the host tens of microseconds"),
    "wait": ParameterLimits(1e-6, 1e-4, "launching a call and waiting for it takes the host tens of microseconds"),
    "copies": ParameterLimits(0.5, 4.0, "an eager call copies its input once: a read and a write"),
}
"""The limits of the parameters of a protocol of collectives, and of a library."""

BEST_KERNEL: Mapping[str, float] = {
    "h100-sxm": 0.81,
    "h100-96gb-hbm2e": 0.81,
    "h200": 0.81,
    "b200": 0.78,
    "b300": 0.78,
    "gb200": 0.78,
    "gb300": 0.78,
}
"""The share of its peak rate that the best measured kernel of a chip reaches, where that is less than for any chip."""


def limits(chips: Iterable[str] = ()) -> dict[str, tuple[float, float]]:
    """The limits of each parameter in a fit to rows of some chips, which share one set of parameters."""
    ends = {name: (limit.low, limit.high) for name, limit in LIMITS.items()}
    low, high = ends["matmul"]
    best = min([high, *(BEST_KERNEL[c] for c in chips if c in BEST_KERNEL)])
    return {**ends, **dict.fromkeys(("matmul", "matmul_fp8", "matmul_fp4"), (low, best))}


KERNELS: Mapping[str, float] = {
    "h100-sxm": 0.75,
    "h200": 0.75,
    "b200": 0.62,
    "b300": 0.62,
    "gb200": 0.65,
    "gb300": 0.65,
}
"""Share of the peak that large matrix multiplications of 16 bit reach on a chip (catalog/measured/gemm_gpu.csv); typical is 0.72."""


def kernel(chip: str, name: str) -> float:
    """Offset of the logit of a parameter from the typical one on a chip, by measured kernels."""
    if name != "matmul" or chip not in KERNELS:
        return 0.0
    share = KERNELS[chip]
    return log(share / (1.0 - share)) - log(0.72 / 0.28)
