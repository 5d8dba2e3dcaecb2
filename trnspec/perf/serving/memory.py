"""Memory of a rank in serving, and how much of it a rank reaches."""

from __future__ import annotations

from collections.abc import Iterator

from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.perf.ops import Number, larger, smaller, where
from trnspec.perf.serving.forward_pass import Deployment
from trnspec.perf.work.layout import Layout, peak_stages, stage_axis
from trnspec.perf.work.memory import RankMemory, inference_memory, of_heaviest


def capacity(system: LoweredSystem, ranks: Number) -> Number:
    """Device memory that each of some ranks reaches [B].

    Ranks that share a memory stack divide it; one that is alone on its stack has all of it (AWS Neuron documentation,
    "Logical NeuronCore configuration": with ``LNC=1`` each of two cores reaches the 24 GB of a bank).

    Args:
        system: The system.
        ranks: Ranks in use, next to each other.
    """
    return system.capacity * system.sharing / smaller(system.sharing, larger(ranks, 1.0))


def held(d: Dimensions, plan: Deployment, context: Number, at_once: Number) -> RankMemory:
    """The memory of the rank that needs most, without a reserve.

    Args:
        d: The model.
        plan: The deployment.
        context: Tokens of a sequence in the KV cache: those of the compiled graph.
        at_once: Tokens of a pass.
    """
    layout = Layout(tp=plan.tp, pp=plan.pp, dp=plan.dp, ep=plan.ep, seq=context, global_batch=plan.batch * plan.dp)
    stages = stage_axis(peak_stages(d, layout), layout, plan, at_once)
    # Stages differ in their weights and in the logits, since layers are divisible by pp.
    return of_heaviest(
        inference_memory(
            d, layout, context=context, batch=where(plan.compiled_batch > 0.0, plan.compiled_batch, plan.batch) * plan.dp,
            step_tokens=at_once, stage=stages, weight_bytes=plan.weight_bytes,
            whole_bytes=plan.whole_bytes, head_bytes=plan.head_bytes, kv_bytes=plan.cache_bytes,
            activation_bytes=plan.activation_bytes,
        )
    )  # fmt: skip


def invalid_layouts(
    d: Dimensions, ranks: float, tp: Number, pp: Number, dp: Number, ep: Number
) -> Iterator[tuple[str, str, Number]]:
    """Rules of validity: a reason, the degree at fault, and a mask; the first that holds is reported."""
    yield "rank-count", "", tp * pp * dp > ranks
    yield "heads-not-divisible", "tp", tp > d.heads
    yield "layers-not-divisible", "pp", d.layers % pp > 0.0
    yield "experts-not-divisible", "ep", d.experts % ep > 0.0 if d.experts else ep > 1.0
    yield "experts-not-divisible", "dp", dp % ep > 0.0
