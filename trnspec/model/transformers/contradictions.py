"""Contradictions in the dimensions of a transformer; no counts are computed for such a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.yaml import Path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.model.transformers.model import Attention, Experts, Model


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


def contradictions(spec: Model) -> Iterator[Contradiction]:
    """Every contradiction in a model, in the order of the classes; none for a valid one."""
    yield from _attention(spec.attention, spec.layers, spec.hidden)
    experts = spec.experts
    dense = spec.layers if experts is None else experts.dense_layers or 0
    if dense and spec.feed_forward is None:
        layers = "no layer has experts" if experts is None else f"{dense} of the layers are dense"
        yield Contradiction((), f"{layers}, but there is no feed_forward", "say its width and its form")
    if not dense and spec.feed_forward is not None:
        hint = "leave feed_forward out, or say experts.dense_layers"
        yield Contradiction(("feed_forward",), "every layer has experts, so none has a feed_forward", hint)
    if experts is not None:
        yield from _experts(experts, spec.layers)
    if spec.positions == "learned" and spec.form == "decoder" and spec.segments is not None:
        yield Contradiction(("segments",), "a decoder has no segments", "leave segments out, or say form: encoder")


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
    if attention.latent is not None and attention.norm == "head":
        hint = "leave norm out: latent attention normalises its compressed vectors"
        yield Contradiction(("attention", "norm"), "latent attention has no norm of its heads", hint)
    if attention.latent is not None:
        for part, rank in (("query_rank", attention.latent.query_rank), ("rank", attention.latent.rank)):
            if rank is not None and rank > hidden:
                message = f"a compressed vector of {rank} is larger than the {hidden} it compresses"
                hint = "say the size after compression"
                yield Contradiction(("attention", "latent", part), message, hint, (("hidden",),))
    if attention.windowed is not None and attention.window is None:
        hint = "say window, the tokens that they look back"
        yield Contradiction(("attention", "windowed"), "layers are windowed, but there is no window", hint)
    if attention.windowed is not None and attention.windowed > layers:
        message = f"{attention.windowed} layers are windowed, but there are {layers}"
        yield Contradiction(
            ("attention", "windowed"), message, "at most all of the layers are windowed", (("layers",),)
        )


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
    if experts.shared_width is not None and experts.shared is None:
        hint = "say shared, how many experts every token visits"
        yield Contradiction(("experts", "shared_width"), "a shared expert has a width, but there is none", hint)
