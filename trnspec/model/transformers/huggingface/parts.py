"""Parts of decoders read from config.json: sizes, attention, networks, windows, experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from trnspec.model.transformers.huggingface.config import REQUIRED, Config, ConfigError
from trnspec.model.transformers.model import Attention, Experts, FeedForward, Recurrence

Fields = dict[str, Any]
Bias = Literal["none", "qkv", "all"]
NO_WINDOW: Fields = {}
_KV_HEADS_OF_QUERIES = frozenset(
    """
    afmoe apertus arcee cohere cohere2 falcon granite granitemoe granitemoehybrid granitemoeshared hunyuan_v1_dense llama
    nemotron olmo2 olmo3 olmoe phi phi3
    """.split()  # noqa: SIM905  # as the keys that are ignored
)
"""Architectures with as many heads of keys and values as of queries by default; published files of others state them."""


def outline(
    c: Config,
    *,
    layers: str | int = "num_hidden_layers",
    hidden: str = "hidden_size",
    context: str | tuple[str, int] = "max_position_embeddings",
    tied: bool = False,
    norm: Literal["layer", "rms"] = "rms",
    norms: int = 2,
    positions: Literal["rotary", "learned", "none"] = "rotary",
) -> Fields:
    """Sizes of the residual stream, embedding and norms; a context may have a default."""
    return {
        "layers": layers if isinstance(layers, int) else c.count(layers),
        "hidden": c.count(hidden),
        "vocabulary": c.count("vocab_size"),
        "context": c.count(context) if isinstance(context, str) else c.count(*context),
        "positions": positions,
        "embeddings": "tied" if c.flag("tie_word_embeddings", default=tied) else "untied",
        "norm": norm,
        "norms": norms,
    }


def by_heads(  # the keys of each architecture
    c: Config,
    *,
    bias: Bias | Literal["output"] | tuple[str, bool, Bias] = ("attention_bias", False, "all"),
    size: int | None = None,
    heads: str = "num_attention_heads",
    kv_heads: str | int | None = "num_key_value_heads",
    head_dim: str | None = "head_dim",
    hidden: str = "hidden_size",
    **rest: Any,
) -> Attention:
    """Attention by heads; without a size of its own a head has its share of the hidden size.

    Args:
        c: The config.json.
        bias: Which projections have a bias; or the key that says so, its default, and which.
        size: The default of ``head_dim`` where the class has one.
        heads: The key of the query heads.
        kv_heads: The heads of keys and values or the key of them; the query heads where it is null, or without a key, and
            where it is missing if the class has no other default.
        head_dim: The key of the size of a head.
        hidden: The key of the hidden size.
        rest: Further fields of the attention.
    """
    count = c.count(heads)
    if isinstance(kv_heads, str):
        default = count if c.architecture in _KV_HEADS_OF_QUERIES else REQUIRED
        kv_heads = c.count(kv_heads, default) if c.values.get(kv_heads, default) is not None else None
    stated = head_dim if head_dim and (size or c.get(head_dim, None)) else None
    return Attention(
        heads=count,
        kv_heads=kv_heads or count,
        head_size=c.count(stated, size) if stated else head_share(c, hidden, count),
        bias=bias if isinstance(bias, str) else (bias[2] if c.flag(bias[0], default=bias[1]) else "none"),
        **rest,
    )


def head_share(c: Config, hidden: str, heads: int) -> int:
    """The size of a head that has its share of the hidden size.

    Raises:
        ConfigError: The heads do not divide it.
    """
    width = c.count(hidden)
    if width % heads:
        raise ConfigError("head_dim", f"{hidden} is {width}, not a multiple of {heads} heads, and head_dim is missing")
    return width // heads


def dense_network(
    c: Config,
    *,
    width: int | str | tuple[str, int] = "intermediate_size",
    form: Literal["gated", "plain"] = "gated",
    bias: bool | tuple[str, bool] = False,
    layers: int | None = None,
) -> FeedForward:
    """A dense network.

    Args:
        c: The config.json.
        width: Its width or the key of it; or a key that may be missing, and the width then.
        form: Whether it has a gate.
        bias: Whether it has biases, or the key that says so and its default.
        layers: Its layers, where these are not all.
    """
    biased = bias if isinstance(bias, bool) else c.flag(bias[0], default=bias[1])
    key, fallback = width if isinstance(width, tuple) else (width, None)
    size = key if isinstance(key, int) else c.count(key) if fallback is None or c.get(key, None) else fallback
    return FeedForward(width=size, form=form, bias="all" if biased else "none", layers=layers)


def sliding_windows(
    c: Config, *, default: int | None = None, every: int | tuple[str, int] = 0, key: str = "sliding_window"
) -> Fields:
    """Window and windowed layers: by ``layer_types``, or all but every n-th layer; with ``every`` 0 all layers.

    Args:
        c: The config.json.
        default: The window where the key is missing.
        every: Every how many layers one has full attention, or the key that says so and its default.
        key: The key of the window.
    """
    layers = c.count("num_hidden_layers")
    if key in c.values and c.values[key] is None:
        default = None  # null switches windows off; only a missing key has the default
    window = c.get(key, default)
    types = c.values_of("layer_types", layers)
    if isinstance(every, tuple):
        key_of_period, standard = every
        c.used |= {key_of_period, f"_{key_of_period}"}
        every = c.count(key_of_period, standard) if types is None else 0
    if window is None:
        return NO_WINDOW
    if types is not None:
        windowed = sum(t in {"sliding_attention", "chunked_attention"} for t in types)
    else:
        windowed = layers - layers // every if every else layers
    if not windowed:
        return NO_WINDOW
    return {"window": c.count(key, default), "windowed": windowed if windowed < layers else None}


def late_windows(c: Config) -> Fields:
    """Layers from ``max_window_layers`` on are windowed, where windows are used at all."""
    layers = c.count("num_hidden_layers")
    types = c.values_of("layer_types", layers)
    window = c.get("sliding_window", None)
    first = c.get("max_window_layers", None)
    if not c.flag("use_sliding_window") or window is None:
        return NO_WINDOW
    windowed = layers - int(first or layers) if types is None else types.count("sliding_attention")
    return {"window": window, "windowed": windowed} if windowed > 0 else NO_WINDOW


def decoder(  # noqa: PLR0913  # the columns of the table of architectures
    c: Config,
    *,
    rename: Mapping[str, str] | None = None,
    expect: Fields | None = None,
    ignore: str = "",
    notes: tuple[str, ...] = (),
    windows: Fields | Callable[[Config], Fields] | None = None,
    recurrence: Callable[[Config], Recurrence] | None = None,
    attention: Fields | Callable[[Config], Attention] | None = None,
    network: Fields | None = None,
    experts: Fields | Callable[[Config], Fields | None] | None = None,
    fixed: Fields | None = None,
    **sizes: Any,
) -> Fields:
    """The fields of a model from a row of the table: layers with attention or a recurrence, and a dense network or experts.

    Values of the arguments may be functions of the config.json.

    Args:
        c: The config.json.
        rename: Names of keys by the common ones.
        expect: Keys of which only the stated values can be imported.
        ignore: Keys that change nothing.
        notes: Notes about the model.
        windows: Arguments of `sliding_windows`, or the function that reads the windows.
        recurrence: The function that reads the recurrence.
        attention: Arguments of `by_heads`, or the function that reads another attention.
        network: Arguments of `dense_network`.
        experts: Arguments of `with_experts`, or a function for them that gives ``None`` where there are none; a model with
            experts has a dense network in its first layers only.
        fixed: Further fields of the model.
        sizes: Arguments of `outline`.

    Raises:
        ConfigError: A key is missing, or has a value that cannot be imported.
    """
    c.rename(rename or {})
    c.expect(**_computed(c, expect or {}))
    c.used |= set(ignore.split())
    fields = outline(c, **_computed(c, sizes))
    c.notes += notes
    if recurrence is not None:
        fields["recurrence"] = recurrence(c)
    if callable(attention):
        fields["attention"] = attention(c)
    else:
        heads = _computed(c, attention or {})
        heads |= sliding_windows(c, **windows) if isinstance(windows, dict) else windows(c) if windows else {}
        fields["attention"] = by_heads(c, **heads)
    fields |= _computed(c, fixed or {})
    routed = experts(c) if callable(experts) else experts
    if routed is not None:
        return with_experts(c, fields, **_computed(c, routed))
    return fields | {"feed_forward": dense_network(c, **_computed(c, network or {}))}


def _computed(c: Config, arguments: Fields) -> Fields:
    return {name: value(c) if callable(value) else value for name, value in arguments.items()}


def with_experts(  # noqa: PLR0913  # the keys of each architecture
    c: Config,
    fields: Fields,
    *,
    count: str | tuple[str, ...] = ("num_experts", "num_local_experts"),
    active: str = "num_experts_per_tok",
    width: str = "moe_intermediate_size",
    shared: str | int = 0,
    dense: int = 0,
    dense_width: str = "intermediate_size",
    form: Literal["gated", "plain"] = "gated",
    **rest: Any,
) -> Fields:
    """Experts in all but the first ``dense`` layers."""
    number = shared if isinstance(shared, int) else c.number(shared) if c.get(shared, None) else 0
    fields["experts"] = Experts(
        count=c.count(count if isinstance(count, str) else c.present(*count)),
        active=c.count(active),
        width=c.count(width),
        form=form,
        shared=number or None,
        dense_layers=dense or None,
        **rest,
    )
    if dense:
        fields["feed_forward"] = dense_network(c, width=dense_width, form=form)
    else:
        c.used.add(dense_width)
        fields.pop("feed_forward", None)
    return fields


def dense_before(c: Config, keys: tuple[str, ...], default: int = 0) -> int:
    """Dense layers before the first with experts: a count, or a list with an element per layer.

    Args:
        c: The config.json.
        keys: Keys that may state it; the first that is present does.
        default: The count where none is.

    Raises:
        ConfigError: A dense layer comes after one with experts.
    """
    layers = c.count("num_hidden_layers")
    key = c.present(*keys)
    c.used |= set(keys)
    value = c.get(key, default)
    if isinstance(value, int):
        return c.number(key, default)
    experts = [each in {1, "sparse"} for each in c.values_of(key, layers) or []]
    dense = experts.count(False)
    if any(experts[:dense]):
        raise ConfigError(key, f"{key} has dense layers after the first one with experts")
    return dense
