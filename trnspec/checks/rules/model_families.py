"""Models compared with the models that they are built on, with their family, and with common sizes of hardware."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import ceil
from typing import Any

from trnspec.diagnostics import Severity
from trnspec.graph.graph import Graph, at, cached_by_graph
from trnspec.model.document import Node
from trnspec.model.reflection import ChoiceShape, NumberShape, dotted, leaves, shape_at, spread, value_at
from trnspec.model.sourced import origin_of
from trnspec.model.transformers.contradictions import contradictions, layers_of
from trnspec.model.transformers.model import Model
from trnspec.plugins.api import Finding, rule
from trnspec.yaml import Path

_NOT_DIMENSIONS = ("parameters", "base", "precision")


@rule("TRN408", "differs-from-base", over=Model, local=True)
def differs_from_base(model: Node[Model], graph: Graph) -> Iterator[Finding]:
    """A dimension that differs from that of the model named as base, or is listed as differing and is the same.

    Why:
        Llama 3.3 has the dimensions of Llama 3.1, and Qwen3-VL those of Qwen3: publishers state so. Where two documents of
        such models differ in a dimension that is not listed, one of them has a wrong one.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Model
        metadata: {name: example, title: Example}
        spec:
          layers: 40  #! TRN408
          hidden: 4096
          vocabulary: 128256
          context: 131072
          positions: rotary
          embeddings: untied
          norm: rms
          attention: {heads: 32, kv_heads: 8, head_size: 128}
          feed_forward: {width: 14336, form: gated}
          base: {model: llama-3-8b, differs: [spec.context]}
        ```

    Instead:
        ```diff
        -  layers: 40
        +  layers: 32
        ```

    Source:
        The model cards of Llama 3.3 and Qwen3-VL, which name the model that they are built on.
    """
    base = model.spec.base
    other = None if base is None else graph.find(base.model)
    if base is None or other is None or not isinstance(other.spec, Model):
        return
    if other is model:
        yield Finding(("spec", "base", "model"), f"{other.name} is its own base", "name another model, or remove base")
        return
    listed = [(index, path) for index, text in enumerate(base.differs) for path in spread(text)]
    own, others = _dimensions(model.spec), _dimensions(other.spec)
    compared: dict[Path, None] = {}
    found: list[Finding] = []
    for full in {**own, **others}:
        if own.get(full) == others.get(full) or any(("spec", *full)[: len(d)] == d for _, d in listed):
            continue
        # Of a part that only one of them has, one finding.
        above = (full[:n] for n in range(1, len(full)))
        path = next((p for p in above if not (_below(own, p) and _below(others, p))), full)
        if path in compared or any(node.document.rejects(("spec", *path)) for node in (model, other)):
            continue
        compared[path] = None
        one, two = (values.get(path) or ("present" if _below(values, path) else None) for values in (own, others))
        message = f"{dotted(path)} is {_shown(one)}, but {_shown(two)} in {other.name}, which has the same dimensions"
        hint = f"correct one of the two, or list spec.{dotted(path)} in base.differs"
        place: Path = ("spec", *path) if one is not None else ("spec", "base", "model")
        found.append(Finding(place, message, hint, (at(other, ("spec", *path)),)))
    if len(found) > _MOST_SLIPS:
        message = f"{len(found)} dimensions are not those of {other.name}: {', '.join(dotted(p) for p in compared)}"
        hint = "name another model, or list them in base.differs"
        found = [Finding(("spec", "base", "model"), message, hint, tuple(see for each in found for see in each.see))]
    yield from found
    for index, path in listed:
        if shape_at(Model, path[1:]) is not None and _below(own, path[1:]) == _below(others, path[1:]):
            message = f"{dotted(path)} is listed as differing from {other.name}, but is the same"
            see = tuple(at(n, path) for n in (model, other) if value_at(n.spec, path[1:]) is not None)
            yield Finding(("spec", "base", "differs", index), message, "correct one of the two, or remove it", see)


_MOST_SLIPS = 2
"""The most dimensions that differ by slips; where more do, the base is another model."""


def _dimensions(spec: Model) -> dict[Path, int | str]:
    return {
        path: value
        for path, shape, value in leaves(spec)
        if isinstance(shape, (NumberShape, ChoiceShape)) and path[0] not in _NOT_DIMENSIONS
    }


def _below(values: dict[Path, int | str], path: Path) -> dict[Path, int | str]:
    return {p: v for p, v in values.items() if p[: len(path)] == path}


def _shown(value: int | str | None) -> str:
    return "absent" if value is None else f"{value:,}" if isinstance(value, int) else value


_SHARED: tuple[Path, ...] = (
    ("vocabulary",),
    ("context",),
    ("norms",),
    ("segments",),
    ("attention", "head_size"),
    ("attention", "window"),
    *(("attention", "latent", part) for part in ("rank", "nope_size", "rope_size", "value_size")),
    *(("attention", "indexer", part) for part in ("keys", "size")),
    *(("recurrence", part) for part in ("key_size", "value_size", "key_heads", "kernel")),
    ("experts", "shared"),
)
"""The dimensions that models of one family mostly share, whatever their size."""

_SIZED = re.compile(r"a?[0-9]+(\.[0-9]+)?(x[0-9]+)?[mbt]")

_SIZES = frozenset(
    {"nano", "mini", "small", "base", "medium", "large", "xl", "super", "ultra", "scout", "maverick", "lightning"}
)
"""Words for the size of a model."""

OTHERS = 2
"""Number of other models of a family that must agree."""


@rule("TRN409", "family-outlier", over=Model, severity=Severity.WARNING)
def family_outlier(model: Node[Model], graph: Graph) -> Iterator[Finding]:
    """A dimension that no other model of the family has, while the others agree.

    Why:
        The sizes of a family share tokenizer, context and size of a head, so that a value of one model alone is most likely
        a slip. Where it is right, its own place in the source shows that it was read:
        ``context: {value: 262144, where: config.json}``.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Model
        metadata: {name: qwen3-72b, title: Example}
        spec:
          layers: 80
          hidden: 8192
          vocabulary: 152936  #! TRN409
          context: 40960
          positions: rotary
          embeddings: untied
          norm: rms
          attention: {heads: 64, kv_heads: 8, head_size: 128}
          feed_forward: {width: 29568, form: gated}
        ```

    Instead:
        ```diff
        -  vocabulary: 152936
        +  vocabulary: 151936
        ```

    Source:
        The technical reports of Qwen2.5, Qwen3 and Llama 3, which print these dimensions once for all sizes.
    """
    if not graph.focused(Model):
        return
    family = family_of(model.name)
    members = _families(graph).get(family, [])
    if len(members) <= OTHERS:
        return
    base = model.spec.base
    differing: set[Path] = set()
    if base is not None and family_of(base.model.name) == family:
        # The author states that it differs from a model of the family.
        differing = {tuple(path.split(".")[1:]) for path in base.differs}
    relatives: list[Node[Model]] = []
    for path, every in _dimensions_of(graph, family):
        own = value_at(model.spec, path)
        # More members with this value than the model itself: another one has it too.
        if own is None or every[own] > 1 or _was_read(own) or path in differing:
            continue
        counts = Counter({value: number for value, number in every.items() if value != own})
        if not counts or min(counts.values()) < OTHERS:
            continue
        relatives = relatives or [n for n in members if n.name != model.name]
        common, number = counts.most_common(1)[0]
        message = f"{dotted(path)} is {own:,}, but {common:,} in {number} other models of the family {family}"
        hint = f"{common:,}? if {own:,} is right, name its place in the source with where"
        see = tuple(at(n, ("spec", *path)) for n in relatives if value_at(n.spec, path) == common)
        yield Finding(("spec", *path), message, hint, see[:3])


_Values = tuple[tuple["Path", "Counter[Any]"], ...]


@cached_by_graph
def _families(graph: Graph) -> dict[str, list[Node[Model]]]:
    """The models of each family, by name."""
    families: dict[str, list[Node[Model]]] = {}
    for model in graph.of(Model):
        families.setdefault(family_of(model.name), []).append(model)
    return families


@cached_by_graph
def _dimensions_of(graph: Graph, family: str) -> _Values:
    """Number of models of a family by the value of each dimension that they share."""
    members = _families(graph).get(family, [])
    return tuple((path, Counter(v for n in members if (v := value_at(n.spec, path)) is not None)) for path in _SHARED)


@lru_cache(maxsize=4096)
def family_of(name: str) -> str:
    """The family of a model: its name up to the size."""
    words = name.split("-")
    sized = [i for i, word in enumerate(words) if _SIZED.fullmatch(word) or word in _SIZES]
    return "-".join(words[: sized[0]] if sized else words)


def _was_read(value: Any) -> bool:
    origin = origin_of(value)
    return origin is not None and (origin.where is not None or origin.source is not None or origin.note is not None)


UNIT = 8
"""Widths are multiples of 8: processors load and multiply that number of elements at once."""

POSITIONS = 2
"""Rows of positions that RoBERTa has in addition to its context."""

_WIDTHS: tuple[Path, ...] = (
    ("hidden",),
    ("context",),
    ("attention", "head_size"),
    ("attention", "value_size"),
    ("attention", "window"),
    *(("attention", "latent", part) for part in ("query_rank", "rank", "nope_size", "rope_size", "value_size")),
    *(("attention", "indexer", part) for part in ("keys", "size")),
    *(("recurrence", part) for part in ("key_size", "value_size")),
    ("feed_forward", "width"),
    *(("experts", part) for part in ("width", "shared_width", "latent")),
)

PERIODS = range(2, 9)
"""Layers of two kinds alternate with such a period: every second to every eighth layer differs."""


def _round_width(value: int) -> int:
    """The nearest multiple of 128 if it has nearly the same size, as most widths are; otherwise of 8."""
    near = round(value / 128) * 128
    return near if abs(near - value) * 50 <= value else round(value / UNIT) * UNIT


@rule("TRN410", "unusual-dimension", over=Model, severity=Severity.WARNING, local=True)
def unusual_dimension(model: Node[Model], graph: Graph) -> Iterator[Finding]:
    """A dimension of a model that no published model has, and that processors compute badly.

    Why:
        Hidden sizes, widths, sizes of heads and contexts are multiples of 8; windowed layers follow a pattern; latent
        attention has as many heads of keys as of queries. A dimension that differs has a wrong digit. Where it is right,
        its own place in the source shows that it was read.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Model
        metadata: {name: example, title: Example}
        spec:
          layers: 32
          hidden: 4096
          vocabulary: 100352
          context: 4096
          positions: rotary
          embeddings: untied
          norm: rms
          attention: {heads: 32, kv_heads: 8, head_size: 128}
          feed_forward: {width: 14335, form: gated}  #! TRN410
        ```

    Instead:
        ```diff
        -  feed_forward: {width: 14335, form: gated}
        +  feed_forward: {width: 14336, form: gated}
        ```

    Source:
        NVIDIA: Matrix Multiplication Background User's Guide, section 2, for multiples of 8 elements.
    """
    spec = model.spec
    for path in _WIDTHS:
        value = value_at(spec, path)
        rest = value % UNIT if isinstance(value, int) else 0
        if rest and not (path == ("context",) and (value - POSITIONS) % 128 == 0) and not _was_read(value):
            near = _round_width(value)
            yield _unusual(path, f"{value:,} is not a multiple of {UNIT}", f"{near:,}?")
    if any(contradictions(spec)):
        return
    attention, attended = spec.attention, layers_of(spec)[0]
    windowed = attention.windowed
    # Layers with pooled keys have a window as well, so that those with a window alone may be a few.
    if windowed is not None and windowed < attended and attention.pooling is None and not _was_read(windowed):
        alternating = {n for p in PERIODS for n in (attended // p, ceil(attended / p))}
        if not alternating & {windowed, attended - windowed}:
            message = f"{windowed} of {attended} layers have a window, which no pattern of layers gives"
            yield _unusual(("attention", "windowed"), message, "every second, third, ... layer has or lacks one")
    latent = attention.latent
    if latent is None:
        return
    if attention.kv_heads not in (1, attention.heads):
        message = f"latent attention has {attention.heads} heads, of queries and of keys, not {attention.kv_heads}"
        yield _unusual(("attention", "kv_heads"), message, f"{attention.heads}, or 1")
    sizes = (latent.nope_size, latent.value_size, latent.nope_size + latent.rope_size, latent.rope_size)
    if attention.head_size not in sizes:
        message = f"the size of a head is {attention.head_size}, but the parts of a key have {sizes[0]} and {sizes[3]}"
        yield _unusual(("attention", "head_size"), message, f"{sizes[0]}, or {sizes[2]} with the position")


def _unusual(path: Path, message: str, hint: str) -> Finding:
    return Finding(("spec", *path), message, hint)
