"""Memory of a rank in serving, and how much of it a rank reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.perf.work.memory import inference_memory
from trnspec.perf.work.stages import Split, peak_stages

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.lowering.system import System
    from trnspec.perf.serving.forward_pass import Deployment
    from trnspec.perf.work.memory import Memory


def capacity(system: System, ranks: float) -> float:
    """Device memory that each of some ranks reaches [B].

    Ranks that share a memory stack divide it; one that is alone on its stack has all of it (AWS Neuron documentation,
    "Logical NeuronCore configuration": with ``LNC=1`` each of two cores reaches the 24 GB of a bank).

    Args:
        system: The system.
        ranks: Ranks in use, next to each other.
    """
    return system.capacity * system.sharing / min(system.sharing, max(ranks, 1.0))


def held(d: Dimensions, plan: Deployment, context: float, at_once: float) -> Memory:
    """The memory of the rank that needs most, without a reserve.

    Args:
        d: The model.
        plan: The deployment.
        context: Tokens of a sequence in the KV cache: those of the compiled graph.
        at_once: Tokens of a pass.
    """
    split = Split(tp=plan.tp, pp=plan.pp, dp=plan.dp, ep=plan.ep)
    stages = [
        inference_memory(
            d, split, context=context, batch=(plan.compiled_batch or plan.batch) * plan.dp, step_tokens=at_once, stage=stage,
            weight_bytes=plan.weight_bytes, kv_bytes=plan.cache_bytes, activation_bytes=plan.activation_bytes,
        )
        for stage in dict.fromkeys(peak_stages(d, split))
    ]  # fmt: skip
    return max(stages, key=lambda m: float(m.total))
