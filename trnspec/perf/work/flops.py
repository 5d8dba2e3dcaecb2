"""FLOP of a transformer's operations, and published conventions for model FLOP.

A matrix of ``e`` elements costs ``2 e`` FLOP per token forward and ``4 e`` backward.  For attention scores and values
there are two published conventions; every function that counts them takes the convention as an argument:

- ``full``: every token attends to the whole sequence, ``12 L h s`` FLOP per token forward and backward (Narayanan et al.
  2021, Korthikanti et al. 2022, Chowdhery et al. 2022);
- ``causal``: a token attends only to earlier tokens, half of that (Megatron-LM).

All functions take floats or float64 arrays that broadcast, and return the broadcast shape.  ``d`` is always
:class:`Dimensions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trnspec.errors import UsageError
from trnspec.model.transformers.counting import parameters as all_parameters
from trnspec.perf.ops import Number, larger, smaller, where
from trnspec.perf.work.transformer import reaches

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions

AttentionConvention = Literal["full", "causal"]
Convention = Literal[
    "sc21", "korthikanti", "korthikanti-hardware", "palm", "llm-foundry", "megatron", "nemo", "matmul-full"
]
CONVENTIONS: tuple[str, ...] = (
    "sc21", "korthikanti", "korthikanti-hardware", "palm", "llm-foundry", "megatron", "nemo", "matmul-full",
)  # fmt: skip
"""The conventions of :func:`model_flops_per_token`."""


def span(seq: Number, window: Number, causal: Number, convention: AttentionConvention) -> Number:
    """Keys that a token attends to, on average over a sequence of ``seq`` tokens.

    ``full``: all ``s``, or the window ``w`` where that is shorter.  ``causal``: ``s/2``; with a window
    ``w (1 - w/(2 s))``, which is ``s/2`` again for ``w = s``.

    Args:
        seq: Tokens of the sequence.
        window: Tokens of the attention window; 0 for none.
        causal: 1.0 for causal attention; otherwise the conventions agree.
        convention: ``full`` or ``causal``.
    """
    # where() computes both branches, and both are finite.
    keys = where(window > 0.0, smaller(window, seq), seq)
    if convention == "full":
        return keys
    # s - w/2 instead of 1 - w/(2 s): w == s gives s/2 without rounding.
    return where(causal > 0.0, keys * (seq - keys / 2.0) / larger(seq, 1.0), keys)


def all_scores(d: Dimensions, seq: Number, convention: AttentionConvention) -> Number:
    """FLOP of scores and values per token, all layers, forward; those of multi-token prediction are not windowed.

    Queries times keys and weights times values are ``2 a (qk + v) c`` with ``c`` keys of a token: ``4 L h s`` (full) or ``2 L h s`` (causal) where heads times size is ``h`` and no layer is windowed.  Those of indexers and recurrences count as well: an indexer scores all keys, and a recurrence does not depend on them.
    """
    everywhere = span(seq, 0.0, d.causal, convention)
    total = d.mtp_layers * (2.0 * d.heads * (d.qk_size + d.v_size) * everywhere)
    for one in reaches(d):
        keys = span(seq, one.limit, d.causal, convention) / one.stride
        total = total + one.layers * (2.0 * one.heads.width * keys)
    index = d.index_layers * 2.0 * d.index_width * (everywhere / larger(d.sparse_stride, 1.0))
    return total + index + 2.0 * d.recurrence


def head_flops(d: Dimensions, tokens: Number) -> Number:
    """FLOP of the output matrix forward for the tokens that get logits: ``2 V h`` per token."""
    return 2.0 * tokens * (d.head + d.outer_weights)


def matmul_flops(m: Number, k: Number, n: Number) -> Number:
    """FLOP of ``(m, k) x (k, n)``: ``2 m k n``."""
    return 2.0 * m * k * n


def matmul_traffic(m: Number, k: Number, n: Number, element_bytes: Number, result_bytes: Number) -> Number:
    """Memory traffic [B] of ``(m, k) x (k, n)``, each operand moved once: ``m k + k n`` elements in, ``m n`` out."""
    return (m * k + k * n) * element_bytes + m * n * result_bytes


def model_flops_per_token(
    d: Dimensions, seq: Number, convention: Convention, parameters: Number | None = None
) -> Number:
    """Model FLOP of one token forward and backward, by a published convention.

    - ``sc21``: with full recompute, ``96 L h^2 (1 + s/6h + V/16Lh)`` (Narayanan et al. 2021, equation 3): four passes
      through the layers, three through the output.
    - ``korthikanti``: ``72 L h^2 (1 + s/6h + V/12Lh)`` (Korthikanti et al. 2022, appendix A), no recompute.
    - ``korthikanti-hardware``: ``72 L h^2 (1 + s/3h + V/12Lh)`` (the same), with selective recompute, as published: the
      scores twice.
    - ``palm``: ``6 N + 12 L H Q T`` (Chowdhery et al. 2022, appendix B), all parameters.
    - ``llm-foundry``: ``6 N + 12 L h s``, all parameters, the hidden size in place of the heads' width
      (mosaicml/llm-foundry, scripts/train/benchmarking/README.md).
    - ``megatron``: three passes through the matrices of attention, feed-forward network, active and shared experts and
      output, and the causal half of the scores; without router and embedding, and of norms only those of latent attention
      and of multi-token prediction, as if they were matrices (NVIDIA/Megatron-LM, megatron/training/training.py,
      num_floating_point_operations).
    - ``nemo``: ``6 (N - V h) + 12 L h s``: all parameters but the embedding; of routed experts the active ones.
    - ``matmul-full``: three passes through every matrix, router included, and the full scores.

    The GPT formulas above are these sums for ``12 h^2`` elements per layer; the implementation holds for every form.
    Modules of multi-token prediction count as further layers and outputs where matrices are counted, and as parameters
    where those are.

    Args:
        d: The transformer.
        seq: Tokens of a sequence.
        convention: One of :data:`CONVENTIONS`.
        parameters: ``N`` where it is published and differs from the count by dimensions; counted by default.

    Raises:
        UsageError: Unknown convention.
    """
    if convention not in CONVENTIONS:
        raise UsageError(f"{convention!r} is not a FLOP convention; expected one of {', '.join(CONVENTIONS)}")
    scores = all_scores(d, seq, "causal" if convention == "megatron" else "full")
    if convention in _PASSES:
        layers, router = _multiplied(d)
        through, again = _PASSES[convention]
        matrices = layers + router if convention == "matmul-full" else layers
        if convention == "megatron":
            matrices = matrices + (d.layers + d.mtp_layers) * d.latent_norms + d.mtp_layers * d.mtp_small
        return through * (2.0 * matrices) + again * scores + 3.0 * (1.0 + d.mtp_layers) * head_flops(d, 1.0)
    n = all_parameters(d) if parameters is None else parameters
    if convention == "llm-foundry":
        return 6.0 * n + 12.0 * d.layers * d.hidden * seq
    if convention == "nemo":
        idle = _layers(d)[1] * (d.experts - d.active) * (d.expert_weights + d.expert_small)
        return 6.0 * (n - idle - d.embedding) + 3.0 * scores
    return 6.0 * n + 3.0 * scores


_PASSES = {
    "sc21": (4.0, 4.0),
    "korthikanti": (3.0, 3.0),
    "korthikanti-hardware": (3.0, 6.0),
    "megatron": (3.0, 3.0),
    "matmul-full": (3.0, 3.0),
}
"""Passes through the layers' matrices, and through scores and values; the output always takes three."""


def _multiplied(d: Dimensions) -> tuple[Number, Number]:
    """Elements of the layers' matrices that a token is multiplied by: without routers, and of the routers."""
    dense, routed = _layers(d)
    experts = d.active * d.expert_weights + d.shared_weights
    layers = (dense + routed) * d.attention_weights + dense * d.mlp_weights + routed * experts
    return layers + d.mtp_layers * d.mtp_weights, routed * d.router_weights


def _layers(d: Dimensions) -> tuple[Number, Number]:
    """Dense and MoE layers, those of multi-token prediction included, which are of the kind of the last layer."""
    routed = where(d.expert_layers > 0.0, d.mtp_layers, 0.0)
    return d.layers - d.expert_layers + (d.mtp_layers - routed), d.expert_layers + routed


def recomputed_flops_per_token(
    d: Dimensions, seq: Number, recompute: Number, convention: AttentionConvention
) -> Number:
    """FLOP per token that are recomputed in the backward pass.

    With ``operators`` every second matrix multiplication of a layer is recomputed and counts as half of its FLOP; attention
    scores are not, since the output of attention is kept.

    Args:
        d: The transformer.
        seq: Tokens of a sequence.
        recompute: 0.0 none, 1.0 selective (scores and values), 1.5 operators, 2.0 full.
        convention: ``full`` or ``causal``.
    """
    layers, router = _multiplied(d)
    scores = all_scores(d, seq, convention)
    partial = where(recompute >= 1.5, layers + router, where(recompute >= 1.0, scores, 0.0))
    return where(recompute >= 2.0, 2.0 * (layers + router) + scores, partial)
