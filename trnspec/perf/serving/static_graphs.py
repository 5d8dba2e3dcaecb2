"""Compiled static graphs: buckets of batch and context, and shards narrower than a tile of the tensor engine.

A graph is compiled for fixed shapes.  A batch runs in the smallest bucket that holds it, a prompt is padded to a bucket,
and decoding multiplies and reads the KV cache of a whole bucket (NxD Inference, ``modules/autobucketing.py``: powers of two).
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.core import Core
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.ops import Number, ceil, larger, smaller, where
from trnspec.perf.serving.decode import second_context
from trnspec.perf.serving.forward_pass import Deployment, within
from trnspec.perf.work.transformer import Heads, Transformer, mean


def powers_of_two(smallest: int, size: int) -> tuple[int, ...]:
    """The buckets ``smallest``, ``2 smallest``, ... up to the first that holds ``size``."""
    buckets = [smallest]
    while buckets[-1] < size:
        buckets.append(2 * buckets[-1])
    return tuple(buckets)


def bucket(size: Number, buckets: Sequence[float]) -> Number:
    """The smallest bucket that holds ``size``.

    Args:
        size: At most the largest bucket.
        buckets: Sizes in increasing order.
    """
    held = 0.0 * size + buckets[-1]
    for one in reversed(buckets[:-1]):
        held = where(size <= one, float(one), held)
    return held


def mean_read(limit: Number, plan: Deployment, buckets: Sequence[float]) -> Number:
    """Tokens whose keys decoding reads in layers that reach back ``limit`` tokens (0: all), averaged over the output.

    The mean of ``min(w, bucket(c))`` for ``c`` from ``S`` to ``S + O``: each bucket counts for the part of the output in it.
    """
    start, end = plan.prompt, plan.prompt + plan.output
    total = 0.0 * start
    below = 0.0
    for one in buckets:
        tokens = larger(smaller(end, float(one)) - larger(start, below), 0.0)
        total = total + tokens * within(limit, 0.0 * start + one)
        below = float(one)
    return total / plan.output


def compiled(
    model: Transformer, plan: Deployment, contexts: Sequence[float], batches: Sequence[float] = ()
) -> Deployment:
    """A deployment whose graphs are compiled for buckets.

    Args:
        model: The transformer.
        plan: The deployment; a context may be as long as the largest bucket, prompt and output together.
        contexts: Buckets of the context in tokens, in increasing order; none for exact lengths.
        batches: Buckets of the batch in sequences, in increasing order; none for the sequences in flight.
    """
    if batches:
        plan = evolve(plan, compiled_batch=bucket(plan.batch, batches))
    if not contexts:
        return plan
    end = plan.prompt + plan.output
    return evolve(
        plan,
        compiled_tokens=bucket(ceil((plan.prompt - plan.cached) / plan.passes), contexts),
        compiled_prompt=bucket(plan.prompt, contexts),
        compiled_context=bucket(end, contexts),
        compiled_keys=mean_read(0.0, plan, contexts),
        compiled_window=mean_read(model.window, plan, contexts),
        compiled_chosen=mean_read(model.chosen, plan, contexts),
        compiled_first=bucket(second_context(plan), contexts),
        compiled_last=bucket(end - 1.0, contexts),
    )


def filled(width: Number, tile: float) -> Number:
    """Columns that ``width`` columns take in whole tiles."""
    return tile * ceil(width / tile)


def tile_of(graph: Graph, chip: str) -> int | None:
    """The columns of a tile of the tensor engine of a chip; ``None`` if its core states no array."""
    spec = graph.named(chip).spec
    core = graph.find(spec.cores.core) if isinstance(spec, Chip) and spec.cores is not None else None
    tensor = core.spec.engines.tensor if core is not None and isinstance(core.spec, Core) else None
    return None if tensor is None or tensor.array is None else int(tensor.array.columns)


def all_experts_from(experts: str | None, d: Dimensions) -> float:
    """Tokens from which on a pass computes and reads all experts; 0.0 for never.

    Args:
        experts: ``all``, ``selective-loading`` or ``selected``.
        d: The model; selective loading ends where its tokens select as many experts as there are, ``T k >= E``.
    """
    if not d.experts or experts in (None, "selected"):
        return 0.0
    return 2.0 if experts == "all" else float(-(-d.experts // d.active))


def narrow_shards(d: Dimensions, model: Transformer, plan: Deployment, tile: float, whole: int = 1) -> Deployment:
    """A deployment whose matrices take the time of whole tiles of the tensor engine.

    Tensor parallelism leaves ``width / tp`` columns of a network on a rank, and ``ceil(a / tp)`` heads; a matrix
    multiplication takes as long as with the next multiple of ``tile`` columns (or rows, for the matrix that follows).

    Args:
        d: The model.
        model: The averages over its layers.
        plan: The deployment.
        tile: Columns of the tensor engine's array.
        whole: Groups of the tensor-parallel ranks among which whole experts are distributed: those of a group split an
            expert (NxD Inference, ``moe_ep_degree`` and ``moe_tp_degree``).
    """

    def excess(width: float, groups: int = 1) -> Number:
        ranks = plan.tp / groups
        return filled(width / ranks, tile) * ranks / width - 1.0 if width else 0.0

    def added(own: Heads) -> Number:
        heads = ceil(own.heads / plan.tp)
        taken = filled(heads * own.qk_size, tile) + filled(heads * own.v_size, tile)
        return (taken - heads * (own.qk_size + own.v_size)) * plan.tp

    share = d.expert_layers / d.layers
    attention = d.hidden * mean(d, added)
    dense = (1.0 - share) * d.mlp_weights * excess(d.width)
    shared = share * d.shared_weights * excess(d.shared_width)
    return evolve(
        plan, narrow_whole=(attention + dense + shared) / model.whole, narrow_routed=excess(d.expert_width, whole)
    )
