"""What a model and a machine say together: the products that every step of the one on the other is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.lowering.machine import always_zero
from trnspec.perf.ops import Number, smaller

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.transformer import Transformer


@frozen(kw_only=True)
class Terms:
    """Times of a layer forward, elements of weights, and what is achieved, for one model on one machine.

    Attributes:
        layers: Layers.
        hidden: Width of the residual stream.
        matmul: Time of the matrix multiplications for one token, in s.
        repeated: Time of the matrices of keys and values for one token, in s: repeated where heads are too few to split.
        score: Time of attention for a token and a token of its context, in s.
        wide: Time of reading and writing what is on the residual stream, for a token and byte of an element, in s.
        split: The same of what tensor parallelism splits.
        weight: Time of reading the weights of a layer once, routed experts apart, for each byte of an element, in s.
        expert_weight: The same of the routed experts.
        stream: Time of norms and residuals for a token and byte of an element, in s.
        score_byte: Time of scores in memory for a pair of tokens and byte of an element, in s.
        head: Time of the output matrix and the loss, forward and backward, for a token, in s.
        keys: Elements of keys and values over the width of the residual stream.
        kv_heads: Heads of keys and values.
        halved: Half, where only the half that causality leaves is computed, else 0.
        window: Tokens a windowed layer looks back.
        windowed: Share of the layers that do.
        kept: Elements of a layer that every rank of an expert group keeps.
        routed: Elements of the routed experts of a layer.
        only: Elements outside the layers where there is one stage.
        last: What of them the last of several stages has, less those.
        dispatched: Copies of a token that all-to-all carries.
        used: 1 where there are any; where they are fewer than one, as many.
        state: Time of the optimizer for one byte of its states, in s.
        forward: Least time of a layer forward, in s.
        backward: Least time of a layer backward, in s.
        overlap: Share of the computation that gradients hide behind.
        exposed: Share of their communication that is exposed in any case.
        tensor_overlap: Share of a layer's computation that tensor-parallel collectives hide behind.
        step: What depends on nothing, in s.
    """

    layers: Number
    hidden: Number
    matmul: Number
    repeated: Number
    score: Number
    wide: Number
    split: Number
    weight: Number
    expert_weight: Number
    stream: Number
    score_byte: Number
    head: Number
    keys: Number
    kv_heads: Number
    halved: Number
    window: Number
    windowed: Number
    kept: Number
    routed: Number
    only: Number
    last: Number
    dispatched: Number
    used: Number
    state: Number
    forward: Number
    backward: Number
    overlap: Number
    exposed: Number
    tensor_overlap: Number
    step: Number


def terms(model: Transformer, machine: Machine) -> Terms:
    """The products of a model and a machine.

    A matrix multiplication of ``w`` elements costs ``2 w`` FLOP a token forward; scores and values cost ``2 c (q + v)`` a
    token with a context of ``c`` (Narayanan et al. 2021, appendix).
    """
    passed = machine.matmul_passes * machine.byte
    only = model.embedding + model.output * (1.0 - model.tied) + model.outer
    each = 6.0 * model.hidden * machine.flop + machine.head_passes * 4.0 * machine.byte
    return Terms(
        layers=model.layers,
        hidden=model.hidden,
        matmul=2.0 * model.weights * machine.flop,
        repeated=2.0 * model.hidden * model.kv_elements * machine.flop,
        score=2.0 * model.scores * machine.score,
        wide=model.wide * passed,
        split=model.split * passed,
        weight=model.whole * passed,
        expert_weight=model.routed * passed,
        stream=model.hidden * machine.hidden_passes * machine.byte,
        score_byte=model.heads * machine.score_passes * machine.byte,
        head=model.vocabulary * each,
        keys=model.kv_elements / model.hidden,
        kv_heads=model.kv_heads,
        halved=0.5 * machine.causal * model.causal,
        window=model.window,
        windowed=model.windowed,
        kept=model.whole + model.small,
        routed=model.routed,
        only=only,
        # The last stage has the output matrix, of its own even where it is the embedding again, and the final norm.
        last=model.output + model.outer - only,
        dispatched=model.dispatched,
        used=smaller(model.dispatched, 1.0),
        state=(1.0 + machine.optimizer_passes) * machine.byte,
        forward=machine.forward,
        backward=machine.backward,
        overlap=machine.overlap,
        exposed=machine.exposed,
        tensor_overlap=machine.tensor_overlap,
        step=machine.step,
    )


def context(terms: Terms, seq: Number) -> Number:
    """Tokens that a query meets in an average layer, forward, over a whole sequence of ``seq`` tokens."""
    halved = terms.halved
    whole = seq * (1.0 - halved)
    if always_zero(windowed := terms.windowed):
        return whole
    reach = smaller(terms.window, seq)
    # Of a window w each token meets w, but the first w of the sequence, which meet w/2 on average.
    seen = reach - halved * reach * reach / seq
    return whole + windowed * (seen - whole)
