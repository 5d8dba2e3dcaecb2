"""The roofline model: attainable rate and ideal time by peak rate and memory bandwidth (Williams et al. 2009).

All functions take floats or float64 arrays that broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trnspec.errors import RefusalError
from trnspec.perf.ops import Number, larger, smaller
from trnspec.perf.work.flops import head_flops, head_traffic, layer_flops, layer_traffic, span
from trnspec.perf.work.transformer import STATE_BYTES, reaches

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
    """The operations of a forward pass that the model has.

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
    dense = d.layers - d.expert_layers
    sizes = {"weight_bytes": element_bytes, "activation_bytes": element_bytes, "kv_bytes": kv_bytes}
    work, moved = {}, {}
    for kind in (0.0, 1.0):
        work[kind] = layer_flops(d, tokens, span(seq, 0.0, d.causal, convention), kind)
        moved[kind] = layer_traffic(d, tokens, seq, kind, sequences=sequences, **sizes)
    yield Piece("projections", "all", d.layers, work[0.0].projections, moved[0.0].projections)
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


def element_bytes(dtype: str, place: str) -> float:
    """Bytes per element of a data type.

    Args:
        dtype: The data type: ``bf16``.
        place: The input that names it.

    Raises:
        RefusalError: ``unknown-type``: its size is unknown.
    """
    if dtype not in ELEMENT_BYTES:
        raise RefusalError(
            "unknown-type", f"{place} is {dtype}, a type of unknown size", place=place, hint=", ".join(ELEMENT_BYTES)
        )
    return ELEMENT_BYTES[dtype]
