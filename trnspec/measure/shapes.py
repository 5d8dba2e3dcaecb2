"""The shapes that are measured: those of large language models, or small ones for a processor."""

from __future__ import annotations

from attrs import frozen

from trnspec.measure.timing import QUICK, Effort


@frozen(kw_only=True)
class AttentionShape:
    """Attention of some sequences: ``queries`` is 1 in decoding."""

    batch: int
    queries: int
    keys: int
    heads: int
    kv_heads: int
    size: int


@frozen(kw_only=True)
class Layer:
    """One layer of a decoder with a gated feed-forward network."""

    batch: int
    seq: int
    hidden: int
    heads: int
    kv_heads: int
    width: int


@frozen(kw_only=True)
class Shapes:
    """Shapes of a measurement.

    Attributes:
        effort: How long each is measured.
        gemms: Rows of the left operand, columns of the right one, and the inner dimension.
        dtypes: Of the multiplications.
        copies: Bytes that are read, and written [B].
        attention: Prefill and decoding.
        layers: Layers, forward and backward.
        collectives: Buffers [B].
    """

    effort: Effort
    gemms: tuple[tuple[int, int, int], ...]
    dtypes: tuple[str, ...]
    copies: tuple[int, ...]
    attention: tuple[AttentionShape, ...]
    layers: tuple[Layer, ...]
    collectives: tuple[int, ...]


_MATRICES = ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (57344, 8192))
"""Columns and inner dimension of projections of Llama 3 8B and 70B."""

FULL = Shapes(
    effort=Effort(),
    gemms=tuple((m, n, k) for m in (1, 16, 64, 256, 1024, 4096, 8192) for n, k in _MATRICES),
    dtypes=("bf16", "fp16", "tf32", "fp32"),
    copies=tuple(2**i for i in range(20, 33, 2)),
    attention=(
        *(
            AttentionShape(batch=b, queries=s, keys=s, heads=h, kv_heads=8, size=128)
            for b, s in ((1, 1024), (1, 4096), (4, 4096), (1, 16384))
            for h in (32, 64)
        ),
        *(
            AttentionShape(batch=b, queries=1, keys=s, heads=h, kv_heads=8, size=128)
            for b in (1, 16, 64)
            for s in (1024, 8192, 32768)
            for h in (32, 64)
        ),
    ),
    layers=(
        Layer(batch=1, seq=4096, hidden=4096, heads=32, kv_heads=8, width=14336),
        Layer(batch=1, seq=8192, hidden=4096, heads=32, kv_heads=8, width=14336),
        Layer(batch=1, seq=4096, hidden=8192, heads=64, kv_heads=8, width=28672),
    ),
    collectives=tuple(2**i for i in range(10, 31, 2)),
)
"""For an accelerator; some minutes."""

SMALL = Shapes(
    effort=QUICK,
    gemms=((16, 64, 32), (64, 64, 64)),
    dtypes=("fp32",),
    copies=(2**16,),
    attention=(
        AttentionShape(batch=1, queries=32, keys=32, heads=4, kv_heads=2, size=16),
        AttentionShape(batch=2, queries=1, keys=64, heads=4, kv_heads=2, size=16),
    ),
    layers=(Layer(batch=1, seq=32, hidden=64, heads=4, kv_heads=2, width=128),),
    collectives=(2**10, 2**14),
)
"""For a processor, and to try the command: seconds."""
