"""FLOP of a forward pass in one sum, the oracle for the sum over operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.perf.work.flops import Parts, attention_flops, head_flops

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.ops import Number
    from trnspec.perf.work.flops import AttentionConvention


def forward_flops(
    d: Dimensions, tokens: Number, seq: Number, convention: AttentionConvention, logits: Number | None = None
) -> Parts:
    """FLOP of a forward pass: all layers and the output.

    Args:
        d: The transformer.
        tokens: Tokens computed, over all sequences.
        seq: Tokens of a sequence; with ``full`` this is also the context of a decoded token.
        convention: ``full`` or ``causal``.
        logits: Tokens that get logits; all by default.
    """
    dense = d.layers - d.expert_layers
    return Parts(
        projections=2.0 * tokens * d.layers * d.attention_weights,
        scores=tokens * attention_flops(d, seq, convention) / 3.0,
        mlp=2.0 * tokens * dense * d.mlp_weights,
        experts=2.0 * tokens * d.expert_layers * d.active * d.expert_weights,
        shared=2.0 * tokens * d.expert_layers * d.shared_weights,
        router=2.0 * tokens * d.expert_layers * d.router_weights,
        head=head_flops(d, tokens if logits is None else logits),
    )
