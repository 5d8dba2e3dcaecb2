"""The roofline: what a rate of computation and a rate of memory allow (Williams, Waterman and Patterson 2009).

All functions take floats or float64 arrays that broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trnspec.perf.ops import Number, larger, smaller
from trnspec.perf.work.flops import head_flops, head_traffic, layer_flops, layer_traffic, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.work.flops import AttentionConvention

ELEMENT_BYTES = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "cfp8": 1.0,
    "fp8": 1.0,
    "int8": 1.0,
    # 32 elements share a scale of 8 bits (OCP Microscaling Formats 1.0).
    "mxfp8": 1.0 + 1.0 / 32.0,
    "mxfp4": 0.5 + 1.0 / 32.0,
}
"""Bytes of an element in memory by data type."""


def ridge(peak: Number, bandwidth: Number) -> Number:
    """The intensity in FLOP/B from which on computation binds: peak rate over bandwidth."""
    return peak / bandwidth


def attainable(intensity: Number, peak: Number, bandwidth: Number) -> Number:
    """The rate in FLOP/s that work of an intensity in FLOP/B can reach: ``min(peak, intensity x bandwidth)``."""
    return smaller(peak, intensity * bandwidth)


def least_time(flops: Number, traffic: Number, peak: Number, bandwidth: Number) -> Number:
    """The least time in s of some work: the larger of FLOP over peak rate and bytes over bandwidth."""
    return larger(flops / peak, traffic / bandwidth)


class Piece(NamedTuple):
    """One part of a model forward.

    Attributes:
        name: ``projections``, ``scores``, ``mlp``, ``experts``, ``shared``, ``router`` or ``head``.
        layers: Which layers: ``dense``, ``experts``, ``windowed`` ..., or empty for what is outside of them.
        count: How often the model has it.
        flops: FLOP of one.
        traffic: Bytes of one.
    """

    name: str
    layers: str
    count: Number
    flops: Number
    traffic: Number


def pieces(  # each is an axis of the question
    d: Dimensions,
    *,
    tokens: Number,
    sequences: Number,
    seq: Number,
    convention: AttentionConvention,
    element_bytes: Number,
    kv_bytes: Number,
    logits: Number,
) -> Iterator[Piece]:
    """The parts of a model forward; those that it does not have are left out.

    Args:
        d: The transformer.
        tokens: Tokens computed, of all sequences.
        sequences: Sequences, each with a cache of its own.
        seq: Tokens of a sequence, or in its cache when decoding.
        convention: ``full`` (decoding: a token meets all of the cache) or ``causal``.
        element_bytes: Bytes of a weight and of an activation.
        kv_bytes: Bytes of an element of the cache.
        logits: Tokens whose logits are wanted.
    """
    dense = d.layers - d.expert_layers
    sizes = {"weight_bytes": element_bytes, "activation_bytes": element_bytes, "kv_bytes": kv_bytes}
    work, moved = {}, {}
    for kind in (0.0, 1.0):
        work[kind] = layer_flops(d, tokens, span(seq, 0.0, d.causal, convention), kind)
        moved[kind] = layer_traffic(d, tokens, seq, kind, sequences=sequences, **sizes)
    yield Piece("projections", "all", d.layers, work[0.0].projections, moved[0.0].projections)
    for name, count, window in (
        ("full", d.layers - d.windowed_layers, 0.0),
        ("windowed", d.windowed_layers, d.window),
    ):
        if count > 0.0:
            flops = layer_flops(d, tokens, span(seq, window, d.causal, convention)).scores
            # Computing a whole sequence reads all of it; decoding reads what the window holds.
            reach = seq if convention == "causal" else span(seq, window, d.causal, "full")
            traffic = layer_traffic(d, tokens, reach, sequences=sequences, **sizes).scores
            yield Piece("scores", "all" if count == d.layers else name, count, flops, traffic)
    for name, kind, count in (
        ("mlp", 0.0, dense),
        ("router", 1.0, d.expert_layers),
        ("experts", 1.0, d.expert_layers),
        ("shared", 1.0, d.expert_layers),
    ):
        flops, traffic = getattr(work[kind], name), getattr(moved[kind], name)
        if count > 0.0 and traffic > 0.0:
            yield Piece(name, "dense" if kind == 0.0 else "experts", count, flops, traffic)
    yield Piece(
        "head",
        "",
        1.0,
        head_flops(d, logits),
        head_traffic(d, logits, weight_bytes=element_bytes, activation_bytes=element_bytes),
    )
