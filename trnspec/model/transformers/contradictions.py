"""Contradictions in the dimensions of a transformer; no counts are computed for such a model."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from trnspec.model.transformers.model import Attention, Experts, LocalAttention, Model, Pooling
from trnspec.yaml import Path


@frozen
class Contradiction:
    """Two counts that exclude each other, or one that is missing.

    Attributes:
        path: The path of the count, below ``spec``.
        message: What is wrong.
        hint: How to fix it.
        others: The paths of the other counts.
    """

    path: Path
    message: str
    hint: str
    others: tuple[Path, ...] = ()


def layers_of(spec: Model) -> tuple[int, int, int, int]:
    """The layers with attention, with a recurrence, with a dense network, and with experts."""
    recurrent = spec.recurrence.layers if spec.recurrence is not None else 0
    attended = spec.attention.layers or spec.layers - recurrent
    experts, network = spec.experts, spec.feed_forward
    with_experts = 0 if experts is None else experts.layers or spec.layers - (experts.dense_layers or 0)
    dense = 0 if network is None else network.layers or spec.layers - with_experts
    return attended, recurrent, dense, with_experts


def contradictions(spec: Model) -> Iterator[Contradiction]:
    """Contradictions in a model, in the order of the classes; none for a valid one."""
    attended, recurrent, dense, with_experts = layers_of(spec)
    yield from _attention(spec.attention, attended, spec.hidden)
    yield from _mixers(spec, attended, recurrent)
    experts = spec.experts
    if spec.feed_forward is None and (experts is None or experts.dense_layers is not None):
        layers = "no layer has experts" if experts is None else f"{experts.dense_layers} of the layers are dense"
        yield Contradiction((), f"{layers}, but there is no feed_forward", "say its width and its form")
    if spec.feed_forward is not None and dense <= 0 and with_experts == spec.layers:
        hint = "leave feed_forward out, or say experts.dense_layers"
        yield Contradiction(("feed_forward",), "every layer has experts, so none has a feed_forward", hint)
    if experts is not None:
        yield from _experts(experts, spec.layers)
    if dense + with_experts > spec.layers:
        message = f"{dense} layers have a feed_forward and {with_experts} experts, but there are {spec.layers}"
        hint = "a layer has one or the other"
        part = "experts" if experts is not None and experts.layers is not None else "feed_forward"
        yield Contradiction((part, "layers"), message, hint, (("layers",),))
    operations = attended + recurrent + dense + with_experts
    if operations < spec.layers:
        message = f"{spec.layers} layers, but only {operations} operations in them"
        yield Contradiction(("layers",), message, "each layer has attention, a recurrence or a network")
    if spec.positions == "learned" and spec.form == "decoder" and spec.segments is not None:
        yield Contradiction(("segments",), "a decoder has no segments", "leave segments out, or say form: encoder")
    if spec.mtp is not None and attended < spec.layers:
        hint = "leave mtp out: the layer of such a module is not known where layers differ"
        yield Contradiction(("mtp",), "multi-token prediction in a model with layers without attention", hint)


def _mixers(spec: Model, attended: int, recurrent: int) -> Iterator[Contradiction]:
    if attended <= 0:
        message = f"all {spec.layers} layers have a recurrence, so none has attention"
        yield Contradiction(("recurrence", "layers"), message, "leave a layer for attention", (("layers",),))
    elif attended + recurrent > spec.layers:
        part = "recurrence" if recurrent else "attention"
        message = f"{attended} layers have attention and {recurrent} a recurrence, but there are {spec.layers}"
        yield Contradiction((part, "layers"), message, "a layer has one or the other", (("layers",),))
    recurrence = spec.recurrence
    if recurrence is not None and recurrence.heads % recurrence.key_heads:
        message = f"{recurrence.heads} heads are not a multiple of {recurrence.key_heads} key_heads"
        hint = "each of the key_heads serves as many heads as the others"
        yield Contradiction(("recurrence", "key_heads"), message, hint, (("recurrence", "heads"),))


def _attention(attention: Attention, layers: int, hidden: int) -> Iterator[Contradiction]:
    heads, kv_heads = attention.heads, attention.kv_heads
    if attention.latent is None and heads % kv_heads:
        hint = f"each of the {kv_heads} heads of keys and values serves as many query heads as the others"
        yield Contradiction(
            ("attention", "kv_heads"),
            f"{heads} heads are not a multiple of {kv_heads} kv_heads",
            hint,
            (("attention", "heads"),),
        )
    if attention.latent is not None and attention.norm != "none":
        hint = "leave norm out: latent attention normalises its compressed vectors"
        yield Contradiction(("attention", "norm"), "latent attention has no norm of its heads", hint)
    if attention.indexer is not None:
        yield from _indexer(attention, layers)
    if attention.latent is not None:
        for part, rank in (("query_rank", attention.latent.query_rank), ("rank", attention.latent.rank)):
            if rank is not None and rank > hidden:
                message = f"a compressed vector of {rank} is larger than the {hidden} it compresses"
                hint = "say the size after compression"
                yield Contradiction(("attention", "latent", part), message, hint, (("hidden",),))
    if attention.windowed is not None and attention.window is None:
        hint = "say window, the tokens that they look back"
        yield Contradiction(("attention", "windowed"), "layers are windowed, but there is no window", hint)
    if attention.pooling is not None:
        yield from _pooling(attention, attention.pooling, layers)
    if attention.local is not None:
        yield from _local(attention, attention.local, layers)
    if attention.latent is not None and attention.values != "own":
        hint = "leave values out: keys and values are made from the same vector"
        yield Contradiction(("attention", "values"), "latent attention has no matrix of values", hint)
    if attention.windowed is not None and attention.windowed > layers:
        message = f"{attention.windowed} layers are windowed, but there are {layers}"
        yield Contradiction(
            ("attention", "windowed"), message, "at most all of the layers are windowed", (("layers",),)
        )


def _pooling(attention: Attention, pooling: Pooling, layers: int) -> Iterator[Contradiction]:
    """Layers whose keys several tokens share."""
    at = ("attention", "pooling")
    if attention.window is None or attention.indexer is None:
        missing = "window" if attention.window is None else "indexer"
        yield Contradiction(at, f"keys are pooled, but there is no {missing}", f"say {missing}")
        return
    if attention.latent is not None or attention.local is not None:
        other = "latent" if attention.latent is not None else "local"
        yield Contradiction(
            at, f"keys are pooled in attention with {other}", "only one of them is modelled", (("attention", other),)
        )
    stated = (attention.windowed or 0) + (attention.indexer.sparse or 0) + pooling.layers
    if attention.indexer.sparse is None or stated != layers:
        message = f"{stated} layers have a window alone, an indexer or pooled keys, but {layers} have attention"
        yield Contradiction(
            (*at, "layers"), message, "say windowed, indexer.sparse and pooling.layers of all layers", (("layers",),)
        )


def _local(attention: Attention, local: LocalAttention, layers: int) -> Iterator[Contradiction]:
    """The heads of windowed layers."""
    if attention.window is None:
        hint = "say window, the tokens that such a layer looks back"
        yield Contradiction(
            ("attention", "local"), "windowed layers have heads of their own, but there is no window", hint
        )
    elif attention.windowed is None or attention.windowed == layers:
        hint = "leave local out, and say the heads of windowed layers in attention"
        yield Contradiction(("attention", "local"), "every layer is windowed, so none has the other heads", hint)
    if attention.latent is not None:
        hint = "leave local out"
        yield Contradiction(("attention", "local"), "only one form of latent attention is modelled", hint)
    heads = local.heads or attention.heads
    kv_heads = local.kv_heads or attention.kv_heads
    if heads % kv_heads:
        part = "kv_heads" if local.kv_heads else "heads"
        yield Contradiction(
            ("attention", "local", part),
            f"{heads} heads of windowed layers are not a multiple of {kv_heads} kv_heads",
            f"each of the {kv_heads} heads of keys and values serves as many query heads as the others",
            (("attention", "heads"),),
        )


def _indexer(attention: Attention, layers: int) -> Iterator[Contradiction]:
    indexer = attention.indexer
    if attention.window is not None and attention.pooling is None:
        message = "attention has a window and an indexer"
        yield Contradiction(
            ("attention", "window"), message, "only one of them is modelled", (("attention", "indexer"),)
        )
    for name in ("layers", "sparse"):
        count = getattr(indexer, name)
        if count is not None and count > layers:
            message = f"{count} layers have an indexer, but {layers} have attention"
            yield Contradiction(("attention", "indexer", name), message, "at most all of them", (("layers",),))


def _experts(experts: Experts, layers: int) -> Iterator[Contradiction]:
    if experts.active > experts.count:
        message = f"a token visits {experts.active} experts, but there are {experts.count}"
        yield Contradiction(
            ("experts", "active"), message, "a token visits at most all of them", (("experts", "count"),)
        )
    if (experts.dense_layers or 0) >= layers:
        message = f"{experts.dense_layers} of the {layers} layers are dense, so none has experts"
        yield Contradiction(
            ("experts", "dense_layers"), message, "leave experts out, or leave a layer for them", (("layers",),)
        )
    dense = experts.dense_layers
    if experts.layers is not None and dense is not None and experts.layers + dense != layers:
        message = f"{experts.layers} layers have experts and {experts.dense_layers} are dense, but there are {layers}"
        yield Contradiction(("experts", "layers"), message, "leave one of the two out", (("experts", "dense_layers"),))
    routed = experts.layers or layers - (dense or 0)
    if experts.hashed is not None and experts.hashed > routed:
        message = f"{experts.hashed} layers select experts by a table, but {routed} have experts"
        yield Contradiction(("experts", "hashed"), message, "at most all of them", (("layers",),))
    if experts.latent_norm != "none" and experts.latent is None:
        hint = "say latent, the size that tokens are projected to"
        yield Contradiction(("experts", "latent_norm"), "a projection is normalised, but there is none", hint)
    if experts.shared_gate != "none" and experts.shared is None:
        hint = "say shared, how many experts every token visits"
        yield Contradiction(("experts", "shared_gate"), "a shared expert has a gate, but there is none", hint)
    if experts.shared_width is not None and experts.shared is None:
        hint = "say shared, how many experts every token visits"
        yield Contradiction(("experts", "shared_width"), "a shared expert has a width, but there is none", hint)
