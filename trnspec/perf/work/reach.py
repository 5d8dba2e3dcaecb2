"""Reach of the queries of a layer: all keys, a window, the keys that an indexer chooses, or keys pooled over tokens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.ops import Number, ceil, larger, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from trnspec.model.transformers.dimensions import Dimensions


@frozen(kw_only=True)
class Heads:
    """The heads of a layer with attention.

    Attributes:
        heads: Query heads.
        kv_heads: Heads of keys and values.
        qk_size: Size of one query or key.
        v_size: Size of one value.
        kv_elements: Elements of the cache for one key.
        projected: Of those, the elements that a matrix of the layer computes.
    """

    heads: Number
    kv_heads: Number
    qk_size: Number
    v_size: Number
    kv_elements: Number
    projected: Number

    @property
    def width(self) -> Number:
        """Elements of queries and outputs of all heads: half of the FLOP of a query-key pair."""
        return self.heads * (self.qk_size + self.v_size)

    def kv_share(self, tp: Number) -> Number:
        """Share of keys and values on a rank: heads are split, and replicated where there are fewer than ranks.

        ``ceil(g/t)/g``; a latent cache has one head, so every rank holds all of it.
        """
        return ceil(self.kv_heads / tp) / self.kv_heads

    def head_share(self, tp: Number) -> Number:
        """Share of the query heads on a rank: whole heads, padded where they do not divide."""
        return ceil(self.heads / tp) / self.heads


def heads_of(d: Dimensions) -> tuple[Heads, Heads]:
    """The heads of a layer without a window, and those of a windowed layer."""
    projected = _or(d.kv_projected, d.kv_elements)
    return (
        Heads(
            heads=d.heads, kv_heads=d.kv_heads, qk_size=d.qk_size, v_size=d.v_size, kv_elements=d.kv_elements,
            projected=projected,
        ),
        Heads(
            heads=_or(d.local_heads, d.heads),
            kv_heads=_or(d.local_kv_heads, d.kv_heads),
            qk_size=_or(d.local_qk_size, d.qk_size),
            v_size=_or(d.local_v_size, d.v_size),
            kv_elements=_or(d.local_kv_elements, d.kv_elements),
            projected=_or(d.local_kv_projected, _or(d.local_kv_elements, projected)),
        ),
    )  # fmt: skip


def _or(own: Number, other: Number) -> Number:
    return where(own > 0.0, own, other)


def mean(d: Dimensions, of: Callable[[Heads], Number]) -> Number:
    """The mean of a number over all layers; those without attention have none of it.

    Args:
        d: The transformer.
        of: The number of a layer with some heads.
    """
    full, local = heads_of(d)
    windowed = d.windowed_layers / d.layers
    whole = (1.0 - d.unattended_layers / d.layers - windowed) * of(full)
    return whole if type(windowed) is float and not windowed else whole + windowed * of(local)


def common_heads(d: Dimensions) -> float:
    """The number that a tensor-parallel degree must divide: heads of layers with and without a window have it in common."""
    return float(math.gcd(int(d.heads), int(d.local_heads or d.heads)))


@frozen(kw_only=True)
class Reach:
    """Layers whose queries reach equally far: at a context of ``c`` tokens to ``min(limit, c) / stride`` keys.

    Attributes:
        name: Its name.
        layers: Layers with it; a layer may have two, each with keys of its own.
        heads: Their heads.
        limit: Tokens that a query reaches back; 0 for all.
        stride: Tokens that share a key.
        kept: Tokens back that have their keys cached; 0 for all.
    """

    name: str
    layers: Number
    heads: Heads
    limit: Number = 0.0
    stride: Number = 1.0
    kept: Number = 0.0


def reaches(d: Dimensions) -> tuple[Reach, Reach, Reach, Reach]:
    """The reaches of a model: full, windowed, sparse and pooled; each may have no layers."""
    full, local = heads_of(d)
    whole = d.layers - d.unattended_layers - d.windowed_layers - d.sparse_layers - d.pooled_layers
    stride = larger(d.sparse_stride, 1.0)
    windowed = d.windowed_layers + d.beside_layers
    return (
        Reach(name="full", layers=whole, heads=full),
        Reach(name="windowed", layers=windowed, heads=local, limit=d.window, kept=d.window),
        Reach(name="sparse", layers=d.sparse_layers, heads=full, limit=d.sparse_keys * stride, stride=stride),
        Reach(name="pooled", layers=d.pooled_layers, heads=full, stride=larger(d.pooled_stride, 1.0)),
    )
