"""The time of one kernel on one chip: matrix multiplication, attention, and an expert layer.

A kernel takes a fixed time (launch, prologue, and the steps along its inner dimension that no other work hides) and the longer
of compute and memory time.  Near the ridge the two do not overlap fully: ``(c^p + m^p)^(1/p)``, which is their maximum for large
``p``.  Compute time counts whole tiles, and whole waves of tiles over the cores of the chip in part (NVIDIA, Matrix
Multiplication Background, sections on tile and wave quantization).  All functions take float64 arrays that broadcast.
Times are in s, sizes in B, work in FLOP.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

TILES = ((64.0, 64.0), (64.0, 128.0), (128.0, 128.0), (128.0, 256.0), (256.0, 128.0), (256.0, 256.0))
"""Rows and columns of the tiles among which a library of matrix multiplications chooses the fastest."""

CORES = 132.0
"""Cores (streaming multiprocessors) of a chip: 132 of an H100, 148 of a B200; the difference is within the fitted share."""

INNER = 8192.0
"""Inner dimension from which on its steps are split over more cores."""

QUERIES = 128.0
"""Queries of a tile of attention."""

KEYS = 512.0
"""Keys of the shortest part into which decoding splits the KV cache."""

ROWS = 16.0
"""Least rows of the tile of an expert: its tokens are padded to them."""


@frozen(kw_only=True)
class Roof:
    """Achieved over published performance of one kernel; the defaults are ideal.

    Attributes:
        compute: Share of the peak rate.
        memory: Share of the rate of device memory.
        fixed: Time that depends on nothing [s].
        inner: Time per 1,000 elements of the inner dimension: of a multiplication its sum, of decoding the keys of a part [s].
        token: Time per 1,000 tokens, of quantizing or routing them [s].
        quantize: Fixed time of quantizing activations [s].
        waves: Share of a last wave of tiles that is not filled and takes time nevertheless.
        split: Power of the share of the cores that too few tiles leave idle: 0 where a tile is never split over cores.
        sharpness: The exponent ``p`` of the sum of compute and memory time; at infinity their maximum.
        epilogue: Time of the first loads and of the results of a tile of a multiplication, over that of 1,000 elements of its
            inner dimension.
    """

    compute: Any = 1.0
    memory: Any = 1.0
    fixed: Any = 0.0
    inner: Any = 0.0
    token: Any = 0.0
    quantize: Any = 0.0
    waves: Any = 0.0
    split: Any = 1.0
    sharpness: Any = np.inf
    epilogue: Any = 0.0


def overlapped(compute: Any, memory: Any, sharpness: Any) -> Any:
    """``(c^p + m^p)^(1/p)``, computed relative to the longer one; ``max(c, m)`` for ``p`` at infinity."""
    longer = np.maximum(compute, memory)
    ratio = np.minimum(compute, memory) / longer
    finite = np.where(np.isinf(sharpness), 1.0, sharpness)
    return np.where(np.isinf(sharpness), longer, longer * (1.0 + ratio**finite) ** (1.0 / finite))


def _waves(tiles: Any, roof: Roof) -> Any:
    """Time of some tiles over that of a tile on each core: at least their number over the cores."""
    full = tiles / CORES
    below = np.minimum(full, 1.0) ** roof.split
    return np.where(full < 1.0, below, full + roof.waves * (np.ceil(full) - full))


def gemm(  # each is a size of the kernel
    *, m: Any, n: Any, k: Any, element: Any, quantized: Any, flop: Any, byte: Any, roof: Roof
) -> Any:
    """The time of a matrix multiplication of ``m x k`` by ``k x n``, results in 16 bit.

    Args:
        m: Rows of the left operand: tokens.
        n: Columns of the right operand.
        k: Inner dimension.
        element: Bytes of an element of the operands.
        quantized: 1 where the left operand is quantized from 16 bit before.
        flop: Time of one FLOP at the peak rate [s].
        byte: Time of one byte at the rate of device memory [s].
        roof: Achieved performance.
    """
    ideal = np.isinf(roof.sharpness)
    whole = 2.0 * m * n * k * flop
    tiled = [
        _waves(np.ceil(m / rows) * np.ceil(n / columns), roof) * CORES * rows * columns * 2.0 * k * flop
        for rows, columns in TILES
    ]
    ends = 1.0 + 1e3 * roof.epilogue / k
    compute = np.where(ideal, whole, np.min(tiled, axis=0) * ends) / roof.compute
    memory = ((m * k + k * n) * element + 2.0 * m * n) * byte / roof.memory
    quantizing = roof.quantize + roof.token * m * 1e-3 + m * k * (2.0 + element) * byte / roof.memory
    quantizing = np.where(ideal, 0.0, quantized * quantizing)
    serial = roof.inner * 1e-3 * k / (1.0 + k / INNER)
    return roof.fixed + serial + quantizing + overlapped(compute, memory, roof.sharpness)


def attention_prefill(  # noqa: PLR0913  # each is a size of the kernel
    *, batch: Any, q: Any, kv: Any, heads: Any, kv_heads: Any, size: Any, element: Any, flop: Any, byte: Any, roof: Roof
) -> Any:
    """The time of causal attention of ``q`` queries to ``kv`` keys; whole tiles are computed along the diagonal.

    Args:
        batch: Sequences.
        q: Queries of a sequence.
        kv: Keys of a sequence.
        heads: Query heads.
        kv_heads: KV heads.
        size: Size of a head.
        element: Bytes of an element of keys and values.
        flop: Time of one FLOP at the peak rate [s].
        byte: Time of one byte at the rate of device memory [s].
        roof: Achieved performance.
    """
    ideal = np.isinf(roof.sharpness)
    mean = kv - 0.5 * (q - 1.0)
    tiled = kv - 0.5 * q + 0.5 * QUERIES
    rows = np.ceil(q / QUERIES)
    padded = _waves(batch * heads * rows, roof) * CORES * QUERIES * tiled
    products = np.where(ideal, batch * heads * q * mean, padded)
    compute = 4.0 * products * size * flop / roof.compute
    memory = batch * size * (4.0 * q * heads + 2.0 * kv * kv_heads * element) * byte / roof.memory
    return roof.fixed + roof.token * 1e-3 * batch * q + overlapped(compute, memory, roof.sharpness)


def attention_decode(  # noqa: PLR0913  # each is a size of the kernel
    *, batch: Any, kv: Any, heads: Any, kv_heads: Any, size: Any, element: Any, flop: Any, byte: Any, roof: Roof
) -> Any:
    """The time of attention of one query per sequence to ``kv`` keys, whose cache is split over idle cores.

    Args:
        batch: Sequences.
        kv: Keys of a sequence.
        heads: Query heads.
        kv_heads: KV heads.
        size: Size of a head.
        element: Bytes of an element of the KV cache.
        flop: Time of one FLOP at the peak rate [s].
        byte: Time of one byte at the rate of device memory [s].
        roof: Achieved performance.
    """
    parts = np.maximum(1.0, np.minimum(CORES / (batch * kv_heads), kv / KEYS)) ** roof.split
    compute = 4.0 * batch * heads * kv * size * flop / roof.compute
    memory = 2.0 * batch * (kv * kv_heads * element + 2.0 * heads) * size * byte / roof.memory
    return roof.fixed + roof.inner * 1e-3 * kv / parts + overlapped(compute, memory, roof.sharpness)


def experts_hit(experts: Any, pairs: Any, *, balanced: Any) -> Any:
    """Experts of a chip that some pairs of token and expert are sent to: as many as possible, or with even probability.

    ``E (1 - (1 - 1/E)^P)`` for ``P`` pairs on ``E`` experts, as of a token to ``k`` of ``E`` experts.
    """
    even = experts * -np.expm1(pairs * np.log1p(-1.0 / np.maximum(experts, 2.0)))
    return np.where(balanced > 0.0, np.minimum(experts, pairs), np.minimum(even, experts))


def expert_layer(  # noqa: PLR0913  # each is a size of the kernel
    *, tokens: Any, pairs: Any, hit: Any, hidden: Any, width: Any, stored: Any, flop: Any, byte: Any, roof: Roof
) -> Any:
    """The time of the gated experts of a layer on one chip: routing, two grouped multiplications, and the sum.

    Args:
        tokens: Tokens before routing.
        pairs: Pairs of token and expert on the chip.
        hit: Experts that have any.
        hidden: Hidden size.
        width: Width of an expert on this chip.
        stored: Bytes of a stored weight.
        flop: Time of one FLOP at the peak rate [s].
        byte: Time of one byte at the rate of device memory [s].
        roof: Achieved performance.
    """
    ideal = np.isinf(roof.sharpness)
    each = pairs / hit
    padded = hit * np.ceil(each / ROWS) * ROWS
    compute = 6.0 * np.where(ideal, pairs, padded) * hidden * width * flop / roof.compute
    weights = 3.0 * hit * hidden * width * stored
    moved = np.where(
        ideal, 2.0 * 2.0 * tokens * hidden, 2.0 * pairs * (2.0 * hidden + 3.0 * width) + 4.0 * tokens * hidden
    )
    memory = (weights + moved) * byte / roof.memory
    return (
        roof.fixed + roof.token * 1e-3 * tokens + roof.inner * 1e-3 * hit + overlapped(compute, memory, roof.sharpness)
    )
