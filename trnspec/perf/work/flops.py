"""The work of a transformer: FLOP of its parts, the bytes they move, and the conventions in which both are told.

A matrix of ``e`` elements costs ``2 e`` FLOP a token forward and ``4 e`` backward.  For the scores and values of
attention two conventions are in print, and every function that counts them is told which:

- ``full``: every token meets the whole sequence, ``12 L h s`` FLOP a token forward and backward (Narayanan et al. 2021,
  Korthikanti et al. 2022, Chowdhery et al. 2022);
- ``causal``: a token meets only those before it, half of that (Megatron-LM).

All functions take floats or float64 arrays that broadcast.  ``d`` is always :class:`Dimensions`; results have the shape
that the arguments broadcast to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.model.transformers.counting import parameters as all_parameters
from trnspec.perf.ops import Number, both, larger, smaller, where

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions

AttentionConvention = Literal["full", "causal"]
Convention = Literal[
    "sc21", "korthikanti", "korthikanti-hardware", "palm", "llm-foundry", "megatron", "nemo", "matmul-full"
]
CONVENTIONS: tuple[str, ...] = (
    "sc21", "korthikanti", "korthikanti-hardware", "palm", "llm-foundry", "megatron", "nemo", "matmul-full",
)  # fmt: skip
"""The names of the conventions of :func:`model_flops_per_token`."""


@frozen(kw_only=True)
class Parts:
    """One count for each part of a transformer: FLOP, or bytes, of a layer or of many.

    Attributes:
        projections: The attention's matrices.
        scores: Queries times keys, and weights times values.
        mlp: The dense feed-forward network.
        experts: The routed experts that tokens visit.
        shared: The shared experts.
        router: The router.
        head: The output matrix, and the matrices beside it.
    """

    projections: Number = 0.0
    scores: Number = 0.0
    mlp: Number = 0.0
    experts: Number = 0.0
    shared: Number = 0.0
    router: Number = 0.0
    head: Number = 0.0

    @property
    def matrices(self) -> Number:
        """All but scores and head: what a layer multiplies by weights."""
        return self.projections + self.mlp + self.experts + self.shared + self.router

    @property
    def total(self) -> Number:
        """The sum."""
        return self.matrices + self.scores + self.head


def span(seq: Number, window: Number, causal: Number, convention: AttentionConvention) -> Number:
    """How many keys a token meets on average in a sequence of ``seq`` tokens.

    ``full``: all ``s``, or the window ``w`` where it is shorter.  ``causal``: ``s/2``; with a window
    ``w (1 - w/(2 s))``, the mean of what a window sees, which is ``s/2`` again for ``w = s``.

    Args:
        seq: Tokens of the sequence.
        window: Tokens a query looks back; 0 for all.
        causal: 1.0 when a token sees only those before it; else the conventions agree.
        convention: ``full`` or ``causal``.
    """
    # window == 0 means none; where() computes both sides, and both are finite.
    seen = where(window > 0.0, smaller(window, seq), seq)
    if convention == "full":
        return seen
    # s - w/2 instead of 1 - w/(2 s): w == s gives s/2 without rounding.
    return where(causal > 0.0, seen * (seq - seen / 2.0) / larger(seq, 1.0), seen)


def scores_flops(d: Dimensions, context: Number) -> Number:
    """FLOP of queries times keys and weights times values, one token, one layer, forward: ``2 a (qk + v) s``.

    Args:
        d: The transformer.
        context: Keys that the token meets.
    """
    return 2.0 * d.heads * (d.qk_size + d.v_size) * context


def attention_flops(d: Dimensions, seq: Number, convention: AttentionConvention) -> Number:
    """FLOP of scores and values per token, all layers, forward and backward.

    ``12 L h s`` (full) or ``6 L h s`` (causal) where heads times size is ``h`` and no layer is windowed.

    Args:
        d: The transformer.
        seq: Tokens of the sequence.
        convention: ``full`` or ``causal``.
    """
    return 3.0 * _scores_all(d, seq, convention)


def _scores_all(d: Dimensions, seq: Number, convention: AttentionConvention) -> Number:
    """FLOP of scores and values per token, all layers, forward."""
    everywhere = span(seq, 0.0, d.causal, convention)
    windowed = span(seq, d.window, d.causal, convention)
    return (d.layers - d.windowed_layers) * scores_flops(d, everywhere) + d.windowed_layers * scores_flops(d, windowed)


def layer_flops(d: Dimensions, tokens: Number, context: Number, expert: Number = 0.0) -> Parts:
    """FLOP of one layer's parts forward.

    Args:
        d: The transformer.
        tokens: Tokens computed.
        context: Keys that a token meets on average: see :func:`span`; the tokens in the cache when decoding.
        expert: 1.0 for a layer with experts, 0.0 for a dense one.
    """
    dense = 1.0 - expert
    return Parts(
        projections=2.0 * tokens * d.attention_weights,
        scores=tokens * scores_flops(d, context),
        mlp=2.0 * tokens * d.mlp_weights * dense,
        experts=2.0 * tokens * d.active * d.expert_weights * expert,
        shared=2.0 * tokens * d.shared_weights * expert,
        router=2.0 * tokens * d.router_weights * expert,
    )


def head_flops(d: Dimensions, tokens: Number) -> Number:
    """FLOP of the output matrix forward, for the tokens whose logits are wanted: ``2 V h`` a token."""
    return 2.0 * tokens * (d.head + d.outer_weights)


def forward_flops(
    d: Dimensions, tokens: Number, seq: Number, convention: AttentionConvention, logits: Number | None = None
) -> Parts:
    """FLOP of all layers and the output forward.

    Args:
        d: The transformer.
        tokens: Tokens computed, of all sequences.
        seq: Tokens of a sequence; with ``full`` this is also the context of a token that is decoded.
        convention: ``full`` or ``causal``.
        logits: Tokens whose logits are wanted; all when left out.
    """
    dense = d.layers - d.expert_layers
    return Parts(
        projections=2.0 * tokens * d.layers * d.attention_weights,
        scores=tokens * _scores_all(d, seq, convention),
        mlp=2.0 * tokens * dense * d.mlp_weights,
        experts=2.0 * tokens * d.expert_layers * d.active * d.expert_weights,
        shared=2.0 * tokens * d.expert_layers * d.shared_weights,
        router=2.0 * tokens * d.expert_layers * d.router_weights,
        head=head_flops(d, tokens if logits is None else logits),
    )


def visited(d: Dimensions, tokens: Number) -> Number:
    """How many routed experts of a layer at most some tokens visit: ``min(E, T k)``, an upper bound of their weights."""
    return smaller(d.experts, tokens * d.active)


def layer_traffic(
    d: Dimensions,
    tokens: Number,
    context: Number,
    expert: Number = 0.0,
    *,
    sequences: Number = 1.0,
    weight_bytes: Number = 2.0,
    activation_bytes: Number = 2.0,
    kv_bytes: Number = 2.0,
) -> Parts:
    """Bytes that one layer's parts move between memory and the compute units forward.

    Every operand moves once: weights, inputs and outputs of each matrix, keys and values of every sequence.  Scores stay
    on chip (as in FlashAttention, Dao et al. 2022); re-reading because of small on-chip memory is not counted, so this
    is the least traffic.

    Args:
        d: The transformer.
        tokens: Tokens computed, of all sequences.
        context: Tokens whose keys and values are read, a sequence.
        expert: 1.0 for a layer with experts, 0.0 for a dense one.
        sequences: Sequences, each with a cache of its own.
        weight_bytes: Bytes of a weight.
        activation_bytes: Bytes of an activation.
        kv_bytes: Bytes of an element of the cache.
    """
    dense = 1.0 - expert
    queries, outputs = d.heads * d.qk_size, d.heads * d.v_size
    slots = tokens * d.active
    moved = tokens * activation_bytes
    return Parts(
        # In: h and the heads' output; out: queries, keys and values, h.
        projections=d.attention_weights * weight_bytes + moved * (2.0 * d.hidden + queries + outputs)
        + tokens * d.kv_elements * kv_bytes,
        scores=moved * (queries + outputs) + sequences * context * d.kv_elements * kv_bytes,
        mlp=dense * (d.mlp_weights * weight_bytes + moved * (2.0 * d.hidden + d.matrices * d.width)),
        experts=expert
        * (
            visited(d, tokens) * d.expert_weights * weight_bytes
            + slots * activation_bytes * (2.0 * d.hidden + d.matrices * d.expert_width)
        ),
        shared=expert
        * where(
            d.shared_weights > 0.0,
            d.shared_weights * weight_bytes + moved * (2.0 * d.hidden + d.matrices * d.shared_width),
            0.0,
        ),
        router=expert * where(d.router_weights > 0.0, d.router_weights * weight_bytes + moved * (d.hidden + d.experts), 0.0),
    )  # fmt: skip


def head_traffic(
    d: Dimensions, tokens: Number, *, weight_bytes: Number = 2.0, activation_bytes: Number = 2.0
) -> Number:
    """Bytes of the output matrix forward: its weights, the inputs, and logits of four bytes."""
    return (d.head + d.outer_weights) * weight_bytes + tokens * (activation_bytes * d.hidden + 4.0 * d.vocabulary)


def matmul_flops(m: Number, k: Number, n: Number) -> Number:
    """FLOP of ``(m, k) x (k, n)``: ``2 m k n``."""
    return 2.0 * m * k * n


def matmul_traffic(m: Number, k: Number, n: Number, element_bytes: Number, result_bytes: Number) -> Number:
    """Bytes of ``(m, k) x (k, n)`` when every operand moves once: ``m k + k n`` elements in, ``m n`` out."""
    return (m * k + k * n) * element_bytes + m * n * result_bytes


def model_flops_per_token(
    d: Dimensions, seq: Number, convention: Convention, parameters: Number | None = None
) -> Number:
    """FLOP of one token forward and backward, as some publisher counts them.

    - ``sc21``: with full recompute, ``96 L h^2 (1 + s/6h + V/16Lh)`` (Narayanan et al. 2021, equation 3): four passes
      through the layers, three through the output.
    - ``korthikanti``: ``72 L h^2 (1 + s/6h + V/12Lh)`` (Korthikanti et al. 2022, appendix A), nothing recomputed.
    - ``korthikanti-hardware``: ``72 L h^2 (1 + s/3h + V/12Lh)`` (the same), with selective recompute, as printed: the scores twice.
    - ``palm``: ``6 N + 12 L H Q T`` (Chowdhery et al. 2022, appendix B), all parameters.
    - ``llm-foundry``: ``6 N + 12 L h s``, all parameters, the width of the network for that of the heads
      (mosaicml/llm-foundry, scripts/train/benchmarking/README.md).
    - ``megatron``: three passes through the matrices of attention, feed-forward network, visited and shared experts and
      output, and the causal half of the scores; neither router, norms nor embedding (NVIDIA/Megatron-LM,
      megatron/training/training.py, num_floating_point_operations; its norms of latent attention, of which each element
      counts as a multiplication there, are left out).
    - ``nemo``: ``6 (N - V h) + 12 L h s``: all parameters but the embedding; of experts those visited.
    - ``matmul-full``: three passes through everything that is multiplied, router included, scores in full.

    The GPT forms above are these sums for ``12 h^2`` elements a layer; here they hold for every form.

    Args:
        d: The transformer.
        seq: Tokens of a sequence.
        convention: One of the names above.
        parameters: ``N``, where it is published and the dimensions do not give it; else it is counted.

    Raises:
        UsageError: There is no such convention.
    """
    if convention not in CONVENTIONS:
        raise UsageError(f"{convention!r} is no convention of counting FLOP; there are {', '.join(CONVENTIONS)}")
    scores = _scores_all(d, seq, "causal" if convention == "megatron" else "full")
    if convention in _PASSES:
        layers, router = _multiplied(d)
        through, again = _PASSES[convention]
        matrices = layers + router if convention == "matmul-full" else layers
        return through * (2.0 * matrices) + again * scores + 3.0 * head_flops(d, 1.0)
    n = all_parameters(d) if parameters is None else parameters
    if convention == "llm-foundry":
        return 6.0 * n + 12.0 * d.layers * d.hidden * seq
    if convention == "nemo":
        idle = d.expert_layers * (d.experts - d.active) * (d.expert_weights + d.expert_small)
        return 6.0 * (n - idle - d.embedding) + 3.0 * scores
    return 6.0 * n + 3.0 * scores


_PASSES = {
    "sc21": (4.0, 4.0),
    "korthikanti": (3.0, 3.0),
    "korthikanti-hardware": (3.0, 6.0),
    "megatron": (3.0, 3.0),
    "matmul-full": (3.0, 3.0),
}
"""How often the layers' matrices, and how often scores and values are passed through; the output three times."""


def _multiplied(d: Dimensions) -> tuple[Number, Number]:
    """Elements of the layers' matrices that a token is multiplied by: without routers, and the routers'."""
    dense = d.layers - d.expert_layers
    experts = d.active * d.expert_weights + d.shared_weights
    layers = d.layers * d.attention_weights + dense * d.mlp_weights + d.expert_layers * experts
    return layers, d.expert_layers * d.router_weights


def recomputed_flops_per_token(
    d: Dimensions, seq: Number, recompute: Number, convention: AttentionConvention
) -> Number:
    """FLOP of one token that are computed again in the backward pass: nothing, the scores, or layers forward.

    With ``operators`` every second multiplication of a layer is, and counts as half of its FLOP; attention's scores are not,
    since its output is kept.

    Args:
        d: The transformer.
        seq: Tokens of a sequence.
        recompute: 0.0 none, 1.0 selective (scores and values), 1.5 operators, 2.0 full.
        convention: ``full`` or ``causal``.
    """
    layers, router = _multiplied(d)
    scores = _scores_all(d, seq, convention)
    some = where(recompute >= 1.5, layers + router, where(recompute >= 1.0, scores, 0.0))
    return where(recompute >= 2.0, 2.0 * (layers + router) + scores, some)


def attention_ratio(d: Dimensions, seq: Number, convention: AttentionConvention = "full") -> Number:
    """FLOP of scores and values over FLOP of the layers' matrices: ``T/(8 D)`` for many heads and a gate with ``F = 4 D``.

    Source: jax-ml/scaling-book, transformers.md.
    """
    layers, _ = _multiplied(d)
    return _scores_all(d, seq, convention) / (2.0 * layers)


def utilisation(flops: Number, seconds: Number, ranks: Number, peak: Number) -> Number:
    """The share of the peak rate that was reached: MFU with model FLOP, HFU with those recomputed as well.

    Args:
        flops: FLOP of what was done in that time, on all ranks.
        seconds: The time, in s.
        ranks: Ranks.
        peak: Peak rate of one rank, in FLOP/s.

    Returns:
        A share of 1; 0.0 where time, ranks or peak are none.
    """
    whole = seconds * ranks * peak
    known = both(whole > 0.0, flops >= 0.0)
    return where(known, flops / where(known, whole, 1.0), 0.0)


def training_time(tokens: Number, parameters: Number, ranks: Number, rate: Number) -> Number:
    """Seconds to train on so many tokens with full recompute: ``8 T P/(n X)`` (Narayanan et al. 2021, equation 4).

    Args:
        tokens: Tokens of the training.
        parameters: Parameters of the model.
        ranks: Ranks.
        rate: Achieved rate of one rank, in FLOP/s.
    """
    return 8.0 * tokens * parameters / (ranks * rate)
