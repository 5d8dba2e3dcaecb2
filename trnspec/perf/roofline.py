"""The roofline model: attainable rate and ideal time by peak rate and memory bandwidth (Williams et al. 2009).

All functions take floats or float64 arrays that broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trnspec.diagnostics import did_you_mean
from trnspec.errors import RefusalError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.ops import Number, larger, smaller
from trnspec.perf.work.transformer import STATE_BYTES, AttentionConvention, head_flops, mean, reaches, span

ELEMENT_BYTES = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "cfp8": 1.0,
    "fp8": 1.0,
    "int8": 1.0,
    # 32 elements share a scale of 8 bits (OCP Microscaling Formats 1.0, section 5).
    "mxfp8": 1.0 + 1.0 / 32.0,
    "mxfp4": 0.5 + 1.0 / 32.0,
    "int4": 0.5,
    "fp4": 0.5,
}
"""Bytes per element in device memory, by data type."""


def ridge(peak: Number, bandwidth: Number) -> Number:
    """The ridge point [FLOP/B]: the arithmetic intensity from which on work is compute-bound."""
    return peak / bandwidth


def attainable(intensity: Number, peak: Number, bandwidth: Number) -> Number:
    """The attainable rate [FLOP/s] at an arithmetic intensity [FLOP/B]: ``min(peak, intensity x bandwidth)``."""
    return smaller(peak, intensity * bandwidth)


def least_time(flops: Number, traffic: Number, peak: Number, bandwidth: Number) -> Number:
    """The ideal time [s]: the larger of FLOP over peak rate [FLOP/s] and bytes over bandwidth [B/s]."""
    return larger(flops / peak, traffic / bandwidth)


class Piece(NamedTuple):
    """One operation of a forward pass.

    Attributes:
        name: ``projections``, ``scores``, ``index``, ``recurrence``, ``mlp``, ``experts``, ``shared``, ``router`` or ``head``.
        layers: The layers it belongs to: ``all``, ``dense``, ``experts``, ``full``, ``windowed``, ``sparse``, ``indexed``;
            empty for the head and for all recurrences together.
        count: How often the model has it.
        flops: FLOP of one.
        traffic: Device-memory traffic of one [B].
    """

    name: str
    layers: str
    count: Number
    flops: Number
    traffic: Number


def pieces(  # each is an input of the evaluator
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
    """The operations of a forward pass that the model has, and the least traffic of each.

    Scores stay on chip (FlashAttention, Dao et al. 2022); re-reads due to limited on-chip memory are not counted.

    Args:
        d: The transformer.
        tokens: Tokens computed, over all sequences.
        sequences: Sequences, each with its own KV cache.
        seq: Tokens of a sequence, or in its KV cache when decoding.
        convention: ``full`` (decoding: a token attends to the whole cache) or ``causal``.
        element_bytes: Bytes of a weight and of an activation.
        kv_bytes: Bytes of a KV-cache element.
        logits: Tokens for which logits are computed.
    """
    # Every operand moves once: weights, inputs and outputs of each matrix, keys and values of every sequence.
    moved = tokens * element_bytes

    def matrices(name: str, layers: str, count: Number, weights: Number, streamed: Number) -> Piece:
        """Matrices that are read once, tensors of a token that they read and write."""
        return Piece(name, layers, count, 2.0 * tokens * weights, weights * element_bytes + moved * streamed)

    # Inputs: h and the heads' output; outputs: queries, keys and values, h; in a recurrence its inputs and its output.
    mixed = 2.0 * d.hidden * (1.0 - d.absent_results / d.layers) + mean(d, lambda own: own.width)
    projections = matrices("projections", "all", d.layers, d.attention_weights, mixed + d.recurrent_width / d.layers)
    written = tokens * mean(d, lambda own: own.projected) * kv_bytes
    yield projections._replace(traffic=projections.traffic + written)
    for one in reaches(d):
        if one.layers > 0.0:
            flops = tokens * 2.0 * one.heads.width * span(seq, one.limit, d.causal, convention) / one.stride
            # A prefill reads the whole sequence; decoding reads what is within the window.
            read = (seq if convention == "causal" else span(seq, one.limit, d.causal, "full")) / one.stride
            traffic = tokens * element_bytes * one.heads.width + sequences * read * one.heads.kv_elements * kv_bytes
            yield Piece("scores", "all" if one.layers == d.layers else one.name, one.layers, flops, traffic)
    if d.index_layers > 0.0:
        stride = larger(d.sparse_stride, 1.0)
        keys = span(seq, 0.0, d.causal, convention) / stride
        traffic = element_bytes * tokens * d.index_width + kv_bytes * sequences * (seq / stride) * d.index_size
        yield Piece("index", "indexed", d.index_layers, 2.0 * tokens * keys * d.index_width, traffic)
    if d.recurrence > 0.0:
        # Tensors of every token once, and the state of every sequence read and written.
        traffic = element_bytes * tokens * d.recurrent_width + 2.0 * STATE_BYTES * sequences * d.state
        yield Piece("recurrence", "", 1.0, 2.0 * tokens * d.recurrence, traffic)
    if d.layers > d.expert_layers and d.mlp_weights:
        streamed = 2.0 * d.hidden + d.matrices * d.width
        yield matrices("mlp", "dense", d.layers - d.expert_layers, d.mlp_weights, streamed)
    if d.expert_layers:
        if d.router_weights:
            yield matrices("router", "experts", d.expert_layers, d.router_weights, d.hidden + d.experts)
        # Of the routed experts at most as many are read as tokens are sent to.
        read = smaller(d.experts, tokens * d.active) * d.expert_weights * element_bytes
        streamed = d.active * (2.0 * (d.expert_hidden or d.hidden) + d.matrices * d.expert_width)
        flops = 2.0 * tokens * d.active * d.expert_weights
        yield Piece("experts", "experts", d.expert_layers, flops, read + moved * streamed)
        if d.shared_weights:
            streamed = 2.0 * d.hidden + d.matrices * d.shared_width
            yield matrices("shared", "experts", d.expert_layers, d.shared_weights, streamed)
    # Logits have 4 bytes.
    traffic = (d.head + d.outer_weights) * element_bytes + logits * (element_bytes * d.hidden + 4.0 * d.vocabulary)
    yield Piece("head", "", 1.0, head_flops(d, logits), traffic)


def element_bytes(dtype: str, place: str) -> float:
    """Bytes per element of a data type.

    Raises:
        RefusalError: ``unknown-type``: its size is unknown.
    """
    if dtype not in ELEMENT_BYTES:
        raise RefusalError(
            "unknown-type",
            f"{place} is {dtype}, a type of unknown size",
            place=place,
            hint=did_you_mean(dtype, ELEMENT_BYTES) or f"known: {', '.join(ELEMENT_BYTES)}",
        )
    return ELEMENT_BYTES[dtype]
